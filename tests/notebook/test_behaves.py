# SPDX-License-Identifier: Apache-2.0
"""Below the line a guarded kernel behaves as a plain one: the same cells (scenarios.py) are run in
both, and all that a page would show must be equal. Buttons are in test_buttons.py."""
import json
import os
import re
import subprocess
import textwrap

import nbclient
import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager

from conftest import PLAIN_SPECS, Homes
from scenarios import ANSWERS, PRELUDE, SCENARIOS
from support import HANG_S, PYTHON


@pytest.fixture(scope="module")
def pair(tmp_path_factory, server):
    """A plain and a guarded kernel that the scenarios share: each goes on where the last ended."""
    homes = Homes(tmp_path_factory.mktemp("pair"), server)
    yield homes.plain(), homes.guarded()
    homes.close()


def words(outcomes):
    """All the text of some outcomes."""
    parts = []
    for outcome in outcomes:
        parts += [outcome.stdout, outcome.stderr, outcome.text or "", str(outcome.result)]
        parts += [outcome.error.traceback if outcome.error else "", str(outcome.displays)]
        parts += [prompt for prompt, _password in outcome.prompts]
        parts += [message["msg_type"] for message in outcome.messages]
    return "\n".join(parts)


def comparable(outcome, kernel):
    """What a page would show, without what differs from kernel to kernel."""
    shown = {name: value for name, value in vars(outcome).items() if name != "messages"}
    shown["messages"] = [
        (message["msg_type"], message["content"], message["metadata"])
        for message in outcome.messages if message["msg_type"] not in ("status", "stream", "error")
    ]
    text = repr(shown).replace(str(kernel.folder), "FOLDER")
    text = re.sub(r"ipykernel_\d+", "ipykernel_PID", text)
    text = re.sub(r"\(pid=\d+\)", "(pid=PID)", text)  # Python 3.12 warns of forks so
    text = re.sub(r"'comm_id': '\w+'", "'comm_id': ID", text)
    return re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_guarded_kernel_shows_what_a_plain_one_shows(pair, name):
    cells, expected = SCENARIOS[name]
    shown = []
    for kernel in pair:
        kernel.run(PRELUDE)
        answers = list(ANSWERS.get(name, []))
        outcomes = [kernel.run(textwrap.dedent(code).lstrip("\n"), answers=answers)
                    for code in cells]
        shown.append([comparable(outcome, kernel) for outcome in outcomes])
    assert shown[1] == shown[0]
    assert expected in words(outcomes)


@pytest.mark.parametrize("code", ["%%time\nsum(range(10))", "%time 1 + 1", "%timeit -n 1 -r 1 1",
                                  "%%timeit -n 1 -r 1\n1"])
def test_a_timed_cell_shows_the_same_but_for_the_times(pair, code):
    shown = [comparable(kernel.run(code), kernel) for kernel in pair]
    # IPython leaves a part of the line out that would be zero.
    plain, guarded = (re.sub(r"[\d.e+-]+ [mµμn]?s.*?\\n", "TIME", text) for text in shown)
    assert "TIME" in plain and guarded == plain


def test_two_hundred_cells_are_numbered_the_same(pair):
    firsts = [kernel.run("total = 0").number for kernel in pair]
    assert firsts[0] == firsts[1]
    for kernel in pair:
        numbers = [kernel.run(f"total += {n}").number for n in range(200)]
        assert numbers == list(range(firsts[0] + 1, firsts[0] + 201))
        outcome = kernel.run("total, len(In)")
        assert outcome.text == f"(19900, {firsts[0] + 202})"


def test_what_runs_unseen_is_not_counted(pair):
    for kernel in pair:
        number = kernel.run("seen = 1").number
        assert kernel.run("seen += 1\n'silent'", silent=True).result is None
        assert kernel.run("'kept out'", store_history=False).text == "'kept out'"
        again = kernel.run("seen, len(In)")
        assert again.number == number + 1 and again.text == f"(2, {number + 2})"


def test_user_expressions_are_answered(pair):
    replies = []
    for kernel in pair:
        kernel.run("x = 20")
        request = kernel.client.execute("", user_expressions={"double": "x * 2", "bad": "no_name"})
        reply = kernel.client._recv_reply(request, timeout=HANG_S)["content"]["user_expressions"]
        replies.append((reply["double"], reply["bad"]["ename"]))
    assert replies[0] == replies[1] and replies[0][0]["data"] == {"text/plain": "40"}


@pytest.mark.parametrize("request_, arguments", [
    ("complete", ["sys.getsi", 9]), ("complete", ["%%wri", 5]), ("inspect", ["len", 3]),
    ("inspect", ["undefined", 9]), ("comm_info", []), ("kernel_info", []),
])
def test_a_request_is_answered_the_same(pair, request_, arguments):
    replies = []
    for kernel in pair:
        kernel.run("import sys")
        reply = kernel.ask(request_, *arguments)
        reply.get("metadata", {}).pop("_jupyter_types_experimental", None)
        if "banner" in reply:  # IPython 9 ends it with one of many tips
            reply["banner"] = reply["banner"].partition("\nTip: ")[0]
        replies.append(reply)
    assert replies[0] == replies[1] and replies[0]["status"] == "ok"


def test_a_comm_is_answered(pair):
    for kernel in pair:
        kernel.run("def opened(comm, message):\n"
                   "    def answer(message):\n"
                   "        comm.send({'twice': message['content']['data']['n'] * 2})\n"
                   "    comm.on_msg(answer)\n"
                   "get_ipython().kernel.comm_manager.register_target('doubler', opened)")
        session, channel = kernel.client.session, kernel.client.shell_channel
        channel.send(session.msg("comm_open", {"comm_id": "1", "target_name": "doubler",
                                               "data": {}}))
        channel.send(session.msg("comm_msg", {"comm_id": "1", "data": {"n": 21}}))
        while True:
            message = kernel.client.get_iopub_msg(timeout=HANG_S)
            if message["msg_type"] == "comm_msg":
                break
        assert message["content"]["data"] == {"twice": 42}


# The environment

# Every process of a run is guarded: these two reach all of them, by design.
OURS = {"LD_PRELOAD", "PLIMSOLL_LEDGER"}
ENVIRONMENT = "import os, subprocess\nsubprocess.run(['env', '-0'], capture_output=True).stdout"


def child_environment(kernel):
    text = eval(kernel.run(ENVIRONMENT).text).decode().replace(str(kernel.folder), "FOLDER")
    return dict(line.split("=", 1) for line in text.split("\0") if line)


@pytest.mark.parametrize("path", [None, "/some/where:/else"])
def test_a_program_inherits_nothing_of_ours_but_the_guard(plain, guarded, path):
    env = {"PYTHONPATH": path} if path else {}
    expected, seen = child_environment(plain(env=env)), child_environment(guarded(env=env))
    assert expected.get("PYTHONPATH") == path
    assert OURS <= set(seen)
    assert {k: v for k, v in seen.items() if k not in OURS} == expected


def test_modules_are_found_in_the_same_places(plain, guarded):
    """Ours come last, and only one is there: no module of the user's can be hidden by it."""
    kernels = plain(), guarded()
    paths = [eval(k.run("import sys\nsys.path[1:]").text) for k in kernels]
    assert paths[1][:len(paths[0])] == paths[0] and len(paths[1]) <= len(paths[0]) + 1
    for folder in paths[1][len(paths[0]):]:
        assert {n.partition(".")[0].partition("-")[0] for n in os.listdir(folder)} == {"plimsoll"}
    modules = [set(eval(k.run("list(sys.modules)").text)) for k in kernels]
    # mmap is the standard library's, and none of the user's can hide it: it is loaded from C.
    assert {m for m in modules[1] - modules[0] if not m.startswith("plimsoll")} <= {"mmap"}


# Without a page


def notebook(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


CELLS = ("import sys\nprint('out')\nprint('err', file=sys.stderr)", "x = [1, 2]\nx",
         "from IPython.display import HTML\nHTML('<i>i</i>')", "!echo shell", "x.append(3)\nlen(x)")


def n_records(home):
    """How many guarded runs there were."""
    runs = home.state / "runs"
    return len(list(runs.iterdir())) if runs.exists() else 0


def test_nbclient_gets_the_same_outputs(homes, monkeypatch):
    seen = []
    for guard in (False, True):
        home = homes.home()
        name = home.install() if guard else "python3"
        for variable, value in home.environment().items():
            monkeypatch.setenv(variable, value)
        made = notebook(*CELLS)
        specs = KernelSpecManager(kernel_dirs=[str(home.specs if guard else PLAIN_SPECS)])
        client = nbclient.NotebookClient(made, timeout=HANG_S, kernel_name=name)
        client.create_kernel_manager()
        client.km.kernel_spec_manager = specs
        client.execute()
        assert n_records(home) == int(guard)
        seen.append([cell.outputs for cell in made.cells])
    assert seen[0] == seen[1] and seen[0][1][0]["data"] == {"text/plain": "[1, 2]"}


@pytest.mark.parametrize("fails", [False, True])
def test_nbconvert_writes_the_same_notebook(homes, fails):
    cells = CELLS + (("1 / 0", "print('all the same')") if fails else ())
    seen = []
    for guard in (False, True):
        home = homes.home()
        name = home.install() if guard else "python3"
        (home.folder / "in.ipynb").write_text(nbformat.writes(notebook(*cells)))
        options = [f"--ExecutePreprocessor.kernel_name={name}", *(["--allow-errors"] * fails)]
        done = subprocess.run(
            [PYTHON, "-m", "nbconvert", "--to", "notebook", "--execute", "in.ipynb", "--output",
             "out.ipynb", *options],
            cwd=home.folder, env=home.environment(), capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == 0 and n_records(home) == int(guard), done.stderr
        written = json.loads((home.folder / "out.ipynb").read_text())
        seen.append([cell["outputs"] for cell in written["cells"]])
    assert seen[0] == seen[1] and seen[0][1][0]["data"] == {"text/plain": ["[1, 2]"]}
