# SPDX-License-Identifier: Apache-2.0
"""Finds the run of the kernel before this one, where the connection file does not identify it.

VS Code gives each kernel a new connection file. But it names its cells by their notebook:
`vscode-notebook-cell:/home/ada/analysis.ipynb#W0sZmlsZQ%3D%3D`. Every record has the names of the
cells that were run, so the newest record with cells of this notebook is the one before.
"""
import os

from . import sources

SCHEME = "vscode-notebook-cell:"
# Only the head of a record is read: its first cell names the notebook as well as any other.
HEAD_BYTES = 8 << 10


def run_before(record, cell_id):
    """The newest other run with cells of the notebook that `cell_id` is in; None if there is none."""
    notebook, hash_sign, _cell = cell_id.partition("#")
    if not record or not hash_sign or not notebook.startswith(SCHEME):
        return None
    folder, own = os.path.split(record)
    try:
        runs = sorted(os.listdir(folder), reverse=True)  # their names begin with the time
    except OSError:
        return None
    beginning = sources.beginning_of_id(notebook + hash_sign)
    return next((run for run in runs if run != own and _begins(folder, run, beginning)), None)


def _begins(folder, run, beginning):
    try:
        with open(os.path.join(folder, run, sources.NAME), "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return head.partition(b", ")[2].startswith(beginning)
