# SPDX-License-Identifier: Apache-2.0
"""`plimsoll check` as a command: order, forms, exit status, Ctrl-C, memory, quarantine, plans."""

import ctypes
import errno
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import numpy as np
import pytest
from PIL import Image

from check_tree import Tree, example, npy, picture, png_header, program, record
from support import MIB, PYTHON, cgroup, wait_until  # noqa: F401: a fixture


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


def test_lines_have_the_same_keys_also_where_more_was_found(tree):
    tree.put("a.csv", "a,b\n" + "1\n" * 3)
    (line,) = map(json.loads, tree.check("--jsonl").stdout.splitlines())
    assert set(line) == {"path", "format", "offset", "reason", "severity"}
    assert line["reason"].endswith("(and 2 more)")
    (found,) = json.loads(tree.check("--json").stdout)["findings"]
    assert found["n_more"] == 2 and "more)" not in found["reason"]


def test_thousands_of_files_are_looked_at_once_each(tree):
    for i in range(3000):
        tree.put(f"{i % 10}/{i}.txt", f"{i}")
    answer = json.loads(tree.check("--json", "--jobs", "4").stdout)
    assert (answer["n_files"], answer["n_checked"]) == (3000, 3000)
    assert answer["formats"] == {"text": 3000}
    assert answer["n_bytes"] == sum(len(str(i)) for i in range(3000))


def test_large_files_among_small_ones_come_in_order(tree):
    """Small ones are taken many at a time, large ones one by one."""
    expected = []
    for i in range(400):
        is_large, is_bad = i % 50 > 46, i % 10 > 7
        tree.put(f"{i:03}.txt", f"{i}\n".encode() * (80_000 if is_large else 1) + b"\xff" * is_bad)
        expected += [f"{tree.folder}/{i:03}.txt"] * is_bad
    answers = {tree.check("--jsonl", "--jobs", jobs).stdout for jobs in ("1", "2", "3", "16")}
    assert len(answers) == 1
    assert [json.loads(line)["path"] for line in answers.pop().splitlines()] == expected


def refuse_unshare():
    """As containers do: the call, and no other, fails from here on, also in what is started."""
    number = {"x86_64": 272, "aarch64": 97}[os.uname().machine]
    load, jump_if_equal, ret = 0x20, 0x15, 0x06  # of classic BPF
    allow, fail = 0x7FFF0000, 0x00050000 | errno.EPERM
    program = [(load, 0, 0, 0), (jump_if_equal, 0, 1, number), (ret, 0, 0, fail), (ret, 0, 0, allow)]
    code = b"".join(struct.pack("=HBBI", *line) for line in program)
    room = ctypes.create_string_buffer(code, len(code))
    filter = struct.pack("HxxxxxxP", len(program), ctypes.addressof(room))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    assert libc.prctl(no_new_privileges, 1, 0, 0, 0) == 0
    assert libc.prctl(set_seccomp, by_filter, filter, 0, 0) == 0
    assert libc.unshare(0) == -1 and ctypes.get_errno() == errno.EPERM


def test_threads_share_descriptors_where_they_have_to(tree):
    mix(tree, 1000)
    own = tree.check("--jsonl", "--jobs", "4")
    shared = tree.check("--jsonl", "--jobs", "4", preexec_fn=refuse_unshare)
    assert (own.returncode, own.stderr) == (shared.returncode, shared.stderr) == (1, "")
    assert own.stdout == shared.stdout


def test_json_has_findings_and_summary(tree):
    tree.put("good.txt", "x")
    tree.put("bad.txt", b"\xff")
    result = tree.check("--json")
    answer = json.loads(result.stdout)
    assert result.returncode == 1 and result.stderr == ""
    assert [finding["severity"] for finding in answer["findings"]] == ["error"]
    assert (answer["n_errors"], answer["n_warnings"], answer["n_notes"]) == (1, 0, 0)
    assert answer["interrupted"] is False


def test_every_file_is_counted_once_in_json_as_in_the_text(tree):
    tree.put("good.txt", "x")
    tree.put("nothing.jpg", b"")
    tree.put("what.xyz", bytes(range(256)))
    (tree.folder / "broken.png").symlink_to("nowhere")
    answer = json.loads(tree.check("--json").stdout)
    assert answer["formats"] == {"text": 1, "jpeg": 1}
    assert (answer["n_unknown"], answer["n_unread"]) == (1, 1)
    assert sum(answer["formats"].values()) + 2 == answer["n_checked"] == answer["n_files"] == 4
    summary = tree.check().stdout.splitlines()[-2]
    assert summary.endswith("(1 jpeg, 1 text); 1 of unknown format, not checked; 1 empty or unreadable")


def test_text_has_no_bar_without_a_terminal_and_ends_in_a_summary(tree):
    tree.put("a.txt", "x")
    tree.put("b.jpg", picture("PNG"))
    result = tree.check()
    assert result.stderr == "" and "\r" not in result.stdout
    assert "0 errors, 1 warning, 0 notes" in result.stdout.splitlines()[-1]


def test_a_terminal_gets_a_bar(tree):
    mix(tree, 50)
    leader, follower = pty.openpty()
    words = [str(tree.tool), "check", "--jobs", "1", str(tree.folder)]  # which first finds all files
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=follower, timeout=300)
    shown = os.read(leader, 65536).decode()
    os.close(leader)
    os.close(follower)
    assert done.returncode == 1
    assert re.search(r"\r\[[#-]{24}\] \d+ of 50 files, \d+ files/s, [\d.]+ MB/s, \d+ s left", shown)


@pytest.mark.parametrize("columns", [30, 60, 80])
def test_the_bar_stays_in_one_line_of_the_terminal(tree, columns):
    mix(tree, 50)
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, columns))
    words = [str(tree.tool), "check", "--jobs", "1", str(tree.folder)]
    subprocess.run(words, stdout=subprocess.PIPE, stderr=follower, timeout=300)
    shown = os.read(leader, 65536).decode().replace("\x1b[K", "")
    os.close(leader)
    os.close(follower)
    assert "of 50 files" in shown and max(map(len, shown.split("\r"))) < columns


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
        (["--format", "gif", "/tmp"], "unknown format 'gif'"),
        (["--jobs", "0", "/tmp"], "'0' is not a number for --jobs"),
        (["--restore", "/nowhere"], "cannot find the folder '/nowhere'"),
        (["--restore", "/", "--yes"], "cannot open '//manifest.jsonl'"),
        (["--yes", "/tmp"], "--yes needs --restore"),
        (["--restore", "/tmp", "/tmp"], "--restore takes no paths"),
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


def test_a_sample_says_nothing_of_labels(tree):
    for name in [f"{i}/{j}.txt" for i in range(8) for j in range(10)]:
        tree.put(name, name)
    assert tree.check("--sample", 12).stdout.startswith("12 files")


def test_hidden_files_and_links_to_folders_are_passed_over(tree):
    tree.put(".git/a.txt", b"\xff")
    tree.put("sub/b.txt", "x")
    tree.put("sub/.hidden", b"\xff")
    (tree.folder / "sub/again").symlink_to("..")
    answer = json.loads(tree.check("--json").stdout)
    assert answer["n_checked"] == 1 and answer["n_errors"] == 0


@pytest.mark.parametrize("leads_to", ["missing", "link.jpg", "good.txt/file"])
def test_a_link_that_leads_nowhere_is_an_error(tree, leads_to):
    tree.put("good.txt", "x")
    (tree.folder / "link.jpg").symlink_to(leads_to)
    answer = json.loads(tree.check("--json").stdout)
    assert [finding["path"][-8:] for finding in answer["findings"]] == ["link.jpg"]
    assert answer["findings"][0]["reason"].startswith("it cannot be read: ")
    assert answer["n_checked"] == 2 and answer["n_unknown"] == 0


def test_a_path_that_is_not_utf_8_can_be_had(tree):
    path = os.fsencode(tree.folder) + b"/caf\xe9.txt"
    pathlib.Path(os.fsdecode(path)).write_bytes(b"\xff")
    line = json.loads(tree.check("--jsonl").stdout)
    assert bytes.fromhex(line["path_hex"]) == path and "caf" in line["path"]
    os.rename(path, os.fsencode(tree.folder) + "/café.txt".encode())
    assert "path_hex" not in json.loads(tree.check("--jsonl").stdout)


def test_a_pipe_is_passed_over(tree):
    os.mkfifo(tree.folder / "pipe.txt")
    assert json.loads(tree.check("--json").stdout)["n_files"] == 0


@pytest.mark.parametrize(
    "name, n, says",
    [(200 * "d", 22, "File name too long"), ("d", 260, "more than 256 folders deep")]
)
def test_folders_that_are_too_deep_are_told_and_the_rest_is_looked_at(tree, name, n, says):
    tree.put("a.txt", b"\xff")
    tree.put("z/b.txt", b"b\xff")
    folder = os.open(tree.folder, os.O_DIRECTORY)
    for _ in range(n):
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_DIRECTORY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    answer = json.loads(tree.check("--json").stdout)
    first, deep, last = answer["findings"]
    assert first["path"].endswith("a.txt") and last["path"].endswith("z/b.txt")
    assert says in deep["reason"] and deep["severity"] == "error"


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_folders_of_one_file_each_are_told_in_order(tree, jobs):
    names = [f"{i:03}/{j}/x.txt" for i in range(40) for j in range(5)]
    for name in names:
        tree.put(name, b"\xff" + name.encode())
    found = json.loads(tree.check("--json", "--jobs", jobs).stdout)["findings"]
    assert [one["path"] for one in found if one["severity"] == "error"] == [
        str(tree.folder / name) for name in names
    ]


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


def test_an_interruption_while_copies_are_compared_is_told(tree):
    for name in "ab":
        with open(tree.folder / f"{name}.bin", "wb") as file:
            file.truncate(64 * 1024 * MIB)  # no format: read for its copy only
    process = start(tree)

    def compares():
        infos = pathlib.Path(f"/proc/{process.pid}/fdinfo").glob("*")
        return any(int(info.read_text().split()[1]) > MIB for info in infos)

    wait_until(compares, "the comparison")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "") and "interrupted after 2 of 2 files" in out


def test_an_interruption_ends_all_threads(tree):
    tree.put("a.txt", b"\xff")
    for name in "bcd":
        large_text(tree, f"{name}.txt", 40_000)
    process = start(tree, "--jobs", "3")
    assert "a.txt" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=300)
    assert process.returncode == 130 and errors == ""
    assert "interrupted after 1 of 4 files" in rest and "1 error" in rest


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


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_a_quote_that_nothing_closes_takes_no_more_memory(tree, jobs):
    for i in range(4):
        tree.put(f"{i}.csv", b'a,b\n1,"' + b"%d" % i * (40 * MIB))
    script = 'import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode != 1)'
    words = (PYTHON, "-c", script, tree.tool, "check", tree.folder, "--jobs", jobs)
    assert peak_bytes(*words) < 64 * MIB


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


def restore(tree, away, *words):
    words = [str(tree.tool), "check", "--restore", str(away), *(words or ["--yes"])]
    return subprocess.run(words, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(("jobs", "n"), [("1", 60), ("2", 60), ("8", 600)])
def test_bad_files_go_to_quarantine_and_come_back(tree, tmp_path, jobs, n):
    bad = mix(tree, n)
    before = files_of(tree.folder)
    away = tmp_path / "away"
    result = tree.check("--quarantine", away, "--jsonl", "--jobs", jobs)
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
        process = subprocess.Popen([str(tree.tool), "check", "--restore", str(away), "--yes"])
        time.sleep(delay)
        process.kill()
        process.wait()
    if away.exists():
        assert restore(tree, away).returncode == 0
    assert files_of(tree.folder) == before


def test_a_number_is_given_once_also_after_some_were_restored(tree, tmp_path):
    for name in "abc":
        tree.put(f"{name}/x.txt", name.encode() + b"\xff")
    away = tmp_path / "away"
    tree.check("--quarantine", away)
    tree.put("c/x.txt", "new")
    assert restore(tree, away).returncode == 1
    assert tree.check("--quarantine", away).returncode == 1
    assert {path.name for path in away.glob("*.txt")} == {
        f"{number:06}-x.txt" for number in (3, 4, 5)
    }
    (tree.folder / "c/x.txt").unlink()
    assert restore(tree, away).returncode == 0
    assert files_of(tree.folder) == {f"{name}/x.txt": name.encode() + b"\xff" for name in "abc"}


def test_what_cannot_be_moved_is_told_and_the_rest_is_checked(tree, tmp_path):
    tree.put("gone.txt", b"\xff")
    tree.put("z.txt", b"\xff\xff")
    deep = tree.folder.joinpath(*["d"] * 256)
    deep.mkdir(parents=True)
    away = tmp_path / "away"
    # twice the same: the second time it has been moved
    result = tree.check(tree.folder, "--quarantine", away, "--jsonl", "--jobs", "1")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.returncode == 2 and "could not be moved to" in result.stderr
    stays = {os.path.relpath(line["path"], tree.folder) for line in lines if "not_moved" in line}
    assert stays == {"gone.txt", "z.txt", os.path.relpath(deep, tree.folder)}
    assert len(files_of(away)) == 3 and deep.exists()
    assert len((away / "manifest.jsonl").read_text().splitlines()) == 2
    assert restore(tree, away).stdout == "2 files moved back, 0 left\n"


def test_a_folder_that_cannot_be_written_to_keeps_its_file(tree, tmp_path):
    tree.put("a/x.txt", b"\xff")
    tree.put("b.txt", b"\xff")
    (tree.folder / "a").chmod(0o555)
    words = [str(tree.tool), "check", str(tree.folder), "--quarantine", str(tmp_path / "away")]
    if os.getuid() == 0:  # who may write anywhere, but for this
        words = ["setpriv", "--bounding-set=-dac_override", *words]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "not moved: Permission denied" in done.stdout
    assert set(files_of(tree.folder)) == {"a/x.txt"} and "2 errors" in done.stdout


def test_links_go_to_quarantine_as_links(tree):
    away = pathlib.Path(f"/dev/shm/plimsoll-links-{os.getpid()}")
    tree.put("x.txt", b"\xff")
    (tree.folder / "k.txt").symlink_to("x.txt")
    (tree.folder / "l").symlink_to("/nowhere")
    try:
        assert tree.check("--quarantine", away).returncode == 1
        assert list(tree.folder.iterdir()) == []
        # as if it had been killed when a copy was made, and the first one still there
        (tree.folder / "l").symlink_to("/nowhere")
        assert restore(tree, away).returncode == 0 and not away.exists()
        links = {path.name: os.readlink(path) for path in tree.folder.iterdir() if path.is_symlink()}
        assert links == {"k.txt": "x.txt", "l": "/nowhere"}
    finally:
        shutil.rmtree(away, ignore_errors=True)


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


def test_files_go_to_another_file_system_whichever_thread_moves_them(tree):
    """Each thread has a table of descriptors of its own; which of them finds a file is chance."""
    away = pathlib.Path(f"/dev/shm/plimsoll-many-{os.getpid()}")
    if os.stat("/dev/shm").st_dev == os.stat(tree.folder).st_dev:
        pytest.skip("/dev/shm is on the same file system")
    try:
        for i in range(16):
            tree.put(f"{i}.txt", b"\xff")
            assert tree.check("--quarantine", away, "--jobs", "2").returncode == 1
            assert files_of(tree.folder) == {} and len(list(away.glob("*.txt"))) == i + 1
    finally:
        shutil.rmtree(away, ignore_errors=True)


# Quarantines that somebody else made


def plant(folder, *lines):
    """A quarantine as a download may bring it: a manifest, and a file for each line."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        if re.fullmatch("[0-9]{6}-[a-z]+", line["to"]):
            (folder / line["to"]).write_text("planted")
    return folder


def test_where_files_go_back_to_is_shown_and_nothing_moved_without_a_terminal_or_yes(tree, tmp_path):
    target = tmp_path / "home\x1b[2J"
    target.mkdir()
    away = plant(tmp_path / "away", {"from": str(target / "rc"), "to": "000001-rc", "reason": ""})
    before = files_of(tmp_path)
    done = restore(tree, away, "--restore", str(away))
    assert done.returncode == 2 and "nothing was moved" in done.stderr and "--yes" in done.stderr
    assert "000001-rc goes back to '" in done.stdout and "home [2J/rc'" in done.stdout
    assert files_of(tmp_path) == before
    done = restore(tree, away)
    assert (done.returncode, done.stdout) == (0, "1 file moved back, 0 left\n")
    assert (target / "rc").read_text() == "planted"


@pytest.mark.parametrize(("answer", "moved"), [("y", True), ("YES", True), ("n", False), ("", False)])
def test_at_a_terminal_it_is_asked(tree, tmp_path, answer, moved):
    away = plant(tmp_path / "away", {"from": str(tmp_path / "rc"), "to": "000001-rc", "reason": ""})
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(tree.tool), "check", "--restore", str(away)], stdin=theirs,
                               stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.write(ours, f"{answer}\n".encode())
    said, _ = process.communicate(timeout=300)
    os.close(theirs)
    os.close(ours)
    assert (tmp_path / "rc").exists() is moved and "goes back to" in said
    assert said.endswith("1 file moved back, 0 left\n" if moved else "0 files moved back, 1 left\n")
    assert process.returncode == (0 if moved else 1)


@pytest.mark.parametrize("line", [
    {"from": "{}/a/../b/rc", "to": "000001-rc"},
    {"from": "rc", "to": "000001-rc"},
    {"from": "{}/..", "to": "000001-rc"},
    {"from": "{}/rc/", "to": "000001-rc"},
    {"from": "{}/linked/rc", "to": "000001-rc"},
    {"from": "{}/linked/b/rc", "to": "000001-rc"},
    {"from": "{}/rc", "to": "../secret"},
    {"from": "{}/rc", "to": "manifest.jsonl"},
    {"from": "{}/rc", "to": "secret"},
    {"from": "{}/rc", "to": ".."},
])  # fmt: skip
def test_a_manifest_names_whole_paths_without_links_and_files_that_were_put_there(tree, tmp_path, line):
    for name in "a", "b":
        (tmp_path / name).mkdir()
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "linked").symlink_to("a" if "/b/" not in line["from"] else ".")
    away = plant(tmp_path / "away",
                 {key: value.format(tmp_path) for key, value in {**line, "reason": ""}.items()})
    (away / "secret").write_text("kept")
    before = files_of(tmp_path)
    done = restore(tree, away)
    assert done.returncode == 1 and "stays in quarantine" in done.stderr
    assert ("/../" in line["from"]) == ("it: move it by hand" in done.stderr)
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("name", ["manifest.jsonl", "manifest.jsonl.left"])
@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_nothing_is_written_through_a_link_in_a_quarantine(tree, tmp_path, name, link):
    victim = tmp_path / "victim"
    victim.write_text('{"precious": 1}\n{"to')  # a last line that would be cut off
    away = plant(tmp_path / "away", {"from": "/nowhere/rc", "to": "000001-rc", "reason": ""})
    (away / name).unlink(missing_ok=True)
    (away / name).symlink_to(victim) if link == "symbolic" else os.link(victim, away / name)
    tree.put("a.txt", b"\xff")
    there = tree.check("--quarantine", away)
    back = restore(tree, away)
    assert victim.read_text() == '{"precious": 1}\n{"to'
    if name == "manifest.jsonl":
        assert there.returncode == back.returncode == 2
        assert ("it is a link" if link == "symbolic" else "not a file of its own") in back.stderr
        assert files_of(tree.folder) == {"a.txt": b"\xff"}


def test_a_pipe_in_the_manifests_place_is_not_waited_for(tree, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    os.mkfifo(away / "manifest.jsonl")
    assert "not a file of its own" in restore(tree, away).stderr


def test_a_quarantine_is_the_users_own(tree, tmp_path):
    away = plant(tmp_path / "away", {"from": str(tmp_path / "rc"), "to": "000001-rc", "reason": ""})
    away.chmod(0o777)
    done = restore(tree, away)
    assert done.returncode == 2 and "written to by everybody" in done.stderr
    away.chmod(0o755)
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    for path in away, away / "manifest.jsonl":
        os.chown(path, 12345, -1)
        for done in restore(tree, away), tree.check("--quarantine", away):
            assert done.returncode == 2 and "belongs to another user (12345)" in done.stderr
        os.chown(path, 0, -1)
    assert not (tmp_path / "rc").exists()


def test_a_copy_between_file_systems_writes_through_no_link(tree, tmp_path):
    """Where a name had to be guessed before, "x.partial", is now no name at all."""
    away = pathlib.Path(f"/dev/shm/plimsoll-partial-{os.getpid()}")
    if os.stat("/dev/shm").st_dev == os.stat(tree.folder).st_dev:
        pytest.skip("/dev/shm is on the same file system")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    tree.put("a.txt", b"\xff")
    (tree.folder / "a.txt.partial").symlink_to(victim)
    mine = tree.put("b.txt.partial", "mine")
    tree.put("b.txt", b"\xff")
    try:
        assert tree.check("--quarantine", away).returncode == 1
        assert len(files_of(away)) == 3
        assert restore(tree, away).returncode == 0
        assert set(path.name for path in tree.folder.iterdir()) == {
            "a.txt", "b.txt", "a.txt.partial", "b.txt.partial"
        }  # fmt: skip
        assert victim.read_text() == "precious" and mine.read_text() == "mine"
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


def test_a_plan_measures_records_of_any_features(tree):
    tree.put("a.tfrecord", record(example(label=[1])) + record(example(label=[1.5])))
    status, answer = plan(tree)
    assert (status, answer["n_elements"], answer["n_errors"]) == (0, 2, 0)


def test_a_plan_of_json_lines_counts_lines(tree):
    tree.put("a.jsonl", '{"a": 1}\n{"a": 22}\n')
    answer = plan(tree)[1]
    assert (answer["n_elements"], answer["element_bytes"]) == (2, 9)


def test_a_plan_that_does_not_fit_says_which_batch_would(tree):
    tree.put("a.npy", npy(np.zeros(10**6)))
    status, answer = plan(tree, "--batch", "1000000")
    assert status == 1 and answer["fits"] is False
    assert 0 < answer["largest_batch"] < 1000000
    status, answer = plan(tree, "--batch", str(answer["largest_batch"] // 2))
    assert status == 0 and answer["fits"] is True
    text = tree.check("--plan", "--batch", "1000000").stdout
    assert re.search(r"does not fit: .*; use batches of at most \d+", text)


def test_a_budget_in_the_environment_is_kept_and_planned_for(tree):
    tree.put("a.jpg", picture(size=(3000, 2000)))
    env = {**os.environ, "PLIMSOLL_BUDGET": "16M"}
    answer = json.loads(tree.check("--plan", "--json", "--batch", "1", env=env).stdout)
    assert answer["line_bytes"] <= 16 * MIB and not answer["fits"]
    done = tree.check("--json", env=env)
    (found,) = json.loads(done.stdout)["findings"]
    assert done.returncode == 1 and found["reason"].startswith("no room for 17.2 MiB for 'the pixels': ")
    done = tree.check(env={**os.environ, "PLIMSOLL_BUDGET": "much"})
    assert done.returncode == 2 and "'much' is not a size" in done.stderr


def test_a_plan_says_that_files_could_not_be_measured(tree):
    tree.put("a.txt", "x\n")
    assert plan(tree)[1]["n_errors"] == 0 and "not all" not in tree.check("--plan").stdout
    tree.put("long.txt", b"x" * (17 << 20))  # a line that no dataset would read
    assert plan(tree)[1]["n_errors"] == 1
    assert "not all   of 1 file could be measured" in tree.check("--plan").stdout


def test_a_plan_is_not_for_bombs(tree):
    tree.put("a.png", picture("PNG", size=(10, 10), mode="L"))
    tree.put("bomb.png", png_header(60_000, 60_000))
    status, answer = plan(tree)
    assert (status, answer["n_elements"], answer["element_bytes"]) == (0, 1, 100)
    assert answer["n_errors"] == 1


def test_a_plan_of_nothing_cannot_be_made(tree):
    tree.put("a.bin", b"\0")
    assert tree.check("--plan").returncode == 2

