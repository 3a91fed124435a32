# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts where, and that it works from there: program, library, headers, and the
Python package with its entry point."""

import importlib.util
import json
import marshal
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import numpy as np
from PIL import Image
import pytest

PROGRAM = """
#include <plimsoll/plimsoll.h>
#include <stdio.h>

int main(void)
{
    printf("%s %d.%d.%d\\n", pl_error_name(PL_EBUDGET), PLIMSOLL_VERSION_MAJOR,
           PLIMSOLL_VERSION_MINOR, PLIMSOLL_VERSION_PATCH);
    return PLIMSOLL_VERSION >= PLIMSOLL_VERSION_OF(0, 1, 0) ? 0 : 1;
}
"""
STRICT = ("-Wall", "-Wextra", "-Wundef", "-Wshadow", "-pedantic", "-Werror")


def meson(*words, destdir=None):
    environment = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
    if destdir:
        environment["DESTDIR"] = str(destdir)
    command = ["meson", *map(str, words)]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout


@pytest.fixture(scope="module")
def build_for(root, meson_build):
    """Makes a build with a prefix of its own from a copy of the one that is there. The copy is as far
    from the source as that one, so that commands are the same, and Ninja compiles only what the
    prefix changes."""
    said = json.loads(meson("introspect", "--buildoptions", meson_build))
    same = [f"-D{one['name']}={one['value']}" for one in said if one["name"] in ("optimization", "werror")]
    made = []

    def make(prefix):
        build = pathlib.Path(tempfile.mkdtemp(prefix="install-", dir=meson_build.parent))
        made.append(build)
        left_out = shutil.ignore_patterns("meson-info", "meson-logs", "meson-private", "tests")
        shutil.copytree(meson_build, build, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        meson("setup", f"--prefix={prefix}", "--libdir=lib", *same, build, root)
        return build

    yield make
    for build in made:
        shutil.rmtree(build)


@pytest.fixture(scope="module")
def prefix(build_for, tmp_path_factory):
    prefix = tmp_path_factory.mktemp("install") / "prefix"
    meson("install", "-C", build_for(prefix))
    return prefix


@pytest.fixture(scope="module")
def staged_build(build_for, tmp_path_factory):
    """A build, and its prefix, where nothing is."""
    prefix = tmp_path_factory.mktemp("staged") / "prefix"
    return build_for(prefix), prefix


@pytest.fixture(scope="module")
def staged(staged_build, tmp_path_factory):
    """Installed below a DESTDIR, as a package is built."""
    build, prefix = staged_build
    destdir = tmp_path_factory.mktemp("destdir")
    meson("install", "-C", build, destdir=destdir)
    return pathlib.Path(f"{destdir}{prefix}")


def relative_files(prefix):
    """Files and links; what a link to a folder leads to is not looked at."""
    return {
        str(path.relative_to(prefix))
        for path in prefix.rglob("*")
        if path.is_symlink() or not path.is_dir()
    }


PYTHON = "/usr/bin/python3"  # Debian's, as python/meson.build prefers it
PYTHON_FOLDER = "lib/plimsoll/python"
SITE_FOLDER = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def python_files(root, version):
    """The package, compiled too, and what makes the system's Python and Jupyter find it."""
    sources = [
        path.relative_to(root / "python")
        for path in (root / "python/plimsoll").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    files = {f"{PYTHON_FOLDER}/{path}" for path in sources}
    compiled = {importlib.util.cache_from_source(path) for path in files if path.endswith(".py")}
    about = {
        f"{SITE_FOLDER}/plimsoll-{version}.dist-info/{name}"
        for name in ("METADATA", "INSTALLER", "entry_points.txt")
    }
    extension = "_core" + sysconfig.get_config_var("EXT_SUFFIX")
    package = {f"{PYTHON_FOLDER}/plimsoll/{extension}", f"{SITE_FOLDER}/plimsoll"}
    return files | compiled | about | package


def test_everything_is_installed_and_nothing_else(root, staged, version):
    headers = {f"include/plimsoll/{path.name}" for path in (root / "include/plimsoll").glob("*.h")}
    pages = {f"share/man/man1/{path.name}" for path in (root / "man").glob("*.1")}
    for header in (root / "include/plimsoll").glob("*.h"):
        text = header.read_text()
        names = re.findall(r"^PL_API [^;{]*?\b(pl_\w+)\(", text, re.MULTILINE)
        page = "libplimsoll" if header.stem == "plimsoll" else f"plimsoll-{header.stem}"
        pages |= {f"share/man/man3/{name}.3" for name in (page, *names)}
    python = python_files(root, version)
    assert relative_files(staged) == headers | pages | python | {
        "bin/plimsoll",
        "lib/libplimsoll.so",
        "lib/libplimsoll.so.0",
        f"lib/libplimsoll.so.{version}",
        "lib/pkgconfig/plimsoll.pc",
        "lib/plimsoll/libplimsoll-guard.so",
        "share/bash-completion/completions/plimsoll",
        "share/plimsoll/doctor.csv",
    }


@pytest.fixture(scope="module")
def system(staged, staged_build, tmp_path_factory):
    """The same build as a part of the system, as debian/rules asks for it."""
    build, destdir = staged_build[0], tmp_path_factory.mktemp("system")
    meson("configure", "-Dsystem=true", "-Dprefix=/usr", "-Dlibdir=lib/somewhere-linux-gnu", build)
    meson("install", "-C", build, destdir=destdir)
    return destdir / "usr"


def test_a_part_of_the_system_has_its_package_where_the_system_looks_after_it(system, version):
    dist, own = system / "lib/python3/dist-packages", system / "lib/plimsoll/python"
    assert not (dist / "plimsoll").is_symlink() and (dist / "plimsoll/tf/__init__.py").is_file()
    assert os.readlink(own / "plimsoll") == "../../python3/dist-packages/plimsoll"
    about = os.listdir(dist / f"plimsoll-{version}.dist-info")
    assert sorted(about) == ["METADATA", "entry_points.txt"]
    assert [*dist.glob("plimsoll/_core.*.so")] and not [*system.rglob("*.pyc")]


def test_a_part_of_the_system_has_no_run_paths(system, call):
    objects = [system / "bin/plimsoll", *system.rglob("*.so")]
    assert len(objects) == 4  # with the library's link, the guard and the extension
    for path in objects:
        said = call("readelf", "-d", path)
        assert said.returncode == 0 and "NEEDED" in said.stdout
        assert "RUNPATH" not in said.stdout and "RPATH" not in said.stdout, path


def test_a_part_of_the_system_finds_its_guard_and_its_package(system, call, tmp_path):
    guard = guard_of(system / "bin/plimsoll", call, tmp_path / "state")
    assert guard == str(system / "lib/somewhere-linux-gnu/plimsoll/libplimsoll-guard.so")
    done = call(
        system / "bin/plimsoll", "run", "--kernel", tmp_path / "kernel.json", "--",
        "sh", "-c", 'echo "$PYTHONPATH"', "-m", "ipykernel_launcher",
        env={"PATH": "/usr/bin:/bin", "PLIMSOLL_STATE": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.strip() == str(system / "lib/plimsoll/python"), done.stderr


def guard_of(program, call, state):
    """The guard that a run under `program` has mapped."""
    done = call(
        program, "run", "--budget", "64M", "--", "cat", "/proc/self/maps",
        env={"PATH": "/usr/bin:/bin", "PLIMSOLL_STATE": str(state)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    guards = set(re.findall(r"/\S*libplimsoll-guard\.so", done.stdout))
    assert len(guards) == 1
    return guards.pop()


def test_program_finds_the_guard_at_the_prefix(prefix, call, tmp_path):
    guard = guard_of(prefix / "bin/plimsoll", call, tmp_path)
    assert guard == str(prefix / "lib/plimsoll/libplimsoll-guard.so")


def test_program_finds_the_guard_through_a_link(prefix, call, tmp_path):
    (tmp_path / "linked").symlink_to(prefix / "bin/plimsoll")
    guard = guard_of(tmp_path / "linked", call, tmp_path / "state")
    assert guard == str(prefix / "lib/plimsoll/libplimsoll-guard.so")


def test_program_in_the_build_tree_finds_the_guard_there(meson_build, call, tmp_path):
    guard = guard_of(meson_build.parent / "plimsoll", call, tmp_path)
    assert pathlib.Path(guard).resolve().is_relative_to(meson_build.resolve())


def test_program_without_a_guard_says_so(prefix, call, tmp_path):
    """A program that cannot guard must not run the command as if it did."""
    hidden = prefix / "lib/plimsoll/libplimsoll-guard.so"
    aside = hidden.with_suffix(".aside")
    hidden.rename(aside)
    try:
        done = call(
            prefix / "bin/plimsoll", "run", "--", "echo", "ran",
            env={"PATH": "/usr/bin:/bin", "PLIMSOLL_STATE": str(tmp_path)},
        )  # fmt: skip
    finally:
        aside.rename(hidden)
    assert (done.returncode, done.stdout) == (125, "")
    assert "libplimsoll-guard.so" in done.stderr and len(done.stderr.splitlines()) == 1


def test_pkg_config_builds_a_program(prefix, call, tmp_path):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = call("pkg-config", "--cflags", "--libs", "plimsoll", env=environment)
    assert flags.returncode == 0
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    built = call("gcc", "-std=c17", *STRICT, source, "-o", program, *flags.stdout.split())
    assert built.returncode == 0, built.stderr
    done = call(program, env={"LD_LIBRARY_PATH": str(prefix / "lib")})
    version = call("pkg-config", "--modversion", "plimsoll", env=environment).stdout.strip()
    assert (done.returncode, done.stdout) == (0, f"PL_EBUDGET {version}\n")


@pytest.fixture
def example(root, prefix, call, tmp_path):
    """A program of examples/, compiled as the README says; one that leaks ends with 23."""
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = call("pkg-config", "--cflags", "--libs", "plimsoll", env=environment).stdout.split()

    def compiled(name):
        source, program = root / "examples" / f"{name}.c", tmp_path / name
        rpath = f"-Wl,-rpath,{prefix}/lib"
        strict = (*STRICT, "-fsanitize=leak")
        built = call("gcc", "-std=c17", *strict, source, "-o", program, *flags, rpath)
        assert built.returncode == 0, built.stderr
        return lambda *words: subprocess.run([str(program), *map(str, words)], cwd=tmp_path,
                                             capture_output=True, text=True)

    return compiled


def test_the_example_multiplies_files_in_a_budget_and_refuses_one_too_small(example, tmp_path):
    product = example("product")
    numbers = np.random.default_rng(7)
    a = numbers.standard_normal((1500, 2000), np.float32)
    b = numbers.standard_normal((2000, 1700), np.float32)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)

    done = product("a.npy", "b.npy", "c.npy", 12)
    assert done.returncode == 0, done.stderr
    assert "matmul" in done.stdout and "c.npy" not in done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a @ b, rtol=0, atol=2e-3)

    done = product("a.npy", "b.npy", "d.npy", 1)
    assert done.returncode == 1 and done.stderr.startswith("matmul 'c': ")
    assert "the budget is 1.0 MiB: give at least " in done.stderr
    assert not (tmp_path / "d.npy").exists()

    done = product("b.npy", "a.npy", "d.npy", 12)
    assert done.returncode == 1
    assert "matmul 'c': inner dimensions differ: [2000,1700] x [1500,2000]" in done.stderr


def test_the_example_makes_batches_of_pictures_and_names_the_bad_ones(example, tmp_path):
    pictures = example("pictures")
    for kind in ("cat", "dog"):
        (tmp_path / "folder" / kind).mkdir(parents=True)
        for i in range(20):
            noise = np.random.default_rng(i).integers(0, 256, (90, 120, 3), dtype="u1")
            Image.fromarray(noise).save(tmp_path / f"folder/{kind}/{i}.jpg")
    broken = tmp_path / "folder/cat/broken.jpg"
    broken.write_bytes((tmp_path / "folder/cat/0.jpg").read_bytes()[:2000])
    done = pictures("folder", 32)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("40 pictures, 1 bad; at most ")
    assert "'folder/cat/broken.jpg': decode_image 'pixels': the JPEG is corrupt at byte" in done.stdout
    assert "prefetch n=auto" in done.stdout

    done = pictures("folder", 12)
    assert done.returncode == 1
    assert "batch: one batch needs 18.4 MiB (32 x 588.0 KiB)" in done.stderr


def test_version_is_the_same_everywhere(prefix, call, version):
    done = call(prefix / "bin/plimsoll", "--version")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == f"plimsoll {version}"
    said = call_python(call, prefix, "import plimsoll; print(plimsoll.__version__)")
    assert said == version


def test_manual_is_found(prefix, call):
    done = call("man", "-M", prefix / "share/man", "-w", "plimsoll-run")
    assert done.stdout.strip() == str(prefix / "share/man/man1/plimsoll-run.1")
    done = call("man", "-M", prefix / "share/man", "pl_tensor_pin", env={"MANWIDTH": "100", "PATH": os.environ["PATH"]})
    assert "pl_tensor_pin(pl_tensor *tensor" in done.stdout


# The Python package


def call_python(call, prefix, code, **variables):
    """What Debian's Python prints, with the prefix's site folder among its own."""
    site = f"import site; site.addsitedir({str(prefix / SITE_FOLDER)!r})"
    done = call(PYTHON, "-c", f"{site}\n{code}", env={"PATH": "/usr/bin:/bin", **variables})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_installed_package_is_one_and_the_same_by_both_ways(prefix):
    link = prefix / SITE_FOLDER / "plimsoll"
    assert not os.readlink(link).startswith("/")  # a prefix may be moved, or be staged
    assert link.resolve() == (prefix / PYTHON_FOLDER / "plimsoll").resolve()
    assert os.listdir(prefix / PYTHON_FOLDER) == ["plimsoll"]


PROVISIONER = """
from jupyter_client.provisioning import KernelProvisionerFactory
factory = KernelProvisionerFactory.instance()
print(factory.default_provisioner_name)
print(factory.get_provisioner_entries()["plimsoll-provisioner"])
import plimsoll.provisioner
print(plimsoll.provisioner._find_program(""))
"""


def test_jupyter_finds_the_installed_provisioner_and_it_the_program(prefix, call):
    said = call_python(call, prefix, PROVISIONER, JUPYTER_DEFAULT_PROVISIONER_NAME="a-default")
    assert said.splitlines() == [
        "a-default",
        "plimsoll.provisioner:PlimsollProvisioner",
        str(prefix / "bin/plimsoll"),
    ]


def test_compiled_files_name_the_prefix_and_not_where_they_were_staged(staged):
    compiled = list((staged / PYTHON_FOLDER).rglob("*.pyc"))
    assert compiled
    for path in compiled:
        code = marshal.loads(path.read_bytes()[16:])
        assert code.co_filename.endswith(f"prefix/{PYTHON_FOLDER}/plimsoll/" + code_name(path))
        assert "destdir" not in code.co_filename


def code_name(path):
    """notebook/__pycache__/x.cpython-311.pyc is of notebook/x.py."""
    source = pathlib.Path(importlib.util.source_from_cache(str(path)))
    return str(source).split("/python/plimsoll/")[1]


@pytest.mark.parametrize("place", ["/usr", "/usr/local"])
def test_the_system_finds_what_is_installed_into_its_own_prefixes(root, call, place):
    folder = call(PYTHON, root / "python/site_folder.py", place).stdout.strip()
    searched = call(PYTHON, "-c", "import site; print(site.getsitepackages())").stdout
    assert folder.startswith(place + "/lib/") and repr(folder) in searched


def test_a_kernel_loads_the_installed_package(prefix, call, tmp_path):
    done = call(
        prefix / "bin/plimsoll", "run", "--kernel", tmp_path / "kernel.json", "--",
        "sh", "-c", 'echo "$PYTHONPATH"; echo "$@"', "-m", "ipykernel_launcher",
        env={"PATH": "/usr/bin:/bin", "PLIMSOLL_STATE": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder, arguments = done.stdout.splitlines()
    assert folder == str(prefix / PYTHON_FOLDER)
    assert arguments == "ipykernel_launcher --ext=plimsoll.notebook"


def test_a_kernelspec_made_by_the_installed_program_names_it(prefix, call, tmp_path):
    done = call(
        prefix / "bin/plimsoll", "jupyter", "install", "--kernel", "python3", "--prefix", tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    spec = tmp_path / "share/jupyter/kernels/plimsoll-python3/kernel.json"
    argv = json.loads(spec.read_text())["argv"]
    assert argv[:3] == [str(prefix / "bin/plimsoll"), "run", "--kernel"]
