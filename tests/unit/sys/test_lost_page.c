/* SPDX-License-Identifier: Apache-2.0 */
/* What was mapped, and is not in its file any more, reads as zeros; other faults still end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/lost_page.h"

enum { PAGES = 4 };

static volatile char *map_file(int *ret_fd, size_t page)
{
    *ret_fd = memfd_create("cut", 0);
    assert_true(*ret_fd >= 0);
    assert_int_equal(ftruncate(*ret_fd, (off_t)(PAGES * page)), 0);
    void *data = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, *ret_fd, 0);
    assert_true(data != MAP_FAILED);
    memset(data, 'x', PAGES * page);
    return data;
}

static void a_page_that_is_lost_is_of_zeros(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd;
    volatile char *data = map_file(&fd, page);
    pl_lost_page_survive();
    assert_int_equal(ftruncate(fd, (off_t)page), 0);
    assert_int_equal(data[0], 'x');
    assert_int_equal(pl_lost_page_count(), 0);
    assert_int_equal(data[page], 0);
    data[2 * page + 7] = 'y';
    assert_int_equal(data[2 * page + 7], 'y');
    assert_int_equal(pl_lost_page_count(), 2);
    munmap((void *)data, PAGES * page);
    close(fd);
}

static void what_is_sent_ends_the_process(void **state)
{
    (void)state;
    int status;
    pid_t child = fork();
    if (child == 0) {
        pl_lost_page_survive();
        raise(SIGBUS);
        raise(SIGBUS);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_that_is_lost_is_of_zeros),
        cmocka_unit_test(what_is_sent_ends_the_process),
    };
    return cmocka_run_group_tests_name("lost_page", tests, NULL, NULL);
}
