# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel for pip: what Meson installs, put where pip wants it (PEP 517 and 660).

    plimsoll/                     the package, its extension and libplimsoll.so.0 beside it
    *.data/scripts/plimsoll       the command
    *.data/data/lib, share        the guard, data files, manual pages

Nothing but the standard library is needed, so there is nothing to download; the compiler, Meson and
the libraries are the system's. `--config-settings=builddir=PATH` names the folder to build in,
otherwise build/wheel.
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

ROOT = pathlib.Path(__file__).resolve().parents[1]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    builddir = pathlib.Path((config_settings or {}).get("builddir", ROOT / "build/wheel"))
    with tempfile.TemporaryDirectory(prefix="plimsoll-wheel-") as work:
        prefix = _installed(builddir, work)
        return _write(wheel_directory, _placed(prefix))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package where `make build` puts it: what changes in the sources is seen at once."""
    _run("make", "build", cwd=ROOT)
    return _write(wheel_directory, {"plimsoll.pth": f"{ROOT / 'build/python'}\n".encode()})


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
    folder.mkdir(parents=True)
    for name, text in _about().items():
        (folder / name).write_text(text)
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
    """Builds and installs below `work`; returns what is the prefix there."""
    meson = os.environ.get("MESON", "meson")
    options = ("--libdir=lib", "-Dbuildtype=release", f"-Dpython={_interpreter()}")
    if not (builddir / "build.ninja").exists():
        _run(meson, "setup", *options, builddir, ROOT)
    _run(meson, "install", "--quiet", "-C", builddir, "--destdir", work)
    said = subprocess.run(
        (meson, "introspect", "--buildoptions", str(builddir)),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": ""},
    ).stdout
    prefix = next(one["value"] for one in json.loads(said) if one["name"] == "prefix")
    return pathlib.Path(f"{work}{prefix}")


def _interpreter():
    """The Python that the wheel is for; pip may run in an environment that is gone afterwards."""
    return os.path.realpath(sys.executable)


def _placed(prefix):
    """The wheel's files by their names in it."""
    data = f"plimsoll-{_version()}.data"
    package = prefix / "lib/plimsoll/python"
    files = {
        str(path.relative_to(package)): path
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }
    files["plimsoll/libplimsoll.so.0"] = (prefix / "lib/libplimsoll.so.0").resolve()
    files[f"{data}/scripts/plimsoll"] = prefix / "bin/plimsoll"
    guard = "lib/plimsoll/libplimsoll-guard.so"
    files[f"{data}/data/{guard}"] = prefix / guard
    for path in sorted((prefix / "share").rglob("*")):
        if path.is_file():
            files[f"{data}/data/{path.relative_to(prefix)}"] = path
    return {name: path.read_bytes() for name, path in files.items()}


# The wheel


def _version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]


def _metadata():
    return (ROOT / "python/dist-info/METADATA").read_text().replace("@version@", _version())


def _tag():
    version = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return f"{version}-{version}-{re.sub('[-.]', '_', sysconfig.get_platform())}"


def _about():
    entry_points = (ROOT / "python/dist-info/entry_points.txt").read_text()
    wheel = f"Wheel-Version: 1.0\nGenerator: plimsoll\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    return {"METADATA": _metadata(), "WHEEL": wheel, "entry_points.txt": entry_points}


def _write(folder, files):
    name = f"plimsoll-{_version()}-{_tag()}.whl"
    about = f"plimsoll-{_version()}.dist-info"
    files = {**files, **{f"{about}/{key}": text.encode() for key, text in _about().items()}}
    record = []
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append(f"{path},sha256={digest.decode()},{len(content)}\n")
            _add(wheel, path, content)
        record.append(f"{about}/RECORD,,\n")
        _add(wheel, f"{about}/RECORD", "".join(record).encode())
    return name


def _add(wheel, path, content):
    """With the date that a zip begins at, so that the same sources make the same wheel."""
    entry = zipfile.ZipInfo(path)
    executable = "/scripts/" in path or ".so" in path
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, content)
