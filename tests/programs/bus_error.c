/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGBUS: maps four pages of the file that is named, cuts it to one, and reads the last. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

char read_last_page(const char *pages);

enum { N_PAGES = 4, PAGE_BYTES = 4096 };

__attribute__((noinline)) char read_last_page(const char *pages)
{
    return ((volatile const char *)pages)[(N_PAGES - 1) * PAGE_BYTES];
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)N_PAGES * PAGE_BYTES) < 0)
        return 2;
    char *pages = mmap(NULL, (size_t)N_PAGES * PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (pages == MAP_FAILED || ftruncate(fd, PAGE_BYTES) < 0)
        return 2;
    return read_last_page(pages);
}
