/* SPDX-License-Identifier: Apache-2.0 */
/* Known facts about builds of frameworks: data/doctor.csv, one fact and its source per row.
 *   rule      a row; docs/doctor.md explains the columns for each kind
 *   alias     another name that a framework is distributed under; rules name the framework
 *   flavour   how an alias differs: "cpu" is built without GPU support
 * The file is read once. Only load allocates. */
#ifndef PL_PREFLIGHT_RULES_H
#define PL_PREFLIGHT_RULES_H

#include "base/base.h"

typedef struct pl_rule {
    const char *kind;
    const char *package;  /* normalised */
    const char *versions; /* the versions it applies to */
    const char *where;    /* "x86_64", "cu126 x86_64", another package, ...; "" = everywhere */
    const char *needs;
    const char *says; /* what happens otherwise; can be "" */
    const char *source;
} pl_rule;

typedef struct pl_rules {
    size_t n;
    pl_rule *items;
    char *text;
} pl_rules;

/* PL_EFORMAT, with the line, if the file is not such a table. */
PL_MUST_CHECK int pl_rules_load(const char *path, pl_rules *ret_rules, pl_error *reterr);

/* Parses a text and takes ownership of it, even on failure; `path` is for the message. */
PL_MUST_CHECK int pl_rules_parse(char *text, const char *path, pl_rules *ret_rules,
                                 pl_error *reterr);
void pl_rules_done(pl_rules *rules);

/* Returns the rule after `after` (NULL: the first) of that kind for that version of a framework
 * (not an alias), or NULL at the end. */
const pl_rule *pl_rules_next(const pl_rules *rules, const pl_rule *after, const char *kind,
                             const char *package, const char *version);

/* Returns the framework that a package is a build of; its own name if it is not an alias. */
const char *pl_rules_framework(const pl_rules *rules, const char *package);
const char *pl_rules_flavour(const pl_rules *rules, const char *package);

/* Returns whether each word of `where` is among the `n` words; true for "". */
bool pl_rule_is_for(const pl_rule *rule, const char *const *words, size_t n);

#endif
