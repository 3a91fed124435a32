/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a text file, one after the other: see codec/text/lines.h for what a line is.
 *
 * Lines lie in a window that the file passes through; for a longer one it is made larger, up to a
 * limit. A line past that is an error, and costs that line. One thread at a time. */
#ifndef PL_DATA_READER_TEXT_READER_H
#define PL_DATA_READER_TEXT_READER_H

#include "codec/text/lines.h"
#include "data/reader/file_window.h"
#include "plimsoll/tensor.h"

/* Of a line, or of a CSV record: a binary file that is given as text is noticed before all of it is
 * in memory. */
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

/* `path` and `memory` are borrowed; `options` may be NULL. PL_EBUDGET, -ENOENT and so on. */
PL_MUST_CHECK int pl_text_reader_init(pl_text_reader *reader, const char *path,
                                      const pl_text_options *options, pl_memory *memory,
                                      pl_error *reterr);
void pl_text_reader_done(pl_text_reader *reader);

/* 1 and the next line, good until the next call, and where it is; or 0 at the end. -EMSGSIZE: it is
 * too long; PL_EBUDGET: there is no room for it; the next call goes on behind it. PL_ECORRUPT, -EIO
 * and so on: the file cannot be unpacked or read any further; the next call is at the end. */
PL_MUST_CHECK int pl_text_reader_next(pl_text_reader *reader, pl_string *ret_line,
                                      pl_text_place *ret_place, pl_error *reterr);

/* Before the next line; to a place that was told. */
pl_text_place pl_text_reader_tell(const pl_text_reader *reader);
PL_MUST_CHECK int pl_text_reader_seek(pl_text_reader *reader, pl_text_place place,
                                      pl_error *reterr);

#endif
