/* SPDX-License-Identifier: Apache-2.0 */
/* See version.h. */
#include "preflight/version.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool take_number(const char **cursor, uint32_t *ret_number)
{
    uint64_t number = 0;
    const char *c = *cursor;
    for (; isdigit((unsigned char)*c); c++) {
        number = 10 * number + (uint64_t)(*c - '0');
        if (number >= UINT32_MAX)
            return false; /* the largest is kept for "none" */
    }
    if (c == *cursor)
        return false;
    *cursor = c;
    *ret_number = (uint32_t)number;
    return true;
}

static void skip_separator(const char **cursor)
{
    if (**cursor == '.' || **cursor == '-' || **cursor == '_')
        ++*cursor;
}

/* Takes a word, after an optional separator, and the number after it (0 if missing). Moves only if
 * the word is there. */
static bool take_word(const char **cursor, const char *word, uint32_t *ret_number)
{
    const char *c = *cursor;
    skip_separator(&c);
    if (strncasecmp(c, word, strlen(word)) != 0)
        return false;
    c += strlen(word);
    const char *digits = c;
    skip_separator(&digits);
    *ret_number = 0;
    if (take_number(&digits, ret_number))
        c = digits;
    *cursor = c;
    return true;
}

static bool take_release(const char **cursor, pl_version *version)
{
    if (!take_number(cursor, &version->parts[0]))
        return false;
    if (**cursor == '!') {
        version->epoch = version->parts[0];
        ++*cursor;
        if (!take_number(cursor, &version->parts[0]))
            return false;
    }
    version->n_parts = 1;
    while ((*cursor)[0] == '.' && isdigit((unsigned char)(*cursor)[1])) {
        if (version->n_parts == PL_VERSION_PARTS)
            return false;
        ++*cursor;
        if (!take_number(cursor, &version->parts[version->n_parts++]))
            return false;
    }
    return true;
}

static void take_stage(const char **cursor, pl_version *version)
{
    static const struct {
        const char *word;
        int stage;
    } words[] = {{"alpha", -3}, {"a", -3},       {"beta", -2}, {"b", -2},
                 {"rc", -1},    {"preview", -1}, {"pre", -1},  {"c", -1}};
    for (size_t i = 0; i < PL_COUNT_OF(words); i++) {
        if (take_word(cursor, words[i].word, &version->stage_number)) {
            version->stage = words[i].stage;
            return;
        }
    }
}

static void take_post_and_dev(const char **cursor, pl_version *version)
{
    uint32_t number;
    if (take_word(cursor, "post", &number) || take_word(cursor, "rev", &number))
        version->post = number + 1;
    version->dev = UINT32_MAX;
    if (take_word(cursor, "dev", &number))
        version->dev = number;
    if (version->dev != UINT32_MAX && version->post == 0 && version->stage == 0)
        version->stage = -4;
}

static bool take_local(const char **cursor, pl_version *version)
{
    if (**cursor != '+')
        return true;
    ++*cursor;
    size_t n = 0;
    for (; isalnum((unsigned char)**cursor) || (**cursor && strchr("._-", **cursor)); ++*cursor)
        if (n + 1 < sizeof version->local)
            version->local[n++] = (char)tolower((unsigned char)**cursor);
    version->local[n] = '\0';
    return n > 0;
}

static bool take_version(const char **cursor, pl_version *ret_version)
{
    pl_version version = {0};
    if (**cursor == 'v' || **cursor == 'V')
        ++*cursor;
    if (!take_release(cursor, &version))
        return false;
    take_stage(cursor, &version);
    take_post_and_dev(cursor, &version);
    if (!take_local(cursor, &version))
        return false;
    *ret_version = version;
    return true;
}

int pl_version_parse(const char *text, pl_version *ret_version)
{
    pl_version version;
    if (!take_version(&text, &version) || *text != '\0')
        return PL_EFORMAT;
    *ret_version = version;
    return 0;
}

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_release(const pl_version *a, const pl_version *b)
{
    int r = order(a->epoch, b->epoch);
    for (int i = 0; r == 0 && i < PL_VERSION_PARTS; i++) /* parts that are not there are 0 */
        r = order(a->parts[i], b->parts[i]);
    return r;
}

int pl_version_compare(const pl_version *a, const pl_version *b)
{
    const int64_t pairs[][2] = {{a->stage, b->stage},
                                {a->stage_number, b->stage_number},
                                {a->post, b->post},
                                {a->dev, b->dev}};
    int r = compare_release(a, b);
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(pairs); i++)
        r = order(pairs[i][0], pairs[i][1]);
    return r;
}

/* For "==2.21.*": returns whether the parts of "2.21" agree. */
static bool has_prefix(const pl_version *version, const pl_version *prefix, int n_parts)
{
    if (version->epoch != prefix->epoch)
        return false;
    for (int i = 0; i < n_parts; i++)
        if (version->parts[i] != prefix->parts[i])
            return false;
    return true;
}

typedef struct condition {
    char sign[4];
    bool any_end; /* ".*" */
    pl_version version;
} condition;

static bool is_before_release(const pl_version *version)
{
    return version->stage < 0 || version->dev != UINT32_MAX;
}

/* "<2.3" excludes 2.3rc1, which precedes 2.3; ">2.3" excludes 2.3.post1 and 2.3+cpu. */
static bool is_same_release(const pl_version *version, const pl_version *other, int r)
{
    if (compare_release(version, other) != 0)
        return false;
    if (r < 0)
        return is_before_release(version) && !is_before_release(other);
    return (version->post > 0 && other->post == 0) || version->local[0] != '\0';
}

static bool holds(const pl_version *version, const condition *asked)
{
    const char *sign = asked->sign;
    const pl_version *other = &asked->version;
    int r = pl_version_compare(version, other);
    bool same_local = other->local[0] == '\0' || strcmp(version->local, other->local) == 0;
    bool equal = asked->any_end ? has_prefix(version, other, other->n_parts) : r == 0 && same_local;
    if (strcmp(sign, "==") == 0 || strcmp(sign, "===") == 0)
        return equal;
    if (strcmp(sign, "!=") == 0)
        return !equal;
    if (strcmp(sign, "~=") == 0)
        return r >= 0 && has_prefix(version, other, other->n_parts - 1);
    if (strcmp(sign, ">=") == 0)
        return r >= 0;
    if (strcmp(sign, "<=") == 0)
        return r <= 0;
    return (sign[0] == '>' ? r > 0 : r < 0) && !is_same_release(version, other, r);
}

static bool take_sign(const char **cursor, char sign[4])
{
    static const char *const signs[] = {"===", "==", "!=", "~=", ">=", "<=", ">", "<"};
    for (size_t i = 0; i < PL_COUNT_OF(signs); i++) {
        if (strncmp(*cursor, signs[i], strlen(signs[i])) == 0) {
            *cursor += strlen(signs[i]);
            strcpy(sign, signs[i]);
            return true;
        }
    }
    return false;
}

static bool take_condition(const char **cursor, condition *asked)
{
    *asked = (condition){0};
    if (!take_sign(cursor, asked->sign))
        return false;
    *cursor += strspn(*cursor, " \t");
    if (!take_version(cursor, &asked->version))
        return false;
    if (strncmp(*cursor, ".*", 2) == 0) {
        asked->any_end = true;
        *cursor += 2;
        return strcmp(asked->sign, "==") == 0 || strcmp(asked->sign, "!=") == 0;
    }
    return strcmp(asked->sign, "~=") != 0 || asked->version.n_parts > 1;
}

int pl_version_in(const char *version, const char *range)
{
    static const char between[] = " \t,";
    pl_version parsed;
    int r = pl_version_parse(version, &parsed), all = 1;
    for (range += strspn(range, between); r == 0 && *range != '\0';
         range += strspn(range, between)) {
        condition asked;
        if (!take_condition(&range, &asked) || (*range != '\0' && !strchr(between, *range)))
            return PL_EFORMAT;
        if (!holds(&parsed, &asked))
            all = 0;
    }
    return r < 0 ? r : all;
}
