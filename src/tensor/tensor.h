/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors from inside: a buffer, and how its bytes are arranged as elements.
 *   dense     the elements are contiguous, last axis first
 *   permuted  dense, but for the order of the axes (as in a Fortran-ordered file)
 *   label     the tensor's name; its buffer's name unless it was given its own
 *
 *   element (i, j, ...) is offset_bytes + i * strides[0] + j * strides[1] + ... into the buffer
 *
 * Every tensor is in its pool's list of live ones. Constant once made, except for its kind; safe
 * from any thread. */
#ifndef PL_TENSOR_TENSOR_H
#define PL_TENSOR_TENSOR_H

#include "plimsoll/live.h"
#include "plimsoll/tensor.h"
#include "tensor/buffer.h"
#include "tensor/region.h"
#include "util/links.h"

struct pl_tensor {
    _Atomic int n_refs;
    _Atomic int kind; /* enum pl_live_kind */
    pl_link link;     /* in the pool's list */
    uint64_t session; /* the session whose variable it is; 0: none */
    pl_buffer *buffer;
    pl_dtype dtype;
    pl_shape shape;
    int64_t strides[PL_RANK_MAX];
    int64_t offset_bytes;
    char label[]; /* "": the buffer's */
};

/* Takes over the caller's reference to `buffer`, also on failure. `strides` NULL: dense.
 * -ENOMEM. */
PL_MUST_CHECK int pl_tensor_wrap(pl_buffer *buffer, pl_dtype dtype, const pl_shape *shape,
                                 const int64_t *strides, int64_t offset_bytes,
                                 pl_tensor **ret_tensor, pl_error *reterr);

/* Makes a tensor of the same elements with its own name and kind: the value of a constant or
 * variable. -ENOMEM. */
PL_MUST_CHECK int pl_tensor_hold(pl_tensor *tensor, enum pl_live_kind kind, const char *label,
                                 uint64_t session, pl_tensor **ret_held, pl_error *reterr);

/* Releases it; for other holders it becomes an ordinary tensor. NULL is allowed. */
void pl_tensor_let_go(pl_tensor *held);

const char *pl_tensor_label(const pl_tensor *tensor);

/* Returns the bytes of such a tensor: -EINVAL if its size is unknown. */
PL_MUST_CHECK int pl_tensor_size(pl_dtype dtype, const pl_shape *shape, int64_t *ret_bytes,
                                 pl_error *reterr);

/* A source of elements for a tensor to be made. */
typedef struct pl_tensor_maker {
    /* Copies elements [first, first + n), counted last axis first, to `to`, one after the other.
     * Called for several parts at a time, in any order. */
    void (*make)(const void *context, int64_t first, int64_t n, void *to);
    const void *context;
    pl_stop stop; /* called before each part: -ECANCELED */
    bool may_spill;
} pl_tensor_maker;

/* Makes a tensor of such elements: in memory, or in the spill file if there is no room and that is
 * allowed (see pl_tensor_new_from()). */
PL_MUST_CHECK int pl_tensor_new_made(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape,
                                     const pl_tensor_maker *maker, const char *what,
                                     pl_tensor **ret_tensor, pl_error *reterr);

/* Returns whether the tensor is permuted (or dense): axes[i] is then the tensor's axis that is i-th
 * in the buffer. */
bool pl_tensor_order(const pl_tensor *tensor, int axes[PL_RANK_MAX]);

/* Reads a region of dense elements in this shape, `offset_bytes` into the buffer, one run of
 * contiguous bytes at a time. */
PL_MUST_CHECK int pl_tensor_read_dense(pl_buffer *buffer, uint64_t offset_bytes,
                                       const pl_shape *shape, size_t item_bytes,
                                       const pl_region *region, void *data, pl_error *reterr);

/* Copies the slices at `places` along the first axis one after the other, without loading the
 * tensor. -ENOTSUP if a slice is not dense. */
PL_MUST_CHECK int pl_tensor_read_slices(pl_tensor *tensor, const int64_t *places, int64_t n,
                                        void *data, pl_error *reterr);

/* Finds runs of contiguous bytes of a region in a dense shape: their length in bytes, and how many
 * axes (the first ones) are walked to visit them. */
int64_t pl_region_run_bytes(const pl_region *region, const pl_shape *shape, size_t item_bytes,
                            int *ret_n_outer);

/* Walks over the runs: sets the offset of the next one, in bytes; false at the end. */
typedef struct pl_region_runs {
    int n_outer;
    int64_t run_bytes;
    int64_t strides[PL_RANK_MAX];
    pl_region region;
    int64_t at[PL_RANK_MAX];
    bool done;
} pl_region_runs;

void pl_region_runs_init(pl_region_runs *runs, const pl_region *region, const pl_shape *shape,
                         size_t item_bytes);
bool pl_region_runs_next(pl_region_runs *runs, int64_t *ret_offset_bytes);

/* Returns the user's name for a tensor, or "tensor" if it has none. */
static inline const char *pl_tensor_what(const char *what)
{
    return what ? what : "tensor";
}

#endif
