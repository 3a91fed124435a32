/* SPDX-License-Identifier: Apache-2.0 */
/* Writes kernels. See device_chain.h.
 *
 * Each op is a function of its operands, written out only if it is used. In its text T is the
 * dtype, and U an unsigned type that is not promoted, in which integers wrap by definition. `x < 0`
 * is written as `x < 1` and not 0, which compiles without a warning, and to nothing, for unsigned
 * types too. */
#include "device/device_chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/dtype.h"
#include "util/text.h"

#define NEGATIVE(x) "(" #x " < (T)1 && " #x " != 0)"
#define APART(r, y) "((" #y " < 0 && " #r " > 0) || (" #y " > 0 && " #r " < 0))"
#define QUOTIENT                                                                                   \
    "if (y == 0) return 0;"                                                                        \
    " T q = " NEGATIVE(y) " && y == (T)-1 ? (T)((U)0 - (U)x) : (T)(x / y);"                        \
                          " T r = (T)((U)x - (U)q * (U)y);"                                        \
                          " bool cut = r != 0 && " NEGATIVE(r) " != " NEGATIVE(y) ";"
#define LARGER  "T l = x > y ? x : y;"
#define LARGERF "T l = x > y || x != x ? x : y;"

typedef struct row {
    const char *whole, *real; /* for integers and bool; for floats; NULL: not supported */
} row;

/* The same formulas as in src/kernels: elementwise_arithmetic.c, _division.c, _logic.c and
 * _ternary.c. */
static const row rows[PL_ELEMENTWISE_COUNT] = {
    [PL_ELEMENTWISE_neg] = {"return (T)((U)0 - (U)x);", "return -x;"},
    [PL_ELEMENTWISE_abs] = {"return " NEGATIVE(x) " ? (T)((U)0 - (U)x) : x;", "return fabs(x);"},
    [PL_ELEMENTWISE_square] = {"return (T)((U)x * (U)x);", "return x * x;"},
    [PL_ELEMENTWISE_sign] = {"return (T)(" NEGATIVE(x) " ? -1 : x != 0);",
                             "return x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x;"},
    [PL_ELEMENTWISE_relu] = {"return x < (T)1 ? (T)0 : x;", "return x <= 0 ? (T)0 : x;"},
    [PL_ELEMENTWISE_sqrt] = {NULL, "return sqrt(x);"},
    [PL_ELEMENTWISE_rsqrt] = {NULL, "return (T)1 / sqrt(x);"},
    [PL_ELEMENTWISE_reciprocal] = {NULL, "return (T)1 / x;"},
    [PL_ELEMENTWISE_floor] = {NULL, "return floor(x);"},
    [PL_ELEMENTWISE_ceil] = {NULL, "return ceil(x);"},
    [PL_ELEMENTWISE_round] = {NULL, "return rint(x);"},
    [PL_ELEMENTWISE_exp] = {NULL, "return exp(x);"},
    [PL_ELEMENTWISE_expm1] = {NULL, "return expm1(x);"},
    [PL_ELEMENTWISE_log] = {NULL, "return log(x);"},
    [PL_ELEMENTWISE_log1p] = {NULL, "return log1p(x);"},
    [PL_ELEMENTWISE_sin] = {NULL, "return sin(x);"},
    [PL_ELEMENTWISE_cos] = {NULL, "return cos(x);"},
    [PL_ELEMENTWISE_tan] = {NULL, "return tan(x);"},
    [PL_ELEMENTWISE_asin] = {NULL, "return asin(x);"},
    [PL_ELEMENTWISE_acos] = {NULL, "return acos(x);"},
    [PL_ELEMENTWISE_atan] = {NULL, "return atan(x);"},
    [PL_ELEMENTWISE_sinh] = {NULL, "return sinh(x);"},
    [PL_ELEMENTWISE_cosh] = {NULL, "return cosh(x);"},
    [PL_ELEMENTWISE_tanh] = {NULL, "return tanh(x);"},
    [PL_ELEMENTWISE_asinh] = {NULL, "return asinh(x);"},
    [PL_ELEMENTWISE_acosh] = {NULL, "return acosh(x);"},
    [PL_ELEMENTWISE_atanh] = {NULL, "return atanh(x);"},
    [PL_ELEMENTWISE_sigmoid] = {NULL,
                                "T e = exp(-fabs(x)); return (x < 0 ? e : (T)1) / ((T)1 + e);"},
    [PL_ELEMENTWISE_erf] = {NULL, "return erf(x);"},
    [PL_ELEMENTWISE_erfc] = {NULL, "return erfc(x);"},
    [PL_ELEMENTWISE_logical_not] = {"return x == 0;", "return x == 0;"},
    [PL_ELEMENTWISE_is_nan] = {NULL, "return x != x;"},
    [PL_ELEMENTWISE_is_inf] = {NULL, "return isinf(x) != 0;"},
    [PL_ELEMENTWISE_is_finite] = {NULL, "return isfinite(x) != 0;"},
    [PL_ELEMENTWISE_bitwise_not] = {"return (T)~x;", NULL},
    [PL_ELEMENTWISE_add] = {"return (T)((U)x + (U)y);", "return x + y;"},
    [PL_ELEMENTWISE_sub] = {"return (T)((U)x - (U)y);", "return x - y;"},
    [PL_ELEMENTWISE_mul] = {"return (T)((U)x * (U)y);", "return x * y;"},
    [PL_ELEMENTWISE_div] = {NULL, "return x / y;"},
    [PL_ELEMENTWISE_floordiv] = {QUOTIENT " return (T)((U)q - (U)cut);",
                                 "if (y == 0) return x / y;"
                                 " T r = fmod(x, y), q = (x - r) / y;"
                                 " if " APART(
                                     r,
                                     y) " q -= (T)1;"
                                        " if (q == 0) return copysign((T)0, x / y);"
                                        " T w = floor(q); return q - w > (T)0.5 ? w + (T)1 : w;"},
    [PL_ELEMENTWISE_mod] = {QUOTIENT " return (T)((U)r + (cut ? (U)y : (U)0));",
                            "T r = fmod(x, y); if (y == 0) return r;"
                            " if (r == 0) return copysign((T)0, y);"
                            " return " APART(r, y) " ? r + y : r;"},
    [PL_ELEMENTWISE_fmod] = {QUOTIENT " (void)cut; return r;", "return fmod(x, y);"},
    [PL_ELEMENTWISE_pow] =
        {"if " NEGATIVE(y) " return (T)(x == (T)1 ? 1 : x != (T)-1 ? 0 : (U)y % 2 ? -1 : 1);"
                           " U power = 1, square = (U)x;"
                           " for (U left = (U)y; left > 0; left >>= 1, square *= square)"
                           " if (left & 1) power *= square;"
                           " return (T)power;",
         "return pow(x, y);"},
    [PL_ELEMENTWISE_atan2] = {NULL, "return atan2(x, y);"},
    [PL_ELEMENTWISE_maximum] = {LARGER " return l;", LARGERF " return l;"},
    [PL_ELEMENTWISE_minimum] = {"return x < y ? x : y;", "return x < y || x != x ? x : y;"},
    [PL_ELEMENTWISE_equal] = {"return x == y;", "return x == y;"},
    [PL_ELEMENTWISE_not_equal] = {"return x != y;", "return x != y;"},
    [PL_ELEMENTWISE_less] = {"return x < y;", "return x < y;"},
    [PL_ELEMENTWISE_less_equal] = {"return x <= y;", "return x <= y;"},
    [PL_ELEMENTWISE_greater] = {"return x > y;", "return x > y;"},
    [PL_ELEMENTWISE_greater_equal] = {"return x >= y;", "return x >= y;"},
    [PL_ELEMENTWISE_logical_and] = {"return x != 0 && y != 0;", "return x != 0 && y != 0;"},
    [PL_ELEMENTWISE_logical_or] = {"return x != 0 || y != 0;", "return x != 0 || y != 0;"},
    [PL_ELEMENTWISE_logical_xor] = {"return (x != 0) != (y != 0);", "return (x != 0) != (y != 0);"},
    [PL_ELEMENTWISE_bitwise_and] = {"return x & y;", NULL},
    [PL_ELEMENTWISE_bitwise_or] = {"return x | y;", NULL},
    [PL_ELEMENTWISE_bitwise_xor] = {"return x ^ y;", NULL},
    [PL_ELEMENTWISE_left_shift] = {"return (U)y < 8 * sizeof(T) ? (T)((U)x << (U)y) : (T)0;", NULL},
    [PL_ELEMENTWISE_right_shift] = {"return (U)y < 8 * sizeof(T) ? (T)(x >> (U)y)"
                                    " : (T)(" NEGATIVE(x) " ? -1 : 0);",
                                    NULL},
    [PL_ELEMENTWISE_where] = {"return x != 0 ? y : z;", "return x != 0 ? y : z;"},
    [PL_ELEMENTWISE_clip] = {LARGER " return l < z ? l : z;",
                             LARGERF " return l < z || x != x || y != y ? l : z;"},
};

/* ---- support ---- */

static bool is_real(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->kind == PL_KIND_FLOAT;
}

static bool is_computed_with(pl_dtype dtype)
{
    const pl_dtype_info *info = pl_dtype_info_of(dtype);
    return info->item_bytes > 0 && !info->is_storage;
}

static const char *body_of(pl_elementwise op, pl_dtype dtype)
{
    if (op == PL_ELEMENTWISE_bitwise_not && dtype == PL_BOOL)
        op = PL_ELEMENTWISE_logical_not;
    return is_real(dtype) ? rows[op].real : rows[op].whole;
}

bool pl_device_chain_takes(pl_elementwise op, pl_dtype dtype)
{
    return op < PL_ELEMENTWISE_COUNT && is_computed_with(dtype) && body_of(op, dtype) &&
           pl_elementwise_result(op, dtype) != PL_DTYPE_NONE;
}

bool pl_device_chain_casts(pl_dtype from, pl_dtype to)
{
    return is_computed_with(from) && is_computed_with(to);
}

/* ---- the text ---- */

static const char *type_of(pl_dtype dtype)
{
    static const char *const names[] = {
        [PL_BOOL] = "uchar", [PL_U8] = "uchar",  [PL_I8] = "char",   [PL_U16] = "ushort",
        [PL_I16] = "short",  [PL_U32] = "uint",  [PL_I32] = "int",   [PL_U64] = "ulong",
        [PL_I64] = "long",   [PL_F32] = "float", [PL_F64] = "double"};
    return names[dtype];
}

static const char *unsigned_of(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->item_bytes == 8 ? "ulong" : "uint";
}

/* Returns the dtype of an op's operands, except the condition of `where`. */
static pl_dtype operand_dtype(const pl_device_chain *chain, const pl_device_chain_term *term)
{
    int n = pl_elementwise_info_of(term->op)->n_operands;
    return chain->terms[term->operands[n - 1]].dtype;
}

static void write_op(FILE *to, const pl_device_chain *chain, const pl_device_chain_term *term)
{
    const pl_elementwise_info *info = pl_elementwise_info_of(term->op);
    pl_dtype dtype = operand_dtype(chain, term);
    const char *first = term->op == PL_ELEMENTWISE_where ? "uchar" : "T";
    fprintf(to, "#define T %s\n#define U %s\nstatic %s %s_%s(%s x%s%s)\n{\n    %s\n}\n",
            type_of(dtype), unsigned_of(dtype), type_of(term->dtype), info->name,
            pl_dtype_info_of(dtype)->name, first, info->n_operands > 1 ? ", T y" : "",
            info->n_operands > 2 ? ", T z" : "", body_of(term->op, dtype));
    fputs("#undef T\n#undef U\n", to);
}

/* Follows cast.h. Values that do not fit are checked first, because OpenCL leaves the result
 * undefined. */
static void write_cast_body(FILE *to, pl_dtype from, pl_dtype dtype)
{
    const char *type = type_of(dtype);
    if (dtype == PL_BOOL)
        fputs("return x != 0;", to);
    else if (!is_real(from) || is_real(dtype))
        fprintf(to, "return (%s)x;", type);
    else if (dtype == PL_U64)
        fputs("if (x >= (F)0x1p63) return x < (F)0x1p64 ? (ulong)(long)(x - (F)0x1p63) ^ 1ul << 63"
              " : 0;"
              " return x >= -(F)0x1p63 ? (ulong)(long)x : 1ul << 63;",
              to);
    else if (dtype == PL_U32 || dtype == PL_I64)
        fprintf(to, "return (%s)(x >= -(F)0x1p63 && x < (F)0x1p63 ? (long)x : (long)(1ul << 63));",
                type);
    else
        fprintf(to, "return (%s)(%s && x < (F)0x1p31 ? (int)x : (int)(1u << 31));", type,
                from == PL_F64 ? "x > -2147483649.0" : "x >= -(F)0x1p31");
}

static void write_cast(FILE *to, pl_dtype from, pl_dtype dtype)
{
    fprintf(to, "#define F %s\nstatic %s %s_to_%s(F x)\n{\n    ", type_of(from), type_of(dtype),
            pl_dtype_info_of(from)->name, pl_dtype_info_of(dtype)->name);
    write_cast_body(to, from, dtype);
    fputs("\n}\n#undef F\n", to);
}

static bool is_same_function(const pl_device_chain *chain, const pl_device_chain_term *a,
                             const pl_device_chain_term *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == PL_TERM_CAST)
        return a->dtype == b->dtype &&
               chain->terms[a->operands[0]].dtype == chain->terms[b->operands[0]].dtype;
    return a->op == b->op && operand_dtype(chain, a) == operand_dtype(chain, b);
}

static void write_function(FILE *to, const pl_device_chain *chain, int number)
{
    const pl_device_chain_term *term = &chain->terms[number];
    if (term->kind != PL_TERM_OP && term->kind != PL_TERM_CAST)
        return;
    for (int i = 0; i < number; i++)
        if (is_same_function(chain, &chain->terms[i], term))
            return;
    if (term->kind == PL_TERM_OP)
        write_op(to, chain, term);
    else
        write_cast(to, chain->terms[term->operands[0]].dtype, term->dtype);
}

/* Writes the place of an input's element: its axes in order, without those that it repeats
 * along. */
static void write_place(FILE *to, const pl_device_chain *chain, uint32_t repeated)
{
    int n = 0;
    if (repeated == 0) {
        fputs("at", to);
        return;
    }
    for (int i = 0; i < chain->rank; i++)
        n += !(repeated & 1u << i);
    if (n == 0)
        fputc('0', to);
    for (int i = 1; i < n; i++)
        fputc('(', to);
    bool first = true;
    for (int i = 0; i < chain->rank; i++) {
        if (repeated & 1u << i)
            continue;
        if (first)
            fprintf(to, "i%d", i);
        else
            fprintf(to, " * e%d + i%d)", i, i);
        first = false;
    }
}

static void write_number(FILE *to, const pl_device_chain_term *term)
{
    const char *type = type_of(term->dtype);
    switch (pl_dtype_info_of(term->dtype)->item_bytes) {
    case 1:
        fprintf(to, "as_%s((uchar)%" PRIu64 ")", type, term->bits);
        break;
    case 2:
        fprintf(to, "as_%s((ushort)%" PRIu64 ")", type, term->bits);
        break;
    case 4:
        fprintf(to, "as_%s(0x%08" PRIx64 "u)", type, term->bits);
        break;
    default:
        fprintf(to, "as_%s(0x%016" PRIx64 "ul)", type, term->bits);
    }
}

static void write_term(FILE *to, const pl_device_chain *chain, int number)
{
    const pl_device_chain_term *term = &chain->terms[number];
    fprintf(to, "    const %s t%d = ", type_of(term->dtype), number);
    switch (term->kind) {
    case PL_TERM_INPUT:
        fprintf(to, "in%d[", number);
        write_place(to, chain, term->repeated);
        fputc(']', to);
        break;
    case PL_TERM_NUMBER:
        write_number(to, term);
        break;
    case PL_TERM_CAST: {
        pl_dtype from = chain->terms[term->operands[0]].dtype;
        fprintf(to, "%s_to_%s(t%d)", pl_dtype_info_of(from)->name,
                pl_dtype_info_of(term->dtype)->name, term->operands[0]);
        break;
    }
    case PL_TERM_OP: {
        const pl_elementwise_info *info = pl_elementwise_info_of(term->op);
        fprintf(to, "%s_%s(", info->name, pl_dtype_info_of(operand_dtype(chain, term))->name);
        for (int i = 0; i < info->n_operands; i++)
            fprintf(to, "%st%d", i == 0 ? "" : ", ", term->operands[i]);
        fputc(')', to);
        break;
    }
    }
    fputs(";\n", to);
}

static void write_head(FILE *to, const pl_device_chain *chain)
{
    fputs("__kernel void chain(const ulong n", to);
    for (int i = 1; i < chain->rank; i++)
        fprintf(to, ", const ulong e%d", i);
    for (int i = 0; i < chain->n_terms; i++)
        if (chain->terms[i].kind == PL_TERM_INPUT)
            fprintf(to, ", __global const %s *in%d", type_of(chain->terms[i].dtype), i);
    fprintf(to, ", __global %s *out)\n{\n    const ulong at = get_global_id(0);\n",
            type_of(chain->terms[chain->n_terms - 1].dtype));
    fputs("    if (at >= n)\n        return;\n", to);
    if (chain->rank > 1)
        fputs("    ulong rest = at;\n", to);
    for (int i = chain->rank - 1; i > 0; i--)
        fprintf(to, "    const ulong i%d = rest %% e%d;\n    rest /= e%d;\n", i, i, i);
    if (chain->rank > 1)
        fputs("    const ulong i0 = rest;\n", to);
}

static void write_kernel(FILE *to, const pl_device_chain *chain)
{
    bool wants_f64 = false;
    for (int i = 0; i < chain->n_terms; i++)
        wants_f64 = wants_f64 || chain->terms[i].dtype == PL_F64;
    if (wants_f64)
        fputs("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n", to);
    fputs("#pragma OPENCL FP_CONTRACT OFF\n", to);
    for (int i = 0; i < chain->n_terms; i++)
        write_function(to, chain, i);
    write_head(to, chain);
    for (int i = 0; i < chain->n_terms; i++)
        write_term(to, chain, i);
    fprintf(to, "    out[at] = t%d;\n}\n", chain->n_terms - 1);
}

char *pl_device_chain_source(const pl_device_chain *chain)
{
    pl_text text;
    if (!pl_text_open(&text))
        return NULL;
    write_kernel(text.to, chain);
    return pl_text_close(&text);
}
