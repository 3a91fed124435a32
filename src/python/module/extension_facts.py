# SPDX-License-Identifier: Apache-2.0
"""Prints how this Python wants an extension called, with which arguments it is compiled, and the
folder below lib/ in which packages are installed: python3.11, or python3.13t."""
import os
import sysconfig

print(sysconfig.get_config_var("EXT_SUFFIX").lstrip("."))
print(*sorted({"-isystem" + sysconfig.get_path(kind) for kind in ("include", "platinclude")}))
print(os.path.basename(os.path.dirname(sysconfig.get_path("platlib", "posix_prefix"))))
