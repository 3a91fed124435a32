/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts on facts that no tree can be made to show: sizes of file systems, rights, processors.
 * The rest is tested through the command, in tests/cli/test_doctor_*.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preflight/checks.h"

static pl_doctor_facts facts;
static pl_findings findings;

static int set_up(void **state)
{
    (void)state;
    facts = (pl_doctor_facts){.root = "", .python.kind = ""};
    facts.system.cpu = (pl_cpu){.n_allowed = 8, .n_usable = 8};
    facts.system.n_workers = 8;
    facts.system.memory.budget.line_bytes = 4 * PL_GIB;
    return unsetenv("OMP_NUM_THREADS");
}

static int tear_down(void **state)
{
    (void)state;
    pl_findings_done(&findings);
    return 0;
}

/* The one finding of a check. */
static const pl_finding *make(pl_check *check)
{
    pl_findings_done(&findings);
    findings.check = "x";
    check(&facts, &findings);
    assert_int_equal(findings.n, 1);
    return &findings.items[0];
}

static void assert_verdict(pl_check *check, pl_finding_verdict verdict, const char *words)
{
    const pl_finding *finding = make(check);
    if (finding->verdict != verdict || strstr(finding->says, words) == NULL)
        fail_msg("%s '%s'", pl_finding_verdict_name(finding->verdict), finding->says);
    assert_true(verdict == PL_FINDING_OK || finding->fix[0] != '\0');
}

static void shared_memory_is_measured_by_the_workers(void **state)
{
    (void)state;
    facts.system.shm = (pl_shm_facts){
        .there = true, .writable = true, .total_bytes = PL_GIB, .free_bytes = PL_GIB};
    assert_verdict(pl_check_shm, PL_FINDING_OK, "1.0 GiB free of 1.0 GiB");
    facts.system.n_workers = 16;
    assert_verdict(pl_check_shm, PL_FINDING_WARN, "16 workers with two batches");
    assert_non_null(strstr(make(pl_check_shm)->fix, "--shm-size=1176m"));
    facts.system.n_workers = 1;
    facts.system.shm.free_bytes = facts.system.shm.total_bytes = 64 * PL_MIB;
    assert_verdict(pl_check_shm, PL_FINDING_WARN, "64.0 MiB free of 64.0 MiB");
    facts.system.shm.writable = false;
    assert_verdict(pl_check_shm, PL_FINDING_FAIL, "is not writable");
    facts.system.shm.there = false;
    assert_verdict(pl_check_shm, PL_FINDING_FAIL, "does not exist");
}

static void room_on_disk_is_measured_by_the_memory(void **state)
{
    (void)state;
    pl_disk_facts *disk = &facts.system.disk;
    assert_verdict(pl_check_disk, PL_FINDING_FAIL, "is not writable");
    strcpy(disk->folder, "/spill");
    assert_verdict(pl_check_disk, PL_FINDING_FAIL, "'/spill' is not writable");
    disk->writable = true;
    disk->space.free_bytes = 4 * PL_GIB;
    assert_verdict(pl_check_disk, PL_FINDING_OK, "'/spill' has 4.0 GiB");
    disk->space.free_bytes--;
    assert_verdict(pl_check_disk, PL_FINDING_WARN, "not all of it can be spilled");
    disk->space.in_memory = true;
    assert_verdict(pl_check_disk, PL_FINDING_WARN, "is in memory, not on a disk");
}

static void a_quota_that_nobody_counts_is_a_warning(void **state)
{
    (void)state;
    assert_verdict(pl_check_threads, PL_FINDING_OK, "8 processors");
    facts.system.cpu.n_usable = 2;
    assert_verdict(pl_check_threads, PL_FINDING_WARN, "allows only the time of 2");
    setenv("OMP_NUM_THREADS", "2", 1);
    assert_verdict(pl_check_threads, PL_FINDING_OK, "2 processors");
    setenv("OMP_NUM_THREADS", "3", 1);
    assert_verdict(pl_check_threads, PL_FINDING_WARN,
                   "OMP_NUM_THREADS=3 is more than the 2 processors");
    unsetenv("OMP_NUM_THREADS");
}

static void drivers_are_told_from_the_kernel_s_text(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15 2023\n",
         "535.104.05"},
        {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release\n",
         "560.35.03"},
        {"NVRM version: nothing\nGCC version:  gcc version 12.2.0\n", ""},
        {"", ""},
        {"99999999999999999999999999999999.9", ""},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        char driver[32] = "before";
        pl_gpu_parse_driver(cases[i][0], driver);
        assert_string_equal(driver, cases[i][1]);
    }
}

static void limits_are_told_from_their_rows(void **state)
{
    (void)state;
    static const char limits[] = "Max file size             unlimited            7      bytes\n"
                                 "Max open files            1024                 524288 files\n"
                                 "Max broken                12\n";
    uint64_t soft = 1, hard = 2;
    assert_true(pl_system_parse_limit(limits, "Max open files", &soft, &hard));
    assert_true(soft == 1024 && hard == 524288);
    assert_true(pl_system_parse_limit(limits, "Max file size", &soft, &hard));
    assert_true(soft == UINT64_MAX && hard == 7);
    assert_false(pl_system_parse_limit(limits, "Max broken", &soft, &hard));
    assert_false(pl_system_parse_limit(limits, "Max processes", &soft, &hard));
    assert_true(soft == UINT64_MAX && hard == 7);
}

static void the_processor_s_features_have_names(void **state)
{
    (void)state;
    char missing[64];
    pl_cpu_features none = {.machine = "x86_64"}, parsed = {0};
    uint32_t v2 = pl_cpu_feature_bits("x86-64-v2"), v3 = pl_cpu_feature_bits("x86-64-v3");
    assert_int_equal(pl_cpu_feature_bits("avx3"), 0);
    assert_int_equal(v2 & v3, v2);
    assert_int_equal(v3 & pl_cpu_feature_bits("avx2"), pl_cpu_feature_bits("avx2"));
    assert_int_equal(v2 & pl_cpu_feature_bits("avx"), 0);
    assert_string_equal(pl_cpu_features_missing(&none, v2, missing, sizeof missing),
                        "sse3 ssse3 cx16 sse4.1 sse4.2 popcnt lahf");
    assert_true(strlen(pl_cpu_features_missing(&none, v3, missing, 12)) < 12);
    assert_false(pl_cpu_features_parse("model name: x\n", &parsed));
    assert_true(pl_cpu_features_parse("x: y\nflags\t\t: fpu avx\n", &parsed));
    assert_int_equal(parsed.bits, pl_cpu_feature_bits("avx"));
}

static void long_texts_are_cut_and_many_findings_kept(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    pl_fix(&findings, "nothing to fix yet");
    for (int i = 0; i < 100; i++) {
        pl_say(&findings, i % 3, "%s", text);
        pl_fix(&findings, "%s", text);
    }
    assert_int_equal(findings.n, 100);
    assert_int_equal(strlen(findings.items[99].says), PL_FINDING_SAYS_BYTES - 1);
    assert_int_equal(strlen(findings.items[0].fix), PL_FINDING_FIX_BYTES - 1);
    assert_int_equal(pl_findings_count(&findings, PL_FINDING_OK), 34);
    assert_int_equal(pl_findings_count(&findings, PL_FINDING_FAIL), 33);
}

static void a_processor_that_openblas_does_not_know_is_a_warning(void **state)
{
    (void)state;
    uint32_t level_3 = pl_cpu_feature_bits("x86-64-v3"), level_4 = pl_cpu_feature_bits("x86-64-v4");
    unsetenv("OPENBLAS_CORETYPE");
    facts.blas = (pl_blas_facts){.library = "libopenblas.so", .kernels = "Prescott", .asked = true};
    assert_verdict(pl_check_blas, PL_FINDING_OK, "OpenBLAS uses kernels for Prescott");
    facts.processor.bits = level_3;
    assert_verdict(pl_check_blas, PL_FINDING_WARN, "does not recognise this processor");
    assert_non_null(strstr(make(pl_check_blas)->fix, "OPENBLAS_CORETYPE=Haswell"));
    facts.processor.bits = level_3 | level_4;
    assert_non_null(strstr(make(pl_check_blas)->fix, "OPENBLAS_CORETYPE=SkylakeX"));
    setenv("OPENBLAS_CORETYPE", "Prescott", 1);
    assert_verdict(pl_check_blas, PL_FINDING_WARN, "OPENBLAS_CORETYPE=Prescott");
    unsetenv("OPENBLAS_CORETYPE");
    strcpy(facts.blas.kernels, "Zen");
    assert_verdict(pl_check_blas, PL_FINDING_OK, "OpenBLAS uses kernels for Zen");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(shared_memory_is_measured_by_the_workers),
        TEST(room_on_disk_is_measured_by_the_memory),
        TEST(a_quota_that_nobody_counts_is_a_warning),
        TEST(drivers_are_told_from_the_kernel_s_text),
        TEST(limits_are_told_from_their_rows),
        TEST(the_processor_s_features_have_names),
        TEST(a_processor_that_openblas_does_not_know_is_a_warning),
        TEST(long_texts_are_cut_and_many_findings_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
