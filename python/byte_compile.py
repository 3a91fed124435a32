# SPDX-License-Identifier: Apache-2.0
"""The last step of an installation: `byte_compile.py FOLDER make|drop`.

Byte code that lay beside the sources, and was copied with them, is removed. `make` then compiles the
installed package: a kernel's user can seldom write below the prefix, and each start of a kernel would
compile it anew. With `drop` a distribution's tools do that.
"""

import compileall
import os
import pathlib
import shutil
import sys

final, what = sys.argv[1:]
below = os.path.relpath(final, os.environ["MESON_INSTALL_PREFIX"])
staged = os.path.join(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], below)
for folder in list(pathlib.Path(staged).rglob("__pycache__")):
    shutil.rmtree(folder)
if what == "make" and not compileall.compile_dir(staged, ddir=final, quiet=1):
    sys.exit(1)
