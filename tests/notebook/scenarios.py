# SPDX-License-Identifier: Apache-2.0
"""Cells that must show the same in a plain and in a guarded kernel: name -> (cells, expected).

`expected` is in what the plain kernel shows, so that two equal failures do not pass. Each scenario
stands by itself; PRELUDE is run before it.
"""

PRELUDE = "import asyncio, math, multiprocessing, os, signal, subprocess, sys, time"

OUTPUT = {
    "streams, displays and results, in their order": (["""
        from IPython.display import HTML, display
        print("one"); sys.stdout.flush()
        print("two", file=sys.stderr); sys.stderr.flush()
        display(HTML("<b>three</b>"))
        print("four")
        "five"
        """], "five"),
    "a large output": (["print('x' * 300_000)\nprint('y' * 300_000)"], "yyyy"),
    "an exception through functions of two cells": (["""
        def inner(divisor):
            return 1 / divisor
        """, """
        def outer():
            return [inner(n) for n in (1, 0)]

        outer()
        """], "ZeroDivisionError"),
    "an exception that was raised while another was handled": (["""
        try:
            {}["key"]
        except KeyError as error:
            raise RuntimeError("no key") from error
        """], "RuntimeError: no key"),
    "an exception with no text": (["raise ValueError"], "ValueError"),
    "an exception that shows itself": (["""
        class Odd(Exception):
            def _render_traceback_(self):
                return ["rendered by itself"]
        raise Odd
        """], "rendered by itself"),
    "a syntax error": (["a = 1\nb = = 2"], "SyntaxError"),
    "an unknown name": (["no_such_name"], "NameError"),
    "a memory error of the program's own": (["raise MemoryError('of my own')"], "of my own"),
    "sys.exit": (["sys.exit(3)"], "SystemExit"),
    "a deep recursion": (["""
        def down(n):
            return down(n + 1)
        try:
            down(0)
        except RecursionError as error:
            print(error)
        """], "maximum recursion depth exceeded"),
    "a warning": (["import warnings\nwarnings.warn('take care')"], "take care"),
    "a log line": (["import logging\nlogging.warning('logged')"], "logged"),
    "a display that is updated, and output that is cleared": (["""
        from IPython.display import clear_output, display
        handle = display("first", display_id="one")
        handle.update("second")
        clear_output()
        """], "clear_output"),
    "a figure": (["%matplotlib inline\nimport matplotlib.pyplot as plt",
                  "lines = plt.plot([1, 4, 9])"], "image/png"),
    "a data frame": (["import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})"],
                     "<table"),
    "a comm that the kernel opens": (["""
        from ipykernel.comm import Comm
        comm = Comm(target_name="test", data={"a": 1})
        comm.send({"b": 2})
        comm.close()
        """], "comm_close"),
}

PROCESSES = {
    "a program whose output is captured": (["""
        done = subprocess.run(["sh", "-c", "cat; echo err >&2; exit 3"], input="in",
                              capture_output=True, text=True)
        done.returncode, done.stdout, done.stderr
        """], "(3, 'in', 'err"),
    "a program that reads to the end of its input": (
        ["subprocess.run(['cat'], capture_output=True).stdout"], "b''"),
    "a pipeline": (["subprocess.check_output('seq 100000 | sort -rn | head -1', shell=True)"],
                   "100000"),
    "os.system": (["os.system('exit 7') >> 8"], "7"),
    "os.popen": (["os.popen('echo popen').read()"], "popen"),
    "a program that a signal ends": (
        ["subprocess.run(['sh', '-c', 'kill -SEGV $$']).returncode"], "-11"),
    "a program that is not there": (["subprocess.run(['no-such-program'])"], "FileNotFoundError"),
    "a shell line": (["!echo shell; exit 4", "_exit_code"], "shell"),
    "a shell line that is assigned": (["lines = !seq 3\nlines"], "['1', '2', '3']"),
    "%%bash": (["%%bash\necho out\necho err >&2"], "out"),
    "%%bash that fails": (["%%bash\necho out\nexit 3"], "CalledProcessError"),
    "%%bash with what stays in the background": (["""
        %%bash
        sleep 300 > /dev/null 2>&1 &
        kill -0 $! && echo in the background
        kill $!
        """], "in the background"),
    "%%script of another Python": (["%%script /usr/bin/python3\nprint(6 * 7)"], "42"),
    "a fork": (["""
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write_end, b"from the child")
            os._exit(5)
        os.read(read_end, 100), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        """], "(b'from the child', 5)"),
    **{f"a pool, by {method}": ([f"""
        with multiprocessing.get_context("{method}").Pool(2) as pool:
            print(pool.map(math.factorial, range(6)))
        """], "[1, 1, 2, 6, 24, 120]") for method in ("fork", "spawn", "forkserver")},
    "a pool of a function of the notebook, which fails": (["""
        def half(n):
            return 84 // n
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.map(half, [2]))
            try:
                pool.map(half, [0])
            except ZeroDivisionError as error:
                print(type(error).__name__)
        """], "[42]\nZeroDivisionError"),
    "executors of processes and of threads": (["""
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        for executor in (ProcessPoolExecutor, ThreadPoolExecutor):
            with executor(2) as pool:
                print(list(pool.map(math.factorial, range(6))))
        """], "[1, 1, 2, 6, 24, 120]"),
    "a queue between processes, and shared memory": (["""
        from multiprocessing import shared_memory
        block = shared_memory.SharedMemory(create=True, size=4096)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        def put():
            block.buf[0] = 7
            queue.put("from afar")
        worker = context.Process(target=put)
        worker.start()
        print(queue.get(), worker.join(), worker.exitcode, block.buf[0])
        block.close(); block.unlink()
        """], "from afar None 0 7"),
    "a DataLoader with two workers": (["""
        import torch
        class Squares(torch.utils.data.Dataset):
            def __len__(self):
                return 8
            def __getitem__(self, i):
                return torch.tensor(i * i)
        loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2,
                                             multiprocessing_context="fork")
        [batch.tolist() for batch in loader]
        """], "[[0, 1, 4, 9], [16, 25, 36, 49]]"),
}

LANGUAGE = {
    "await": (["await asyncio.sleep(0.01, 'slept')"], "slept"),
    "tasks": (["await asyncio.gather(*(asyncio.sleep(0, n) for n in range(3)))"], "[0, 1, 2]"),
    "an asynchronous program": (["""
        process = await asyncio.create_subprocess_exec("echo", "async", stdout=-1)
        (await process.communicate())[0], process.returncode
        """], "(b'async"),
    "In, Out and history": (
        ["40 + 2", "_ + 1, Out[len(In) - 2], In[-2], len(In)", "%history -n -l 2", "_i, __, ___"],
        "(43, 42, '40 + 2'"),
    "names": (["%reset -f\nhere = 1\n%who", "sorted(globals())"], "get_ipython"),
    "%%capture": (["%%capture kept\nprint('captured')", "kept.stdout"], "captured"),
    "%run": (["""
        with open("script.py", "w") as script:
            script.write("import sys\\nprint(__name__, sys.argv)\\nvalue = 5")
        %run script.py a b
        value
        """], "__main__ ['script.py', 'a', 'b']"),
    "%run of a script that fails": (["""
        with open("script.py", "w") as script:
            script.write("def fail():\\n    raise OSError(5, 'no')\\nfail()")
        %run script.py
        """], "[Errno 5] no"),
    "%%writefile, %cat and %pwd": (["%%writefile a.txt\nwritten", "%cat a.txt", "%pwd"], "written"),
    "%env": (["%env COLOUR=blue", "!echo $COLOUR"], "blue"),
    "a magic that is not there": (["%no_such_magic"], "not found"),
    "a signal handler": (["""
        def handle(number, frame):
            print("handled", signal.Signals(number).name)
        for name in ("SIGALRM", "SIGUSR1", "SIGUSR2", "SIGTERM", "SIGHUP", "SIGCHLD", "SIGWINCH"):
            before = signal.signal(signal.Signals[name], handle)
            os.kill(os.getpid(), signal.Signals[name])
            signal.signal(signal.Signals[name], before)
        """], "handled SIGCHLD"),
    "a timer": (["""
        before = signal.signal(signal.SIGALRM, lambda *_: print("rung"))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(1)
        print(signal.signal(signal.SIGALRM, before) is not None)
        """], "rung"),
    "signal settings": (["""
        print([(n, signal.getsignal(n)) for n in (2, 10, 12, 13, 15, 17)])
        print([l for l in open("/proc/self/status") if l.startswith(("SigBlk", "SigIgn"))])
        """], "SigBlk"),
    "the interpreter's settings": (["""
        import faulthandler, gc, threading, warnings
        (sys.gettrace(), sys.getprofile(), sys.getrecursionlimit(), sys.getswitchinterval(),
         gc.isenabled(), gc.get_threshold(), faulthandler.is_enabled(), sys.excepthook.__name__,
         threading.active_count(), sorted(map(str, warnings.filters)), sys.flags, sys.stdin,
         sys.unraisablehook.__name__, threading.excepthook.__name__, os.getcwd(), os.nice(0))
        """], "sys.flags("),
    "sys.argv": (["sys.argv"], "'-f'"),
    "the process's limits": (
        ["import resource\n[resource.getrlimit(n) for n in range(16)]"], "(-1"),
    "the process's threads": (["""
        sorted(open(f"/proc/self/task/{t}/comm").read() for t in os.listdir("/proc/self/task"))
        """], "python3"),
    "the process's open files": (["""
        import gc, re
        gc.collect()  # pipes of pools, which are in cycles
        names = []
        for n in os.listdir("/proc/self/fd"):
            try:
                names.append(re.sub("[0-9]+", "N", os.readlink(f"/proc/self/fd/{n}")))
            except FileNotFoundError:  # closed meanwhile, by the thread that keeps the history
                pass
        # SQLite's journal comes and goes, and so does the folder, which it syncs when one has gone. The
        # cells' sources, in the record, are our one file.
        comes_and_goes = ("-journal", "/profile_default", "/cells.jsonl")
        sorted(n for n in names if not n.endswith(comes_and_goes))
        """], "kernel.log"),
    "input": (["print([input('name: '), input()])"], "['Ada', 'Lovelace']"),
    "a password": (["import getpass\ngetpass.getpass('secret: ')"], "Ada"),
    "the debugger": (["def halve(n):\n    return 84 / n\nhalve(0)", "%debug"], "ipdb> "),
}
ANSWERS = {
    "input": ["Ada", "Lovelace"],
    "a password": ["Ada"],
    "the debugger": ["p n + 41", "q"],
}
SCENARIOS = {**OUTPUT, **PROCESSES, **LANGUAGE}
