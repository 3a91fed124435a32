/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines of a text file one by one: see codec/text/lines.h for the format.
 *
 * Lines lie in a window that moves over the file; it grows for a longer line, up to a limit. A line
 * over the limit is an error, and costs only that line. One thread at a time. */
#ifndef PL_DATA_READER_TEXT_READER_H
#define PL_DATA_READER_TEXT_READER_H

#include "codec/text/lines.h"
#include "data/reader/file_window.h"
#include "plimsoll/tensor.h"

/* The limit for a line, or a CSV record: a binary file that is read as text by mistake is noticed
 * before all of it is in memory. */
#define PL_TEXT_LIMIT_BYTES (16 * PL_MIB)

typedef struct pl_text_options {
    pl_packing packing;    /* 0: none */
    uint64_t window_bytes; /* 0: PL_FILE_WINDOW_BYTES */
    uint64_t limit_bytes;  /* of a line; 0: as above */
} pl_text_options;

typedef struct pl_text_reader {
    pl_file_window window;
    uint64_t limit_bytes;
    uint64_t line; /* of the next one */
} pl_text_reader;

/* Borrows `path` and `memory`; `options` may be NULL. PL_EBUDGET, -ENOENT and so on. */
PL_MUST_CHECK int pl_text_reader_init(pl_text_reader *reader, const char *path,
                                      const pl_text_options *options, pl_memory *memory,
                                      pl_error *reterr);
void pl_text_reader_done(pl_text_reader *reader);

/* Returns 1 with the place of the next line and the line, valid until the next call; or 0 at the
 * end. -EMSGSIZE: it is too long; PL_EBUDGET: there is no room for it; the next call continues
 * after it. PL_ECORRUPT, -EIO and so on: the rest of the file cannot be unpacked or read; the next
 * call returns 0. */
PL_MUST_CHECK int pl_text_reader_next(pl_text_reader *reader, pl_string *ret_line,
                                      pl_text_place *ret_place, pl_error *reterr);

/* The place before the next line, and a way back to such a place. */
pl_text_place pl_text_reader_tell(const pl_text_reader *reader);
PL_MUST_CHECK int pl_text_reader_seek(pl_text_reader *reader, pl_text_place place,
                                      pl_error *reterr);

#endif
