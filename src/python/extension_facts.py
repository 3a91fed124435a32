# SPDX-License-Identifier: Apache-2.0
"""Prints how this Python wants an extension called, and with which arguments it is compiled."""
import sysconfig

print(sysconfig.get_config_var("EXT_SUFFIX").lstrip("."))
print(*sorted({"-isystem" + sysconfig.get_path(kind) for kind in ("include", "platinclude")}))
