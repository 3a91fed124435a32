/* SPDX-License-Identifier: Apache-2.0 */
/* Plimsoll itself: where it is, whether its parts belong together, and whether this system can run
 * them. */
#include <string.h>

#include "preflight/checks.h"
#include "preflight/rooted.h"
#include "preflight/version.h"

/* How to get all parts in one version again. */
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
               "the guard, libplimsoll-guard.so, is not where '%s' looks for it: plimsoll run "
               "refuses to start anything",
               installation->program);
        pl_fix(findings, "%s", reinstall(installation));
    } else if (strcmp(installation->guard_version, installation->version) != 0) {
        pl_say(findings, PL_FINDING_WARN,
               "'%s' is of version %s, and the command is %s: programs may run without a line",
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
           "the guard needs glibc %s, and this system has %s: under plimsoll run, programs are "
           "watched, but nothing is refused",
           needs, libraries->musl ? "musl" : libraries->glibc);
    pl_fix(findings, "use a newer system or container: glibc %s is in Debian 12 and Ubuntu 22.04",
           needs);
}

/* The package that `import plimsoll` finds. */
static void check_package(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_installation *installation = &facts->installation;
    const pl_package *package = pl_packages_get(&facts->packages, "plimsoll");
    if (installation->program[0] != '\0' && package != NULL &&
        strcmp(package->version, installation->version) != 0) {
        pl_say(findings, PL_FINDING_WARN,
               "the Python package plimsoll in '%s' is %s, and the command '%s' is %s: kernels and "
               "import plimsoll.tf use another version than plimsoll run",
               package->site, package->version, installation->program, installation->version);
        pl_fix(findings,
               "install both from one place: in this Python, %s -m pip install plimsoll==%s",
               facts->python.path, installation->version);
    }
    if (installation->modules[0] != '\0' && !installation->extension) {
        pl_say(findings, PL_FINDING_WARN,
               "'%s' has no extension module for Python %s%s: import plimsoll.tf fails with \"No "
               "module named 'plimsoll._core'\"",
               installation->modules, facts->python.version,
               facts->python.free_threaded ? "t" : "");
        pl_fix(findings,
               "install a wheel for this Python: %s -m pip wheel . --no-deps, in the "
               "sources",
               facts->python.path);
    }
}

/* What this Python has of it; plimsoll run and guarded kernels need nothing there. */
static const char *for_python(const pl_doctor_facts *facts)
{
    if (facts->python_code < 0)
        return "";
    return facts->installation.modules[0] ? "; this Python has its package"
                                          : "; its package is not installed for this Python";
}

void pl_check_plimsoll(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_installation *installation = &facts->installation;
    if (installation->program[0] == '\0') {
        pl_say(findings, PL_FINDING_OK, "no plimsoll is installed there");
    } else {
        pl_say(findings, PL_FINDING_OK, "plimsoll %s at '%s', from %s in '%s'%s",
               installation->version[0] ? installation->version : "of an unknown version",
               installation->program, installation->kind, installation->folder, for_python(facts));
        check_guard(installation, findings);
    }
    check_glibc(facts, findings);
    check_package(facts, findings);
}
