# SPDX-License-Identifier: Apache-2.0
"""A real JupyterHub starts a user's server with limits: what its kernels make of them.

The hub is Debian's, with its proxy, as docs/jupyterhub.md configures it; only that its users need
no password and no account of the system.
"""
import json
import os
import re
import shutil
import uuid

import pytest

from servers import Server, free_port, request, started
from support import BUILD, MIB, ROOT, wait_until

USER = "ada"
MEM_LIMIT_BYTES = 700 * MIB

CONFIGURATION = """
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.JupyterHub.db_url = "sqlite://"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {home!r}
c.JupyterHub.services = [{{"name": "test", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"],
    "scopes": ["admin:users", "admin:servers", "access:servers"]}}]
c.Spawner.args = ["--allow-root"]
c.Spawner.env_keep = {kept!r}

c.Spawner.mem_limit = {mem_limit_bytes}
c.Spawner.cpu_limit = 1
c.Spawner.environment = {{"JUPYTER_DEFAULT_PROVISIONER_NAME": "plimsoll-provisioner"}}
"""

# What a user's server needs of the test's environment: where its files and the package lie.
KEPT = ["PATH", "HOME", "PYTHONPATH", "PLIMSOLL_STATE", "PYTHONDONTWRITEBYTECODE",
        "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]


class Hub:
    def __init__(self, url, token):
        self.url, self.token = url, token

    def api(self, method, path, body=None):
        return request(method, f"{self.url}hub/api/{path}", self.token, body)

    def is_up(self):
        try:
            return self.api("GET", "")
        except OSError:
            return None

    def start_server(self, user):
        self.api("POST", f"users/{user}")
        self.api("POST", f"users/{user}/server")
        wait_until(lambda: self.api("GET", f"users/{user}")["servers"].get("", {}).get("ready"),
                   f"the server of '{user}'")
        return Server(f"{self.url}user/{user}/", self.token)

    def stop_server(self, user):
        self.api("DELETE", f"users/{user}/server")
        wait_until(lambda: not self.api("GET", f"users/{user}")["servers"], "the server to end")


@pytest.fixture
def hub(homes):
    """A hub that runs; its users' servers end with it."""
    if not shutil.which("jupyterhub") or not shutil.which("configurable-http-proxy"):
        pytest.fail("jupyterhub or its proxy is not installed: tools/install-deps test")
    home, port, token = homes.home(), free_port(), uuid.uuid4().hex
    (home.folder / "jupyterhub_config.py").write_text(CONFIGURATION.format(
        port=port, hub_port=free_port(), proxy_port=free_port(), token=token, kept=KEPT,
        home=str(home.folder / "home"), mem_limit_bytes=MEM_LIMIT_BYTES))
    environment = home.environment({
        "PYTHONPATH": str(BUILD / "python"),
        # Debian's proxy under another node than Debian's, which alone looks there for modules.
        "NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs",
    })
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment.pop(name)
    with started(["jupyterhub"], environment, home.folder) as (process, _log):
        hub = Hub(f"http://127.0.0.1:{port}/", token)
        hub.home = home
        wait_until(lambda: hub.is_up() or process.poll() is not None, "the hub")
        assert process.poll() is None, "the hub has ended"
        yield hub


def test_kernels_of_a_hub_keep_to_its_limits(hub):
    server = hub.start_server(USER)
    kernel = server.start_kernel()

    limits = "import os; print(os.environ['MEM_LIMIT'], os.environ['CPU_LIMIT'])"
    assert server.run(kernel, limits).stdout == f"{MEM_LIMIT_BYTES} 1.0\n"
    refused = server.run(kernel, "bytearray(800 << 20)")
    assert (refused.status, refused.error.ename) == ("error", "MemoryError")
    threads = "{name: os.environ.get(name) for name in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS')}"
    n_cores = len(os.sched_getaffinity(0))
    one = "1" if n_cores > 1 else None  # where there is but one core, nothing needs to be said
    assert eval(server.run(kernel, threads).text) == {
        "OMP_NUM_THREADS": one, "MKL_NUM_THREADS": one}

    record = server.run(kernel, "print(os.path.dirname(os.environ['PLIMSOLL_LEDGER']))").stdout
    server.end_kernel(kernel)
    hub.stop_server(USER)
    memory = hub.home.explain(os.path.basename(record.strip()))["memory"]
    assert memory["true_limit_bytes"] == MEM_LIMIT_BYTES
    assert "MEM_LIMIT" in memory["true_limit_source"]
    assert memory["limit_bytes"] == MEM_LIMIT_BYTES - memory["reserve_bytes"]


def first_cell_after_a_death(server, kernel):
    """A server that has just restarted a kernel loses its first outputs now and then, on a busy
    machine: all of them, the cell's own as well. Then there is nothing to look at: it dies again."""
    for _ in range(4):
        assert server.run(kernel, "import ctypes\nctypes.string_at(0)").status == "died"
        first = server.run(kernel, "1 + 1")
        if first.text or first.displays:
            break
    return first


def test_a_user_of_a_hub_is_told_of_a_death(hub):
    server = hub.start_server(USER)
    kernel = server.start_kernel()
    first = first_cell_after_a_death(server, kernel)
    assert first.text == "2"
    told = json.dumps(first.displays)
    assert "segmentation fault" in told and "ctypes.string_at(0)" in told
    server.end_kernel(kernel)
    hub.stop_server(USER)


def test_the_documented_setting_is_the_one_tested_here():
    names = re.findall(r"^(c\.Spawner\.(?:mem|cpu)_limit) = ", CONFIGURATION, re.M)
    variable = re.search(r'"JUPYTER_DEFAULT\w+": "\S+"', CONFIGURATION)[0]
    page = (ROOT / "docs" / "jupyterhub.md").read_text()
    assert f"c.Spawner.environment = {{{variable}}}" in page
    assert len(names) == 2 and all(f"{name} = " in page for name in names)
