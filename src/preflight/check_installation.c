/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Plimsoll itself: where it is installed, whether its parts have the same version, and
 * whether this system can run them. */
#include <string.h>

#include "preflight/checks.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"

/* Returns the command that brings all parts back to one version. */
static const char *reinstall(const pl_installation *installation)
{
    if (strcmp(installation->kind, "a wheel") == 0)
        return "install the wheel again: pip install --force-reinstall plimsoll-VERSION-....whl";
    if (strcmp(installation->kind, "a Debian package") == 0)
        return "apt install --reinstall plimsoll";
    return strcmp(installation->kind, "a build tree") == 0 ? "make build" : "make install";
}

static void check_guard(const pl_installation *installation, pl_findings *findings)
{
    if (installation->guard[0] == '\0') {
        pl_say(findings, PL_FINDING_FAIL,
               "'%s' cannot find its guard, libplimsoll-guard.so: plimsoll run will not start any "
               "command",
               installation->program);
        pl_fix(findings, "%s", reinstall(installation));
    } else if (strcmp(installation->guard_version, installation->version) != 0) {
        pl_say(
            findings, PL_FINDING_WARN,
            "'%s' is version %s but the command is version %s: programs may run without a budget",
            installation->guard,
            installation->guard_version[0] ? installation->guard_version : "unknown",
            installation->version);
        pl_fix(findings, "%s", reinstall(installation));
    }
}

static void check_glibc(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_libraries *libraries = &facts->libraries;
    const char *needs = facts->installation.guard_libc;
    char range[24];
    pl_format(range, sizeof range, ">=%s", needs);
    if (!libraries->musl && pl_version_in(libraries->glibc, range) != 0)
        return;
    pl_say(findings, PL_FINDING_WARN,
           "the guard needs glibc %s but this system has %s: plimsoll run can watch programs, but "
           "cannot refuse allocations",
           needs, libraries->musl ? "musl" : libraries->glibc);
    pl_fix(findings, "use a newer system or container: glibc %s is in Debian 12 and Ubuntu 22.04",
           needs);
}

/* Checks the package that `import plimsoll` would find. */
static void check_package(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_installation *installation = &facts->installation;
    const pl_package *package = pl_packages_get(&facts->packages, "plimsoll");
    if (installation->program[0] != '\0' && package != NULL &&
        strcmp(package->version, installation->version) != 0) {
        pl_say(findings, PL_FINDING_WARN,
               "the Python package plimsoll in '%s' is version %s but the command '%s' is version "
               "%s: kernels and plimsoll.tf use a different version from plimsoll run",
               package->site, package->version, installation->program, installation->version);
        pl_fix(findings,
               "install both from the same source: in this Python, %s -m pip install plimsoll==%s",
               facts->python.path, installation->version);
    }
    if (installation->modules[0] != '\0' && !installation->extension) {
        pl_say(findings, PL_FINDING_WARN,
               "'%s' has no extension module for Python %s%s: import plimsoll.tf fails with \"No "
               "module named 'plimsoll._core'\"",
               installation->modules, facts->python.version,
               facts->python.free_threaded ? "t" : "");
        pl_fix(findings,
               "install a wheel for this Python; to build one in the source folder: %s -m pip "
               "wheel . --no-deps",
               facts->python.path);
    }
}

/* Says whether this Python has the package. plimsoll run and guarded kernels work without it. */
static const char *for_python(const pl_doctor_facts *facts)
{
    if (facts->python_code < 0)
        return "";
    return facts->installation.modules[0]
               ? "; this Python has the plimsoll package"
               : "; the plimsoll package is not installed for this Python";
}

void pl_check_plimsoll(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_installation *installation = &facts->installation;
    if (installation->program[0] == '\0') {
        pl_say(findings, PL_FINDING_OK, "plimsoll is not installed there");
    } else {
        pl_say(findings, PL_FINDING_OK, "plimsoll %s at '%s', from %s in '%s'%s",
               installation->version[0] ? installation->version : "of an unknown version",
               installation->program, installation->kind, installation->folder, for_python(facts));
        check_guard(installation, findings);
    }
    check_glibc(facts, findings);
    check_package(facts, findings);
}
