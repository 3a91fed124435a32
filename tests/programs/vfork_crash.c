/* SPDX-License-Identifier: Apache-2.0 */
/* vfork_crash MIB [again]: a child of vfork() crashes before its exec. The parent, whose memory it
 * had, then asks for so many MiB and says how that went; `again`: and crashes, too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int *volatile nowhere;

__attribute__((noinline)) static void crash_in_parent(void)
{
    *nowhere = 1;
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 2)
        return 2;
    free(malloc(1000));
    pid_t child = vfork();
    if (child == 0) {
        *nowhere = 1;
        _exit(0);
    }
    if (waitpid(child, &status, 0) != child)
        return 3;
    void *block = malloc((size_t)atoi(argv[1]) << 20);
    printf("%d %s\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0,
           block == NULL ? "refused" : "granted");
    fflush(stdout);
    if (argc > 2)
        crash_in_parent();
    return 0;
}
