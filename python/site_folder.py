# SPDX-License-Identifier: Apache-2.0
"""Prints the folder below PREFIX in which this Python looks for packages: `site_folder.py PREFIX`.

Where it looks in none there (a prefix of its own), the folder that a Python at PREFIX would have.
"""

import site
import sys
import sysconfig


def site_folder(prefix):
    # "/lib", because /usr/local is not a place of the prefix /usr.
    here = [path for path in site.getsitepackages() if path.startswith(prefix + "/lib")]
    places = {"base": prefix, "platbase": prefix}
    return here[0] if here else sysconfig.get_path("purelib", "posix_prefix", vars=places)


print(site_folder(sys.argv[1].rstrip("/")))
