/* SPDX-License-Identifier: Apache-2.0 */
/* Runs elementwise kernels and casts over .npy files, for tests/kernels/test_elementwise.py to
 * compare with NumPy. One command a line on stdin, one answer ("ok", or why not) on stdout; paths
 * without blanks:
 *   op ISA STRIP NAME OUT IN...   a file of rank 0 is a repeated operand; the others are one length
 *   cast ISA STRIP TO OUT IN
 *   in_place ISA STRIP NAME OUT IN...   the same as op, over a copy of the first operand
 * ISA is plain, avx2 or avx512, which the machine must have; STRIP is how many elements each call
 * of the kernel gets. The dtype is the last operand's. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/npy/npy.h"
#include "kernels/isa.h"
#include "tensor/dtype.h"

typedef struct operand {
    pl_npy npy;
    char *block; /* the whole file, and its data inside */
    char *data;
    size_t n;
    bool is_repeated;
} operand;

static const char *word(void)
{
    const char *next = strtok(NULL, " \n");
    return next ? next : "";
}

static void die(const char *what, const char *path)
{
    fprintf(stderr, "%s '%s'\n", what, path);
    exit(1);
}

static operand load(const char *path)
{
    operand it = {0};
    pl_error error = {0};
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        die("no such file", path);
    if (pl_npy_read(fd, path, &it.npy, &error) < 0)
        die(error.message, path);
    it.block = malloc((size_t)info.st_size);
    if (pread(fd, it.block, (size_t)info.st_size, 0) != info.st_size)
        die("cannot read", path);
    close(fd);
    it.data = it.block + it.npy.data_offset;
    it.is_repeated = it.npy.shape.rank == 0;
    it.n = it.npy.data_bytes / it.npy.item_bytes;
    return it;
}

static void save(const char *path, pl_dtype dtype, const void *data, size_t n)
{
    char header[PL_NPY_HEADER_BYTES];
    pl_error error = {0};
    pl_shape shape = {.rank = 1, .dims = {(int64_t)n}};
    FILE *out = fopen(path, "wb");
    int length = pl_npy_format(dtype, 0, &shape, header, &error);
    if (!out || length < 0)
        die("cannot write", path);
    fwrite(header, (size_t)length, 1, out);
    fwrite(data, pl_dtype_info_of(dtype)->item_bytes, n, out);
    if (fclose(out) != 0)
        die("cannot write", path);
}

static pl_isa isa_of(const char *name)
{
    pl_isa isa = strcmp(name, "avx512") == 0 ? PL_ISA_AVX512
                 : strcmp(name, "avx2") == 0 ? PL_ISA_AVX2
                                             : PL_ISA_PLAIN;
    if (isa > pl_isa_best())
        die("this machine has no", name);
    return isa;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static const void *at(const operand *it, size_t i)
{
    return it->is_repeated || !it->data ? it->data : it->data + i * it->npy.item_bytes;
}

static void compute(pl_elementwise_kernel kernel, const operand in[3], bool in_place, size_t strip,
                    size_t n, pl_dtype result, const char *path)
{
    size_t item_bytes = pl_dtype_info_of(result)->item_bytes;
    char *out = in_place ? in[0].data : malloc(n * item_bytes + 1);
    for (size_t i = 0; i < n; i += strip)
        kernel(out + i * item_bytes, at(&in[0], i), at(&in[1], i), at(&in[2], i),
               smaller(strip, n - i));
    save(path, result, out, n);
    if (!in_place)
        free(out);
}

static void run_op(bool in_place)
{
    pl_isa isa = isa_of(word());
    size_t strip = strtoull(word(), NULL, 10), n = 0;
    pl_elementwise op = pl_elementwise_by_name(word());
    const char *path = word();
    operand in[3] = {0};
    unsigned repeated = 0;
    int n_operands = pl_elementwise_info_of(op)->n_operands;
    for (int i = 0; i < n_operands; i++) {
        in[i] = load(word());
        repeated |= in[i].is_repeated ? 1u << i : 0;
        n = in[i].is_repeated ? n : in[i].n;
    }
    pl_dtype dtype = in[n_operands - 1].npy.dtype, result = pl_elementwise_result(op, dtype);
    pl_elementwise_kernel kernel = pl_elementwise_find_for(isa, op, dtype, repeated);
    if (kernel && result != PL_DTYPE_NONE) {
        compute(kernel, in, in_place, strip, n, result, path);
        puts("ok");
    } else {
        puts(kernel || result != PL_DTYPE_NONE ? "the table and the kernels differ" : "not taken");
    }
    for (int i = 0; i < n_operands; i++)
        free(in[i].block);
}

static void run_cast(void)
{
    pl_isa isa = isa_of(word());
    size_t strip = strtoull(word(), NULL, 10);
    pl_dtype to = pl_dtype_by_name(word());
    const char *path = word();
    operand in = load(word());
    size_t item_bytes = pl_dtype_info_of(to)->item_bytes;
    char *out = malloc(in.n * item_bytes + 1);
    pl_cast_kernel kernel = pl_cast_find_for(isa, in.npy.dtype, to);
    for (size_t i = 0; i < in.n; i += strip)
        kernel(out + i * item_bytes, at(&in, i), smaller(strip, in.n - i));
    save(path, to, out, in.n);
    puts("ok");
    free(out);
    free(in.block);
}

int main(void)
{
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        const char *command = strtok(line, " \n");
        if (strcmp(command, "cast") == 0)
            run_cast();
        else
            run_op(strcmp(command, "in_place") == 0);
    }
    return 0;
}
