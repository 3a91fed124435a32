# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel for pip: what Meson installs, put where pip wants it (PEP 517 and 660).

    plimsoll/               the package, its extension and libplimsoll.so.0 beside it
    plimsoll/command/       the program, the guard and what it reads; python/: see wheel_stub.py
    plimsoll.libs/          the libraries that these need and a system may not have
    *.data/scripts/plimsoll the command, which leads to the program: src/cli/launcher.c
    *.data/data/share       manual pages, completion
    *.dist-info/licenses    our licence, and those of the libraries

The wheel is for the CPython that runs this, on any Linux with a glibc as new as its tag says. Nothing
but the standard library is needed, so there is nothing to download; the compiler, Meson, patchelf and
the libraries are the system's. `--config-settings=builddir=PATH` names the folder to build in,
otherwise build/wheel: wheels for other Pythons may have been made there before.
"""
import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

import wheel_libraries

ROOT = pathlib.Path(__file__).resolve().parents[1]
MESON = os.environ.get("MESON", "meson")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    builddir = pathlib.Path((config_settings or {}).get("builddir", ROOT / "build/wheel"))
    with tempfile.TemporaryDirectory(prefix="plimsoll-wheel-") as work:
        files = _placed(builddir, *_installed(builddir, work))
        try:
            changed, bundled = wheel_libraries.bundle(files, _loaded_by_name(files), work)
            files.update(changed)
            about = _about(_platform(files.values()))
            about.update(_licences(bundled))
        except wheel_libraries.Missing as missing:
            sys.exit(f"plimsoll: {missing}")
        return _write(wheel_directory, files, about)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package where `make build` puts it: what changes in the sources is seen at once."""
    _run("make", "build", cwd=ROOT)
    with tempfile.TemporaryDirectory(prefix="plimsoll-wheel-") as work:
        path = pathlib.Path(work) / "plimsoll.pth"
        path.write_text(f"{ROOT / 'build/python'}\n")
        return _write(wheel_directory, {path.name: path}, _about(_linux()))


def build_sdist(sdist_directory, config_settings=None):
    name = f"plimsoll-{_version()}"
    listed = subprocess.run(
        ("git", "ls-files", "-z"), cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    with tarfile.open(pathlib.Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        for path in filter(None, listed.split("\0")):
            archive.add(ROOT / path, f"{name}/{path}", recursive=False)
        about = tempfile.NamedTemporaryFile("w", suffix="PKG-INFO")
        with about:
            about.write(_metadata())
            about.flush()
            archive.add(about.name, f"{name}/PKG-INFO")
    return f"{name}.tar.gz"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = pathlib.Path(metadata_directory) / f"plimsoll-{_version()}.dist-info"
    for name, content in _about(_linux()).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel


# What Meson builds


def _run(*command, cwd=None):
    """As from a shell: pip hides the system's packages from what it starts, Meson among them."""
    hidden = ("PYTHONPATH", "PYTHONNOUSERSITE", "PIP_BUILD_TRACKER", "DESTDIR")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    subprocess.run([str(word) for word in command], check=True, env=environment, cwd=cwd)


def _installed(builddir, work):
    """Builds and installs below `work`; returns the prefix there, and the folder of libraries."""
    if not (builddir / "build.ninja").exists():
        _run(MESON, "setup", "--libdir=lib", "-Dbuildtype=release", builddir, ROOT)
    if os.path.realpath(_options(builddir)["python"]) != _interpreter():
        _run(MESON, "configure", builddir, f"-Dpython={_interpreter()}")
    _run(MESON, "install", "--quiet", "-C", builddir, "--destdir", work)
    options = _options(builddir)
    prefix = pathlib.Path(f"{work}{options['prefix']}")
    return prefix, prefix / options["libdir"]


def _options(builddir):
    said = subprocess.run(
        (MESON, "introspect", "--buildoptions", str(builddir)),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    ).stdout
    return {one["name"]: one["value"] for one in json.loads(said)}


def _interpreter():
    """The Python that the wheel is for; pip may run in an environment that is gone afterwards."""
    return os.path.realpath(sys.executable)


def _placed(builddir, prefix, libraries):
    """The wheel's files: paths, by their names in it."""
    data = f"plimsoll-{_version()}.data"
    package = prefix / "lib/plimsoll/python"
    files = {
        str(path.relative_to(package)): path
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    extension = "plimsoll/_core" + sysconfig.get_config_var("EXT_SUFFIX")
    if extension not in files:
        sys.exit(f"plimsoll: '{builddir}' has not made '{extension}': remove it, or name another")
    files["plimsoll/libplimsoll.so.0"] = (libraries / "libplimsoll.so.0").resolve()
    files["plimsoll/command/plimsoll"] = prefix / "bin/plimsoll"
    files["plimsoll/command/libplimsoll-guard.so"] = libraries / "plimsoll/libplimsoll-guard.so"
    files["plimsoll/command/doctor.csv"] = prefix / "share/plimsoll/doctor.csv"
    files["plimsoll/command/python/plimsoll/__init__.py"] = ROOT / "python/wheel_stub.py"
    files[f"{data}/scripts/plimsoll"] = builddir / "src/cli/plimsoll-launcher"
    for folder in ("man", "bash-completion"):
        for path in sorted((prefix / "share" / folder).rglob("*")):
            if path.is_file():
                files[f"{data}/data/{path.relative_to(prefix)}"] = path
    return files


def _loaded_by_name(files):
    """What the program loads when an instruction is to be named: inspect_instruction.c in
    src/supervise. The soname hangs on the version that it was built with."""
    program = files["plimsoll/command/plimsoll"].read_bytes()
    return [re.search(rb"libcapstone\.so\.\d+", program)[0].decode()]


# The wheel


def _version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]


def _metadata():
    return (ROOT / "python/dist-info/METADATA").read_text().replace("@version@", _version())


def _python_tag():
    """Of the Python and of its ABI: ("cp313", "cp313t")."""
    abi = sysconfig.get_config_var("SOABI").split("-")[1]
    return f"cp{sys.version_info[0]}{sys.version_info[1]}", f"cp{abi}"


def _linux():
    """The platform of what stays on this machine."""
    return re.sub("[-.]", "_", sysconfig.get_platform())


def _platform(paths):
    """By what the files ask of glibc: manylinux_2_36_x86_64 (PEP 600)."""
    version = wheel_libraries.glibc_version(filter(wheel_libraries.is_elf, paths))
    return _linux().replace("linux_", "manylinux_{}_{}_".format(*version), 1)


def _about(platform):
    """The files of the .dist-info folder, but for RECORD."""
    tag = "-".join((*_python_tag(), platform))
    wheel = f"Wheel-Version: 1.0\nGenerator: plimsoll\nRoot-Is-Purelib: false\nTag: {tag}\n"
    return {
        "METADATA": _metadata().encode(),
        "WHEEL": wheel.encode(),
        "entry_points.txt": (ROOT / "python/dist-info/entry_points.txt").read_bytes(),
        "licenses/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }


def _licences(bundled):
    found = wheel_libraries.licences(bundled)
    return {f"licenses/{name}": path.read_bytes() for name, path in found.items()}


def _write(folder, files, about):
    tag = re.search(rb"^Tag: (.+)$", about["WHEEL"], re.MULTILINE)[1].decode()
    name = f"plimsoll-{_version()}-{tag}.whl"
    info = f"plimsoll-{_version()}.dist-info"
    record = []
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, source in files.items():
            record.append(_add(wheel, path, source.read_bytes(), wheel_libraries.is_elf(source)))
        for path, content in about.items():
            record.append(_add(wheel, f"{info}/{path}", content))
        record.append(f"{info}/RECORD,,\n")
        _add(wheel, f"{info}/RECORD", "".join(record).encode())
    return name


def _add(wheel, path, content, executable=False):
    """Returns its line of RECORD. With the date that a zip begins at, so that the same sources make
    the same wheel."""
    entry = zipfile.ZipInfo(path)
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
    return f"{path},sha256={digest.decode()},{len(content)}\n"
