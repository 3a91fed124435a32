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
    assert_true(has_evidence(&verdict, "status 137 is how a shell says"));
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
    facts.crash.bad_alloc = true;
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
    ASSERT_SAYS(verdict.summary, "no progress for 60 s: its threads wait for each other's locks");
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
    assert_true(has_evidence(&verdict, "the machine was restarted since"));
}

static void every_verdict_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(pl_verdict_name(PL_VERDICT_FINISHED), "finished");
    assert_string_equal(pl_verdict_name(PL_VERDICT_LOST), "lost");
    assert_string_equal(pl_verdict_name((enum pl_verdict_kind)99), "?");
}

static void advice_is_concrete(void **state)
{
    (void)state;
    char lines[4][PL_ADVICE_BYTES];
    pl_facts facts = ended_run(EXITED(1));
    add_refusal(&facts, 4121, 0.2);
    int n = pl_advice(&facts, PL_VERDICT_REFUSED, "train.py:33 in augment()", lines, 4);
    assert_true(n >= 1);
    ASSERT_SAYS(lines[0], "free or batch what train.py:33 in augment() keeps");

    facts = ended_run(SIGBUS);
    add_crash(&facts, 4121, SIGBUS);
    strcpy(facts.crash.mapping, "/dev/shm/torch_1 (deleted)");
    n = pl_advice(&facts, PL_VERDICT_CRASHED, "", lines, 4);
    assert_true(n >= 1);
    ASSERT_SAYS(lines[0], "--shm-size");

    assert_int_equal(pl_advice(&facts, PL_VERDICT_FINISHED, "", lines, 4), 0);
    assert_int_equal(pl_advice(&facts, PL_VERDICT_CRASHED, "", lines, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_0_is_finished),
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
        cmocka_unit_test(a_signal_that_we_passed_on_is_said_to_be_so),
        cmocka_unit_test(a_crash_record_with_the_same_signal_is_a_crash),
        cmocka_unit_test(a_fault_without_a_record_is_still_a_crash),
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
        cmocka_unit_test(every_verdict_has_a_name),
        cmocka_unit_test(advice_is_concrete),
    };
    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
