/* SPDX-License-Identifier: Apache-2.0 */
/* Does over files what NumPy does as well, for tests/cli/test_runtime_oracle.py to compare. One
 * command a line on stdin, one answer a line on stdout; paths without blanks:
 *   npy FILE                               what its header says, or why it is refused
 *   header DTYPE ITEM_BYTES FILE DIM...    writes the header of a new .npy file
 *   convert FROM TO IN OUT                 raw elements: float32 to or from float16 and bfloat16
 *   copy ITEM_BYTES DST BYTE SRC BYTE RANK EXTENT... STRIDE... STRIDE...
 *                                          pl_region_copy() between mapped files, first elements at
 *                                          BYTE; strides of the destination, then of the source */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/npy/npy.h"
#include "tensor/dtype.h"
#include "tensor/region.h"
#include "tensor/shape.h"

typedef struct mapped {
    char *bytes;
    size_t n;
} mapped;

static const char *word(void)
{
    const char *next = strtok(NULL, " \n");
    return next ? next : "";
}

static int64_t number(void)
{
    return strtoll(word(), NULL, 10);
}

static mapped map(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0) {
        perror(path);
        exit(1);
    }
    mapped file = {.n = (size_t)info.st_size};
    file.bytes = mmap(NULL, file.n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (file.bytes == MAP_FAILED) {
        perror(path);
        exit(1);
    }
    return file;
}

static void do_npy(void)
{
    pl_npy npy;
    pl_error error = {0};
    const char *path = word();
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (pl_npy_read(fd, path, &npy, &error) < 0)
        printf("refused %s %s\n", pl_error_name(error.code), error.message);
    else
        printf("%s %" PRIu32 " %d %d %" PRIu64 " %" PRIu64 " %s\n",
               pl_dtype_info_of(npy.dtype)->name, npy.item_bytes, npy.swap, npy.fortran_order,
               npy.data_offset, npy.data_bytes, PL_SHAPE_TEXT(&npy.shape));
    close(fd);
}

static void do_header(void)
{
    pl_dtype dtype = pl_dtype_by_name(word());
    uint32_t item_bytes = (uint32_t)number();
    FILE *out = fopen(word(), "wb");
    char header[PL_NPY_HEADER_BYTES];
    pl_shape shape = {0};
    for (const char *dim = word(); *dim; dim = word())
        shape.dims[shape.rank++] = strtoll(dim, NULL, 10);
    int n = pl_npy_format(dtype, item_bytes, &shape, header, NULL);
    if (n < 0 || !out || fwrite(header, 1, (size_t)n, out) != (size_t)n || fclose(out) != 0)
        exit(1);
    puts("done");
}

static void do_convert(void)
{
    const char *from = word(), *to = word();
    mapped in = map(word()), out = map(word());
    if (strcmp(to, "float16") == 0)
        pl_f32_to_f16((float *)in.bytes, (uint16_t *)out.bytes, out.n / 2);
    else if (strcmp(to, "bfloat16") == 0)
        pl_f32_to_bf16((float *)in.bytes, (uint16_t *)out.bytes, out.n / 2);
    else if (strcmp(from, "float16") == 0)
        pl_f16_to_f32((uint16_t *)in.bytes, (float *)out.bytes, out.n / 4);
    else
        pl_bf16_to_f32((uint16_t *)in.bytes, (float *)out.bytes, out.n / 4);
    munmap(in.bytes, in.n);
    munmap(out.bytes, out.n);
    puts("done");
}

static void do_copy(void)
{
    size_t item_bytes = (size_t)number();
    mapped dst = map(word());
    int64_t dst_first = number();
    mapped src = map(word());
    int64_t src_first = number(), numbers[3 * PL_RANK_MAX];
    int rank = (int)number();
    for (int i = 0; i < 3 * rank; i++)
        numbers[i] = number();
    pl_region_copy(dst.bytes + dst_first, numbers + rank, src.bytes + src_first, numbers + 2 * rank,
                   numbers, rank, item_bytes);
    munmap(dst.bytes, dst.n);
    munmap(src.bytes, src.n);
    puts("done");
}

int main(void)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } commands[] = {
        {"npy", do_npy}, {"header", do_header}, {"convert", do_convert}, {"copy", do_copy}};
    char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        const char *name = strtok(line, " \n");
        for (size_t i = 0; i < PL_COUNT_OF(commands); i++)
            if (name && strcmp(name, commands[i].name) == 0)
                commands[i].run();
    }
    return 0;
}
