/* SPDX-License-Identifier: Apache-2.0 */
/* See marker.h. Markers are parsed by recursive descent: or, and, comparison. */
#include "preflight/marker.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "preflight/version.h"

enum { VALUE_BYTES = 96, DEPTH = 12 };

typedef struct reader {
    const char *cursor;
    const pl_marker_environment *environment;
    bool failed;
    int depth;
} reader;

typedef struct value {
    char text[VALUE_BYTES];
    bool is_version; /* a variable that holds one */
} value;

static void skip_blanks(reader *from)
{
    from->cursor += strspn(from->cursor, " \t");
}

/* Matches a keyword, unless it begins a longer word. */
static bool take_keyword(reader *from, const char *word)
{
    skip_blanks(from);
    size_t n = strlen(word);
    if (strncmp(from->cursor, word, n) != 0)
        return false;
    if (isalpha((unsigned char)word[0]) &&
        (isalnum((unsigned char)from->cursor[n]) || from->cursor[n] == '_'))
        return false;
    from->cursor += n;
    return true;
}

static value variable(const reader *from, const char *name)
{
    const pl_marker_environment *environment = from->environment;
    const struct {
        const char *name, *text;
        bool is_version;
    } known[] = {
        {"python_version", environment->python_version, true},
        {"python_full_version", environment->python_version, true},
        {"implementation_version", environment->python_version, true},
        {"platform_machine", environment->machine, false},
        {"platform_system", "Linux", false},
        {"sys_platform", "linux", false},
        {"os_name", "posix", false},
        {"implementation_name", "cpython", false},
        {"platform_python_implementation", "CPython", false},
        {"extra", "", false},
    };
    value found = {0};
    for (size_t i = 0; i < PL_COUNT_OF(known); i++) {
        if (strcmp(name, known[i].name) == 0) {
            snprintf(found.text, sizeof found.text, "%s", known[i].text);
            found.is_version = known[i].is_version;
            return found;
        }
    }
    found.text[0] = '?'; /* equal to nothing that anybody writes */
    return found;
}

static value take_value(reader *from)
{
    value taken = {0};
    skip_blanks(from);
    char quote = *from->cursor;
    bool quoted = quote == '"' || quote == '\'';
    const char *start = from->cursor + quoted;
    size_t n = quoted ? strcspn(start, quote == '"' ? "\"" : "'")
                      : strspn(start, "abcdefghijklmnopqrstuvwxyz_");
    if (n >= sizeof taken.text || (quoted && start[n] != quote) || (!quoted && n == 0)) {
        from->failed = true;
        return taken;
    }
    memcpy(taken.text, start, n);
    from->cursor = start + n + quoted;
    return quoted ? taken : variable(from, taken.text);
}

static bool compare(reader *from, const value *left, const char *sign, const value *right)
{
    char range[VALUE_BYTES + 4];
    bool equal = strcmp(left->text, right->text) == 0;
    bool contains =
        strcmp(sign, "in") == 0 || strcmp(sign, "not in") == 0; /* of texts, by PEP 508 */
    if (!contains && (left->is_version || right->is_version)) {
        const value *version = left->is_version ? left : right;
        const value *other = left->is_version ? right : left;
        snprintf(range, sizeof range, "%s%s", sign, other->text);
        int r = pl_version_in(version->text, range);
        from->failed |= r < 0 || !left->is_version;
        return r == 1;
    }
    if (strcmp(sign, "==") == 0 || strcmp(sign, "===") == 0)
        return equal;
    if (strcmp(sign, "!=") == 0)
        return !equal;
    if (strcmp(sign, "in") == 0)
        return strstr(right->text, left->text) != NULL && left->text[0] != '\0';
    if (strcmp(sign, "not in") == 0)
        return strstr(right->text, left->text) == NULL;
    from->failed = true; /* texts have no order */
    return false;
}

static bool take_comparison(reader *from)
{
    static const char *const signs[] = {"===", "==", "!=", "~=", ">=", "<=", ">", "<", "in"};
    value left = take_value(from);
    const char *sign = NULL;
    if (take_keyword(from, "not"))
        sign = take_keyword(from, "in") ? "not in" : NULL;
    else
        for (size_t i = 0; sign == NULL && i < PL_COUNT_OF(signs); i++)
            sign = take_keyword(from, signs[i]) ? signs[i] : NULL;
    if (sign == NULL || from->failed) {
        from->failed = true;
        return false;
    }
    value right = take_value(from);
    return !from->failed && compare(from, &left, sign, &right);
}

static bool take_or(reader *from);

static bool take_term(reader *from)
{
    if (!take_keyword(from, "("))
        return take_comparison(from);
    if (++from->depth > DEPTH) {
        from->failed = true;
        return false;
    }
    bool is_true = take_or(from);
    from->depth--;
    from->failed |= !take_keyword(from, ")");
    return is_true;
}

static bool take_and(reader *from)
{
    bool is_true = take_term(from);
    while (!from->failed && take_keyword(from, "and"))
        is_true &= take_term(from);
    return is_true;
}

static bool take_or(reader *from)
{
    bool is_true = take_and(from);
    while (!from->failed && take_keyword(from, "or"))
        is_true |= take_and(from);
    return is_true;
}

bool pl_marker_holds(const char *marker, const pl_marker_environment *environment)
{
    reader from = {.cursor = marker, .environment = environment};
    bool is_true = take_or(&from);
    skip_blanks(&from);
    return is_true && !from.failed && *from.cursor == '\0';
}

bool pl_package_normalise(const char *name, size_t n, char out[PL_PACKAGE_NAME_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        bool separates = name[i] == '-' || name[i] == '_' || name[i] == '.';
        if (separates && used > 0 && out[used - 1] == '-')
            continue;
        if (used + 1 >= PL_PACKAGE_NAME_BYTES)
            return false;
        out[used++] = separates ? '-' : (char)tolower((unsigned char)name[i]);
    }
    out[used] = '\0';
    return used > 0;
}

/* Copies the range without the parentheses that old metadata puts around it. */
static bool copy_range(const char *text, size_t n, char range[PL_PACKAGE_RANGE_BYTES])
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '(' || text[i] == ')')
            continue;
        if (used + 1 >= PL_PACKAGE_RANGE_BYTES)
            return false;
        range[used++] = text[i];
    }
    while (used > 0 && isspace((unsigned char)range[used - 1]))
        used--;
    range[used] = '\0';
    return true;
}

int pl_requirement_parse(const char *line, const pl_marker_environment *environment,
                         pl_requirement *ret_requirement)
{
    pl_requirement requirement;
    const char *end = line + strcspn(line, ";");
    if (*end == ';' && !pl_marker_holds(end + 1, environment))
        return 0;
    line += strspn(line, " \t");
    size_t n = 0;
    while (isalnum((unsigned char)line[n]) || (line[n] && strchr("-_.", line[n])))
        n++;
    if (!pl_package_normalise(line, n, requirement.name))
        return PL_EFORMAT;
    line += n + strspn(line + n, " \t");
    if (*line == '[') /* extras of the other one */
        line += strcspn(line, "]") + (strchr(line, ']') != NULL);
    if (line > end || memchr(line, '@', (size_t)(end - line)) != NULL)
        return PL_EFORMAT; /* a URL: it does not mention versions */
    line += strspn(line, " \t");
    if (line > end || !copy_range(line, (size_t)(end - line), requirement.range))
        return PL_EFORMAT;
    *ret_requirement = requirement;
    return 1;
}
