/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Python's descriptions of record formats: features of examples, columns of CSV files,
 * compressions. */
#ifndef PL_PYTHON_CONVERT_FEATURES_H
#define PL_PYTHON_CONVERT_FEATURES_H

#include "python/module/module.h"

/* Reads [(name, dtype, shape or None: any number of values, default value or None)]. The texts and
 * tensors stay until features_free(). -1 with an exception. */
int features_of(PyObject *sequence, pl_feature_spec **ret_features, int *ret_n);
void features_free(pl_feature_spec *features, int n); /* NULL is allowed */

/* Reads [(dtype, required, default value or None)]. -1 with an exception. */
int columns_of(PyObject *sequence, pl_csv_default **ret_columns, int *ret_n);
void columns_free(pl_csv_default *columns, int n); /* NULL is allowed */

/* Reads None, "" and "NONE", "GZIP", "ZLIB", "AUTO". */
int compression_of(const char *text, pl_compression *ret_compression, pl_error *reterr);

#endif
