/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll check --plan`: what an element, a batch and the batches ready ahead take once decoded,
 * and which batch would fit. By the largest element: a batch of them may come. */
#include <errno.h>
#include <inttypes.h>

#include "base/size.h"
#include "cli/check_print.h"
#include "report/report.h"

typedef struct sizes {
    uint64_t element, mean, batch, window, all;
    uint64_t best; /* the largest batch that fits; 0: none does */
} sizes;

static uint64_t times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Beside the window, one batch is being used. */
static sizes sizes_of(const pl_verify_summary *summary, const pl_check_plan *plan)
{
    sizes z = {.element = summary->element_bytes};
    z.mean = summary->n_elements ? summary->total_bytes / summary->n_elements : 0;
    z.batch = times(z.element, plan->batch);
    z.window = times(z.batch, plan->prefetch);
    z.all = pl_add_sat_u64(z.batch, z.window);
    z.best = z.element ? plan->line_bytes / times(z.element, plan->prefetch + 1) : plan->batch;
    return z;
}

bool pl_check_plan_fits(const pl_verify_summary *summary, const pl_check_plan *plan)
{
    return sizes_of(summary, plan).all <= plan->line_bytes;
}

static int print_json(const pl_verify_summary *summary, const pl_check_plan *plan, const sizes *z,
                      pl_error *reterr)
{
    pl_json json = {0};
    json_t *root = json_object();
    pl_json_put(&json, root, "schema", json_integer(1));
    pl_json_put(&json, root, "n_files", pl_json_u64(summary->n_checked));
    pl_json_put(&json, root, "n_errors", pl_json_u64(summary->n_errors));
    pl_json_put(&json, root, "n_elements", pl_json_u64(summary->n_elements));
    pl_json_put(&json, root, "element_bytes", pl_json_u64(z->element));
    pl_json_put(&json, root, "mean_element_bytes", pl_json_u64(z->mean));
    pl_json_put(&json, root, "batch", pl_json_u64(plan->batch));
    pl_json_put(&json, root, "batch_bytes", pl_json_u64(z->batch));
    pl_json_put(&json, root, "prefetch", pl_json_u64(plan->prefetch));
    pl_json_put(&json, root, "window_bytes", pl_json_u64(z->window));
    pl_json_put(&json, root, "line_bytes", pl_json_u64(plan->line_bytes));
    pl_json_put(&json, root, "fits", json_boolean(z->all <= plan->line_bytes));
    pl_json_put(&json, root, "largest_batch", pl_json_u64(z->best));
    int r = json.failed ? pl_error_set(reterr, -ENOMEM, "cannot print the answer: out of memory")
                        : pl_report_print(root, stdout, reterr);
    json_decref(root);
    return r;
}

int pl_check_print_plan(const pl_check_printer *printer, const pl_verify_summary *summary,
                        const pl_check_plan *plan, pl_error *reterr)
{
    sizes z = sizes_of(summary, plan);
    if (summary->n_elements == 0)
        return pl_error_set(reterr, -ENODATA,
                            "no element could be measured in %" PRIu64 " file%s: there is nothing "
                            "to plan",
                            summary->n_checked, summary->n_checked == 1 ? "" : "s");
    if (printer->form != PL_CHECK_TEXT)
        return print_json(summary, plan, &z, reterr);
    printf("%" PRIu64 " element%s in %" PRIu64 " file%s\n", summary->n_elements,
           summary->n_elements == 1 ? "" : "s", summary->n_checked,
           summary->n_checked == 1 ? "" : "s");
    if (summary->n_errors > 0)
        printf("not all   of %" PRIu64 " file%s could be measured: without --plan they are named\n",
               summary->n_errors, summary->n_errors == 1 ? "" : "s");
    printf("element   %s decoded, the largest; %s on average\n", PL_SIZE(z.element),
           PL_SIZE(z.mean));
    printf("batch     %s: %" PRIu64 " of the largest\n", PL_SIZE(z.batch), plan->batch);
    printf("window    %s: %" PRIu64 " batches ready ahead\n", PL_SIZE(z.window), plan->prefetch);
    printf("budget    %s on this machine now\n", PL_SIZE(plan->line_bytes));
    if (z.all <= plan->line_bytes)
        printf("\nfits: %s for a batch in use and the window; batches of %" PRIu64 " would as "
               "well\n",
               PL_SIZE(z.all), z.best);
    else if (z.best > 0)
        printf("\ndoes not fit: %s for a batch in use and the window; use batches of %" PRIu64
               " at most\n",
               PL_SIZE(z.all), z.best);
    else
        printf("\ndoes not fit: not even batches of 1; make elements smaller, or --prefetch\n");
    return 0;
}
