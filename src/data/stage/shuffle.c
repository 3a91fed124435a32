/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in random order: draws one from a full buffer, and fills its place with the input's next.
 *   places  the buffer's content if the input has random access: so a million paths cost only their
 *           numbers. The order is the same in both cases
 *   key     of this pass: made of the seed, the number of passes before, and the round of a repeat.
 *           Draw number i of a key is the same everywhere
 *
 * At the end the last one moves to the place of the drawn one, so the buffer has no holes. */
#include <errno.h>
#include <inttypes.h>

#include "data/core/claimed_array.h"
#include "data/core/counter_random.h"
#include "data/core/seeds.h"
#include "data/core/stage.h"
#include "data/persist/state.h"

/* Places for one read of the input: few enough for the stack. */
enum { PLACES_AT_ONCE = 512 };

typedef struct shuffle_dataset {
    pl_dataset base;
    int64_t n; /* of the buffer */
    bool reshuffles;
    bool seeded; /* by the user */
    uint64_t seed;
} shuffle_dataset;

typedef struct shuffle_stage {
    pl_stage base;
    pl_seed seed; /* with the number of the pass */
    uint64_t key;
    int64_t n_drawn;
    int64_t n_pulled; /* of the input; of places: the next one */
    bool by_place;
    bool ended;              /* the input is */
    bool one_by_one;         /* reading several at once failed, and is not tried again */
    int64_t drawn;           /* a place whose element is still to be made; -1: none */
    pl_claimed_array buffer; /* of elements, or of places */
} shuffle_stage;

static const shuffle_dataset *dataset_of(const pl_stage *stage)
{
    return (const shuffle_dataset *)stage->dataset;
}

static void set_key(pl_stage *stage)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    own->key = pl_draw(own->seed.seed, 0);
    if (dataset_of(stage)->reshuffles)
        own->key = pl_draw(pl_draw(own->key, own->seed.number), stage->round);
}

static int open_shuffle(pl_stage *stage, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    own->by_place = pl_dataset_has_places(stage->dataset->inputs[0]);
    own->drawn = -1;
    int r = pl_seed_take(stage->pass, stage->dataset, dataset_of(stage)->seed, &own->seed, reterr);
    set_key(stage);
    return r;
}

static void close_shuffle(pl_stage *stage)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    if (own->by_place)
        pl_claimed_array_clear(&own->buffer);
    else
        pl_claimed_array_clear_elements(&own->buffer);
}

static int64_t draw(shuffle_stage *own)
{
    return (int64_t)pl_draw_below(own->key, (uint64_t)own->n_drawn, (uint64_t)own->buffer.n);
}

static PL_COLD int refuse(pl_stage *stage, pl_error *reterr)
{
    if (pl_pass_later(stage->pass, reterr->code))
        return PL_RETRY_ALONE;
    pl_error_reword(reterr,
                    "%" PRId64 " elements of its buffer are there, and one more does not fit: %s",
                    ((shuffle_stage *)stage)->buffer.n, pl_error_reason(reterr));
    pl_stage_locate(stage, reterr->code, reterr);
    return pl_pass_end(stage->pass, reterr);
}

/* ---- places ---- */

/* Four bytes are enough for most datasets. */
static size_t place_bytes(const pl_stage *stage)
{
    return stage->dataset->cardinality <= INT64_C(1) << 32 ? sizeof(uint32_t) : sizeof(int64_t);
}

static int64_t place_at(const pl_claimed_array *buffer, int64_t at)
{
    const void *place = pl_claimed_array_at(buffer, at);
    return buffer->record_bytes == sizeof(uint32_t) ? *(const uint32_t *)place
                                                    : *(const int64_t *)place;
}

static void set_place(pl_claimed_array *buffer, int64_t at, int64_t value)
{
    void *place = pl_claimed_array_at(buffer, at);
    if (buffer->record_bytes == sizeof(uint32_t))
        *(uint32_t *)place = (uint32_t)value;
    else
        *(int64_t *)place = value;
}

static int fill_places(pl_stage *stage, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    int64_t n = stage->dataset->cardinality;
    while (own->n_pulled < n && own->buffer.n < dataset_of(stage)->n) {
        if (!pl_claimed_array_add(&own->buffer, stage->pass->runtime->memory, place_bytes(stage),
                                  "shuffle", reterr))
            return refuse(stage, reterr);
        set_place(&own->buffer, own->buffer.n - 1, own->n_pulled++);
    }
    return 0;
}

static int64_t draw_place(shuffle_stage *own)
{
    int64_t at = draw(own), place = place_at(&own->buffer, at);
    own->n_drawn++;
    set_place(&own->buffer, at, place_at(&own->buffer, --own->buffer.n));
    return place;
}

/* Draws at most this many; fewer at the end, or if the buffer finds no room. *ret_n_filled counts
 * the input's places that entered the buffer after the first draw. */
static int64_t draw_places(pl_stage *stage, int64_t *places, int64_t n, int64_t *ret_n_filled)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    pl_error ignored = {0}; /* next() meets it again */
    int64_t n_drawn = 0, n_pulled = own->n_pulled;
    for (; n_drawn < n && fill_places(stage, &ignored) == 0 && own->buffer.n > 0; n_drawn++) {
        if (n_drawn == 0)
            n_pulled = own->n_pulled;
        places[n_drawn] = draw_place(own);
    }
    *ret_n_filled = own->n_pulled - n_pulled;
    return n_drawn;
}

/* Undoes the draws. Of the places that entered, one did before each draw but the first, until the
 * input had no more. */
static void put_back(shuffle_stage *own, const int64_t *places, int64_t n, int64_t n_filled)
{
    pl_claimed_array *buffer = &own->buffer;
    for (int64_t i = n - 1; i >= 0; i--) {
        own->n_drawn--;
        buffer->n++;
        int64_t at = draw(own);
        set_place(buffer, buffer->n - 1, place_at(buffer, at));
        set_place(buffer, at, places[i]);
        if (i > 0 && i <= n_filled) {
            buffer->n--;
            own->n_pulled--;
        }
    }
}

/* A draw reads one place of the buffer, so the elements are the same as one by one. */
static int64_t read_block(pl_stage *stage, int64_t n, char *const *to)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    int64_t places[PLACES_AT_ONCE], n_read = 0, n_drawn, n_filled;
    char *at[PL_BLOCK_COMPONENTS];
    for (; n_read < n; n_read += n_drawn) {
        int64_t most = n - n_read < PLACES_AT_ONCE ? n - n_read : PLACES_AT_ONCE;
        n_drawn = draw_places(stage, places, most, &n_filled);
        for (int i = 0; i < stage->dataset->n_components; i++)
            at[i] = to[i] + (uint64_t)n_read * pl_spec_bytes(&stage->dataset->spec[i]);
        if (n_drawn == 0)
            break;
        if (!pl_stage_read_places(stage->inputs[0], places, n_drawn, at)) {
            put_back(own, places, n_drawn, n_filled);
            own->one_by_one = n_read == 0;
            break;
        }
    }
    return n_read;
}

static bool may_read_block(const pl_stage *stage)
{
    const shuffle_stage *own = (const shuffle_stage *)stage;
    return own->by_place && own->drawn < 0 && !own->one_by_one &&
           stage->inputs[0]->dataset->class->read_places;
}

static int next_by_place(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    for (;;) {
        int r = own->drawn < 0 ? fill_places(stage, reterr) : 0;
        if (r < 0 || (own->drawn < 0 && own->buffer.n == 0))
            return r;
        if (own->drawn < 0)
            own->drawn = draw_place(own);
        r = pl_stage_get(stage->inputs[0], own->drawn, ret_element, reterr);
        if (r >= 0 || r == PL_REPORTED)
            own->drawn = -1;
        if (r != 0)
            return r;
    }
}

/* ---- elements ---- */

static int fill(pl_stage *stage, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    while (!own->ended && own->buffer.n < dataset_of(stage)->n) {
        pl_element element;
        if (pl_claimed_array_room(&own->buffer, stage->pass->runtime->memory, sizeof element,
                                  "shuffle", reterr) < 0)
            return refuse(stage, reterr);
        int r = pl_stage_next(stage->inputs[0], &element, reterr);
        if (r < 0)
            return r;
        own->ended = r == 0;
        if (r > 0)
            pl_claimed_array_add_element(&own->buffer, &element);
    }
    return 0;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    if (own->by_place)
        return next_by_place(stage, ret_element, reterr);
    int r = fill(stage, reterr);
    if (r < 0 || own->buffer.n == 0)
        return r;
    pl_element *drawn = pl_claimed_array_element(&own->buffer, draw(own));
    own->n_drawn++;
    *ret_element = *drawn;
    *drawn = *pl_claimed_array_element(&own->buffer, --own->buffer.n);
    return 1;
}

/* ---- state ---- */

static int save_buffer(const shuffle_stage *own, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, own->buffer.n, reterr);
    for (int64_t i = 0; r == 0 && i < own->buffer.n; i++)
        r = own->by_place
                ? pl_save_int(saver, place_at(&own->buffer, i), reterr)
                : pl_save_element(saver, pl_claimed_array_element(&own->buffer, i), reterr);
    return r;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    const shuffle_stage *own = (const shuffle_stage *)stage;
    const int64_t numbers[] = {(int64_t)own->seed.seed,
                               (int64_t)own->seed.number,
                               own->n_drawn,
                               own->n_pulled,
                               own->drawn,
                               own->ended};
    int r = 0;
    for (size_t i = 0; r == 0 && i < PL_COUNT_OF(numbers); i++)
        r = pl_save_int(saver, numbers[i], reterr);
    return r < 0 ? r : save_buffer(own, saver, reterr);
}

static int load_place(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    int64_t place;
    int r = pl_load_int(loader, 0, own->n_pulled - 1, &place, reterr);
    if (r < 0)
        return r;
    if (!pl_claimed_array_add(&own->buffer, stage->pass->runtime->memory, place_bytes(stage),
                              "shuffle", reterr))
        return reterr->code;
    set_place(&own->buffer, own->buffer.n - 1, place);
    return 0;
}

static int load_element(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_to_array(loader, stage->dataset, &((shuffle_stage *)stage)->buffer, "shuffle",
                            reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    shuffle_stage *own = (shuffle_stage *)stage;
    int64_t most = own->by_place ? stage->dataset->cardinality : PL_COUNT_MOST;
    int64_t seed, number, ended = 0, n = 0;
    int r = pl_load_int(loader, INT64_MIN, INT64_MAX, &seed, reterr);
    if (r == 0)
        r = pl_load_count(loader, &number, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, most, &own->n_drawn, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, most, &own->n_pulled, reterr);
    if (r == 0)
        r = pl_load_int(loader, -1, own->n_pulled - 1, &own->drawn, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, dataset_of(stage)->n, &n, reterr);
    while (r == 0 && own->buffer.n < n)
        r = (own->by_place ? load_place : load_element)(stage, loader, reterr);
    if (r < 0)
        return r;
    own->ended = ended;
    own->seed = (pl_seed){(uint64_t)seed, (uint64_t)number};
    pl_seed_set(stage->pass, stage->dataset, own->seed);
    set_key(stage);
    return 0;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const shuffle_dataset *own = (const shuffle_dataset *)dataset;
    fprintf(to, "buffer=%" PRId64 "%s", own->n, own->reshuffles ? ", reshuffles" : "");
    if (own->seeded)
        fprintf(to, ", seed=%" PRIu64, own->seed);
}

static const pl_dataset_class shuffle_class = {
    .name = "shuffle",
    .dataset_bytes = sizeof(shuffle_dataset),
    .stage_bytes = sizeof(shuffle_stage),
    .open = open_shuffle,
    .next = next,
    .read_block = read_block,
    .may_read_block = may_read_block,
    .close = close_shuffle,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_dataset_shuffle(pl_dataset *input, int64_t buffer_size, int64_t seed,
                       bool reshuffle_each_iteration, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (buffer_size < 1)
        return pl_error_set(reterr, -EINVAL, "shuffle: a buffer of %" PRId64 " elements",
                            buffer_size);
    if (seed < 0 && seed != PL_AUTO)
        return pl_error_set(reterr, -EINVAL, "shuffle: a seed of %" PRId64, seed);
    uint64_t drawn = (uint64_t)seed;
    int r = seed == PL_AUTO ? pl_seed_random(&drawn, reterr) : 0;
    if (r == 0)
        r = pl_dataset_make_over(&shuffle_class, input, ret_dataset, reterr);
    if (r < 0)
        return r;
    shuffle_dataset *own = (shuffle_dataset *)*ret_dataset;
    own->n = buffer_size;
    own->seed = drawn;
    own->seeded = seed != PL_AUTO;
    own->reshuffles = reshuffle_each_iteration;
    return 0;
}
