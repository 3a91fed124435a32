/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/dataset_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/dtype.h"
#include "tensor/shape.h"

static void print_spec(const pl_spec *spec, FILE *to)
{
    if (spec->dtype == PL_DTYPE_NONE) {
        fputs(" dataset<", to);
        for (int i = 0; i < spec->n_of; i++)
            print_spec(&spec->of[i], to);
        fputs(" >", to);
        return;
    }
    bool ranked = spec->shape.rank != PL_RANK_UNKNOWN;
    fprintf(to, " %s%s", pl_dtype_info_of(spec->dtype)->name,
            ranked ? PL_SHAPE_TEXT(&spec->shape) : "?");
}

static void print(const pl_dataset *dataset, int depth, FILE *to)
{
    fprintf(to, "%*s%s(", 2 * depth, "", dataset->class->name);
    if (dataset->class->describe)
        dataset->class->describe(dataset, to);
    fputs("):", to);
    for (int i = 0; i < dataset->n_components; i++)
        print_spec(&dataset->spec[i], to);
    fputc('\n', to);
    for (int i = 0; i < dataset->n_inputs; i++)
        print(dataset->inputs[i], depth + 1, to);
}

int pl_tree_text(const pl_dataset *dataset, char **ret_text, pl_error *reterr)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);
    bool failed = !to;
    if (to) {
        print(dataset, 0, to);
        failed = ferror(to) != 0;
        failed |= fclose(to) != 0;
    }
    if (failed || n > PL_TREE_TEXT_MOST) {
        free(text);
        return pl_error_set(reterr, -ENOMEM, "out of memory while describing '%s'",
                            pl_dataset_name(dataset));
    }
    *ret_text = text;
    return 0;
}

/* Copies the line that contains byte `at`, without indentation. */
static void cut_line(const char *text, size_t at, char *line, size_t room)
{
    while (at > 0 && text[at - 1] != '\n')
        at--;
    while (text[at] == ' ')
        at++;
    size_t n = strcspn(text + at, "\n");
    snprintf(line, room, "%.*s", n > 0 ? (int)n : 7, n > 0 ? text + at : "nothing");
}

int pl_tree_compare(const char *of_file, const char *of_dataset, const char *path, pl_error *reterr)
{
    size_t at = 0;
    while (of_file[at] == of_dataset[at] && of_file[at])
        at++;
    if (of_file[at] == of_dataset[at])
        return 0;
    char there[120], here[120];
    cut_line(of_file, at, there, sizeof there);
    cut_line(of_dataset, at, here, sizeof here);
    return pl_error_set(reterr, -EINVAL,
                        "'%s' is of another dataset: it has '%s' where this one has '%s'", path,
                        there, here);
}
