/* SPDX-License-Identifier: Apache-2.0 */
/* What the tools that build graphs as told have in common: a line's words, and what they say.
 * Inputs are names with commas between them, "-" for none; attributes are NAME=KIND:VALUE, with the
 * kinds i f b d (dtype) s (shape, "[2,?,3]") l (integers, "1,2,-3" or "-") t (text). */
#ifndef TESTS_PROGRAMS_GRAPH_WORDS_H
#define TESTS_PROGRAMS_GRAPH_WORDS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/graph.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { WORDS = 128 };

static pl_graph *graph;
static pl_error error;
static char *words[WORDS];
static int n_words;

static void split_words(char *line)
{
    n_words = 0;
    for (char *next = strtok(line, " \n"); next && n_words < WORDS; next = strtok(NULL, " \n"))
        words[n_words++] = next;
}

/* "1,2,-3", a shape's "2,?]", a region's "0:2,1:3"; "-" for none. */
static int read_ints(const char *text, int64_t *values, int max)
{
    int n = 0;
    while (*text && *text != ']' && strcmp(text, "-") != 0 && n < max) {
        values[n++] = *text == '?' ? PL_UNKNOWN : strtoll(text, NULL, 10);
        text += strcspn(text, ",:]");
        text += *text != '\0';
    }
    return n;
}

static pl_shape read_shape(const char *text)
{
    pl_shape shape = {0};
    shape.rank = read_ints(text + 1, shape.dims, PL_RANK_MAX);
    return shape;
}

/* The text stays as it was: a command may be given twice. */
static int read_nodes(char *text, pl_node **nodes, int max)
{
    int n = 0;
    if (strcmp(text, "-") == 0)
        return 0;
    for (char *at = text; at && n < max;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        nodes[n++] = pl_graph_find(graph, at);
        if (comma)
            *comma = ',';
        at = comma ? comma + 1 : NULL;
    }
    return n;
}

static pl_attr read_attr(char *text, int64_t values[WORDS], pl_shape *shape)
{
    char *name = text, *kind = strchr(text, '='), *value = kind + 3;
    *kind++ = '\0';
    switch (*kind) {
    case 'i':
        return pl_attr_int(name, strtoll(value, NULL, 10));
    case 'f':
        return pl_attr_float(name, strtod(value, NULL));
    case 'b':
        return pl_attr_bool(name, *value == '1');
    case 'd':
        return pl_attr_dtype(name, pl_dtype_by_name(value));
    case 's':
        *shape = read_shape(value);
        return pl_attr_shape(name, shape);
    case 'l':
        return pl_attr_ints(name, values, read_ints(value, values, WORDS));
    default:
        return pl_attr_string(name, value);
    }
}

/* add OP NAME INPUTS [ATTRIBUTE=KIND:VALUE]... */
static int add_node(pl_node **ret_node)
{
    static int64_t values[WORDS][WORDS];
    static pl_shape shapes[WORDS];
    static char copies[WORDS][4096];
    pl_attr attrs[WORDS];
    pl_node *inputs[WORDS];
    const char *name = strcmp(words[2], "-") == 0 ? NULL : words[2];
    int n_inputs = read_nodes(words[3], inputs, WORDS), n_attrs = 0;
    for (int i = 4; i < n_words; i++, n_attrs++) {
        snprintf(copies[n_attrs], sizeof copies[n_attrs], "%s", words[i]);
        attrs[n_attrs] = read_attr(copies[n_attrs], values[n_attrs], &shapes[n_attrs]);
    }
    int r = pl_graph_add(graph, words[1], name, inputs, n_inputs, attrs, n_attrs, ret_node, &error);
    for (int i = 0; i < n_attrs; i++) { /* what the node kept is its own */
        memset(values[i], 0xee, sizeof values[i]);
        memset(copies[i], 0xee, sizeof copies[i]);
        memset(&shapes[i], 0xee, sizeof shapes[i]);
    }
    return r;
}

#endif
