/* SPDX-License-Identifier: Apache-2.0 */
/* Runs graphs on devices, for tests/kernels. One command a line on stdin, one answer a line on
 * stdout: "ok ..." or "refused CODE why". Words are as graph_words.h and given_files.h say.
 *   set [strict] [cpu=N] [hide=NAME]... [limit=NAME=BYTES]...    a new runtime, with these devices
 *   devices                         what there is: NAME BUDGET IN_USE PEAK, one after the other
 *   device NAME | -                 what is added from now on is placed there, or nowhere
 *   add OP NAME INPUTS [ATTRIBUTE=KIND:VALUE]...
 *   give NAME window|memory|transposed PATH
 *   run CAP NAME=PATH...            "ok BEFORE GIVEN PEAK STATED", as in session_tool.c; what was
 *                                 told meanwhile follows, after '|'
 *   both THREADS CAP NAME=PATH...   the same run by several threads at once, each with its own file
 *   explain NAME...                 the plan as JSON;  text NAME...: for people, lines by '|'
 *   discrete                        devices say that their memory is not the host's
 *   fail FUNCTION CODE N            from its Nth call on, an OpenCL function fails; 0: never */
#include <inttypes.h>
#include <pthread.h>

#include "device/opencl.h"
#include "given_files.h"
#include "graph/node.h"
#include "plimsoll/device.h"

enum { THREADS_MAX = 8 };

static pl_runtime *runtime;
static char told[1 << 14];

/* ---- failures ---- */

static pl_opencl real;
static int fail_code, fail_at, n_calls;

static bool fails(void)
{
    return fail_at > 0 && ++n_calls >= fail_at;
}

static cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t size, void *host,
                            cl_int *code)
{
    if (fails())
        return *code = fail_code, NULL;
    return real.clCreateBuffer(context, flags, size, host, code);
}

static cl_context
create_context(const cl_context_properties *properties, cl_uint n, const cl_device_id *ids,
               void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *data,
               cl_int *code)
{
    if (fails())
        return *code = fail_code, NULL;
    return real.clCreateContext(properties, n, ids, notify, data, code);
}

static cl_int build_program(cl_program program, cl_uint n, const cl_device_id *ids,
                            const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                            void *data)
{
    return fails() ? fail_code : real.clBuildProgram(program, n, ids, options, notify, data);
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint rank,
                             const size_t *offset, const size_t *global, const size_t *local,
                             cl_uint n, const cl_event *events, cl_event *event)
{
    return fails() ? fail_code
                   : real.clEnqueueNDRangeKernel(queue, kernel, rank, offset, global, local, n,
                                                 events, event);
}

static void *map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                        size_t offset, size_t size, cl_uint n, const cl_event *events,
                        cl_event *event, cl_int *code)
{
    if (fails())
        return *code = fail_code, NULL;
    return real.clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, n, events, event,
                                   code);
}

static cl_int read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                          size_t size, void *to, cl_uint n, const cl_event *events, cl_event *event)
{
    return fails() ? fail_code
                   : real.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, to, n, events,
                                              event);
}

static cl_int device_info(cl_device_id id, cl_device_info what, size_t n, void *to, size_t *ret_n)
{
    if (what != CL_DEVICE_HOST_UNIFIED_MEMORY)
        return real.clGetDeviceInfo(id, what, n, to, ret_n);
    *(cl_bool *)to = CL_FALSE;
    return CL_SUCCESS;
}

static pl_opencl *table(void)
{
    pl_opencl *cl = pl_opencl_load();
    if (!real.clFinish)
        real = *cl;
    return cl;
}

static int do_discrete(void)
{
    table()->clGetDeviceInfo = device_info;
    return 0;
}

static int do_fail(void)
{
    pl_opencl *cl = table();
    n_calls = 0;
    fail_code = atoi(words[2]);
    fail_at = atoi(words[3]);
    if (strcmp(words[1], "clCreateBuffer") == 0)
        cl->clCreateBuffer = create_buffer;
    else if (strcmp(words[1], "clCreateContext") == 0)
        cl->clCreateContext = create_context;
    else if (strcmp(words[1], "clBuildProgram") == 0)
        cl->clBuildProgram = build_program;
    else if (strcmp(words[1], "clEnqueueMapBuffer") == 0)
        cl->clEnqueueMapBuffer = map_buffer;
    else if (strcmp(words[1], "clEnqueueReadBuffer") == 0)
        cl->clEnqueueReadBuffer = read_buffer;
    else
        cl->clEnqueueNDRangeKernel = enqueue_kernel;
    return 0;
}

/* ---- devices ---- */

static void hear(void *context, const char *text)
{
    (void)context;
    strncat(told, "|", sizeof told - strlen(told) - 1);
    strncat(told, text, sizeof told - strlen(told) - 1);
}

static int make_runtime(const pl_device_options *options, uint64_t cap)
{
    pl_runtime_unref(runtime);
    runtime = NULL;
    const pl_runtime_options how = {.cap_bytes = cap, .n_threads = 2};
    int r = pl_runtime_new(&how, &runtime, &error);
    return r < 0 || !options ? r : pl_runtime_set_devices(runtime, options, &error);
}

static pl_device_options options;
static const char *hidden[WORDS];
static pl_device_limit limits[WORDS];
static char kept[1 << 12];

static int do_set(void)
{
    options = (pl_device_options){.hidden = hidden, .limits = limits, .message = hear};
    char *at = kept;
    for (int i = 1; i < n_words; i++) {
        char *word = strcpy(at, words[i]), *value = strchr(word, '=');
        at += strlen(word) + 1;
        if (value)
            value++;
        if (strcmp(word, "strict") == 0)
            options.strict = true;
        else if (strncmp(word, "cpu=", 4) == 0)
            options.opencl_cpu = atoi(value);
        else if (strncmp(word, "hide=", 5) == 0)
            hidden[options.n_hidden++] = value;
        else {
            char *bytes = strchr(value, '=');
            *bytes++ = '\0';
            limits[options.n_limits++] = (pl_device_limit){value, strtoull(bytes, NULL, 10)};
        }
    }
    return make_runtime(&options, 0);
}

static int do_devices(void)
{
    int n = pl_runtime_n_devices(runtime);
    printf("ok");
    for (int i = 0; i < n; i++) {
        pl_device_info info;
        int r = pl_runtime_device(runtime, i, &info, &error);
        if (r < 0)
            return r;
        printf(" %s %" PRIu64 " %" PRIu64 " %" PRIu64, info.name, info.budget_bytes,
               info.in_use_bytes, info.peak_bytes);
    }
    return 0;
}

static int do_device(void)
{
    pl_graph_pop_device(graph);
    return pl_graph_push_device(graph, strcmp(words[1], "-") == 0 ? NULL : words[1], &error);
}

/* ---- graphs ---- */

static int do_add(void)
{
    pl_node *node;
    return add_node(&node);
}

static int do_give(void)
{
    read_given();
    return 0;
}

/* ---- runs ---- */

typedef struct situation {
    pl_session *session;
    pl_feed feeds[GIVEN];
    int n_feeds;
    pl_fetch fetches[WORDS];
    const char *paths[WORDS];
    int n_fetches;
} situation;

static int begin(situation *s, int first)
{
    *s = (situation){0};
    int r = pl_session_new(graph, runtime, &s->session, &error);
    for (int i = 0; r == 0 && i < n_givens; i++) {
        pl_tensor *tensor;
        r = open_given(runtime, &givens[i], &tensor);
        if (tensor)
            s->feeds[s->n_feeds++] = (pl_feed){givens[i].node, tensor};
    }
    for (int i = first; i < n_words; i++) {
        char *sign = strchr(words[i], '=');
        if (sign)
            *sign++ = '\0';
        s->paths[s->n_fetches] = sign;
        s->fetches[s->n_fetches++].node = pl_graph_find(graph, words[i]);
    }
    return r;
}

static void end(situation *s)
{
    pl_session_free(s->session);
    for (int i = 0; i < s->n_feeds; i++)
        pl_tensor_unref(s->feeds[i].tensor);
    if (pl_runtime_claimed_bytes(runtime) != 0) {
        fprintf(stderr, "device_tool: %" PRIu64 " bytes are still claimed\n",
                pl_runtime_claimed_bytes(runtime));
        exit(1);
    }
    for (int i = 1; pl_graph_places(graph) && i < pl_runtime_n_devices(runtime); i++) {
        pl_device_info info;
        if (pl_runtime_device(runtime, i, &info, &error) < 0 || info.in_use_bytes != 0) {
            fprintf(stderr, "device_tool: %s is still in use\n", info.name);
            exit(1);
        }
    }
}

static int run_once(situation *s, const char *suffix, pl_error *reterr)
{
    pl_tensor *tensors[WORDS] = {0};
    char path[600];
    int r = pl_session_run(s->session, s->fetches, s->n_fetches, s->feeds, s->n_feeds, NULL,
                           tensors, reterr);
    for (int i = 0; i < s->n_fetches; i++) {
        snprintf(path, sizeof path, "%s%s", s->paths[i], suffix);
        if (r == 0)
            r = pl_tensor_save_npy(tensors[i], path, reterr);
        pl_tensor_unref(tensors[i]);
    }
    return r;
}

static int do_run(void)
{
    situation s = {0};
    pl_run_cost cost = {0};
    int r = make_runtime(&options, strtoull(words[1], NULL, 10));
    told[0] = '\0';
    if (r == 0)
        r = begin(&s, 2);
    uint64_t before = pl_runtime_claimed_bytes(runtime),
             given_peak = pl_runtime_peak_bytes(runtime);
    if (r == 0)
        r = pl_session_explain(s.session, s.fetches, s.n_fetches, s.feeds, s.n_feeds, NULL, true,
                               NULL, &cost, &error);
    if (r == 0)
        r = run_once(&s, "", &error);
    uint64_t peak = pl_runtime_peak_bytes(runtime);
    end(&s);
    if (r == 0)
        printf("ok %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "%s", before, given_peak, peak,
               cost.peak_bytes, told);
    return r;
}

typedef struct thread {
    pthread_t id;
    situation *situation;
    char suffix[8];
    int code;
    pl_error error;
} thread;

static void *run_thread(void *context)
{
    thread *t = context;
    t->code = run_once(t->situation, t->suffix, &t->error);
    return NULL;
}

static int do_both(void)
{
    situation s = {0};
    static thread threads[THREADS_MAX];
    int n = atoi(words[1]), r = make_runtime(&options, strtoull(words[2], NULL, 10));
    if (r == 0)
        r = begin(&s, 3);
    for (int i = 0; r == 0 && i < n; i++) {
        threads[i] = (thread){.situation = &s};
        snprintf(threads[i].suffix, sizeof threads[i].suffix, ".%d", i);
        pthread_create(&threads[i].id, NULL, run_thread, &threads[i]);
    }
    for (int i = 0; r == 0 && i < n; i++)
        pthread_join(threads[i].id, NULL);
    for (int i = 0; r == 0 && i < n; i++) {
        r = threads[i].code;
        error = r < 0 ? threads[i].error : error;
    }
    end(&s);
    if (r == 0)
        printf("ok");
    return r;
}

static int do_explain(bool as_json)
{
    situation s = {0};
    char *text = NULL;
    int r = make_runtime(&options, 0);
    if (r == 0)
        r = begin(&s, 1);
    if (r == 0)
        r = pl_session_explain(s.session, s.fetches, s.n_fetches, s.feeds, s.n_feeds, NULL, as_json,
                               &text, NULL, &error);
    for (char *at = text; at && *at; at++)
        *at = *at == '\n' ? '|' : *at;
    if (r == 0)
        printf("ok %.*s", (int)strlen(text) - 1, text);
    free(text);
    end(&s);
    return r;
}

static int do_command(void)
{
    static const struct {
        const char *name;
        int (*run)(void);
        bool says_ok;
    } commands[] = {
        {"set", do_set, true},           {"devices", do_devices, false}, {"add", do_add, true},
        {"device", do_device, true},     {"give", do_give, true},        {"fail", do_fail, true},
        {"discrete", do_discrete, true}, {"run", do_run, false},         {"both", do_both, false}};
    for (size_t i = 0; i < PL_COUNT_OF(commands); i++)
        if (strcmp(words[0], commands[i].name) == 0) {
            int r = commands[i].run();
            if (r >= 0 && commands[i].says_ok)
                printf("ok");
            return r;
        }
    return do_explain(strcmp(words[0], "explain") == 0);
}

int main(void)
{
    static char line[1 << 16];
    if (pl_graph_new(&graph, &error) < 0 || make_runtime(NULL, 0) < 0)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        split_words(line);
        int r = do_command();
        if (r < 0)
            printf("refused %s %s", pl_error_name(r), error.message);
        putchar('\n');
        fflush(stdout);
    }
    pl_graph_free(graph);
    pl_runtime_unref(runtime);
    return 0;
}
