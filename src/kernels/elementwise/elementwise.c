/* SPDX-License-Identifier: Apache-2.0 */
/* See elementwise.h: the table, and the choice of the instruction set. */
#include "kernels/elementwise/elementwise.h"

#include <string.h>

#define PL_ISA any /* this file has none of its own, but strip.h needs a name */
#include "kernels/elementwise/elementwise_group.h"
#include "kernels/isa.h"
#include "tensor/dtype.h"

static const pl_elementwise_info infos[] = {
#define PL_ELEMENTWISE(id, operands, takes_, gives_)                                               \
    [PL_ELEMENTWISE_##id] = {.name = #id,                                                          \
                             .n_operands = operands,                                               \
                             .takes = PL_TAKES_##takes_,                                           \
                             .gives = PL_GIVES_##gives_},
#include "kernels/elementwise/elementwise.def"
};

const pl_elementwise_info *pl_elementwise_info_of(pl_elementwise op)
{
    return &infos[op];
}

pl_elementwise pl_elementwise_by_name(const char *name)
{
    int op = 0;
    while (op < PL_ELEMENTWISE_COUNT && strcmp(infos[op].name, name) != 0)
        op++;
    return (pl_elementwise)op;
}

pl_dtype pl_elementwise_result(pl_elementwise op, pl_dtype dtype)
{
    const pl_dtype_info *about = pl_dtype_info_of(dtype);
    bool is_taken = infos[op].takes >> about->kind & 1;
    if (!is_taken || (about->is_storage && op != PL_ELEMENTWISE_where))
        return PL_DTYPE_NONE;
    return infos[op].gives == PL_GIVES_BOOL ? PL_BOOL : dtype;
}

#define SEARCH(isa)                                                                                \
    static pl_elementwise_forms search_##isa(pl_elementwise op, pl_dtype dtype)                    \
    {                                                                                              \
        static pl_elementwise_group *const groups[] = {                                            \
            pl_elementwise_arithmetic_##isa, pl_elementwise_division_##isa,                        \
            pl_elementwise_logic_##isa,      pl_elementwise_ternary_##isa,                         \
            pl_elementwise_functions_##isa,                                                        \
        };                                                                                         \
        pl_elementwise_forms forms = NULL;                                                         \
        for (size_t i = 0; !forms && i < PL_COUNT_OF(groups); i++)                                 \
            forms = groups[i](op, dtype);                                                          \
        return forms;                                                                              \
    }
SEARCH(plain)
#if PL_HAS_X86_BUILDS
SEARCH(avx2)
SEARCH(avx512)
#endif

pl_elementwise_kernel pl_elementwise_find_for(pl_isa isa, pl_elementwise op, pl_dtype dtype,
                                              unsigned repeated)
{
    if (repeated >= (1u << infos[op].n_operands) - 1)
        return NULL;
#if PL_HAS_X86_BUILDS
    pl_elementwise_forms forms = isa == PL_ISA_AVX512 ? search_avx512(op, dtype)
                                 : isa == PL_ISA_AVX2 ? search_avx2(op, dtype)
                                                      : search_plain(op, dtype);
#else
    (void)isa;
    pl_elementwise_forms forms = search_plain(op, dtype);
#endif
    return forms ? forms[repeated] : NULL;
}

pl_elementwise_kernel pl_elementwise_find(pl_elementwise op, pl_dtype dtype, unsigned repeated)
{
    return pl_elementwise_find_for(pl_isa_best(), op, dtype, repeated);
}
