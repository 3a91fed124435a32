/* SPDX-License-Identifier: Apache-2.0 */
/* mmap_rules LINE_MIB: which raw mappings pass under a line of that size. One that alone is over it
 * is refused; address space that is only reserved, and commits into it, never are. Each broken rule
 * is one line on stdout, and the exit status is their number. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int n_broken;

static void rule(const char *what, int holds)
{
    if (!holds) {
        n_broken++;
        printf("%s: does not hold (errno %d)\n", what, errno);
    }
}

static char *map(void *at, size_t bytes, int protection, int flags)
{
    errno = 0;
    return mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

int main(int argc, char **argv)
{
    const int rw = PROT_READ | PROT_WRITE;
    size_t line_bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 64) << 20;
    size_t over_bytes = line_bytes * 4, part_bytes = line_bytes * 3 / 4;

    char *block = map(NULL, over_bytes, rw, 0);
    rule("a mapping over the line is refused", block == MAP_FAILED && errno == ENOMEM);

    char *reserved = map(NULL, over_bytes, PROT_NONE, 0);
    rule("PROT_NONE passes", reserved != MAP_FAILED);
    char *lazy = map(NULL, over_bytes, rw, MAP_NORESERVE);
    rule("MAP_NORESERVE passes", lazy != MAP_FAILED);
    if (reserved != MAP_FAILED) {
        char *commit = map(reserved, line_bytes * 2, rw, MAP_FIXED);
        rule("MAP_FIXED into a reservation passes", commit == reserved);
        commit[0] = 1;
        rule("mprotect of a reservation passes",
             mprotect(reserved + line_bytes * 2, line_bytes, rw) == 0);
        reserved[line_bytes * 2] = 1;
    }

    /* Each is below the line alone; together they are over it, and untouched. */
    char *first = map(NULL, part_bytes, rw, 0), *second = map(NULL, part_bytes, rw, 0);
    rule("untouched mappings below the line pass", first != MAP_FAILED && second != MAP_FAILED);
    char *moved = mremap(first, part_bytes, over_bytes, MREMAP_MAYMOVE);
    rule("growing one over the line is refused", moved == MAP_FAILED && errno == ENOMEM);
    if (moved != MAP_FAILED)
        return n_broken;
    first[0] = 1;
    rule("munmap", munmap(first, part_bytes) == 0 && munmap(second, part_bytes) == 0);
    printf("%d broken\n", n_broken);
    return n_broken;
}
