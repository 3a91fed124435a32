# SPDX-License-Identifier: Apache-2.0
"""Made-up machines for `plimsoll doctor`: a folder that stands for /, healthy until a test spoils
it, and native libraries that say what a test wants them to say."""

import json
import os
import pathlib
import subprocess

LEVEL_2 = "pni ssse3 cx16 sse4_1 sse4_2 popcnt lahf_lm"
LEVEL_3 = f"{LEVEL_2} fma movbe avx f16c bmi1 avx2 bmi2 abm"
MEMINFO = """MemTotal:       16777216 kB
MemFree:         8388608 kB
MemAvailable:   12582912 kB
SwapTotal:             0 kB
SwapFree:              0 kB
CommitLimit:     8388608 kB
Committed_AS:    4194304 kB
HugePages_Total:       0
HugePages_Free:        0
Hugepagesize:       2048 kB
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max file size             unlimited            unlimited            bytes
Max open files            {soft:<20} {hard:<20} files
"""
MOUNTS = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
TAG = "cp311-cp311-manylinux_2_17_x86_64"
PYTHON = "/opt/env/bin/python3"
SITE = "/opt/env/lib/python3.11/site-packages"


class Machine:
    def __init__(self, program, folder):
        self.program, self.folder, self.root = program, folder, folder / "root"
        self.env = {"PATH": "/opt/env/bin", "HOME": "/home/user", "TMPDIR": "/var/tmp"}
        self.put("/proc/meminfo", MEMINFO)
        self.put("/proc/version", "Linux version 6.1.0 (gcc)\n")
        self.put("/proc/sys/vm/overcommit_memory", "0\n")
        self.put("/proc/self/mountinfo", MOUNTS)
        self.put("/proc/self/cgroup", "0::/a/b\n")
        self.put("/sys/fs/cgroup/a/b/memory.current", "0\n")
        self.put("/sys/fs/cgroup/a/b/memory.max", "max\n")
        self.put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
        self.put("/sys/kernel/mm/transparent_hugepage/defrag", "always [madvise] never\n")
        self.cpu(LEVEL_3)
        self.limits(65536, 65536)
        for name in ("dev/shm", "var/tmp", "usr/bin"):
            (self.root / name).mkdir(parents=True)
        self.interpreter()

    def put(self, path, content):
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            place.write_bytes(content)
        else:
            place.write_text(content)
        return place

    def link(self, path, target):
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)

    def cpu(self, flags, key="flags\t\t"):
        self.put("/proc/cpuinfo", f"processor\t: 0\n{key}: fpu {flags}\nbugs\t: none\n")

    def limits(self, soft, hard):
        self.put("/proc/self/limits", LIMITS.format(soft=soft, hard=hard))

    def meminfo(self, **values):
        text = MEMINFO
        for key, value in values.items():
            lines = [f"{key}: {value}" if line.startswith(key + ":") else line
                     for line in text.splitlines()]
            text = "\n".join(lines) + "\n"
        self.put("/proc/meminfo", text)

    def interpreter(self, prefix="/opt/env", version="3.11"):
        """A Python as `make install` leaves it; nothing in it can be run."""
        self.put(f"{prefix}/bin/python{version}", "\x7fELF, but not really").chmod(0o755)
        for name in ("python3", "python"):
            self.link(f"{prefix}/bin/{name}", f"python{version}")
        self.put(f"{prefix}/lib/python{version.rstrip('t')}/os.py", "")
        (self.root / f"{prefix}/lib/python{version}/site-packages".lstrip("/")).mkdir(
            parents=True, exist_ok=True)

    def package(self, name, version, site=SITE, tag=TAG, installer="pip\n", requires=(),
                python=None):
        """An installed distribution; without a tag, an egg-info as Debian has them."""
        fields = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
        fields += [f"Requires-Python: {python}"] if python else []
        fields += [f"Requires-Dist: {line}" for line in requires]
        text = "\n".join(fields) + "\n\nRequires-Dist: nothing, this is the description\n"
        stem = f"{site}/{name.replace('-', '_')}-{version}"
        if tag is None:
            self.put(f"{stem}.egg-info", text)
            return
        self.put(f"{stem}.dist-info/METADATA", text)
        self.put(f"{stem}.dist-info/INSTALLER", installer)
        self.put(f"{stem}.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")

    def run(self, *words, root=True, **env):
        command = [str(self.program), "doctor", *map(str, words)]
        command += ["--root", str(self.root)] if root else []
        sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        return subprocess.run(command, env={**sanitizers, **self.env, **env}, text=True,
                              capture_output=True, cwd=self.folder, timeout=300)

    def look(self, *words, root=True, **env):
        """The answer as JSON, and nothing said besides."""
        done = self.run("--json", *words, root=root, **env)
        answer = json.loads(done.stdout)
        counts = [answer["n_ok"], answer["n_warn"], answer["n_fail"]]
        assert sum(counts) == len(answer["findings"]) and done.stderr == ""
        expected = 2 if counts[2] else 1 if counts[1] and "--strict" in words else 0
        assert done.returncode == expected, done
        return answer

    def findings(self, check, *words, **env):
        """[(verdict, sentence, fix)] of one check."""
        found = [(one["verdict"], one["says"], one.get("fix", ""))
                 for one in self.look(*words, **env)["findings"] if one["check"] == check]
        assert found, f"'{check}' said nothing"
        for verdict, says, fix in found:
            assert says and (verdict == "ok" or fix), (verdict, says, fix)
        return found

    def finding(self, check, *words, **env):
        found = self.findings(check, *words, **env)
        assert len(found) == 1, found
        return found[0]


def build_library(path, code="", *options):
    """A shared object from a few lines of C."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-x", "none", "-o",
               str(path), *options]
    subprocess.run(command, input=code, text=True, check=True, capture_output=True)
    return path


def build_libc(folder, *versions):
    """A libc.so.6 that defines these versions of glibc, with a function each."""
    folder.mkdir(parents=True, exist_ok=True)
    script, code = folder / "versions", ""
    text = ""
    for number, version in enumerate(versions):
        text += f"GLIBC_{version} {{ global: f{number}; }};\n"
        code += f"int f{number}(void) {{ return 0; }}\n"
    script.write_text(text + "GLIBC_PRIVATE { global: hidden; };\n")
    return build_library(folder / "libc.so.6", code + "int hidden(void) { return 0; }\n",
                         f"-Wl,--version-script={script}", "-Wl,-soname,libc.so.6")


def build_user_of(libc, path, n_functions):
    """A library that calls the first functions of such a libc."""
    calls = "".join(f"int f{i}(void);\n" for i in range(n_functions))
    sums = " + ".join(f"f{i}()" for i in range(n_functions))
    return build_library(path, f"{calls}int user(void) {{ return {sums}; }}\n", str(libc))


def build_own(path, version):
    """A file of Plimsoll's, by the note on its version."""
    code = f"""
__attribute__((section(".note.plimsoll"), aligned(4), used)) static const struct {{
    unsigned name_bytes, version_bytes, type;
    char name[12], version[16];
}} note = {{9, 16, 1, "Plimsoll", "{version}"}};
"""
    return build_library(path, code)


def program(meson_build):
    return (pathlib.Path(meson_build) / "src/cli/plimsoll").resolve()
