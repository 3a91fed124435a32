/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of builds of frameworks: data/doctor.csv, a fact and its source a row.
 *   rule      a row. docs/doctor.md tells what its columns mean for each kind
 *   alias     another name that a framework is distributed under; rules are of the framework
 *   flavour   how an alias differs: "cpu" has no GPU part
 * The file is read once and then only looked at. Allocates in load alone. */
#ifndef PL_PREFLIGHT_RULES_H
#define PL_PREFLIGHT_RULES_H

#include "base/base.h"

typedef struct pl_rule {
    const char *kind;
    const char *package;  /* normalised */
    const char *versions; /* the range that the rule is for */
    const char *where;    /* "x86_64", "cu126 x86_64", another package, ...; "" = everywhere */
    const char *needs;
    const char *says; /* what happens otherwise; may be "" */
    const char *source;
} pl_rule;

typedef struct pl_rules {
    size_t n;
    pl_rule *items;
    char *text;
} pl_rules;

/* PL_EFORMAT, with the line, for a file that is not such a table. */
PL_MUST_CHECK int pl_rules_load(const char *path, pl_rules *ret_rules, pl_error *reterr);

/* The same from a text, which is the rules' from then on, whatever is returned; `path` is for the
 * message. */
PL_MUST_CHECK int pl_rules_parse(char *text, const char *path, pl_rules *ret_rules,
                                 pl_error *reterr);
void pl_rules_done(pl_rules *rules);

/* The rule behind `after` (NULL: the first) of that kind for that version of a package; NULL: no
 * more. The package is a framework's name, not an alias. */
const pl_rule *pl_rules_next(const pl_rules *rules, const pl_rule *after, const char *kind,
                             const char *package, const char *version);

/* The framework that a package is, under whatever name; the name itself if it is no alias. */
const char *pl_rules_framework(const pl_rules *rules, const char *package);
const char *pl_rules_flavour(const pl_rules *rules, const char *package);

/* Is each blank-separated word of `where` among the `n` words? "" is. */
bool pl_rule_is_for(const pl_rule *rule, const char *const *words, size_t n);

#endif
