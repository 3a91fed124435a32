# SPDX-License-Identifier: Apache-2.0
"""`plimsoll jupyter`: twins of kernelspecs, as Jupyter itself finds, reads and starts them.

Each test has a home and an environment of its own. What Jupyter sees is asked of the real
KernelSpecManager, in a Python of its own with that same environment.
"""

import json
import os
import pathlib
import re
import stat
import subprocess
import threading

import pytest

PYTHON = "/usr/bin/python3"  # Debian's: the one that has jupyter_client
IRKERNEL = pathlib.Path("/usr/lib/R/site-library/IRkernel/kernelspec")
ASK_JUPYTER = """
import json, warnings
warnings.simplefilter("ignore")
from jupyter_client.kernelspec import KernelSpecManager
manager = KernelSpecManager(ensure_native_kernel=False)
print(json.dumps({"dirs": manager.kernel_dirs, "found": manager.find_kernel_specs(),
                  "specs": {k: v["spec"] for k, v in manager.get_all_specs().items()}}))
"""
RUN_KERNEL = """
import sys
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name=sys.argv[1], startup_timeout=120)
try:
    client.execute_interactive(sys.argv[2], timeout=120)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""
ARGV = ["/bin/sh", "-c", "sleep 1 {connection_file}"]


class Jupyter:
    """A user, the kernels in that user's home, and the commands that are run there."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.home = folder / "home"
        self.before = []  # what the commands are run with
        self.home.mkdir()
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8",
                    "PLIMSOLL_STATE": str(folder / "state")}
        self.env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        self.data = self.home / ".local/share/jupyter"
        self.kernels = self.data / "kernels"

    def __call__(self, *words, status=0, **more):
        command = [*self.before, str(self.program), "jupyter", *map(str, words)]
        done = subprocess.run(command, env={**self.env, **more}, cwd=self.folder, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=300)
        assert status is None or done.returncode == status, done
        return done

    def ask(self, python=PYTHON):
        done = subprocess.run([*self.before, str(python), "-c", ASK_JUPYTER], env=self.env,
                              cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=300, check=True)
        return json.loads(done.stdout)

    def list(self):
        kernels = json.loads(self("list", "--json").stdout)["kernels"]
        return {kernel["name"]: kernel for kernel in kernels}

    def add(self, name, kernels=None, **fields):
        """A hand-made kernelspec; returns its folder."""
        folder = (kernels or self.kernels) / name
        folder.mkdir(parents=True)
        spec = {"argv": ARGV, "display_name": name, "language": "made", **fields}
        (folder / "kernel.json").write_text(json.dumps(spec, ensure_ascii=False))
        return folder

    def spec(self, name):
        return json.loads((self.kernels / name / "kernel.json").read_text())


@pytest.fixture
def jupyter(meson_build, tmp_path):
    return Jupyter((meson_build / "src/cli/plimsoll").resolve(), tmp_path)


def tree(folder):
    """Every path below, with type, rights and contents."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
    }


# Where kernels are


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"XDG_DATA_HOME": "{}/xdg"},
        {"JUPYTER_DATA_DIR": "{}/data", "XDG_DATA_HOME": "{}/xdg"},
        {"JUPYTER_DATA_DIR": ""},
        {"JUPYTER_PATH": "{}/one/:{}/two///:/usr/share/jupyter"},
        {"JUPYTER_DATA_DIR": "{}/data", "PYTHONUSERBASE": "{}/base"},
        {"JUPYTER_DATA_DIR": "{}/data", "PYTHONNOUSERSITE": "1"},
        {"IPYTHONDIR": "{}/ipython"},
        {"IPYTHONDIR": "~/ipython"},
        {"JUPYTER_PREFER_ENV_PATH": "1"},
        {"PATH": "/bin:/usr/bin"},
    ],
    ids=lambda variables: "+".join(variables) or "none",
)
def test_searched_folders_are_those_of_jupyter_in_its_order(jupyter, variables):
    jupyter.env.update({k: v.replace("{}", str(jupyter.folder)) for k, v in variables.items()})
    searched = json.loads(jupyter("list", "--json").stdout)["searched"]
    expected = list(dict.fromkeys(jupyter.ask()["dirs"]))  # each once
    assert searched == expected


@pytest.mark.parametrize("prefer", ["1", "TRUE", "", "0", "Off", "no"])
def test_a_virtual_environment_is_searched_where_jupyter_does(jupyter, prefer):
    venv = jupyter.folder / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", venv],
                   check=True)
    jupyter.env.update(PATH=f"{venv}/bin:/usr/bin:/bin", JUPYTER_PREFER_ENV_PATH=prefer)
    dirs = jupyter.ask(venv / "bin/python3")["dirs"]
    assert f"{venv}/share/jupyter/kernels" in dirs
    assert json.loads(jupyter("list", "--json").stdout)["searched"] == dirs
    jupyter.env.update(PATH="/usr/bin:/bin", VIRTUAL_ENV=str(venv))
    assert json.loads(jupyter("list", "--json").stdout)["searched"] == dirs


def test_a_virtual_environment_of_the_users_own_comes_first_unless_told(jupyter):
    venv = jupyter.folder / "venv"
    own = jupyter.add("same", venv / "share/jupyter/kernels")
    jupyter.add("same")
    jupyter.env.update(VIRTUAL_ENV=str(venv))
    assert jupyter.list()["same"]["folder"] == str(own)
    jupyter.env.update(JUPYTER_PREFER_ENV_PATH="no")
    assert jupyter.list()["same"]["folder"] == str(jupyter.kernels / "same")


def test_list_finds_what_jupyter_finds(jupyter):
    jupyter.add("UpperCase")
    jupyter.add("made")
    jupyter.add("made", jupyter.folder / "one/kernels", display_name="first")
    jupyter.add("dotted.name_1-2")
    (jupyter.kernels / "empty").mkdir()
    (jupyter.kernels / "folder/kernel.json").mkdir(parents=True)
    (jupyter.kernels / "pipe").mkdir()
    os.mkfifo(jupyter.kernels / "pipe/kernel.json")
    (jupyter.kernels / "dangling").mkdir()
    (jupyter.kernels / "dangling/kernel.json").symlink_to("nothing")
    (jupyter.kernels / "a file").write_text("{}")
    (jupyter.kernels / "linked").symlink_to("made")
    jupyter.env["JUPYTER_PATH"] = str(jupyter.folder / "one")
    listed = {name: kernel["folder"] for name, kernel in jupyter.list().items()}
    assert listed == jupyter.ask()["found"]
    assert {"uppercase", "made", "linked"} < set(listed)
    assert jupyter.list()["made"]["display_name"] == "first"


def test_a_folder_with_an_invalid_name_is_no_kernel(jupyter):
    jupyter.add("has blank")
    jupyter.add("has\x1b[31mcolour")
    jupyter.add("ünicode")
    assert not {name for name in jupyter.list() if not re.fullmatch(r"[a-z0-9._-]+", name)}


# Twins


def test_jupyter_reads_the_twin_of_python3(jupyter, version):
    done = jupyter("install")
    seen = jupyter.ask()
    original, twin = seen["specs"]["python3"], seen["specs"]["plimsoll-python3"]
    assert twin["display_name"] == "Python 3 (Plimsoll)"
    assert twin["argv"] == [
        str(jupyter.program), "run", "--kernel", "auto", "--", *original["argv"]
    ]  # fmt: skip
    assert twin["metadata"].pop("plimsoll") == {
        "twin_of": "python3",
        "original": seen["found"]["python3"],
        "version": version,
    }
    for key in ("language", "env", "interrupt_mode", "metadata"):
        assert twin[key] == original[key], key
    assert seen["found"]["plimsoll-python3"] == str(jupyter.kernels / "plimsoll-python3")
    assert done.stdout == f"python3: its twin is {jupyter.kernels}/plimsoll-python3\n"
    assert done.stderr == ""


def test_everything_else_of_a_kernelspec_is_kept(jupyter):
    fields = {
        "display_name": "Grüße 🦊 (ipykernel)",
        "language": "γλώσσα",
        "interrupt_mode": "message",
        "env": {"A": "ä", "PATH": "/x:${PATH}"},
        "metadata": {"debugger": True, "deep": {"list": [1, 2.5, None]}},
        "codemirror_mode": "made-up",
    }
    jupyter.add("made", **fields)
    jupyter("install", "--kernel", "made")
    twin = jupyter.spec("plimsoll-made")
    assert twin.pop("display_name") == "Grüße 🦊 (Plimsoll)"
    assert twin["metadata"].pop("plimsoll")["twin_of"] == "made"
    assert twin.pop("argv")[-len(ARGV):] == ARGV
    fields.pop("display_name")
    assert twin == fields
    assert jupyter.ask()["specs"]["plimsoll-made"]["interrupt_mode"] == "message"


@pytest.mark.parametrize(
    "name, shown",
    [("R", "R (Plimsoll)"), ("(ipykernel)", "(ipykernel) (Plimsoll)"), ("", "made (Plimsoll)"),
     (None, "made (Plimsoll)")],
)
def test_the_display_name_says_plimsoll(jupyter, name, shown):
    folder = jupyter.add("made", display_name=name)
    if name is None:
        (folder / "kernel.json").write_text(json.dumps({"argv": ARGV}))
    jupyter("install", "--kernel", "made")
    assert jupyter.spec("plimsoll-made")["display_name"] == shown


def test_the_original_is_untouched_and_its_files_are_copied(jupyter):
    folder = jupyter.add("made")
    (folder / "logo-64x64.png").write_bytes(bytes(range(256)) * 100)
    (folder / "bin/deep").mkdir(parents=True)
    (folder / "bin/deep/start").write_text("#!/bin/sh\n")
    (folder / "bin/deep/start").chmod(0o755)
    (folder / "kernel.js").symlink_to(folder / "logo-64x64.png")
    (folder / "bin/kernel.json").write_text("not at the top, so a file like any other")
    before = tree(folder)
    assert jupyter("install", "--kernel", "made").stderr == ""
    assert tree(folder) == before
    twin = jupyter.kernels / "plimsoll-made"
    assert {str(p.relative_to(twin)) for p in twin.rglob("*")} == set(before)
    for name in ("logo-64x64.png", "bin/deep/start", "kernel.js", "bin/kernel.json"):
        assert (twin / name).read_bytes() == (folder / name).read_bytes()
        assert not (twin / name).is_symlink()
    assert os.access(twin / "bin/deep/start", os.X_OK)
    assert stat.S_IMODE(twin.stat().st_mode) == stat.S_IMODE(folder.stat().st_mode)


def test_what_is_no_file_or_too_large_is_left_out_with_a_note(jupyter):
    folder = jupyter.add("made")
    (folder / "small").write_text("x")
    for name, size in (("just", 8 << 20), ("huge", (8 << 20) + 1)):
        with (folder / name).open("wb") as file:
            file.truncate(size)
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nothing")
    (folder / "loop").symlink_to(".")
    done = jupyter("install", "--kernel", "made")
    left = set(re.findall(r"plimsoll: left out '.*/(\w+)': ", done.stderr))
    assert left == {"huge", "pipe", "dangling", "loop"} and len(done.stderr.splitlines()) == 4
    assert "it is 8.0 MiB, and at most 8.0 MiB are allowed" in done.stderr
    twin = jupyter.kernels / "plimsoll-made"
    assert {path.name for path in twin.iterdir()} == {"kernel.json", "small", "just"}


def test_a_bottomless_folder_ends(jupyter):
    folder = jupyter.add("made")
    (folder / "/".join("d" * 30)).mkdir(parents=True)
    done = jupyter("install", "--kernel", "made")
    assert "its folders are nested too deeply" in done.stderr


def test_the_budget_goes_to_run(jupyter):
    jupyter.add("made")
    for budget in ("2G", "80%", "1.5GiB"):
        jupyter("install", "--kernel", "made", "--budget", budget)
        words = jupyter.spec("plimsoll-made")["argv"]
        assert words[1:7] == ["run", "--kernel", "auto", "--budget", budget, "--"]
        assert jupyter.list()["plimsoll-made"]["budget"] == budget
    jupyter("install", "--kernel", "made")
    assert "budget" not in jupyter.list()["plimsoll-made"]


@pytest.mark.parametrize("budget", ["", "x", "-1", "0", "120%", "%", "1M", "2 G"])
def test_a_budget_that_run_would_refuse_is_refused(jupyter, budget):
    jupyter.add("made")
    done = jupyter("install", "--kernel", "made", "--budget", budget, status=125)
    assert done.stderr.startswith(f"plimsoll: '{budget}' is ") and done.stderr.count("\n") == 1
    assert [path.name for path in jupyter.kernels.iterdir()] == ["made"]


def test_a_kernel_without_connection_file_has_no_identity_and_is_told_of(jupyter):
    jupyter.add("made", argv=["/bin/true", "x"])
    done = jupyter("install", "--kernel", "made")
    assert jupyter.spec("plimsoll-made")["argv"][1:] == ["run", "--", "/bin/true", "x"]
    assert "'made'" in done.stderr and "{connection_file}" in done.stderr


def test_the_word_python_becomes_the_python_of_the_kernels_own_environment(jupyter):
    """jupyter_client replaces it only where it is the first word of the command."""
    venv = jupyter.folder / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", venv], check=True)
    argv = ["-m", "ipykernel_launcher", "-f", "{connection_file}"]
    jupyter.add("python3", venv / "share/jupyter/kernels", argv=["python", *argv])
    jupyter.add("own", argv=["python3", *argv])
    jupyter.env["VIRTUAL_ENV"] = str(venv)
    jupyter("install")
    jupyter("install", "--kernel", "own")
    assert jupyter.spec("plimsoll-python3")["argv"][5:] == [f"{venv}/bin/python", *argv]
    assert jupyter.spec("plimsoll-own")["argv"][5:] == ["/usr/bin/python3", *argv]


def test_the_working_folder_chooses_no_program_through_a_relative_path(jupyter):
    """Else a `.` on PATH would let a downloaded folder's python be what the kernel starts for good."""
    jupyter.add("made", argv=["python3.77", "-m", "made", "{connection_file}"])
    (jupyter.folder / "python3.77").write_text("#!/bin/sh\n")
    (jupyter.folder / "python3.77").chmod(0o755)
    done = jupyter("install", "--kernel", "made", PATH=".:bin")
    assert "no Python was found for its command" in done.stderr
    argv = jupyter.spec("plimsoll-made")["argv"]
    assert argv[argv.index("--") + 1] == "python3.77"


def test_a_twin_is_replaced_and_leaves_nothing_of_the_old_one(jupyter):
    folder = jupyter.add("made")
    (folder / "old").write_text("old")
    jupyter("install", "--kernel", "made")
    (folder / "old").rename(folder / "new")
    jupyter("install", "--kernel", "MADE")
    names = {path.name for path in (jupyter.kernels / "plimsoll-made").iterdir()}
    assert names == {"kernel.json", "new"}
    assert {path.name for path in jupyter.kernels.iterdir()} == {"made", "plimsoll-made"}


def test_a_link_in_a_twins_place_is_replaced_and_its_target_kept(jupyter):
    jupyter.add("made")
    jupyter("install", "--kernel", "made")
    elsewhere = jupyter.folder / "elsewhere"
    (jupyter.kernels / "plimsoll-made").rename(elsewhere)
    (jupyter.kernels / "plimsoll-made").symlink_to(elsewhere)
    before = tree(elsewhere)
    jupyter("install", "--kernel", "made")
    assert not (jupyter.kernels / "plimsoll-made").is_symlink() and tree(elsewhere) == before


@pytest.mark.parametrize("there", ["foreign kernel", "broken kernel", "folder", "file", "link"])
def test_what_is_not_a_twin_is_never_replaced(jupyter, there):
    jupyter.add("made")
    place = jupyter.kernels / "plimsoll-made"
    if there == "foreign kernel":
        jupyter.add("plimsoll-made", metadata={"plimsoll": "a sailor"})
    elif there == "broken kernel":
        place.mkdir()
        (place / "kernel.json").write_text("{")
    elif there == "folder":
        (place / "precious").mkdir(parents=True)
    elif there == "file":
        place.write_text("precious")
    else:
        place.symlink_to("nothing")
    before = tree(jupyter.kernels)
    done = jupyter("install", "--kernel", "made", status=1)
    assert done.stdout == "" and f"'{place}' already exists" in done.stderr
    assert tree(jupyter.kernels) == before
    jupyter("uninstall", "--kernel", "made", status=1)
    assert tree(jupyter.kernels) == before


def test_jupyter_sees_the_old_twin_or_the_new_one_at_every_moment(jupyter):
    """Whole at each look: a kernel.json that is there, is JSON and has its files beside it."""
    folder = jupyter.add("made")
    for number in range(20):
        (folder / f"file{number}").write_text("x")
    jupyter("install", "--kernel", "made")
    file, stop, seen = jupyter.kernels / "plimsoll-made/kernel.json", threading.Event(), []
    names = {"made", "plimsoll-made"}

    def look():
        while not stop.is_set():
            fd = os.open(jupyter.kernels / "plimsoll-made", os.O_RDONLY)
            entries = os.listdir(fd)
            os.close(fd)
            others = {p.parent.name for p in jupyter.kernels.glob("*/kernel.json")} - names
            seen.append((len(entries), json.loads(file.read_text())["argv"][0], bool(others)))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(30):
            jupyter("install", "--kernel", "made")
    finally:
        stop.set()
        watcher.join()
    # An open folder may be the old one while it is taken apart, so fewer entries can be seen there.
    assert {(program, other) for _, program, other in seen} == {(str(jupyter.program), False)}
    assert max(n for n, _, _ in seen) == 21


# Which kernels


@pytest.fixture
def bare(jupyter):
    """Jupyter on a system without kernels: an empty folder over the one that has them."""
    hidden = [folder for folder in ("/usr/share/jupyter", "/usr/local/share/jupyter")
              if os.path.isdir(folder)]
    script = "".join(f"mount -t tmpfs none {folder} && " for folder in hidden) + 'exec "$@"'
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
        pytest.skip("this system lets nobody make a mount namespace")
    jupyter.before = inside
    return jupyter


def test_without_python3_all_kernels_of_the_language_are_taken(bare):
    bare.add("py", language="Python")
    bare.add("conda", language="python")
    bare.add("other", language="made")
    bare("install")
    assert {p.name for p in bare.kernels.glob("plimsoll-*")} == {"plimsoll-py", "plimsoll-conda"}


@pytest.mark.parametrize("words", [[], ["--all"]])
def test_without_any_kernel_the_searched_folders_and_the_cure_are_told(bare, words):
    done = bare("install", *words, status=1)
    searched = json.loads(bare("list", "--json").stdout)["searched"]
    assert searched == bare.ask()["dirs"]
    lines = done.stderr.splitlines()
    assert lines[1 : 1 + len(searched)] == [f"  {folder}" for folder in searched]
    assert "python3 -m ipykernel install --user" in done.stderr and not bare.data.exists()
    assert bare("list").stdout.startswith("Jupyter finds no kernel")


def test_a_broken_python3_is_told_of_and_no_other_taken_for_it(jupyter):
    jupyter.add("python3")
    jupyter.add("py", language="python")
    (jupyter.kernels / "python3/kernel.json").write_text("[]")
    done = jupyter("install", status=1)
    assert "cannot guard 'python3'" in done.stderr and "it is not an object" in done.stderr
    assert not list(jupyter.kernels.glob("plimsoll-*"))


def test_all_takes_every_kernel_but_twins_and_names_the_broken_ones(jupyter):
    jupyter.add("good")
    jupyter.add("guarded", argv=["/opt/plimsoll", "run", "--budget", "1G", "--", "/bin/true"])
    jupyter.add("bad")
    (jupyter.kernels / "bad/kernel.json").write_text('{"argv": [1')
    jupyter("install", "--all", status=1)
    done = jupyter("install", "--all", status=1)
    twins = {path.name for path in jupyter.kernels.glob("plimsoll-*")}
    expected = {f"plimsoll-{name}" for name in jupyter.ask()["specs"]
                if not name.startswith("plimsoll-") and name != "guarded"}
    assert twins == expected and "plimsoll-good" in twins
    reason = r"'.*/bad/kernel.json' is not JSON: line 1: .*"
    assert re.fullmatch(rf"plimsoll: cannot guard 'bad': {reason}\n", done.stderr)


def test_a_twin_is_not_twinned_again(jupyter):
    jupyter.add("made")
    jupyter("install", "--kernel", "made")
    done = jupyter("install", "--kernel", "plimsoll-made", status=1)
    assert "is a twin already: give --kernel made" in done.stderr
    jupyter.add("hand", argv=["plimsoll", "run", "--", "/bin/true"])
    assert "needs no twin" in jupyter("install", "--kernel", "hand", status=1).stderr


def test_a_kernel_that_is_not_there_is_said(jupyter):
    done = jupyter("install", "--kernel", "nope", status=1)
    assert done.stderr == "plimsoll: there is no kernel 'nope' (see 'plimsoll jupyter list')\n"


# Where twins go


def test_a_prefix_that_jupyter_does_not_search_is_told_of_with_the_cure(jupyter):
    jupyter.add("made")
    prefix = jupyter.folder / "prefix"
    done = jupyter("install", "--kernel", "made", "--prefix", "prefix")  # relative
    assert f"set JUPYTER_PATH={prefix}/share/jupyter " in done.stderr
    assert "plimsoll-made" not in jupyter.ask()["found"]
    jupyter.env["JUPYTER_PATH"] = re.search(r"JUPYTER_PATH=(\S+)", done.stderr)[1]
    found = jupyter.ask()["found"]["plimsoll-made"]
    assert found == f"{prefix}/share/jupyter/kernels/plimsoll-made"
    assert jupyter("install", "--kernel", "made", "--prefix", prefix).stderr == ""
    assert not (jupyter.kernels / "plimsoll-made").exists()


def test_a_twin_that_another_one_hides_is_told_of(jupyter):
    jupyter.add("made")
    jupyter.env["JUPYTER_PATH"] = str(jupyter.folder / "one/share/jupyter")
    jupyter("install", "--kernel", "made", "--prefix", jupyter.folder / "one")
    first = jupyter.ask()["found"]["plimsoll-made"]
    done = jupyter("install", "--kernel", "made")
    assert f"Jupyter takes '{first}' instead" in done.stderr
    assert jupyter("install", "--kernel", "made", "--prefix", jupyter.folder / "one").stderr == ""


def test_a_place_that_cannot_be_written_is_our_failure(jupyter):
    jupyter.add("made")
    (jupyter.folder / "file").write_text("")
    done = jupyter("install", "--kernel", "made", "--prefix", jupyter.folder / "file", status=125)
    assert "Not a directory" in done.stderr and done.stdout == ""
    assert done.stderr.count("\n") == 1
    done = jupyter("install", "--kernel", "made", "--prefix", "", status=125)
    assert "'' cannot be a prefix" in done.stderr


def test_the_users_data_folder_is_where_jupyter_has_it(jupyter):
    jupyter.env["JUPYTER_DATA_DIR"] = str(jupyter.folder / "data")
    jupyter.add("made", jupyter.folder / "data/kernels")
    jupyter("install", "--kernel", "made", "--user")
    assert jupyter.ask()["found"]["plimsoll-made"] == str(
        jupyter.folder / "data/kernels/plimsoll-made"
    )


# What is wrong


def problems(jupyter, name):
    return jupyter.list()[name]["problems"]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "is not JSON: line 1"),
        ('{"argv": ["a"],\n"b": }', "is not JSON: line 2"),
        ("[]", "it is not an object"),
        ("{}", "has no command"),
        ('{"argv": []}', "has no command"),
        ('{"argv": "python"}', "has no command"),
        ('{"argv": ["a", 1]}', "is not a list of words"),
        ('{"argv": ["a"], "display_name": 3}', "is not text"),
        ('{"argv": ["a"], "metadata": []}', "is not an object"),
        ('{"argv": ["\xff"]}', "is not JSON"),
        ('{"argv": ["a"], "x": ' + "[" * 100000, "is not JSON"),
        (" " * (1 << 20) + "{}", "is 1.0 MiB, and a kernelspec may be at most 1.0 MiB"),
    ],
)
def test_a_broken_kernelspec_is_listed_with_the_reason_and_hides_no_other(jupyter, text, reason):
    jupyter.add("good")
    folder = jupyter.add("bad")
    (folder / "kernel.json").write_bytes(text.encode("latin-1"))
    listed = jupyter.list()
    assert listed["good"]["problems"] == []
    (problem,) = listed["bad"]["problems"]
    assert problem.startswith(f"'{folder}/kernel.json' ") and reason in problem
    done = jupyter("install", "--kernel", "bad", status=1)
    assert done.stderr.startswith("plimsoll: cannot guard 'bad': ") and reason in done.stderr
    lines = jupyter("list").stdout.splitlines()
    assert any(line.startswith("bad: ") and reason in line for line in lines)


def test_a_kernelspec_that_may_not_be_read_is_listed_with_the_reason(jupyter):
    folder = jupyter.add("secret")
    (folder / "kernel.json").chmod(0)
    as_nobody = []
    if os.geteuid() == 0:
        as_nobody = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
    done = subprocess.run([*as_nobody, str(jupyter.program), "jupyter", "list"], env=jupyter.env,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    assert f"secret: cannot read '{folder}/kernel.json': Permission denied" in done.stdout


def test_list_tells_what_a_twin_lacks(jupyter):
    folder = jupyter.add("made")
    jupyter("install", "--kernel", "made")
    assert problems(jupyter, "plimsoll-made") == []

    spec = jupyter.spec("plimsoll-made")
    spec["argv"][0] = str(jupyter.folder / "gone/plimsoll")
    (jupyter.kernels / "plimsoll-made/kernel.json").write_text(json.dumps(spec))
    (problem,) = problems(jupyter, "plimsoll-made")
    assert "gone/plimsoll' is gone" in problem and "install --kernel made" in problem

    spec["argv"][0], spec["argv"][5] = str(jupyter.program), "/gone/kernel"
    (jupyter.kernels / "plimsoll-made/kernel.json").write_text(json.dumps(spec))
    assert problems(jupyter, "plimsoll-made") == ["its program '/gone/kernel' cannot be found"]

    jupyter("install", "--kernel", "made")
    (folder / "kernel.json").unlink()
    (problem,) = problems(jupyter, "plimsoll-made")
    assert f"its original '{folder}' is gone" in problem and "uninstall --kernel made" in problem
    assert f"plimsoll-made: {problem}" in jupyter("list").stdout


@pytest.mark.parametrize(
    "word, found",
    [("sh", True), ("python3", True), ("no-such-program", False), ("/usr/bin", False),
     ("{prefix}/bin/x", True), ("./x", True)],
)
def test_list_tells_of_a_program_that_cannot_be_found(jupyter, word, found):
    jupyter.add("made", argv=[word])
    assert (problems(jupyter, "made") == []) == found


def test_the_table_has_a_row_per_kernel_with_its_twin(jupyter):
    jupyter.add("made")
    jupyter("install", "--kernel", "made", "--budget", "512M")
    jupyter.add("hand", argv=["plimsoll", "run", "--budget", "3G", "--", "/bin/true"])
    rows = [line.split() for line in jupyter("list").stdout.splitlines()]
    assert rows[0] == ["kernel", "guarded", "by", "budget", "folder"]
    assert ["made", "plimsoll-made", "512M", str(jupyter.kernels / "made")] in rows
    assert ["hand", "hand", "3G", str(jupyter.kernels / "hand")] in rows
    assert not [row for row in rows if row[0] == "plimsoll-made"]


def test_control_characters_reach_no_terminal(jupyter):
    jupyter.add("made", argv=["\x1b[31mred"])
    jupyter.env["JUPYTER_DATA_DIR"] = f"{jupyter.home}/.local/share/jupyter"
    assert "\x1b" not in jupyter("list").stdout


# Away with them


def test_uninstall_removes_the_twin_and_only_that(jupyter):
    jupyter.add("made")
    before = tree(jupyter.kernels)
    for name in ("made", "MADE", "plimsoll-made"):
        jupyter("install", "--kernel", "made")
        done = jupyter("uninstall", "--kernel", name)
        assert done.stdout == f"made: removed {jupyter.kernels}/plimsoll-made\n"
        assert tree(jupyter.kernels) == before


def test_uninstall_without_a_name_takes_python3_or_the_only_one(jupyter):
    for name in ("one", "two"):
        jupyter.add(name)
        jupyter("install", "--kernel", name)
    jupyter("install", "--kernel", "python3")
    assert jupyter("uninstall").stdout.startswith("python3: removed ")
    assert "there are 2 twins" in jupyter("uninstall", status=1).stderr
    jupyter("uninstall", "--kernel", "one")
    assert jupyter("uninstall").stdout.startswith("two: removed ")
    assert "there is no twin in" in jupyter("uninstall", status=1).stderr
    assert {path.name for path in jupyter.kernels.iterdir()} == {"one", "two"}


def test_uninstall_all_removes_every_twin_also_orphans(jupyter):
    folder = jupyter.add("one")
    jupyter.add("two")
    jupyter("install", "--all")
    (folder / "kernel.json").unlink()
    n_twins = len(list(jupyter.kernels.glob("plimsoll-*")))
    assert len(jupyter("uninstall", "--all").stdout.splitlines()) == n_twins >= 2
    assert {path.name for path in jupyter.kernels.iterdir()} == {"one", "two"}
    jupyter("uninstall", "--all", status=1)


def test_uninstall_looks_where_it_is_told_and_says_where_else_there_is_one(jupyter):
    jupyter.add("made")
    prefix = jupyter.folder / "prefix"
    jupyter.env["JUPYTER_PATH"] = f"{prefix}/share/jupyter"
    jupyter("install", "--kernel", "made", "--prefix", prefix)
    done = jupyter("uninstall", "--kernel", "made", status=1)
    assert f"there is '{prefix}/share/jupyter/kernels/plimsoll-made'" in done.stderr
    jupyter("uninstall", "--kernel", "made", "--prefix", prefix)
    assert "plimsoll-made" not in jupyter.list()


def test_a_twin_with_a_broken_kernelspec_is_left_and_named(jupyter):
    jupyter.add("made")
    jupyter("install", "--kernel", "made")
    (jupyter.kernels / "plimsoll-made/kernel.json").write_text("{")
    done = jupyter("uninstall", "--kernel", "made", status=1)
    assert f"did not remove '{jupyter.kernels}/plimsoll-made', which may be a twin" in done.stderr
    assert (jupyter.kernels / "plimsoll-made").exists()


# The command line


@pytest.mark.parametrize(
    "words, complaint",
    [
        ([], "give install, list or uninstall"),
        (["frobnicate"], "unknown word 'frobnicate'"),
        (["list", "more"], "unexpected argument 'more'"),
        (["list", "--budget", "1G"], "does not take '--budget'"),
        (["list", "--user"], "does not take '--user'"),
        (["list", "--all"], "does not take '--all'"),
        (["install", "--json"], "does not take '--json'"),
        (["uninstall", "--budget", "1G"], "does not take '--budget'"),
        (["install", "--kernel", "a", "--all"], "give --kernel or --all, not both"),
        (["install", "--user", "--prefix", "x"], "give --user or --prefix, not both"),
        (["install", "--nope"], "unknown option '--nope'"),
        (["install", "--kernel"], "'--kernel' needs a value"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(jupyter, words, complaint):
    done = jupyter(*words, status=125)
    assert done.stdout == "" and done.stderr.startswith("plimsoll: jupyter")
    assert complaint in done.stderr and done.stderr.count("\n") == 1
    assert not jupyter.data.exists()


@pytest.mark.parametrize("words", [["--help"], ["install", "--help"], ["list", "-h"]])
def test_help_is_given_before_and_after_the_word(jupyter, words):
    assert jupyter(*words).stdout.startswith("usage: plimsoll jupyter install ")


def test_an_answer_that_cannot_be_written_is_a_failure(jupyter):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(jupyter.program), "jupyter", "list"], env=jupyter.env,
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 125 and "cannot write the answer" in done.stderr


# Without memory


@pytest.fixture(scope="module")
def shim(root, tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "alloc_shim.so"
    source = root / "tests/programs/alloc_shim.c"
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-fno-builtin", "-shared", "-fPIC", source, "-o",
                    library], check=True)
    return library


def fail_each_allocation(jupyter, shim, words, onward):
    """Yields what each call said whose allocation 1, 2, 3 ... failed, until there are no more."""
    log, number = jupyter.folder / "shim.log", 0
    more = {"LD_PRELOAD": str(shim), "PLIMSOLL_SHIM_LOG": str(log)}
    more.update({"PLIMSOLL_SHIM_ONWARD": "1"} if onward else {})
    while True:
        number += 1
        done = jupyter(*words, status=None, PLIMSOLL_SHIM_FAIL=str(number), **more)
        if not log.exists():
            assert number > 20 and done.returncode == 0, done
            return
        log.unlink()
        yield done


@pytest.mark.parametrize("onward", [False, True], ids=["once", "onward"])
def test_without_memory_a_list_is_whole_or_there_is_none(jupyter, shim, onward):
    jupyter.add("made")
    jupyter("install", "--kernel", "made")
    for words in (["list"], ["list", "--json"]):
        whole = jupyter(*words).stdout
        for done in fail_each_allocation(jupyter, shim, words, onward):
            if done.returncode == 0:
                assert done.stdout == whole, done
            else:
                assert (done.returncode, done.stdout) == (125, ""), done
                assert done.stderr.startswith("plimsoll: ") and done.stderr.count("\n") == 1, done


@pytest.mark.parametrize("onward", [False, True], ids=["once", "onward"])
def test_without_memory_a_twin_is_the_old_one_or_the_new_one(jupyter, shim, onward):
    folder = jupyter.add("made")
    (folder / "sub").mkdir()
    (folder / "sub/file").write_text("x")
    twin = jupyter.kernels / "plimsoll-made"
    jupyter("install", "--kernel", "made", "--budget", "1G")
    old = tree(twin)
    jupyter("install", "--kernel", "made", "--budget", "2G")
    new = tree(twin)
    words = ["install", "--kernel", "made", "--budget", "2G"]
    jupyter("install", "--kernel", "made", "--budget", "1G")
    for done in fail_each_allocation(jupyter, shim, words, onward):
        assert done.returncode in (0, 125), done
        assert tree(twin) == (new if done.returncode == 0 else old), done
        assert done.returncode == 0 or done.stderr.startswith("plimsoll: "), done
        assert {path.name for path in jupyter.kernels.iterdir()} == {"made", "plimsoll-made"}, done
        if done.returncode == 0:
            jupyter("install", "--kernel", "made", "--budget", "1G")
    for done in fail_each_allocation(jupyter, shim, ["uninstall", "--kernel", "made"], onward):
        assert done.returncode in (0, 125), done
        assert twin.exists() == (done.returncode != 0), done
        jupyter("install", "--kernel", "made")


# Real kernels


def run_kernel(jupyter, name, code):
    done = subprocess.run([PYTHON, "-c", RUN_KERNEL, name, code], env=jupyter.env,
                          cwd=jupyter.folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    return done.stdout


def test_the_twin_of_python3_runs_code_under_the_line(jupyter):
    jupyter("install", "--budget", "1G")
    code = "import os; print('parent', os.readlink(f'/proc/{os.getppid()}/exe'), 6 * 7)"
    assert f"parent {jupyter.program} 42\n" in run_kernel(jupyter, "plimsoll-python3", code)


def test_the_twin_of_a_kernel_of_another_language_runs_its_code(jupyter):
    assert (IRKERNEL / "kernel.json").exists(), "r-cran-irkernel: tools/install-deps test"
    jupyter.kernels.mkdir(parents=True)
    (jupyter.kernels / "r").symlink_to(IRKERNEL)
    before = tree(IRKERNEL)
    jupyter("install", "--kernel", "r", "--budget", "1G")
    assert tree(IRKERNEL) == before
    twin = jupyter.ask()["specs"]["plimsoll-r"]
    assert (twin["display_name"], twin["language"]) == ("R (Plimsoll)", "R")
    assert "[plimsoll] 42" in run_kernel(
        jupyter, "plimsoll-r",
        "parent <- readLines(paste0('/proc/', strsplit(readLines('/proc/self/stat'), ' ')[[1]][4],"
        " '/comm')); cat(paste0('[', parent, '] ', 6 * 7))",
    )  # fmt: skip
