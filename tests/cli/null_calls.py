# SPDX-License-Identifier: Apache-2.0
"""Calls every function of the public headers that takes a pointer: once with all of them NULL, and
once for each with that one NULL and the others as good as they can be. Prints each call before it is
made, so that whoever reads it knows what ended this process.

    null_calls.py LIBRARY INCLUDE FIRST      begins with call number FIRST
"""

import ctypes
import os
import pathlib
import re
import sys

ENDS = ("_unref", "_free", "_close")  # what they are given would be gone for the calls behind them
DECLARATION = re.compile(
    r"^PL_API\s+(?:PL_MUST_CHECK\s+)?([^;(]*?)\b(pl_\w+)\(([^;]*?)\)(?:\s*__attribute__\(\(.*?\)\)\))?;",
    re.MULTILINE | re.DOTALL,
)


def split(text):
    parts, depth, part = [], 0, ""
    for c in " ".join(text.split()):
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
            continue
        depth += (c == "(") - (c == ")")
        part += c
    return [*parts, part.strip()]


def declarations(include):
    for header in sorted(include.glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.DOTALL)
        for kind, name, arguments in DECLARATION.findall(text):
            yield kind.strip(), name, [one for one in split(arguments) if one not in ("void", "...")]


def is_pointer(argument):
    return "*" in argument or "[" in argument


def argument_name(argument):
    callback = re.search(r"\(\*(\w+)\)", argument)
    return callback[1] if callback else re.sub(r"\[.*", "", argument).split()[-1].strip("*")


class Good:
    """Arguments that are what they should be, as far as one can know from their types."""

    def __init__(self, library):
        self.kept = []
        self.library = library
        shape = (ctypes.c_int64 * 9)()  # a rank in its first half; scalar
        self.by_type = {"pl_shape *": ctypes.addressof(shape), "char *": self.text(b"x")}
        self.kept.append(shape)
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda context: None)
        self.by_type["pl_runtime *"] = self.make("pl_runtime_new", 0)
        self.by_type["pl_graph *"] = self.make("pl_graph_new")
        graph, runtime = self.by_type["pl_graph *"], self.by_type["pl_runtime *"]
        self.by_type["pl_node *"] = self.make("pl_graph_variable", graph, self.text(b"v"), 11,
                                              self.by_type["pl_shape *"])
        self.by_type["pl_session *"] = self.make("pl_session_new", graph, runtime)
        self.by_type["pl_dataset *"] = self.make("pl_dataset_range", runtime, 0, 3, 1)
        self.by_type["pl_iterator *"] = self.make("pl_iterator_new", self.by_type["pl_dataset *"])
        self.by_type["pl_live *"] = self.make("pl_live_new", runtime, 0)
        self.by_type["pl_tensor *"] = self.make("pl_tensor_new", runtime, 11, self.by_type["pl_shape *"],
                                                self.room(), 0)
        self.by_type["pl_expr *"] = self.make("pl_expr_of_value", self.by_type["pl_tensor *"])
        self.by_type["pl_evaluator *"] = self.make("pl_evaluator_new", runtime, 0)
        self.by_type["pl_evaluation *"] = self.make("pl_evaluation_new", self.by_type["pl_evaluator *"],
                                                    self.room())
        self.by_type["pl_traced *"] = self.make("pl_traced_new", 0, 0, 0, 0, 0)
        params = (ctypes.c_uint64 * 2)(1 << 30, 1 << 20)
        self.by_type["pl_ledger *"] = self.make("pl_ledger_create", self.text(b"ledger-%d" % os.getpid()),
                                                ctypes.addressof(params))

    def text(self, value):
        self.kept.append(ctypes.create_string_buffer(value, 64))
        return ctypes.addressof(self.kept[-1])

    def room(self, words=4096):  # pl_budget has the most
        self.kept.append((ctypes.c_uint64 * words)())
        return ctypes.addressof(self.kept[-1])

    def make(self, function, *arguments):
        """What a constructor gives, its last but one argument."""
        result, error = ctypes.c_void_p(), ctypes.create_string_buffer(1024)
        given = [ctypes.c_int64(one) if one < 1 << 20 else ctypes.c_void_p(one) for one in arguments]
        r = getattr(self.library, function)(*given, ctypes.byref(result), error)
        if r < 0 or not result.value:
            sys.exit(f"{function}: {r} {error.raw[509:].partition(bytes(1))[0]}")
        return result.value

    def of(self, argument):
        if "(*" in argument:
            return ctypes.cast(self.callback, ctypes.c_void_p)
        kind = re.sub(r"\bconst\b ?", "", argument)
        kind = re.sub(r"\w+(\[.*)?$", "", kind).strip() if not kind.endswith("*") else kind
        if kind in self.by_type:
            return ctypes.c_void_p(self.by_type[kind])
        inner = re.sub(r" ?\*$", "", kind).strip()
        if kind.endswith("**") and argument_name(argument)[:4] != "ret_" or inner.endswith(" *const"):
            inner = inner.replace("*const", "*")
        if inner in self.by_type and not argument_name(argument).startswith("ret_"):
            self.kept.append((ctypes.c_void_p * 8)(*([self.by_type[inner]] * 8)))
            return ctypes.c_void_p(ctypes.addressof(self.kept[-1]))
        if is_pointer(argument):
            return ctypes.c_void_p(self.room())
        return ctypes.c_double(1) if "double" in argument else ctypes.c_int64(1)


class Attr(ctypes.Structure):
    """pl_attr, and what else is returned in memory: as large as any of them."""

    _fields_ = [("words", ctypes.c_uint64 * 4)]


class Count(ctypes.Structure):
    _fields_ = [("n_bad", ctypes.c_uint64), ("n_items", ctypes.c_uint64)]


class Type(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 10)]


def result_type(kind):
    if "*" in kind:
        return ctypes.c_void_p
    return {"void": None, "pl_attr": Attr, "pl_bad_count": Count, "pl_type": Type}.get(kind, ctypes.c_int64)


def cases(include):
    for kind, name, arguments in declarations(include):
        pointers = [i for i, argument in enumerate(arguments) if is_pointer(argument)]
        if pointers:
            yield kind, name, arguments, set(pointers)
        if len(pointers) > 1 and not name.endswith(ENDS):
            for pointer in pointers:
                yield kind, name, arguments, {pointer}


def main():
    library = ctypes.CDLL(sys.argv[1])
    good = Good(library)
    for number, (kind, name, arguments, nulls) in enumerate(cases(pathlib.Path(sys.argv[2]))):
        if number < int(sys.argv[3]):
            continue
        words = ", ".join(argument_name(arguments[i]) for i in sorted(nulls))
        print(f"call {name} with NULL for {words}", flush=True)
        function = getattr(library, name)
        function.restype = result_type(kind)
        error = ctypes.create_string_buffer(1024)
        given = []
        for i, argument in enumerate(arguments):
            if argument.endswith("reterr"):
                given.append(None if nulls == {i} else error)
            elif i in nulls:
                given.append(None)
            elif len(nulls) > 1 and not is_pointer(argument):
                given.append(ctypes.c_double(0) if "double" in argument else ctypes.c_int64(1))
            else:
                given.append(good.of(argument))
        function(*given)
        message = error.raw[509:].partition(b"\0")[0].decode()
        if message:
            print(f"refused {name}: {message}", flush=True)


if __name__ == "__main__":
    main()
