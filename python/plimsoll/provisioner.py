# SPDX-License-Identifier: Apache-2.0
"""A kernel provisioner that starts every kernel under `plimsoll run`; no kernelspec is changed.

Jupyter finds it by its entry point, `plimsoll-provisioner`, and uses it for the kernelspecs that
name it, or for all that name none once it is the default ($JUPYTER_DEFAULT_PROVISIONER_NAME, or
`c.KernelProvisionerFactory.default_provisioner_name`). Apart from the command it is Jupyter's own
local provisioner: signals, restarts and shutdown are left as they are.

It needs jupyter_client 7.0 or later, and is imported by Jupyter's server, never by a kernel.
"""

import os
import shutil
from typing import Any, Dict, List, Optional

from jupyter_client.provisioning import LocalProvisioner
from traitlets import CUnicode, Unicode

from . import _program


class PlimsollProvisioner(LocalProvisioner):
    """Jupyter's local provisioner, with the kernel's command put behind `plimsoll run --kernel`."""

    budget = CUnicode(
        "",
        config=True,
        help="""The memory budget of each kernel, as `plimsoll run --budget` takes it: 512M, 80%.
        Empty: what the kernel can really have, by cgroups, MEM_LIMIT and the machine. A kernelspec
        sets its own in metadata.kernel_provisioner.config.""",
    )
    program = Unicode(
        "",
        config=True,
        help="""The path of the program `plimsoll`. Empty: the one installed with this package, else
        the first on PATH.""",
    )

    async def pre_launch(self, **kwargs: Any) -> Dict[str, Any]:
        """Jupyter calls this before each start and restart; it returns the launch."""
        kwargs = await super().pre_launch(**kwargs)
        kwargs["cmd"] = self._guarded(kwargs["cmd"])
        return kwargs

    def _guarded(self, command: List[str]) -> List[str]:
        if _is_guarded(command):
            return command
        program = _find_program(self.program)
        if not program:
            # A kernel that does not start would be worse than one without a guard.
            self.log.error(
                "cannot guard kernel '%s': no program '%s'; it starts without a budget: "
                "install plimsoll, or set c.PlimsollProvisioner.program to its path",
                self.kernel_id,
                self.program or "plimsoll",
            )
            return command
        budget = ["--budget", self.budget] if self.budget else []
        # A kernel and the one restarted in its place share the connection file.
        connection_file = os.path.realpath(self.parent.connection_file)
        return [program, "run", "--kernel", connection_file, *budget, "--", *command]


def _is_guarded(command: List[str]) -> bool:
    """Is it a `plimsoll run` already, as in a kernelspec made by `plimsoll jupyter install`?"""
    return os.path.basename(command[0]) == "plimsoll" and command[1:2] == ["run"]


def _find_program(configured: str) -> Optional[str]:
    return shutil.which(os.path.expanduser(configured)) if configured else _program.find()
