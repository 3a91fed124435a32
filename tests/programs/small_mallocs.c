/* SPDX-License-Identifier: Apache-2.0 */
/* small_mallocs MIB: allocates and fills 4,000-byte blocks until it holds MIB mebibytes. Exits with
 * 9 at the first NULL, which a program without Python must never see for so small a request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 4000, EXIT_GOT_NULL = 9 };

int main(int argc, char **argv)
{
    size_t held_bytes = 0, wanted_bytes = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1) << 20;
    while (held_bytes < wanted_bytes) {
        char *block = malloc(BLOCK_BYTES);
        if (block == NULL)
            return EXIT_GOT_NULL;
        memset(block, 1, BLOCK_BYTES);
        held_bytes += BLOCK_BYTES;
    }
    printf("holds %zu\n", held_bytes);
    return 0;
}
