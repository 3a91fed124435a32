/* SPDX-License-Identifier: Apache-2.0 */
/* See tar.h. tar_header.c parses the headers. */
#include "codec/archive/tar.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "codec/archive/tar_header.h"
#include "codec/text/excerpt.h"

void pl_tar_init(pl_tar *tar, uint64_t file_bytes)
{
    *tar = (pl_tar){.file_bytes = file_bytes};
}

/* The results of the steps of pl_tar_next(). */
enum {
    NEED = 0, /* more bytes are needed, or nothing more: see *ret_need */
    ENTRY = 1,
    ON = 2, /* it was a meta entry: continue */
};

typedef struct walk {
    pl_tar *tar;
    const uint8_t *at;
    size_t n;
    bool is_last;
    size_t *ret_need;
    pl_error *reterr;
} walk;

static uint64_t padded(uint64_t bytes)
{
    return (bytes + PL_TAR_BLOCK_BYTES - 1) & ~(uint64_t)(PL_TAR_BLOCK_BYTES - 1);
}

/* Adds the header's `offset` to the error. */
static int refuse_at(const walk *w, uint64_t offset, int code)
{
    pl_error_at_offset(w->reterr, offset);
    return code;
}

static int corrupt(const walk *w, const char *what)
{
    return refuse_at(w, w->tar->offset, pl_error_set(w->reterr, PL_ECORRUPT, "%s", what));
}

static int need(const walk *w, size_t bytes, const char *what)
{
    if (w->is_last)
        return refuse_at(
            w, w->tar->offset,
            pl_error_set(w->reterr, PL_ECORRUPT, "the archive is cut off within %s", what));
    *w->ret_need = bytes;
    return NEED;
}

static void pass(walk *w, size_t bytes)
{
    w->tar->offset += bytes;
    w->at += bytes;
    w->n -= bytes;
}

static void forget(pl_tar *tar)
{
    tar->has_name = tar->has_size = tar->is_sparse = false;
}

/* ---- meta entries ---- */

static int set_name(walk *w, const char *name, size_t n)
{
    pl_tar *tar = w->tar;
    if (n == 0 || n >= sizeof tar->name)
        return refuse_at(w, tar->offset,
                         pl_error_set(w->reterr, PL_ECORRUPT,
                                      "a name of %zu bytes, where 1 to %d can be", n,
                                      PL_TAR_NAME_BYTES - 1));
    if (memchr(name, '\0', n))
        return corrupt(w, "a name with a NUL byte in it");
    memcpy(tar->name, name, n);
    tar->name[n] = '\0';
    tar->n_name = n;
    tar->has_name = true;
    return ON;
}

static bool is_key(const pl_tar_attribute *a, const char *key)
{
    return a->n_key == strlen(key) && memcmp(a->key, key, a->n_key) == 0;
}

/* Notes an attribute of the next entry, or of all following ones if it is `global`. Nobody means
 * one name or one size for all of them. */
static int note_attribute(walk *w, const pl_tar_attribute *a, bool global)
{
    bool is_name = is_key(a, "path"), is_size = is_key(a, "size");
    bool is_sparse = a->n_key > 11 && memcmp(a->key, "GNU.sparse.", 11) == 0;
    if (global && (is_name || is_size || is_sparse))
        return corrupt(w, "a name or size that is to be that of all entries");
    if (is_name)
        return set_name(w, a->value, a->n_value);
    if (is_sparse)
        w->tar->is_sparse = true;
    if (!is_size)
        return ON;
    if (!pl_tar_decimal(a->value, a->n_value, &w->tar->size))
        return corrupt(w, "a size that is not a number");
    w->tar->has_size = true;
    return ON;
}

static int note_attributes(walk *w, const char *text, size_t n, bool global)
{
    const char *end = text + n;
    while (text < end && *text != '\0') {
        pl_tar_attribute a;
        text = pl_tar_attribute_next(text, (size_t)(end - text), &a);
        if (!text)
            return corrupt(w, "attributes that are malformed");
        int r = note_attribute(w, &a, global);
        if (r < 0)
            return r;
    }
    return ON;
}

static int note_meta(walk *w, char type, const char *data, size_t n)
{
    switch (type) {
    case 'L':
        return set_name(w, data, strnlen(data, n));
    case 'K': /* the target of a link */
        return ON;
    default:
        return note_attributes(w, data, n, type == 'g');
    }
}

static int take_meta(walk *w, const pl_tar_header *header)
{
    if (header->size > PL_TAR_META_BYTES)
        return refuse_at(w, w->tar->offset,
                         pl_error_set(w->reterr, PL_ECORRUPT,
                                      "%" PRIu64
                                      " bytes about an entry, where at most %d are taken",
                                      header->size, PL_TAR_META_BYTES));
    size_t n = (size_t)header->size, all = PL_TAR_BLOCK_BYTES + (size_t)padded(n);
    if (w->n < all)
        return need(w, all, "what is said about an entry");
    int r = note_meta(w, header->type, (const char *)w->at + PL_TAR_BLOCK_BYTES, n);
    if (r == ON)
        pass(w, all);
    return r;
}

/* ---- entries ---- */

static int check_size(const walk *w, uint64_t data_offset, uint64_t bytes)
{
    uint64_t left = pl_sub_sat_u64(w->tar->file_bytes, data_offset);
    if (bytes <= left && bytes <= INT64_MAX - data_offset - PL_TAR_BLOCK_BYTES)
        return 0;
    return refuse_at(w, w->tar->offset,
                     pl_error_set(w->reterr, PL_ECORRUPT,
                                  "'%s' has %" PRIu64 " bytes by its header, and at most "
                                  "%" PRIu64 " are behind that",
                                  pl_excerpt_of(w->tar->name, w->tar->n_name).text, bytes, left));
}

static int refuse_sparse(walk *w)
{
    pl_tar *tar = w->tar;
    int r = refuse_at(w, tar->begin,
                      pl_error_set(w->reterr, -ENOTSUP,
                                   "'%s' is stored as a sparse file, which is not read: make the "
                                   "archive without --sparse",
                                   pl_excerpt_of(tar->name, tar->n_name).text));
    forget(tar);
    return r;
}

/* GNU's own sparse files have a map of their holes between header and data, in blocks that say
 * whether another one follows. */
static int pass_map(walk *w)
{
    pl_tar *tar = w->tar;
    while (tar->more_map) {
        if (w->n < PL_TAR_BLOCK_BYTES)
            return need(w, PL_TAR_BLOCK_BYTES, "a sparse file's map");
        tar->more_map = w->at[504] != 0;
        pass(w, PL_TAR_BLOCK_BYTES);
    }
    int r = check_size(w, tar->offset, tar->map_data_bytes);
    if (r < 0)
        return r;
    tar->offset += padded(tar->map_data_bytes);
    tar->map_data_bytes = 0;
    return refuse_sparse(w);
}

static int take_entry(walk *w, const pl_tar_header *header, pl_tar_entry *ret_entry)
{
    pl_tar *tar = w->tar;
    bool is_bare = header->type >= '1' && header->type <= '6'; /* links, devices, folders, pipes */
    uint64_t bytes = is_bare ? 0 : tar->has_size ? tar->size : header->size;
    uint64_t data_offset = tar->offset + PL_TAR_BLOCK_BYTES;
    int r = check_size(w, data_offset, bytes);
    if (r < 0)
        return r;
    if (header->type == 'S') {
        tar->more_map = header->more_map;
        tar->map_data_bytes = bytes;
        pass(w, PL_TAR_BLOCK_BYTES);
        return pass_map(w);
    }
    tar->offset = data_offset + padded(bytes);
    if (tar->is_sparse)
        return refuse_sparse(w);
    *ret_entry = (pl_tar_entry){
        tar->name, tar->n_name, header->type == '0', header->type, tar->begin, data_offset, bytes};
    forget(tar);
    return ENTRY;
}

static int take_header(walk *w, pl_tar_entry *ret_entry)
{
    pl_tar *tar = w->tar;
    pl_tar_header header;
    if (!tar->has_name && !tar->has_size && !tar->is_sparse)
        tar->begin = tar->offset;
    if (w->n == 0 && w->is_last)
        return corrupt(w, "the archive has no end: it is cut off here, or was never finished");
    if (w->n < PL_TAR_BLOCK_BYTES)
        return need(w, PL_TAR_BLOCK_BYTES, "a header");
    int r = pl_tar_header_parse(w->at, &header);
    if (r == 0) {
        *w->ret_need = 0;
        return NEED;
    }
    if (r < 0)
        return corrupt(w, header.problem);
    if (header.type != '\0' && strchr("LKxXg", header.type))
        return take_meta(w, &header);
    if (!tar->has_name) {
        memcpy(tar->name, header.name, header.n_name + 1);
        tar->n_name = header.n_name;
    }
    if (header.type == '7') /* a contiguous file */
        header.type = '0';
    if (header.type == '\0') /* before there were types, a folder's name ended in a slash */
        header.type = tar->n_name > 0 && tar->name[tar->n_name - 1] == '/' ? '5' : '0';
    return take_entry(w, &header, ret_entry);
}

int pl_tar_next(pl_tar *tar, const void *bytes, size_t n, bool is_last, pl_tar_entry *ret_entry,
                size_t *ret_need, pl_error *reterr)
{
    walk w = {tar, bytes, n, is_last, ret_need, reterr};
    if (tar->map_data_bytes > 0 || tar->more_map)
        return pass_map(&w);
    int r = ON;
    while (r == ON)
        r = take_header(&w, ret_entry);
    return r;
}
