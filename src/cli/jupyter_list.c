/* SPDX-License-Identifier: Apache-2.0 */
/* See jupyter_list.h. Kernelspecs are not trusted: control characters never reach the terminal, and
 * invalid UTF-8 is replaced. */
#include "cli/jupyter_list.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/json.h"
#include "report/printer.h"
#include "report/report.h"

static const pl_printer *printer_of_stdout(void)
{
    static pl_printer printer;
    printer.out = stdout;
    return &printer;
}

static bool is_twin_of(const pl_kernelspec *twin, const pl_kernelspec *kernel)
{
    return strcmp(pl_kernelspec_twin_of(twin), kernel->name) == 0;
}

typedef struct columns {
    int name, twin;
} columns;

static columns measure(const pl_kernelspecs *known)
{
    columns widths = {.name = (int)strlen("kernel"), .twin = (int)strlen("guarded by")};
    for (size_t i = 0; i < known->n_items; i++) {
        bool twin = pl_kernelspec_is_twin(&known->items[i]);
        int n = (int)strlen(known->items[i].name), *width = twin ? &widths.twin : &widths.name;
        *width = n > *width ? n : *width;
    }
    return widths;
}

static void print_row(columns widths, const char *name, const char *twin, const char *budget,
                      const char *folder)
{
    size_t n = strlen(budget);
    printf("%-*s  %-*s  ", widths.name, name, widths.twin, twin);
    pl_print_clean(printer_of_stdout(), budget);
    printf("%*s  ", (int)(n < 8 ? 8 - n : 0), "");
    pl_print_clean(printer_of_stdout(), folder);
    putchar('\n');
}

static const char *budget_or_dash(const pl_kernelspec *kernel)
{
    const char *budget = pl_kernelspec_budget(kernel);
    return budget[0] != '\0' ? budget : "-";
}

static void print_kernel(const pl_kernelspecs *known, const pl_kernelspec *kernel, columns widths)
{
    bool alone = true;
    for (size_t i = 0; i < known->n_items; i++) {
        const pl_kernelspec *twin = &known->items[i];
        if (!is_twin_of(twin, kernel))
            continue;
        print_row(widths, kernel->name, twin->name, budget_or_dash(twin), kernel->folder);
        alone = false;
    }
    /* A kernel whose command is `plimsoll run`, edited by hand, is guarded without a twin. */
    bool guarded = pl_kernelspec_command(kernel) > 0;
    if (alone)
        print_row(widths, kernel->name, guarded ? kernel->name : "-", budget_or_dash(kernel),
                  kernel->folder);
}

static void print_problems(const pl_kernelspec *kernel)
{
    pl_error problems[PL_KERNELSPEC_PROBLEMS];
    size_t n = pl_kernelspec_problems(kernel, problems);
    for (size_t i = 0; i < n; i++) {
        printf("%s: ", kernel->name);
        pl_print_clean(printer_of_stdout(), problems[i].message);
        putchar('\n');
    }
}

void pl_jupyter_list_text(const pl_kernelspecs *known)
{
    if (known->n_items == 0) {
        puts("Jupyter finds no kernel ('plimsoll jupyter list --json' shows where it looks)");
        return;
    }
    columns widths = measure(known);
    print_row(widths, "kernel", "guarded by", "budget", "folder");
    for (size_t i = 0; i < known->n_items; i++)
        if (!pl_kernelspec_is_twin(&known->items[i]))
            print_kernel(known, &known->items[i], widths);
    for (size_t i = 0; i < known->n_items; i++)
        print_problems(&known->items[i]);
}

static json_t *kernel_to_json(pl_json *json, const pl_kernelspec *kernel)
{
    pl_error problems[PL_KERNELSPEC_PROBLEMS];
    size_t n = pl_kernelspec_problems(kernel, problems);
    json_t *object = json_object(), *list = json_array();
    pl_json_put(json, object, "name", pl_json_text(kernel->name));
    pl_json_put_text(json, object, "display_name", pl_kernelspec_display_name(kernel));
    pl_json_put_text(json, object, "language", pl_kernelspec_language(kernel));
    pl_json_put(json, object, "folder", pl_json_text(kernel->folder));
    pl_json_put_text(json, object, "twin_of", pl_kernelspec_twin_of(kernel));
    pl_json_put_text(json, object, "budget", pl_kernelspec_budget(kernel));
    for (size_t i = 0; i < n; i++)
        pl_json_add(json, list, pl_json_text(problems[i].message));
    pl_json_put(json, object, "problems", list);
    return object;
}

int pl_jupyter_list_json(const pl_jupyter_paths *paths, const pl_kernelspecs *known,
                         pl_error *reterr)
{
    pl_json json = {0};
    json_t *root = json_object(), *kernels = json_array(), *searched = json_array();
    for (size_t i = 0; i < known->n_items; i++)
        pl_json_add(&json, kernels, kernel_to_json(&json, &known->items[i]));
    for (size_t i = 0; i < paths->n_folders; i++)
        pl_json_add(&json, searched, pl_json_text(paths->folders[i]));
    pl_json_put(&json, root, "schema", json_integer(1));
    pl_json_put(&json, root, "kernels", kernels);
    pl_json_put(&json, root, "searched", searched);
    int r = json.failed ? pl_error_set(reterr, -ENOMEM, "cannot print the answer: out of memory")
                        : pl_report_print(root, stdout, reterr);
    json_decref(root);
    return r;
}
