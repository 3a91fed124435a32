/* SPDX-License-Identifier: Apache-2.0 */
/* See hang.h. */
#include "report/hang.h"

#include <errno.h>

#include "report/json_file.h"
#include "report/report.h"

static const pl_place_context no_places = {.directory = ""};

static json_t *build_thread(pl_json *json, pid_t pid, const pl_inspect_thread *thread)
{
    size_t n_python = (size_t)pl_clamp_u64(
        (uint64_t)(thread->n_python_frames < 0 ? 0 : thread->n_python_frames), 0, PL_PYTHON_FRAMES);
    int n_native = thread->native.n_frames;
    json_t *object = json_object();
    pl_json_put(json, object, "pid", json_integer(pid));
    pl_json_put(json, object, "tid", json_integer(thread->tid));
    pl_json_put(json, object, "name", pl_json_field(thread->name, sizeof(thread->name)));
    pl_json_put(json, object, "waits_for",
                pl_json_field(thread->waits_for, sizeof(thread->waits_for)));
    pl_json_put(json, object, "python",
                pl_json_python_stack(json, &no_places, thread->python, n_python));
    pl_json_put(
        json, object, "native",
        pl_json_native_stack(json, thread->native.frames, n_native > 0 ? (size_t)n_native : 0));
    return object;
}

static json_t *build(pl_json *json, const pl_inspect_process *processes, size_t n, double idle_s)
{
    json_t *hang = json_object(), *threads = json_array(), *cycle = json_array();
    pl_json_put(json, hang, "idle_s", pl_json_seconds(idle_s));
    for (size_t i = 0; i < n; i++) {
        for (int t = 0; t < processes[i].n_threads; t++)
            pl_json_add(json, threads,
                        build_thread(json, processes[i].pid, &processes[i].threads[t]));
        if (json_array_size(cycle) == 0)
            for (int t = 0; t < processes[i].n_cycle; t++)
                pl_json_add(json, cycle, json_integer(processes[i].cycle[t]));
    }
    pl_json_put(json, hang, "threads", threads);
    if (json_array_size(cycle) > 0)
        pl_json_put(json, hang, "cycle", cycle);
    else
        json_decref(cycle);
    return hang;
}

int pl_report_write_hang(const char *record_directory, const pl_inspect_process *processes,
                         size_t n, double idle_s, pl_error *reterr)
{
    char path[PATH_MAX];
    int r = pl_run_record_path(record_directory, PL_RECORD_HANG, path);
    if (r < 0)
        return pl_error_set(reterr, r, "the record's path is too long");
    pl_json json = {0};
    json_t *hang = build(&json, processes, n, idle_s);
    r = json.failed ? pl_error_set(reterr, -ENOMEM, "cannot record the hang: out of memory")
                    : pl_report_save(hang, path, reterr);
    json_decref(hang);
    return r;
}

static void find_cells(pl_json *json, const pl_place_context *places, const json_t *hang)
{
    const json_t *threads = json_object_get(hang, "threads");
    for (size_t i = 0; i < json_array_size(threads); i++) {
        const json_t *stack = json_object_get(json_array_get(threads, i), "python");
        for (size_t j = 0; j < json_array_size(stack); j++)
            pl_json_find_cell(json, places, json_array_get(stack, j));
    }
}

int pl_hang_load(const char *record_directory, const pl_place_context *places, json_t **ret_hang)
{
    char path[PATH_MAX];
    json_t *hang = NULL;
    int r = pl_run_record_path(record_directory, PL_RECORD_HANG, path);
    if (r == 0)
        r = pl_json_file_load(path, &hang, NULL);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    pl_json json = {0};
    find_cells(&json, places, hang);
    if (json.failed) {
        json_decref(hang);
        return -ENOMEM;
    }
    *ret_hang = hang;
    return 0;
}

bool pl_hang_has_cycle(const json_t *hang)
{
    return json_array_size(json_object_get(hang, "cycle")) > 0;
}
