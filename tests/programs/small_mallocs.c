/* SPDX-License-Identifier: Apache-2.0 */
/* small_mallocs MIB [PAUSE_US]: allocates and fills 4,000-byte blocks until it holds MIB mebibytes,
 * with a pause of PAUSE_US after each. Exits with 9 at the first NULL, which a program without
 * Python must never see for so small a request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4000, BLOCKS_PER_MIB = (1 << 20) / BLOCK_BYTES, EXIT_GOT_NULL = 9 };

int main(int argc, char **argv)
{
    size_t n_mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned pause_us = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    for (size_t i = 0; i < n_mib * BLOCKS_PER_MIB; i++) {
        char *block = malloc(BLOCK_BYTES);
        if (block == NULL)
            return EXIT_GOT_NULL;
        memset(block, 1, BLOCK_BYTES);
        if (pause_us > 0 && i % BLOCKS_PER_MIB == 0)
            usleep(pause_us);
    }
    printf("holds %zu MiB\n", n_mib);
    return 0;
}
