/* SPDX-License-Identifier: Apache-2.0 */
/* grow MIB [STEP_US]: maps MIB mebibytes by system call, touches one after the other with a pause
 * of STEP_US between, says "done". Made static it is what no preloaded library can see. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t MIB = 1 << 20;

int main(int argc, char **argv)
{
    size_t n_mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    unsigned step_us = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    char *block = (char *)syscall(SYS_mmap, NULL, n_mib * MIB, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < n_mib; i++) {
        memset(block + i * MIB, 1, MIB);
        if (step_us > 0)
            usleep(step_us);
    }
    printf("done\n");
    return 0;
}
