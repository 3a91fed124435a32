/* SPDX-License-Identifier: Apache-2.0 */
/* A record in a folder of its own, with a real ledger to fill in. For the tests of the report. */
#ifndef PL_TESTS_REPORT_FIXTURE_H
#define PL_TESTS_REPORT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "ledger/cell.h"
#include "ledger/ledger.h"
#include "report/report.h"

typedef struct fixture {
    pl_run_record record;
    pl_ledger *ledger;
} fixture;

static int fixture_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void fixture_done(fixture *f)
{
    pl_ledger_close(f->ledger);
    if (f->record.directory[0] != '\0')
        nftw(f->record.directory, fixture_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Everything began 100 s ago; a line of 8 GiB; pid 4121 runs "python3 train.py". */
static int fixture_init(fixture *f)
{
    *f = (fixture){0};
    char path[PATH_MAX], template[] = "/tmp/plimsoll-test-report-XXXXXX";
    pl_ledger_params params = {.limit_bytes = 8 * PL_GIB, .reserve_bytes = 80 * PL_MIB};
    if (mkdtemp(template) == NULL || pl_run_record_create(template, &f->record, NULL) < 0 ||
        pl_run_record_path(f->record.directory, PL_RECORD_LEDGER, path) < 0 ||
        pl_ledger_create(path, &params, &f->ledger, NULL) < 0)
        return -1;
    pl_ledger_header *header = &f->ledger->header;
    static const char command[] = "/usr/bin/python3\0-u\0/home/user/train.py\0--epochs\0003\0";
    memcpy(header->command, command, sizeof(command));
    strcpy(header->directory, "/home/user");
    strcpy(header->limit_source, "cgroup v2 /user.slice");
    header->true_limit_bytes = 10 * PL_GIB;
    header->started_monotonic_ns = pl_clock_monotonic_ns() - 100 * PL_NS_PER_SEC;
    header->started_realtime_ns = pl_clock_realtime_ns() - 100 * PL_NS_PER_SEC;
    header->supervisor_pid = 1 << 30; /* above the largest pid there can be */
    atomic_store(&header->command_pid, 4121);
    header->command_start_ticks = 1; /* a later process of that pid is another one */
    return 0;
}

static inline void fixture_end(fixture *f, int wait_status)
{
    f->ledger->header.wait_status = wait_status;
    atomic_store(&f->ledger->header.ended_realtime_ns, pl_clock_realtime_ns());
}

static inline void fixture_event(fixture *f, enum pl_event_kind kind, pid_t pid, uint64_t bytes,
                                 const char *function)
{
    pl_event event = {.kind = kind, .pid = pid, .tid = pid, .bytes = bytes};
    bool place = kind == PL_EVENT_REFUSED || kind == PL_EVENT_RAISED;
    snprintf(event.where.file, sizeof(event.where.file), "%s", place ? "/home/user/train.py" : "");
    snprintf(event.where.function, sizeof(event.where.function), "%s", function);
    event.where.line = place ? 12 : 0;
    pl_ledger_event(f->ledger, &event);
}

static inline void fixture_site(fixture *f, uint64_t key, int64_t bytes, const char *file,
                                uint32_t line, const char *function)
{
    bool is_new;
    pl_site *site = pl_ledger_site(f->ledger, key, 4121, &is_new);
    snprintf(site->python.file, sizeof(site->python.file), "%s", file);
    snprintf(site->python.function, sizeof(site->python.function), "%s", function);
    site->python.line = line;
    pl_site_add(site, bytes, 1);
    atomic_fetch_add(&f->ledger->sum.charged_bytes, (uint64_t)bytes);
}

/* A line of cells.jsonl; `source` NULL: it was told before. Makes the run a notebook's. */
static inline void fixture_source(fixture *f, int number, const char *id, const char *file,
                                  const char *source)
{
    char path[PATH_MAX];
    if (pl_run_record_path(f->record.directory, PL_RECORD_CELLS, path) < 0)
        return;
    strcpy(f->ledger->header.kernel, "/run/user/kernel-1.json");
    json_t *line = json_pack("{s:i, s:s, s:s, s:s*}", "number", number, "id", id, "file", file,
                             "source", source);
    FILE *out = fopen(path, "a");
    json_dumpf(line, out, JSON_COMPACT);
    putc('\n', out);
    fclose(out);
    json_decref(line);
}

/* The cell begins, as it would in a kernel. */
static inline void fixture_begin(fixture *f, int number, const char *id, const char *file,
                                 const char *source)
{
    fixture_source(f, number, id, file, source);
    if (pl_cell_begin(f->ledger, id, (uint32_t)number) == 0)
        pl_cell_set_file(f->ledger, file);
}

static inline pl_cell_run fixture_finish(fixture *f)
{
    pl_cell_run run = {0};
    if (pl_cell_end(f->ledger, &run) < 0)
        run.number = 0;
    return run;
}

/* A crash of the command, by SIGSEGV, just now; frames are filled in by the caller. */
static inline pl_crash *fixture_crash(fixture *f)
{
    pl_crash *crash = &f->ledger->crashes[0];
    *crash =
        (pl_crash){.pid = 4121, .tid = 4121, .signal = SIGSEGV, .time_ns = pl_clock_monotonic_ns()};
    atomic_store(&crash->state, PL_CRASH_COMPLETE);
    return crash;
}

static inline void fixture_frame(pl_crash *crash, const char *file, uint32_t line,
                                 const char *function)
{
    pl_python_frame *frame = &crash->python[crash->n_python_frames++];
    snprintf(frame->file, sizeof(frame->file), "%s", file);
    snprintf(frame->function, sizeof(frame->function), "%s", function);
    frame->line = line;
}

/* A timeline of 100 s that rises from 1 GiB to `top_bytes`. */
static inline void fixture_samples(fixture *f, uint64_t top_bytes)
{
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t bytes = PL_GIB + (top_bytes - PL_GIB) / 999 * i;
        pl_memory_sample sample = {
            .time_ns = f->ledger->header.started_monotonic_ns + i * 100 * PL_NS_PER_MS,
            .charged_bytes = bytes,
            .resident_bytes = bytes,
            .available_bytes = 4 * PL_GIB,
        };
        f->ledger->samples[i] = sample;
    }
    atomic_store(&f->ledger->sum.n_samples, 1000);
    atomic_store(&f->ledger->sum.peak_resident_bytes, top_bytes);
}

/* Not inlined: gcc 12 then takes the text, which open_memstream() sets, for a pointer to itself. */
__attribute__((noinline, unused)) static char *fixture_text(const json_t *report, unsigned flags)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    pl_report_text(report, out, flags);
    fclose(out);
    return text;
}

/* ---- for cases: one fixture each, and what its report says ---- */

static inline int setup(void **state)
{
    fixture *f = malloc(sizeof(*f));
    *state = f;
    return f == NULL ? -1 : fixture_init(f);
}

static inline int teardown(void **state)
{
    fixture_done(*state);
    free(*state);
    return 0;
}

static inline json_t *build(const fixture *f)
{
    json_t *report = NULL;
    pl_error error = {0};
    if (pl_report_build(f->ledger, f->record.directory, &report, &error) < 0)
        fail_msg("%s", error.message);
    return report;
}

static inline const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL)
        fail_msg("no text in '%s'", key);
    return text;
}

static inline json_int_t number_of(const json_t *object, const char *key)
{
    if (!json_is_integer(json_object_get(object, key)))
        fail_msg("no number in '%s'", key);
    return json_integer_value(json_object_get(object, key));
}

#define ASSERT_SAYS(text, part)                                                                    \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("'%s' is not in '%s'", (part), (text));                                       \
    } while (0)

#endif
