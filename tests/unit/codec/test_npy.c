/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of .npy files, as NumPy and others write them, and as nobody should. That NumPy agrees is
 * tested in tests/cli/test_runtime_oracle.py, with its own files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/npy/npy.h"
#include "tensor/shape.h"

#define GOOD "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"

/* A file of `version` with this header, and its length. */
static size_t make_file(char *file, int version, const char *text)
{
    size_t n = strlen(text), begin = version == 1 ? 10 : 12;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)version;
    file[7] = 0;
    file[8] = (char)n;
    file[9] = (char)(n >> 8);
    file[10] = file[11] = 0;
    memcpy(file + begin, text, n);
    return begin + n;
}

/* Parses a header of any file size, from a block without a byte to spare. */
static int parse(int version, const char *text, pl_npy *ret_npy, pl_error *reterr)
{
    char file[1024];
    size_t n = make_file(file, version, text);
    char *exact = malloc(n);
    assert_non_null(exact);
    memcpy(exact, file, n);
    int r = pl_npy_parse(exact, n, UINT64_MAX, "x.npy", ret_npy, reterr);
    free(exact);
    return r;
}

static pl_npy parsed(const char *text)
{
    pl_npy npy = {0};
    pl_error error = {0};
    for (int version = 3; version >= 1; version--)
        if (parse(version, text, &npy, &error) < 0)
            fail_msg("version %d: %s", version, error.message);
    return npy;
}

static void assert_refused(const char *text, int code, const char *reason)
{
    pl_npy npy = {.item_bytes = 77};
    pl_error error = {0};
    for (int version = 1; version <= 3; version++) {
        if (parse(version, text, &npy, &error) != code)
            fail_msg("%s: not refused as it should: %s", text, error.message);
        if (!strstr(error.message, reason) || !strstr(error.message, "'x.npy'"))
            fail_msg("%s: '%s' is not in: %s", text, reason, error.message);
        assert_int_equal(npy.item_bytes, 77);
    }
}

static void a_header_tells_dtype_shape_and_cost(void **state)
{
    (void)state;
    pl_npy npy = parsed(GOOD);
    assert_int_equal(npy.dtype, PL_F32);
    assert_int_equal(npy.item_bytes, 4);
    assert_true(pl_shape_equal(&npy.shape, &PL_SHAPE(2, 3)));
    assert_false(npy.swap || npy.fortran_order);
    assert_int_equal(npy.version, 1);
    assert_int_equal(npy.data_offset, 10 + strlen(GOOD));
    assert_int_equal(npy.data_bytes, 24);
}

static void headers_may_be_written_in_any_way_that_python_reads(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}",
        "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3)}",
        "  { 'descr' : '<f4' ,\n\t'fortran_order' : False , 'shape' : ( 2 , 3 , ) , } \r\n\f\n",
        "{u'descr': u'<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': 'float32', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{'shape': (9,), 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
    };
    const pl_npy good = parsed(GOOD);
    for (size_t i = 0; i < PL_COUNT_OF(texts); i++) {
        pl_npy npy = parsed(texts[i]);
        assert_int_equal(npy.dtype, good.dtype);
        assert_true(pl_shape_equal(&npy.shape, &good.shape));
        assert_int_equal(npy.data_bytes, 24);
    }
}

static void python_2_wrote_long_integers_until_version_2(void **state)
{
    (void)state;
    pl_npy npy;
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }";
    assert_int_equal(parse(1, text, &npy, NULL), 0);
    assert_true(pl_shape_equal(&npy.shape, &PL_SHAPE(2, 3)));
    assert_int_equal(parse(2, text, &npy, NULL), 0);
    assert_int_equal(parse(3, text, &npy, NULL), PL_EFORMAT);
}

static void every_dtype_is_understood_in_either_order(void **state)
{
    (void)state;
    static const struct {
        const char *descr;
        pl_dtype dtype;
        uint32_t item_bytes;
        bool swap;
    } cases[] = {
        {"|b1", PL_BOOL, 1, false},   {"?", PL_BOOL, 1, false},
        {">b1", PL_BOOL, 1, false},   {"|u1", PL_U8, 1, false},
        {"|i1", PL_I8, 1, false},     {">i1", PL_I8, 1, false},
        {"<u2", PL_U16, 2, false},    {">u2", PL_U16, 2, true},
        {"<i2", PL_I16, 2, false},    {">u4", PL_U32, 4, true},
        {"<i4", PL_I32, 4, false},    {"<u8", PL_U64, 8, false},
        {">i8", PL_I64, 8, true},     {"<f2", PL_F16, 2, false},
        {">f2", PL_F16, 2, true},     {"<V2", PL_BF16, 2, false},
        {"|V2", PL_BF16, 2, false},   {">f8", PL_F64, 8, true},
        {"|S5", PL_STRING, 5, false}, {">S5", PL_STRING, 5, false},
        {"|S0", PL_STRING, 0, false}, {"|S2147483647", PL_STRING, INT32_MAX, false},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': True, 'shape': (3,)}",
                 cases[i].descr);
        pl_npy npy = parsed(text);
        assert_int_equal(npy.dtype, cases[i].dtype);
        assert_int_equal(npy.item_bytes, cases[i].item_bytes);
        assert_int_equal(npy.swap, cases[i].swap);
        assert_true(npy.fortran_order);
        assert_int_equal(npy.data_bytes, 3 * (uint64_t)cases[i].item_bytes);
    }
}

static void data_that_is_no_tensor_is_refused_with_a_way_out(void **state)
{
    (void)state;
#define WITH(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (3,), }"
    assert_refused(WITH("'<U5'"), -ENOTSUP, "unicode text (dtype <U5): save numpy.char.encode");
    assert_refused(WITH("'|O'"), -ENOTSUP, "Python objects (dtype |O)");
    assert_refused(WITH("[('a', '<f4'), ('b', '<i8')]"), -ENOTSUP,
                   "records (dtype [('a', '<f4'), ('b', '<i8')]): save");
    assert_refused(WITH("('<f4', (2,))"), -ENOTSUP, "records (dtype ('<f4', (2,))): save");
    assert_refused("{'descr': [('a', '<f4'", -ENOTSUP, "records (dtype [('a', '<f4'): save");
    assert_refused(WITH("'<c8'"), -ENOTSUP, "save a.real and a.imag");
    assert_refused(WITH("'<M8[ns]'"), -ENOTSUP, "dates (dtype <M8[ns])");
    assert_refused(WITH("'<f16'"), -ENOTSUP, "a.astype('float64')");
    assert_refused(WITH("'|V7'"), -ENOTSUP, "raw records");
    assert_refused(WITH("''"), -ENOTSUP, "not understood");
    assert_refused(WITH("'<'"), -ENOTSUP, "not understood");
    assert_refused(WITH("'<float32'"), -ENOTSUP, "another size");
    assert_refused(WITH("'|S2147483648'"), -ENOTSUP, "not understood");
    assert_refused(WITH("'\xc3\xa9'"), -ENOTSUP,
                   "dtype ?"
                   "?");
#undef WITH
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
                   -ENOTSUP, "more than 8 dimensions");
}

static void malformed_headers_are_refused_where_they_break(void **state)
{
    (void)state;
#define REST ", 'fortran_order': False, 'shape': (3,), }"
    static const struct {
        const char *text;
        const char *reason;
    } cases[] = {
        {"", "'{' expected at byte 0"},
        {"[1, 2]", "'{' expected"},
        {"{", "a key in quotes expected at byte 1"},
        {"{}", "descr expected"},
        {"{'descr': '<f4', 'shape': (3,)}", "fortran_order expected"},
        {"{'descr': '<f4', 'fortran_order': False}", "shape expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
         "descr, fortran_order or shape expected at byte 56, before ''more': 1}'"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}", "',' or '}' expected"},
        {"{'descr' '<f4'" REST, "':' expected"},
        {"{'descr': '<f4", "a string, the dtype, expected"},
        {"{'descr': <f4" REST, "a string, the dtype, expected"},
        {"{'descr': '\\x3cf4'" REST, "a string, the dtype, expected"},
        {"{'descr': '<\nf4'" REST, "a string, the dtype, expected"},
        {"{,'descr': '<f4'" REST, "a key in quotes"},
        {"{'descr': '<f4',," REST, "a key in quotes"},
        {GOOD GOOD, "nothing more expected"},
        {GOOD "\\", "nothing more expected"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", "True or False"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "',' after the only"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [3]}", "a tuple"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "a dimension from 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3.0,)}", "',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (010,)}", "a dimension from 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (,)}", "a dimension from 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,,)}", "a dimension from 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,)}",
         "a dimension from 0 to 2^63 - 1"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", "a dimension from 0"},
    };
#undef REST
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++)
        assert_refused(cases[i].text, PL_EFORMAT, cases[i].reason);
}

static void a_shape_that_no_file_can_hold_is_refused(void **state)
{
    (void)state;
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                   PL_ECORRUPT, "more than 2^63 bytes");
    assert_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4294967296, 4294967296)}",
                   PL_ECORRUPT, "more than 2^63 bytes");
}

static int parse_as(const char *file, size_t n, uint64_t file_bytes, pl_error *reterr)
{
    pl_npy npy;
    return pl_npy_parse(file, n, file_bytes, "x.npy", &npy, reterr);
}

static void a_file_shorter_than_its_header_promises_is_truncated(void **state)
{
    (void)state;
    char file[256];
    pl_error error = {0};
    size_t n = make_file(file, 1, GOOD);
    assert_int_equal(parse_as(file, n, n + 24, &error), 0);
    assert_int_equal(parse_as(file, n, n + 99, &error), 0);
    assert_int_equal(parse_as(file, n, n + 23, &error), PL_ECORRUPT);
    char wanted[160];
    snprintf(wanted, sizeof wanted,
             "'x.npy': it is truncated: %zu of %zu bytes; its header promises [2,3] of float32",
             n + 23, n + 24);
    assert_string_equal(error.message, wanted);
    for (size_t cut = 6; cut < n; cut++)
        assert_int_equal(parse_as(file, cut, cut, &error), PL_ECORRUPT);
    for (size_t cut = 0; cut < 6; cut++)
        assert_int_equal(parse_as(file, cut, cut, &error), PL_EFORMAT);
}

static void other_files_and_versions_are_told_apart(void **state)
{
    (void)state;
    char file[256];
    pl_error error = {0};
    size_t n = make_file(file, 1, GOOD);
    assert_int_equal(parse_as("PK\3\4and so on", 13, 13, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, ".npz"));
    assert_int_equal(parse_as("\x89PNG\r\n\x1a\n", 8, 8, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, "not an .npy file"));
    file[6] = 4;
    assert_int_equal(parse_as(file, n, n + 24, &error), PL_EVERSION);
    assert_non_null(strstr(error.message, "version 4.0"));
    file[6] = 1, file[7] = 1;
    assert_int_equal(parse_as(file, n, n + 24, &error), PL_EVERSION);
}

static void a_header_of_gigabytes_is_refused_before_it_is_read(void **state)
{
    (void)state;
    char file[256];
    pl_error error = {0};
    make_file(file, 2, GOOD);
    file[11] = 0x40; /* 1 GiB */
    assert_int_equal(parse_as(file, sizeof file, UINT64_C(1) << 40, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, "at most 65536 are read"));
    assert_int_equal(parse_as(file, sizeof file, sizeof file, &error), PL_ECORRUPT);
}

static void an_open_file_is_read_and_its_offset_stays(void **state)
{
    (void)state;
    pl_npy npy;
    pl_error error = {0};
    char file[256];
    size_t n = make_file(file, 2, GOOD);
    int fd = memfd_create("x.npy", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, file, n, 0), n);
    assert_int_equal(pl_npy_read(fd, "x.npy", &npy, &error), PL_ECORRUPT);
    assert_int_equal(ftruncate(fd, (off_t)n + 24), 0);
    assert_int_equal(pl_npy_read(fd, "x.npy", &npy, &error), 0);
    assert_int_equal(npy.data_offset, n);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
    close(fd);
    assert_int_equal(pl_npy_read(fd, "x.npy", &npy, &error), -EBADF);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pl_npy_read(fd, "/dev/null", &npy, &error), -EINVAL);
    close(fd);
}

static void a_written_header_is_aligned_and_read_back(void **state)
{
    (void)state;
    char header[PL_NPY_HEADER_BYTES];
    const int64_t m = INT64_C(100000000000);
    const pl_shape shapes[] = {PL_SHAPE(), PL_SHAPE(0), PL_SHAPE(3), PL_SHAPE(2, 3, 4),
                               PL_SHAPE(0, m, 1, 1, 1, 1, 1, 1)};
    for (int dtype = PL_BOOL; dtype <= PL_STRING; dtype++) {
        for (size_t i = 0; i < PL_COUNT_OF(shapes); i++) {
            pl_npy npy;
            int n = pl_npy_format((pl_dtype)dtype, 12, &shapes[i], header, NULL);
            assert_true(n > 0 && n % 64 == 0 && n <= PL_NPY_HEADER_BYTES);
            assert_int_equal(header[n - 1], '\n');
            assert_int_equal(pl_npy_parse(header, (size_t)n, UINT64_MAX, "x.npy", &npy, NULL), 0);
            assert_int_equal(npy.dtype, dtype);
            assert_true(pl_shape_equal(&npy.shape, &shapes[i]));
            assert_int_equal(npy.data_offset, n);
            assert_int_equal(npy.version, 1);
        }
    }
}

static void what_no_file_can_hold_is_not_written(void **state)
{
    (void)state;
    pl_error error = {0};
    char header[PL_NPY_HEADER_BYTES];
    assert_int_equal(pl_npy_format(PL_F32, 0, &PL_SHAPE(2, -1), header, &error), -EINVAL);
    assert_int_equal(pl_npy_format(PL_DTYPE_NONE, 4, &PL_SHAPE(2), header, &error), -EINVAL);
    assert_int_equal(pl_npy_format(PL_STRING, 0, &PL_SHAPE(2), header, &error), -EINVAL);
    assert_int_equal(pl_npy_format(PL_STRING, UINT32_MAX, &PL_SHAPE(2), header, &error), -EINVAL);
    assert_int_equal(pl_npy_format(PL_F32, 0, &PL_SHAPE(INT64_MAX), header, &error), -EOVERFLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_tells_dtype_shape_and_cost),
        cmocka_unit_test(headers_may_be_written_in_any_way_that_python_reads),
        cmocka_unit_test(python_2_wrote_long_integers_until_version_2),
        cmocka_unit_test(every_dtype_is_understood_in_either_order),
        cmocka_unit_test(data_that_is_no_tensor_is_refused_with_a_way_out),
        cmocka_unit_test(malformed_headers_are_refused_where_they_break),
        cmocka_unit_test(a_shape_that_no_file_can_hold_is_refused),
        cmocka_unit_test(a_file_shorter_than_its_header_promises_is_truncated),
        cmocka_unit_test(other_files_and_versions_are_told_apart),
        cmocka_unit_test(a_header_of_gigabytes_is_refused_before_it_is_read),
        cmocka_unit_test(an_open_file_is_read_and_its_offset_stays),
        cmocka_unit_test(a_written_header_is_aligned_and_read_back),
        cmocka_unit_test(what_no_file_can_hold_is_not_written),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
