/* SPDX-License-Identifier: Apache-2.0 */
/* See names.h. */
#include "graph/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACES = 64, SUFFIX_BYTES = 12 /* "_4294967295" */ };

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

/* Returns the place where the text is, or would be put. */
static pl_name *place_of(pl_name *places, size_t n_places, const char *text, uint32_t hash)
{
    size_t i = hash & (n_places - 1);
    while (places[i].text && (places[i].hash != hash || strcmp(places[i].text, text) != 0))
        i = (i + 1) & (n_places - 1);
    return &places[i];
}

static pl_name *find(const pl_names *names, const char *text)
{
    if (names->n_places == 0)
        return NULL;
    pl_name *place = place_of(names->places, names->n_places, text, hash_of(text));
    return place->text ? place : NULL;
}

const pl_name *pl_names_find(const pl_names *names, const char *text)
{
    return find(names, text);
}

static int grow_places(pl_names *names)
{
    if (names->n_used + 1 <= names->n_places / 2)
        return 0;
    size_t n_places = names->n_places > 0 ? names->n_places * 4 : FIRST_PLACES;
    pl_name *places = calloc(n_places, sizeof *places);
    if (!places)
        return -ENOMEM;
    for (size_t i = 0; i < names->n_places; i++) {
        const pl_name *old = &names->places[i];
        if (old->text)
            *place_of(places, n_places, old->text, old->hash) = *old;
    }
    free(names->places);
    names->places = places;
    names->n_places = n_places;
    return 0;
}

static int grow_scratch(pl_names *names, size_t bytes)
{
    if (bytes <= names->scratch_bytes)
        return 0;
    char *scratch = realloc(names->scratch, 2 * bytes);
    if (!scratch)
        return -ENOMEM;
    names->scratch = scratch;
    names->scratch_bytes = 2 * bytes;
    return 0;
}

/* Written by hand, because sprintf() took a third of the time of making a node. */
static void write_suffix(char *at, uint32_t suffix)
{
    char digits[SUFFIX_BYTES];
    int n = 0;
    for (; suffix > 0; suffix /= 10)
        digits[n++] = (char)('0' + suffix % 10);
    *at++ = '_';
    while (n > 0)
        *at++ = digits[--n];
    *at = '\0';
}

/* Finds the first number that makes the name free. The number stays free if the name is not added
 * in the end, so the next search begins with it. */
static void add_suffix(pl_names *names, pl_name *taken, char *at)
{
    uint32_t suffix = pl_max_u64(taken->next_suffix, 1);
    write_suffix(at, suffix);
    while (find(names, names->scratch))
        write_suffix(at, ++suffix);
    taken->next_suffix = suffix;
}

int pl_names_make(pl_names *names, const char *prefix, const char *name, const char **ret_text)
{
    size_t n_prefix = strlen(prefix), n_name = strlen(name);
    int r = grow_places(names);
    if (r == 0)
        r = grow_scratch(names, n_prefix + n_name + SUFFIX_BYTES);
    if (r < 0)
        return r;

    memcpy(names->scratch, prefix, n_prefix);
    memcpy(names->scratch + n_prefix, name, n_name + 1);
    pl_name *taken = find(names, names->scratch);
    if (taken)
        add_suffix(names, taken, names->scratch + n_prefix + n_name);
    *ret_text = names->scratch;
    return 0;
}

void pl_names_add(pl_names *names, const char *copy, pl_node *node)
{
    uint32_t hash = hash_of(copy);
    pl_name *place = place_of(names->places, names->n_places, copy, hash);
    *place = (pl_name){.text = copy, .hash = hash, .node = node};
    names->n_used++;
}

void pl_names_done(pl_names *names)
{
    free(names->places);
    free(names->scratch);
    *names = (pl_names){0};
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *pl_name_problem(const char *text)
{
    if (!*text)
        return "a name has at least one character";
    for (const char *at = text; *at; at++)
        if (!is_letter_or_digit(*at) && !strchr("_.-/", *at))
            return "a name has letters (of ASCII), digits and '_', '.', '-' or '/'";
    if (!is_letter_or_digit(*text) && *text != '.')
        return "a name begins with a letter, a digit or '.'";
    return NULL;
}
