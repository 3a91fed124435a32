/* SPDX-License-Identifier: Apache-2.0 */
/* See tell.h. */
#include "verify/tell.h"

#include <stdlib.h>

#include "verify/schema.h"

void pl_verify_teller_done(pl_verify_teller *teller)
{
    pl_verify_schema_free(PL_TAKE(teller->schema));
}

/* Files of examples form one dataset: all must have the features of the first one. */
static void compare_schema(pl_verify_teller *teller, pl_verify_slot *slot, const char *path,
                           pl_verify_finding *finding)
{
    char text[PL_VERIFY_DIFFERENCE_BYTES];
    pl_verify_schema *schema = PL_TAKE(slot->schema);
    if (!schema)
        return;
    if (!teller->schema) {
        teller->schema = schema;
        teller->schema_path = path;
        return;
    }
    pl_verify_file file = {.path = path, .finding = *finding};
    pl_verify_severity severity = pl_verify_schema_compare_schema(teller->schema, schema, text);
    if (severity != PL_VERIFY_GOOD)
        pl_verify_report(&file, severity, 0, "record 0: %s; the first is '%.120s'", text,
                         teller->schema_path);
    *finding = file.finding;
    pl_verify_schema_free(schema);
}

static int tell_slot(pl_verify_teller *teller, size_t i, pl_verify_slot *slot, pl_error *reterr)
{
    const pl_verify_options *options = teller->options;
    const char *path = pl_paths_at(&teller->slots->paths, i);
    pl_verify_finding finding = {0};
    if (slot->finding)
        finding = *slot->finding;
    compare_schema(teller, slot, path, &finding);
    free(PL_TAKE(slot->finding));
    if (finding.severity == PL_VERIFY_GOOD)
        return 0;
    teller->summary->n_errors += finding.severity == PL_VERIFY_ERROR;
    teller->summary->n_warnings += finding.severity == PL_VERIFY_WARNING;
    teller->summary->n_notes += finding.severity == PL_VERIFY_NOTE;
    const pl_verify_told told = {.path = path, .format = slot->format, .finding = &finding};
    return options->tell(options->context, &told, reterr);
}

int pl_verify_tell(pl_verify_teller *teller, size_t n, bool all, pl_error *reterr)
{
    pl_error *failure = &teller->failure;
    int r = failure->code;
    for (; r == 0 && teller->n_told < n; teller->n_told++) {
        pl_verify_slot *slot = pl_verify_slot_at(teller->slots, teller->n_told);
        if (!slot->is_done && !all)
            break;
        if (slot->is_done && (slot->finding || slot->schema))
            r = tell_slot(teller, teller->n_told, slot, failure);
    }
    if (r < 0 && reterr)
        *reterr = *failure;
    return r;
}
