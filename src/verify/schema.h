/* SPDX-License-Identifier: Apache-2.0 */
/* Which features an Example has, and of which kind: taken from the first one, held against the
 * rest.
 *   entry   a name and a kind; of a SequenceExample also those of its lists, by their first step.
 *           One of no kind (nothing was set) goes with any, and takes the first that comes
 *   differ  another kind is an error: parsing would fail. An entry that is missing or new is a
 *           warning: it may be optional
 *
 * Allocates what the names take. One thread at a time. */
#ifndef PL_VERIFY_SCHEMA_H
#define PL_VERIFY_SCHEMA_H

#include "verify/file.h"

typedef struct pl_verify_schema pl_verify_schema;

/* 1; 0: the record is no Example with any features; -ENOMEM. */
PL_MUST_CHECK int pl_verify_schema_new(const void *record, size_t n, pl_verify_schema **ret_schema);
void pl_verify_schema_free(pl_verify_schema *schema); /* NULL is allowed */

enum { PL_VERIFY_DIFFERENCE_BYTES = 200 };

/* What is different about this record: PL_VERIFY_GOOD, or how bad it is, with `text` for it. */
pl_verify_severity pl_verify_schema_compare(pl_verify_schema *schema, const void *record, size_t n,
                                            char text[PL_VERIFY_DIFFERENCE_BYTES]);

/* The same for the schema of another file. */
pl_verify_severity pl_verify_schema_compare_schema(pl_verify_schema *schema,
                                                   const pl_verify_schema *other,
                                                   char text[PL_VERIFY_DIFFERENCE_BYTES]);

#endif
