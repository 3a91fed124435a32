/* SPDX-License-Identifier: Apache-2.0 */
/* The features of an Example and their kinds: taken from the first record, compared with the rest.
 *   entry   a name and a kind; in a SequenceExample also those of its lists, by their first step.
 *           An entry without a kind (nothing was set) matches any, and takes the first that comes
 *   differ  another kind is an error: parsing would fail. A missing or new entry is a warning: it
 *           may be optional
 *
 * Allocates memory for the names. One thread at a time. */
#ifndef PL_VERIFY_SCHEMA_H
#define PL_VERIFY_SCHEMA_H

#include "verify/file.h"

typedef struct pl_verify_schema pl_verify_schema;

/* Returns 1; 0: the record is not an Example with features; -ENOMEM. */
PL_MUST_CHECK int pl_verify_schema_new(const void *record, size_t n, pl_verify_schema **ret_schema);
void pl_verify_schema_free(pl_verify_schema *schema); /* NULL is allowed */

enum { PL_VERIFY_DIFFERENCE_BYTES = 200 };

/* Compares a record: returns PL_VERIFY_GOOD, or the severity of the difference, with `text` for
 * it. */
pl_verify_severity pl_verify_schema_compare(pl_verify_schema *schema, const void *record, size_t n,
                                            char text[PL_VERIFY_DIFFERENCE_BYTES]);

/* Does the same for the schema of another file. */
pl_verify_severity pl_verify_schema_compare_schema(pl_verify_schema *schema,
                                                   const pl_verify_schema *other,
                                                   char text[PL_VERIFY_DIFFERENCE_BYTES]);

#endif
