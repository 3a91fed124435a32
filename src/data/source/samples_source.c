/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of tar files, as WebDataset lays them out: a key, and the data of the wanted
 * extensions, as strings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/reader/sample_reader.h"
#include "data/source/file_source.h"

typedef struct samples_dataset {
    pl_file_source base;
    char **wanted;
    int n_wanted;
} samples_dataset;

typedef struct samples_reader {
    pl_sample_reader *reader;
} samples_reader;

static int open_samples(const pl_stage *stage, void *reader, const char *path, pl_error *reterr)
{
    const samples_dataset *own = (const samples_dataset *)stage->dataset;
    return pl_sample_reader_new(path, PL_PACKING_AUTO, (const char *const *)own->wanted,
                                own->n_wanted, stage->pass->runtime->memory,
                                &((samples_reader *)reader)->reader, reterr);
}

static void close_samples(void *reader)
{
    pl_sample_reader_free(((samples_reader *)reader)->reader);
}

static int next_sample(const pl_stage *stage, void *reader, pl_item *items, uint64_t *ret_offset,
                       pl_error *reterr)
{
    pl_sample sample;
    int r = pl_sample_reader_next(((samples_reader *)reader)->reader, &sample, ret_offset, reterr);
    if (r <= 0)
        return r;
    *ret_offset = sample.offset;
    r = pl_file_source_string(stage, sample.key, strlen(sample.key), &items[0], reterr);
    for (int i = 0; r == 0 && i < sample.n_parts; i++)
        r = pl_file_source_string(stage, sample.parts[i].data, sample.parts[i].data_bytes,
                                  &items[1 + i], reterr);
    return r < 0 ? r : 1;
}

static pl_file_position tell(const void *reader)
{
    return (pl_file_position){pl_sample_reader_tell(((const samples_reader *)reader)->reader), 0};
}

static int seek(void *reader, pl_file_position place, pl_error *reterr)
{
    return pl_sample_reader_seek(((samples_reader *)reader)->reader, place.offset, reterr);
}

static const pl_reader_class samples_of = {
    .bytes = sizeof(samples_reader),
    .open = open_samples,
    .close = close_samples,
    .next = next_sample,
    .tell = tell,
    .seek = seek,
};

static void free_samples(pl_dataset *dataset)
{
    samples_dataset *own = (samples_dataset *)dataset;
    for (int i = 0; i < own->n_wanted; i++)
        free(own->wanted[i]);
    free(own->wanted);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const samples_dataset *own = (const samples_dataset *)dataset;
    for (int i = 0; i < own->n_wanted; i++)
        fprintf(to, "%s%s", i > 0 ? ", " : "", own->wanted[i]);
}

static const pl_dataset_class samples_class = {.name = "samples",
                                               .dataset_bytes = sizeof(samples_dataset),
                                               .free = free_samples,
                                               .describe = describe,
                                               PL_FILE_SOURCE_CLASS};

int pl_dataset_samples(pl_dataset *paths, const char *const *extensions, int n_extensions,
                       pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(paths, reterr);
    PL_NOT_NULLS(extensions, n_extensions, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (n_extensions < 1 || n_extensions > PL_SAMPLE_PARTS_MAX)
        return pl_error_set(reterr, -EINVAL, "samples: %d extensions, not within 1 and %d",
                            n_extensions, PL_SAMPLE_PARTS_MAX);
    pl_dataset *dataset;
    int r =
        pl_file_source_make(&samples_class, &samples_of, paths, n_extensions + 1, &dataset, reterr);
    if (r < 0)
        return r;
    samples_dataset *own = (samples_dataset *)dataset;
    own->wanted = calloc((size_t)n_extensions, sizeof(char *));
    while (own->wanted && own->n_wanted < n_extensions &&
           (own->wanted[own->n_wanted] = strdup(extensions[own->n_wanted])))
        own->n_wanted++;
    if (own->n_wanted < n_extensions) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    }
    for (int i = 0; i <= n_extensions; i++)
        dataset->spec[i] = (pl_spec){.dtype = PL_STRING};
    *ret_dataset = dataset;
    return 0;
}
