# SPDX-License-Identifier: Apache-2.0
"""The wheel: what is in it, that it needs nothing else, and that it works where pip has put it."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

import doctor_tree

PYTHON = "/usr/bin/python3"  # Debian's
SITE = "lib/python{}.{}/site-packages".format(*sys.version_info)
# What a system with glibc has of itself, and no wheel may bring; see PEP 513 and 600.
BASE = re.compile(r"(ld-linux.*|libc|libm|libmvec|libdl|libpthread|librt|libgcc_s)\.so\.\d+$")


@pytest.fixture(scope="module")
def wheel(root, meson_build, tmp_path_factory):
    """From the build that is there, so that nothing is compiled."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        (
            PYTHON, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation",
            f"--config-settings=builddir={meson_build}", "--wheel-dir", folder, root,
        ),
        check=True,
    )  # fmt: skip
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment with nothing in it but the wheel."""
    folder = tmp_path_factory.mktemp("pip") / "venv"
    subprocess.run((PYTHON, "-m", "venv", folder), check=True)
    subprocess.run((folder / "bin/pip", "install", "--quiet", "--no-index", wheel), check=True)
    return folder


@pytest.fixture
def clean(tmp_path):
    """Of the caller's environment, nothing."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PLIMSOLL_STATE": str(tmp_path / "s")}


def elf_files(folder):
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"
    ]


def dynamic(path, tag):
    said = subprocess.run(("readelf", "-dW", path), capture_output=True, text=True, check=True)
    return re.findall(rf"\({tag}\).*\[(.*)\]", said.stdout)


# What is in it


def test_each_library_that_is_needed_is_in_the_wheel_or_in_every_system(unpacked):
    files = elf_files(unpacked)
    assert len(files) > 10
    for path in files:
        rpath = ":".join(dynamic(path, "RPATH")).split(":")
        places = [pathlib.Path(place.replace("$ORIGIN", str(path.parent))) for place in rpath]
        assert dynamic(path, "RUNPATH") == [], path
        for name in dynamic(path, "NEEDED"):
            assert BASE.match(name) or any((place / name).is_file() for place in places), (path, name)


def test_the_files_look_for_libraries_inside_of_the_wheel_only(unpacked):
    for path in elf_files(unpacked):
        for place in filter(None, ":".join(dynamic(path, "RPATH")).split(":")):
            assert place.startswith("$ORIGIN"), (path, place)
            found = pathlib.Path(os.path.normpath(place.replace("$ORIGIN", str(path.parent))))
            assert found.is_relative_to(unpacked) and found.is_dir(), (path, place)


def test_bundled_libraries_have_names_that_no_other_package_has(unpacked):
    names = [path.name for path in (unpacked / "plimsoll.libs").iterdir()]
    assert any(name.startswith("libopenblas-") for name in names)
    for name in names:
        assert dynamic(unpacked / "plimsoll.libs" / name, "SONAME") == [name]
        # loaded by its name, by the program alone
        assert re.match(r"lib\w+-[0-9a-f]{8}\.so\.", name) or name.startswith("libcapstone.so.")


def test_the_guard_needs_glibc_only(unpacked):
    guard = unpacked / "plimsoll/command/libplimsoll-guard.so"
    assert dynamic(guard, "NEEDED") == ["libc.so.6"] and dynamic(guard, "RPATH") == []


def test_the_tag_is_the_glibc_that_the_files_ask_for(wheel, unpacked):
    """By the symbols' versions, where the backend goes by the list of versions."""
    highest = (0, 0)
    for path in elf_files(unpacked):
        said = subprocess.run(("objdump", "-T", path), capture_output=True, text=True, check=True)
        for found in re.findall(r"\*UND\*.*\(?\bGLIBC_(\d+)\.(\d+)\b", said.stdout):
            highest = max(highest, (int(found[0]), int(found[1])))
    assert highest >= (2, 34)
    assert f"-manylinux_{highest[0]}_{highest[1]}_" in wheel.name
    info = next(unpacked.glob("*.dist-info"))
    tag = wheel.name.removesuffix(".whl").split("-", 2)[2]
    assert f"Tag: {tag}\n" in (info / "WHEEL").read_text()


def test_auditwheel_agrees(wheel, call):
    if not shutil.which("auditwheel"):
        pytest.skip("no auditwheel: Debian has it (python3-auditwheel) after 13")
    platform = wheel.name.removesuffix(".whl").rsplit("-", 1)[1]
    policies = pathlib.Path(importlib.util.find_spec("auditwheel").origin).parent / "policy"
    if platform.partition(f"_{os.uname().machine}")[0] not in (policies / "manylinux-policy.json").read_text():
        pytest.skip(f"this auditwheel knows no policy for {platform}")
    done = call("auditwheel", "show", wheel)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert f'consistent with the following platform tag: "{platform}"' in said


def test_licences_of_what_is_bundled_are_there(unpacked):
    folder = next(unpacked.glob("*.dist-info")) / "licenses"
    assert "Apache License" in (folder / "LICENSE").read_text()
    packages = {path.name for path in folder.iterdir()}
    for library in ("libopenblas", "libdw", "libjansson", "libjpeg", "libspng", "libcapstone"):
        (package,) = (name for name in packages if name.startswith(library))
        assert (folder / package / "copyright").stat().st_size > 500
    assert (folder / "common-licenses/GPL-3").is_file()  # of libgfortran


# That it works from there

COMPUTES = """
def libraries():
    return {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
before = libraries()
import plimsoll.tf as tf
a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
print(tf.reduce_sum(tf.matmul(a, a)).__float__())
print(*sorted(libraries() - before), sep="\\n")
"""


def own_or_base(lines, environment):
    """Does each library lie in the environment, or is it of the system's base or of Python itself?"""
    assert lines
    strange = [
        line
        for line in lines
        if not line.startswith(f"{environment}/")
        and not BASE.match(pathlib.PurePath(line).name)
        and "/lib-dynload/" not in line
    ]
    return strange == [] or strange


def test_it_computes_with_no_library_of_the_system(environment, call, clean):
    done = call(environment / "bin/python", "-c", COMPUTES, env=clean, cwd="/")
    assert done.returncode == 0, done.stderr
    value, *lines = done.stdout.splitlines()
    assert value == "54.0"
    assert own_or_base(lines, environment) is True
    assert any("/plimsoll.libs/libopenblas-" in line for line in lines)


def test_the_command_uses_no_library_of_the_system(environment, call, clean):
    script = "grep -o '/.*[.]so.*' /proc/$PPID/maps | sort -u"
    done = call(environment / "bin/plimsoll", "run", "--", "sh", "-c", script, env=clean)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert own_or_base(lines, environment) is True
    assert any("/plimsoll.libs/libdw-" in line for line in lines)


ASKS_FOR_TOO_MUCH = """
try:
    bytearray(300 << 20)
except MemoryError:
    print("refused")
"""


def test_the_command_keeps_the_line(environment, call, clean):
    python = environment / "bin/python"
    done = call(
        environment / "bin/plimsoll", "run", "--budget", "200M", "--", python, "-c", ASKS_FOR_TOO_MUCH,
        env=clean,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "refused\n")
    assert "finished after 1 refusal" in done.stderr
    plain = call(python, "-c", ASKS_FOR_TOO_MUCH, env=clean)
    assert plain.stdout == ""


ILLEGAL = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write({!r})
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""
UNDEFINED = {"x86_64": b"\x0f\x0b", "aarch64": b"\0\0\0\0"}[os.uname().machine]


def test_what_is_loaded_by_its_name_is_the_wheels(environment, call, clean, tmp_path):
    """An illegal instruction is named by capstone. The loader tells what it loads."""
    done = call(
        environment / "bin/plimsoll", "run", "--", PYTHON, "-c", ILLEGAL.format(UNDEFINED),
        env={**clean, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "loader")},
    )  # fmt: skip
    assert done.returncode == 128 + 4 and "illegal instruction" in done.stderr, done.stderr
    told = "".join(path.read_text() for path in tmp_path.glob("loader.*"))
    (loaded,) = set(re.findall(r"calling init: (\S*/libcapstone\S*)", told))
    assert pathlib.Path(loaded).resolve().parent == environment / SITE / "plimsoll.libs"


def test_the_doctor_knows_where_it_is(environment, call, clean):
    done = call(environment / "bin/plimsoll", "doctor", "--python", environment, env=clean)
    found = re.findall(r"^(\w+) +plimsoll +(.*)$", done.stdout, re.MULTILINE)
    place = f"from a wheel in '{environment / SITE}'; this Python has the plimsoll package"
    assert len(found) == 1 and found[0][0] == "ok" and place in found[0][1], done.stdout


def test_the_module_runs_the_command_that_came_with_it(environment, call, clean):
    done = call(environment / "bin/python", "-m", "plimsoll", "--version", env=clean, cwd="/")
    assert done.returncode == 0 and done.stdout.startswith("plimsoll ")


def test_a_link_to_the_command_works(environment, call, clean, tmp_path):
    (tmp_path / "linked").symlink_to(environment / "bin/plimsoll")
    assert call(tmp_path / "linked", "budget", env=clean).returncode == 0


def test_it_works_in_a_folder_that_python_does_not_know(wheel, call, clean, tmp_path):
    target = tmp_path / "target"
    subprocess.run(
        (PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--target", target, wheel), check=True
    )
    done = call(target / "bin/plimsoll", "doctor", env=clean)
    assert done.returncode in (0, 2) and "ok    memory" in done.stdout, done.stderr
    done = call(PYTHON, "-c", "import plimsoll.tf", env={**clean, "PYTHONPATH": str(target)})
    assert done.returncode == 0, done.stderr


def test_the_command_without_its_package_says_so(environment, call, tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(environment / "bin/plimsoll", tmp_path / "bin")
    done = call(tmp_path / "bin/plimsoll", "budget")
    assert (done.returncode, done.stdout) == (125, "")
    assert f"beside '{tmp_path}/bin': install it again" in done.stderr


KERNEL_SAYS = """
import os, plimsoll, sys
print(plimsoll.__file__)
print("PYTHONPATH" in os.environ, any("plimsoll-guard" in line for line in open("/proc/self/maps")))
"""


def test_a_kernel_of_another_python_runs_under_the_line(environment, call, clean, tmp_path):
    """Debian's Jupyter and its kernel, guarded by the command of the environment."""
    done = call(
        environment / "bin/plimsoll", "jupyter", "install", "--kernel", "python3",
        "--prefix", tmp_path, env=clean,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = call(
        environment / "bin/plimsoll", "jupyter", "list",
        env={**clean, "JUPYTER_PATH": str(tmp_path / "share/jupyter")},
    )  # fmt: skip
    assert "plimsoll-python3" in listed.stdout
    specs = KernelSpecManager(kernel_dirs=[str(tmp_path / "share/jupyter/kernels")])
    manager = KernelManager(kernel_name="plimsoll-python3", kernel_spec_manager=specs)
    manager.start_kernel(env=clean)
    client = manager.blocking_client()
    said = []
    try:
        client.start_channels()
        client.wait_for_ready(timeout=180)
        client.execute_interactive(
            KERNEL_SAYS + "%plimsoll",
            timeout=180,
            output_hook=lambda message: said.append(message["content"]),
        )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    texts = "".join(part.get("text", "") for part in said)
    assert texts.splitlines()[:2] == [str(environment / SITE / "plimsoll/__init__.py"), "False True"]
    assert not any("ename" in part for part in said), said


def test_pip_takes_away_all_that_it_installed(environment, call):
    done = call(environment / "bin/pip", "uninstall", "--yes", "plimsoll")
    assert done.returncode == 0, done.stderr
    left = [path for path in environment.rglob("*plimsoll*") if path.is_file()]
    assert left == []


# How it is made


@pytest.fixture(scope="module")
def libraries(root):
    sys.path.insert(0, str(root / "python"))
    import wheel_libraries

    return wheel_libraries


def test_without_patchelf_it_says_what_to_install(libraries, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(libraries.Missing, match="tools/install-deps build wheel"):
        libraries.bundle({}, [], tmp_path)


def test_the_highest_version_counts(libraries, tmp_path):
    libc = doctor_tree.build_libc(tmp_path / "libc", "2.17", "2.9", "2.99.1")
    one = doctor_tree.build_user_of(libc, tmp_path / "one.so", 1)
    three = doctor_tree.build_user_of(libc, tmp_path / "three.so", 3)
    assert libraries.glibc_version([one]) == (2, 17)
    assert libraries.glibc_version([one, three]) == (2, 99)


def test_an_abi_that_is_not_known_makes_no_tag(libraries, tmp_path):
    libc = doctor_tree.build_libc(tmp_path / "libc", "ABI_TOMORROW")
    user = doctor_tree.build_user_of(libc, tmp_path / "user.so", 1)
    with pytest.raises(libraries.Missing, match="GLIBC_ABI_TOMORROW"):
        libraries.glibc_version([user])
