/* SPDX-License-Identifier: Apache-2.0 */
/* See code_place.h. */
#include "report/code_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "probe/frame_text.h"
#include "probe/python.h"
#include "report/json.h"

const char *pl_code_place_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static const char *short_path(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    if (n > 1 && strncmp(path, directory, n) == 0 && path[n] == '/')
        return path + n + 1;
    static const char *const roots[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < PL_COUNT_OF(roots); i++) {
        const char *root = strstr(path, roots[i]);
        if (root != NULL)
            return root + strlen(roots[i]);
    }
    return path;
}

void pl_code_place_python(const pl_python_frame *frame, const pl_place_context *places,
                          char place[PL_FACT_PLACE_BYTES])
{
    char file[sizeof(frame->file) + 1], function[sizeof(frame->function) + 1];
    pl_json_clean(frame->file, sizeof(frame->file), file, sizeof(file));
    pl_json_clean(frame->function, sizeof(frame->function), function, sizeof(function));
    uint32_t cell = pl_cell_sources_number(places->cells, file);
    const char *shown = frame->line == PL_LINE_OF_FILE ? file : short_path(file, places->directory);
    pl_frame_text(shown, frame->line, function, cell, place, PL_FACT_PLACE_BYTES);
}

void pl_code_place_native(const pl_native_frame *frame, char place[PL_FACT_PLACE_BYTES])
{
    const char *module = frame->module[0] != '\0' ? pl_code_place_file_name(frame->module) : "?";
    if (frame->source[0] != '\0' && frame->symbol[0] != '\0') {
        const char *brackets = strchr(frame->symbol, '(') == NULL ? "()" : "";
        bool is_library = strstr(module, ".so") != NULL;
        snprintf(place, PL_FACT_PLACE_BYTES, "%.60s in %.90s%s%s%.60s",
                 pl_code_place_file_name(frame->source), frame->symbol, brackets,
                 is_library ? " of " : "", is_library ? module : "");
        return;
    }
    if (frame->symbol[0] != '\0')
        snprintf(place, PL_FACT_PLACE_BYTES, "%.80s %.130s", module, frame->symbol);
    else
        snprintf(place, PL_FACT_PLACE_BYTES, "%.160s+0x%" PRIx64, module,
                 frame->module[0] != '\0' ? frame->offset : frame->address);
}

static bool contains_any(const char *text, const char *const *parts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(text, parts[i]) != NULL)
            return true;
    return false;
}

int pl_code_place_pick_python(const pl_python_frame *frames, int n)
{
    for (int i = 0; i < n; i++) {
        char file[sizeof(frames[i].file) + 1];
        pl_json_clean(frames[i].file, sizeof(frames[i].file), file, sizeof(file));
        if (file[0] != '\0' && pl_python_is_users(file))
            return i;
    }
    return n > 0 ? 0 : -1;
}

bool pl_code_place_is_plumbing(const char *module)
{
    static const char *const plumbing[] = {"/libc.so",   "/libc-",    "/ld-linux",    "/libpthread",
                                           "/libstdc++", "/libgcc_s", "/libplimsoll", "linux-vdso"};
    return module[0] == '\0' || contains_any(module, plumbing, PL_COUNT_OF(plumbing));
}

bool pl_code_place_is_interpreter(const char *module)
{
    const char *name = pl_code_place_file_name(module);
    return strncmp(name, "python", strlen("python")) == 0 ||
           strncmp(name, "libpython", strlen("libpython")) == 0 ||
           strstr(module, "/lib-dynload/") != NULL;
}

/* Templates of the C++ library are compiled into the program, and are not the user's code. */
static bool is_cxx_library(const char *symbol)
{
    static const char *const spaces[] = {"std::", "__gnu_cxx::"};
    for (size_t i = 0; i < PL_COUNT_OF(spaces); i++)
        if (strncmp(symbol, spaces[i], strlen(spaces[i])) == 0)
            return true;
    return strcmp(symbol, "_start") == 0;
}

int pl_code_place_pick_native(const pl_native_frame *frames, int n)
{
    int first = -1;
    for (int i = 0; i < n; i++) {
        if (pl_code_place_is_plumbing(frames[i].module))
            continue;
        if (!is_cxx_library(frames[i].symbol))
            return i;
        if (first < 0)
            first = i;
    }
    return first < 0 && n > 0 ? 0 : first;
}
