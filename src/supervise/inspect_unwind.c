/* SPDX-License-Identifier: Apache-2.0 */
/* Walks one thread's frames, live or from a copy. Trusts only unwind tables: where there is no
 * table (hand-written kernels, generated code), libdw goes on by frame pointers and may find
 * anything, so the walk ends at such a frame. */
#include <dwarf.h>
#include <stdlib.h>

#include "supervise/inspect_private.h"

typedef struct walk {
    Dwfl *dwfl;
    bool first_is_return;
    pl_unwound *unwound;
} walk;

static bool table_covers(Dwarf_CFI *table, Dwarf_Addr bias, Dwarf_Addr code)
{
    Dwarf_Frame *frame = NULL;
    if (!table || dwarf_cfi_addrframe(table, code - bias, &frame) != 0)
        return false;
    free(frame);
    return true;
}

static bool has_table(Dwfl *dwfl, Dwarf_Addr code)
{
    Dwfl_Module *module = dwfl_addrmodule(dwfl, code);
    if (!module)
        return false;
    Dwarf_Addr bias = 0;
    Dwarf_CFI *table = dwfl_module_eh_cfi(module, &bias);
    if (table_covers(table, bias, code))
        return true;
    table = dwfl_module_dwarf_cfi(module, &bias);
    return table_covers(table, bias, code);
}

static int take_frame(Dwfl_Frame *state, void *argument)
{
    walk *self = argument;
    pl_unwound *unwound = self->unwound;
    Dwarf_Addr pc;
    bool is_activation;
    if (unwound->n >= PL_NATIVE_FRAMES || !dwfl_frame_pc(state, &pc, &is_activation) || pc == 0)
        return DWARF_CB_ABORT;
    if (self->first_is_return) {
        self->first_is_return = false;
        is_activation = false;
        pc++;
    }
    unwound->addresses[unwound->n] = pc;
    unwound->is_return[unwound->n] = !is_activation;
    unwound->n++;
    return has_table(self->dwfl, pc - (is_activation ? 0 : 1)) ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* Why the walk ended does not matter: the frames that it proved are in the result. */
void pl_unwind_thread(Dwfl *dwfl, pid_t tid, bool first_is_return, pl_unwound *unwound)
{
    walk self = {.dwfl = dwfl, .first_is_return = first_is_return, .unwound = unwound};
    (void)dwfl_getthread_frames(dwfl, tid, take_frame, &self);
}

void pl_unwound_name(Dwfl *dwfl, const pl_unwound *unwound, pl_native_stack *ret_stack)
{
    for (int i = 0; i < unwound->n; i++)
        pl_symbols_name(dwfl, unwound->addresses[i], unwound->is_return[i], &ret_stack->frames[i]);
    ret_stack->n_frames = unwound->n;
}
