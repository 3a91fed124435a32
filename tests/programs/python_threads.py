# SPDX-License-Identifier: Apache-2.0
"""Blocks threads in every kind of Python frame, and says where Python itself sees them.

One line of JSON on stdout, once all are blocked: runtime (address of _PyRuntime), version
(sys.hexversion), and threads: by ident, the frames as [line, function, file], innermost first.
Then it stays as it is until stdin ends. For Python 3.8 and later.
"""
import asyncio
import ctypes
import json
import os
import sys
import tempfile
import threading
import time

gate = threading.Lock()
gate.acquire()


def block():
    gate.acquire()


def plain():
    x = 1

    # Lines without code between those with code: the tables skip.
    block(); return x


def recursion(depth=300):
    if depth == 0:
        return block()
    return recursion(depth - 1)


def generator():
    def numbers():
        yield 1
        block()
        yield 2

    def outer():
        yield from numbers()

    for _ in outer():
        pass


def coroutine():
    async def leaf():
        block()

    async def middle():
        await asyncio.sleep(0)
        await leaf()

    async def loop():
        async for _ in stream():
            pass

    async def stream():
        yield 0
        await middle()

    asyncio.run(loop())


def comprehension():
    return [
        [
            block() if y == x else y
            for y in range(3)
        ]
        for x in range(3)
    ]


def expressions():
    return sorted(
        [3, 1, 2],
        key=lambda n:
            block()
            or n,
    )


class Thing:
    def __init__(self):
        self.method()

    def method(self):
        type(self).class_method()

    @classmethod
    def class_method(cls):
        cls.static_method()

    @staticmethod
    def static_method():
        class Nested:
            def __getattr__(self, name):
                block()

        Nested().attribute


def handlers():
    try:
        try:
            raise ValueError
        except ValueError:
            raise KeyError
        finally:
            with tempfile.TemporaryFile():
                block()
    except KeyError:
        pass


def many_lines():
    """Line and code steps that take more than one byte, forwards and backwards."""
    body = ["def far():"]
    body += ["    x = 0"] + [""] * 700
    body += ["    x = [" + ", ".join(f"x + {i}" for i in range(300)) + "]"] + [""] * 200
    body += ["    for i in (0, 1):"] + ["        x = i"] * 600
    body += ["        if i:"] + ["            block()"]
    run("\n".join(body) + "\nfar()\n", "<far>")


def run(source, name):
    exec(compile(source, name, "exec"), {"block": block})


def names():
    run("def fünktion():\n    block()\n\n\nfünktion()\n", "/tmp/täglich.py")


def wide_names():
    run("def 関数():\n\n    block()\n関数()\n", "/tmp/日本語/プログラム.py")


def widest_names():
    run("def 𠮷𠮷():\n    def 野():\n        block()\n    野()\n𠮷𠮷()\n", "/tmp/😀.py")


def long_names():
    """Too long for a frame, by every remainder of a character's bytes."""
    for i, c in enumerate("aé語😀" * 2):
        source = f"def f_{'xyzäß' * 20}_{i}(): block() if last else follow()\nf_{'xyzäß' * 20}_{i}()"
        steps.append((source, "/" + "x" * i + "/" + c * 150 + "/end.py"))
    follow()


steps = []


def follow():
    source, name = steps.pop()
    exec(compile(source, name, "exec"), {"block": block, "last": not steps, "follow": follow})


def odd_names():
    run("block()", "not-utf8-\udcff-\ud800.py")


def empty_name():
    run("\n\nblock()", "")


def frozen():
    class Module:
        def __getattr__(self, name):
            block()

    import importlib.util
    importlib.util.module_from_spec(Module())


THREADS = [plain, recursion, generator, coroutine, comprehension, expressions, Thing, handlers,
           many_lines, names, wide_names, widest_names, long_names, odd_names, empty_name, frozen]


def stack(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([frame.f_lineno, getattr(code, "co_qualname", code.co_name),
                       code.co_filename])
        frame = frame.f_back
    return frames


def stacks():
    own = threading.get_ident()
    return {ident: stack(f) for ident, f in sys._current_frames().items() if ident != own}


def is_settled(now, before):
    n_blocked = sum(frames[0][1] == "block" for frames in now.values())
    return now == before and n_blocked == len(THREADS) + 1  # and the main thread


def watch():
    before, now = None, stacks()
    while not is_settled(now, before):
        time.sleep(0.05)
        before, now = now, stacks()
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    answer = {"runtime": runtime, "version": sys.hexversion, "threads": now}
    os.write(1, (json.dumps(answer) + "\n").encode())
    os.read(0, 1)
    os._exit(0)


def main():
    for function in THREADS:
        threading.Thread(target=function, name=function.__name__, daemon=True).start()
    threading.Thread(target=watch, daemon=True).start()
    block()


if __name__ == "__main__":
    main()
