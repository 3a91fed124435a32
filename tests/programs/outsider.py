# SPDX-License-Identifier: Apache-2.0
"""outsider.py CAUSE: passes the line, and then forks a child that cannot join the run: for want of
`descriptors`, in a `chroot` without /proc, in a pid `namespace` of its own, or because all `slots` are
taken. The child frees, resizes and asks for memory, in threads too, and has a child of its own; a
second one of it tries what `descriptors` kept it from, once it has some."""
import ctypes
import mmap
import os
import resource
import struct
import sys
import tempfile
import threading

MIB = 1 << 20
SLOTS_AT, SLOT_BYTES, N_SLOTS, N_SLOTS_AT = 12288, 128, 32768, 8192 + 40
CLONE_NEWPID = 0x20000000


def fill_slots():
    with open(os.environ["PLIMSOLL_LEDGER"], "r+b") as file:
        ledger = mmap.mmap(file.fileno(), SLOTS_AT + N_SLOTS * SLOT_BYTES)
    for at in range(SLOTS_AT, SLOTS_AT + N_SLOTS * SLOT_BYTES, SLOT_BYTES):
        if struct.unpack_from("<I", ledger, at)[0] == 0:
            struct.pack_into("<I", ledger, at, 1)  # which lives
    struct.pack_into("<I", ledger, N_SLOTS_AT, N_SLOTS)


def empty_slots():
    with open(os.environ["PLIMSOLL_LEDGER"], "r+b") as file:
        ledger = mmap.mmap(file.fileno(), SLOTS_AT + N_SLOTS * SLOT_BYTES)
    for at in range(SLOTS_AT, SLOTS_AT + N_SLOTS * SLOT_BYTES, SLOT_BYTES):
        if struct.unpack_from("<I", ledger, at)[0] == 1:
            struct.pack_into("<I", ledger, at, 0)


def keep_out(cause):
    if cause == "descriptors":
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    elif cause == "chroot":
        os.chroot(tempfile.mkdtemp())
    elif cause == "namespace":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWPID) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
    elif cause == "slots":
        fill_slots()


def pass_the_line():
    kept = []
    try:
        while True:
            kept.append(bytearray(200_000))
    except MemoryError:
        return kept


def work(n):
    blocks = [bytearray(2 * MIB) for _ in range(n)]
    for block in blocks:
        block.extend(bytes(MIB))
    small = [bytes(1000 + i % 500) for i in range(10_000)]
    mapping = mmap.mmap(-1, 4 * MIB)
    mapping.write(b"x" * MIB)
    mapping.close()
    return len(blocks) + len(small)


def live(kept):
    del kept[::2]
    work(4)
    thread = threading.Thread(target=work, args=(2,))
    thread.start()
    thread.join()
    kept.clear()
    work(4)


def wait_for(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main():
    cause = sys.argv[1]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = pass_the_line()
    keep_out(cause)
    child = os.fork()
    if child == 0:
        live(kept)
        grandchild = os.fork()
        if grandchild == 0:
            live([])
            os._exit(0)
        if wait_for(grandchild) != 0:
            os._exit(3)
        if cause == "descriptors":
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            try:
                work(1)
                held = bytearray(1 << 30)
                os._exit(4 if held else 5)
            except MemoryError:  # in the run again, and so refused
                pass
        os._exit(0)
    status = wait_for(child)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    if cause == "slots":
        empty_slots()
    kept.clear()
    print(status)


if __name__ == "__main__":
    main()
