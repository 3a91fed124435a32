/* SPDX-License-Identifier: Apache-2.0 */
/* See schema.h. */
#include "verify/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/record/example.h"
#include "codec/text/excerpt.h"

/* More features than anybody names one by one. */
enum { MOST_ENTRIES = 4096 };

typedef struct schema_entry {
    char *name;
    size_t n_name;
    pl_feature_kind kind;
    pl_example_part part;
    uint64_t seen; /* the last turn that saw it */
} schema_entry;

struct pl_verify_schema {
    size_t n;
    uint64_t turn;
    schema_entry entries[];
};

void pl_verify_schema_free(pl_verify_schema *schema)
{
    for (size_t i = 0; schema && i < schema->n; i++)
        free(schema->entries[i].name);
    free(schema);
}

/* Looks at all steps; the kind is that of the first one that has any. */
static int kind_of_list(const pl_example_entry *entry, pl_feature_kind *ret_kind, pl_error *reterr)
{
    pl_feature_list list;
    pl_feature step;
    int r = pl_feature_list_of(entry, &list, reterr);
    *ret_kind = PL_FEATURE_NONE;
    while (r >= 0 && (r = pl_feature_list_next(&list, &step, reterr)) > 0)
        if (*ret_kind == PL_FEATURE_NONE)
            *ret_kind = step.kind;
    return r;
}

static int kind_of(const pl_example_entry *entry, pl_example_part part, pl_feature_kind *ret_kind,
                   pl_error *reterr)
{
    if (part == PL_EXAMPLE_LISTS)
        return kind_of_list(entry, ret_kind, reterr);
    pl_feature feature;
    int r = pl_feature_of(entry, &feature, reterr);
    if (r >= 0)
        *ret_kind = feature.kind;
    return r;
}

/* ---- taking a schema from a record ---- */

static int add_entry(pl_verify_schema **schema, const pl_example_entry *entry, pl_example_part part,
                     pl_error *reterr)
{
    pl_feature_kind kind = PL_FEATURE_NONE;
    size_t n = (*schema)->n;
    int r = kind_of(entry, part, &kind, reterr);
    if (r < 0 || n == MOST_ENTRIES)
        return r;
    pl_verify_schema *larger = realloc(*schema, sizeof **schema + (n + 1) * sizeof(schema_entry));
    if (!larger)
        return -ENOMEM;
    *schema = larger;
    char *name = malloc(entry->name_bytes + 1);
    if (!name)
        return -ENOMEM;
    memcpy(name, entry->name, entry->name_bytes);
    larger->entries[n] =
        (schema_entry){.name = name, .n_name = entry->name_bytes, .kind = kind, .part = part};
    larger->n++;
    return 0;
}

static int add_part(pl_verify_schema **schema, const void *record, size_t n, pl_example_part part,
                    pl_error *reterr)
{
    pl_example example = pl_example_begin(record, n, part);
    pl_example_entry entry;
    int r;
    while ((r = pl_example_next(&example, &entry, reterr)) > 0)
        if ((r = add_entry(schema, &entry, part, reterr)) < 0)
            break;
    return r;
}

int pl_verify_schema_new(const void *record, size_t n, pl_verify_schema **ret_schema)
{
    pl_verify_schema *schema = calloc(1, sizeof *schema);
    pl_error why = {0};
    if (!schema)
        return -ENOMEM;
    int r = add_part(&schema, record, n, PL_EXAMPLE_FEATURES, &why);
    if (r == 0)
        r = add_part(&schema, record, n, PL_EXAMPLE_LISTS, &why);
    if (r < 0 || schema->n == 0) {
        pl_verify_schema_free(schema);
        return r == -ENOMEM ? r : 0;
    }
    *ret_schema = schema;
    return 1;
}

/* ---- comparing ---- */

/* Looks first where it is expected: most writers keep an order. */
static schema_entry *find(pl_verify_schema *schema, size_t expected, const char *name, size_t n,
                          pl_example_part part)
{
    for (size_t i = 0; i < schema->n; i++) {
        schema_entry *entry = &schema->entries[(expected + i) % schema->n];
        if (entry->n_name == n && entry->part == part && memcmp(entry->name, name, n) == 0)
            return entry;
    }
    return NULL;
}

static pl_verify_severity say_new(const char *name, size_t n, pl_feature_kind kind, char *text)
{
    snprintf(text, PL_VERIFY_DIFFERENCE_BYTES, "feature '%s' (%s) is one that the first has not",
             pl_excerpt_of(name, n).text, pl_feature_kind_name(kind));
    return PL_VERIFY_WARNING;
}

static pl_verify_severity say_missing(const schema_entry *entry, char *text)
{
    snprintf(text, PL_VERIFY_DIFFERENCE_BYTES, "feature '%s' (%s) of the first is missing",
             pl_excerpt_of(entry->name, entry->n_name).text, pl_feature_kind_name(entry->kind));
    return PL_VERIFY_WARNING;
}

static pl_verify_severity say_kind(const schema_entry *entry, pl_feature_kind kind, char *text)
{
    snprintf(text, PL_VERIFY_DIFFERENCE_BYTES, "feature '%s' has %s, in the first one it has %s",
             pl_excerpt_of(entry->name, entry->n_name).text, pl_feature_kind_name(kind),
             pl_feature_kind_name(entry->kind));
    return PL_VERIFY_ERROR;
}

/* The comparison with one record, or with one other schema. */
typedef struct turn {
    pl_verify_schema *schema;
    size_t at, n_seen;
    pl_verify_severity worst;
    char *text;
} turn;

static void keep(turn *t, pl_verify_severity severity)
{
    t->worst = severity > t->worst ? severity : t->worst;
}

static void compare_entry(turn *t, const char *name, size_t n, pl_example_part part,
                          pl_feature_kind kind)
{
    schema_entry *entry = find(t->schema, t->at++, name, n, part);
    if (!entry) {
        if (t->worst == PL_VERIFY_GOOD)
            keep(t, say_new(name, n, kind, t->text));
        return;
    }
    t->n_seen += entry->seen != t->schema->turn;
    entry->seen = t->schema->turn;
    if (entry->kind == PL_FEATURE_NONE)
        entry->kind = kind;
    else if (kind != PL_FEATURE_NONE && kind != entry->kind && t->worst < PL_VERIFY_ERROR)
        keep(t, say_kind(entry, kind, t->text));
}

static pl_verify_severity end_turn(turn *t)
{
    for (size_t i = 0; t->n_seen < t->schema->n && i < t->schema->n; i++)
        if (t->worst == PL_VERIFY_GOOD && t->schema->entries[i].seen != t->schema->turn)
            keep(t, say_missing(&t->schema->entries[i], t->text));
    return t->worst;
}

static int compare_part(turn *t, const void *record, size_t n, pl_example_part part,
                        pl_error *reterr)
{
    pl_example example = pl_example_begin(record, n, part);
    pl_example_entry entry;
    pl_feature_kind kind = PL_FEATURE_NONE;
    int r;
    while ((r = pl_example_next(&example, &entry, reterr)) > 0) {
        if ((r = kind_of(&entry, part, &kind, reterr)) < 0)
            break;
        compare_entry(t, entry.name, entry.name_bytes, part, kind);
    }
    return r;
}

pl_verify_severity pl_verify_schema_compare(pl_verify_schema *schema, const void *record, size_t n,
                                            char text[PL_VERIFY_DIFFERENCE_BYTES])
{
    turn t = {.schema = schema, .text = text};
    pl_error why = {0};
    schema->turn++;
    int r = compare_part(&t, record, n, PL_EXAMPLE_FEATURES, &why);
    if (r == 0)
        r = compare_part(&t, record, n, PL_EXAMPLE_LISTS, &why);
    if (r < 0) {
        snprintf(text, PL_VERIFY_DIFFERENCE_BYTES, "it is no Example, as the first is: %.120s",
                 why.message);
        return PL_VERIFY_ERROR;
    }
    return end_turn(&t);
}

pl_verify_severity pl_verify_schema_compare_schema(pl_verify_schema *schema,
                                                   const pl_verify_schema *other,
                                                   char text[PL_VERIFY_DIFFERENCE_BYTES])
{
    turn t = {.schema = schema, .text = text};
    schema->turn++;
    for (size_t i = 0; i < other->n; i++)
        compare_entry(&t, other->entries[i].name, other->entries[i].n_name, other->entries[i].part,
                      other->entries[i].kind);
    return end_turn(&t);
}
