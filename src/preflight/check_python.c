/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the interpreter, the packages installed for it, and whether they were built for it. */
#include <stdlib.h>
#include <string.h>

#include "preflight/checks.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"

const pl_package *pl_next_package(const pl_doctor_facts *facts, const pl_package *after)
{
    const pl_packages *packages = &facts->packages;
    size_t first = after == NULL ? 0 : (size_t)(after - packages->items) + 1;
    for (size_t i = first; i < packages->n; i++)
        if (!packages->items[i].hidden)
            return &packages->items[i];
    return NULL;
}

void pl_check_python(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_interpreter *python = &facts->python;
    if (facts->python_code < 0) {
        pl_say(findings, facts->python_asked ? PL_FINDING_FAIL : PL_FINDING_WARN,
               "%s: packages cannot be checked", facts->python_error.message);
        pl_fix(findings, "pass the interpreter or its environment: plimsoll doctor --python PATH");
        return;
    }
    if (strncmp(python->version, "3.", 2) != 0) {
        pl_say(findings, PL_FINDING_FAIL, "'%s' is Python %s, which no current framework supports",
               python->path, python->version);
        pl_fix(findings, "install Python 3 and create an environment: python3 -m venv DIR");
        return;
    }
    pl_say(findings, PL_FINDING_OK, "Python %s%s at '%s', %s%s '%s'", python->version,
           python->free_threaded ? " (free-threaded)" : "", python->path,
           python->kind[0] == 'i' ? "an " : "a ", python->kind, python->prefix);
}

/* ---- what is there ---- */

static bool is_framework(const pl_doctor_facts *facts, const char *name)
{
    static const char *const frameworks[] = {"tensorflow", "torch", "jax",   "jaxlib",
                                             "numpy",      "keras", "cudnn", "cudatoolkit"};
    const char *framework = pl_rules_framework(&facts->rules, name);
    for (size_t i = 0; i < PL_COUNT_OF(frameworks); i++)
        if (strcmp(framework, frameworks[i]) == 0)
            return true;
    return strncmp(name, "nvidia-cudnn", 12) == 0 || strncmp(name, "nvidia-cuda-runtime", 19) == 0;
}

static void say_what_is_found(const pl_doctor_facts *facts, pl_findings *findings)
{
    char list[400] = "";
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package));) {
        char longer[sizeof list];
        if (is_framework(facts, package->name) &&
            pl_format(longer, sizeof longer, "%s%s%s %s", list, list[0] ? ", " : "", package->name,
                      package->version))
            memcpy(list, longer, sizeof list);
    }
    if (list[0] != '\0')
        pl_say(findings, PL_FINDING_OK, "found %s", list);
    else
        pl_say(findings, PL_FINDING_OK,
               "none of TensorFlow, PyTorch, JAX, NumPy and Keras is installed for this Python");
}

static void say_what_is_there_twice(const pl_doctor_facts *facts, pl_findings *findings)
{
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package));) {
        if (!package->twice)
            continue;
        pl_say(findings, PL_FINDING_FAIL,
               "two versions of '%s' are installed in '%s': their files are mixed, and imports "
               "fail or crash",
               package->name, package->site);
        pl_fix(findings, "%s -m pip uninstall -y %s (until it is gone), then install it once",
               facts->python.path, package->name);
    }
}

/* tensorflow and tensorflow-cpu install into the same folder. */
static void say_who_shares_a_folder(const pl_doctor_facts *facts, pl_findings *findings)
{
    for (const pl_package *a = NULL; (a = pl_next_package(facts, a));) {
        for (const pl_package *b = a; (b = pl_next_package(facts, b));) {
            const char *framework = pl_rules_framework(&facts->rules, a->name);
            if (a->site != b->site ||
                strcmp(framework, pl_rules_framework(&facts->rules, b->name)) != 0)
                continue;
            pl_say(findings, PL_FINDING_FAIL,
                   "'%s' %s and '%s' %s are both installed into the same folder: imports get a "
                   "mixture of the two",
                   a->name, a->version, b->name, b->version);
            pl_fix(findings, "%s -m pip uninstall -y %s %s, then install one of them",
                   facts->python.path, a->name, b->name);
        }
    }
}

void pl_check_packages(const pl_doctor_facts *facts, pl_findings *findings)
{
    if (facts->python_code < 0) {
        pl_say(findings, PL_FINDING_OK, "no Python, so no packages");
        return;
    }
    say_what_is_found(facts, findings);
    say_what_is_there_twice(facts, findings);
    say_who_shares_a_folder(facts, findings);
}

/* ---- made for this Python and this machine? ---- */

static bool version_is(const pl_doctor_facts *facts, const char *range)
{
    return pl_version_in(facts->python.version, range) != 0; /* a malformed range is ignored */
}

static void check_requires_python(const pl_doctor_facts *facts, pl_findings *findings,
                                  const pl_package *package)
{
    char range[PL_PACKAGE_RANGE_BYTES];
    const char *cursor = package->metadata;
    if (!pl_package_field(&cursor, "Requires-Python", range, sizeof range) ||
        version_is(facts, range))
        return;
    pl_say(findings, PL_FINDING_FAIL, "%s %s requires Python %s but this is %s: it will not import",
           package->name, package->version, range, facts->python.version);
    pl_fix(findings, "%s -m pip install --upgrade %s", facts->python.path, package->name);
}

/* Reads "3.11" from the tag "cp311-cp311-linux_x86_64"; false for "py3" and other tags. */
static bool tag_version(const char *tag, char version[16])
{
    size_t digits = strncmp(tag, "cp3", 3) == 0 ? strspn(tag + 3, "0123456789") : 0;
    return digits > 0 && pl_format(version, 16, "3.%.*s", (int)digits, tag + 3);
}

/* Returns whether the interpreter can load extension modules from a wheel with this tag. */
static bool tag_fits(const pl_interpreter *python, const char *tag)
{
    char version[16], range[24];
    const char *abi = strchr(tag, '-');
    if (abi == NULL || !tag_version(tag, version))
        return true;
    abi++;
    size_t n = strcspn(abi, "-");
    if (strncmp(abi, "abi3", 4) == 0 || strncmp(abi, "none", 4) == 0) {
        pl_format(range, sizeof range, ">=%s", version);
        return !(python->free_threaded && abi[0] == 'a') &&
               pl_version_in(python->version, range) == 1;
    }
    bool threaded = n > 0 && abi[n - 1] == 't';
    return strcmp(version, python->version) == 0 && threaded == python->free_threaded;
}

static const char *tag_machine(const char *tag)
{
    static const char *const machines[] = {"x86_64", "aarch64", "i686",   "ppc64le",
                                           "s390x",  "armv7l",  "riscv64"};
    for (size_t i = 0; i < PL_COUNT_OF(machines); i++) {
        size_t n = strlen(machines[i]), length = strlen(tag);
        if (length > n && strcmp(tag + length - n, machines[i]) == 0)
            return machines[i];
    }
    return NULL;
}

static void check_tag(const pl_doctor_facts *facts, pl_findings *findings,
                      const pl_package *package)
{
    const char *machine = tag_machine(package->tag);
    if (!tag_fits(&facts->python, package->tag)) {
        pl_say(findings, PL_FINDING_FAIL,
               "%s %s was built for a different Python (%s) than this %s%s: its extension modules "
               "will not be found",
               package->name, package->version, package->tag, facts->python.version,
               facts->python.free_threaded ? "t" : "");
        pl_fix(findings, "%s -m pip install --force-reinstall %s", facts->python.path,
               package->name);
    } else if (machine != NULL && strcmp(machine, facts->processor.machine) != 0) {
        pl_say(findings, PL_FINDING_FAIL,
               "%s %s was built for %s but this machine is %s: it cannot be loaded", package->name,
               package->version, machine, facts->processor.machine);
        pl_fix(findings, "%s -m pip install --force-reinstall %s", facts->python.path,
               package->name);
    }
}

static void check_tested(const pl_doctor_facts *facts, pl_findings *findings,
                         const pl_package *package)
{
    const char *framework = pl_rules_framework(&facts->rules, package->name);
    const pl_rule *rule =
        package->wheel ? pl_rules_next(&facts->rules, NULL, "python", framework, package->version)
                       : NULL;
    if (rule == NULL || version_is(facts, rule->needs))
        return;
    pl_say(findings, PL_FINDING_WARN,
           "%s %s was built and tested for Python %s but this is %s: it may fail to import, or "
           "fail later",
           package->name, package->version, rule->needs, facts->python.version);
    pl_fix(findings, "use a Python in that range, or a newer %s", framework);
}

void pl_check_versions(const pl_doctor_facts *facts, pl_findings *findings)
{
    size_t n = 0;
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package)); n++) {
        size_t n_before = findings->n;
        check_requires_python(facts, findings, package);
        if (findings->n == n_before)
            check_tag(facts, findings, package);
        if (findings->n == n_before)
            check_tested(facts, findings, package);
    }
    if (pl_findings_silent(findings) && n > 0)
        pl_say(findings, PL_FINDING_OK, "packages checked: %zu, all built for Python %s on %s", n,
               facts->python.version, facts->processor.machine);
    else if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK, "no packages to check against this Python");
}
