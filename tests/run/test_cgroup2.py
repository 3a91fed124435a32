# SPDX-License-Identifier: Apache-2.0
"""What only cgroup v2 has: memory.high, oom.group, namespaces. tools/try-on-cgroup2 runs these where the
machine's own kernel has v1."""
import json
import subprocess

import pytest

from conftest import MIB, PLIMSOLL, wait_until


@pytest.fixture
def group(cgroup):
    made = cgroup(400 * MIB)
    if made.version != 2:
        pytest.skip("the memory controller is of cgroup v1 here: tools/try-on-cgroup2 boots a kernel with v2")
    return made


def sources(group, *before):
    """What `plimsoll budget` finds in a group, behind `unshare ... sh -c`."""
    shell = " && ".join([*before, f"exec {PLIMSOLL} budget --json"])
    done = subprocess.run(["unshare", "-C", "-m", "sh", "-c", shell] if before else [PLIMSOLL, "budget", "--json"],
                          preexec_fn=group.enter, capture_output=True, text=True, check=True)
    return [source for source in json.loads(done.stdout)["sources"] if source["name"].startswith("cgroup")]


def test_memory_high_is_the_limit_and_its_waits_are_told(run, program, group):
    (group.folder / "memory.high").write_text(str(150 * MIB))
    result = run(program("grow", static=True), 160, options=["--observe"], cgroup=group)
    assert result.rc == 0 and "memory.high" in result.report["memory"]["true_limit_source"]
    assert result.report["memory"]["n_throttles"] > 0


def test_a_group_that_is_killed_whole_is_told_from_the_record(session, program, group):
    (group.folder / "memory.oom.group").write_text("1")
    process = session.start(program("grow", static=True), 600, options=["--observe"], cgroup=group)
    process.wait()
    run, = session.state.glob("runs/*")
    wait_until(lambda: not group.pids(), "the group to empty")
    report = session.explain(run.name)
    assert report["verdict"] == "killed-for-memory"
    assert "the memory cgroup counted" in " ".join(report["evidence"])


def test_a_limit_on_an_ancestor_alone_is_found(group):
    found = sources(group.child("inner"))
    assert [source["limit_bytes"] for source in found if source.get("limit_bytes")] == [400 * MIB]


def test_a_namespace_with_a_mount_of_its_own_shows_its_limit(group):
    found = sources(group, "mount -t cgroup2 none /sys/fs/cgroup")
    assert [source["limit_bytes"] for source in found if source.get("limit_bytes")] == [400 * MIB]


def test_a_mount_that_cannot_be_written_to_shows_its_limit(group):
    found = sources(group, "mount -t cgroup2 none /sys/fs/cgroup", "mount -o remount,ro,bind /sys/fs/cgroup")
    assert [source["limit_bytes"] for source in found if source.get("limit_bytes")] == [400 * MIB]
