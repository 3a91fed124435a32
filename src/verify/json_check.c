/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that JSON, or JSON lines, is well-formed and complete. */
#include "verify/json_check.h"

#include <inttypes.h>

#include "codec/text/json_scan.h"
#include "data/reader/file_window.h"

static void report(pl_verify_file *file, const pl_json_scan *scan, uint64_t offset,
                   const char *where)
{
    pl_verify_report(file, PL_VERIFY_ERROR, offset + scan->offset, "%sline %" PRIu64 ": %s", where,
                     scan->line, scan->fault);
}

void pl_verify_json_bytes(pl_verify_file *file, const char *name, const void *bytes, size_t n,
                          uint64_t offset, const char *where)
{
    pl_json_scan scan;
    pl_json_scan_init(&scan, pl_verify_promises_json_lines(name));
    if (!pl_json_scan_go_on(&scan, bytes, n) || !pl_json_scan_end(&scan))
        report(file, &scan, offset, where);
}

static int check_window(pl_verify_file *file, pl_file_window *window, pl_error *reterr)
{
    pl_json_scan scan;
    bool good = true;
    int r = 0;
    pl_json_scan_init(&scan, pl_verify_promises_json_lines(file->path));
    while (r == 0 && good) {
        r = pl_file_window_more(window, window->n + 1, reterr);
        if (r == 0)
            r = pl_verify_go_on(file, reterr);
        if (r < 0 || window->n == 0)
            break;
        good = pl_json_scan_go_on(&scan, window->at, window->n);
        pl_file_window_take(window, window->n);
    }
    if (r == 0 && (!good || !pl_json_scan_end(&scan)))
        report(file, &scan, 0, "");
    return r;
}

int pl_verify_json(pl_verify_file *file, pl_error *reterr)
{
    pl_file_window window;
    pl_error why = {0};
    if (file->want_size_only && pl_verify_promises_json_lines(file->path))
        return pl_verify_text(file, reterr); /* its elements are lines */
    pl_verify_count(file, file->file_bytes);
    if (file->is_whole && !file->is_packed) {
        pl_verify_json_bytes(file, file->path, file->head, file->n_head, 0, "");
        return 0;
    }
    int r = pl_file_window_init(&window, file->path, PL_PACKING_AUTO, 0, file->memory, &why);
    if (r == 0) {
        r = check_window(file, &window, &why);
        pl_file_window_done(&window);
    }
    return r < 0 ? pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr) : 0;
}
