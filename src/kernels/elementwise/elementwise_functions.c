/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the functions in vector_math.h. */
#include "kernels/elementwise/elementwise_group.h"
#include "kernels/elementwise/vector_math.h"

#define LOAD(lanes, from) memcpy(&(lanes), (from), sizeof(lanes))
#define STORE(to, lanes)  memcpy((to), &(lanes), sizeof(lanes))
#define N_LANES(D)        ((size_t)PL_N_LANES_##D)
#define SIZE_F32          __builtin_fabsf
#define SIZE_F64          __builtin_fabs
#define INF_F32           __builtin_inff()
#define INF_F64           __builtin_inf()
#define LIBM_F32(name)    name##f
#define LIBM_F64(name)    name

/* Loops over a library's function on vectors. The rest at the end is padded to a vector, because
 * the library's function for one element may differ. */
#define DEFINE_LIBRARY_LOOP(op, name, ulp, D, T)                                                   \
    static void op##_##D##_v(PL_STRIP_ARGUMENTS)                                                   \
    {                                                                                              \
        T *out = out_;                                                                             \
        const T *a = a_;                                                                           \
        pl_lanes_##D x;                                                                            \
        for (; n >= N_LANES(D); n -= N_LANES(D), a += N_LANES(D), out += N_LANES(D)) {             \
            LOAD(x, a);                                                                            \
            x = PL_LIBRARY_##D(name, ulp)(x);                                                      \
            STORE(out, x);                                                                         \
        }                                                                                          \
        if (n == 0)                                                                                \
            return;                                                                                \
        T padded[N_LANES(D)] = {0};                                                                \
        memcpy(padded, a, n * sizeof(T));                                                          \
        LOAD(x, padded);                                                                           \
        x = PL_LIBRARY_##D(name, ulp)(x);                                                          \
        memcpy(out, &x, n * sizeof(T));                                                            \
    }
#define DEFINE_LIBRARY_UNARY(op, name, D, T, U)                                                    \
    DEFINE_LIBRARY_LOOP(op, name, u10, D, T)                                                       \
    static const pl_elementwise_kernel op##_##D##_forms[] = {op##_##D##_v};

/* Takes two operands in pieces, to spread a repeated one, and to still have them when the results
 * are there: where SLEEF's pow of finite operands is infinite, the true result may be just
 * below. */
#define IS_DOUBTFUL_atan2(D, x, y, result) false
#define IS_DOUBTFUL_pow(D, x, y, result)                                                           \
    ((SIZE_##D(result) == INF_##D) & (SIZE_##D(x) < INF_##D) & (SIZE_##D(y) < INF_##D))

#define DEFINE_LIBRARY_FORM(op, name, D, T, U, form, A, B)                                         \
    static void op##_##D##_##form(PL_STRIP_ARGUMENTS)                                              \
    {                                                                                              \
        T *out = out_, x[PL_LOOK_AHEAD], y[PL_LOOK_AHEAD];                                         \
        const T *a = a_, *b = b_;                                                                  \
        for (size_t i = 0; n > 0 && i < PL_LOOK_AHEAD; i++)                                        \
            x[i] = (A) ? *a : (T)0, y[i] = (B) ? *b : (T)0;                                        \
        for (size_t count; n > 0; n -= count, out += count) {                                      \
            count = n < PL_LOOK_AHEAD ? n : PL_LOOK_AHEAD;                                         \
            if (!(A))                                                                              \
                memcpy(x, a, count * sizeof(T)), a += count;                                       \
            if (!(B))                                                                              \
                memcpy(y, b, count * sizeof(T)), b += count;                                       \
            op##_##D##_piece(out, x, y, count);                                                    \
        }                                                                                          \
    }
#define DEFINE_LIBRARY_BINARY(op, name, D, T, U)                                                   \
    static void op##_##D##_piece(T *out, const T *x, const T *y, size_t n)                         \
    {                                                                                              \
        T result[PL_LOOK_AHEAD];                                                                   \
        for (size_t i = 0; i < n; i += N_LANES(D)) {                                               \
            pl_lanes_##D first, second;                                                            \
            LOAD(first, x + i);                                                                    \
            LOAD(second, y + i);                                                                   \
            first = PL_LIBRARY_##D(name, u10)(first, second);                                      \
            STORE(result + i, first);                                                              \
        }                                                                                          \
        U n_doubtful = 0;                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            n_doubtful += IS_DOUBTFUL_##op(D, x[i], y[i], result[i]) ? 1 : 0;                      \
        for (size_t i = 0; n_doubtful > 0 && i < n; i++)                                           \
            if (IS_DOUBTFUL_##op(D, x[i], y[i], result[i]))                                        \
                result[i] = LIBM_##D(name)(x[i], y[i]);                                            \
        memcpy(out, result, n * sizeof(T));                                                        \
    }                                                                                              \
    DEFINE_LIBRARY_FORM(op, name, D, T, U, vv, false, false)                                       \
    DEFINE_LIBRARY_FORM(op, name, D, T, U, sv, true, false)                                        \
    DEFINE_LIBRARY_FORM(op, name, D, T, U, vs, false, true)                                        \
    PL_BINARY_FORMS(op, D)

/* For one operand, where SLEEF's range ends too early: its log1p, its hyperbolic sine and cosine
 * and the inverses of these are infinite before the true ones are; and its erfc, which comes only
 * with 1.5 units, is less exact where it is subnormal. Beyond the bound libm computes, which is
 * slow, but rare. */
#define BOUND_log1p_F32 0x1p120f
#define BOUND_log1p_F64 0x1p1000
#define BOUND_sinh_F32  80.0f
#define BOUND_sinh_F64  700.0
#define BOUND_cosh_F32  80.0f
#define BOUND_cosh_F64  700.0
#define BOUND_asinh_F32 0x1p60f
#define BOUND_asinh_F64 0x1p500
#define BOUND_acosh_F32 0x1p60f
#define BOUND_acosh_F64 0x1p500
#define BOUND_erfc_F32  9.0f
#define BOUND_erfc_F64  26.0
#define ULP_log1p       u10
#define ULP_sinh        u10
#define ULP_cosh        u10
#define ULP_asinh       u10
#define ULP_acosh       u10
#define ULP_erfc        u15

#define DEFINE_LIBRARY_BOUNDED(op, name, D, T, U)                                                  \
    DEFINE_LIBRARY_LOOP(op##_BOUNDED, name, ULP_##op, D, T)                                        \
    static void op##_##D##_v(PL_STRIP_ARGUMENTS)                                                   \
    {                                                                                              \
        T *out = out_, kept[PL_LOOK_AHEAD];                                                        \
        const T *a = a_;                                                                           \
        for (size_t count; n > 0; a += count, out += count, n -= count) {                          \
            count = n < PL_LOOK_AHEAD ? n : PL_LOOK_AHEAD;                                         \
            memcpy(kept, a, count * sizeof(T));                                                    \
            op##_BOUNDED_##D##_v(out, kept, NULL, NULL, count);                                    \
            U n_beyond = 0;                                                                        \
            for (size_t i = 0; i < count; i++)                                                     \
                n_beyond += SIZE_##D(kept[i]) > BOUND_##op##_##D ? 1 : 0;                          \
            for (size_t i = 0; n_beyond > 0 && i < count; i++)                                     \
                if (SIZE_##D(kept[i]) > BOUND_##op##_##D)                                          \
                    out[i] = LIBM_##D(name)(kept[i]);                                              \
        }                                                                                          \
    }                                                                                              \
    static const pl_elementwise_kernel op##_##D##_forms[] = {op##_##D##_v};

/* SLEEF's trigonometry reduces its argument in one of three ways for the whole vector, so a large
 * element would change the last bits of its neighbours. Elements of each way are therefore computed
 * separately, the others replaced. The bounds are those in SLEEF's source. */
#define FIRST_BOUND_F32  125.0f
#define SECOND_BOUND_F32 39000.0f
#define FIRST_BOUND_F64  15.0
#define SECOND_BOUND_F64 1e14

#define DEFINE_WAYS(D, T)                                                                          \
    enum { LOOK_AHEAD_##D = 8 * PL_N_LANES_##D };                                                  \
    static inline int way_of_##D(T x)                                                              \
    {                                                                                              \
        return SIZE_##D(x) < FIRST_BOUND_##D ? 0 : SIZE_##D(x) < SECOND_BOUND_##D ? 1 : 2;         \
    }
DEFINE_WAYS(F32, float)
DEFINE_WAYS(F64, double)

#define DEFINE_LIBRARY_TRIGONOMETRY(op, name, D, T, U)                                             \
    static PL_NOINLINE void op##_##D##_mixed(T *out, const T *x)                                   \
    {                                                                                              \
        T result[N_LANES(D)] = {0}, alike[N_LANES(D)];                                             \
        static const T examples[] = {0, FIRST_BOUND_##D, SECOND_BOUND_##D};                        \
        for (int way = 0; way < 3; way++) {                                                        \
            bool some = false;                                                                     \
            for (size_t i = 0; i < N_LANES(D); i++) {                                              \
                alike[i] = way_of_##D(x[i]) == way ? x[i] : examples[way];                         \
                some |= way_of_##D(x[i]) == way;                                                   \
            }                                                                                      \
            if (!some)                                                                             \
                continue;                                                                          \
            pl_lanes_##D lanes;                                                                    \
            LOAD(lanes, alike);                                                                    \
            lanes = PL_LIBRARY_##D(name, u10)(lanes);                                              \
            STORE(alike, lanes);                                                                   \
            for (size_t i = 0; i < N_LANES(D); i++)                                                \
                result[i] = way_of_##D(x[i]) == way ? alike[i] : result[i];                        \
        }                                                                                          \
        memcpy(out, result, sizeof result);                                                        \
    }                                                                                              \
    static void op##_##D##_piece(T *out, const T *a)                                               \
    {                                                                                              \
        U n_large = 0;                                                                             \
        for (size_t i = 0; i < LOOK_AHEAD_##D; i++)                                                \
            n_large += SIZE_##D(a[i]) < FIRST_BOUND_##D ? 0 : 1;                                   \
        for (size_t i = 0; i < LOOK_AHEAD_##D; i += N_LANES(D)) {                                  \
            if (PL_UNLIKELY(n_large > 0)) {                                                        \
                op##_##D##_mixed(out + i, a + i);                                                  \
                continue;                                                                          \
            }                                                                                      \
            pl_lanes_##D lanes;                                                                    \
            LOAD(lanes, a + i);                                                                    \
            lanes = PL_LIBRARY_##D(name, u10)(lanes);                                              \
            STORE(out + i, lanes);                                                                 \
        }                                                                                          \
    }                                                                                              \
    static void op##_##D##_v(PL_STRIP_ARGUMENTS)                                                   \
    {                                                                                              \
        T *out = out_, padded[LOOK_AHEAD_##D] = {0};                                               \
        const T *a = a_;                                                                           \
        for (; n >= LOOK_AHEAD_##D;                                                                \
             n -= LOOK_AHEAD_##D, a += LOOK_AHEAD_##D, out += LOOK_AHEAD_##D)                      \
            op##_##D##_piece(out, a);                                                              \
        if (n == 0)                                                                                \
            return;                                                                                \
        memcpy(padded, a, n * sizeof(T));                                                          \
        op##_##D##_piece(padded, padded);                                                          \
        memcpy(out, padded, n * sizeof(T));                                                        \
    }                                                                                              \
    static const pl_elementwise_kernel op##_##D##_forms[] = {op##_##D##_v};

/* 1 / (1 + e^-x), from a power that does not overflow. */
#define DEFINE_LIBRARY_SIGMOID(op, name, D, T, U)                                                  \
    static void op##_##D##_v(PL_STRIP_ARGUMENTS)                                                   \
    {                                                                                              \
        T *out = out_, power[PL_LOOK_AHEAD];                                                       \
        const T *a = a_;                                                                           \
        while (n > 0) {                                                                            \
            size_t count = n < PL_LOOK_AHEAD ? n : PL_LOOK_AHEAD;                                  \
            PL_EACH(i, count) power[i] = -SIZE_##D(a[i]);                                          \
            exp_##D##_v(power, power, NULL, NULL, count);                                          \
            PL_EACH(i, count) out[i] = (a[i] >= 0 ? (T)1 : power[i]) / ((T)1 + power[i]);          \
            a += count, out += count, n -= count;                                                  \
        }                                                                                          \
    }                                                                                              \
    static const pl_elementwise_kernel op##_##D##_forms[] = {op##_##D##_v};

#define LIBRARY_ROWS(TYPES, UNARY, BOUNDED, BINARY, TRIGONOMETRY)                                  \
    TYPES(UNARY, expm1, expm1)                                                                     \
    TYPES(BOUNDED, log1p, log1p)                                                                   \
    TYPES(UNARY, asin, asin)                                                                       \
    TYPES(UNARY, acos, acos)                                                                       \
    TYPES(UNARY, atan, atan)                                                                       \
    TYPES(BOUNDED, sinh, sinh)                                                                     \
    TYPES(BOUNDED, cosh, cosh)                                                                     \
    TYPES(BOUNDED, asinh, asinh)                                                                   \
    TYPES(BOUNDED, acosh, acosh)                                                                   \
    TYPES(UNARY, atanh, atanh)                                                                     \
    TYPES(UNARY, erf, erf)                                                                         \
    TYPES(BOUNDED, erfc, erfc)                                                                     \
    TYPES(TRIGONOMETRY, tan, tan)                                                                  \
    TYPES(BINARY, pow, pow)                                                                        \
    TYPES(BINARY, atan2, atan2)

/* Functions that are ours in f32, where the machine supports them. */
#define OWN_ROWS(TYPES, UNARY, TRIGONOMETRY, LOGISTIC)                                             \
    TYPES(UNARY, exp, exp)                                                                         \
    TYPES(UNARY, log, log)                                                                         \
    TYPES(UNARY, tanh, tanh)                                                                       \
    TYPES(LOGISTIC, sigmoid, sigmoid)                                                              \
    TYPES(TRIGONOMETRY, sin, sin)                                                                  \
    TYPES(TRIGONOMETRY, cos, cos)

#define ONLY_F64(X, op, E) X(op, E, F64, double, uint64_t)
#define BOTH(X, op, E)                                                                             \
    X(op, E, F32, float, uint32_t)                                                                 \
    X(op, E, F64, double, uint64_t)

LIBRARY_ROWS(BOTH, DEFINE_LIBRARY_UNARY, DEFINE_LIBRARY_BOUNDED, DEFINE_LIBRARY_BINARY,
             DEFINE_LIBRARY_TRIGONOMETRY)

#ifdef __FMA__

OWN_ROWS(ONLY_F64, DEFINE_LIBRARY_UNARY, DEFINE_LIBRARY_TRIGONOMETRY, DEFINE_LIBRARY_SIGMOID)

#define OWN_EXP(T, U, x)     pl_exp(x)
#define OWN_LOG(T, U, x)     pl_log(x)
#define OWN_TANH(T, U, x)    pl_tanh(x)
#define OWN_SIGMOID(T, U, x) pl_sigmoid(x)
PL_DEFINE_UNARY(exp, OWN_EXP, F32, float, float)
PL_DEFINE_UNARY(log, OWN_LOG, F32, float, float)
PL_DEFINE_UNARY(tanh, OWN_TANH, F32, float, float)
PL_DEFINE_UNARY(sigmoid, OWN_SIGMOID, F32, float, float)

/* Returns the bits of |x|, shifted up by one: ordered like the values, NaN above infinity. Finding
 * the largest takes fewer instructions than counting those that are too large. */
static inline uint32_t rank_of(float x)
{
    return pl_bits_of(x) << 1;
}

static inline bool has_few_turns(float x)
{
    return rank_of(x) < rank_of(PL_TRIG_LIMIT);
}

/* Large angles are rare, and libm computes them one by one. `count` is a constant except at the end
 * of a strip, so that the loops need no code for a remainder: a quarter of the instructions. */
#define DEFINE_OWN_TRIGONOMETRY(op, name)                                                          \
    static inline                                                                                  \
        __attribute__((always_inline)) void name##_some(float *out, const float *a, size_t count)  \
    {                                                                                              \
        uint32_t largest = 0;                                                                      \
        for (size_t i = 0; i < count; i++)                                                         \
            largest = rank_of(a[i]) > largest ? rank_of(a[i]) : largest;                           \
        if (PL_LIKELY(largest < rank_of(PL_TRIG_LIMIT)))                                           \
            PL_EACH(i, count) out[i] = pl_##name##_easy(a[i]);                                     \
        else                                                                                       \
            for (size_t i = 0; i < count; i++)                                                     \
                out[i] = has_few_turns(a[i]) ? pl_##name##_easy(a[i]) : name##f(a[i]);             \
    }                                                                                              \
    static void op##_F32_v(PL_STRIP_ARGUMENTS)                                                     \
    {                                                                                              \
        float *out = out_;                                                                         \
        const float *a = a_;                                                                       \
        for (; n >= PL_LOOK_AHEAD; n -= PL_LOOK_AHEAD) {                                           \
            name##_some(out, a, PL_LOOK_AHEAD);                                                    \
            a += PL_LOOK_AHEAD, out += PL_LOOK_AHEAD;                                              \
        }                                                                                          \
        name##_some(out, a, n);                                                                    \
    }                                                                                              \
    static const pl_elementwise_kernel op##_F32_forms[] = {op##_F32_v};
DEFINE_OWN_TRIGONOMETRY(sin, sin)
DEFINE_OWN_TRIGONOMETRY(cos, cos)

#else

OWN_ROWS(BOTH, DEFINE_LIBRARY_UNARY, DEFINE_LIBRARY_TRIGONOMETRY, DEFINE_LIBRARY_SIGMOID)

#endif

#define ROWS(ROW, ...)                                                                             \
    LIBRARY_ROWS(BOTH, ROW, ROW, ROW, ROW)                                                         \
    OWN_ROWS(BOTH, ROW, ROW, ROW)
PL_DEFINE_GROUP(pl_elementwise_functions, ROWS)
