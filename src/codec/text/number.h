/* SPDX-License-Identifier: Apache-2.0 */
/* Parses numbers in text: decimal, with a point, in any locale.
 *
 *   integer = [blanks] [sign] digits [blanks]
 *   float   = [blanks] [sign] (digits, with a point somewhere or not, [e [sign] digits], or inf,
 *             infinity, nan in any case) [blanks]
 *
 * A float is the nearest value to the text, ties to even; float32 is rounded once, not by way of
 * float64. A value that is too large for the dtype does not fit; one that is too small is 0.
 *
 * All return 0, PL_EFORMAT (not such a number) or -ERANGE (it does not fit), without a message: the
 * caller knows where the text is. Allocates nothing; safe from any thread. */
#ifndef PL_CODEC_TEXT_NUMBER_H
#define PL_CODEC_TEXT_NUMBER_H

#include "base/base.h"

/* The limit for a number, without blanks at the ends. Nobody writes longer ones: PL_EFORMAT. */
#define PL_NUMBER_TEXT_BYTES 512

PL_MUST_CHECK int pl_number_i32(const char *text, size_t n, int32_t *ret_value);
PL_MUST_CHECK int pl_number_i64(const char *text, size_t n, int64_t *ret_value);
PL_MUST_CHECK int pl_number_f32(const char *text, size_t n, float *ret_value);
PL_MUST_CHECK int pl_number_f64(const char *text, size_t n, double *ret_value);

#endif
