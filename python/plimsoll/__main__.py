# SPDX-License-Identifier: Apache-2.0
"""`python -m plimsoll ...` is the command `plimsoll ...` that this package belongs to."""
import os
import sys

from . import _program


def main() -> int:
    program = _program.find()
    if program is None:
        print(
            "plimsoll: there is no program 'plimsoll' beside this package or on PATH: "
            "install it (make install), or add its folder to PATH",
            file=sys.stderr,
        )
        return 127
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
