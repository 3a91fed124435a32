/* SPDX-License-Identifier: Apache-2.0 */
/* crowd HOW N MIB: N children, of which each takes a place under the line, and then one more, which
 * asks for that many MiB and says how it went.
 *   short      each ends before the next begins
 *   orphaned   the same, after the supervisor was killed
 *   living     all live until the last has answered */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(const int *pause)
{
    char byte;
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    if (pause) {
        close(pause[1]);
        (void)!read(pause[0], &byte, 1); /* until the parent closes it */
    }
    _exit(0);
}

static int ask(size_t bytes)
{
    pid_t pid = fork();
    if (pid == 0) {
        void *block = malloc(bytes);
        printf("%s\n", block == NULL ? "refused" : "granted");
        fflush(stdout);
        _exit(0);
    }
    int status = 1;
    return waitpid(pid, &status, 0) == pid ? status : 1;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int living = strcmp(argv[1], "living") == 0;
    int n = atoi(argv[2]);
    int ends[2];
    if (pipe(ends) < 0)
        return 2;
    if (strcmp(argv[1], "orphaned") == 0) {
        pid_t supervisor = getppid();
        kill(supervisor, SIGKILL);
        while (getppid() == supervisor)
            usleep(1000);
    }
    for (int i = 0; i < n; i++) {
        pid_t pid = start(living ? ends : NULL);
        if (pid < 0) {
            perror("fork");
            return 2;
        }
        if (!living)
            waitpid(pid, NULL, 0);
    }
    int status = ask((size_t)atoi(argv[3]) << 20);
    close(ends[1]);
    while (wait(NULL) > 0)
        ;
    return status != 0;
}
