# SPDX-License-Identifier: Apache-2.0
"""Asks the program `plimsoll` about runs, outside the guarded processes of the user."""
import json
import os
import subprocess

from .. import _program

TIMEOUT_S = 30


class ProgramError(Exception):
    """The program did not answer; the text says why."""


class Program:
    def __init__(self, start):
        self.record = start.record
        self._path = start.program

    def start(self, *arguments, stdout):
        """Starts it in the background, out of reach of the notebook's interrupts. Returns a Popen."""
        path = self._path or _program.find() or "plimsoll"
        try:
            return subprocess.Popen(
                [path, *arguments], env=_environment(), stdin=subprocess.DEVNULL, stdout=stdout,
                stderr=subprocess.PIPE if stdout == subprocess.PIPE else subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramError(f"cannot run '{path}': {error.strerror}") from error

    def text(self, *arguments, timeout_s=TIMEOUT_S):
        """Returns its output."""
        process = self.start(*arguments, stdout=subprocess.PIPE)
        try:
            answer, complaint = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ProgramError(
                f"'plimsoll {' '.join(arguments)}' did not answer within {timeout_s} s"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                process.communicate()
        if process.returncode != 0:
            raise ProgramError(_first_line(complaint) or f"exit status {process.returncode}")
        return answer.decode("utf-8", "replace")

    def top(self, timeout_s=TIMEOUT_S):
        """The state of this run now: the document of `plimsoll top --json`."""
        return parse(self.text("top", "--json", self.record, timeout_s=timeout_s))


def parse(text):
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ProgramError(f"plimsoll's answer is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise ProgramError("plimsoll's answer is not a JSON object")
    return document


def _environment():
    """Without the guard and outside this run, but with the same folder of records."""
    ours = ("LD_PRELOAD", "PLIMSOLL_LEDGER")
    return {name: value for name, value in os.environ.items() if name not in ours}


def _first_line(complaint):
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return lines[0].replace("plimsoll: ", "", 1) if lines else ""
