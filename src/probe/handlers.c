/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that an exception from outside would be caught where the program means it to be.
 *
 * CPython looks for outside news (signals, pending calls, asynchronous exceptions) when it jumps
 * back to the head of a loop. 3.11 jumps first and looks then, so that the exception seems to come
 * from the instruction *before* the loop. In
 *
 *     try:
 *         while True:
 *             work()
 *     except MemoryError: ...
 *
 * that instruction is outside the try, and the handler is skipped. KeyboardInterrupt suffers from
 * the same bug. 3.13 looks before it jumps; up to 3.10, blocks are pushed, not looked up. */
#include "probe/code.h"
#include "probe/reader.h"

enum {
    VERSION_3_11 = 0x030b,
    VERSION_3_12 = 0x030c,
    CODE_UNITS = 16,           /* PyCodeObject.ob_base.ob_size, in both */
    CODE_EXCEPTION_TABLE = 40, /* PyCodeObject.co_exceptiontable, in both */
    N_UNITS_MAX = 1 << 20,
    NO_HANDLER = -1,
};

/* The jumps that look for news, by the numbers of each version's opcode.py: JUMP_BACKWARD in both;
 * in 3.11 also its quickened form and the conditional ones. */
static bool jumps_back(uint32_t version, uint8_t opcode)
{
    bool in_3_11 = opcode == 38 || (opcode >= 173 && opcode <= 176);
    return opcode == 140 || (version >> 16 == VERSION_3_11 && in_3_11);
}

static bool is_extended_argument(uint8_t opcode)
{
    return opcode == 144 || opcode == 34; /* EXTENDED_ARG, and 3.11's EXTENDED_ARG_QUICK */
}

typedef struct code_view {
    const pl_reader *reader;
    uint64_t units; /* address of the bytecode: opcode and argument, a byte each */
    uint64_t n_units;
    uint64_t table; /* address of the exception table's bytes */
    uint64_t n_table;
} code_view;

static bool view_code(const pl_python *python, uint64_t code, code_view *ret_view)
{
    pl_python_offsets scratch_offsets;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &scratch_offsets);
    uint8_t scratch[48], table_scratch[PL_PYTHON_HEAD_BYTES_MAX];
    const uint8_t *head = offsets ? pl_view(python->reader, code, scratch, sizeof scratch) : NULL;
    if (!head)
        return false;
    uint64_t table = pl_load_u64(head, CODE_EXCEPTION_TABLE);
    const uint8_t *table_head = pl_view(python->reader, table, table_scratch, offsets->bytes_data);
    if (!table_head)
        return false;
    *ret_view = (code_view){
        .reader = python->reader,
        .units = code + offsets->code_instructions,
        .n_units = pl_min_u64(pl_load_u64(head, CODE_UNITS), N_UNITS_MAX),
        .table = table + offsets->bytes_data,
        .n_table = pl_min_u64(pl_load_u64(table_head, offsets->bytes_size), N_UNITS_MAX),
    };
    return true;
}

/* Six bits a byte, the most significant first; 0x40: more follows; 0x80 marks an entry's start. */
static uint64_t next_number(const code_view *view, uint64_t *at)
{
    uint64_t number = 0;
    uint8_t scratch = 0x40;
    while (*at < view->n_table && scratch & 0x40) {
        const uint8_t *byte = pl_view(view->reader, view->table + *at, &scratch, 1);
        (*at)++;
        if (!byte)
            break;
        scratch = *byte;
        number = number << 6 | (scratch & 0x3f);
    }
    return number;
}

/* Returns the handler for an exception at this instruction. */
static int64_t handler_of(const code_view *view, uint64_t instruction)
{
    for (uint64_t at = 0; at < view->n_table;) {
        uint64_t start = next_number(view, &at);
        uint64_t n = next_number(view, &at);
        uint64_t target = next_number(view, &at);
        (void)next_number(view, &at); /* depth and lasti */
        if (instruction >= start && instruction < start + n)
            return (int64_t)target;
    }
    return NO_HANDLER;
}

static uint64_t argument_of(const code_view *view, uint64_t instruction, uint8_t low)
{
    uint64_t argument = low;
    for (unsigned shift = 8; shift < 32 && instruction > 0; shift += 8, instruction--) {
        uint8_t scratch[2];
        const uint8_t *unit =
            pl_view(view->reader, view->units + 2 * (instruction - 1), scratch, sizeof scratch);
        if (!unit || !is_extended_argument(unit[0]))
            break;
        argument |= (uint64_t)unit[1] << shift;
    }
    return argument;
}

bool pl_python_caught_alike(const pl_python *python, const pl_python_spot *spot, bool at_spot)
{
    code_view view;
    uint32_t version = python->version >> 16;
    if (version < VERSION_3_11 || version > VERSION_3_12 || !view_code(python, spot->code, &view))
        return true;
    uint64_t end = at_spot ? pl_min_u64(spot->instruction + 1, view.n_units) : view.n_units;
    for (uint64_t i = spot->instruction; i < end; i++) {
        uint8_t scratch[2];
        const uint8_t *unit = pl_view(python->reader, view.units + 2 * i, scratch, sizeof scratch);
        if (!unit)
            break;
        if (!jumps_back(python->version, unit[0]))
            continue;
        uint64_t back = argument_of(&view, i, unit[1]);
        if (back > i + 1 || i + 1 - back > spot->instruction)
            continue; /* another loop's, or the bytes of an inline cache */
        uint64_t head = i + 1 - back;
        return head == 0 || handler_of(&view, head - 1) == handler_of(&view, spot->instruction);
    }
    return true;
}
