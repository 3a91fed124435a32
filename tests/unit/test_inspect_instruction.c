/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions by their bytes, and the CPU's own word on whether it has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/inspect.h"

typedef struct sample {
    uint8_t bytes[16];
    const char *text;
    const char *set;
    bool deliberate;
} sample;

/* Assembled with GNU as 2.40. "" for text: capstone 4 does not know them. */
static const sample samples[] = {
    {{0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2}, "vaddps zmm0, zmm1, zmm2", "AVX-512F", false},
    {{0x62, 0xf1, 0x75, 0x48, 0xfc, 0xc2}, "vpaddb zmm0, zmm1, zmm2", "AVX-512BW", false},
    {{0x62, 0xf2, 0xf5, 0x48, 0x40, 0xc2}, "vpmullq zmm0, zmm1, zmm2", "AVX-512DQ", false},
    {{0x62, 0xf2, 0x7d, 0x48, 0xc4, 0xc1}, "vpconflictd zmm0, zmm1", "AVX-512CD", false},
    {{0x62, 0xf2, 0x76, 0x48, 0x52, 0xc2}, "", "AVX-512", false}, /* vdpbf16ps */
    {{0xc5, 0xf4, 0x58, 0xc2}, "vaddps ymm0, ymm1, ymm2", "AVX", false},
    {{0xc5, 0xf5, 0xfc, 0xc2}, "vpaddb ymm0, ymm1, ymm2", "AVX2", false},
    {{0xc4, 0xe2, 0x75, 0xb8, 0xc2}, "vfmadd231ps ymm0, ymm1, ymm2", "FMA", false},
    {{0xc4, 0xe2, 0x7d, 0x13, 0xc1}, "vcvtph2ps ymm0, xmm1", "F16C", false},
    {{0xc4, 0xe2, 0x70, 0xf2, 0xc2}, "andn eax, ecx, edx", "BMI1", false},
    {{0xc4, 0xe2, 0x73, 0xf5, 0xc2}, "pdep eax, ecx, edx", "BMI2", false},
    {{0xc4, 0xe2, 0x7b, 0x49, 0xc0}, "", "AMX", false}, /* tilezero tmm0 */
    {{0x66, 0x0f, 0x38, 0xdc, 0xc1}, "aesenc xmm0, xmm1", "AES", false},
    {{0x0f, 0x38, 0xc8, 0xc1}, "sha1nexte xmm0, xmm1", "SHA", false},
    {{0x66, 0x0f, 0x38, 0xf6, 0xc1}, "adcx eax, ecx", "ADX", false},
    {{0x66, 0x0f, 0x38, 0x00, 0xc1}, "pshufb xmm0, xmm1", "SSSE3", false},
    {{0x66, 0x0f, 0x38, 0x40, 0xc1}, "pmulld xmm0, xmm1", "SSE4.1", false},
    {{0xf2, 0x0f, 0x38, 0xf1, 0xc1}, "crc32 eax, ecx", "SSE4.2", false},
    {{0xf2, 0x0f, 0x7c, 0xc1}, "haddps xmm0, xmm1", "SSE3", false},
    {{0xf3, 0x0f, 0xb8, 0xc1}, "popcnt eax, ecx", "POPCNT", false},
    {{0x0f, 0xc7, 0xf0}, "rdrand eax", "RDRAND", false},
    {{0x8f, 0xe9, 0x78, 0x80, 0xc1}, "vfrczps xmm0, xmm1", "XOP", false},
    {{0x89, 0xc8}, "mov eax, ecx", "", false},
    {{0x0f, 0x58, 0xc1}, "addps xmm0, xmm1", "", false}, /* SSE: every 64-bit CPU has it */
    {{0x0f, 0x0b}, "ud2", "", true},
    {{0x67, 0x0f, 0xb9, 0x40, 0x0d}, NULL, "", true}, /* clang's ubsan trap */
    {{0xcc}, "int3", "", true},
    {{0x06}, "", "", false}, /* push es: gone in 64-bit code */
};

static void sets_are_told_by_the_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(samples); i++) {
        const sample *expected = &samples[i];
        pl_instruction found;
        assert_int_equal(pl_inspect_instruction(expected->bytes, sizeof expected->bytes, &found),
                         0);
        if (expected->text)
            assert_string_equal(found.text, expected->text);
        assert_string_equal(found.set, expected->set);
        assert_int_equal(found.deliberate, expected->deliberate);
    }
}

/* The status of a child that executes the bytes and returns. */
static int execute(const uint8_t *bytes, size_t n)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint8_t *code =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(code, bytes, n);
        code[n] = 0xc3; /* ret */
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
        void (*function)(void);
        *(void **)&function = code;
        signal(SIGILL, SIG_DFL);
        function();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void the_cpu_agrees_that_it_has_a_set(void **state)
{
    (void)state;
    /* No CPU has both of the first and the last two: Intel never made XOP, AMD dropped it before it
     * got AVX-512. The others are in every CPU of the last ten years. */
    static const struct {
        uint8_t bytes[8];
        size_t n;
    } codes[] = {
        {{0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2}, 6}, /* vaddps zmm */
        {{0x8f, 0xe9, 0x78, 0x80, 0xc1}, 5},       /* vfrczps */
        {{0xc5, 0xf5, 0xfc, 0xc2}, 4},             /* vpaddb ymm */
        {{0xc4, 0xe2, 0x75, 0xb8, 0xc2}, 5},       /* vfmadd231ps */
        {{0x66, 0x0f, 0x38, 0x40, 0xc1}, 5},       /* pmulld */
    };
    int n_illegal = 0;
    for (size_t i = 0; i < PL_COUNT_OF(codes); i++) {
        pl_instruction found;
        assert_int_equal(pl_inspect_instruction(codes[i].bytes, codes[i].n, &found), 0);
        int status = execute(codes[i].bytes, codes[i].n);
        bool illegal = WIFSIGNALED(status) && WTERMSIG(status) == SIGILL;
        assert_true(illegal || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
        assert_int_equal(found.cpu_has_set, !illegal);
        n_illegal += illegal;
    }
    assert_true(n_illegal > 0);
}

static void any_bytes_of_any_length_are_bounded(void **state)
{
    (void)state;
    pl_instruction found;
    assert_int_equal(pl_inspect_instruction((const uint8_t *)"", 0, &found), -ENODATA);
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[64];
        memset(bytes, (int)(first * 7 + 3), sizeof bytes);
        bytes[0] = (uint8_t)first;
        for (size_t n = 1; n <= sizeof bytes; n += 7) {
            assert_int_equal(pl_inspect_instruction(bytes, n, &found), 0);
            assert_true(strlen(found.text) < sizeof found.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_told_by_the_bytes),
        cmocka_unit_test(the_cpu_agrees_that_it_has_a_set),
        cmocka_unit_test(any_bytes_of_any_length_are_bounded),
    };
    return cmocka_run_group_tests_name("inspect_instruction", tests, NULL, NULL);
}
