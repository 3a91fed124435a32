/* SPDX-License-Identifier: Apache-2.0 */
/* Dies of SIGILL: executes an instruction of the set that is named, on a CPU that lacks it, or
 * one that no CPU has. The caller chooses a set that is not in /proc/cpuinfo. Bytes, not
 * mnemonics: the assembler need not know the set. */
#include <string.h>

void add_vectors(const char *set);

#if defined(__x86_64__)
__attribute__((noinline)) void add_vectors(const char *set)
{
    if (strcmp(set, "avx512f") == 0)
        __asm__ volatile(".byte 0x62, 0xf1, 0x74, 0x48, 0x58, 0xc2"); /* vaddps zmm0, zmm1, zmm2 */
    else if (strcmp(set, "fma4") == 0)
        __asm__ volatile(
            ".byte 0xc4, 0xe3, 0xf1, 0x68, 0xc2, 0x30"); /* vfmaddps xmm0, xmm1, xmm2, xmm3 */
    else
        __asm__ volatile("ud2");
}
#else
__attribute__((noinline)) void add_vectors(const char *set)
{
    if (strcmp(set, "sve") == 0)
        __asm__ volatile(".inst 0x04a20020"); /* add z0.s, z1.s, z2.s */
    else if (strcmp(set, "asimdhp") == 0)
        __asm__ volatile(".inst 0x4e421420"); /* fadd v0.8h, v1.8h, v2.8h */
    else if (strcmp(set, "bf16") == 0)
        __asm__ volatile(".inst 0x6e42ec20"); /* bfmmla v0.4s, v1.8h, v2.8h */
    else
        __asm__ volatile(".inst 0x00000000"); /* udf #0 */
}
#endif

int main(int argc, char **argv)
{
    add_vectors(argc > 1 ? argv[1] : "");
    return 0;
}
