# SPDX-License-Identifier: Apache-2.0
"""docs/ops.md is what the table of ops says."""

import subprocess

import graph_tool


def test_the_page_of_ops_is_that_of_the_table():
    written = subprocess.run([str(graph_tool.ROOT / "tools/write-ops-page"), "--print"],
                             capture_output=True, text=True, timeout=300, check=True).stdout
    assert "| `add` | 2 | numbers | the same |" in written
    page = (graph_tool.ROOT / "docs/ops.md").read_text()
    assert page == written, "run tools/write-ops-page"
