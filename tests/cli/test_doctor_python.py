# SPDX-License-Identifier: Apache-2.0
"""`plimsoll doctor` on Pythons and packages: made-up ones for every verdict, and this machine's, with
CPython's own answers to compare with."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from doctor_tree import (
    LEVEL_2, LEVEL_3, PYTHON, SITE, Machine, build_libc, build_library, build_user_of, program,
)  # fmt: skip

DEBIAN = "/usr/bin/python3"
DIST = "/usr/lib/python3/dist-packages"


@pytest.fixture
def machine(meson_build, tmp_path):
    return Machine(program(meson_build), tmp_path)


# The interpreter


def test_a_healthy_machine_has_nothing_but_ok(machine):
    machine.package("numpy", "1.26.4")
    answer = machine.look("--strict", "--workers", "2")
    assert answer["n_warn"] == answer["n_fail"] == 0
    assert answer["python"]["path"] == PYTHON and answer["python"]["version"] == "3.11"
    assert answer["python"]["was_run"] is False
    assert answer["packages"] == [
        {"name": "numpy", "version": "1.26.4", "folder": SITE, "wheel": True, "hidden": False}
    ]


def test_without_a_python_the_machine_is_looked_at_all_the_same(machine):
    verdict, says, fix = machine.finding("python", PATH="/nowhere")
    assert verdict == "warn" and "no python3 or python on PATH" in says and "--python" in fix
    assert machine.look(PATH="/nowhere")["python"] is None
    assert machine.finding("memory", PATH="/nowhere")[0] == "ok"


@pytest.mark.parametrize("word", ["/opt/gone/bin/python3", "/opt", "python9"])
def test_a_python_that_was_asked_for_and_is_not_there_is_a_failure(machine, word):
    verdict, says, _ = machine.finding("python", "--python", word)
    assert verdict == "fail" and f"'{word}'" in says


def test_python_2_is_a_failure(machine):
    machine.interpreter("/opt/old", "2.7")
    verdict, says, _ = machine.finding("python", "--python", "/opt/old/bin/python2.7")
    assert verdict == "fail" and "2.7" in says


@pytest.mark.parametrize("word", ["/opt/other", "/opt/other/", "/opt/other/bin/python3.12"])
def test_an_interpreter_is_named_by_its_path_or_its_prefix(machine, word):
    machine.interpreter("/opt/other", "3.12")
    python = machine.look("--python", word)["python"]
    assert python["version"] == "3.12" and python["prefix"] == "/opt/other"


def test_python_is_found_where_python3_is_not(machine):
    (machine.root / "opt/env/bin/python3").unlink()
    assert machine.look()["python"]["path"] == "/opt/env/bin/python"


def test_a_free_threaded_python_is_told_from_its_name(machine):
    machine.interpreter("/opt/free", "3.13t")
    machine.package("numpy", "2.1.0", site="/opt/free/lib/python3.13t/site-packages",
                    tag="cp313-cp313t-manylinux_2_17_x86_64")
    verdict, says, _ = machine.finding("python", "--python", "/opt/free")
    assert verdict == "ok" and "3.13 (free-threaded)" in says
    assert machine.finding("versions", "--python", "/opt/free")[0] == "ok"
    machine.package("scipy", "1.14.0", site="/opt/free/lib/python3.13t/site-packages",
                    tag="cp313-cp313-manylinux_2_17_x86_64")
    assert machine.finding("versions", "--python", "/opt/free")[0] == "fail"


def put_virtualenv(machine, sees_base, version="version = 3.11.2"):
    machine.put("/home/user/venv/pyvenv.cfg",
                f"home = /opt/env/bin\ninclude-system-site-packages = {sees_base}\n{version}\n")
    machine.link("/home/user/venv/bin/python3", "/opt/env/bin/python3")
    site = "/home/user/venv/lib/python3.11/site-packages"
    (machine.root / site.lstrip("/")).mkdir(parents=True)
    return site


@pytest.mark.parametrize("sees_base", ["false", "True"])
def test_a_virtualenv_sees_its_base_only_if_it_says_so(machine, sees_base):
    site = put_virtualenv(machine, sees_base)
    machine.package("numpy", "2.0.0", site=site)
    machine.package("numpy", "1.26.4")
    machine.package("torch", "2.7.0")
    answer = machine.look("--python", "/home/user/venv")
    names = {(one["name"], one["version"]): one["hidden"] for one in answer["packages"]}
    assert answer["python"]["kind"] == "virtualenv"
    if sees_base == "false":
        assert names == {("numpy", "2.0.0"): False}
    else:
        assert names == {("numpy", "2.0.0"): False, ("numpy", "1.26.4"): True,
                         ("torch", "2.7.0"): False}


def test_a_conda_environment_adds_what_conda_alone_has(machine):
    machine.put("/opt/env/conda-meta/cudatoolkit-11.8.0-h6a678d5_0.json", "{}")
    machine.put("/opt/env/conda-meta/numpy-1.26.4-py311h64a7726_0.json", "{}")
    machine.put("/opt/env/conda-meta/history", "")
    machine.package("numpy", "1.26.4", installer="conda\n")
    answer = machine.look()
    assert answer["python"]["kind"] == "conda environment"
    assert [(one["name"], one["version"], one["wheel"]) for one in answer["packages"]] == [
        ("numpy", "1.26.4", False), ("cudatoolkit", "11.8.0", False)
    ]  # fmt: skip


def test_pyenv_shims_are_understood_without_running_them(machine):
    machine.put("/opt/pyenv/shims/python3", "#!/bin/sh\nexit 9\n").chmod(0o755)
    machine.put("/opt/pyenv/version", "3.12.1\n")
    machine.interpreter("/opt/pyenv/versions/3.12.1", "3.12")
    machine.interpreter("/opt/pyenv/versions/3.10.4", "3.10")
    path = "/opt/pyenv/shims:/opt/env/bin"
    assert machine.look(PATH=path)["python"]["version"] == "3.12"
    assert machine.look(PATH=path, PYENV_VERSION="3.10.4")["python"]["version"] == "3.10"
    assert machine.look(PATH=path, PYENV_VERSION="system")["python"]["path"] == PYTHON


# What a downloaded folder chose is not run


class Downloaded:
    """A folder with a .python-version, entered by somebody whose PATH begins with pyenv's shims; what
    may not be run leaves a mark."""

    def __init__(self, machine, version):
        self.machine, self.mark = machine, machine.folder / "mark"
        self.script = f"#!/bin/sh\ntouch {self.mark}\nexec {DEBIAN} \"$@\"\n"
        self.pyenv = machine.root / "pyenv"
        machine.put("/pyenv/shims/python3", "#!/bin/sh\nexit 9\n").chmod(0o755)
        machine.put("/pyenv/version", "3.12.1\n")
        (self.pyenv / "versions").mkdir()
        (machine.folder / ".python-version").write_text(version)

    def put(self, path):
        self.machine.put(path, self.script).chmod(0o755)

    def look(self, *words, **env):
        shims = f"{self.pyenv}/shims:/usr/bin"
        return self.machine.look(*words, root=False, **{"PATH": shims, **env})["python"]


@pytest.mark.parametrize("version", ["../../../download", "..", "a/../../../../download"])
def test_a_version_that_leads_out_of_pyenv_is_none(machine, version):
    """The shim stands for nothing then, and the next Python on PATH is meant."""
    there = Downloaded(machine, version)
    (there.pyenv / "versions/a").mkdir()
    for folder in (machine.folder / "download", there.pyenv):
        there.put("/" + os.path.relpath(folder / "bin/python3", machine.root))
    assert there.look()["path"] in ("/usr/bin/python3", DEBIAN)
    assert there.look(PYENV_VERSION=version)["path"] in ("/usr/bin/python3", DEBIAN)
    (machine.folder / ".python-version").unlink()
    (there.pyenv / "version").write_text(version)
    assert there.look()["path"] in ("/usr/bin/python3", DEBIAN)
    assert not there.mark.exists()


def test_a_pyenv_below_a_folder_named_shims_is_understood_too(machine):
    there = Downloaded(machine, "3.12.1")
    machine.interpreter("/shims/pyenv/versions/3.12.1", "3.12")
    there.put("/shims/pyenv/shims/python3")
    python = there.look(PATH=f"{machine.root}/shims/pyenv/shims:/usr/bin")
    assert python["path"].endswith("/versions/3.12.1/bin/python3") and python["was_run"] is False
    assert not there.mark.exists()


def test_a_shim_of_another_tool_is_not_run_in_the_working_folder(machine):
    """asdf's and mise's run the Python that a file there names."""
    there = Downloaded(machine, "")
    file, chosen = machine.folder / ".tool-versions", machine.folder / "download/python3"
    machine.put("/asdf/shims/python3", f"""#!/bin/sh
        for folder in . "$PWD"; do
            [ -e "$folder/{file.name}" ] && exec "$(cat "$folder/{file.name}")" "$@"
        done
        exec {DEBIAN} "$@"\n""").chmod(0o755)
    there.put("/" + os.path.relpath(chosen, machine.root))
    file.write_text(str(chosen))
    python = there.look(PATH=f"{machine.root}/asdf/shims", PWD=str(machine.folder))
    assert python["was_run"] is True and python["path"] == DEBIAN and not there.mark.exists()
    assert there.look("--python", chosen)["was_run"] is True and there.mark.exists()


def test_a_python_that_a_python_version_file_chose_is_not_run(machine):
    there = Downloaded(machine, "wrapped")
    there.put("/pyenv/versions/wrapped/bin/python3")
    answer = machine.look("--strict", root=False, PATH=f"{there.pyenv}/shims:/usr/bin")
    says = next(one["says"] for one in answer["findings"] if one["check"] == "python")
    assert "is not run" in says and ".python-version" in says and "--python" in says
    assert answer["python"] is None and not there.mark.exists()
    assert there.look("--python", there.pyenv / "versions/wrapped")["was_run"] is True
    assert there.mark.exists()
    there.mark.unlink()
    assert there.look(PYENV_VERSION="wrapped")["was_run"] is True and there.mark.exists()


def test_no_library_of_a_python_that_a_python_version_file_chose_is_loaded(machine):
    there = Downloaded(machine, "3.12.1")
    machine.interpreter("/pyenv/versions/3.12.1", "3.12")
    put_marking_openblas(machine, "/pyenv/versions/3.12.1", "3.12", there.mark)
    env = {"PATH": f"{there.pyenv}/shims", "root": False}
    says = machine.finding("blas", **env)[1]
    assert "nothing chosen by a .python-version" in says and not there.mark.exists()
    machine.finding("blas", PYENV_VERSION="3.12.1", **env)
    assert there.mark.exists()


def test_a_bare_word_is_never_a_program_of_the_working_folder(machine):
    there = Downloaded(machine, "system")
    (machine.folder / "python9").write_text(there.script)
    (machine.folder / "python9").chmod(0o755)
    verdict, says, _ = machine.finding("python", "--python", "python9", root=False, PATH="/usr/bin:.")
    assert verdict == "fail" and "'python9'" in says and not there.mark.exists()
    assert there.look("--python", "./python9")["was_run"] is True


def test_below_a_root_no_script_is_run(machine):
    machine.put("/opt/bin/python3", "#!/bin/sh\necho /opt/env/bin/python3\n").chmod(0o755)
    verdict, says, _ = machine.finding("python", "--python", "/opt/bin/python3")
    assert verdict == "fail" and "nothing is run" in says


def test_a_script_that_stands_for_python_is_asked(machine, tmp_path):
    shim = tmp_path / "shim"
    shim.write_text(f'#!/bin/sh\nexec {DEBIAN} "$@"\n')
    shim.chmod(0o755)
    python = machine.look("--python", shim, root=False)["python"]
    assert python["was_run"] is True and python["path"] == DEBIAN


@pytest.mark.parametrize("answer", ["exit 3", "echo nonsense", "kill -9 $$"])
def test_a_script_that_answers_nonsense_is_a_failure(machine, tmp_path, answer):
    shim = tmp_path / "shim"
    shim.write_text(f"#!/bin/sh\n{answer}\n")
    shim.chmod(0o755)
    verdict, says, _ = machine.finding("python", "--python", shim, root=False)
    assert verdict == "fail" and str(shim) in says


def test_a_program_beside_a_python_is_none(machine, tmp_path):
    verdict, says, _ = machine.finding("python", "--python", "/usr/bin/true", root=False)
    assert (verdict, "'/usr/bin/true' does not answer like a Python" in says) == ("fail", True)
    shutil.copy(os.path.realpath(DEBIAN), tmp_path / "renamed")
    answer = machine.look("--python", tmp_path / "renamed", root=False)["python"]
    assert answer["was_run"] is True and answer["path"] == str(tmp_path / "renamed")


def test_pth_files_and_pythonpath_add_folders(machine):
    machine.put(f"{SITE}/one.pth", "import os\n# no\n/opt/more\nbelow\n/opt/gone\n")
    machine.package("torch", "2.7.0", site="/opt/more")
    machine.package("jax", "0.5.0", site=f"{SITE}/below")
    machine.package("keras", "3.8.0", site="/opt/first")
    answer = machine.look(PYTHONPATH="/opt/first::/opt/gone")
    assert answer["python"]["folders"] == ["/opt/first", SITE, "/opt/more", f"{SITE}/below"]
    assert {one["name"] for one in answer["packages"]} == {"torch", "jax", "keras"}


# This machine's, as CPython has it

ASK = """
import importlib.metadata, json, re, sys
names = {}
for one in importlib.metadata.distributions():
    name = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
    names.setdefault(name, one.version)
print(json.dumps([sys.path, names]))
"""


def ask_python(python, env):
    done = subprocess.run([python, "-c", ASK], env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def compare_with_python(machine, python, **env):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(machine.folder), **env}
    path, names = ask_python(python, env)
    answer = machine.look("--python", python, root=False, **env)
    real = [os.path.realpath(folder) for folder in answer["python"]["folders"]]
    expected = [os.path.realpath(folder) for folder in path if folder.endswith("-packages")
                or str(machine.folder / "more") == folder]
    assert list(dict.fromkeys(real)) == list(dict.fromkeys(expected))
    found = {one["name"]: one["version"] for one in answer["packages"] if not one["hidden"]}
    assert found == {name: version for name, version in names.items() if name in found}
    for name in ("numpy", "torch", "scipy", "pandas"):
        assert (name in found) == (name in names)
    return found


@pytest.mark.parametrize("path", [DEBIAN, "/bin/python3"])
def test_this_machine_s_packages_are_those_that_python_finds(machine, path):
    found = compare_with_python(machine, path)
    assert "numpy" in found and "torch" in found


def test_user_site_and_pythonpath_are_as_python_has_them(machine):
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = machine.folder / f".local/lib/{version}/site-packages"
    for folder in (site, machine.folder / "more"):
        (folder / "numpy-9.9.9.dist-info").mkdir(parents=True)
        (folder / "numpy-9.9.9.dist-info/METADATA").write_text("Name: numpy\nVersion: 9.9.9\n")
    assert compare_with_python(machine, DEBIAN)["numpy"] == "9.9.9"
    assert compare_with_python(machine, DEBIAN, PYTHONNOUSERSITE="1")["numpy"] != "9.9.9"
    more = str(machine.folder / "more")
    found = compare_with_python(machine, DEBIAN, PYTHONNOUSERSITE="1", PYTHONPATH=more)
    assert found["numpy"] == "9.9.9"


@pytest.mark.parametrize("options", [[], ["--system-site-packages"], ["--copies"]])
def test_real_virtualenvs_are_as_python_has_them(machine, tmp_path, options):
    folder = tmp_path / "venv"
    subprocess.run([DEBIAN, "-m", "venv", "--without-pip", *options, folder], check=True)
    found = compare_with_python(machine, str(folder / "bin/python3"))
    assert ("torch" in found) == ("--system-site-packages" in options)


def test_nothing_of_a_package_is_executed(machine):
    machine.package("torch", "2.7.0")
    mark = machine.folder / "imported"
    machine.put(f"{SITE}/torch/__init__.py", f"open({str(mark)!r}, 'w')\n")
    machine.put(f"{SITE}/sitecustomize.py", f"open({str(mark)!r}, 'w')\n")
    machine.put(f"{SITE}/evil.pth", f"import os; open({str(mark)!r}, 'w')\n")
    machine.look()
    assert not mark.exists()


# Packages, one by one and against each other


def test_a_package_in_two_versions_in_one_folder_is_a_failure(machine):
    machine.package("numpy", "1.26.4")
    machine.package("numpy", "2.0.1")
    verdicts = machine.findings("packages")
    assert [one[0] for one in verdicts] == ["ok", "fail"] and "two versions" in verdicts[1][1]


def test_two_names_of_tensorflow_in_one_folder_are_a_failure(machine):
    machine.package("tensorflow", "2.16.1")
    machine.package("tensorflow-cpu", "2.16.1")
    verdicts = machine.findings("packages")
    assert verdicts[1][0] == "fail" and "'tensorflow-cpu' 2.16.1" in verdicts[1][1]


@pytest.mark.parametrize(
    "package, verdict, words",
    [
        ({"python": ">=3.9,<3.13"}, "ok", "packages checked: 1, all built for Python 3.11"),
        ({"python": ">=3.12"}, "fail", "requires Python >=3.12"),
        ({"python": "nonsense"}, "ok", ""),
        ({"tag": "cp310-cp310-manylinux_2_17_x86_64"}, "fail", "a different Python"),
        ({"tag": "cp39-abi3-manylinux_2_17_x86_64"}, "ok", ""),
        ({"tag": "cp312-abi3-manylinux_2_17_x86_64"}, "fail", "a different Python"),
        ({"tag": "py3-none-any"}, "ok", ""),
        ({"tag": "cp311-cp311-manylinux_2_17_aarch64"}, "fail", "built for aarch64"),
        ({"tag": "cp311-cp311t-manylinux_2_17_x86_64"}, "fail", "a different Python"),
    ],
)
def test_a_package_is_for_this_python_and_machine_or_not(machine, package, verdict, words):
    machine.package("scipy", "1.11.0", **package)
    found = machine.finding("versions")
    assert found[0] == verdict and words in found[1]


@pytest.mark.parametrize(
    "name, version, how, verdict",
    [
        ("tensorflow", "2.21.0", {}, "ok"),
        ("tensorflow", "2.10.1", {}, "warn"),  # tested up to 3.10
        ("tensorflow-cpu", "2.10.1", {}, "warn"),
        ("torch", "1.13.1+cu117", {}, "warn"),
        ("torch", "2.2.0", {}, "ok"),
        ("torch", "1.13.1", {"tag": None}, "ok"),  # Debian's: rules on wheels are not of it
        ("torch", "1.13.1", {"installer": "conda\n"}, "ok"),
        ("torch", "99.0", {}, "ok"),  # nothing is known of it
    ],
)
def test_frameworks_against_the_pythons_that_they_were_tested_with(
    machine, name, version, how, verdict
):
    machine.package(name, version, **how)
    assert machine.finding("versions")[0] == verdict


@pytest.mark.parametrize(
    "packages, verdict, words",
    [
        ([("torch", "2.2.0"), ("numpy", "2.0.1")], "fail", "built for NumPy 1"),
        ([("torch", "2.2.0"), ("numpy", "1.26.4")], "ok", ""),
        ([("torch", "2.3.0"), ("numpy", "2.0.1")], "ok", ""),
        ([("tensorflow", "2.16.1"), ("numpy", "2.0.1")], "fail", "_ARRAY_API"),
        ([("tensorflow-cpu", "2.16.1"), ("numpy", "2.0.1")], "fail", "_ARRAY_API"),
        ([("tensorflow", "2.18.0"), ("numpy", "2.0.1")], "ok", ""),
        ([("tensorflow", "2.16.1"), ("keras", "2.15.0")], "fail", "Keras 3"),
        ([("tensorflow", "2.14.0"), ("keras", "3.0.0")], "fail", "Keras 2"),
        ([("jax-cuda12-plugin", "0.9.2"), ("jaxlib", "0.9.0.1")], "fail", "plugin"),
        ([("jax-cuda12-plugin", "0.9.2"), ("jaxlib", "0.9.2")], "ok", ""),
    ],
)
def test_frameworks_against_each_other_by_what_is_known(machine, packages, verdict, words):
    for name, version in packages:
        machine.package(name, version)
    found = machine.finding("requirements")
    assert found[0] == verdict and words in found[1]


def test_a_plugin_is_told_to_follow_what_it_is_for(machine):
    machine.package("jaxlib", "0.4.35")
    machine.package("jax-cuda12-plugin", "0.4.34")
    verdict, _, fix = machine.finding("requirements")
    assert (verdict, fix) == ("fail", f"{PYTHON} -m pip install 'jax-cuda12-plugin==0.4.35'")


@pytest.mark.parametrize(
    "line, verdict, words",
    [
        ("jaxlib<=0.4.30,>=0.4.27", "ok", ""),
        ("jaxlib (<=0.4.20,>=0.4.10)", "warn", "requires jaxlib <=0.4.20,>=0.4.10"),
        ("jaxlib==0.4.29; python_version < '3.10'", "ok", ""),
        ("jaxlib==0.4.29; python_version >= '3.10' and platform_system == 'Linux'", "warn", ""),
        ("jaxlib==0.4.29; extra == 'minimum'", "ok", ""),
        ("jaxlib==0.4.29; (extra == 'cuda' or sys_platform == 'linux')", "warn", ""),
        ("jaxlib==0.4.29; a marker that nobody understands", "ok", ""),
        ("nvidia-cudnn-cu12 ==9.1.0.70 ; platform_machine == \"x86_64\"", "fail", "not installed"),
        ("nvidia-cudnn-cu12 ==9.1.0.70 ; platform_machine == \"aarch64\"", "ok", ""),
        ("opt-einsum", "ok", ""),  # not among what concerns us
    ],
)
def test_packages_against_each_other_by_their_own_metadata(machine, line, verdict, words):
    machine.package("jax", "0.4.30", requires=["ml-dtypes>=0.2.0", line])
    machine.package("jaxlib", "0.4.30")
    machine.package("ml_dtypes", "0.4.0")
    found = machine.finding("requirements")
    assert found[0] == verdict and words in found[1]


@pytest.mark.parametrize(
    "cudnn, verdict",
    [("9.3.0.75", "ok"), ("9.5.1.17", "ok"), ("9.1.0.70", "fail"), ("8.9.7.29", "fail")],
)
def test_cudnn_has_the_same_major_and_no_lower_minor_version(machine, cudnn, verdict):
    machine.package("tensorflow", "2.18.0")
    machine.package("nvidia-cudnn-cu12", cudnn)
    found = machine.finding("requirements")
    assert found[0] == verdict and (verdict == "ok" or "cuDNN 9.3" in found[1])


@pytest.mark.parametrize("how", [{"tag": None}, {"installer": "conda\n"}])
def test_what_is_known_of_wheels_is_not_said_of_other_builds(machine, how):
    machine.package("torch", "2.2.0", **how)
    machine.package("numpy", "2.0.1")
    assert machine.finding("requirements")[0] == "ok"


def test_a_tensorflow_without_a_gpu_part_needs_no_cudnn(machine):
    machine.package("tensorflow-cpu", "2.18.0")
    machine.package("nvidia-cudnn-cu12", "8.9.7.29")
    assert machine.finding("requirements")[0] == "ok"


# Native code


@pytest.mark.parametrize(
    "flags, name, version, verdict",
    [
        (LEVEL_3, "tensorflow", "2.16.1", "ok"),
        (LEVEL_2, "tensorflow", "2.16.1", "fail"),
        (LEVEL_2, "tensorflow", "1.5.0", "ok"),
        (LEVEL_2 + " avx", "tensorflow", "2.4.0", "fail"),
        (LEVEL_2 + " avx", "tensorflow", "2.4.1", "ok"),
        ("pni ssse3", "torch", "2.1.2", "fail"),
        (LEVEL_2, "torch", "2.1.2", "ok"),
        ("pni ssse3 cx16 sse4_1 popcnt lahf_lm", "numpy", "2.4.0", "fail"),
        (LEVEL_2, "numpy", "2.4.0", "ok"),
        ("pni", "numpy", "2.3.0", "ok"),
        # A flag inside of another is not that flag.
        ("avx512f xavx avxx", "tensorflow", "2.16.1", "fail"),
    ],
)
def test_instructions_that_wheels_need(machine, flags, name, version, verdict):
    machine.cpu(flags)
    machine.package(name, version)
    found = machine.finding("processor")
    assert found[0] == verdict
    if (name, version, verdict) == ("numpy", "2.4.0", "fail"):
        assert "lacks sse4.2: the import raises RuntimeError" in found[1]


@pytest.mark.parametrize("flags, verdict", [("fp asimd", "fail"), ("fp asimd atomics", "ok")])
def test_arm_atomics_that_one_torch_needs(machine, flags, verdict):
    machine.cpu(flags, key="Features\t")
    machine.package("torch", "2.10.0", tag="cp311-cp311-manylinux_2_28_aarch64")
    assert machine.finding("processor")[0] == verdict


def test_rules_on_wheels_are_not_of_other_builds(machine):
    machine.cpu("pni")
    machine.package("tensorflow", "2.16.1", installer="conda\n")
    assert machine.finding("processor")[0] == "ok"


NOTE = """
__asm__(".section .note.gnu.property,\\"a\\"\\n.balign 8\\n.long 4, 16, 5\\n.asciz \\"GNU\\"\\n"
        ".long 0xc0008002, 4, %d, 0\\n");
"""


@pytest.mark.parametrize("flags, verdict", [(LEVEL_2, "fail"), (LEVEL_3, "ok")])
def test_instructions_that_a_library_says_it_needs(machine, flags, verdict):
    machine.cpu(flags)
    machine.package("numpy", "1.26.4", tag=None)
    build_library(machine.root / f"{SITE[1:]}/numpy/core/a.so", NOTE % 0b0101)
    found = machine.finding("processor")
    assert found[0] == verdict and (verdict == "ok" or "x86-64-v3" in found[1])


def test_this_system_s_glibc_is_what_it_says_itself(meson_build):
    says = subprocess.run(["getconf", "GNU_LIBC_VERSION"], stdout=subprocess.PIPE, text=True, check=True).stdout
    report = subprocess.run([meson_build / "src/cli/plimsoll", "doctor", "--json"], stdout=subprocess.PIPE,
                            text=True, check=False).stdout
    libc = next(check for check in json.loads(report)["findings"] if check["check"] == "libc")
    assert says.strip() in libc["says"]


def test_a_glibc_that_is_too_old_for_a_library(machine, tmp_path):
    new = build_libc(tmp_path / "new", "2.17", "2.31", "2.99")
    build_libc(machine.root / "lib/x86_64-linux-gnu", "2.17", "2.31")
    machine.package("torch", "2.7.0")
    build_user_of(new, machine.root / f"{SITE[1:]}/torch/lib/libold.so", 2)
    verdict, says, _ = machine.finding("libc")
    assert verdict == "ok" and "glibc 2.31" in says and "1 native libraries" in says
    build_user_of(new, machine.root / f"{SITE[1:]}/torch/lib/libnew.so", 3)
    verdict, says, _ = machine.finding("libc")
    assert verdict == "fail" and "needs glibc 2.99 (libnew.so)" in says and "has 2.31" in says


@pytest.mark.parametrize(
    "tag, verdict",
    [("manylinux_2_28_x86_64", "ok"), ("manylinux_2_40_x86_64", "fail"),
     ("manylinux2014_x86_64", "ok"), ("linux_x86_64", "ok")],
)
def test_a_glibc_against_the_wheel_s_tag_where_nothing_else_tells(machine, tag, verdict):
    build_libc(machine.root / "lib64", "2.17", "2.31")
    machine.package("jaxlib", "0.4.30", tag=f"cp311-cp311-{tag}")
    assert machine.finding("libc")[0] == verdict


def test_musl_loads_no_manylinux_wheel(machine):
    machine.put("/lib/ld-musl-x86_64.so.1", "")
    machine.package("numpy", "1.26.4")
    verdict, says, _ = machine.finding("libc")
    assert verdict == "fail" and "musl" in says


def test_a_library_for_another_machine(machine):
    machine.cpu("fp asimd atomics", key="Features\t")
    machine.package("numpy", "1.26.4", tag=None)
    build_library(machine.root / f"{SITE[1:]}/numpy/a.so")
    verdict, says, _ = machine.finding("libc")
    assert verdict == "fail" and "libraries for x86_64 but this machine is aarch64" in says


def put_openmp(machine, package, name, folder=None):
    machine.package(package, "1.0")
    place = folder or f"{package.replace('-', '_')}.libs"
    return build_library(machine.root / f"{SITE[1:]}/{place}/{name}")


def test_one_openmp_runtime_is_fine(machine):
    put_openmp(machine, "torch", "libgomp-a34b3233.so.1", "torch/lib")
    verdict, says, _ = machine.finding("openmp")
    assert verdict == "ok" and "libgomp (bundled with torch)" in says


def test_two_copies_of_libgomp_are_a_warning(machine):
    put_openmp(machine, "torch", "libgomp-a34b3233.so.1", "torch/lib")
    put_openmp(machine, "scikit-learn", "libgomp-f7e03b3e.so.1.0.0")
    verdict, says, fix = machine.finding("openmp")
    assert verdict == "warn" and "torch" in says and "scikit-learn" in says
    assert "OMP_NUM_THREADS" in fix


def test_gcc_s_and_llvm_s_openmp_together_are_a_warning(machine):
    put_openmp(machine, "torch", "libgomp-a34b3233.so.1", "torch/lib")
    build_library(machine.root / "home/user/venv/lib/libiomp5.so")
    site = put_virtualenv(machine, "true")
    verdict, says, _ = machine.finding("openmp", "--python", "/home/user/venv")
    assert site and verdict == "warn" and "libiomp5" in says and "hang" in says


def test_two_of_llvm_s_openmp_are_a_failure(machine):
    put_openmp(machine, "torch", "libiomp5.so", "torch/lib")
    put_openmp(machine, "xgboost", "libomp-12345.so")
    verdict, says, _ = machine.finding("openmp")
    assert verdict == "fail" and "OMP: Error #15" in says


def test_links_to_one_openmp_runtime_are_one(machine):
    runtime = put_openmp(machine, "torch", "libomp.so", "torch/lib")
    (runtime.parent / "libiomp5.so").symlink_to("libomp.so")
    (runtime.parent / "libgomp.so.1").symlink_to("libomp.so")
    verdict, says, _ = machine.finding("openmp")
    assert verdict == "ok" and "one OpenMP runtime: libomp" in says


def test_an_openmp_that_a_library_loads_from_the_system_counts(machine, tmp_path):
    gomp = build_library(tmp_path / "libgomp.so.1", "int omp(void) { return 0; }\n",
                         "-Wl,-soname,libgomp.so.1")
    machine.package("torch", "1.0")
    build_library(machine.root / f"{SITE[1:]}/torch/lib/libtorch.so",
                  "int omp(void); int f(void) { return omp(); }\n", str(gomp))
    verdict, says, _ = machine.finding("openmp")
    assert verdict == "ok" and "libgomp (the system's, used by torch)" in says
    put_openmp(machine, "scikit-learn", "libgomp-f7e03b3e.so.1.0.0")
    assert machine.finding("openmp")[0] == "warn"


def put_openblas(machine, body, question="openblas_get_corename64_"):
    """A virtualenv of this machine's Python whose NumPy brings a library that answers so."""
    site = f"venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    machine.put("/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    machine.link("/venv/bin/python3", os.path.realpath(DEBIAN))
    machine.package("numpy", "1.24.0", site=site)
    build_library(machine.root / f"{site}/numpy.libs/libopenblas64_p-r0-742d56dc.3.20.so",
                  f"extern int pause(void); extern void abort(void);\n"
                  f"const char *{question}(void) {body}\n")
    return machine.root / "venv"


@pytest.mark.parametrize("question", ["openblas_get_corename", "openblas_get_corename64_",
                                      "scipy_openblas_get_corename64_"])
def test_openblas_is_asked_for_its_kernels(machine, question):
    venv = put_openblas(machine, '{ return "Zen"; }', question)
    said = machine.finding("blas", "--python", venv, root=False)
    assert said[:2] == ("ok", "OpenBLAS uses kernels for Zen")


@pytest.mark.parametrize("body", ["{ abort(); }", "{ return 0; }", "{ return \"\"; }"])
def test_an_openblas_that_does_not_answer_is_passed_over(machine, body):
    venv = put_openblas(machine, body)
    verdict, says, _ = machine.finding("blas", "--python", venv, root=False)
    assert verdict == "ok" and "a BLAS other than OpenBLAS" in says


def put_marking_openblas(machine, prefix, version, mark):
    """One that leaves a mark when it is loaded."""
    folder = machine.root / f"{prefix}/lib/python{version}/site-packages/numpy.libs".lstrip("/")
    machine.package("numpy", "1.24.0", site=f"{prefix}/lib/python{version}/site-packages")
    build_library(folder / "libopenblas.so",
                  "extern int creat(const char *, int);\n"
                  "__attribute__((constructor)) static void loaded(void)\n"
                  f'{{ creat("{mark}", 0600); }}\n')


def test_no_library_below_a_root_is_loaded(machine, tmp_path):
    put_marking_openblas(machine, "/opt/env", "3.11", tmp_path / "mark")
    verdict, says, _ = machine.finding("blas")
    assert verdict == "ok" and "nothing below --root" in says
    assert not (tmp_path / "mark").exists()


def test_a_numpy_without_openblas_is_fine(machine):
    assert machine.finding("blas")[0] == "ok"
    machine.package("numpy", "1.24.0")
    assert machine.finding("blas")[0] == "ok"
    venv = put_openblas(machine, "{ return 0; }")
    next(venv.rglob("libopenblas*")).write_bytes(b"no library")
    assert machine.finding("blas", "--python", venv, root=False)[0] == "ok"


def test_the_kernels_of_this_machine_are_what_numpy_uses(meson_build):
    asked = """
import numpy, ctypes
name = ctypes.CDLL("libblas.so.3").openblas_get_corename
name.restype = ctypes.c_char_p
print(name().decode())"""
    done = subprocess.run([DEBIAN, "-c", asked], text=True, capture_output=True)
    if done.returncode != 0:
        pytest.skip("no NumPy with OpenBLAS here")
    command = [program(meson_build), "doctor", "--json", "--python", DEBIAN]
    answer = json.loads(subprocess.run(command, text=True, capture_output=True).stdout)
    said = next(one["says"] for one in answer["findings"] if one["check"] == "blas")
    assert f"kernels for {done.stdout.strip()}" in said


def test_files_that_are_no_libraries_are_passed_over(machine):
    machine.package("torch", "2.7.0")
    for name, content in [("a.so", b""), ("b.so", b"\x7fELF"), ("c.so", os.urandom(4096)),
                          ("d.so", b"\x7fELF\x02\x01\x01" + b"\xff" * 500)]:
        machine.put(f"{SITE}/torch/lib/{name}", content)
    os.mkfifo(machine.root / f"{SITE[1:]}/torch/lib/e.so")
    machine.link(f"{SITE}/torch/lib/f.so", "f.so")
    assert machine.finding("libc")[0] == "ok"


def test_hostile_metadata_harms_nobody(machine):
    machine.package("torch", "2.7.0", requires=["x" * 5000, "a" * 700 + "; (" + "(" * 200, "\x1b[2J"])
    machine.package("numpy", "not-a-version")
    machine.package("keras", "1" * 30)
    machine.put(f"{SITE}/jax-\x1b[31m1.0.dist-info/METADATA", "\0\0\0")
    machine.put(f"{SITE}/-1.0.dist-info/METADATA", "")
    machine.put(f"{SITE}/torch/version.py", "cuda = '" + "9" * 300)
    machine.look()
    assert "\x1b" not in machine.run().stdout


def test_this_machine_is_looked_at_whole(machine):
    env = {"PATH": os.environ["PATH"], "HOME": str(pathlib.Path.home())}
    answer = machine.look("--python", DEBIAN, root=False, **env)
    checks = list(dict.fromkeys(one["check"] for one in answer["findings"]))
    assert len(checks) == 21 and checks[0] == "plimsoll" and checks[-1] == "preload"
    by_check = {one["check"]: one for one in answer["findings"]}
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert f"glibc {libc}" in by_check["libc"]["says"]
    assert "libgomp (the system's, used by torch)" in by_check["openmp"]["says"]
