# SPDX-License-Identifier: Apache-2.0
"""Where this machine's apt gets Debian from, and how.

    archive   the address below which `dists/` and `pool/` of Debian itself lie (no security or backports)
    settings  apt's options about fetching that another Debian on this machine needs as well

archive_in() and settings_in() are pure functions of apt's texts; sources() and settings() read them.
"""

import pathlib
import re
import subprocess

SUITES = ("bookworm", "trixie", "forky", "sid")
ALIASES = ("oldoldstable", "oldstable", "stable", "testing", "unstable", "bullseye")

# Proxies, retries, dates. Not the rest of Acquire: it is about what is fetched, not how.
FETCHING = re.compile(
    r"^(Acquire::(?:Check-Valid-Until|Check-Date|Max-ValidTime|Min-ValidTime|Retries|ForceIPv[46]"
    r"|https?(?:::\S+)?)) \"(.+)\";$",
    re.MULTILINE | re.IGNORECASE,
)


def stanzas(text):
    """The stanzas of a deb822 file, as dictionaries of lists of words; names in lower case."""
    stanza, last = {}, None
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if stanza:
                yield stanza
            stanza, last = {}, None
        elif line[0] in " \t":
            if last:
                stanza[last] += line.split()
        else:
            name, _, value = line.partition(":")
            last = name.strip().lower()
            stanza[last] = value.split()


def one_line_entries(text):
    """(address, suite, components) of each `deb` line of a sources.list."""
    for line in text.splitlines():
        words = re.sub(r"\[[^]]*\]", " ", line.partition("#")[0]).split()
        if len(words) >= 4 and words[0] == "deb":
            yield words[1], words[2], words[3:]


def entries(name, text):
    if not name.endswith(".sources"):
        yield from one_line_entries(text)
        return
    for stanza in stanzas(text):
        enabled = stanza.get("enabled", ["yes"])[:1] != ["no"]
        if enabled and "deb" in stanza.get("types", []):
            for address in stanza.get("uris", []):
                for suite in stanza.get("suites", []):
                    yield address, suite, stanza.get("components", [])


def archive_in(files):
    """The first address that has main of a Debian suite; None without one. `files`: (name, text)."""
    for name, text in files:
        for address, suite, components in entries(name, text):
            over_http = address.startswith(("http://", "https://"))
            if over_http and suite in SUITES + ALIASES and "main" in components:
                return address.rstrip("/")
    return None


def settings_in(dump):
    """What `apt-config dump` says about fetching, as lines of an apt.conf."""
    return [f'{name} "{value}";' for name, value in FETCHING.findall(dump)]


def proxies_in(dump):
    """The same proxies for programs that read the environment, such as debootstrap's wget."""
    found = {name.lower(): value for name, value in FETCHING.findall(dump)}
    proxies = {scheme: found.get(f"acquire::{scheme}::proxy") for scheme in ("http", "https")}
    return {f"{scheme}_proxy": proxy for scheme, proxy in proxies.items() if proxy not in (None, "DIRECT")}


def apt_config(*words):
    return subprocess.run(
        ("apt-config", *words), stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def sources():
    """(name, text) of each file that apt takes sources from, in apt's order."""
    found = apt_config("shell", "LIST", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d")
    paths = dict(re.findall(r"^(\w+)='(.*)'$", found, re.MULTILINE))
    parts = pathlib.Path(paths["PARTS"])
    files = [pathlib.Path(paths["LIST"])]
    files += sorted(path for path in parts.glob("*") if path.suffix in (".list", ".sources"))
    return [(str(path), path.read_text(errors="replace")) for path in files if path.is_file()]
