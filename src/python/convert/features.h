/* SPDX-License-Identifier: Apache-2.0 */
/* What records are read by, from Python's words: features of examples, columns of CSV files,
 * compressions. */
#ifndef PL_PYTHON_CONVERT_FEATURES_H
#define PL_PYTHON_CONVERT_FEATURES_H

#include "python/module/module.h"

/* [(name, dtype, shape or None: any number of values, default value or None)]. With its texts and
 * tensors, until features_free(). -1 with an exception. */
int features_of(PyObject *sequence, pl_feature_spec **ret_features, int *ret_n);
void features_free(pl_feature_spec *features, int n); /* NULL is allowed */

/* [(dtype, required, default value or None)]. -1 with an exception. */
int columns_of(PyObject *sequence, pl_csv_default **ret_columns, int *ret_n);
void columns_free(pl_csv_default *columns, int n); /* NULL is allowed */

/* None, "" and "NONE", "GZIP", "ZLIB", "AUTO". */
int compression_of(const char *text, pl_compression *ret_compression, pl_error *reterr);

#endif
