/* SPDX-License-Identifier: Apache-2.0 */
/* Stages: each calls a function of the library with the same arguments. */
#include "python/dataset/dataset_maker.h"

#include <errno.h>
#include <string.h>

#define IN(i)     a[i].dataset
#define NUMBER(i) a[i].number
#define FLAG(i)   (a[i].number != 0)
#define SMALL(i)  (int)a[i].number
#define TEXT(i)   a[i].text
#define CALLED(i) &a[i].function

/* The name, the signature, and the remaining arguments of the library's pl_dataset_NAME(). */
#define STAGES(X)                                                                                  \
    X(map, "input:D function:F n_parallel:N", IN(0), CALLED(1), SMALL(2))                          \
    X(filter, "input:D function:F", IN(0), CALLED(1))                                              \
    X(flat_map, "input:D function:F", IN(0), CALLED(1))                                            \
    X(interleave, "input:D function:F cycle_length:I block_length:I n_parallel:N", IN(0),          \
      CALLED(1), NUMBER(2), NUMBER(3), SMALL(4))                                                   \
    X(zip, "inputs:L", a[0].datasets, a[0].n)                                                      \
    X(concatenate, "input:D other:D", IN(0), IN(1))                                                \
    X(batch, "input:D n:I drop_remainder:B=", IN(0), NUMBER(1), FLAG(2))                           \
    X(padded_batch, "input:D n:I shapes:Z= values:V= drop_remainder:B=", IN(0), NUMBER(1),         \
      a[2].shapes, a[3].tensors, FLAG(4))                                                          \
    X(unbatch, "input:D", IN(0))                                                                   \
    X(window, "input:D size:I shift:I stride:I drop_remainder:B=", IN(0), NUMBER(1), NUMBER(2),    \
      NUMBER(3), FLAG(4))                                                                          \
    X(shuffle, "input:D buffer_size:I seed:I reshuffle_each_iteration:B", IN(0), NUMBER(1),        \
      NUMBER(2), FLAG(3))                                                                          \
    X(repeat, "input:D n:I", IN(0), NUMBER(1))                                                     \
    X(take, "input:D n:I", IN(0), NUMBER(1))                                                       \
    X(skip, "input:D n:I", IN(0), NUMBER(1))                                                       \
    X(shard, "input:D n:I index:I", IN(0), NUMBER(1), NUMBER(2))                                   \
    X(enumerate, "input:D start:I=", IN(0), NUMBER(1))                                             \
    X(scan, "input:D initial:T function:F", IN(0), a[1].tensors, a[1].n, CALLED(2))                \
    X(cache, "input:D path:P=", IN(0), TEXT(1))                                                    \
    X(snapshot, "input:D path:P shards:I", IN(0), TEXT(1), NUMBER(2))                              \
    X(prefetch, "input:D n:I", IN(0), NUMBER(1))

#define STAGE_FUNCTION(name, signature, ...)                                                       \
    static int name(pl_runtime *runtime, const argument *a, pl_dataset **ret_dataset,              \
                    pl_error *reterr)                                                              \
    {                                                                                              \
        (void)runtime;                                                                             \
        return pl_dataset_##name(__VA_ARGS__, ret_dataset, reterr);                                \
    }
STAGES(STAGE_FUNCTION)

/* ---- options ---- */

static int policy_of(const char *text, pl_on_error *ret_policy, pl_error *reterr)
{
    static const char *const names[] = {
        [PL_ON_ERROR_INHERIT] = "inherit",
        [PL_ON_ERROR_FAIL] = "fail",
        [PL_ON_ERROR_SKIP] = "skip",
        [PL_ON_ERROR_QUARANTINE] = "quarantine",
    };
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (!text || strcmp(text, names[i]) == 0) {
            *ret_policy = (pl_on_error)i;
            return 0;
        }
    return pl_error_set(reterr, -EINVAL,
                        "on_error '%.40s' is not one of inherit, fail, skip, quarantine", text);
}

static int with_options(pl_runtime *runtime, const argument *a, pl_dataset **ret_dataset,
                        pl_error *reterr)
{
    (void)runtime;
    pl_dataset_options options = {
        .max_bad = (uint64_t)a[2].number,
        .max_bad_fraction = a[3].real,
        .quarantine_path = a[4].text,
        .watchdog_ms = (uint64_t)a[5].number,
        .budget_bytes = (uint64_t)a[6].number,
        .n_threads = SMALL(7),
        .nondeterministic = FLAG(8),
    };
    for (int i = 2; i < 8; i++)
        if (a[i].number < 0)
            return pl_error_set(reterr, -EINVAL, "options: %lld is negative",
                                (long long)a[i].number);
    int r = policy_of(a[1].text, &options.on_error, reterr);
    return r < 0 ? r : pl_dataset_with_options(IN(0), &options, ret_dataset, reterr);
}

#define STAGE_ENTRY(name, signature, ...) {"ds_" #name, signature, name, false},

const dataset_maker dataset_stages[] = {
    STAGES(STAGE_ENTRY){"ds_options",
                        "input:D on_error:P= max_bad:I= max_bad_fraction:R= quarantine_path:P= "
                        "watchdog_ms:I= budget_bytes:I= n_threads:N= nondeterministic:B=",
                        with_options, false},
    {NULL},
};
