/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the stream of a checkpoint, of a cache and of a folder's metadata, in records whose
 * checksums are right: what reads them says no, with a message, or goes on with elements that are
 * what the dataset says. Nothing stays claimed. The first byte says which; the text of the dataset,
 * without which all would be refused at once, is put before the rest. */
#include <errno.h>
#include <unistd.h>

#include "codec/record/crc32c.h"
#include "data/core/dataset_text.h"
#include "data/iterator/iterator.h"
#include "data/persist/element_file.h"
#include "data/persist/record_file_format.h"
#include "fuzz.h"
#include "plimsoll/dataset.h"

enum { OF_NUMBERS, OF_TEXTS, OF_WINDOWS, OF_CACHE, OF_FOLDER, N_WAYS };

static pl_runtime *runtime;
static pl_error error;
static char folder[64], path[96], metadata[128];
static long n_taken; /* inputs that were read to their end: 0 would make the test worthless */

static void begin(void)
{
    const pl_runtime_options options = {.cap_bytes = 8 * PL_MIB, .n_threads = 1};
    strcpy(folder, "/tmp/plimsoll-fuzz-XXXXXX");
    REQUIRE(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/kept", folder);
    snprintf(metadata, sizeof metadata, "%s/metadata", folder);
    REQUIRE(pl_runtime_new(&options, &runtime, &error) == 0);
}

/* ---- datasets ---- */

static int twice(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                 int n_outputs, pl_error *reterr)
{
    (void)context, (void)n_inputs, (void)n_outputs;
    int64_t x;
    int r =
        pl_tensor_read(inputs[0].tensor, (const int64_t[]){0}, (const int64_t[]){0}, &x, reterr);
    if (r < 0 || x % 9 == 4)
        return pl_error_set(reterr, -EIO, "unlucky");
    x *= 2;
    return pl_tensor_new(runtime, PL_I64, &(pl_shape){0}, &x, "made", &outputs[0].tensor, reterr);
}

static pl_dataset *over(pl_dataset *input, int r, pl_dataset *dataset)
{
    REQUIRE(r == 0);
    pl_dataset_unref(input);
    return dataset;
}

#define OVER(input, call)                                                                          \
    do {                                                                                           \
        pl_dataset *next_ = NULL;                                                                  \
        int made_ = call;                                                                          \
        input = over(input, made_, next_);                                                         \
    } while (0)

static pl_dataset *numbers(void)
{
    static const pl_spec spec = {.dtype = PL_I64};
    const pl_function function = {
        .call = twice, .output_specs = &spec, .n_inputs = 1, .n_outputs = 1};
    pl_dataset *d = NULL;
    REQUIRE(pl_dataset_range(runtime, 0, 50, 1, &d, &error) == 0);
    OVER(d, pl_dataset_map(d, &function, 2, &next_, &error));
    OVER(d, pl_dataset_shuffle(d, 5, 7, true, &next_, &error));
    OVER(d, pl_dataset_cache(d, NULL, &next_, &error));
    OVER(d, pl_dataset_batch(d, 4, false, &next_, &error));
    OVER(d, pl_dataset_repeat(d, 2, &next_, &error));
    OVER(d, pl_dataset_prefetch(d, 3, &next_, &error));
    return d;
}

static pl_dataset *texts(void)
{
    pl_string each[20];
    for (size_t i = 0; i < 20; i++)
        each[i] = (pl_string){&"some strings of any length"[i], i % 7};
    pl_tensor *tensor;
    REQUIRE(pl_tensor_new_strings(runtime, &(pl_shape){1, {20}}, each, "texts", &tensor, &error) ==
            0);
    pl_dataset *d = NULL;
    REQUIRE(pl_dataset_from_slices(runtime, &tensor, 1, &d, &error) == 0);
    pl_tensor_unref(tensor);
    OVER(d, pl_dataset_batch(d, 3, false, &next_, &error));
    OVER(d, pl_dataset_prefetch(d, 3, &next_, &error));
    return d;
}

static pl_dataset *windows(void)
{
    pl_dataset *d = texts();
    OVER(d, pl_dataset_window(d, 3, 2, 1, false, &next_, &error));
    OVER(d, pl_dataset_prefetch(d, 2, &next_, &error));
    return d;
}

static pl_dataset *dataset_for(int way)
{
    return way == OF_NUMBERS ? numbers() : way == OF_WINDOWS ? windows() : texts();
}

/* ---- files ---- */

typedef struct bytes {
    uint8_t *data;
    size_t n;
} bytes;

static void add(bytes *to, const void *data, size_t n)
{
    to->data = realloc(to->data, to->n + n + 1);
    REQUIRE(to->data);
    if (n > 0)
        memcpy(to->data + to->n, data, n);
    to->n += n;
}

static void add_record(bytes *to, const void *data, size_t n)
{
    uint8_t *record = malloc(n + PL_TFRECORD_FRAME_BYTES);
    REQUIRE(record);
    pl_tfrecord_write(data, n, record);
    add(to, record, n + PL_TFRECORD_FRAME_BYTES);
    free(record);
}

static void write_kept(const char *name, const char *kind, const bytes *stream)
{
    uint8_t start[PL_RECORD_FILE_START_BYTES];
    bytes file = {0}, piece = {0};
    pl_record_file_end_data end = {.tag = PL_RECORD_FILE_TAG_END, .stream_bytes = stream->n};
    pl_record_file_format_start(kind, PL_RECORD_FILE_VERSION, start);
    add(&file, start, sizeof start);
    add(&piece, "P", 1);
    add(&piece, stream->data, stream->n);
    add_record(&file, piece.data, piece.n);
    end.sum = pl_crc32c(0, file.data + file.n - PL_TFRECORD_FOOT_BYTES, PL_TFRECORD_FOOT_BYTES);
    add_record(&file, &end, sizeof end);
    FILE *to = fopen(name, "w");
    REQUIRE(to && fwrite(file.data, 1, file.n, to) == file.n);
    fclose(to);
    free(file.data);
    free(piece.data);
}

static void add_tree(bytes *stream, const pl_dataset *dataset)
{
    char *tree;
    REQUIRE(pl_tree_text(dataset, &tree, &error) == 0);
    int64_t n = (int64_t)strlen(tree);
    add(stream, &n, sizeof n);
    add(stream, tree, (size_t)n);
    free(tree);
}

/* ---- reading ---- */

static void check_refusal(int r)
{
    REQUIRE(error.code == r && error.message[0]);
    for (const char *c = error.message; *c; c++)
        REQUIRE((unsigned char)*c >= ' ');
}

static void restore(pl_dataset *dataset)
{
    pl_iterator *iterator;
    REQUIRE(pl_iterator_new(dataset, &iterator, &error) == 0);
    int r = pl_iterator_restore(iterator, path, &error);
    if (r < 0)
        check_refusal(r);
    n_taken += r == 0;
    for (int i = 0; r == 0 && i < 20; i++) {
        pl_value value;
        int got = pl_iterator_next(iterator, &value, &error);
        if (got > 0) {
            pl_tensor_unref(value.tensor);
            pl_dataset_unref(value.dataset);
        }
    }
    pl_iterator_free(iterator);
}

static void read_cache(pl_dataset *dataset)
{
    pl_element_reader reader;
    pl_element element;
    char *tree;
    REQUIRE(pl_tree_text(dataset, &tree, &error) == 0);
    int r = pl_element_reader_open(&reader, runtime, path, tree, &error);
    free(tree);
    if (r < 0)
        check_refusal(r);
    while (r == 0 && (r = pl_element_reader_next(&reader, dataset, &element, &error)) > 0) {
        pl_element_clear(&element);
        r = 0;
        if (reader.ended)
            break;
    }
    n_taken += reader.ended;
    pl_element_reader_close(&reader);
}

static void read_metadata(void)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_load(runtime, folder, &dataset, &error);
    if (r < 0)
        check_refusal(r);
    n_taken += r == 0;
    pl_dataset_unref(dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0 || n > 100000)
        return 0;
    if (!runtime)
        begin();
    int way = data[0] % N_WAYS;
    bytes stream = {0};
    pl_dataset *dataset = dataset_for(way);
    if (way != OF_FOLDER)
        add_tree(&stream, dataset);
    add(&stream, data + 1, n - 1);
    write_kept(way == OF_FOLDER ? metadata : path,
               way == OF_FOLDER  ? PL_RECORD_FILE_FOLDER
               : way == OF_CACHE ? PL_RECORD_FILE_ELEMENTS
                                 : PL_RECORD_FILE_CHECKPOINT,
               &stream);
    if (way == OF_FOLDER)
        read_metadata();
    else if (way == OF_CACHE)
        read_cache(dataset);
    else
        restore(dataset);
    pl_dataset_unref(dataset);
    free(stream.data);
    REQUIRE(pl_runtime_claimed_bytes(runtime) == 0);
    return 0;
}

#ifndef PL_LIBFUZZER

/* The stream of a file, without the dataset's text. */
static bytes stream_of(const char *name, bool has_tree)
{
    static uint8_t file[1 << 20];
    bytes stream = {0};
    FILE *from = fopen(name, "r");
    REQUIRE(from);
    size_t n = fread(file, 1, sizeof file, from);
    fclose(from);
    pl_tfrecord record;
    for (uint64_t at = 0; pl_tfrecord_find(file, n, at, &record, &error) > 0; at = record.next)
        if (record.data[0] == PL_RECORD_FILE_TAG_PIECE && at > 0)
            add(&stream, record.data + 1, (size_t)record.data_bytes - 1);
    int64_t tree = 0;
    memcpy(&tree, stream.data, sizeof tree);
    size_t cut = has_tree ? sizeof tree + (size_t)tree : 0;
    memmove(stream.data, stream.data + cut, stream.n - cut);
    stream.n -= cut;
    return stream;
}

/* A folder names its files by a number that it draws, in hexadecimal digits, which its metadata
 * begin with: another one, the same in every run. */
static void name_anew(bytes *of_folder)
{
    int64_t n = 0;
    memcpy(&n, of_folder->data, sizeof n);
    REQUIRE(n == 2 * sizeof(uint64_t) && sizeof n + (size_t)n <= of_folder->n);
    memset(of_folder->data + sizeof n, '5', (size_t)n);
}

static void pull(pl_iterator *iterator, int n)
{
    pl_value value;
    for (int i = 0; i < n; i++)
        if (pl_iterator_next(iterator, &value, &error) > 0) {
            pl_tensor_unref(value.tensor);
            pl_dataset_unref(value.dataset);
        }
}

enum { CUTS = 25 }; /* a checkpoint is made after fewer elements */

/* As it is written, the same each time; a checkpoint after so many elements. */
static bytes real_one(int way, int n_pulled)
{
    pl_dataset *dataset = dataset_for(way);
    pl_iterator *iterator = NULL;
    bytes stream;
    if (way == OF_FOLDER) {
        char saved[96], name[128];
        snprintf(saved, sizeof saved, "%s/saved", folder);
        snprintf(name, sizeof name, "%s/metadata", saved);
        REQUIRE(pl_dataset_save(dataset, saved, 1, &error) == 0);
        stream = stream_of(name, false);
        name_anew(&stream);
        char command[128];
        snprintf(command, sizeof command, "rm -r %s", saved);
        REQUIRE(system(command) == 0);
    } else if (way == OF_CACHE) {
        pl_dataset *cache;
        REQUIRE(pl_dataset_cache(dataset, path, &cache, &error) == 0);
        REQUIRE(pl_iterator_new(cache, &iterator, &error) == 0);
        pl_dataset_unref(cache);
        unlink(path);
        pull(iterator, 100);
        stream = stream_of(path, true);
    } else {
        REQUIRE(pl_iterator_new(dataset, &iterator, &error) == 0);
        pull(iterator, n_pulled);
        pl_worker_pool_settle(
            iterator->pass.pool); /* queues as full as they get, not as they are now */
        unlink(path);             /* a cache may be there, which a checkpoint does not replace */
        REQUIRE(pl_iterator_save(iterator, path, &error) == 0);
        stream = stream_of(path, true);
    }
    pl_iterator_free(iterator);
    pl_dataset_unref(dataset);
    return stream;
}

/* One to three changes: a byte, a number, a part left out or twice, an end. */
static void damage(bytes *stream)
{
    for (long left = random() % 3; left >= 0 && stream->n > 0; left--) {
        size_t at = (size_t)random() % stream->n, n = (size_t)random() % (stream->n - at) % 32 + 1;
        if (at + n > stream->n)
            n = stream->n - at;
        static const int64_t edges[] = {0, 1, -1, 2, 7, INT64_MAX, INT64_MIN, 1 << 20, INT32_MAX};
        switch (random() % 6) {
        case 0:
        case 1:
            stream->data[at] ^= (uint8_t)(1 << random() % 8);
            break;
        case 2:
        case 3:
            memcpy(stream->data + at, &edges[(size_t)random() % PL_COUNT_OF(edges)], n < 8 ? n : 8);
            break;
        case 4:
            memmove(stream->data + at, stream->data + at + n, stream->n - at - n);
            stream->n -= n;
            break;
        default:
            if (random() % 4 == 0)
                stream->n = at;
        }
    }
}

static void try_stream(int way, const bytes *stream)
{
    bytes input = {0};
    uint8_t first = (uint8_t)way;
    add(&input, &first, 1);
    add(&input, stream->data, stream->n);
    try_input(input.data, input.n);
    free(input.data);
}

/* Whoever counts on from a number that was read must not pass the end of its type. Behind so many
 * bytes a stream has only more elements like the first ones. */
enum { LARGEST_WITHIN = 4096 };

static void largest_numbers_everywhere(void)
{
    const int64_t largest = INT64_MAX;
    for (int way = 0; way < N_WAYS; way++) {
        bytes stream = real_one(way, (int)(random() % CUTS));
        for (size_t at = 0; at + sizeof largest <= stream.n && at < LARGEST_WITHIN; at++) {
            uint8_t was[sizeof largest];
            memcpy(was, stream.data + at, sizeof was);
            memcpy(stream.data + at, &largest, sizeof largest);
            try_stream(way, &stream);
            memcpy(stream.data + at, was, sizeof was);
        }
        free(stream.data);
    }
}

static void finish(void)
{
    unlink(path);
    unlink(metadata);
    assert_int_equal(rmdir(folder), 0);
    pl_runtime_unref(runtime);
    runtime = NULL;
}

/* Else an input that fails in one run would not be there in the next. */
static void real_files_are_the_same_each_time(void **state)
{
    (void)state;
    begin();
    for (int way = 0; way < N_WAYS; way++)
        for (int n_pulled = 0; n_pulled < CUTS; n_pulled++) {
            bytes first = real_one(way, n_pulled), again = real_one(way, n_pulled);
            assert_int_equal(first.n, again.n);
            assert_memory_equal(first.data, again.data, first.n);
            free(first.data);
            free(again.data);
        }
    finish();
}

static void no_bytes_harm_whoever_reads_them(void **state)
{
    (void)state;
    begin();
    srandom(1);
    largest_numbers_everywhere();
    n_taken = 0;
    bytes real[N_WAYS] = {0};
    for (long i = 0; i < n_tries; i++) {
        int way = (int)(i % N_WAYS);
        if (i % 500 < N_WAYS) { /* another cut now and then */
            free(real[way].data);
            real[way] = real_one(way, (int)(random() % CUTS));
        }
        bytes stream = {0};
        add(&stream, real[way].data, real[way].n);
        if (i % 50 > N_WAYS) /* else it is as it was written */
            damage(&stream);
        try_stream(way, &stream);
        free(stream.data);
    }
    for (int i = 0; i < N_WAYS; i++)
        free(real[i].data);
    finish();
    assert_true(n_taken >= n_tries / 10);
    assert_true(n_taken < n_tries);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 40000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_files_are_the_same_each_time),
        cmocka_unit_test(no_bytes_harm_whoever_reads_them),
    };
    return cmocka_run_group_tests_name("fuzz_kept", tests, NULL, NULL);
}

#endif
