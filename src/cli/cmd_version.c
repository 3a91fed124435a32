/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll --version`: the version alone on the first line, for scripts; below it, what this
 * program was built with. Meson writes that down in built_with.h. */
#include <errno.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <stdio.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "report/json.h"
#include "report/report.h"
#include <built_with.h>

static const struct {
    const char *name, *version;
} libraries[] = {PL_BUILT_LIBRARIES};

#define BUILT_LIBC_TEXT(major, minor) #major "." #minor
#define BUILT_LIBC(major, minor)      BUILT_LIBC_TEXT(major, minor)
static const char built_libc[] = BUILT_LIBC(__GLIBC__, __GLIBC_MINOR__);

static void print_text(void)
{
    printf("plimsoll %s\n", PL_VERSION);
    printf("  %-14s %s\n", "machine", PL_BUILT_MACHINE);
    printf("  %-14s %s, %s\n", "compiler", PL_BUILT_COMPILER, PL_BUILT_TYPE);
    printf("  %-14s %s; here: %s\n", "glibc", built_libc, gnu_get_libc_version());
    printf("  %-14s %s\n", "Python", PL_BUILT_PYTHON);
    for (size_t i = 0; i < PL_COUNT_OF(libraries); i++)
        printf("  %-14s %s\n", libraries[i].name, libraries[i].version);
}

static int print_json(pl_error *reterr)
{
    pl_json json = {0};
    json_t *root = json_object(), *list = json_object();
    for (size_t i = 0; i < PL_COUNT_OF(libraries); i++)
        pl_json_put(&json, list, libraries[i].name, json_string(libraries[i].version));
    pl_json_put(&json, root, "schema", json_integer(1));
    pl_json_put(&json, root, "version", json_string(PL_VERSION));
    pl_json_put(&json, root, "machine", json_string(PL_BUILT_MACHINE));
    pl_json_put(&json, root, "compiler", json_string(PL_BUILT_COMPILER));
    pl_json_put(&json, root, "build", json_string(PL_BUILT_TYPE));
    pl_json_put(&json, root, "glibc", json_string(built_libc));
    pl_json_put(&json, root, "glibc_here", json_string(gnu_get_libc_version()));
    pl_json_put(&json, root, "python", json_string(PL_BUILT_PYTHON));
    pl_json_put(&json, root, "libraries", list);
    int r = json.failed ? pl_error_set(reterr, -ENOMEM, "cannot print the answer: out of memory")
                        : pl_report_print(root, stdout, reterr);
    json_decref(root);
    return r;
}

int pl_cmd_version(int argc, char **argv)
{
    pl_answer_options options;
    pl_error error = {0};
    if (!pl_answer_parse(argc, argv, false, &options))
        return PL_EXIT_FAILURE;
    int r = 0;
    if (options.json)
        r = print_json(&error);
    else
        print_text();
    return pl_answer_end(r, &error);
}
