/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into a program, fails one allocation of its choice. Allocations are counted from
 * main() on; what main() runs in other programs is left alone: the shim takes itself out of the
 * environment, and only forked copies keep it.
 *   PLIMSOLL_SHIM_FAIL     the number of the allocation to fail, from 1; 0: none
 *   PLIMSOLL_SHIM_ONWARD   if set, all that follow fail as well
 *   PLIMSOLL_SHIM_MODULES  count only what these modules ask for: beginnings of their file names,
 *                          with a comma behind each ("plimsoll,libc.so,"); unset: everybody
 *   PLIMSOLL_SHIM_LOG      file that gets a line, "MODULE+OFFSET", when that allocation is failed
 * It stands on glibc's own names for the allocator (__libc_malloc): dlsym() would allocate. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int main_function(int argc, char **argv, char **environment);
typedef int start_function(main_function *start, int argc, char **argv, void (*init)(void),
                           void (*fini)(void), void (*rtld_fini)(void), void *stack_end);

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
start_function __libc_start_main;

/* Constant once `armed`. */
static unsigned long fail_at;
static bool onward;
static const char *modules; /* NULL: everybody */
static const char *log_path;
static main_function *real_main;

static bool armed;
static atomic_ulong n_counted;

static const char *file_name(const Dl_info *info)
{
    const char *slash = strrchr(info->dli_fname, '/');
    return slash ? slash + 1 : info->dli_fname;
}

static bool is_counted(const Dl_info *info)
{
    for (const char *one = modules; one && *one;) {
        size_t n = strcspn(one, ",");
        if (n > 0 && strncmp(file_name(info), one, n) == 0)
            return true;
        one += n + (one[n] == ',');
    }
    return !modules;
}

/* On the stack and by write(): the log must not allocate. */
static void write_log(const char *line, int n)
{
    int fd = log_path ? open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    ssize_t written = write(fd, line, (size_t)n);
    (void)written; /* a test that finds no line fails */
    close(fd);
}

/* True when the allocation that returns to `caller` is to fail; errno is set then. */
static bool fails(const void *caller)
{
    Dl_info info;
    if (!armed || dladdr(caller, &info) == 0 || !is_counted(&info))
        return false;
    unsigned long number = atomic_fetch_add(&n_counted, 1) + 1;
    if (fail_at == 0 || number < fail_at || (number > fail_at && !onward))
        return false;
    if (number == fail_at) {
        char line[256];
        int n = snprintf(line, sizeof line, "%.200s+0x%zx\n", file_name(&info),
                         (size_t)((const char *)caller - (const char *)info.dli_fbase));
        write_log(line, n);
    }
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

/* Of size 0 it frees, and cannot fail. */
void *realloc(void *block, size_t n)
{
    bool frees = block && n == 0;
    return !frees && fails(__builtin_return_address(0)) ? NULL : __libc_realloc(block, n);
}

void *reallocarray(void *block, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    bool frees = block && bytes == 0;
    return !frees && fails(__builtin_return_address(0)) ? NULL : __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **ret_block, size_t alignment, size_t n)
{
    int before = errno;
    void *block = fails(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, n);
    errno = before;
    if (!block)
        return ENOMEM;
    *ret_block = block;
    return 0;
}

static void take_settings(void)
{
    const char *number = getenv("PLIMSOLL_SHIM_FAIL");
    fail_at = number ? strtoul(number, NULL, 10) : 0;
    onward = getenv("PLIMSOLL_SHIM_ONWARD");
    modules = getenv("PLIMSOLL_SHIM_MODULES");
    log_path = getenv("PLIMSOLL_SHIM_LOG");
    unsetenv("LD_PRELOAD"); /* the texts stay where they are: environ only drops its pointers */
}

static int counted_main(int argc, char **argv, char **environment)
{
    take_settings();
    armed = true;
    int status = real_main(argc, argv, environment);
    armed = false;
    return status;
}

int __libc_start_main(main_function *start, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    start_function *real_start = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = start;
    return real_start(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
