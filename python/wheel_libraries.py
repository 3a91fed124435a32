# SPDX-License-Identifier: Apache-2.0
"""Makes the ELF files of a wheel independent of the system's libraries, as auditwheel would.

    own       a file that Meson built
    system    a library of glibc, or libgcc_s: on every system that the wheel's tag admits, and not to be
              had twice in a process
    bundled   any other one that an own file needs, directly or through others: a copy in plimsoll.libs/,
              by a name with a hash of its content in it, so that it is never taken for another package's
              library of the same name, nor another one for it
    by name   one that is loaded when it is first needed: bundled under the name that is asked for

Files find each other from where they are themselves ($ORIGIN). Needed: ldd of the system, readelf and
patchelf. Nothing here knows what Plimsoll is.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

FOLDER = "plimsoll.libs"
SYSTEM = re.compile(
    r"(ld-linux.*|libc|libm|libmvec|libdl|libpthread|librt|libanl|libutil|libresolv|libgcc_s"
    r"|linux-vdso)\.so\.\d+$"
)
# Versions of glibc that the names of its ABI stand for: https://sourceware.org/glibc/wiki/ABIList
ABI_VERSIONS = {"GLIBC_ABI_DT_RELR": (2, 36), "GLIBC_ABI_GNU2_TLS": (2, 42)}


class Missing(Exception):
    """What is missing to make the wheel, and what to do."""


def bundle(files, by_name, work):
    """`files` are a wheel's, by their names in it; returns those that are added or take their place.
    `by_name` are sonames, loaded when they are needed; `work` is a folder for the copies."""
    if not shutil.which("patchelf"):
        raise Missing("a wheel is made with patchelf: tools/install-deps build wheel installs it")
    owns = {name: path for name, path in files.items() if is_elf(path)}
    sonames = {pathlib.PurePath(name).name for name in owns}
    found = {}
    for path in owns.values():
        found.update(_closure(path))
    for soname in by_name:
        found[soname] = _by_name(soname)
        found.update(_closure(found[soname]))
    bundled = {
        soname: path
        for soname, path in found.items()
        if soname not in sonames and not SYSTEM.match(soname)
    }
    renamed = {
        soname: soname if soname in by_name else _own_name(soname, path)
        for soname, path in bundled.items()
    }
    changed = {}
    for soname, path in bundled.items():
        name = f"{FOLDER}/{renamed[soname]}"
        changed[name] = _copy(path, pathlib.Path(work) / name)
        _patch(changed[name], renamed, ["$ORIGIN"], soname=renamed[soname])
    for name, path in owns.items():
        here = _rpath(name, path, sonames, renamed)
        if here:
            changed[name] = _copy(path, pathlib.Path(work) / "own" / name)
            _patch(changed[name], renamed, here)
    return changed, sorted(set(map(os.path.realpath, bundled.values())))


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def glibc_version(paths):
    """The lowest version of glibc that has all that these files ask for: (2, 36)."""
    highest = (2, 5)  # manylinux1: no tag is older
    for path in paths:
        for name in re.findall(r"Name: (GLIBC_\S+)", _said("readelf", "-VW", path)):
            number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", name)
            version = (int(number[1]), int(number[2])) if number else ABI_VERSIONS.get(name)
            if version is None:
                raise Missing(f"'{path}' asks for {name}: ABI_VERSIONS in {__file__} has no such name")
            highest = max(highest, version)
    return highest


def licences(paths):
    """The licences of bundled files, as Debian keeps them: {"libjansson4/copyright": path}. Those that
    only name a licence that every Debian has come with its text."""
    found = {}
    for path in paths:
        copyright = pathlib.Path("/usr/share/doc", _package(path), "copyright")
        if not copyright.is_file():
            raise Missing(f"'{copyright}' is not there, and '{path}' cannot be given away without it")
        found[f"{copyright.parent.name}/copyright"] = copyright
        text = copyright.read_text(errors="replace")
        for name in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", text):
            common = pathlib.Path("/usr/share/common-licenses", name)
            if common.is_file():
                found[f"common-licenses/{name}"] = common
    return found


def _said(*command):
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    return done.stdout.decode(errors="replace")


def _needed(path):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", _said("readelf", "-dW", path))


def _closure(path):
    """All that the loader would load for a file: {soname: path}."""
    found = {}
    for line in _said("ldd", path).splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and place.startswith("not found"):
            raise Missing(f"'{path}' needs '{name}', which is not to be found here")
        if arrow:
            found[name] = place.split(" (0x")[0]
    return found


def _by_name(soname):
    """Where the loader finds a library that nothing here is linked with."""
    for line in _said("/sbin/ldconfig", "-p").splitlines():
        name, _, place = line.strip().partition(" => ")
        if name.split(" ")[0] == soname:
            return place
    raise Missing(f"'{soname}' is to be in the wheel, and is not installed")


def _own_name(soname, path):
    """libopenblas.so.0 becomes libopenblas-0a1b2c3d.so.0."""
    stem, dot, rest = soname.partition(".")
    return f"{stem}-{hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:8]}{dot}{rest}"


def _copy(path, place):
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
    place.chmod(0o755)
    return place


def _rpath(name, path, sonames, renamed):
    """Where an own file is to look; nothing, for one that needs the system only: it stays as it is."""
    needed = _needed(path)
    folder = pathlib.PurePath(name).parent
    to_bundled = f"$ORIGIN/{os.path.relpath(FOLDER, folder)}"
    beside = ["$ORIGIN"] if any(one in sonames for one in needed) else []
    return beside + [to_bundled] if beside or any(one in renamed for one in needed) else []


def _patch(path, renamed, rpath, soname=None):
    """One change at a time: patchelf 0.14, asked for several at once, mixes up their texts."""
    changes = [["--set-soname", soname]] if soname else []
    for old in _needed(path):
        if renamed.get(old, old) != old:
            changes.append(["--replace-needed", old, renamed[old]])
    for change in (*changes, ["--force-rpath", "--set-rpath", ":".join(rpath)]):
        _said("patchelf", *change, path)


def _package(path):
    """The Debian package that a file came with. dpkg may know it by its name from before /lib became
    a link to /usr/lib."""
    for place in (path, path[len("/usr") :]):
        done = subprocess.run(("dpkg-query", "--search", place), stdout=subprocess.PIPE)
        if done.returncode == 0:
            return done.stdout.decode().split(":")[0]
    raise Missing(f"no Debian package has '{path}': its licence is unknown")
