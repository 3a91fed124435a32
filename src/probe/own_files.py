# SPDX-License-Identifier: Apache-2.0
"""Writes the names of the Python package's files as C: own_files.py PACKAGE SOURCE."""
import pathlib
import sys

package, source = map(pathlib.Path, sys.argv[1:])
names = sorted(path.relative_to(package).as_posix() for path in package.rglob("*.py"))
if "__init__.py" not in names:
    sys.exit(f"own_files.py: '{package}' is not the package")
listed = "".join(f'    "{name}",\n' for name in names)
text = f"""/* Made by own_files.py. */
#include "probe/own_files.h"

const size_t pl_n_own_files = {len(names)};
const char *const pl_own_files[] = {{
{listed}}};
"""
if not source.exists() or source.read_text() != text:
    source.write_text(text)
