# SPDX-License-Identifier: Apache-2.0
"""`plimsoll doctor` on memory, processors, files, GPUs and what is preloaded, and as a command."""

import os
import pathlib
import pty
import re
import subprocess
import time

import pytest

from doctor_tree import LEVEL_3, SITE, Machine, build_library, program

GIB = 1 << 30


@pytest.fixture
def machine(meson_build, tmp_path):
    return Machine(program(meson_build), tmp_path)


# Memory


def test_the_budget_and_who_sets_it(machine):
    verdict, says, _ = machine.finding("memory")
    assert verdict == "ok" and "11.9 GiB" in says and "MemAvailable" in says
    machine.put("/sys/fs/cgroup/a/memory.max", str(4 * GIB))
    machine.put("/sys/fs/cgroup/a/memory.current", str(GIB))
    machine.put("/sys/fs/cgroup/a/memory.stat", "inactive_file 0\nactive_file 0\n")
    verdict, says, _ = machine.finding("memory")
    assert verdict == "ok" and "2.9 GiB" in says and "/sys/fs/cgroup/a/memory.max" in says
    assert "see 16.0 GiB" in says
    assert machine.look()["line_bytes"] == 3 * GIB - (80 << 20)


def test_little_memory_is_a_warning_and_none_a_failure(machine):
    machine.meminfo(MemAvailable="786432 kB")
    verdict, says, fix = machine.finding("memory")
    assert verdict == "warn" and "688.0 MiB" in says and "/proc/meminfo" in fix
    machine.meminfo(MemAvailable="1024 kB")
    verdict, says, _ = machine.finding("memory")
    assert verdict == "fail" and "too little memory" in says
    (machine.root / "proc/meminfo").unlink()
    verdict, says, _ = machine.finding("memory")
    assert verdict == "fail" and "no memory limit can be read" in says


def test_wsl_is_told_how_it_gives_memory(machine):
    machine.put("/proc/version", "Linux version 5.15.90.1-microsoft-standard-WSL2\n")
    assert "half of Windows' memory" in machine.finding("memory")[1]


@pytest.mark.parametrize("mode, verdict", [("0", "ok"), ("1", "ok"), ("2", "warn")])
def test_overcommit(machine, mode, verdict):
    machine.put("/proc/sys/vm/overcommit_memory", mode + "\n")
    assert machine.finding("overcommit")[0] == verdict


def test_strict_overcommit_with_nothing_left_is_a_failure(machine):
    machine.put("/proc/sys/vm/overcommit_memory", "2\n")
    machine.meminfo(Committed_AS="8388000 kB")
    verdict, says, fix = machine.finding("overcommit")
    assert verdict == "fail" and "8.0 GiB of 8.0 GiB" in says and "sysctl" in fix


@pytest.mark.parametrize("free, verdict", [(1048576, "ok"), (400000, "warn")])
def test_swap_that_is_used_up(machine, free, verdict):
    machine.meminfo(SwapTotal="1048576 kB", SwapFree=f"{free} kB")
    assert machine.finding("swap")[0] == verdict


def test_shm_that_is_not_there_is_a_failure(machine):
    assert machine.finding("shm", "--workers", "1")[0] == "ok"
    (machine.root / "dev/shm").rmdir()
    verdict, says, _ = machine.finding("shm")
    assert verdict == "fail" and "does not exist" in says


def test_shm_is_measured_by_the_workers(machine):
    """No disk has room for the batches of so many."""
    space = os.statvfs(machine.root / "dev/shm")
    n_workers = space.f_bavail * space.f_frsize // (2 * 64 * 224 * 224 * 3 * 4) + 1000
    if n_workers > 4096:
        pytest.skip("the disk has room for more workers than may be asked for")
    verdict, says, fix = machine.finding("shm", "--workers", n_workers)
    assert verdict == "warn" and f"{n_workers} workers" in says and "--shm-size" in fix


def test_huge_pages_that_nobody_uses_are_a_warning(machine):
    machine.meminfo(HugePages_Total="2048", HugePages_Free="2000")
    verdict, says, fix = machine.finding("hugepages")
    assert verdict == "warn" and "3.9 GiB" in says and fix == "sysctl vm.nr_hugepages=48"


@pytest.mark.parametrize(
    "enabled, defrag, verdict",
    [
        ("[always] madvise never", "always [madvise] never", "ok"),
        ("[always] madvise never", "[always] defer never", "warn"),
        ("always madvise [never]", "[always] defer never", "ok"),
        ("nonsense", "[" * 50, "ok"),
    ],
)
def test_transparent_huge_pages(machine, enabled, defrag, verdict):
    folder = "/sys/kernel/mm/transparent_hugepage"
    machine.put(f"{folder}/enabled", enabled + "\n")
    machine.put(f"{folder}/defrag", defrag + "\n")
    assert machine.finding("hugepages")[0] == verdict


@pytest.mark.parametrize("group", ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a"])
def test_a_group_that_dies_as_one_is_a_warning(machine, group):
    machine.put("/sys/fs/cgroup/a/b/memory.oom.group", "0\n")
    assert machine.finding("oom-group")[0] == "ok"
    machine.put(f"{group}/memory.oom.group", "1\n")
    verdict, says, _ = machine.finding("oom-group")
    assert verdict == "warn" and f"'{group}'" in says and "Kubernetes" in says


# Processors, files, disk


def n_usable():
    return len(os.sched_getaffinity(0))


def test_threads_that_fit_the_processors(machine):
    n = n_usable()
    assert machine.finding("threads", OMP_NUM_THREADS=str(n), MKL_NUM_THREADS="")[0] == "ok"
    assert machine.finding("threads", OMP_NUM_THREADS="1,1")[0] == "ok"


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                  "TF_NUM_INTRAOP_THREADS"])
def test_more_threads_than_processors_are_a_warning(machine, name):
    n = n_usable()
    verdict, says, fix = machine.finding("threads", **{name: str(n + 1)})
    assert verdict == "warn" and f"{name}={n + 1}" in says and fix == f"export {name}={n}"


@pytest.mark.parametrize("value", ["many", "4x", "-1"])
def test_what_is_no_number_of_threads_is_a_warning(machine, value):
    verdict, says, _ = machine.finding("threads", OMP_NUM_THREADS=value)
    assert verdict == "warn" and f"'{value}'" in says


def test_a_quota_below_the_processors_is_a_warning(machine):
    if n_usable() < 2:
        pytest.skip("with one processor there is nothing to limit")
    machine.put("/sys/fs/cgroup/a/cpu.max", "100000 100000\n")
    machine.put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    verdict, _, fix = machine.finding("threads")
    assert verdict == "warn" and fix == "export OMP_NUM_THREADS=1"
    assert machine.finding("threads", OMP_NUM_THREADS="1")[0] == "ok"
    assert machine.finding("threads", OMP_NUM_THREADS="2")[0] == "warn"


@pytest.mark.parametrize(
    "soft, hard, workers, verdict, fix",
    [
        (1024, 4096, 4, "ok", ""),
        (1024, 4096, 16, "warn", "ulimit -n 1280"),
        (1024, 1024, 16, "warn", "LimitNOFILE"),
        (32, 4096, 1, "fail", "ulimit -n 320"),
        ("unlimited", "unlimited", 4096, "ok", ""),
    ],
)
def test_open_files_are_measured_by_the_workers(machine, soft, hard, workers, verdict, fix):
    machine.limits(soft, hard)
    found = machine.findings("files", "--workers", workers)[0]
    assert found[0] == verdict and fix in found[2]


def test_disk_room_for_what_is_spilled(machine):
    verdict, says, _ = machine.finding("disk")
    assert verdict == "ok" and "'/var/tmp'" in says
    (machine.root / "opt/spill").mkdir()
    assert "'/opt/spill'" in machine.finding("disk", PLIMSOLL_SPILL="/opt/spill")[1]
    verdict, says, fix = machine.finding("disk", PLIMSOLL_SPILL="/opt/gone")
    assert verdict == "fail" and "'/opt/gone'" in says and "PLIMSOLL_SPILL" in fix
    (machine.root / "var/tmp").rmdir()
    assert machine.finding("disk")[0] == "fail"


def test_a_disk_with_less_room_than_memory_is_a_warning(machine):
    machine.meminfo(MemTotal="99999999999 kB", MemAvailable="99999999999 kB")
    verdict, says, _ = machine.finding("disk")
    assert verdict == "warn" and "can use 93.1 TiB" in says


def test_a_limit_on_the_size_of_files_is_a_warning(machine):
    limits = machine.root / "proc/self/limits"
    limits.write_text(limits.read_text().replace("Max file size             unlimited",
                                                 "Max file size             1000000"))
    verdict, says, fix = machine.finding("disk")
    assert verdict == "warn" and "976.6 KiB" in says and fix == "ulimit -f unlimited"


def test_spilling_into_memory_is_a_warning(machine, meson_build):
    """The real /dev/shm is memory wherever these tests run."""
    env = {"PLIMSOLL_SPILL": "/dev/shm", "PATH": "/usr/bin"}
    verdict, says, _ = machine.finding("disk", root=False, **env)
    assert verdict == "warn" and "is in memory, not on a disk" in says


# What is preloaded


@pytest.mark.parametrize(
    "library, verdict, words",
    [
        ("libjemalloc.so.2", "ok", "allocator beneath the guard"),
        ("libanything.so", "ok", "behind the guard"),
        ("libasan.so.8", "fail", "must come first"),
        ("libclang_rt.asan-x86_64.so", "fail", "must come first"),
    ],
)
def test_what_is_preloaded_beside_the_guard(machine, library, verdict, words):
    machine.put(f"/usr/lib/{library}", "")
    machine.put("/etc/ld.so.preload", f"/usr/lib/{library}\n")
    found = machine.finding("preload")
    assert found[0] == verdict and words in found[1] and library in found[1]


def test_something_that_cannot_be_preloaded_is_a_warning(machine):
    machine.put("/etc/ld.so.preload", "/usr/lib/gone.so /usr/lib/too.so")
    found = machine.findings("preload")
    assert [one[0] for one in found] == ["warn", "warn"] and "'/usr/lib/too.so'" in found[1][1]


def test_a_path_that_only_the_loader_knows_is_not_said_to_be_missing(machine):
    machine.put("/etc/ld.so.preload", "/usr/$LIB/libanything.so /$LIB/../opt/libplimsoll-guard.so")
    found = machine.findings("preload")
    assert [one[0] for one in found] == ["ok", "ok"] and "already runs under 'plimsoll run'" in found[1][1]


def test_the_variable_is_looked_at_too(machine, tmp_path):
    library = build_library(tmp_path / "libjemalloc.so.2")
    found = machine.finding("preload", root=False, LD_PRELOAD=str(library), PATH="/usr/bin")
    assert found[0] == "ok" and str(library) in found[1]


# GPUs: a stub of NVIDIA's library, which answers from its environment

STUB = r"""
extern char *getenv(const char *);
extern int atoi(const char *), sscanf(const char *, const char *, ...);
extern int pause(void);
extern void abort(void);
extern char *strcpy(char *, const char *);
static int number(const char *name) { char *text = getenv(name); return text ? atoi(text) : 0; }
int nvmlInit_v2(void)
{
    if (number("STUB_INIT") == -1) while (1) pause();
    if (number("STUB_INIT") == -2) abort();
    return number("STUB_INIT");
}
int nvmlSystemGetDriverVersion(char *text, unsigned n) { (void)n; strcpy(text, getenv("STUB_DRIVER")); return 0; }
int nvmlSystemGetCudaDriverVersion(int *version) { *version = 12040; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = number("STUB_DEVICES"); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device) { *device = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned n) { (void)device; (void)n; strcpy(text, "NVIDIA Stub"); return 0; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory)
{ (void)device; memory[0] = 16ull << 30; memory[1] = 15ull << 30; memory[2] = 1ull << 30; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{ (void)device; return sscanf(getenv("STUB_COMPUTE"), "%d.%d", major, minor) != 2; }
"""


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stub")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o",
                    folder / "libnvidia-ml.so.1"], input=STUB, text=True, check=True)
    return folder


@pytest.fixture
def gpu(machine, stub):
    machine.env.update(LD_LIBRARY_PATH=str(stub), STUB_DRIVER="550.54.14", STUB_DEVICES="2",
                       STUB_COMPUTE="8.0")
    machine.put("/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 2024\n"
                "GCC version:  gcc version 12.2.0\n")
    return machine


def test_no_gpu_is_fine(machine):
    assert machine.finding("gpu") == ("ok", "no NVIDIA GPU: frameworks will use the CPU", "")
    assert machine.finding("cuda")[0] == "ok"


def test_devices_are_named_with_driver_and_memory(gpu):
    verdict, says, _ = gpu.finding("gpu")
    assert verdict == "ok" and "driver 550.54.14, for CUDA up to 12.4" in says
    assert says.count("NVIDIA Stub (16.0 GiB, 15.0 GiB free, compute 8.0)") == 2


def test_a_gpu_without_a_driver_is_a_warning(machine):
    device = "/sys/bus/pci/devices/0000:01:00.0"
    machine.put(f"{device}/vendor", "0x10de\n")
    machine.put(f"{device}/class", "0x010802\n")
    assert machine.finding("gpu")[0] == "ok"  # not a display controller
    machine.put(f"{device}/class", "0x030000\n")
    verdict, says, fix = machine.finding("gpu")
    assert verdict == "warn" and "driver is not loaded" in says and "nvidia-driver" in fix


def test_a_driver_without_its_library_is_a_warning(gpu):
    verdict, says, fix = gpu.finding("gpu", LD_LIBRARY_PATH="")
    assert verdict == "warn" and "driver 550.54.14 is loaded" in says and "--gpus all" in fix


@pytest.mark.parametrize(
    "status, verdict, words",
    [
        ("18", "fail", "have different versions"),
        ("4", "fail", "no permission to use the GPU"),
        ("999", "fail", "NVML error 999"),
        ("-2", "fail", "crashed"),
        ("9", "fail", "NVML error 9"),
    ],
)
def test_a_library_that_fails_is_explained(gpu, status, verdict, words):
    found = gpu.finding("gpu", STUB_INIT=status)
    assert found[0] == verdict and words in found[1]
    assert gpu.finding("cuda", STUB_INIT=status)[0] == "ok"


def processes_with(variable):
    found = []
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable.encode() in environ.read_bytes().split(b"\0"):
                found.append(environ.parent.name)
        except OSError:
            pass  # it has ended, or is another user's
    return found


def test_a_driver_that_hangs_is_a_failure_and_not_our_end(gpu):
    mark = f"DOCTOR_MARK={gpu.folder}"
    verdict, says, _ = gpu.finding("gpu", STUB_INIT="-1", DOCTOR_MARK=str(gpu.folder))
    assert verdict == "fail" and "did not answer within 5 s" in says
    end = time.monotonic() + 60
    while processes_with(mark):
        assert time.monotonic() < end, "the child that asked is still there"
        time.sleep(0.02)


def test_a_driver_without_devices_is_a_warning(gpu):
    assert gpu.finding("gpu", STUB_DEVICES="0")[0] == "warn"


@pytest.mark.parametrize("value", ["", "-1"])
def test_gpus_that_are_hidden_are_a_warning(gpu, value):
    found = gpu.findings("gpu", CUDA_VISIBLE_DEVICES=value)
    assert [one[0] for one in found] == ["ok", "warn"]
    assert len(gpu.findings("gpu", CUDA_VISIBLE_DEVICES="0")) == 1


@pytest.mark.parametrize(
    "name, version, driver, verdict",
    [
        ("torch", "2.7.0+cu126", "550.54.14", "ok"),
        ("torch", "2.7.0+cu126", "520.61.05", "fail"),
        ("torch", "2.7.0+cu118", "520.61.05", "ok"),
        ("torch", "2.13.0+cu130", "550.54.14", "fail"),
        ("torch", "2.7.0+cpu", "550.54.14", "warn"),
        ("tensorflow", "2.18.0", "550.54.14", "ok"),
        ("tensorflow", "2.18.0", "470.82.01", "fail"),
        ("tensorflow", "2.11.0", "470.82.01", "ok"),
        ("tensorflow-cpu", "2.18.0", "550.54.14", "warn"),
        ("jaxlib", "0.5.0", "550.54.14", "warn"),
    ],
)
def test_the_driver_against_each_framework_s_cuda(gpu, name, version, driver, verdict):
    gpu.package(name, version)
    found = gpu.finding("cuda", STUB_DRIVER=driver)
    assert found[0] == verdict
    if verdict == "fail":
        assert "driver version is insufficient" in found[1] and driver in found[1]


def test_wsl_needs_a_newer_driver(gpu):
    gpu.package("torch", "2.7.0+cu126")
    assert gpu.finding("cuda", STUB_DRIVER="525.60.13")[0] == "ok"
    gpu.put("/proc/version", "Linux version 5.15.90.1-microsoft-standard-WSL2\n")
    verdict, says, _ = gpu.finding("cuda", STUB_DRIVER="525.60.13")
    assert verdict == "fail" and ">=528.33" in says


@pytest.mark.parametrize(
    "text, cuda",
    [("cuda: Optional[str] = '12.6'\nhip = None\n", "12.6"), ("cuda = None\n", "none"),
     ("debug = False\ncuda = \"11.8\"\n", "11.8")],
)
def test_torch_says_itself_what_cuda_it_was_built_with(gpu, text, cuda):
    gpu.package("torch", "2.7.0")
    gpu.put(f"{SITE}/torch/version.py", "__version__ = '2.7.0'\n" + text)
    packages = {one["name"]: one for one in gpu.look()["packages"]}
    assert packages["torch"]["cuda"] == cuda


def test_a_torch_that_says_nothing_has_the_cuda_that_is_installed_beside_it(gpu):
    gpu.package("torch", "2.7.0")
    gpu.package("nvidia-cuda-runtime-cu12", "12.6.77")
    verdict, says, _ = gpu.finding("cuda", STUB_DRIVER="470.82.01")
    assert verdict == "fail" and "built for CUDA 12.6" in says


@pytest.mark.parametrize(
    "name, version, compute, verdict",
    [
        ("torch", "2.13.0+cu126", "5.2", "ok"),
        ("torch", "2.13.0+cu126", "3.7", "fail"),
        ("torch", "2.13.0+cu126", "8.9", "ok"),  # code for 8.6 runs on 8.9
        ("torch", "2.13.0+cu126", "10.0", "fail"),  # nothing for a later major, and no PTX
        ("torch", "2.13.0+cu130", "13.1", "ok"),  # PTX for 12.0
        ("torch", "2.13.0+cu130", "7.0", "fail"),
        ("torch", "2.7.0+cu128", "6.1", "fail"),
        ("tensorflow", "2.17.0", "5.2", "fail"),
        ("tensorflow", "2.16.1", "5.2", "ok"),
        ("tensorflow", "2.17.0", "9.0", "ok"),
    ],
)
def test_a_device_against_the_code_in_a_build(gpu, name, version, compute, verdict):
    gpu.package(name, version)
    found = gpu.findings("cuda", STUB_DRIVER="580.65.06", STUB_DEVICES="1", STUB_COMPUTE=compute)
    assert found[0][0] == verdict and (verdict == "ok" or "no kernel image" in found[0][1])


BUILD_INFO = """build_info = collections.OrderedDict([('cuda_compute_capabilities', %s),
    ('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True)])\n"""


@pytest.mark.parametrize(
    "capabilities, compute, verdict",
    [("['sm_60', 'sm_70']", "8.0", "fail"), ("['sm_60', 'compute_70']", "8.0", "ok"),
     ("['sm_80']", "8.0", "ok")],
)
def test_tensorflow_says_itself_what_gpus_it_was_built_for(gpu, capabilities, compute, verdict):
    gpu.package("tensorflow", "2.18.0")
    gpu.put(f"{SITE}/tensorflow/python/platform/build_info.py", BUILD_INFO % capabilities)
    assert gpu.findings("cuda", STUB_COMPUTE=compute)[0][0] == verdict
    assert gpu.look()["packages"][0]["cuda"] == "12.5.1"


# The command


def test_text_and_json_say_the_same(machine):
    machine.cpu("pni")
    machine.package("tensorflow", "2.16.1")
    text = machine.run().stdout
    answer = machine.look()
    lines = [line for line in text.splitlines() if re.match(r"(ok|warn|fail) ", line)]
    assert lines == [f"{one['verdict']:<4}  {one['check']:<12}  {one['says']}"
                     for one in answer["findings"]]
    fixes = [line.strip() for line in text.splitlines() if line.startswith(" " * 20 + "fix: ")]
    assert fixes == [f"fix: {one['fix']}" for one in answer["findings"] if "fix" in one]
    assert text.splitlines()[-1] == (f"{answer['n_ok']} ok, {answer['n_warn']} warnings, "
                                     f"{answer['n_fail']} failure")


def test_exit_statuses(machine):
    assert machine.run().returncode == 0
    assert machine.run("--strict").returncode == 0
    machine.put("/proc/sys/vm/overcommit_memory", "2\n")
    assert machine.run().returncode == 0
    assert machine.run("--strict").returncode == 1
    (machine.root / "dev/shm").rmdir()
    assert machine.run().returncode == 2
    assert machine.run("--strict").returncode == 2


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["--workers", "0"], "not a number of workers"),
        (["--workers", "x"], "not a number of workers"),
        (["--workers"], "needs a value"),
        (["--root", "/no/such/folder"], "cannot read the root '/no/such/folder'"),
        (["--facts", "/no/such/file"], "cannot read the facts in '/no/such/file'"),
        (["--nonsense"], "unknown option '--nonsense'"),
        (["more"], "unexpected argument 'more'"),
    ],
)
def test_wrong_usage_is_said_on_one_line(machine, words, complaint):
    done = machine.run(*words, root=False)
    assert (done.returncode, done.stdout) == (125, "")
    assert complaint in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "text, line",
    [("", None), ("kind,package\n", 1),
     ("kind,package,versions,where,needs,says,source\n\ncpu,torch,,,avx,,\n", 3),
     ("kind,package,versions,where,needs,says,source\ncpu,torch,,,avx,,here,more\n", 2)],
)
def test_facts_that_are_no_table_are_refused_with_the_line(machine, tmp_path, text, line):
    (tmp_path / "facts.csv").write_text(text)
    done = machine.run("--facts", tmp_path / "facts.csv")
    assert (done.returncode, done.stdout) == (125, "")
    assert "facts.csv'" in done.stderr and (line is None or f"line {line}:" in done.stderr)


def test_facts_of_one_s_own_are_used(machine, tmp_path):
    (tmp_path / "facts.csv").write_text(
        "# a comment\nkind,package,versions,where,needs,says,source\n"
        'cpu,numpy,"==1.26.*",x86_64,avx512f,"it says ""no"", and ends",test\n')
    machine.package("numpy", "1.26.4")
    verdict, says, _ = machine.finding("processor", "--facts", tmp_path / "facts.csv")
    assert verdict == "fail" and says.endswith('this processor lacks avx512f: it says "no", and ends')


def test_an_answer_that_cannot_be_written_is_a_failure(machine):
    with open("/dev/full", "w") as full:
        done = subprocess.run([machine.program, "doctor", "--root", machine.root], env=machine.env,
                              stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 125 and "cannot write the answer" in done.stderr


def read_terminal(machine, **env):
    main, other = pty.openpty()
    with subprocess.Popen([machine.program, "doctor", "--root", machine.root], stdout=other,
                          env={**machine.env, **env}, stderr=subprocess.PIPE) as process:
        os.close(other)
        text = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
    os.close(main)
    assert process.returncode == 0
    return text.decode()


def test_verdicts_are_coloured_on_a_terminal_unless_that_is_unwanted(machine):
    assert "\x1b[32mok" in read_terminal(machine)
    assert "\x1b" not in read_terminal(machine, NO_COLOR="1")
    assert "\x1b" not in machine.run().stdout


def test_cpuid_and_the_kernel_agree_on_this_processor(machine):
    """Of this machine cpuid is asked, of a root its cpuinfo: the same text must come of both."""
    real = machine.finding("processor", root=False, PATH="/nowhere")
    machine.put("/proc/cpuinfo", pathlib.Path("/proc/cpuinfo").read_text())
    assert real == machine.finding("processor", PATH="/nowhere")
    machine.cpu(LEVEL_3)
    assert "(x86-64-v3)" in machine.finding("processor")[1]


def test_every_check_is_told_of_in_the_manual_and_in_the_document(machine, root):
    checks = {one["check"] for one in machine.look()["findings"]}
    page = (root / "man/plimsoll-doctor.1").read_text().partition(".Sh CHECKS")[2]
    words = set(re.findall(r"[a-z-]+", " ".join(re.findall(r"^\.It Cm (.*)$", page, re.MULTILINE))))
    assert words == checks
    document = (root / "docs/doctor.md").read_text().partition("## The checks")[2]
    document = document.partition("\n## ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` \|", document, re.MULTILINE)) == checks
