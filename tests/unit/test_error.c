/* SPDX-License-Identifier: Apache-2.0 */
/* An error's fields survive what wraps it, its text is made from them, and its payload is freed once,
 * by whoever drops the last copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "plimsoll/error.h"

typedef struct counted {
    pl_error_payload payload;
    int n_freed;
} counted;

static void count(pl_error_payload *payload)
{
    ((counted *)payload)->n_freed++;
}

static counted a_payload(void)
{
    return (counted){.payload = {.n_refs = 1, .free = count}};
}

/* ---- text ---- */

static void fields_make_the_message(void **state)
{
    (void)state;
    pl_error error = PL_ERROR_INIT;
    assert_int_equal(pl_error_set(&error, PL_ECORRUPT, "the JPEG is corrupt at byte %d", 40),
                     PL_ECORRUPT);
    assert_string_equal(error.message, "the JPEG is corrupt at byte 40");
    pl_error_at_byte(&error, 40);
    pl_error_in_op(&error, "decode_image", "image");
    assert_string_equal(error.message, "decode_image 'image': the JPEG is corrupt at byte 40");
    pl_error_in_file(&error, "cats/3.jpg");
    pl_error_in_stage(&error, "map", "decode", 17);
    assert_string_equal(error.message, "map 'decode': element 17, 'cats/3.jpg': decode_image "
                                       "'image': the JPEG is corrupt at byte 40");
    assert_string_equal(pl_error_what(&error),
                        "decode_image 'image': the JPEG is corrupt at byte 40");
    assert_string_equal(pl_error_reason(&error), "the JPEG is corrupt at byte 40");
    assert_string_equal(pl_error_stage(&error), "decode");
    assert_string_equal(error.op, "decode_image");
    assert_string_equal(error.path, "cats/3.jpg");
    assert_int_equal(error.element, 17);
    assert_int_equal(pl_error_offset(&error), 40);
    assert_int_equal(error.offset, -1);
}

static void places_are_said_as_far_as_they_are_known(void **state)
{
    (void)state;
    char text[PL_ERROR_MESSAGE_BYTES];
    pl_error error = PL_ERROR_INIT;
    pl_error_set(&error, PL_EFORMAT, "bad");
    pl_error_at_line(&error, 3, 40, 2);
    assert_string_equal(error.message, "line 3, byte 40, column 2: bad");
    pl_error_in_file(&error, "a.csv");
    assert_string_equal(error.message, "'a.csv', line 3, byte 40, column 2: bad");
    assert_string_equal(pl_error_without_path(&error, text), "line 3, byte 40, column 2: bad");

    pl_error_set(&error, PL_EFORMAT, "bad");
    pl_error_in_file(&error, "a.tfrecord");
    pl_error_at_record(&error, 6, 1000);
    assert_string_equal(error.message, "record 6 of 'a.tfrecord': bad");
    assert_string_equal(pl_error_without_path(&error, text), "record 6: bad");
    assert_int_equal(error.offset, 1000);

    pl_error_set(&error, PL_EFORMAT, "bad");
    pl_error_at_offset(&error, 512);
    assert_string_equal(error.message, "byte 512: bad");
    pl_error_in_file(&error, "a.tar");
    assert_string_equal(error.message, "'a.tar', byte 512: bad");

    pl_error_set(&error, -ENOENT, "cannot read 'a.npy': gone");
    pl_error_names_file(&error, "a.npy");
    pl_error_in_stage(&error, "map", NULL, 0);
    assert_string_equal(error.message, "map: element 0, cannot read 'a.npy': gone");
    assert_string_equal(error.path, "a.npy");
}

static void a_place_in_an_ops_data_is_not_one_of_a_file(void **state)
{
    (void)state;
    pl_error error = PL_ERROR_INIT;
    pl_error_set(&error, PL_EFORMAT, "bad");
    pl_error_at_line(&error, 3, 40, 2);
    pl_error_in_op(&error, "parse", "fields");
    pl_error_in_file(&error, "a.tfrecord");
    assert_string_equal(error.message,
                        "'a.tfrecord': parse 'fields': line 3, byte 40, column 2: bad");
    assert_int_equal(error.offset, -1);
    assert_int_equal(error.byte, 40);
    pl_error_in_op(&error, "outer", "op");
    assert_string_equal(error.op, "parse");
}

static void another_reason_leaves_the_rest(void **state)
{
    (void)state;
    counted payload = a_payload();
    pl_error error = PL_ERROR_INIT;
    pl_error_set(&error, -EINVAL, "too large");
    pl_error_attach(&error, &payload.payload);
    pl_error_of_kind(&error, PL_KIND_TOO_LARGE_TO_PAD);
    pl_error_in_stage(&error, "batch", NULL, 2);
    assert_int_equal(pl_error_reword(&error, "no room: %s; free some", pl_error_reason(&error)),
                     -EINVAL);
    assert_string_equal(error.message, "batch: element 2, no room: too large; free some");
    assert_int_equal(error.kind, PL_KIND_TOO_LARGE_TO_PAD);
    assert_ptr_equal(error.payload, &payload.payload);
    pl_error_done(&error);
    assert_int_equal(payload.n_freed, 1);
}

static void what_is_too_long_is_cut(void **state)
{
    (void)state;
    char name[1000], end[8] = "/tail";
    pl_error error = PL_ERROR_INIT;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name + sizeof name - 1 - strlen(end), end, strlen(end));
    pl_error_set(&error, -EINVAL, "%s", name);
    pl_error_in_op(&error, name, name);
    pl_error_in_file(&error, name);
    pl_error_in_stage(&error, name, name, INT64_MAX);
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    assert_int_equal(strlen(error.path), sizeof error.path - 1);
    assert_memory_equal(error.path, "...xxx", 6);
    assert_string_equal(error.path + strlen(error.path) - strlen(end), end);
    assert_true(error.reason_at <= strlen(error.message));
    assert_int_equal(strlen(pl_error_stage(&error)), sizeof error.stage_name - 1);
}

static void setting_forgets_what_was_known(void **state)
{
    (void)state;
    pl_error error = PL_ERROR_INIT;
    pl_error_set(&error, -EINVAL, "a");
    pl_error_in_stage(&error, "map", "m", 1);
    pl_error_in_file(&error, "p");
    pl_error_at_line(&error, 1, 2, 3);
    pl_error_at_byte(&error, 4);
    pl_error_of_kind(&error, PL_KIND_UNDECODABLE);
    pl_error_set(&error, -EIO, "b");
    assert_string_equal(error.message, "b");
    assert_string_equal(error.path, "");
    assert_string_equal(pl_error_stage(&error), "");
    assert_int_equal(error.kind, PL_KIND_OTHER);
    const int64_t numbers[] = {error.element, error.record, error.offset,
                               error.line,    error.column, error.byte};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_int_equal(numbers[i], -1);
}

static void kinds_have_names(void **state)
{
    (void)state;
    assert_string_equal(pl_error_kind_name(PL_KIND_UNDECODABLE), "undecodable");
    assert_string_equal(pl_error_kind_name((pl_error_kind)99), "?");
}

/* ---- payloads ---- */

static void a_payload_is_freed_by_the_last_copy(void **state)
{
    (void)state;
    counted payload = a_payload();
    pl_error a = PL_ERROR_INIT, b = PL_ERROR_INIT, c = PL_ERROR_INIT;
    pl_error_set(&a, -EIO, "a");
    pl_error_attach(&a, &payload.payload);
    assert_int_equal(pl_error_copy(&b, &a), -EIO);
    assert_int_equal(pl_error_move(&c, &a), -EIO);
    assert_null(a.payload);
    assert_int_equal(a.code, 0);
    pl_error_done(&a);
    pl_error_done(&c);
    assert_int_equal(payload.n_freed, 0);
    assert_string_equal(b.message, "a");
    pl_error_done(&b);
    pl_error_done(&b);
    assert_int_equal(payload.n_freed, 1);
}

static void whatever_replaces_an_error_drops_its_payload(void **state)
{
    (void)state;
    counted set = a_payload(), copied = a_payload(), moved = a_payload(), attached = a_payload();
    pl_error error = PL_ERROR_INIT, other = PL_ERROR_INIT;
    pl_error_set(&other, -EIO, "other");
    pl_error_set(&error, -EIO, "error");
    pl_error_attach(&error, &set.payload);
    pl_error_set(&error, -EIO, "again");
    assert_int_equal(set.n_freed, 1);
    pl_error_attach(&error, &attached.payload);
    pl_error_attach(&error, &copied.payload);
    assert_int_equal(attached.n_freed, 1);
    pl_error_copy(&error, &other);
    assert_int_equal(copied.n_freed, 1);
    pl_error_attach(&error, &moved.payload);
    pl_error_move(&error, &other);
    assert_int_equal(moved.n_freed, 1);
}

static void nobody_has_to_want_an_error(void **state)
{
    (void)state;
    counted attached = a_payload(), moved = a_payload();
    pl_error error = PL_ERROR_INIT;
    pl_error_set(&error, -EIO, "error");
    pl_error_attach(&error, &moved.payload);
    assert_int_equal(pl_error_set(NULL, -EIO, "x"), -EIO);
    pl_error_attach(NULL, &attached.payload);
    pl_error_in_file(NULL, "x");
    pl_error_in_op(NULL, "x", NULL);
    pl_error_in_stage(NULL, "x", NULL, 0);
    assert_int_equal(pl_error_copy(NULL, &error), -EIO);
    assert_int_equal(pl_error_move(NULL, &error), -EIO);
    assert_int_equal(attached.n_freed, 1);
    assert_int_equal(moved.n_freed, 1);
    pl_error_done(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_make_the_message),
        cmocka_unit_test(places_are_said_as_far_as_they_are_known),
        cmocka_unit_test(a_place_in_an_ops_data_is_not_one_of_a_file),
        cmocka_unit_test(another_reason_leaves_the_rest),
        cmocka_unit_test(what_is_too_long_is_cut),
        cmocka_unit_test(setting_forgets_what_was_known),
        cmocka_unit_test(kinds_have_names),
        cmocka_unit_test(a_payload_is_freed_by_the_last_copy),
        cmocka_unit_test(whatever_replaces_an_error_drops_its_payload),
        cmocka_unit_test(nobody_has_to_want_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
