/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of record files, for writer and reader; see docs/dataset-files.md. */
#ifndef PL_DATA_PERSIST_RECORD_FILE_FORMAT_H
#define PL_DATA_PERSIST_RECORD_FILE_FORMAT_H

#include <assert.h>
#include <string.h>

#include "codec/record/tfrecord.h"
#include "data/persist/record_file.h"

#define PL_RECORD_FILE_PART ".part"

enum {
    PL_RECORD_FILE_VERSION = 1,
    /* Data of a record: large enough for a system call, small enough for the L2 cache. */
    PL_RECORD_FILE_PIECE_BYTES = 256 * 1024 - 64,
    PL_RECORD_FILE_WINDOW_BYTES = PL_TFRECORD_FRAME_BYTES + 1 + PL_RECORD_FILE_PIECE_BYTES,
};

enum { PL_RECORD_FILE_TAG_PIECE = 'P', PL_RECORD_FILE_TAG_END = 'E' };

typedef struct __attribute__((packed)) pl_record_file_start_data {
    char magic[8];
    char kind[PL_RECORD_FILE_KIND_BYTES];
    uint32_t version;
} pl_record_file_start_data;

typedef struct __attribute__((packed)) pl_record_file_end_data {
    uint8_t tag;
    uint64_t stream_bytes;
    uint32_t sum;
} pl_record_file_end_data;

enum {
    PL_RECORD_FILE_START_BYTES = sizeof(pl_record_file_start_data) + PL_TFRECORD_FRAME_BYTES,
    PL_RECORD_FILE_END_BYTES = sizeof(pl_record_file_end_data) + PL_TFRECORD_FRAME_BYTES,
};

/* See docs/dataset-files.md. */
static_assert(PL_RECORD_FILE_START_BYTES == 32, "start record");
static_assert(PL_RECORD_FILE_END_BYTES == 29, "end record");

static inline void pl_record_file_format_start(const char *kind, uint32_t version, void *record)
{
    pl_record_file_start_data start = {.version = version};
    memcpy(start.magic, "PLIMSOLL", sizeof start.magic);
    memcpy(start.kind, kind, sizeof start.kind);
    pl_tfrecord_write(&start, sizeof start, record);
}

/* Does a file, as far as it goes, begin as one of ours? An empty one does. Another file of the user
 * under this name must not be taken for a damaged one of ours. */
static inline bool pl_record_file_starts_as(const void *there, size_t n, const char *kind)
{
    uint8_t ours[PL_RECORD_FILE_START_BYTES];
    const size_t known = PL_TFRECORD_HEAD_BYTES + offsetof(pl_record_file_start_data, version);
    pl_record_file_format_start(kind, PL_RECORD_FILE_VERSION, ours);
    return memcmp(there, ours, n < known ? n : known) == 0;
}

#define PL_RECORD_FILE_NOT_OURS                                                                    \
    "'%s' is not a file of this kind (%s): give another path, or remove it"

#endif
