/* SPDX-License-Identifier: Apache-2.0 */
#include "data/persist/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/pool.h"
#include "tensor/tensor.h"

enum {
    /* Chunks double in size, so that the store of a small window is small. */
    CHUNK_LEAST_BYTES = 4 * 1024,
    CHUNK_MOST_BYTES = 1024 * 1024,
    /* Below this a copy is cheaper than a tensor beside the bytes. */
    HELD_LEAST_BYTES = 4 * 1024,
};

typedef struct chunk {
    pl_buffer *buffer;
    char *data;        /* while it is filled */
    size_t room_bytes; /* all that it has */
    size_t used_bytes; /* once it is full, or at the end */
} chunk;

struct pl_store {
    pl_saver saver; /* first: its hooks find the store by it */
    _Atomic int n_refs;
    int64_t n;
    chunk *chunks;
    int n_chunks;
    pl_tensor **held;
    int64_t n_held;
    bool ended;
};

/* Room for one more in an array that doubles; NULL: out of memory. */
static void *grow(void *array, int64_t n, size_t item_bytes)
{
    bool full = (n & (n - 1)) == 0; /* at 0 and at powers of 2 */
    return full ? realloc(array, (size_t)(n > 0 ? 2 * n : 1) * item_bytes) : array;
}

/* ---- filling ---- */

static void note_used(pl_store *store)
{
    chunk *last = store->n_chunks > 0 ? &store->chunks[store->n_chunks - 1] : NULL;
    if (last && last->data)
        last->used_bytes = (size_t)(store->saver.at - last->data);
}

static void let_go_of_last(pl_store *store)
{
    chunk *last = store->n_chunks > 0 ? &store->chunks[store->n_chunks - 1] : NULL;
    note_used(store);
    if (last && last->data) {
        pl_buffer_unpin(last->buffer);
        last->data = NULL;
    }
    store->saver.at = store->saver.end = NULL;
}

static int next_chunk(pl_saver *saver, pl_error *reterr)
{
    pl_store *store = (pl_store *)saver;
    size_t bytes = CHUNK_LEAST_BYTES;
    if (store->n_chunks > 0)
        bytes = pl_min_u64(store->chunks[store->n_chunks - 1].room_bytes * 2, CHUNK_MOST_BYTES);
    chunk *more = grow(store->chunks, store->n_chunks, sizeof *more);
    if (!more)
        return pl_error_set(reterr, -ENOMEM, "out of memory for kept elements");
    store->chunks = more;
    pl_buffer *buffer;
    void *data;
    let_go_of_last(store); /* before, so that it can be evicted for the new one */
    int r = pl_buffer_new(saver->runtime->pool, bytes, "kept elements", &buffer, &data, reterr);
    if (r < 0)
        return r;
    store->chunks[store->n_chunks++] = (chunk){buffer, data, bytes, 0};
    saver->at = data;
    saver->end = saver->at + bytes;
    return 0;
}

/* A view of much more than itself would keep all of that; a window would keep its file. */
static bool worth_holding(const pl_tensor *tensor)
{
    uint64_t bytes = pl_tensor_bytes(tensor);
    return bytes >= HELD_LEAST_BYTES && pl_buffer_bytes(tensor->buffer) <= 2 * bytes &&
           tensor->buffer->chunk->window.fd < 0;
}

static int hold(pl_saver *saver, pl_tensor *tensor, int64_t *ret_number, pl_error *reterr)
{
    pl_store *store = (pl_store *)saver;
    if (!worth_holding(tensor))
        return 0;
    pl_tensor **more = grow(store->held, store->n_held, sizeof *more);
    if (!more)
        return pl_error_set(reterr, -ENOMEM, "out of memory for kept elements");
    store->held = more;
    *ret_number = store->n_held;
    store->held[store->n_held++] = pl_tensor_ref(tensor);
    return 1;
}

int pl_store_new(pl_runtime *runtime, pl_store **ret_store, pl_error *reterr)
{
    pl_store *store = calloc(1, sizeof *store);
    if (!store)
        return pl_error_set(reterr, -ENOMEM, "out of memory for kept elements");
    atomic_init(&store->n_refs, 1);
    store->saver = (pl_saver){.more = next_chunk, .hold = hold, .runtime = pl_runtime_ref(runtime)};
    *ret_store = store;
    return 0;
}

pl_store *pl_store_ref(pl_store *store)
{
    atomic_fetch_add_explicit(&store->n_refs, 1, memory_order_relaxed);
    return store;
}

void pl_store_unref(pl_store *store)
{
    if (!store || atomic_fetch_sub_explicit(&store->n_refs, 1, memory_order_acq_rel) > 1)
        return;
    let_go_of_last(store);
    for (int i = 0; i < store->n_chunks; i++)
        pl_buffer_unref(store->chunks[i].buffer);
    for (int64_t i = 0; i < store->n_held; i++)
        pl_tensor_unref(store->held[i]);
    free(store->chunks);
    free(store->held);
    pl_saver_done(&store->saver);
    pl_runtime_unref(store->saver.runtime);
    free(store);
}

/* To the end of what was there before an element that could not be added. What is left of its first
 * chunk stays empty: to have that back might need room, too. */
static void go_back(pl_store *store, int n_chunks, size_t used_bytes, int64_t n_held)
{
    let_go_of_last(store);
    while (store->n_chunks > n_chunks)
        pl_buffer_unref(store->chunks[--store->n_chunks].buffer);
    if (n_chunks > 0)
        store->chunks[n_chunks - 1].used_bytes = used_bytes;
    while (store->n_held > n_held)
        pl_tensor_unref(store->held[--store->n_held]);
}

int pl_store_add(pl_store *store, const pl_element *element, pl_error *reterr)
{
    int n_chunks = store->n_chunks;
    int64_t n_held = store->n_held;
    pl_origin *origin = store->saver.origin ? pl_origin_ref(store->saver.origin) : NULL;
    note_used(store);
    size_t used_bytes = n_chunks > 0 ? store->chunks[n_chunks - 1].used_bytes : 0;
    int r = pl_save_element(&store->saver, element, reterr);
    if (r == 0) {
        store->n++;
        pl_origin_unref(origin);
        return 0;
    }
    go_back(store, n_chunks, used_bytes, n_held);
    pl_origin_unref(store->saver.origin);
    store->saver.origin = origin;
    return r;
}

void pl_store_end(pl_store *store)
{
    let_go_of_last(store);
    pl_saver_done(&store->saver);
    store->ended = true;
}

int64_t pl_store_n(const pl_store *store)
{
    return store->n;
}

/* ---- reading ---- */

static void unpin_before(pl_store_reader *reader)
{
    if (reader->loader.at)
        pl_buffer_unpin(reader->store->chunks[reader->next_chunk - 1].buffer);
    reader->loader.at = reader->loader.end = NULL;
}

static int pin_next(pl_loader *loader, pl_error *reterr)
{
    pl_store_reader *reader = (pl_store_reader *)loader;
    unpin_before(reader);
    if (reader->next_chunk == reader->store->n_chunks)
        return pl_load_refuse(reterr, "kept elements end too early");
    const chunk *next = &reader->store->chunks[reader->next_chunk];
    void *data;
    int r = pl_buffer_pin(next->buffer, PL_PIN_READ, &data, reterr);
    if (r < 0)
        return r;
    reader->next_chunk++;
    loader->at = data;
    loader->end = loader->at + next->used_bytes;
    loader->at += reader->skip_bytes;
    reader->skip_bytes = 0;
    return 0;
}

static pl_tensor *held_by(pl_loader *loader, int64_t number)
{
    const pl_store *store = ((pl_store_reader *)loader)->store;
    return number < store->n_held ? store->held[number] : NULL;
}

void pl_store_read_begin(pl_store_reader *reader, pl_store *store)
{
    if (!store->ended)
        note_used(store);
    *reader = (pl_store_reader){
        .loader = {.more = pin_next,
                   .held = held_by,
                   .behind_bytes = UINT64_MAX, /* our own bytes are trusted */
                   .runtime = store->saver.runtime},
        .store = pl_store_ref(store),
    };
}

void pl_store_read_end(pl_store_reader *reader)
{
    if (!reader->store)
        return;
    unpin_before(reader);
    pl_loader_done(&reader->loader);
    pl_store_unref(PL_TAKE(reader->store));
}

int pl_store_read(pl_store_reader *reader, const pl_dataset *dataset, pl_element *ret_element,
                  pl_error *reterr)
{
    if (reader->n_read == reader->store->n)
        return 0;
    bool pinned = reader->loader.at != NULL;
    int first = reader->next_chunk - pinned;
    size_t left = (size_t)(reader->loader.end - reader->loader.at);
    size_t read = pinned ? reader->store->chunks[first].used_bytes - left : reader->skip_bytes;
    int r = pl_load_element(&reader->loader, dataset, ret_element, reterr);
    if (r < 0) { /* back to its beginning */
        unpin_before(reader);
        reader->next_chunk = first;
        reader->skip_bytes = read;
        return r;
    }
    reader->n_read++;
    return 1;
}

/* ---- as bytes ---- */

int pl_store_save(pl_store *store, const pl_dataset *dataset, pl_saver *saver, pl_error *reterr)
{
    pl_store_reader reader;
    int r = pl_save_int(saver, store->n, reterr);
    pl_store_read_begin(&reader, store);
    for (int64_t i = 0; r >= 0 && i < store->n; i++) {
        pl_element element;
        r = pl_store_read(&reader, dataset, &element, reterr);
        if (r < 0)
            break;
        r = pl_save_element(saver, &element, reterr);
        pl_element_clear(&element);
    }
    pl_store_read_end(&reader);
    return r < 0 ? r : 0;
}

int pl_store_load(pl_loader *loader, const pl_dataset *dataset, pl_store **ret_store,
                  pl_error *reterr)
{
    int64_t n;
    pl_store *store = NULL;
    int r = pl_load_count(loader, &n, reterr);
    if (r == 0)
        r = pl_store_new(loader->runtime, &store, reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; r == 0 && i < n; i++) {
        pl_element element;
        r = pl_load_element(loader, dataset, &element, reterr);
        if (r < 0)
            break;
        r = pl_store_add(store, &element, reterr);
        pl_element_clear(&element);
    }
    if (r < 0)
        pl_store_unref(store);
    else
        *ret_store = store;
    return r;
}
