/* SPDX-License-Identifier: Apache-2.0 */
/* See ledger/guarded.h. The guard claims the runtime's mappings to the byte, at any size, and
 * tracks them like the program's own large blocks: both share one account of claimed and touched
 * bytes. */
#include "ledger/guarded.h"

#include <errno.h>
#include <sys/mman.h>

#include "guard/guard.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT pl_guard_map_function pl_guard_map;
EXPORT pl_guard_spare_function pl_guard_spare;
EXPORT pl_guard_hold_function pl_guard_hold;
EXPORT pl_guard_owner_function pl_guard_owner;
EXPORT pl_guard_look_function pl_guard_look;

static pl_guard *const guard = &pl_guard_state;

/* Where large requests count as they are touched, the runtime makes room at the line, and is
 * refused where large requests would be. */
static bool has_room_unclaimed(uint64_t bytes, enum pl_map_kind kind)
{
    if (kind == PL_MAP_OR_REFUSE)
        return pl_line_room(bytes);
    return kind == PL_MAP_RESERVE || pl_ledger_headroom_bytes(guard->ledger) >= bytes;
}

static bool claim(uint64_t bytes, enum pl_map_kind kind)
{
    if (kind == PL_MAP_OR_REFUSE)
        return pl_line_claim(bytes, bytes);
    return pl_line_claim_if_room(bytes,
                                 kind == PL_MAP_RESERVE ? PL_CLAIM_RESERVE : PL_CLAIM_REFUSABLE);
}

static int map(uint64_t bytes, void **ret_data)
{
    void *data =
        pl_real.mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return -errno;
    *ret_data = data;
    return 0;
}

static int map_claimed(uint64_t bytes, enum pl_map_kind kind, const void *caller, void **ret_data)
{
    uint64_t claimed = guard->sparse ? 0 : bytes;
    if (claimed ? !claim(bytes, kind) : !has_room_unclaimed(bytes, kind))
        return PL_EBUDGET;
    int r = map(bytes, ret_data);
    if (r == 0)
        pl_guard_track(*ret_data, bytes, claimed, caller);
    else if (claimed)
        pl_line_release(claimed);
    return r;
}

int pl_guard_map(uint64_t bytes, enum pl_map_kind kind, void **ret_data)
{
    pl_guard_notice_fork();
    if (pl_thread.inside || !guard->ledger)
        return map(bytes, ret_data);
    int saved = errno;
    int cancel = pl_guard_enter();
    int r = map_claimed(bytes, kind, __builtin_return_address(0), ret_data);
    pl_guard_leave(cancel);
    errno = saved;
    return r;
}

/* Called for each result of a small graph: a block that becomes a spare need not be looked up. */
void pl_guard_spare(void *data, bool is_spare)
{
    pl_guard_notice_fork();
    if (pl_thread.inside || !guard->ledger)
        return;
    if (is_spare) {
        pl_guard_change_site(data, NULL);
        return;
    }
    int saved = errno;
    int cancel = pl_guard_enter();
    pl_guard_change_site(data, pl_callsite_find(__builtin_return_address(0)));
    pl_guard_leave(cancel);
    errno = saved;
}

void pl_guard_hold(int more)
{
    pl_thread.n_held += (uint32_t)more;
}

pl_owner pl_guard_owner(void)
{
    pl_guard_notice_fork();
    return guard->ledger ? guard->owner : -1;
}

void pl_guard_look(void)
{
    pl_guard_notice_fork();
    if (pl_thread.inside || !guard->ledger)
        return;
    int cancel = pl_guard_enter();
    pl_line_look_exactly();
    pl_guard_leave(cancel);
}
