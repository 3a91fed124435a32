# SPDX-License-Identifier: Apache-2.0
"""Compiles the installed package, as the last step of an installation: `byte_compile.py FOLDER`.

A kernel's user can seldom write below the prefix: without this, each start of a kernel would
compile the package anew. What was compiled where the sources lie is left behind.
"""

import compileall
import os
import pathlib
import shutil
import sys

staged = os.path.join(os.environ["MESON_INSTALL_DESTDIR_PREFIX"], sys.argv[1])
final = os.path.join(os.environ["MESON_INSTALL_PREFIX"], sys.argv[1])
for folder in list(pathlib.Path(staged).rglob("__pycache__")):
    shutil.rmtree(folder)
if not compileall.compile_dir(staged, ddir=final, quiet=1):
    sys.exit(1)
