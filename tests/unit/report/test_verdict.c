/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of report/verdict.c, one fact at a time: each test changes one thing and the verdict
 * with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "report/verdict.h"

static const int exited_0 = 0;
#define EXITED(status) ((status) << 8)

static const pl_holder unknown_holder = {.kind = PL_HOLDER_UNKNOWN};
#define HOLDER(place_) (&(pl_holder){.kind = PL_HOLDER_CODE, .place = (place_)})

static pl_facts ended_run(int wait_status)
{
    return (pl_facts){
        .command = {.pid = 4121, .name = "train.py"},
        .ended = true,
        .wait_status = wait_status,
        .has_memory_cgroup = true,
        .limit_bytes = 8 * PL_GIB,
        .true_limit_bytes = 8 * PL_GIB,
        .crash.refused_before_s = -1,
    };
}

static pl_facts dead_run(void)
{
    pl_facts facts = ended_run(0);
    facts.ended = false;
    return facts;
}

static void add_refusal(pl_facts *facts, pid_t pid, double before_end_s)
{
    facts->n_refusals++;
    facts->refusal = (pl_fact_refusal){
        .process = {.pid = pid,
                    .name = "train.py",
                    .bytes = 512 * PL_MIB,
                    .before_end_s = before_end_s},
        .charged_bytes = 78 * PL_GIB / 10,
        .limit_bytes = 8 * PL_GIB,
        .in_python = true,
        .place = "train.py:12 in load()",
    };
}

static void add_crash(pl_facts *facts, pid_t pid, int signal)
{
    facts->crash = (pl_fact_crash){.process = {.pid = pid, .name = "train.py"},
                                   .signal = signal,
                                   .refused_before_s = -1,
                                   .reason = "access to address 0x0",
                                   .place = "train.py:7 in f()"};
}

static bool has_evidence(const pl_verdict *verdict, const char *part)
{
    for (int i = 0; i < verdict->n_evidence; i++)
        if (strstr(verdict->evidence[i], part) != NULL)
            return true;
    print_error("no evidence says '%s'\n", part);
    return false;
}

#define ASSERT_SAYS(text, part)                                                                    \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("'%s' is not in '%s'", (part), (text));                                       \
    } while (0)

static pl_verdict judge(const pl_facts *facts, enum pl_verdict_kind expected)
{
    pl_verdict verdict;
    pl_verdict_judge(facts, &verdict);
    if (verdict.kind != expected)
        fail_msg("'%s' instead of '%s': %s", pl_verdict_name(verdict.kind),
                 pl_verdict_name(expected), verdict.summary);
    return verdict;
}

static void status_0_is_finished(void **state)
{
    (void)state;
    pl_facts facts = ended_run(exited_0);
    judge(&facts, PL_VERDICT_FINISHED);
}

static void refusals_that_were_caught_are_counted(void **state)
{
    (void)state;
    pl_facts facts = ended_run(exited_0);
    add_refusal(&facts, 4121, 1);
    facts.n_refusals = 3;
    pl_verdict verdict = judge(&facts, PL_VERDICT_FINISHED_AFTER_REFUSALS);
    ASSERT_SAYS(verdict.summary, "finished after 3 refusals");
}

static void another_status_without_memory_trouble_is_failed(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(2));
    pl_verdict verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "ended with status 2; memory had no part in it");
}

static void status_1_after_a_refusal_is_refused_and_names_line_and_size(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.2);
    pl_verdict verdict = judge(&facts, PL_VERDICT_REFUSED);
    assert_string_equal(verdict.summary,
                        "refused: 'train.py' (pid 4121) asked for 512.0 MiB at train.py:12 in "
                        "load(): 7.8 of 8.0 GiB were in use");
    assert_true(has_evidence(&verdict, "ended with status 1, 0.2 s after a refusal"));
}

static void a_raised_exception_asked_for_no_size(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.2);
    facts.refusal.process.bytes = 0;
    pl_verdict verdict = judge(&facts, PL_VERDICT_REFUSED);
    ASSERT_SAYS(verdict.summary, "got a MemoryError at train.py:12");
}

static void a_refusal_long_before_does_not_explain_the_end(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 60);
    pl_verdict verdict = judge(&facts, PL_VERDICT_FAILED);
    assert_null(strstr(verdict.summary, "memory had no part"));
    assert_true(has_evidence(&verdict, "60.0 s before the end"));
}

static void a_python_program_that_chose_its_status_caught_the_refusal(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(3));
    add_refusal(&facts, 4121, 0.2);
    judge(&facts, PL_VERDICT_FAILED);
    facts.refusal.in_python = false;
    judge(&facts, PL_VERDICT_REFUSED);
}

static void a_refusal_in_a_worker_names_the_worker(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 5000, 0.2);
    pl_verdict verdict = judge(&facts, PL_VERDICT_REFUSED);
    ASSERT_SAYS(verdict.summary, "(pid 5000)");
    assert_true(has_evidence(&verdict, "(pid 4121) ended with status 1"));
}

static void sigkill_with_a_counted_oom_kill_is_for_memory(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGKILL);
    facts.n_oom_kills = 1;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    assert_true(has_evidence(&verdict, "the memory cgroup counted 1 OOM kill during the run"));
}

static void sigkill_without_one_is_from_outside(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGKILL);
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "memory had no part in it");
    assert_true(has_evidence(&verdict, "no OOM kill was counted in the cgroup or on the machine"));
}

static void the_machines_count_alone_may_be_anybodys_death(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGKILL);
    facts.n_vm_oom_kills = 1;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    assert_true(has_evidence(&verdict, "but none in this run's memory cgroup"));

    facts.sampled = true;
    facts.last_available_bytes = 4 * PL_GIB;
    facts.last_resident_bytes = facts.true_limit_bytes / 100 * 96;
    judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);

    facts.sampled = false;
    facts.has_memory_cgroup = false;
    judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
}

static void a_shells_137_is_read_like_sigkill(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(128 + SIGKILL));
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    assert_true(has_evidence(&verdict, "status 137 is how a shell reports"));
    facts.n_oom_kills = 1;
    judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    assert_int_equal(pl_verdict_signal(EXITED(128 + 40)), 0);
    assert_int_equal(pl_verdict_signal(EXITED(1)), 0);
}

static void a_worker_that_the_system_killed_is_named(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    facts.n_oom_kills = 1;
    facts.killed_worker = (pl_fact_process){.pid = 5000, .name = "worker"};
    add_refusal(&facts, 4121, 0.2);
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    ASSERT_SAYS(verdict.summary, "ended 'worker' (pid 5000), and 'train.py' (pid 4121) ended with");
    facts.killed_worker.pid = 0;
    judge(&facts, PL_VERDICT_REFUSED);
}

/* systemd's OOMPolicy=stop: the OOM killer ends one process, systemd asks the others to go. */
static void a_service_that_is_stopped_for_a_killed_worker_died_of_memory(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGTERM);
    facts.stop_signal = SIGTERM;
    facts.n_oom_kills = 1;
    facts.killed_worker = (pl_fact_process){.pid = 5000, .name = "worker"};
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    ASSERT_SAYS(verdict.summary, "the system's OOM killer ended 'worker' (pid 5000), and "
                                 "'train.py' (pid 4121) was ended by SIGTERM");
    facts.stop_signal = 0; /* the command had its own, and ended before we were told */
    verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    assert_true(has_evidence(&verdict, "from outside came SIGTERM"));
    facts.stop_signal = SIGTERM;
    facts.killed_worker.before_end_s = 3600; /* long ago: somebody else asked */
    judge(&facts, PL_VERDICT_KILLED);
}

static pl_facts lost_run(void)
{
    pl_facts facts = ended_run(0);
    facts.ended = facts.has_memory_cgroup = false;
    facts.true_limit_bytes = PL_GIB;
    facts.sampled = true;
    facts.last_resident_bytes = facts.last_available_bytes = PL_GIB / 2;
    return facts;
}

/* The path is another group's now, or nobody's: the machine's count is left, which is everybody's. */
static void where_the_group_is_gone_the_machines_count_decides(void **state)
{
    (void)state;
    pl_facts facts = lost_run();
    facts.group_gone = facts.vm_counted = true;
    facts.n_vm_oom_kills = 2;
    pl_verdict verdict = judge(&facts, PL_VERDICT_LOST);
    ASSERT_SAYS(verdict.evidence[0], "the run's memory cgroup is gone");

    facts.last_resident_bytes = PL_GIB;
    verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    assert_null(strstr(verdict.summary, "most likely"));

    facts.n_vm_oom_kills = 0;
    verdict = judge(&facts, PL_VERDICT_LOST);
    ASSERT_SAYS(verdict.evidence[0], "the machine counted no OOM kill since the start");

    facts.vm_counted = false;
    verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    ASSERT_SAYS(verdict.summary, "most likely");
}

static void memory_is_not_acquitted_where_something_else_refused_it(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    facts.own_data_limit = true;
    facts.data_limit_bytes = PL_GIB;
    pl_verdict verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "not known: it ran without the guard, where RLIMIT_DATA refuses "
                                 "beyond 1.0 GiB");
    facts.own_data_limit = false; /* the user's: ulimit -d */
    verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "not known: RLIMIT_DATA refuses beyond 1.0 GiB");
    facts.denied = (pl_fact_process){.pid = 4121, .name = "train.py", .bytes = 2 * PL_GIB};
    verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.evidence[0], "vm.overcommit_memory");
    ASSERT_SAYS(verdict.evidence[0], "vm.max_map_count");
    facts.denied_limits = 1;
    verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "the system refused 2.0 GiB to 'train.py' (pid 4121)");
    ASSERT_SAYS(verdict.evidence[0], "RLIMIT_AS is in force");
    facts.has_inner = true;
    facts.inner_verdict = PL_VERDICT_REFUSED;
    strcpy(facts.inner_run, "20261118-1-2");
    verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "a run inside it ended as 'refused'");
    ASSERT_SAYS(verdict.evidence[0], "plimsoll explain 20261118-1-2");
}

static void what_ended_an_inner_run_is_not_a_signal_to_the_outer(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(128 + SIGKILL));
    facts.has_inner = true;
    facts.inner_verdict = PL_VERDICT_STOPPED_FOR_MEMORY;
    strcpy(facts.inner_run, "20261118-1-2");
    pl_verdict verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "a run inside it ended as 'stopped-for-memory'");
    assert_null(strstr(verdict.summary, "memory had no part"));
    facts.wait_status = EXITED(128 + SIGSEGV);
    facts.has_inner = true;
    facts.inner_verdict = PL_VERDICT_CRASHED;
    verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "a run inside it ended as 'crashed'");
    facts.wait_status = SIGKILL; /* itself */
    judge(&facts, PL_VERDICT_KILLED);
}

static void a_fault_without_the_guard_may_be_for_memory(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(SIGSEGV);
    pl_verdict verdict = judge(&facts, PL_VERDICT_CRASHED);
    assert_null(strstr(verdict.summary, "RLIMIT_DATA"));
    assert_int_equal(pl_advice(&facts, verdict.kind, &unknown_holder, lines, 4), 1);
    ASSERT_SAYS(lines[0], "run it under gdb"); /* names would not help: there is no stack */
    facts.own_data_limit = true;
    facts.data_limit_bytes = PL_GIB;
    verdict = judge(&facts, PL_VERDICT_CRASHED);
    ASSERT_SAYS(verdict.summary, "not known: it ran without the guard, where RLIMIT_DATA refuses "
                                 "beyond 1.0 GiB");
    assert_int_equal(pl_advice(&facts, verdict.kind, &unknown_holder, lines, 4), 2);
    ASSERT_SAYS(lines[0], "allow more with --budget");
}

static void what_the_system_refused_just_before_a_crash_is_evidence(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGSEGV);
    add_crash(&facts, 4121, SIGSEGV);
    facts.denied = (pl_fact_process){.pid = 4121, .bytes = PL_GIB, .before_end_s = 1};
    pl_verdict verdict = judge(&facts, PL_VERDICT_CRASHED);
    assert_true(has_evidence(&verdict, "but the system refused it"));
    facts.denied.before_end_s = 60;
    verdict = judge(&facts, PL_VERDICT_CRASHED);
    assert_false(has_evidence(&verdict, "but the system refused it"));
}

/* earlyoom and systemd-oomd send signals before the kernel has to. */
static void a_signal_when_memory_was_nearly_used_up_does_not_acquit_it(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGTERM);
    facts.sampled = true;
    facts.last_resident_bytes = PL_GIB;
    facts.last_available_bytes = 7 * PL_GIB;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "memory had no part in it");
    facts.last_available_bytes = PL_GIB / 10;
    verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "when memory was nearly used up");
    assert_true(has_evidence(&verdict, "earlyoom"));
}

static void no_budget_is_advised_that_the_system_would_not_give(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.1);
    facts.limit_bytes = facts.budget_bytes = 8 * PL_GIB;
    facts.true_limit_bytes = 8 * PL_GIB + 80 * PL_MIB;
    facts.reserve_bytes = 80 * PL_MIB;
    assert_int_equal(pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("train.py:12"), lines, 4), 1);
    facts.budget_bytes = 20 * PL_GIB; /* a cgroup leaves less */
    assert_int_equal(pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("train.py:12"), lines, 4), 2);
    ASSERT_SAYS(lines[1], "or give its memory cgroup more");
    facts.neighbours = (pl_fact_line){.n = 1, .process = {.pid = 7, .name = "db", .bytes = PL_GIB}};
    assert_int_equal(pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("train.py:12"), lines, 4), 2);
    ASSERT_SAYS(lines[1], "move 'db' (pid 7) to another memory cgroup");
    ASSERT_SAYS(lines[1], "it took 1.0 GiB");
}

static void stalls_for_memory_are_told_with_numbers_and_a_cure(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(0));
    facts.lasted_s = 82;
    facts.stalled_s = 70;
    facts.stalled_full_s = 61;
    judge(&facts, PL_VERDICT_FINISHED);
    assert_false(pl_verdict_stalled(&facts)); /* the whole machine's: anybody's */
    facts.own_stalls = true;
    pl_verdict verdict = judge(&facts, PL_VERDICT_FINISHED);
    ASSERT_SAYS(verdict.summary, "but was made to wait for memory");
    ASSERT_SAYS(verdict.evidence[0], "for 70.0 of 82.0 s, with all processes waiting for 61.0 s");
    char lines[4][PL_ADVICE_BYTES];
    assert_int_equal(pl_advice(&facts, verdict.kind, &unknown_holder, lines, 4), 1);
    ASSERT_SAYS(lines[0], "give its cgroup more memory");
    facts.n_throttles = 4000;
    verdict = judge(&facts, PL_VERDICT_FINISHED);
    ASSERT_SAYS(verdict.evidence[1], "wait 4000 times");
    pl_advice(&facts, verdict.kind, &unknown_holder, lines, 4);
    ASSERT_SAYS(lines[0], "raise memory.high");
}

static void seccomp_is_named(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGSYS);
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "seccomp ended 'train.py' (pid 4121)");
    ASSERT_SAYS(verdict.summary, "its filter forbids");
    assert_true(has_evidence(&verdict, "SIGSYS ended it"));
    assert_true(has_evidence(&verdict, "one of plimsoll's guard"));
    assert_false(has_evidence(&verdict, "a seccomp filter was on"));
    facts.seccomp_mode = 2;
    verdict = judge(&facts, PL_VERDICT_KILLED);
    assert_true(has_evidence(&verdict, "a seccomp filter was on"));

    facts = ended_run(EXITED(128 + SIGSYS)); /* as a shell tells it */
    verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "its filter forbids");
}

static void a_kill_is_strict_seccomps_only_in_its_mode(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode < 4; mode++) {
        pl_facts facts = ended_run(SIGKILL);
        facts.seccomp_mode = mode;
        pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
        bool strict = mode == 1 || mode == 3;
        ASSERT_SAYS(verdict.summary, strict ? "its strict mode forbids" : "from outside");
    }
    pl_facts facts = ended_run(SIGKILL);
    facts.seccomp_mode = 1;
    char lines[2][PL_ADVICE_BYTES];
    assert_int_equal(pl_advice(&facts, PL_VERDICT_KILLED, &unknown_holder, lines, 2), 1);
    ASSERT_SAYS(lines[0], "before it enters the strict mode"); /* which can allow no more calls */
    facts.n_oom_kills = 1;
    judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
}

static void a_bad_system_call_that_somebody_sent_is_not_seccomps(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGSYS);
    add_crash(&facts, 4121, SIGSYS);
    facts.crash.sender_pid = 77;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "process 77 sent SIGSYS");
}

static void a_signal_that_we_passed_on_is_said_to_be_so(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGTERM);
    facts.stop_signal = SIGTERM;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "asked to stop, by SIGTERM");
    facts.stop_signal = 0;
    verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "from outside");
}

static void a_crash_record_with_the_same_signal_is_a_crash(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGSEGV);
    add_crash(&facts, 4121, SIGSEGV);
    pl_verdict verdict = judge(&facts, PL_VERDICT_CRASHED);
    assert_string_equal(verdict.summary,
                        "crashed: segmentation fault in 'train.py' (pid 4121) at train.py:7 in "
                        "f(): access to address 0x0");
}

static void a_fault_without_a_record_is_still_a_crash(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGBUS);
    pl_verdict verdict = judge(&facts, PL_VERDICT_CRASHED);
    ASSERT_SAYS(verdict.summary, "bus error");
    assert_true(has_evidence(&verdict, "no process left a crash record"));
}

static void a_workers_crash_does_not_explain_the_commands_own_later_one(void **state)
{
    (void)state;
    pl_verdict verdict;
    pl_facts facts = ended_run(SIGSEGV);
    add_crash(&facts, 5000, SIGSEGV);
    facts.crash.process.before_end_s = 60;
    pl_verdict_judge(&facts, &verdict);
    assert_string_equal(verdict.summary, "crashed: segmentation fault in 'train.py' (pid 4121)");
    assert_true(has_evidence(&verdict, "only another process, before, left a crash record"));
    assert_false(pl_verdict_crash_explains_end(&facts));
    char lines[3][PL_ADVICE_BYTES];
    int n = pl_advice(&facts, verdict.kind, &unknown_holder, lines, 3);
    for (int i = 0; i < n; i++)
        assert_null(strstr(lines[i], "train.py:7"));
    facts.crash.process.before_end_s = 0; /* timeout(1) hands its child's signal on */
    assert_true(pl_verdict_crash_explains_end(&facts));
    facts.crash.process = (pl_fact_process){.pid = 4121, .before_end_s = 60};
    assert_true(pl_verdict_crash_explains_end(&facts));
}

static void a_workers_crash_explains_an_end_shortly_after(void **state)
{
    (void)state;
    pl_facts facts = ended_run(EXITED(1));
    add_crash(&facts, 5000, SIGSEGV);
    judge(&facts, PL_VERDICT_CRASHED);
    facts.crash.process.before_end_s = 100;
    judge(&facts, PL_VERDICT_FAILED);
    facts.wait_status = exited_0;
    facts.crash.process.before_end_s = 0;
    judge(&facts, PL_VERDICT_FINISHED);
}

static void a_fault_signal_that_somebody_sent_is_killed(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGSEGV);
    add_crash(&facts, 4121, SIGSEGV);
    facts.crash.sender_pid = 77;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED);
    ASSERT_SAYS(verdict.summary, "process 77 sent SIGSEGV");
}

static void bad_alloc_after_a_refusal_is_refused(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGABRT);
    add_refusal(&facts, 4121, 0.1);
    add_crash(&facts, 4121, SIGABRT);
    facts.crash.cause = PL_CRASH_BAD_ALLOC;
    facts.crash.refused_before_s = 0.1;
    pl_verdict verdict = judge(&facts, PL_VERDICT_REFUSED);
    assert_true(has_evidence(&verdict, "std::bad_alloc"));
    facts.crash.refused_before_s = -1;
    judge(&facts, PL_VERDICT_CRASHED);
}

static void a_fault_just_after_a_refusal_says_so(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGSEGV);
    add_crash(&facts, 4121, SIGSEGV);
    facts.crash.refused_before_s = 0.1;
    pl_verdict verdict = judge(&facts, PL_VERDICT_CRASHED);
    assert_true(has_evidence(&verdict, "was refused 0.1 s before"));
}

static void an_instruction_that_the_cpu_lacks_is_named(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGILL);
    add_crash(&facts, 4121, SIGILL);
    judge(&facts, PL_VERDICT_CRASHED);
    strcpy(facts.crash.missing_set, "AVX-512F");
    strcpy(facts.crash.module, "libfoo.so");
    pl_verdict verdict = judge(&facts, PL_VERDICT_ILLEGAL_INSTRUCTION);
    ASSERT_SAYS(verdict.summary, "libfoo.so needs AVX-512F, which this CPU lacks");
}

static void what_we_stopped_is_stopped_for_memory(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGKILL);
    facts.n_stopped = 1;
    facts.stopped = (pl_fact_process){.pid = 4121, .name = "train.py", .bytes = 9 * PL_GIB};
    pl_verdict verdict = judge(&facts, PL_VERDICT_STOPPED_FOR_MEMORY);
    ASSERT_SAYS(verdict.summary, "which held 9.0 GiB of a line of 8.0 GiB");

    facts.stopped.pid = 5000;
    facts.wait_status = EXITED(1);
    judge(&facts, PL_VERDICT_STOPPED_FOR_MEMORY);
    facts.stopped.before_end_s = 100;
    judge(&facts, PL_VERDICT_FAILED);
    facts.wait_status = exited_0;
    judge(&facts, PL_VERDICT_FINISHED_AFTER_REFUSALS);
}

static void no_progress_until_it_was_ended_is_a_hang(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGINT);
    facts.stop_signal = SIGINT;
    facts.hangs = true;
    facts.idle_s = 60;
    facts.lock_cycle = true;
    pl_verdict verdict = judge(&facts, PL_VERDICT_HANG);
    ASSERT_SAYS(verdict.summary, "no progress for 60 s: its threads are deadlocked");
    facts.wait_status = exited_0;
    judge(&facts, PL_VERDICT_FINISHED);
    facts.wait_status = SIGSEGV;
    judge(&facts, PL_VERDICT_CRASHED);
    facts.ended = false;
    facts.supervisor_alive = facts.command_alive = true;
    judge(&facts, PL_VERDICT_HANG);
}

static pl_facts leaking(pl_facts facts)
{
    facts.leak = (pl_leak){.found = true,
                           .bytes_per_s = 12 * PL_MIB,
                           .from_bytes = 4 * PL_GIB,
                           .to_bytes = 8 * PL_GIB,
                           .over_s = 341};
    return facts;
}

static void a_steady_rise_to_a_refusal_is_a_leak(void **state)
{
    (void)state;
    pl_facts facts = leaking(ended_run(EXITED(1)));
    judge(&facts, PL_VERDICT_FAILED);
    add_refusal(&facts, 4121, 0.2);
    facts.refusal.process.bytes = facts.limit_bytes / 100;
    pl_verdict verdict = judge(&facts, PL_VERDICT_LEAK);
    assert_true(verdict.leaked);
    ASSERT_SAYS(verdict.summary, "rose by 12.0 MiB/s for 341.0 s, from 4.0 to 8.0 GiB");
    ASSERT_SAYS(verdict.evidence[0], "refused: 'train.py'");
    assert_true(has_evidence(&verdict, "after a refusal"));
    facts.wait_status = exited_0;
    judge(&facts, PL_VERDICT_FINISHED_AFTER_REFUSALS);
}

static void a_large_request_or_the_systems_kill_is_named_before_a_leak(void **state)
{
    (void)state;
    pl_facts facts = leaking(ended_run(EXITED(1)));
    add_refusal(&facts, 4121, 0.2);
    facts.refusal.process.bytes = facts.limit_bytes / 50;
    pl_verdict verdict = judge(&facts, PL_VERDICT_REFUSED);
    assert_true(verdict.leaked);
    ASSERT_SAYS(verdict.evidence[0], "memory rose steadily before: by 12.0 MiB/s");

    facts = leaking(ended_run(SIGKILL));
    facts.n_oom_kills = 1;
    verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    assert_true(verdict.leaked);
}

static void a_run_goes_on_while_anyone_of_it_lives(void **state)
{
    (void)state;
    pl_facts facts = dead_run();
    facts.supervisor_alive = true;
    judge(&facts, PL_VERDICT_RUNNING);
    facts.supervisor_alive = false;
    facts.command_alive = true;
    pl_verdict verdict = judge(&facts, PL_VERDICT_RUNNING);
    ASSERT_SAYS(verdict.summary, "supervisor is gone");
}

static void with_everyone_dead_the_record_decides(void **state)
{
    (void)state;
    pl_facts facts = dead_run();
    judge(&facts, PL_VERDICT_LOST);

    facts.sampled = true;
    facts.last_available_bytes = 4 * PL_GIB;
    facts.last_resident_bytes = facts.true_limit_bytes / 100 * 96;
    pl_verdict verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    ASSERT_SAYS(verdict.summary, "most likely");

    facts.last_resident_bytes = facts.true_limit_bytes / 100 * 94;
    judge(&facts, PL_VERDICT_LOST);

    facts.n_oom_kills = 1;
    verdict = judge(&facts, PL_VERDICT_KILLED_FOR_MEMORY);
    assert_null(strstr(verdict.summary, "most likely"));

    add_crash(&facts, 4121, SIGSEGV);
    judge(&facts, PL_VERDICT_CRASHED);
}

static void a_restart_of_the_machine_is_said(void **state)
{
    (void)state;
    pl_facts facts = dead_run();
    facts.rebooted = true;
    pl_verdict verdict = judge(&facts, PL_VERDICT_LOST);
    assert_true(has_evidence(&verdict, "the machine has been restarted since"));
}

static void of_a_record_that_was_cut_short_nothing_is_concluded(void **state)
{
    (void)state;
    char lines[2][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(SIGKILL);
    facts.cut_short = true;
    facts.n_vm_oom_kills = 24; /* for its baseline is zero */
    pl_verdict verdict = judge(&facts, PL_VERDICT_FAILED);
    ASSERT_SAYS(verdict.summary, "truncated the file of its record");
    assert_int_equal(pl_advice(&facts, verdict.kind, &unknown_holder, lines, 2), 1);
    ASSERT_SAYS(lines[0], "$PLIMSOLL_LEDGER");
    facts.wait_status = 0;
    judge(&facts, PL_VERDICT_FINISHED);
}

static void who_only_observed_is_advised_to_keep_the_line(void **state)
{
    (void)state;
    pl_facts facts = ended_run(SIGKILL);
    facts.n_oom_kills = 1;
    facts.limit_bytes = facts.true_limit_bytes = PL_GIB;
    char lines[4][PL_ADVICE_BYTES];
    pl_advice(&facts, PL_VERDICT_KILLED_FOR_MEMORY, &unknown_holder, lines, 4);
    ASSERT_SAYS(lines[0], "set --budget below 1.0 GiB");
    facts.observed = true;
    int n = pl_advice(&facts, PL_VERDICT_KILLED_FOR_MEMORY, &unknown_holder, lines, 4);
    ASSERT_SAYS(lines[0], "run it without --observe");
    for (int i = 0; i < n; i++)
        assert_null(strstr(lines[i], "--budget"));

    facts = ended_run(EXITED(0));
    facts.over = (pl_fact_process){.pid = 4121, .name = "train.py"};
    facts.observed = true;
    pl_verdict verdict = judge(&facts, PL_VERDICT_FINISHED);
    ASSERT_SAYS(verdict.summary, "--observe refuses nothing");
    facts.peak_bytes = PL_GIB; /* the rest is in files in memory, which no process has resident */
    facts.over.bytes = 9 * PL_GIB;
    verdict = judge(&facts, PL_VERDICT_FINISHED);
    ASSERT_SAYS(verdict.summary, "reached 9.0 of 8.0 GiB");
}

static void no_lower_line_is_advised_to_who_passed_it_by_far(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(SIGKILL);
    facts.true_limit_bytes = 20 * PL_GIB;
    facts.limit_bytes = 18 * PL_GIB;
    facts.peak_bytes = 20 * PL_GIB;
    pl_advice(&facts, PL_VERDICT_KILLED_FOR_MEMORY, &unknown_holder, lines, 4);
    ASSERT_SAYS(lines[0], "set --budget below 18.0 GiB");
    facts.limit_bytes = 100 * PL_MIB;
    pl_advice(&facts, PL_VERDICT_KILLED_FOR_MEMORY, &unknown_holder, lines, 4);
    ASSERT_SAYS(lines[0], "the guard saw none of it");
    ASSERT_SAYS(lines[0], "ulimit -s");
}

static void advice_is_concrete(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.2);
    int n = pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("train.py:33 in augment()"), lines, 4);
    assert_true(n >= 1);
    ASSERT_SAYS(lines[0], "free or batch what train.py:33 in augment() keeps");

    n = pl_advice(&facts, PL_VERDICT_REFUSED, &(pl_holder){.kind = PL_HOLDER_MODULES}, lines, 4);
    assert_true(n >= 1);
    assert_string_equal(lines[0], "import less: modules hold most of it");

    facts = ended_run(SIGBUS);
    add_crash(&facts, 4121, SIGBUS);
    strcpy(facts.crash.mapping, "/dev/shm/torch_1 (deleted)");
    n = pl_advice(&facts, PL_VERDICT_CRASHED, &unknown_holder, lines, 4);
    assert_true(n >= 1);
    ASSERT_SAYS(lines[0], "--shm-size");

    assert_int_equal(pl_advice(&facts, PL_VERDICT_FINISHED, &unknown_holder, lines, 4), 0);
    assert_int_equal(pl_advice(&facts, PL_VERDICT_CRASHED, &unknown_holder, lines, 1), 1);
}

static void what_can_never_fit_is_not_answered_with_what_to_free(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.2);
    strcpy(facts.refusal.place, "train.py:12 in load()");
    facts.limit_bytes = facts.refusal.limit_bytes = 8 * PL_GIB;
    facts.true_limit_bytes = 10 * PL_GIB;
    facts.refusal.process.bytes = 9 * PL_GIB;
    assert_int_equal(pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("model.py:3"), lines, 4), 3);
    assert_string_equal(lines[0], "9.0 GiB can never fit in 8.0 GiB: ask for less at once at "
                                  "train.py:12 in load(), or in slices");
    assert_string_equal(lines[1], "allow more with --budget: the system would give 10.0 GiB");
    ASSERT_SAYS(lines[2], "--sparse");

    facts.refusal.process.bytes = 11 * PL_GIB;
    facts.in_notebook = true;
    assert_int_equal(pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("model.py:3"), lines, 4), 1);
    assert_string_equal(lines[0], "11.0 GiB can never fit in 8.0 GiB, nor in the 10.0 GiB that the "
                                  "system would give: ask for less at once at train.py:12 in "
                                  "load(), or in slices");
}

static void a_cell_with_a_limit_of_its_own_is_to_raise_that(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.2);
    facts.limit_bytes = facts.refusal.limit_bytes = PL_GIB;
    facts.refusal.process.bytes = PL_MIB;
    facts.true_limit_bytes = 10 * PL_GIB;
    facts.in_notebook = facts.line_is_cells = true;
    assert_int_equal(pl_advice(&facts, PL_VERDICT_REFUSED, HOLDER("model.py:3"), lines, 4), 2);
    ASSERT_SAYS(lines[1], "allow more with %%plimsoll limit=SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_0_is_finished),
        cmocka_unit_test(what_can_never_fit_is_not_answered_with_what_to_free),
        cmocka_unit_test(a_cell_with_a_limit_of_its_own_is_to_raise_that),
        cmocka_unit_test(refusals_that_were_caught_are_counted),
        cmocka_unit_test(another_status_without_memory_trouble_is_failed),
        cmocka_unit_test(status_1_after_a_refusal_is_refused_and_names_line_and_size),
        cmocka_unit_test(a_raised_exception_asked_for_no_size),
        cmocka_unit_test(a_refusal_long_before_does_not_explain_the_end),
        cmocka_unit_test(a_python_program_that_chose_its_status_caught_the_refusal),
        cmocka_unit_test(a_refusal_in_a_worker_names_the_worker),
        cmocka_unit_test(sigkill_with_a_counted_oom_kill_is_for_memory),
        cmocka_unit_test(sigkill_without_one_is_from_outside),
        cmocka_unit_test(the_machines_count_alone_may_be_anybodys_death),
        cmocka_unit_test(a_shells_137_is_read_like_sigkill),
        cmocka_unit_test(a_worker_that_the_system_killed_is_named),
        cmocka_unit_test(where_the_group_is_gone_the_machines_count_decides),
        cmocka_unit_test(memory_is_not_acquitted_where_something_else_refused_it),
        cmocka_unit_test(what_the_system_refused_just_before_a_crash_is_evidence),
        cmocka_unit_test(a_signal_when_memory_was_nearly_used_up_does_not_acquit_it),
        cmocka_unit_test(no_budget_is_advised_that_the_system_would_not_give),
        cmocka_unit_test(stalls_for_memory_are_told_with_numbers_and_a_cure),
        cmocka_unit_test(a_service_that_is_stopped_for_a_killed_worker_died_of_memory),
        cmocka_unit_test(a_signal_that_we_passed_on_is_said_to_be_so),
        cmocka_unit_test(seccomp_is_named),
        cmocka_unit_test(a_kill_is_strict_seccomps_only_in_its_mode),
        cmocka_unit_test(a_bad_system_call_that_somebody_sent_is_not_seccomps),
        cmocka_unit_test(a_crash_record_with_the_same_signal_is_a_crash),
        cmocka_unit_test(a_fault_without_a_record_is_still_a_crash),
        cmocka_unit_test(a_workers_crash_does_not_explain_the_commands_own_later_one),
        cmocka_unit_test(a_workers_crash_explains_an_end_shortly_after),
        cmocka_unit_test(a_fault_signal_that_somebody_sent_is_killed),
        cmocka_unit_test(bad_alloc_after_a_refusal_is_refused),
        cmocka_unit_test(a_fault_just_after_a_refusal_says_so),
        cmocka_unit_test(an_instruction_that_the_cpu_lacks_is_named),
        cmocka_unit_test(what_we_stopped_is_stopped_for_memory),
        cmocka_unit_test(no_progress_until_it_was_ended_is_a_hang),
        cmocka_unit_test(a_steady_rise_to_a_refusal_is_a_leak),
        cmocka_unit_test(a_large_request_or_the_systems_kill_is_named_before_a_leak),
        cmocka_unit_test(a_run_goes_on_while_anyone_of_it_lives),
        cmocka_unit_test(with_everyone_dead_the_record_decides),
        cmocka_unit_test(a_restart_of_the_machine_is_said),
        cmocka_unit_test(of_a_record_that_was_cut_short_nothing_is_concluded),
        cmocka_unit_test(who_only_observed_is_advised_to_keep_the_line),
        cmocka_unit_test(advice_is_concrete),
        cmocka_unit_test(what_ended_an_inner_run_is_not_a_signal_to_the_outer),
        cmocka_unit_test(a_fault_without_the_guard_may_be_for_memory),
        cmocka_unit_test(no_lower_line_is_advised_to_who_passed_it_by_far),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
