# SPDX-License-Identifier: Apache-2.0
"""`plimsoll check` as a command: order, forms, exit status, Ctrl-C, memory, quarantine, plans."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from PIL import Image

from check_tree import Tree, example, npy, picture, png_header, program, record
from support import MIB, PYTHON, cgroup  # noqa: F401: a fixture


@pytest.fixture
def tree(meson_build, tmp_path):
    return Tree(program(meson_build), tmp_path / "data")


def mix(tree, n=200):
    """Files of which every third is bad, in several folders; the names of the bad ones, in order."""
    bad = []
    for i in range(n):
        name = f"{i % 7}/{i:05}.txt"
        tree.put(name, f"number {i}\n".encode() + (b"\xff" if i % 3 == 0 else b""))
        if i % 3 == 0:
            bad.append(name)
    return sorted(bad)


# Forms


def test_findings_come_in_the_order_of_paths_whatever_the_threads(tree):
    bad = mix(tree, 1000)
    answers = {tree.check("--jsonl", "--jobs", jobs).stdout for jobs in ("1", "2", "7")}
    assert len(answers) == 1
    lines = [json.loads(line) for line in answers.pop().splitlines()]
    assert [line["path"] for line in lines] == [f"{tree.folder}/{name}" for name in bad]
    assert set(lines[0]) == {"path", "format", "offset", "reason", "severity"}


def test_thousands_of_files_are_looked_at_once_each(tree):
    for i in range(3000):
        tree.put(f"{i % 10}/{i}.txt", f"{i}")
    answer = json.loads(tree.check("--json", "--jobs", "4").stdout)
    assert (answer["n_files"], answer["n_checked"]) == (3000, 3000)
    assert answer["formats"] == {"text": 3000}
    assert answer["n_bytes"] == sum(len(str(i)) for i in range(3000))


def test_json_has_findings_and_summary(tree):
    tree.put("good.txt", "x")
    tree.put("bad.txt", b"\xff")
    result = tree.check("--json")
    answer = json.loads(result.stdout)
    assert result.returncode == 1 and result.stderr == ""
    assert [finding["severity"] for finding in answer["findings"]] == ["error"]
    assert (answer["n_errors"], answer["n_warnings"], answer["n_notes"]) == (1, 0, 0)
    assert answer["interrupted"] is False


def test_text_has_no_bar_without_a_terminal_and_ends_in_a_summary(tree):
    tree.put("a.txt", "x")
    tree.put("b.jpg", picture("PNG"))
    result = tree.check()
    assert result.stderr == "" and "\r" not in result.stdout
    assert "0 errors, 1 warning, 0 notes" in result.stdout.splitlines()[-1]


def test_a_terminal_gets_a_bar(tree):
    mix(tree, 50)
    leader, follower = pty.openpty()
    words = [str(tree.tool), "check", str(tree.folder)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=follower, timeout=300)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    os.close(follower)
    assert done.returncode == 1
    assert re.search(r"\r\[[#-]{24}\] \d+ of 50 files, \d+ files/s, [\d.]+ MB/s, \d+ s left", shown)


def test_control_characters_of_names_never_reach_the_terminal(tree):
    tree.put("a\x1b[31m.txt", b"\xff")
    assert "\x1b" not in tree.check().stdout


def test_exit_status(tree):
    tree.put("a.txt", "x")
    assert tree.check().returncode == 0
    tree.put("b.jpg", picture("PNG"))
    assert tree.check().returncode == 0 and tree.check("--strict").returncode == 1
    tree.put("c.txt", b"\xff")
    assert tree.check().returncode == 1


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "no path given"),
        (["/nowhere"], "cannot look at '/nowhere'"),
        (["--format", "gif", "/tmp"], "no format is called 'gif'"),
        (["--jobs", "0", "/tmp"], "'0' is no number for --jobs"),
        (["--restore", "/nowhere"], "cannot open '/nowhere/manifest.jsonl'"),
        (["--restore", "/tmp", "/tmp"], "--restore stands alone"),
        (["--oops"], "unknown option '--oops'"),
        (["/dev/null"], "neither a file nor a folder"),
    ],
)
def test_what_cannot_be_run_ends_with_2(tree, words, says):
    done = subprocess.run(
        [str(tree.tool), "check", *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2 and done.stdout == "" and says in done.stderr


def test_a_format_that_is_told_is_not_guessed(tree):
    tree.put("a.txt", "a,b\n1,2,3\n")
    assert tree.findings() == {}
    assert tree.findings("--format", "csv")["a.txt"]["format"] == "csv"
    assert tree.findings("--format", "jpeg")["a.txt"]["severity"] == "error"


def test_a_sample_is_as_large_as_asked_spread_and_the_same_each_time(tree):
    for i in range(500):
        tree.put(f"{i:03}.txt", b"%d\xff" % i)
    first = tree.check("--sample", "50", "--jsonl").stdout
    numbers = [int(json.loads(line)["path"][-7:-4]) for line in first.splitlines()]
    assert len(numbers) == 50 == len(set(numbers)) and numbers == sorted(numbers)
    assert min(numbers) < 100 and max(numbers) > 400
    assert tree.check("--sample", "50", "--jsonl").stdout == first


def test_hidden_files_and_links_to_folders_are_passed_over(tree):
    tree.put(".git/a.txt", b"\xff")
    tree.put("sub/b.txt", "x")
    tree.put("sub/.hidden", b"\xff")
    (tree.folder / "sub/again").symlink_to("..")
    answer = json.loads(tree.check("--json").stdout)
    assert answer["n_checked"] == 1 and answer["n_errors"] == 0


def test_a_pipe_is_passed_over(tree):
    os.mkfifo(tree.folder / "pipe.txt")
    assert json.loads(tree.check("--json").stdout)["n_files"] == 0


# Ending early


def start(tree, *options):
    words = [str(tree.tool), "check", str(tree.folder), *map(str, options)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def large_text(tree, name, mib):
    path = tree.put(name, "")
    with open(path, "wb") as file:
        file.truncate(mib * MIB)  # zeros, which are UTF-8; no disk
    return path


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_keeps_what_was_found(tree, number, status):
    tree.put("a.txt", b"\xff")
    large_text(tree, "b.txt", 40_000)
    tree.put("c.txt", b"\xff")
    process = start(tree, "--jobs", "1")
    assert "a.txt" in process.stdout.readline()
    process.send_signal(number)
    rest, errors = process.communicate(timeout=300)
    assert process.returncode == status and errors == ""
    assert "interrupted after 1 of 3 files" in rest and "1 error" in rest and "c.txt" not in rest


# Memory


def peak_bytes(*words):
    """By a small parent: a child's peak is at least what its parent had when it forked."""
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
    script += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"
    done = subprocess.run(
        [PYTHON, "-c", script, *map(str, words)], stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout.splitlines()[-1])


def test_memory_does_not_grow_with_files(tree):
    large_text(tree, "a.txt", 100)
    tree.put("b.csv", b"1,%s\n" % (b"x" * 400) * (80 * MIB // 403))
    tree.put("b.json", b'["%s"]' % b'","'.join([b"x" * 400] * (80 * MIB // 403)))
    np.lib.format.open_memmap(tree.folder / "c.npy", "w+", "f4", (25 * MIB,))
    peak = peak_bytes(tree.tool, "check", tree.folder, "--jobs", "2", "--values", "--strict")
    assert peak < 64 * MIB


def test_images_fit_a_small_cgroup_or_are_refused_with_the_reason(tree, cgroup):  # noqa: F811
    for i in range(4):
        image = Image.new("RGB", (3000, 3000), (i, 0, 0))
        image.save(tree.folder / f"{i}.png", compress_level=1)
    tree.put("large.png", png_header(13_000, 13_000))
    group = cgroup(160 * MIB)
    words = [str(tree.tool), "check", "--json", "--jobs", "2", str(tree.folder)]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=group.enter)
    answer = json.loads(done.stdout)
    assert group.n_oom_kills() == 0 and answer["n_checked"] == 5
    errors = [found for found in answer["findings"] if found["severity"] == "error"]
    assert [pathlib.Path(found["path"]).name for found in errors] == ["large.png"]
    assert "no room for" in errors[0]["reason"]


# Quarantine


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in pathlib.Path(folder).rglob("*")
        if path.is_file()
    }


def restore(tree, away):
    words = [str(tree.tool), "check", "--restore", str(away)]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


def test_bad_files_go_to_quarantine_and_come_back(tree, tmp_path):
    bad = mix(tree, 60)
    before = files_of(tree.folder)
    away = tmp_path / "away"
    result = tree.check("--quarantine", away, "--jsonl")
    assert result.returncode == 1
    assert set(files_of(tree.folder)) == set(before) - set(bad)
    for line in map(json.loads, result.stdout.splitlines()):
        name = os.path.relpath(line["path"], tree.folder)
        assert pathlib.Path(line["moved_to"]).read_bytes() == before[name]
    assert tree.check().returncode == 0
    done = restore(tree, away)
    assert (done.returncode, done.stdout) == (0, f"{len(bad)} files moved back, 0 left\n")
    assert files_of(tree.folder) == before and not away.exists()


def test_warnings_go_to_quarantine_with_strict_only(tree, tmp_path):
    tree.put("a.jpg", picture("PNG"))
    tree.check("--quarantine", tmp_path / "away")
    assert (tree.folder / "a.jpg").exists()
    tree.check("--quarantine", tmp_path / "away", "--strict")
    assert not (tree.folder / "a.jpg").exists()


def test_quarantine_within_the_folder_is_passed_over(tree):
    tree.put("a.txt", b"\xff")
    away = tree.folder / "away"
    assert tree.check("--quarantine", away).returncode == 1
    assert tree.check("--quarantine", away).returncode == 0
    assert restore(tree, away).returncode == 0 and tree.check().returncode == 1


def test_names_that_are_no_utf_8_come_back(tree, tmp_path):
    name = os.fsencode(tree.folder) + b"/\xff\xfe.txt"
    with open(name, "wb") as file:
        file.write(b"\xff")
    assert tree.check("--quarantine", tmp_path / "away", "--jsonl").returncode == 1
    assert not os.path.exists(name)
    assert restore(tree, tmp_path / "away").returncode == 0 and os.path.exists(name)


def test_what_has_come_to_a_files_place_is_not_replaced(tree, tmp_path):
    tree.put("a.txt", b"\xff")
    tree.put("b.txt", b"\xff\xff")
    away = tmp_path / "away"
    tree.check("--quarantine", away)
    tree.put("a.txt", "new")
    done = restore(tree, away)
    assert done.returncode == 1 and "another file is there" in done.stderr
    assert files_of(tree.folder) == {"a.txt": b"new", "b.txt": b"\xff\xff"}
    (tree.folder / "a.txt").unlink()
    assert restore(tree, away).returncode == 0
    assert files_of(tree.folder)["a.txt"] == b"\xff" and not away.exists()


def test_a_line_that_was_cut_off_stands_for_nothing(tree, tmp_path):
    tree.put("a.txt", b"\xff")
    away = tmp_path / "away"
    tree.check("--quarantine", away)
    with open(away / "manifest.jsonl", "a") as manifest:
        manifest.write('{"from": "/nowh')
    tree.put("b.txt", b"\xff\xff")
    assert tree.check("--quarantine", away).returncode == 1
    assert len((away / "manifest.jsonl").read_text().splitlines()) == 2
    assert restore(tree, away).returncode == 0 and set(files_of(tree.folder)) == {"a.txt", "b.txt"}


def test_a_check_that_is_killed_loses_no_file(tree, tmp_path):
    mix(tree, 600)
    before = files_of(tree.folder)
    for i in range(4):
        away = tmp_path / f"away{i}"
        process = start(tree, "--quarantine", away)
        for _ in range(1 + 60 * i):
            process.stdout.readline()
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        here, there = files_of(tree.folder), files_of(away)
        there.pop("manifest.jsonl", None)
        assert len(here) + len(there) == len(before)
        if (away / "manifest.jsonl").exists():
            assert restore(tree, away).returncode == 0
        assert files_of(tree.folder) == before


def test_a_restore_that_is_killed_can_be_run_again(tree, tmp_path):
    mix(tree, 300)
    before = files_of(tree.folder)
    away = tmp_path / "away"
    tree.check("--quarantine", away)
    for delay in 0.001, 0.002, 0.004:
        process = subprocess.Popen([str(tree.tool), "check", "--restore", str(away)])
        time.sleep(delay)
        process.kill()
        process.wait()
    if away.exists():
        assert restore(tree, away).returncode == 0
    assert files_of(tree.folder) == before


def test_quarantine_on_another_file_system(tree):
    away = pathlib.Path(f"/dev/shm/plimsoll-check-{os.getpid()}")
    if os.stat("/dev/shm").st_dev == os.stat(tree.folder).st_dev:
        pytest.skip("/dev/shm is on the same file system")
    path = tree.put("a.txt", b"\xff" * 200_000)
    os.utime(path, ns=(10**18, 10**18))
    path.chmod(0o640)
    try:
        assert tree.check("--quarantine", away).returncode == 1
        assert files_of(tree.folder) == {}
        # as if it had been killed when the copy was made, and the first one still there
        shutil.copy2(next(away.glob("*a.txt")), path)
        assert restore(tree, away).returncode == 0
        assert files_of(tree.folder) == {"a.txt": b"\xff" * 200_000} and not away.exists()
        assert tree.check("--quarantine", away).returncode == 1
        assert restore(tree, away).returncode == 0
        assert path.stat().st_mtime_ns == 10**18 and path.stat().st_mode & 0o777 == 0o640
    finally:
        shutil.rmtree(away, ignore_errors=True)


# Plans


def plan(tree, *options):
    done = tree.check("--plan", "--json", *options)
    return done.returncode, json.loads(done.stdout)


def test_a_plan_of_images_is_made_from_their_headers(tree):
    tree.put("a.jpg", picture(size=(100, 50))[:700])  # what is behind the header is not read
    tree.put("b.png", picture("PNG", size=(10, 10), mode="L"))
    status, answer = plan(tree, "--batch", "8", "--prefetch", "3")
    assert status == 0 and answer["fits"] is True
    assert (answer["n_elements"], answer["element_bytes"]) == (2, 15000)
    assert answer["mean_element_bytes"] == (15000 + 100) // 2
    assert (answer["batch_bytes"], answer["window_bytes"]) == (8 * 15000, 3 * 8 * 15000)
    assert answer["largest_batch"] == answer["line_bytes"] // (4 * 15000)


def test_a_plan_of_records_lines_and_arrays(tree):
    tree.put("a.tfrecord", record(example(label=[1])) + record(example(label=[1, 2, 3])))
    assert plan(tree)[1]["element_bytes"] == len(example(label=[1, 2, 3]))
    tree.put("b.txt", "short\n" + "x" * 100 + "\n")
    assert plan(tree)[1]["element_bytes"] == 100
    tree.put("c.npy", npy(np.zeros((10, 20), "f4")))
    status, answer = plan(tree)
    assert (answer["element_bytes"], answer["n_elements"]) == (800, 5)


def test_a_plan_that_does_not_fit_says_which_batch_would(tree):
    tree.put("a.npy", npy(np.zeros(10**6)))
    status, answer = plan(tree, "--batch", "1000000")
    assert status == 1 and answer["fits"] is False
    assert 0 < answer["largest_batch"] < 1000000
    status, answer = plan(tree, "--batch", str(answer["largest_batch"] // 2))
    assert status == 0 and answer["fits"] is True
    text = tree.check("--plan", "--batch", "1000000").stdout
    assert re.search(r"does not fit: .*; use batches of \d+ at most", text)


def test_a_plan_of_nothing_cannot_be_made(tree):
    tree.put("a.bin", b"\0")
    assert tree.check("--plan").returncode == 2

