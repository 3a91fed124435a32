/* SPDX-License-Identifier: Apache-2.0 */
/* See tar_reader.h. */
#include "data/reader/tar_reader.h"

#include <errno.h>
#include <inttypes.h>

int pl_tar_reader_init(pl_tar_reader *reader, const char *path, pl_packing packing,
                       uint64_t window_bytes, pl_memory *memory, pl_error *reterr)
{
    *reader = (pl_tar_reader){0};
    int r = pl_file_window_init(&reader->window, path, packing, window_bytes, memory, reterr);
    if (r < 0)
        return r;
    r = pl_file_window_most_left(&reader->window, &reader->most_bytes, reterr);
    if (r < 0)
        pl_file_window_done(&reader->window);
    pl_tar_init(&reader->tar, reader->most_bytes);
    return r;
}

void pl_tar_reader_done(pl_tar_reader *reader)
{
    pl_file_window_done(&reader->window);
}

/* Passes the window's bytes to the parser until it finds an entry. */
static int find_next(pl_tar_reader *reader, pl_tar_entry *ret_entry, pl_error *reterr)
{
    pl_file_window *window = &reader->window;
    size_t need = PL_TAR_BLOCK_BYTES;
    for (;;) {
        int r = pl_file_window_seek(window, reader->tar.offset, reterr);
        if (r == 0)
            r = pl_file_window_more(window, need, reterr);
        if (r < 0)
            return r;
        r = pl_tar_next(&reader->tar, window->at, window->n, window->is_last, ret_entry, &need,
                        reterr);
        if (r < 0)
            pl_error_in_file(reterr, pl_file_window_path(window));
        if (r != 0 || need == 0)
            return r;
    }
}

int pl_tar_reader_next(pl_tar_reader *reader, pl_tar_entry *ret_entry, pl_error *reterr)
{
    if (reader->lost)
        return 0;
    int r = find_next(reader, &reader->entry, reterr);
    if (r > 0)
        *ret_entry = reader->entry;
    else
        reader->lost = r != -ENOTSUP;
    return r;
}

int pl_tar_reader_read(pl_tar_reader *reader, void *to, pl_error *reterr)
{
    int r = pl_file_window_seek(&reader->window, reader->entry.data_offset, reterr);
    if (r == 0)
        r = pl_file_window_read(&reader->window, to, reader->entry.data_bytes, reterr);
    reader->lost |= r < 0;
    return r;
}

uint64_t pl_tar_reader_tell(const pl_tar_reader *reader)
{
    return reader->tar.offset;
}

int pl_tar_reader_seek(pl_tar_reader *reader, uint64_t offset, pl_error *reterr)
{
    int r = pl_file_window_seek(&reader->window, offset, reterr);
    if (r < 0)
        return r;
    pl_tar_init(&reader->tar, reader->most_bytes);
    reader->tar.offset = offset;
    reader->lost = false;
    return 0;
}
