/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger as a file, or as memory of one process and its children: create, map, check. Claims
 * are in claim.c, the rest of it in trace.c. */
#include "ledger/ledger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/proc.h"

static int map_file(int fd, int writable, pl_ledger **ret_ledger)
{
    int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *address = mmap(NULL, sizeof(pl_ledger), protection, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
        return -errno;
    *ret_ledger = address;
    return 0;
}

/* Allocates all of the space now: a sparse file on a full disk would cause SIGBUS in some malloc()
 * later. The limit on file sizes is checked first, because exceeding it is a fatal signal. */
static int fill_new_file(int fd, const char *path, pl_error *reterr)
{
    struct rlimit limit;
    int error = EFBIG;
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur >= sizeof(pl_ledger))
        do
            error = posix_fallocate(fd, 0, sizeof(pl_ledger));
        while (error == EINTR);
    if (error)
        return pl_error_set(reterr, -error, "cannot write %zu bytes to '%s': %s", sizeof(pl_ledger),
                            path, strerror(error));
    return 0;
}

/* The memory is already zero. */
static void begin_ledger(pl_ledger *ledger, const pl_ledger_params *params)
{
    ledger->header.version = PL_LEDGER_VERSION;
    ledger->header.file_bytes = sizeof(pl_ledger);
    ledger->header.reserve_bytes = params->reserve_bytes;
    ledger->header.pid_namespace = pl_proc_pid_namespace();
    ledger->header.started_realtime_ns = pl_clock_realtime_ns();
    ledger->header.started_monotonic_ns = pl_clock_monotonic_ns();
    atomic_store(&ledger->sum.limit_bytes, params->limit_bytes);
    atomic_store(&ledger->sum.wanted_bytes, params->limit_bytes);
    atomic_store(&ledger->sum.system_bytes, UINT64_MAX);
    /* Written last: a file without it is not yet a ledger. */
    __atomic_store_n(&ledger->header.magic, PL_LEDGER_MAGIC, __ATOMIC_RELEASE);
}

int pl_ledger_create(const char *path, const pl_ledger_params *params, pl_ledger **ret_ledger,
                     pl_error *reterr)
{
    PL_NOT_NULL(path, reterr);
    PL_NOT_NULL(params, reterr);
    PL_NOT_NULL(ret_ledger, reterr);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return pl_error_set(reterr, -errno, "cannot create '%s': %s", path, strerror(errno));

    pl_ledger *ledger = NULL;
    int r = fill_new_file(fd, path, reterr);
    if (r == 0) {
        r = map_file(fd, 1, &ledger);
        if (r < 0)
            pl_error_set(reterr, r, "cannot map '%s': %s", path, pl_error_text(r));
    }
    close(fd);
    if (r < 0) {
        unlink(path);
        return r;
    }

    begin_ledger(ledger, params);
    *ret_ledger = ledger;
    return 0;
}

int pl_ledger_new_private(const pl_ledger_params *params, pl_ledger **ret_ledger)
{
    pl_ledger *ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ledger == MAP_FAILED)
        return -errno;
    begin_ledger(ledger, params);
    *ret_ledger = ledger;
    return 0;
}

/* The head of the file is read, not mapped: a short file must be an error, not SIGBUS. */
static int check_head(int fd, const char *path, pl_error *reterr)
{
    struct {
        uint64_t magic;
        uint32_t version;
        uint32_t flags;
        uint64_t file_bytes;
    } head = {0};
    ssize_t n = pread(fd, &head, sizeof head, 0);
    if (n < 0 && errno == ESPIPE)
        n = 0; /* a FIFO of that name */
    if (n < 0)
        return pl_error_set(reterr, -errno, "cannot read '%s': %s", path, strerror(errno));
    if ((size_t)n < sizeof head || head.magic != PL_LEDGER_MAGIC)
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' is not a ledger", path);
    if (head.version >> 16 != PL_REGISTERS_MACHINE)
        return pl_error_set(reterr, PL_EVERSION,
                            "'%s' was written on another kind of machine; read it there", path);
    if (head.version != PL_LEDGER_VERSION)
        return pl_error_set(reterr, PL_EVERSION,
                            "'%s' is a record of version %u; this plimsoll reads version %u", path,
                            head.version & 0xffff, PL_LEDGER_VERSION & 0xffff);
    struct stat info;
    if (fstat(fd, &info) < 0)
        return pl_error_set(reterr, -errno, "cannot stat '%s': %s", path, strerror(errno));
    if (head.file_bytes != sizeof(pl_ledger) || (uint64_t)info.st_size < sizeof(pl_ledger))
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' is truncated: %jd of %zu bytes", path,
                            (intmax_t)info.st_size, sizeof(pl_ledger));
    return 0;
}

int pl_ledger_open(const char *path, int writable, pl_ledger **ret_ledger, pl_error *reterr)
{
    PL_NOT_NULL(path, reterr);
    PL_NOT_NULL(ret_ledger, reterr);
    /* O_NONBLOCK: a FIFO of that name is an error, not a wait for its writer. */
    int fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return pl_error_set(reterr, -errno, "cannot open '%s': %s", path, strerror(errno));

    int r = check_head(fd, path, reterr);
    if (r == 0) {
        r = map_file(fd, writable, ret_ledger);
        if (r < 0)
            pl_error_set(reterr, r, "cannot map '%s': %s", path, pl_error_text(r));
    }
    close(fd);
    return r;
}

int pl_ledger_open_run(pl_ledger **ret_ledger, pl_error *reterr)
{
    PL_NOT_NULL(ret_ledger, reterr);
    const char *path = getenv(PL_LEDGER_VARIABLE);
    if (!path || !*path)
        return pl_error_set(reterr, -ENOENT, "not inside 'plimsoll run': $%s is not set",
                            PL_LEDGER_VARIABLE);
    return pl_ledger_open(path, 1, ret_ledger, reterr);
}

void pl_ledger_close(pl_ledger *ledger)
{
    if (ledger)
        munmap(ledger, sizeof *ledger);
}

/* Records are kept, and 4 MiB of unused slots are most of one. If the file system cannot punch
 * holes, the file stays as large. */
void pl_ledger_shrink(pl_ledger *ledger)
{
    enum { PAGE = 65536, SPARE_SLOTS = 1024 }; /* whatever the size of a page */
    int kept = pl_ledger_n_slots(ledger) + SPARE_SLOTS;
    uint64_t begin = (uint64_t)(uintptr_t)&ledger->slots[pl_min_u64((uint64_t)kept, PL_SLOTS)];
    uint64_t end = (uint64_t)(uintptr_t)&ledger->slots[PL_SLOTS] & ~(uint64_t)(PAGE - 1);
    begin = (begin + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (begin < end)
        madvise((void *)(uintptr_t)begin, end - begin, MADV_REMOVE);
}

uint64_t pl_ledger_charged_bytes(const pl_ledger *ledger)
{
    PL_NULL_GIVES(ledger, 0);
    return atomic_load(&ledger->sum.charged_bytes);
}

uint64_t pl_ledger_limit_bytes(const pl_ledger *ledger)
{
    PL_NULL_GIVES(ledger, 0);
    return atomic_load(&ledger->sum.limit_bytes);
}

uint64_t pl_ledger_reserve_bytes(const pl_ledger *ledger)
{
    PL_NULL_GIVES(ledger, 0);
    return ledger->header.reserve_bytes;
}

uint64_t pl_ledger_peak_bytes(const pl_ledger *ledger)
{
    PL_NULL_GIVES(ledger, 0);
    return atomic_load(&ledger->sum.peak_bytes);
}

/* Each caller stores its own value before it reads both, so the last one sees both. */
static void draw_line(pl_ledger *ledger)
{
    uint64_t wanted = atomic_load(&ledger->sum.wanted_bytes);
    uint64_t line = pl_min_u64(wanted, atomic_load(&ledger->sum.system_bytes));
    if (atomic_load(&ledger->sum.limit_bytes) != line)
        atomic_store(&ledger->sum.limit_bytes, line);
}

void pl_ledger_set_limit_bytes(pl_ledger *ledger, uint64_t limit_bytes)
{
    PL_NULL_DOES_NOTHING(ledger);
    atomic_store(&ledger->sum.wanted_bytes, limit_bytes);
    draw_line(ledger);
}

uint64_t pl_ledger_wanted_bytes(const pl_ledger *ledger)
{
    return atomic_load(&ledger->sum.wanted_bytes);
}

void pl_ledger_set_system_bytes(pl_ledger *ledger, uint64_t system_bytes)
{
    atomic_store(&ledger->sum.system_bytes, system_bytes);
    draw_line(ledger);
}
