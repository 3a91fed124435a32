/* SPDX-License-Identifier: Apache-2.0 */
/* Jupyter's folders, kernelspecs and twins, in a home of the test's own. That Jupyter agrees is
 * tested in tests/cli/test_jupyter.py; here the sanitizers see the same code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jupyter/folder.h"
#include "jupyter/kernelspec.h"
#include "jupyter/paths.h"
#include "jupyter/program.h"
#include "jupyter/twin.h"
#include "sys/file.h"

static char home[64];
static char kernels[PATH_MAX];
static int n_notes;

static void count_note(const char *text)
{
    (void)text;
    n_notes++;
}

static int make_home(void **state)
{
    (void)state;
    strcpy(home, "/tmp/plimsoll-test-kernelspec-XXXXXX");
    if (mkdtemp(home) == NULL || setenv("HOME", home, 1) < 0)
        return -1;
    static const char *const unset[] = {"JUPYTER_PATH",      "JUPYTER_DATA_DIR",
                                        "XDG_DATA_HOME",     "VIRTUAL_ENV",
                                        "CONDA_PREFIX",      "IPYTHONDIR",
                                        "PYTHONUSERBASE",    "PYTHONNOUSERSITE",
                                        "CONDA_DEFAULT_ENV", "JUPYTER_PREFER_ENV_PATH"};
    for (size_t i = 0; i < PL_COUNT_OF(unset); i++)
        unsetenv(unset[i]);
    n_notes = 0;
    return pl_jupyter_user_folder(kernels, NULL);
}

static int remove_home(void **state)
{
    (void)state;
    return pl_folder_remove(home);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];
    assert_int_equal(pl_file_make_folders(folder, 0777), 0);
    assert_int_equal(pl_path_join(folder, name, path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void add_kernel(const char *name, const char *text)
{
    char folder[PATH_MAX];
    assert_int_equal(pl_path_join(kernels, name, folder), 0);
    write_file(folder, "kernel.json", text);
}

static pl_kernelspecs read_home(void)
{
    pl_kernelspecs specs;
    char *folder = kernels;
    assert_int_equal(pl_kernelspecs_init(&specs, &folder, 1, NULL), 0);
    return specs;
}

static int install(const char *name, const char *budget, char path[PATH_MAX])
{
    pl_kernelspecs specs = read_home();
    pl_twin_options options = {
        .program = "/opt/plimsoll", .budget = budget, .folder = kernels, .note = count_note};
    int r = pl_twin_install(pl_kernelspecs_get(&specs, name), &options, path, NULL);
    pl_kernelspecs_done(&specs);
    return r;
}

static void folders_are_in_jupyters_order_each_once(void **state)
{
    (void)state;
    setenv("JUPYTER_PATH", "/one/:::/two:/one", 1);
    setenv("PATH", "/nowhere", 1);
    pl_jupyter_paths paths;
    assert_int_equal(pl_jupyter_paths_init(&paths, NULL), 0);
    static const char *const first[] = {"/one/kernels", "/two/kernels"};
    static const char *const last[] = {"/usr/local/share/jupyter/kernels",
                                       "/usr/share/jupyter/kernels"};
    assert_int_equal(paths.n_folders, 6);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(paths.folders[i], first[i]);
        assert_string_equal(paths.folders[3 + i], last[i]);
    }
    assert_string_equal(paths.folders[2], kernels);
    assert_true(pl_jupyter_paths_contain(&paths, "/two/kernels"));
    assert_false(pl_jupyter_paths_contain(&paths, "/three/kernels"));
    pl_jupyter_paths_done(&paths);
    unsetenv("JUPYTER_PATH");
}

static void a_broken_kernelspec_keeps_its_reason_and_its_neighbours(void **state)
{
    (void)state;
    add_kernel("Good", "{\"argv\": [\"x\"], \"language\": \"y\"}");
    add_kernel("bad", "{\"argv\": [\"x\"");
    add_kernel("in valid", "{\"argv\": [\"x\"]}");
    pl_kernelspecs specs = read_home();
    assert_int_equal(specs.n_items, 2);
    const pl_kernelspec *good = pl_kernelspecs_get(&specs, "good");
    const pl_kernelspec *bad = pl_kernelspecs_get(&specs, "BAD");
    assert_string_equal(good->name, "good");
    assert_string_equal(pl_kernelspec_language(good), "y");
    assert_string_equal(pl_kernelspec_twin_of(good), "");
    assert_null(pl_kernelspec_word(good, 1));
    assert_null(bad->spec);
    assert_non_null(strstr(bad->problem.message, "is not JSON"));
    assert_string_equal(pl_kernelspec_display_name(bad), "");
    assert_int_equal(pl_kernelspec_command(bad), 0);
    pl_kernelspecs_done(&specs);
}

static void a_twin_is_made_replaced_and_removed(void **state)
{
    (void)state;
    char path[PATH_MAX], file[PATH_MAX];
    add_kernel("made", "{\"argv\": [\"/bin/true\", \"{connection_file}\"]}");
    assert_int_equal(install("made", "1G", path), 0);
    assert_int_equal(install("made", "2G", path), 0);
    pl_kernelspecs specs = read_home();
    const pl_kernelspec *twin = pl_kernelspecs_get(&specs, "plimsoll-made");
    assert_string_equal(twin->folder, path);
    assert_string_equal(pl_kernelspec_twin_of(twin), "made");
    assert_string_equal(pl_kernelspec_budget(twin), "2G");
    assert_string_equal(pl_kernelspec_word(twin, pl_kernelspec_command(twin)), "/bin/true");
    pl_error problems[PL_KERNELSPEC_PROBLEMS];
    assert_int_equal(pl_kernelspec_problems(twin, problems), 1); /* there is no /opt/plimsoll */
    assert_int_equal(pl_twin_remove(pl_kernelspecs_get(&specs, "made"), count_note, NULL),
                     PL_EUSAGE);
    assert_int_equal(pl_twin_remove(twin, count_note, NULL), 0);
    assert_int_equal(pl_path_join(path, "kernel.json", file), 0);
    assert_int_equal(access(file, F_OK), -1);
    assert_int_equal(pl_twin_remove(twin, count_note, NULL), -ENOENT);
    assert_int_equal(n_notes, 0);
    pl_kernelspecs_done(&specs);
}

static void what_is_no_twin_is_not_replaced(void **state)
{
    (void)state;
    char path[PATH_MAX];
    add_kernel("made", "{\"argv\": [\"/bin/true\", \"{connection_file}\"]}");
    add_kernel("plimsoll-made", "{\"argv\": [\"/bin/false\"]}");
    assert_int_equal(install("made", NULL, path), -EEXIST);
    pl_kernelspecs specs = read_home();
    assert_string_equal(pl_kernelspec_word(pl_kernelspecs_get(&specs, "plimsoll-made"), 0),
                        "/bin/false");
    pl_kernelspecs_done(&specs);
}

static void a_path_that_is_not_utf8_cannot_be_written_and_is_said(void **state)
{
    (void)state;
    char path[PATH_MAX];
    add_kernel("made", "{\"argv\": [\"/bin/true\", \"{connection_file}\"]}");
    pl_kernelspecs specs = read_home();
    pl_twin_options options = {
        .program = "/opt/\xff/plimsoll", .folder = kernels, .note = count_note};
    pl_error error = {0};
    assert_int_equal(pl_twin_install(&specs.items[0], &options, path, &error), -EILSEQ);
    assert_non_null(strstr(error.message, "is not UTF-8"));
    pl_kernelspecs_done(&specs);
}

static void a_deep_folder_is_removed_whole_and_links_are_not_followed(void **state)
{
    (void)state;
    char folder[PATH_MAX], outside[PATH_MAX], name[32];
    assert_int_equal(pl_path_join(home, "tree/a/b/c/d", folder), 0);
    assert_int_equal(pl_path_join(home, "outside", outside), 0);
    write_file(outside, "kept", "x");
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "a file with number %d", i);
        write_file(folder, name, "x");
    }
    strcat(folder, "/link");
    assert_int_equal(symlink(outside, folder), 0);
    assert_int_equal(pl_path_join(home, "tree", folder), 0);
    assert_int_equal(pl_folder_remove(folder), 0);
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(pl_folder_remove(folder), 0);
    strcat(outside, "/kept");
    assert_int_equal(access(outside, F_OK), 0);
}

static void only_pythons_own_names_are_python_words(void **state)
{
    (void)state;
    assert_true(pl_program_is_python_word("python"));
    assert_true(pl_program_is_python_word("python3.11"));
    assert_false(pl_program_is_python_word("python3-config"));
    assert_false(pl_program_is_python_word("/usr/bin/python3"));
    assert_false(pl_program_is_python_word("pythonic"));
}

#define IN_A_HOME(test) cmocka_unit_test_setup_teardown(test, make_home, remove_home)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_HOME(folders_are_in_jupyters_order_each_once),
        IN_A_HOME(a_broken_kernelspec_keeps_its_reason_and_its_neighbours),
        IN_A_HOME(a_twin_is_made_replaced_and_removed),
        IN_A_HOME(what_is_no_twin_is_not_replaced),
        IN_A_HOME(a_path_that_is_not_utf8_cannot_be_written_and_is_said),
        IN_A_HOME(a_deep_folder_is_removed_whole_and_links_are_not_followed),
        IN_A_HOME(only_pythons_own_names_are_python_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
