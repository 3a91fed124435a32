/* SPDX-License-Identifier: Apache-2.0 */
/* See format.h. */
#include "verify/format.h"

#include <string.h>
#include <strings.h>

#include "codec/archive/tar.h"
#include "codec/image/image.h"
#include "codec/record/tfrecord.h"
#include "codec/text/utf8.h"

static const char *const names[PL_VERIFY_N_FORMATS] = {
#define PL_VERIFY_NAME(format, name, check) [PL_VERIFY_##format] = name,
    PL_VERIFY_FORMATS(PL_VERIFY_NAME)
#undef PL_VERIFY_NAME
};

static const struct promise {
    const char *extension;
    pl_verify_format format;
} promises[] = {
    {"npy", PL_VERIFY_NPY},           {"npz", PL_VERIFY_NPZ},
    {"tfrecord", PL_VERIFY_TFRECORD}, {"tfrecords", PL_VERIFY_TFRECORD},
    {"jpg", PL_VERIFY_JPEG},          {"jpeg", PL_VERIFY_JPEG},
    {"png", PL_VERIFY_PNG},           {"bmp", PL_VERIFY_BMP},
    {"txt", PL_VERIFY_TEXT},          {"csv", PL_VERIFY_CSV},
    {"tsv", PL_VERIFY_CSV},           {"tar", PL_VERIFY_TAR},
    {"tgz", PL_VERIFY_TAR},           {"json", PL_VERIFY_JSON},
    {"jsonl", PL_VERIFY_JSON},        {"ndjson", PL_VERIFY_JSON},
};

const char *pl_verify_format_name(pl_verify_format format)
{
    return names[format];
}

bool pl_verify_format_parse(const char *name, pl_verify_format *ret_format)
{
    for (pl_verify_format i = PL_VERIFY_NPY; i < PL_VERIFY_GZIP; i++)
        if (strcmp(name, names[i]) == 0) {
            *ret_format = i;
            return true;
        }
    return false;
}

/* Returns the last extension except ".gz": *ret_n bytes, without the dot. */
static const char *extension_of(const char *path, size_t *ret_n)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    if (n > 3 && strcasecmp(name + n - 3, ".gz") == 0)
        n -= 3;
    const char *dot = memrchr(name, '.', n);
    *ret_n = dot ? (size_t)(name + n - dot) - 1 : 0;
    return dot ? dot + 1 : "";
}

pl_verify_format pl_verify_promise(const char *path)
{
    size_t n;
    const char *extension = extension_of(path, &n);
    char first = n > 0 ? (char)(extension[0] | 0x20) : 0; /* cheapest test, which decides most */
    for (size_t i = 0; i < PL_COUNT_OF(promises); i++)
        if (promises[i].extension[0] == first && strlen(promises[i].extension) == n &&
            strncasecmp(promises[i].extension, extension, n) == 0)
            return promises[i].format;
    return PL_VERIFY_UNKNOWN;
}

bool pl_verify_promises_json_lines(const char *path)
{
    size_t n;
    const char *extension = extension_of(path, &n);
    return (n == 5 && strncasecmp(extension, "jsonl", 5) == 0) ||
           (n == 6 && strncasecmp(extension, "ndjson", 6) == 0);
}

static bool begins(const void *bytes, size_t n, const char *with, size_t n_with)
{
    return n >= n_with && memcmp(bytes, with, n_with) == 0;
}

static bool is_tar(const uint8_t *bytes, size_t n)
{
    return n >= PL_TAR_BLOCK_BYTES && memcmp(bytes + 257, "ustar", 5) == 0;
}

/* The length has a checksum of its own, which 1 of 4 billion other files has by chance. */
static bool is_tfrecord(const uint8_t *bytes, size_t n)
{
    uint64_t data_bytes;
    return n >= PL_TFRECORD_HEAD_BYTES && pl_tfrecord_read_head(bytes, 0, &data_bytes, NULL) == 0;
}

static bool is_text(const uint8_t *bytes, size_t n, bool is_all)
{
    bool cut = false;
    if (memchr(bytes, 0, n) != NULL)
        return false;
    size_t valid = pl_utf8_valid_bytes(bytes, n, &cut);
    return valid == n || (cut && !is_all);
}

/* Two letters alone could begin any text: a header of a known length must follow. */
static bool is_bmp(const uint8_t *bytes, size_t n)
{
    static const uint8_t lengths[] = {12, 40, 52, 56, 64, 108, 124};
    return n >= 18 && memcmp(bytes, "BM", 2) == 0 && memchr(lengths, bytes[14], sizeof lengths) &&
           bytes[15] == 0 && bytes[16] == 0 && bytes[17] == 0;
}

/* Does it begin with a bracket, and a character that may follow one? */
static bool is_json(const char *bytes, size_t n)
{
    static const char blanks[] = " \t\r\n";
    size_t at = pl_utf8_mark_bytes(bytes, n);
    while (at < n && memchr(blanks, bytes[at], 4))
        at++;
    if (at == n || (bytes[at] != '{' && bytes[at] != '['))
        return false;
    bool object = bytes[at++] == '{';
    while (at < n && memchr(blanks, bytes[at], 4))
        at++;
    return at < n && strchr(object ? "\"}" : "\"{[]-0123456789tfn", bytes[at]) != NULL;
}

static bool is_kind_of_text(pl_verify_format format)
{
    return format == PL_VERIFY_TEXT || format == PL_VERIFY_CSV || format == PL_VERIFY_JSON;
}

pl_verify_format pl_verify_sniff(const void *bytes, size_t n, bool is_all, pl_verify_format promise)
{
    if (begins(bytes, n, "\x93NUMPY", 6))
        return PL_VERIFY_NPY;
    if (begins(bytes, n, "\xff\xd8\xff", 3))
        return PL_VERIFY_JPEG;
    if (begins(bytes, n, "\x89PNG\r\n\x1a\n", 8))
        return PL_VERIFY_PNG;
    if (is_bmp(bytes, n))
        return PL_VERIFY_BMP;
    if (pl_image_is_foreign(bytes, n))
        return PL_VERIFY_PICTURE;
    if (begins(bytes, n, "PK\x03\x04", 4) || begins(bytes, n, "PK\x05\x06", 4))
        return PL_VERIFY_NPZ;
    if (is_tar(bytes, n))
        return PL_VERIFY_TAR;
    if (is_tfrecord(bytes, n))
        return PL_VERIFY_TFRECORD;
    if (is_kind_of_text(promise))
        return promise; /* if it is something else, the validator finds out where */
    if (is_text(bytes, n, is_all))
        return is_json(bytes, n) ? PL_VERIFY_JSON : PL_VERIFY_TEXT;
    return promise;
}

char pl_verify_delimiter(const char *bytes, size_t n)
{
    static const char candidates[] = ",;\t|";
    const char *feed = memchr(bytes, '\n', n);
    size_t line = feed ? (size_t)(feed - bytes) : n, most = 0;
    char best = ',';
    for (size_t c = 0; c < sizeof candidates - 1; c++) {
        size_t count = 0;
        for (size_t i = 0; i < line; i++)
            count += bytes[i] == candidates[c];
        if (count > most) {
            most = count;
            best = candidates[c];
        }
    }
    return best;
}
