/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of children that really crashed: through our own functions, libc's, a stripped library,
 * calls of bad addresses; and what is said when the record is damaged. */
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "sanitized.h"
#include "test_inspect_crash.h"

/* Keeps a call from becoming a jump, which would take the caller off the stack. */
#define KEEP_FRAME() __asm__ volatile("")

static pl_native_stack stack;

static const pl_native_frame *unwind_crash(void)
{
    pl_error error = {0};
    memset(&stack, 0, sizeof stack);
    if (pl_inspect_crash(crash_record, crash_directory, &stack, &error) < 0)
        fail_msg("%s", error.message);
    return stack.frames;
}

/* The index of the first frame with this name, at `from` or further out; fails without one. */
static int index_of(const char *symbol, int from)
{
    for (int i = from; i < stack.n_frames; i++)
        if (strcmp(stack.frames[i].symbol, symbol) == 0)
            return i;
    for (int i = 0; i < stack.n_frames; i++)
        print_message("#%d %s+0x%lx %s\n", i, stack.frames[i].module,
                      (unsigned long)stack.frames[i].offset, stack.frames[i].symbol);
    fail_msg("no frame '%s' from %d on", symbol, from);
    return -1;
}

/* --- our own functions --- */

/* Not NULL: UndefinedBehaviorSanitizer would stop a store to it before the CPU does. */
static volatile int *volatile nowhere = (volatile int *)8;

static PL_NOINLINE void inner(void)
{
    *nowhere = 1;
    KEEP_FRAME();
}

static PL_NOINLINE void middle(void)
{
    inner();
    KEEP_FRAME();
}

static PL_NOINLINE void outer(void)
{
    middle();
    KEEP_FRAME();
}

static void functions_are_named_from_the_fault_outwards(void **state)
{
    (void)state;
    crash_in_child(outer);
    const pl_native_frame *frames = unwind_crash();
    assert_true(stack.n_frames >= 5);
    assert_string_equal(frames[0].symbol, "inner");
    assert_string_equal(frames[1].symbol, "middle");
    assert_string_equal(frames[2].symbol, "outer");
    assert_int_equal(frames[0].address, crash_record->registers[PL_REGISTER_PC]);
    index_of("main", 4);
    char self[256] = {0};
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_string_equal(frames[0].module, self);
}

static PL_NOINLINE int recurse(int depth)
{
    if (depth == 0) {
        inner();
        return 0;
    }
    int deeper = recurse(depth - 1);
    KEEP_FRAME();
    return deeper + 1;
}

static void recurse_far(void)
{
    recurse(10 * PL_NATIVE_FRAMES);
}

static void a_deep_stack_is_cut_at_its_innermost_frames(void **state)
{
    (void)state;
    crash_in_child(recurse_far);
    const pl_native_frame *frames = unwind_crash();
    assert_int_equal(stack.n_frames, PL_NATIVE_FRAMES);
    assert_string_equal(frames[0].symbol, "inner");
    assert_string_equal(frames[PL_NATIVE_FRAMES - 1].symbol, "recurse");
}

/* --- through libc --- */

static PL_NOINLINE int compare_badly(const void *a, const void *b)
{
    *nowhere = 1;
    return *(const int *)a - *(const int *)b;
}

/* By what no sanitizer stands in front of, as it does of qsort(). */
static PL_NOINLINE void find_number(void)
{
    int numbers[] = {3, 1, 2}, wanted = 2;
    size_t n = 3;
    (void)lfind(&wanted, numbers, &n, sizeof numbers[0], compare_badly);
    KEEP_FRAME();
}

static void a_callback_is_unwound_through_the_library(void **state)
{
    (void)state;
    crash_in_child(find_number);
    const pl_native_frame *frames = unwind_crash();
    assert_string_equal(frames[0].symbol, "compare_badly");
    int caller = index_of("find_number", 2);
    assert_int_equal(frames[caller - 1].module[0], '/');
    assert_string_not_equal(frames[caller - 1].module, frames[0].module);
    assert_true(frames[caller - 1].offset > 0);
}

static PL_NOINLINE void give_up(void)
{
    abort();
}

static void abort_shows_who_called_it(void **state)
{
    (void)state;
    crash_in_child(give_up);
    unwind_crash();
    int raised = index_of("raise", 0);
    int aborted = index_of("abort", raised + 1);
    index_of("give_up", aborted + 1);
}

/* --- through libraries made for the purpose --- */

static void (*library_enter)(void);
static char library_path[128];

/* Builds a library from `source` and finds its function `symbol`. CC is for this machine, where
 * that is not the one that compiles. */
static void load_library(const char *name, const char *flags, const char *source,
                         const char *symbol)
{
    char code[128], command[512];
    snprintf(code, sizeof code, "%s/%s.c", crash_directory, name);
    snprintf(library_path, sizeof library_path, "%s/lib%s.so", crash_directory, name);
    FILE *file = fopen(code, "w");
    assert_non_null(file);
    fputs(source, file);
    fclose(file);
    snprintf(command, sizeof command, "${CC:-cc} -shared -fPIC %s -o %s %s", flags, library_path,
             code);
    assert_int_equal(system(command), 0);
    void *library = dlopen(library_path, RTLD_NOW);
    assert_non_null(library);
    *(void **)&library_enter = dlsym(library, symbol);
    assert_non_null(library_enter);
}

static uint64_t library_base(void)
{
    Dl_info info;
    assert_true(dladdr(*(void **)&library_enter, &info));
    return (uint64_t)info.dli_fbase;
}

static const char library_source[] =
    "static __attribute__((noinline)) void hidden(volatile int *p) { *p = 1; }\n"
    "void enter(void) __asm__(\"_ZN5fleet5enterEv\");\n"
    "void enter(void)\n"
    "{\n"
    "    hidden(0); /* line 5 */\n"
    "    __asm__ volatile(\"\");\n"
    "}\n";

static PL_NOINLINE void call_library(void)
{
    library_enter();
    KEEP_FRAME();
}

static void a_stripped_library_gives_offsets_and_no_wrong_names(void **state)
{
    (void)state;
    load_library("stripped", "-O2 -fomit-frame-pointer -s", library_source, "_ZN5fleet5enterEv");
    crash_in_child(call_library);
    const pl_native_frame *frames = unwind_crash();
    assert_string_equal(frames[0].module, library_path);
    assert_int_equal(frames[0].offset, crash_record->registers[PL_REGISTER_PC] - library_base());
    assert_string_equal(frames[0].symbol, "");
    assert_string_equal(frames[1].symbol, "fleet::enter"); /* exported: the dynamic table has it */
    assert_string_equal(frames[2].symbol, "call_library");
}

static void debug_information_gives_file_and_line(void **state)
{
    (void)state;
    load_library("debug", "-O2 -g", library_source, "_ZN5fleet5enterEv");
    crash_in_child(call_library);
    const pl_native_frame *frames = unwind_crash();
    assert_string_equal(frames[0].symbol, "hidden");
    assert_non_null(strstr(frames[0].source, "debug.c:1"));
    assert_string_equal(frames[1].symbol, "fleet::enter");
    assert_non_null(strstr(frames[1].source, "debug.c:5"));
}

static void a_file_that_changed_after_the_crash_gives_no_names(void **state)
{
    (void)state;
    load_library("changed", "-O2 -g", library_source, "_ZN5fleet5enterEv");
    crash_in_child(call_library);
    usleep(20000); /* file times have the kernel's tick: 4 ms, 10 at the most */
    assert_int_equal(chmod(library_path, 0700), 0);
    const pl_native_frame *frames = unwind_crash();
    assert_int_equal(stack.n_frames, 1);
    assert_string_equal(frames[0].module, library_path);
    assert_string_equal(frames[0].symbol, "");
    assert_int_equal(frames[0].offset, crash_record->registers[PL_REGISTER_PC] - library_base());
}

static void sampled_offsets_are_named_without_a_process(void **state)
{
    (void)state;
    load_library("sampled", "-O2 -g", library_source, "_ZN5fleet5enterEv");
    crash_in_child(call_library);
    const pl_native_frame *frames = unwind_crash();
    pl_native_frame sampled[3] = {{.offset = frames[1].offset}, {.offset = 1}, {.offset = 1}};
    strcpy(sampled[0].module, library_path);
    strcpy(sampled[1].module, "/nowhere/at/all.so");
    pl_inspect_symbols(sampled, PL_COUNT_OF(sampled));
    assert_string_equal(sampled[0].symbol, "fleet::enter");
    assert_non_null(strstr(sampled[0].source, "sampled.c:5"));
    assert_string_equal(sampled[1].symbol, "");
    assert_string_equal(sampled[2].symbol, "");
}

/* A record is anybody's text: what it calls a module may be a pipe that nobody writes to. */
static void a_module_that_is_a_pipe_is_not_waited_for(void **state)
{
    (void)state;
    char path[64];
    pl_native_frame frame = {.offset = 1};
    snprintf(path, sizeof path, "%s/pipe.so", crash_directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    strcpy(frame.module, path);
    alarm(60); /* ends a test that hangs, and judges nothing */
    pl_inspect_symbol(&frame);
    alarm(0);
    assert_string_equal(frame.symbol, "");
    assert_int_equal(unlink(path), 0);
}

static void types_of_exceptions_are_told_in_cpp(void **state)
{
    (void)state;
    char name[32];
    pl_inspect_type_name("St9bad_alloc", name, sizeof name);
    assert_string_equal(name, "std::bad_alloc");
    pl_inspect_type_name("not a type", name, sizeof name);
    assert_string_equal(name, "not a type");
    pl_inspect_type_name("St9bad_alloc", name, 8);
    assert_string_equal(name, "std::ba");
}

/* --- where nothing proves the next frame --- */

/* Of a called pointer, UBSan since clang 17 looks at the bytes before the function: it would crash
 * there. */
UNWATCHED static PL_NOINLINE void call_bad_address(void)
{
    void (*volatile bad)(void) = (void (*)(void))(uintptr_t)0x10;
    bad();
    KEEP_FRAME();
}

static void a_call_of_a_bad_address_shows_the_caller(void **state)
{
    (void)state;
    crash_in_child(call_bad_address);
    const pl_native_frame *frames = unwind_crash();
    assert_int_equal(frames[0].address, 0x10);
    assert_string_equal(frames[0].module, "");
    assert_string_equal(frames[1].symbol, "call_bad_address");
    index_of("main", 3);
}

/* A return to a bad address, with a pointer to code on top of the stack. */
static PL_NOINLINE void return_to_bad_address(void)
{
#if defined(__x86_64__)
    __asm__ volatile("push %0\n\tpush $0x10\n\tret" ::"r"(&outer));
#else
    __asm__ volatile("str %0, [sp, #-16]!\n\tmov x30, #0x10\n\tret" ::"r"(&outer) : "x30");
#endif
}

static void a_smashed_return_address_is_not_followed(void **state)
{
    (void)state;
    crash_in_child(return_to_bad_address);
    const pl_native_frame *frames = unwind_crash();
    assert_int_equal(stack.n_frames, 1);
    assert_int_equal(frames[0].address, 0x10);
}

/* Hand-written code without an unwind table, and a frame pointer that leads to `outer`. */
void no_table(const void *fake_frame);
__asm__(".text\n"
        ".type no_table, %function\n"
        "no_table:\n"
#if defined(__x86_64__)
        "    mov %rdi, %rbp\n"
        "    xor %eax, %eax\n"
        "    mov %eax, (%rax)\n"
#else
        "    mov x29, x0\n"
        "    mov x1, #0\n"
        "    str xzr, [x1]\n"
#endif
        "    ret\n"
        ".size no_table, . - no_table\n");

static void call_no_table(void)
{
    const uint64_t fake_frame[] = {(uint64_t)fake_frame + 64, (uint64_t)&outer + 4};
    no_table(fake_frame);
}

static void without_an_unwind_table_the_stack_ends(void **state)
{
    (void)state;
    crash_in_child(call_no_table);
    const pl_native_frame *frames = unwind_crash();
    assert_int_equal(stack.n_frames, 1);
    assert_string_equal(frames[0].symbol, "no_table");
}

/* --- damaged records --- */

static int inspect_code(void)
{
    stack.n_frames = 77;
    int r = pl_inspect_crash(crash_record, crash_directory, &stack, NULL);
    if (r < 0)
        assert_int_equal(stack.n_frames, 77); /* an output is not touched on failure */
    return r;
}

static void damaged_records_are_errors_with_the_files_name(void **state)
{
    (void)state;
    char path[PATH_MAX];
    crash_in_child(outer);
    crash_path(path, sizeof path);
    pl_crash good = *crash_record;

    crash_record->maps_bytes = UINT64_MAX;
    assert_int_equal(inspect_code(), PL_ECORRUPT);
    crash_record->maps_bytes = 0;
    assert_int_equal(inspect_code(), PL_ECORRUPT);
    crash_record->maps_bytes = 20; /* not one whole line */
    assert_int_equal(inspect_code(), PL_ECORRUPT);

    *crash_record = good;
    assert_int_equal(truncate(path, (off_t)good.maps_bytes - 1), 0);
    assert_int_equal(inspect_code(), PL_ECORRUPT);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(inspect_code(), PL_ECORRUPT);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(inspect_code(), -ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(inspect_code(), PL_EFORMAT);

    pl_error error = {0};
    assert_int_equal(pl_inspect_crash(&good, crash_directory, &stack, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, path));
}

static void a_stack_cut_short_is_unwound_as_far_as_it_goes(void **state)
{
    (void)state;
    char path[PATH_MAX];
    crash_in_child(outer);
    crash_path(path, sizeof path);
    unwind_crash();
    int whole = stack.n_frames;
    crash_record->stack_bytes = UINT64_MAX;
    unwind_crash();
    assert_int_equal(stack.n_frames, whole);
    assert_int_equal(truncate(path, (off_t)crash_record->maps_bytes), 0);
    const pl_native_frame *frames = unwind_crash();
#if defined(__x86_64__)
    assert_int_equal(stack.n_frames, 1);
#else
    assert_int_equal(stack.n_frames, 2); /* the caller of what calls nothing is in a register */
    assert_string_equal(frames[1].symbol, "middle");
#endif
    assert_string_equal(frames[0].symbol, "inner");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_named_from_the_fault_outwards),
        cmocka_unit_test(a_deep_stack_is_cut_at_its_innermost_frames),
        cmocka_unit_test(a_callback_is_unwound_through_the_library),
        cmocka_unit_test(abort_shows_who_called_it),
        cmocka_unit_test(a_stripped_library_gives_offsets_and_no_wrong_names),
        cmocka_unit_test(debug_information_gives_file_and_line),
        cmocka_unit_test(a_file_that_changed_after_the_crash_gives_no_names),
        cmocka_unit_test(sampled_offsets_are_named_without_a_process),
        cmocka_unit_test(a_module_that_is_a_pipe_is_not_waited_for),
        cmocka_unit_test(types_of_exceptions_are_told_in_cpp),
        cmocka_unit_test(a_call_of_a_bad_address_shows_the_caller),
        cmocka_unit_test(a_smashed_return_address_is_not_followed),
        cmocka_unit_test(without_an_unwind_table_the_stack_ends),
        cmocka_unit_test(damaged_records_are_errors_with_the_files_name),
        cmocka_unit_test(a_stack_cut_short_is_unwound_as_far_as_it_goes),
    };
    return cmocka_run_group_tests_name("inspect_crash", tests, crash_setup, crash_teardown);
}
