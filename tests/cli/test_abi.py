# SPDX-License-Identifier: Apache-2.0
"""What docs/abi.md promises to programs in C: structs keep their layout within a soname, options may
be shorter or longer than the library's own, and a NULL is refused, not followed."""

import os
import re
import subprocess
import sys

import pytest

OPTIONS = {
    "pl_budget_options", "pl_copy_options", "pl_csv_layout", "pl_dataset_options",
    "pl_device_options", "pl_evaluation_request", "pl_files_options", "pl_foreign", "pl_jpeg_options", "pl_run_options",
    "pl_runtime_options",
}  # fmt: skip


def without_comments(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def structs(root):
    """(name, [fields]) of each struct that a caller can see."""
    for header in sorted((root / "include/plimsoll").glob("*.h")):
        text = without_comments(header.read_text())
        for match in re.finditer(r"^typedef struct \w+ \{\n(.*?)^\} (\w+);", text, re.M | re.S):
            body = re.sub(r"union \{.*?\} (\w+);", r"int \1;", match[1], flags=re.S)
            fields = []
            for line in re.findall(r"([^;]+);", body):
                callback = re.search(r"\(\*(\w+)\)", line)
                names = [callback[1]] if callback else re.findall(r"(\w+)(?:\[[^]]*\])*(?:,|$)", line.strip())
                fields += names
            yield match[2], fields


def test_structs_have_the_layout_that_is_pinned(root, tmp_path, call):
    """A line that differs breaks programs that are compiled already: see docs/abi.md."""
    source = ["#include <plimsoll/plimsoll.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for name, fields in structs(root):
        source.append(f'printf("{name} %zu", sizeof({name}));')
        source += [f'printf(" {field}:%zu", offsetof({name}, {field}));' for field in fields]
        source.append('printf("\\n");')
    (tmp_path / "layout.c").write_text("\n".join([*source, "return 0; }"]))
    done = call("gcc", f"-I{root}/include", "-o", tmp_path / "layout", tmp_path / "layout.c")
    assert done.returncode == 0, done.stderr
    found = call(tmp_path / "layout").stdout
    pinned = root / "tests/symbols/libplimsoll.structs"
    if os.environ.get("PLIMSOLL_UPDATE"):
        pinned.write_text(found)
    assert found == pinned.read_text()


def test_options_begin_with_their_size(root):
    sized = {name for name, fields in structs(root) if fields[0] == "size"}
    assert sized == OPTIONS


@pytest.fixture(scope="module")
def library(meson_build):
    return (meson_build / "src/libplimsoll.so").resolve()


def run_program(root, tmp_path, library, call, text):
    (tmp_path / "program.c").write_text(text)
    done = call("gcc", "-Wall", f"-I{root}/include", "-o", tmp_path / "program",
                tmp_path / "program.c", library, f"-Wl,-rpath,{library.parent}")
    assert done.returncode == 0, done.stderr
    return call(tmp_path / "program")


def test_the_library_says_its_version(root, tmp_path, library, call):
    done = run_program(root, tmp_path, library, call, """
        #include <plimsoll/plimsoll.h>
        #include <stdio.h>
        int main(void)
        {
            printf("%s\\n", pl_version_text());
            return pl_version() != PLIMSOLL_VERSION;
        }""")
    assert (done.returncode, done.stdout) == (0, re.search(r"version: '([\d.]+)'",
                                              (root / "meson.build").read_text())[1] + "\n")


CALLERS = """
    #include <plimsoll/plimsoll.h>
    #include <errno.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    #include <sys/mman.h>

    /* At the end of a page, with nothing behind it: to read past `n` bytes is a fault. */
    static void *at_end(const void *options, size_t n)
    {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(two + page, page);
        return memcpy(two + page - n, options, n);
    }
    struct later { pl_runtime_options known; size_t unknown; };
    static int start(const void *options, pl_error *error)
    {
        pl_runtime *runtime = NULL;
        int r = pl_runtime_new(options, &runtime, error);
        pl_runtime_unref(runtime);
        return r;
    }
    int main(void)
    {
        pl_error error = {0};
        pl_runtime_options options = {.budget_text = "256M", .n_threads = 1};
        size_t size = sizeof options;
        if (start(at_end(&options, size), &error) != 0) return 1; /* 0: as in the first release */
        options.size = size;
        if (start(at_end(&options, size), &error) != 0) return 2;
        struct later later = {.known = options};
        later.known.size = sizeof later;
        if (start(at_end(&later, sizeof later), &error) != 0) return 3; /* set to 0: not used */
        later.unknown = 7;
        if (start(at_end(&later, sizeof later), &error) != -E2BIG) return 4;
        if (!strstr(error.message, "this version of the library")) return 5;
        options.size = 8;
        if (start(at_end(&options, size), &error) != -EINVAL) return 6;
        return 0;
    }"""


def test_callers_of_other_versions_are_understood(root, tmp_path, library, call):
    done = run_program(root, tmp_path, library, call, CALLERS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_options_that_are_too_short_for_a_later_field_have_none(root, tmp_path, call):
    """What a library of tomorrow does with a caller of today, whose struct ends before its fields."""
    (tmp_path / "program.c").write_text("""
        #include "base/base.h"
        #include <string.h>
        typedef struct today { size_t size; int a, b; } today;
        typedef struct tomorrow { size_t size; int a, b, c, d; } tomorrow;
        static int take(const tomorrow *options, tomorrow *ret)
        {
            PL_TAKE_OPTIONS(tomorrow, options, b, NULL);
            *ret = *options;
            return 0;
        }
        int main(void)
        {
            today small[2] = {{.a = 1, .b = 2}, {.size = 99, .a = 98, .b = 97}};
            tomorrow got;
            for (size_t size = 0; size <= sizeof(today); size += sizeof(today)) {
                small[0].size = size;
                memset(&got, 0xff, sizeof got);
                if (take((const tomorrow *)small, &got) != 0) return 1;
                if (got.a != 1 || got.b != 2 || got.c != 0 || got.d != 0) return 2;
            }
            return 0;
        }""")
    done = call("gcc", f"-I{root}/include", f"-I{root}/src", "-o", tmp_path / "program",
                tmp_path / "program.c", root / "src/base/options.c", root / "src/base/error.c",
                "-D_GNU_SOURCE", "-DPL_VERSION=\"0\"")
    assert done.returncode == 0, done.stderr
    assert call(tmp_path / "program").returncode == 0


def test_no_function_follows_a_null(root, library, tmp_path):
    """Each exported function with each of its pointers NULL, and with all: in a process of its own,
    which begins behind the call that it died of."""
    script = root / "tests/cli/null_calls.py"
    crashed, first = [], 0
    while True:
        done = subprocess.run(
            [sys.executable, str(script), str(library), str(root / "include/plimsoll"), str(first)],
            cwd=tmp_path, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        calls = [line for line in done.stdout.splitlines() if line.startswith("call ")]
        if done.returncode == 0:
            break
        assert done.returncode < 0, done.stderr[-2000:]
        crashed.append(calls[-1])
        first += len(calls)
    assert crashed == []
    called = set(re.findall(r"^call (\w+)", done.stdout, re.M)) if first == 0 else set()
    pinned = set((root / "tests/symbols/libplimsoll.exports").read_text().split())
    takes_none = {"pl_dataset_cancel", "pl_dataset_random_stream", "pl_error_kind_name", "pl_error_name",
                  "pl_error_text",
                  "pl_op_attr_name", "pl_op_attr_type", "pl_op_is_elementwise", "pl_op_n_attrs",
                  "pl_op_name", "pl_stream_mix", "pl_trace_next", "pl_version",
                  "pl_version_text"}  # fmt: skip
    assert called == pinned - takes_none
    assert "refused pl_graph_add: pl_graph_add: 'graph' is NULL" in done.stdout
