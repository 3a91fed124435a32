/* SPDX-License-Identifier: Apache-2.0 */
/* Names of devices, where nodes are placed, and the budget of a device. No device is needed. */
#include "graph_fixture.h"

#include <pthread.h>
#include <unistd.h>

#include "device/room.h"
#include "plimsoll/device.h"
#include "plimsoll/session.h"
#include "tensor/device_name.h"

static void names_are_tensorflows(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } good[] = {
        {"/GPU:0", "/GPU:0"},
        {"/device:GPU:12", "/GPU:12"},
        {"gpu:3", "/GPU:3"},
        {"CPU", "/CPU:0"},
        {"/cpu:0", "/CPU:0"},
        {"/job:localhost/replica:0/task:0/device:CPU:0", "/CPU:0"},
        {"/job:localhost/task:0/GPU:9999", "/GPU:9999"},
    };
    static const char *const bad[] = {"",        "/",       "GPU:",           "GPU:x",  "GPU:-1",
                                      "/TPU:0",  "/GPU:0/", "/job:far/GPU:0", "GPU:0x", "device:",
                                      "/task:0", "GPUS",    "/GPU:12345",     ":0"};
    for (size_t i = 0; i < PL_COUNT_OF(good); i++) {
        pl_device_name name;
        char text[PL_DEVICE_NAME_BYTES];
        assert_true(pl_device_name_parse(good[i].text, &name));
        assert_string_equal(pl_device_name_format(name, text), good[i].name);
    }
    for (size_t i = 0; i < PL_COUNT_OF(bad); i++)
        if (pl_device_name_parse(bad[i], &(pl_device_name){0}))
            fail_msg("'%s' is no name", bad[i]);
}

static void a_node_has_the_device_that_was_pushed_last(void **state)
{
    (void)state;
    pl_node *before = place("before", PL_F32, PL_SHAPE(2));
    assert_int_equal(pl_graph_push_device(graph, "CPU", &error), 0);
    assert_string_equal(pl_node_device(must_add("neg", "host", NODES(before), NO_ATTRS)), "/CPU:0");
    assert_false(pl_graph_places(graph)); /* nobody need ask for devices */
    pl_graph_pop_device(graph);
    assert_int_equal(pl_graph_push_device(graph, "gpu:1", &error), 0);
    pl_node *outer = must_add("neg", "outer", NODES(before), NO_ATTRS);
    assert_int_equal(pl_graph_push_device(graph, NULL, &error), 0);
    pl_node *nowhere = must_add("neg", "nowhere", NODES(before), NO_ATTRS);
    pl_graph_pop_device(graph);
    pl_node *again = must_add("neg", "again", NODES(before), NO_ATTRS);
    pl_graph_pop_device(graph);
    pl_graph_pop_device(graph); /* one too many */
    pl_node *after = must_add("neg", "after", NODES(before), NO_ATTRS);
    assert_null(pl_node_device(before));
    assert_string_equal(pl_node_device(outer), "/GPU:1");
    assert_null(pl_node_device(nowhere));
    assert_string_equal(pl_node_device(again), "/GPU:1");
    assert_null(pl_node_device(after));
    assert_true(pl_graph_places(graph));
    assert_int_equal(pl_graph_push_device(graph, "/TPU:0", &error), -EINVAL);
    assert_string_equal(error.message,
                        "'/TPU:0' is not a device: names are like \"/GPU:0\" or \"/CPU:0\"");
}

/* ---- the budget ---- */

#define PATIENT ((pl_room_check){0})

static void a_claim_that_can_never_be_is_refused(void **state)
{
    (void)state;
    uint64_t in_use, peak;
    pl_room room;
    pl_room_init(&room, 100);
    assert_int_equal(pl_room_claim(&room, 101, PATIENT), PL_EBUDGET);
    assert_int_equal(pl_room_claim(&room, UINT64_MAX, PATIENT), PL_EBUDGET);
    assert_int_equal(pl_room_claim(&room, 60, PATIENT), 0);
    assert_int_equal(pl_room_claim(&room, 40, PATIENT), 0);
    pl_room_release(&room, 60);
    pl_room_read(&room, &in_use, &peak);
    assert_int_equal(in_use, 40);
    assert_int_equal(peak, 100);
    pl_room_release(&room, 40);
    pl_room_done(&room);
}

static void *claim_much(void *context)
{
    pl_room *room = context;
    int r = pl_room_claim(room, 50, PATIENT);
    pl_room_release(room, 50);
    return r < 0 ? room : NULL;
}

static void a_claim_waits_for_those_that_are_in_its_way(void **state)
{
    (void)state;
    enum { WAITING = 3 };
    pthread_t threads[WAITING];
    uint64_t in_use, peak;
    pl_room room;
    pl_room_init(&room, 100);
    assert_int_equal(pl_room_claim(&room, 60, PATIENT), 0);
    for (int i = 0; i < WAITING; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, claim_much, &room), 0);
    usleep(50000); /* time to do wrong: however long, nobody gets 50 of 40 */
    pl_room_read(&room, &in_use, &peak);
    assert_int_equal(in_use, 60);
    pl_room_release(&room, 60);
    for (int i = 0; i < WAITING; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    pl_room_read(&room, &in_use, &peak);
    assert_int_equal(in_use, 0);
    assert_true(peak >= 60 && peak <= 100);
    pl_room_done(&room);
}

static int count_down(const void *context)
{
    return --*(int *)context > 0 ? 0 : -ECANCELED;
}

static void a_claim_that_waits_can_be_called_off(void **state)
{
    (void)state;
    uint64_t in_use, peak;
    int n_looks = 3;
    pl_room room;
    pl_room_init(&room, 100);
    assert_int_equal(pl_room_claim(&room, 60, PATIENT), 0);
    assert_int_equal(pl_room_claim(&room, 50, (pl_room_check){count_down, &n_looks}), -ECANCELED);
    assert_int_equal(n_looks, 0);
    pl_room_read(&room, &in_use, &peak);
    assert_int_equal(in_use, 60);
    assert_int_equal(peak, 60);
    pl_room_release(&room, 60);
    pl_room_done(&room);
}

/* ---- settings; all GPUs are hidden, so that no driver is loaded ---- */

static void hear(void *context, const char *text)
{
    assert_string_equal(text, "there is no /GPU:0: what is placed on it is computed on /CPU:0");
    ++*(int *)context;
}

static pl_runtime *runtime_with(pl_device_options options)
{
    pl_runtime *runtime;
    static const char *const all[] = {"GPU"};
    const pl_runtime_options small = {.cap_bytes = 4 * PL_MIB, .n_threads = 1};
    options.hidden = all;
    options.n_hidden = 1;
    assert_int_equal(pl_runtime_new(&small, &runtime, &error), 0);
    assert_int_equal(pl_runtime_set_devices(runtime, &options, &error), 0);
    return runtime;
}

static void devices_are_set_up_once(void **state)
{
    (void)state;
    pl_device_info info;
    pl_runtime *runtime = runtime_with((pl_device_options){0});
    assert_int_equal(pl_runtime_n_devices(runtime), 1);
    assert_int_equal(pl_runtime_device(runtime, 0, &info, &error), 0);
    assert_string_equal(info.name, "/CPU:0");
    assert_int_equal(info.kind, PL_DEVICE_CPU);
    assert_int_equal(info.budget_bytes, 4 * PL_MIB);
    assert_true(info.memory_bytes > info.budget_bytes);
    assert_int_equal(pl_runtime_device(runtime, 1, &info, &error), -EINVAL);
    assert_int_equal(pl_runtime_set_devices(runtime, &(pl_device_options){0}, &error), -EBUSY);
    pl_runtime_unref(runtime);
}

static int run_on_gpu(pl_runtime *runtime)
{
    pl_session *session;
    pl_tensor *result = NULL;
    pl_node *node = pl_graph_find(graph, "sum");
    assert_int_equal(pl_session_new(graph, runtime, &session, &error), 0);
    int r = pl_session_run(session, &(pl_fetch){node, NULL}, 1, NULL, 0, NULL, &result, &error);
    pl_tensor_unref(result);
    pl_session_free(session);
    return r;
}

static void a_missing_device_is_told_once_or_refused(void **state)
{
    (void)state;
    int n_heard = 0;
    pl_node *ones;
    const pl_shape shape = PL_SHAPE(10);
    assert_int_equal(pl_graph_push_device(graph, "/GPU:0", &error), 0);
    assert_int_equal(pl_graph_fill(graph, "ones", PL_F32, &shape, 1, &ones, &error), 0);
    must_add("add", "sum", NODES(ones, ones), NO_ATTRS);
    pl_runtime *soft =
        runtime_with((pl_device_options){.message = hear, .message_context = &n_heard});
    assert_int_equal(run_on_gpu(soft), 0);
    assert_int_equal(run_on_gpu(soft), 0);
    assert_int_equal(n_heard, 1);
    pl_runtime_unref(soft);
    pl_runtime *strict = runtime_with((pl_device_options){.strict = true});
    assert_int_equal(run_on_gpu(strict), -ENODEV);
    assert_string_equal(error.message, "add 'sum' is placed on /GPU:0, which is not there: there "
                                       "are /CPU:0; or allow soft placement");
    pl_runtime_unref(strict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(names_are_tensorflows),
        CASE(a_node_has_the_device_that_was_pushed_last),
        CASE(a_claim_that_can_never_be_is_refused),
        CASE(a_claim_waits_for_those_that_are_in_its_way),
        CASE(a_claim_that_waits_can_be_called_off),
        CASE(devices_are_set_up_once),
        CASE(a_missing_device_is_told_once_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
