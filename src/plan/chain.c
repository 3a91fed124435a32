/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: decides which instructions run together over strips, and where their strips lie.
 *
 * A chain runs when its last instruction is due, so nothing outside it may need its results
 * earlier. Once an instruction outside a chain reads from it, the chain is closed, and the next
 * elementwise instruction of that box starts another. */
#include <errno.h>
#include <stdlib.h>

#include "kernels/elementwise/elementwise.h"
#include "plan/program.h"
#include "tensor/dtype.h"

/* The size of a strip: docs/kernels.md has the measurements. Sums are made of blocks of 512. */
enum { STRIP_BYTES = 4096, STRIP_ELEMENTS_LEAST = 512 };

static bool is_chainable(const pl_instr *instr)
{
    return instr->kind == PL_INSTR_ELEMENTWISE || instr->kind == PL_INSTR_CAST;
}

static int *inputs_of(const pl_program *program, const pl_instr *instr)
{
    return program->inputs + instr->first_input;
}

static int item_bytes_of(const pl_instr *instr)
{
    return (int)pl_dtype_info_of(instr->dtype)->item_bytes;
}

/* ---- products that are added ---- */

static bool is_op(const pl_instr *instr, pl_op_id op)
{
    return instr->kind == PL_INSTR_ELEMENTWISE && instr->node->op->id == op;
}

/* An addition whose input `i` is a product that nothing else reads becomes a * b + c, which rounds
 * exactly as the two separate ops do. */
static bool can_join(const pl_program *program, const int *n_uses, const pl_instr *sum, int i)
{
    int at = inputs_of(program, sum)[i];
    const pl_instr *product = &program->instrs[at];
    return is_op(product, PL_OP_mul) && product->box == sum->box && n_uses[at] == 1 &&
           product->dtype == sum->dtype &&
           pl_elementwise_result(PL_ELEMENTWISE_mul_add, sum->dtype) != PL_DTYPE_NONE;
}

/* The caller has made room for three inputs at `first`. */
static void join(pl_program *program, pl_instr *sum, int i, int first)
{
    pl_instr *product = &program->instrs[inputs_of(program, sum)[i]];
    int *to = program->inputs + first;
    to[0] = inputs_of(program, product)[0];
    to[1] = inputs_of(program, product)[1];
    to[2] = inputs_of(program, sum)[1 - i];
    sum->first_input = first;
    sum->n_inputs = 3;
    product->kind = PL_INSTR_INSIDE;
    product->n_inputs = 0;
}

static int join_products(pl_program *program, const int *n_uses)
{
    int n_sums = 0;
    for (int i = 0; i < program->n_instrs; i++)
        n_sums += is_op(&program->instrs[i], PL_OP_add);
    if (n_sums == 0)
        return 0;
    program->room_inputs = program->n_inputs + 3 * n_sums;
    int *inputs = realloc(program->inputs, (size_t)program->room_inputs * sizeof *inputs);
    if (!inputs)
        return -ENOMEM;
    program->inputs = inputs;
    for (int i = 0; i < program->n_instrs; i++) {
        pl_instr *sum = &program->instrs[i];
        if (!is_op(sum, PL_OP_add))
            continue;
        for (int k = 0; k < 2 && sum->n_inputs == 2; k++)
            if (can_join(program, n_uses, sum, k)) {
                join(program, sum, k, program->n_inputs);
                program->n_inputs += 3;
            }
    }
    return 0;
}

/* ---- chains ---- */

int pl_chain_operands(const pl_program *program, const pl_chain *chain,
                      int operands[PL_CHAIN_OPERANDS_MAX])
{
    int number = (int)(chain - program->chains), n = 0;
    for (int i = chain->first; i <= chain->last; i++) {
        const pl_instr *instr = &program->instrs[i];
        for (int k = 0; instr->chain == number && k < instr->n_inputs; k++) {
            int input = inputs_of(program, instr)[k], known = 0;
            if (program->instrs[input].chain == number)
                continue;
            while (known < n && operands[known] != input)
                known++;
            if (known == n)
                operands[n++] = input;
        }
    }
    return n;
}

typedef struct finder {
    pl_program *program;
    int *open;     /* chain, by box; -1: none */
    int *operands; /* of each chain, counted with repetitions: an upper bound */
} finder;

/* A reader outside the chain closes it. */
static void close_read(finder *f, const pl_instr *reader)
{
    for (int k = 0; k < reader->n_inputs; k++) {
        pl_instr *input = &f->program->instrs[inputs_of(f->program, reader)[k]];
        if (input->chain < 0 || input->chain == reader->chain)
            continue;
        input->whole = true;
        if (f->open[input->box] == input->chain)
            f->open[input->box] = -1;
    }
}

static int n_from_outside(const finder *f, const pl_instr *instr, int chain)
{
    int n = 0;
    for (int k = 0; k < instr->n_inputs; k++)
        n += f->program->instrs[inputs_of(f->program, instr)[k]].chain != chain;
    return n;
}

static void add_to_chain(finder *f, int at)
{
    pl_instr *instr = &f->program->instrs[at];
    int *open = &f->open[instr->box];
    if (*open >= 0 && f->operands[*open] + n_from_outside(f, instr, *open) > PL_CHAIN_OPERANDS_MAX)
        *open = -1;
    if (*open < 0) {
        *open = f->program->n_chains++;
        f->program->chains[*open] = (pl_chain){.box = instr->box, .first = at};
        f->operands[*open] = 0;
    }
    f->operands[*open] += n_from_outside(f, instr, *open);
    f->program->chains[*open].last = at;
    instr->chain = *open;
}

static void find_chains(finder *f)
{
    pl_program *program = f->program;
    for (int i = 0; i < program->n_boxes; i++)
        f->open[i] = -1;
    for (int i = 0; i < program->n_instrs; i++) {
        pl_instr *instr = &program->instrs[i];
        if (is_chainable(instr))
            add_to_chain(f, i);
        close_read(f, instr);
    }
    program->instrs[program->n_instrs - 1].whole = true;
}

/* Finds packs that only chains of their own box read. */
static void find_lazy_packs(pl_program *program)
{
    for (int i = 0; i < program->n_instrs - 1; i++)
        program->instrs[i].lazy = program->instrs[i].kind == PL_INSTR_PACK;
    for (int i = 0; i < program->n_instrs; i++) {
        const pl_instr *reader = &program->instrs[i];
        for (int k = 0; k < reader->n_inputs; k++) {
            pl_instr *input = &program->instrs[inputs_of(program, reader)[k]];
            input->lazy = input->lazy && reader->chain >= 0 && reader->box == input->box;
        }
    }
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void set_item_bytes(pl_program *program)
{
    for (int i = 0; i < program->n_instrs; i++) {
        const pl_instr *instr = &program->instrs[i];
        if (instr->chain < 0)
            continue;
        int *most = &program->chains[instr->chain].item_bytes;
        *most = larger(*most, item_bytes_of(instr));
        for (int k = 0; k < instr->n_inputs; k++)
            *most = larger(*most, item_bytes_of(&program->instrs[inputs_of(program, instr)[k]]));
    }
}

/* ---- numbers of strips ---- */

typedef struct numbering {
    int *last_reader; /* in its chain, by instruction; itself if there is none */
    int *owner;       /* instruction, by number of the strip in a chain */
} numbering;

static void set_last_readers(const pl_program *program, int *last_reader)
{
    for (int i = 0; i < program->n_instrs; i++) {
        const pl_instr *instr = &program->instrs[i];
        last_reader[i] = i;
        for (int k = 0; k < instr->n_inputs; k++) {
            int input = inputs_of(program, instr)[k];
            if (instr->chain >= 0 && program->instrs[input].chain == instr->chain)
                last_reader[input] = i;
        }
    }
}

/* A strip is free once its last reader has run. A kernel may write over its input if both have
 * elements of one size. */
static bool is_free(const pl_program *program, const numbering *n, int strip, int at)
{
    int owner = n->owner[strip], until = n->last_reader[owner];
    return until < at || (until == at && item_bytes_of(&program->instrs[owner]) ==
                                             item_bytes_of(&program->instrs[at]));
}

/* The program's last register may be needed in strips, so it gets one too. */
static void number_strips(pl_program *program, int number, const numbering *n)
{
    pl_chain *chain = &program->chains[number];
    for (int i = chain->first; i <= chain->last; i++) {
        pl_instr *instr = &program->instrs[i];
        if (instr->chain != number || (instr->whole && i < program->n_instrs - 1))
            continue;
        int strip = 0;
        while (strip < chain->n_strips && !is_free(program, n, strip, i))
            strip++;
        chain->n_strips = larger(chain->n_strips, strip + 1);
        n->owner[strip] = i;
        instr->strip = strip;
    }
}

int pl_program_find_chains(pl_program *program)
{
    size_t n = (unsigned)program->n_instrs;
    int *space = calloc(4 * n + (unsigned)program->n_boxes, sizeof *space), *n_uses = space;
    program->chains = calloc(n, sizeof *program->chains);
    int r = space && program->chains ? 0 : -ENOMEM;
    for (int i = 0; r == 0 && i < program->n_inputs; i++)
        n_uses[program->inputs[i]]++;
    if (r == 0)
        r = join_products(program, n_uses);
    if (r == 0) {
        finder f = {program, .operands = space + n, .open = space + 4 * n};
        numbering names = {.last_reader = space + 2 * n, .owner = space + 3 * n};
        find_chains(&f);
        find_lazy_packs(program);
        set_item_bytes(program);
        set_last_readers(program, names.last_reader);
        for (int i = 0; i < program->n_chains; i++)
            number_strips(program, i, &names);
    }
    free(space);
    return r;
}

/* ---- strips ---- */

bool pl_chain_may_copy(const pl_program *program, const pl_chain *chain, int operand)
{
    const pl_instr *instr = &program->instrs[operand];
    return instr->box != chain->box || (instr->kind == PL_INSTR_PACK && instr->slot != PL_NO_SLOT);
}

static void set_strip(pl_program *program, pl_chain *chain)
{
    int64_t count = pl_region_count(&program->boxes[chain->box].bound);
    chain->strip = larger(STRIP_BYTES / chain->item_bytes, STRIP_ELEMENTS_LEAST);
    if (chain->strip > count)
        chain->strip = count > 0 ? count : 1;
    chain->strip_bytes = ((uint64_t)chain->strip * (uint64_t)chain->item_bytes + 63) / 64 * 64;
}

uint64_t pl_chain_layout(pl_program *program, int number, uint64_t base, pl_result result)
{
    pl_chain *chain = &program->chains[number];
    int operands[PL_CHAIN_OPERANDS_MAX], n = pl_chain_operands(program, chain, operands);
    set_strip(program, chain);
    for (int i = chain->first; i <= chain->last; i++) {
        pl_instr *instr = &program->instrs[i];
        bool is_result = i == program->n_instrs - 1;
        if (instr->chain != number || instr->strip < 0 || (is_result && result != PL_RESULT_STRIPS))
            continue;
        instr->slot = base + (uint64_t)instr->strip * chain->strip_bytes;
        instr->slot_bytes = chain->strip_bytes;
    }
    base += (uint64_t)chain->n_strips * chain->strip_bytes;
    chain->operand_strips = base;
    for (int i = 0; i < n; i++)
        if (pl_chain_may_copy(program, chain, operands[i]))
            base += chain->strip_bytes;
    return base;
}
