/* SPDX-License-Identifier: Apache-2.0 */
/* See rules.h. CSV by RFC 4180, but without line ends inside fields. */
#include "preflight/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "preflight/sysroot.h"
#include "preflight/version.h"

enum { N_FIELDS = 7, MOST_BYTES = 1 << 20 };

static const char header[] = "kind,package,versions,where,needs,says,source";

/* Takes a field from the line, in place: quotes are removed, doubled ones become one. */
static char *take_field(char **cursor)
{
    char *in = *cursor, *out = in, *start = in;
    bool quoted = *in == '"';
    in += quoted;
    while (*in != '\0' && (quoted || *in != ',')) {
        if (quoted && in[0] == '"' && in[1] != '"') {
            in++;
            break;
        }
        in += quoted && in[0] == '"';
        *out++ = *in++;
    }
    *cursor = *in == ',' ? in + 1 : *in == '\0' ? NULL : in;
    *out = '\0';
    return start;
}

static bool parse_row(char *line, pl_rule *rule)
{
    const char **const fields[N_FIELDS] = {&rule->kind,  &rule->package, &rule->versions,
                                           &rule->where, &rule->needs,   &rule->says,
                                           &rule->source};
    char *cursor = line;
    for (int i = 0; i < N_FIELDS; i++) {
        if (cursor == NULL)
            return false;
        *fields[i] = take_field(&cursor);
    }
    return cursor == NULL && rule->kind[0] != '\0' && rule->package[0] != '\0' &&
           rule->source[0] != '\0';
}

static int add_row(pl_rules *rules, char *line)
{
    size_t n = rules->n;
    if ((n & (n - 1)) == 0) {
        pl_rule *items = realloc(rules->items, (n == 0 ? 1 : 2 * n) * sizeof *items);
        if (items == NULL)
            return -ENOMEM;
        rules->items = items;
    }
    if (!parse_row(line, &rules->items[n]))
        return PL_EFORMAT;
    rules->n++;
    return 0;
}

/* Lines that begin with '#' and empty lines are skipped; the first other line names the columns. */
static int parse(pl_rules *rules, const char *path, pl_error *reterr)
{
    bool named = false;
    int number = 0;
    for (char *line = rules->text, *next; line != NULL; line = next) {
        number++;
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        int r = named ? add_row(rules, line) : strcmp(line, header) == 0 ? 0 : PL_EFORMAT;
        if (r < 0)
            return pl_error_set(reterr, r, "'%s', line %d: not a row of '%s'", path, number,
                                header);
        named = true;
    }
    return named ? 0 : pl_error_set(reterr, PL_EFORMAT, "'%s' has no rows", path);
}

int pl_rules_load(const char *path, pl_rules *ret_rules, pl_error *reterr)
{
    char *text = NULL;
    int r = pl_sysroot_read("", path, MOST_BYTES, &text);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot read the facts in '%s': %s", path, pl_error_text(r));
    return pl_rules_parse(text, path, ret_rules, reterr);
}

int pl_rules_parse(char *text, const char *path, pl_rules *ret_rules, pl_error *reterr)
{
    pl_rules rules = {.text = text};
    int r = parse(&rules, path, reterr);
    if (r < 0) {
        pl_rules_done(&rules);
        return r;
    }
    *ret_rules = rules;
    return 0;
}

void pl_rules_done(pl_rules *rules)
{
    free(rules->items);
    free(rules->text);
    *rules = (pl_rules){0};
}

const pl_rule *pl_rules_next(const pl_rules *rules, const pl_rule *after, const char *kind,
                             const char *package, const char *version)
{
    size_t first = after == NULL ? 0 : (size_t)(after - rules->items) + 1;
    for (size_t i = first; i < rules->n; i++) {
        const pl_rule *rule = &rules->items[i];
        if (strcmp(rule->kind, kind) == 0 && strcmp(rule->package, package) == 0 &&
            (rule->versions[0] == '\0' || pl_version_in(version, rule->versions) == 1))
            return rule;
    }
    return NULL;
}

static const pl_rule *find_alias(const pl_rules *rules, const char *package)
{
    return pl_rules_next(rules, NULL, "alias", package, "0");
}

const char *pl_rules_framework(const pl_rules *rules, const char *package)
{
    const pl_rule *alias = find_alias(rules, package);
    return alias != NULL ? alias->needs : package;
}

const char *pl_rules_flavour(const pl_rules *rules, const char *package)
{
    const pl_rule *alias = find_alias(rules, package);
    return alias != NULL ? alias->where : "";
}

static bool is_among(const char *word, size_t length, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(words[i]) == length && memcmp(words[i], word, length) == 0)
            return true;
    return false;
}

bool pl_rule_is_for(const pl_rule *rule, const char *const *words, size_t n)
{
    const char *word = rule->where;
    while (*(word += strspn(word, " ")) != '\0') {
        size_t length = strcspn(word, " ");
        if (!is_among(word, length, words, n))
            return false;
        word += length;
    }
    return true;
}
