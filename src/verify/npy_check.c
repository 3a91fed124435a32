/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an .npy file: its header, its length and, on request, how many of its values are NaN or
 * infinite. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "codec/npy/npy.h"
#include "verify/file.h"
#include "verify/npy_values.h"

static int count_values(pl_verify_file *file, const pl_npy *npy, pl_error *reterr)
{
    enum { PIECE_BYTES = 256 * 1024 };
    pl_npy_values values = {0};
    int r = pl_verify_room_for(file, &file->room->bytes, PIECE_BYTES, "its values", reterr);
    uint64_t end = npy->data_offset + npy->data_bytes;
    for (uint64_t at = npy->data_offset; r == 0 && at < end;) {
        size_t want = (size_t)pl_min_u64(PIECE_BYTES, end - at);
        ssize_t n = pread(file->fd, file->room->bytes.data, want, (off_t)at);
        if (n != (ssize_t)want)
            return pl_error_set(reterr, n < 0 ? -errno : -EIO, "cannot read it: %s",
                                n < 0 ? strerror(errno) : "it became shorter meanwhile");
        pl_npy_values_add(&values, npy, at, file->room->bytes.data, want);
        at += want;
        r = pl_verify_go_on(file, reterr);
    }
    if (r == 0 && (values.n_nan || values.n_inf))
        pl_verify_report(file, PL_VERIFY_WARNING, npy->data_offset,
                         "%" PRIu64 " of %" PRIu64 " values are NaN, %" PRIu64 " are infinite",
                         values.n_nan, npy->data_bytes / npy->item_bytes, values.n_inf);
    return r;
}

int pl_verify_npy(pl_verify_file *file, pl_error *reterr)
{
    pl_npy npy;
    pl_error why = {0};
    int r = pl_npy_parse(file->head, file->n_head, file->file_bytes, NULL, &npy, &why);
    if (r < 0) {
        int told = pl_verify_report_error(file, 0, &why, reterr);
        if (r == -ENOTSUP)
            file->finding.severity = PL_VERIFY_WARNING; /* NumPy reads it, datasets do not */
        return told;
    }
    uint64_t end = npy.data_offset + npy.data_bytes;
    pl_verify_count(file, npy.data_bytes);
    if (end < file->file_bytes)
        pl_verify_report(file, PL_VERIFY_WARNING, end,
                         "%" PRIu64 " bytes behind the array, which nobody reads",
                         file->file_bytes - end);
    if (!file->want_values)
        return 0;
    r = count_values(file, &npy, &why);
    return r < 0 ? pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr) : 0;
}
