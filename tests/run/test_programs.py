# SPDX-License-Identifier: Apache-2.0
"""Programs that know nothing of us work under a line as without: those that reserve much and touch
little, those with an allocator of their own, and those that start many others."""
import glob
import os
import pwd
import shutil
import subprocess

import pytest

from conftest import PLIMSOLL, PROGRAMS


def need(name):
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"'{name}' is not installed: tools/install-deps test")
    return path


def test_node(run):
    result = run(need("node"), "-e", """
        let kept = [];
        for (let i = 0; i < 400; i++) {
            kept.push(new Float64Array(1 << 16).fill(i));   // half a MiB each, 32 of them alive
            if (kept.length > 32) kept.shift();
        }
        const bytes = Uint8Array.from([0,97,115,109,1,0,0,0,5,3,1,0,1]);   // a page of wasm memory
        new WebAssembly.Instance(new WebAssembly.Module(bytes));
        console.log(kept.reduce((sum, a) => sum + a[0], 0));
        """, budget="200M")
    assert result.rc == 0 and result.stdout == f"{sum(range(368, 400))}\n"
    assert result.verdict == "finished"


def test_java(session):
    subprocess.run([need("javac"), "-d", session.folder, PROGRAMS / "Grow.java"], check=True)
    # Without -Xmx the heap may grow to a quarter of the machine before it collects.
    result = session.run(need("java"), "-Xmx64m", "-cp", session.folder, "Grow", budget="200M")
    assert result.rc == 0 and result.stdout == "400 blocks\n"
    assert result.verdict == "finished"


@pytest.fixture(scope="session")
def go_program(tmp_path_factory):
    """A Go program that allocates 800 MiB and keeps 16: its collector has to work."""
    target = tmp_path_factory.mktemp("go") / "grow"
    env = {**os.environ, "GOCACHE": str(target.parent / "cache"), "GOFLAGS": "-mod=mod",
           "GO111MODULE": "off"}
    subprocess.run([need("go"), "build", "-o", target, PROGRAMS / "grow.go"], check=True, env=env)
    return target


def test_go(run, go_program):
    result = run(go_program, budget="200M")
    assert result.rc == 0 and result.stdout == "400 blocks\n"
    assert result.verdict == "finished"


def test_gcc_compiles(session):
    source = session.folder / "many.cc"
    source.write_text("""
        #include <map>
        #include <regex>
        #include <string>
        int main()
        {
            std::map<std::string, int> words{{"a", 42}};
            return std::regex_match("a", std::regex("[a-z]")) ? words["a"] : 1;
        }
        """)
    target = session.folder / "many"
    result = session.run("g++", "-O1", source, "-o", target, budget="512M")
    assert result.rc == 0 and result.verdict == "finished"
    assert subprocess.run([target]).returncode == 42


def test_chromium(session):
    result = session.run(
        need("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--disable-sync", f"--user-data-dir={session.folder / 'chromium'}", "--dump-dom",
        "data:text/html,<p id=a></p><script>a.textContent=6*7</script>",
        budget="512M", env={"HOME": str(session.folder)})
    assert result.rc == 0 and '<p id="a">42</p>' in result.stdout
    assert result.report["memory"]["n_refusals"] == 0
    assert "stopped" not in result.report or result.report["stopped"] == []


def test_postgresql(session, open_folder):
    """A server that makes and fills a database, as the user it insists on."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    if not found:
        pytest.fail("PostgreSQL is not installed: tools/install-deps test")
    if os.geteuid() != 0:
        pytest.skip("running as the user 'postgres' needs root")
    if not all(folder.stat().st_mode & 0o001 for folder in PLIMSOLL.resolve().parents):
        pytest.skip("the user 'postgres' cannot reach this tree")
    tools = os.path.dirname(found[-1])
    user = pwd.getpwnam("postgres")
    os.chown(open_folder, user.pw_uid, user.pw_gid)
    data = open_folder / "data"
    server = (f"{tools}/initdb --no-sync -A trust -D {data} >/dev/null &&"
              f" {tools}/postgres --single -D {data} postgres")
    query = ("create table t as select i, i::text as name from generate_series(1, 20000) i;\n"
             "select count(*) as rows, sum(i) as sum from t where i % 2 = 0;\n")
    report = open_folder / "report.json"
    line = ["runuser", "-u", "postgres", "--", str(PLIMSOLL), "run", "--budget", "512M", "--report",
            str(report), "--", "sh", "-c", server]
    process = session.popen(line, report, stdin=subprocess.PIPE, cwd=open_folder,
                            env={"PLIMSOLL_STATE": str(open_folder / "state"),
                                 "HOME": str(open_folder)})
    result = session.finish(process, stdin=query)
    assert result.rc == 0 and result.verdict == "finished"
    assert 'rows = "10000"' in result.stdout and 'sum = "100010000"' in result.stdout


def library(name):
    listing = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    for line in listing.splitlines():
        if line.split()[:1] == [name]:
            return line.split()[-1]
    return pytest.fail(f"'{name}' is not installed: tools/install-deps test")


ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc.so.4"]


@pytest.mark.parametrize("name", ALLOCATORS)
def test_numpy_with_another_allocator_beneath(run, name):
    result = run(budget="500M", env={"LD_PRELOAD": library(name)}, script=f"""
        import numpy as np
        assert "{name}" in open("/proc/self/maps").read()
        for _ in range(5):
            kept = []
            try:
                while len(kept) < 100:
                    kept.append(np.ones(20 << 20, dtype=np.uint8))
            except MemoryError as error:
                assert "Unable to allocate 20.0 MiB" in str(error)
            assert 15 <= len(kept) <= 25, len(kept)
            assert all(a.ctypes.data % 16 == 0 for a in kept)
            kept.clear()
        print("went on")
        """)
    assert result.rc == 0 and result.stdout == "went on\n"
    assert result.verdict == "finished-after-refusals"


@pytest.mark.parametrize("name", ALLOCATORS)
def test_the_malloc_family_with_another_allocator_beneath(run, program, name):
    result = run(program("allocator_contract"), 200, "over", budget="200M",
                 env={"LD_PRELOAD": library(name)})
    assert result.rc == 0
    assert result.verdict == "finished-after-refusals"


def test_a_shell_pipeline_of_many_processes(run):
    result = run("sh", "-c", "for i in $(seq 100); do echo $i | sed s/^/x/ | tr x y; done | wc -l",
                 budget="200M")
    assert result.rc == 0 and result.stdout.strip() == "100"
    assert result.verdict == "finished"


def test_a_program_with_no_environment_at_all(run):
    result = run("env", "-i", "/bin/echo", "fine", budget="200M")
    assert result.rc == 0 and result.stdout == "fine\n"


def test_a_run_within_a_run(session):
    """The inner one keeps its own line; both end well."""
    inner = [str(PLIMSOLL), "run", "--quiet", "--budget", "100M", "--", "/usr/bin/python3", "-c",
             "import numpy as np\n"
             "try: np.ones(150 << 20, dtype=np.uint8)\n"
             "except MemoryError: print('refused')"]
    result = session.run(*inner, budget="400M")
    assert result.rc == 0 and result.stdout == "refused\n"
