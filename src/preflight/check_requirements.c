/* SPDX-License-Identifier: Apache-2.0 */
/* Checks packages against each other: by their declared requirements, by what is known of their
 * builds, and cuDNN by the frameworks' own rule. */
#include <stdlib.h>
#include <string.h>

#include "preflight/checks.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"

typedef struct pair {
    const pl_doctor_facts *facts;
    pl_findings *findings;
    const pl_package *package;
} pair;

/* Finds a package by name or by an alias. */
static const pl_package *find(const pl_doctor_facts *facts, const char *name)
{
    const pl_package *found = pl_packages_get(&facts->packages, name);
    const char *framework = pl_rules_framework(&facts->rules, name);
    for (const pl_package *package = NULL;
         found == NULL && (package = pl_next_package(facts, package));)
        if (strcmp(pl_rules_framework(&facts->rules, package->name), framework) == 0)
            found = package;
    return found;
}

/* Returns whether `other` violates the rule. Sets `range` to the requirement, in the form that pip
 * accepts. */
static bool breaks_rule(const pair *two, const pl_rule *rule, const pl_package *other,
                        char range[64])
{
    bool same = strcmp(rule->needs, "same") == 0;
    pl_format(range, 64, "%s%s", same ? "==" : rule->needs, same ? two->package->version : "");
    return two->package->wheel && pl_version_in(other->version, range) == 0;
}

static const pl_rule *next_rule(const pair *two, const pl_rule *after)
{
    const pl_rules *rules = &two->facts->rules;
    const char *framework = pl_rules_framework(rules, two->package->name);
    return pl_rules_next(rules, after, "requires", framework, two->package->version);
}

/* Returns whether a rule covers this pair: its explanation is better than the metadata's. */
static bool rule_speaks(const pair *two, const pl_package *other)
{
    char range[64];
    for (const pl_rule *rule = NULL; (rule = next_rule(two, rule));)
        if (find(two->facts, rule->where) == other && breaks_rule(two, rule, other, range))
            return true;
    return false;
}

static void check_required(const pair *two, const pl_requirement *requirement)
{
    const pl_package *other = find(two->facts, requirement->name), *package = two->package;
    if (other == NULL) {
        pl_say(two->findings, PL_FINDING_FAIL,
               "%s %s requires %s %s, which is not installed: it will not import", package->name,
               package->version, requirement->name, requirement->range);
        pl_fix(two->findings, "%s -m pip install '%s%s'", two->facts->python.path,
               requirement->name, requirement->range);
    } else if (pl_version_in(other->version, requirement->range) == 0 && !rule_speaks(two, other)) {
        pl_say(two->findings, PL_FINDING_WARN,
               "%s %s requires %s %s but %s is installed: pip would not install these together",
               package->name, package->version, requirement->name, requirement->range,
               other->version);
        pl_fix(two->findings, "%s -m pip install '%s%s'", two->facts->python.path,
               requirement->name, requirement->range);
    }
}

static void check_metadata(const pair *two)
{
    const pl_marker_environment environment = {.python_version = two->facts->python.version,
                                               .machine = two->facts->processor.machine};
    char line[512];
    pl_requirement requirement;
    const char *cursor = two->package->metadata;
    while (pl_package_field(&cursor, "Requires-Dist", line, sizeof line))
        if (pl_requirement_parse(line, &environment, &requirement) == 1 &&
            pl_package_is_watched(requirement.name))
            check_required(two, &requirement);
}

static void check_rules(const pair *two)
{
    char range[64];
    for (const pl_rule *rule = NULL; (rule = next_rule(two, rule));) {
        const pl_package *other = find(two->facts, rule->where);
        if (other == NULL || !breaks_rule(two, rule, other, range))
            continue;
        pl_say(two->findings, PL_FINDING_FAIL, "%s %s with %s %s: %s", two->package->name,
               two->package->version, other->name, other->version, rule->says);
        if (strcmp(rule->needs, "same") == 0) /* a plugin must match its framework */
            pl_fix(two->findings, "%s -m pip install '%s==%s'", two->facts->python.path,
                   two->package->name, other->version);
        else
            pl_fix(two->findings, "%s -m pip install '%s%s'", two->facts->python.path, other->name,
                   range);
    }
}

/* ---- cuDNN ---- */

/* "nvidia-cudnn-cu12" for CUDA 12.x; conda calls it cudnn. */
static const pl_package *find_cudnn(const pl_doctor_facts *facts, const char *cuda)
{
    char name[PL_PACKAGE_NAME_BYTES];
    pl_format(name, sizeof name, "nvidia-cudnn-cu%.*s", (int)strcspn(cuda, "."), cuda);
    const pl_package *found = pl_packages_get(&facts->packages, name);
    return found != NULL ? found : pl_packages_get(&facts->packages, "cudnn");
}

/* Returns whether the major versions are equal and the minor one is not lower. */
static bool cudnn_serves(const char *there, const char *needed)
{
    pl_version a, b;
    if (pl_version_parse(there, &a) < 0 || pl_version_parse(needed, &b) < 0)
        return true;
    return a.parts[0] == b.parts[0] && a.parts[1] >= b.parts[1];
}

static const pl_rule *find_cudnn_rule(const pl_doctor_facts *facts, const pl_package *package,
                                      const char *cuda)
{
    pl_version version;
    char tag[24] = "";
    if (pl_version_parse(cuda, &version) == 0)
        pl_format(tag, sizeof tag, "cu%u%u", version.parts[0], version.parts[1]);
    const char *const words[] = {tag, "gpu"};
    const char *framework = pl_rules_framework(&facts->rules, package->name);
    for (const pl_rule *rule = NULL;
         (rule = pl_rules_next(&facts->rules, rule, "cudnn", framework, package->version));)
        if (pl_rule_is_for(rule, words, PL_COUNT_OF(words)))
            return rule;
    return NULL;
}

static void check_cudnn(const pair *two)
{
    char cuda[16];
    pl_cuda_of(two->facts, two->package, cuda);
    if (cuda[0] == '\0' || strcmp(cuda, "none") == 0)
        return;
    const pl_package *cudnn = find_cudnn(two->facts, cuda);
    const pl_rule *rule = find_cudnn_rule(two->facts, two->package, cuda);
    if (cudnn == NULL || rule == NULL || cudnn_serves(cudnn->version, rule->needs))
        return;
    pl_say(two->findings, PL_FINDING_FAIL,
           "%s %s was built with cuDNN %s but %s %s is installed: its first convolution on a GPU "
           "fails (it needs the same major version and at least that minor version)",
           two->package->name, two->package->version, rule->needs, cudnn->name, cudnn->version);
    pl_fix(two->findings, "%s -m pip install '%s~=%s'", two->facts->python.path, cudnn->name,
           rule->needs);
}

void pl_check_requirements(const pl_doctor_facts *facts, pl_findings *findings)
{
    pair two = {.facts = facts, .findings = findings};
    size_t n = 0;
    while ((two.package = pl_next_package(facts, two.package)) != NULL) {
        n++;
        check_rules(&two);
        check_metadata(&two);
        check_cudnn(&two);
    }
    if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK, "%s",
               n > 1 ? "the packages are compatible, by their metadata and the known facts"
                     : "no packages to check against each other");
}
