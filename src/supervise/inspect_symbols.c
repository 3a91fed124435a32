/* SPDX-License-Identifier: Apache-2.0 */
/* Names of addresses, from ELF and DWARF through libdw. A wrong name is worse than none: an address
 * past the end of the nearest symbol, as in a stripped library, gets no name. */
#include <errno.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervise/inspect_private.h"
#include "sys/file.h"

/* The demangler's work grows with the name. The longest in PyTorch 1.13 has 588 bytes. */
enum { MANGLED_BYTES_MAX = 4096 };

/* Opens only regular files: the name that a process has mapped may be a pipe by now, and libdw
 * would wait for its writer. */
static int find_regular_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
                            char **file_name, Elf **ret_elf)
{
    struct stat status;
    if (name[0] == '/' && stat(name, &status) == 0 && !S_ISREG(status.st_mode))
        return -1;
    return dwfl_linux_proc_find_elf(module, data, name, base, file_name, ret_elf);
}

/* Files by their paths, debug information by build id in the local folders. The standard callbacks
 * would go on to ask a server where DEBUGINFOD_URLS is set. */
static const Dwfl_Callbacks callbacks = {
    .find_elf = find_regular_elf,
    .find_debuginfo = dwfl_build_id_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

Dwfl *pl_symbols_begin(void)
{
    return dwfl_begin(&callbacks);
}

void pl_symbols_endp(Dwfl **dwfl)
{
    dwfl_end(*dwfl); /* NULL is allowed */
}

/* Cuts text that does not fit. n > 0. */
static void copy_text(char *to, size_t n, const char *from)
{
    size_t length = strnlen(from, n - 1);
    memcpy(to, from, length);
    to[length] = '\0';
}

/* The end of a path says more than its beginning. */
static void copy_tail(char *to, size_t n, const char *from)
{
    size_t length = strlen(from);
    copy_text(to, n, length < n ? from : from + (length - n + 1));
}

/* cplus_demangle_v3() alone, not cplus_demangle(): it is plain C, allocates only its result, and
 * limits its own recursion. Without parameters: a stack is read by its functions' names. */
static bool demangle(const char *mangled, int options, char *name, size_t n)
{
    if (strlen(mangled) >= MANGLED_BYTES_MAX)
        return false;
    char *demangled = cplus_demangle_v3(mangled, options);
    if (!demangled)
        return false;
    copy_text(name, n, demangled);
    free(demangled);
    return true;
}

/* DMGL_PARAMS: without it the demangler takes any text that begins like a type. */
void pl_inspect_type_name(const char *mangled, char *name, size_t n)
{
    if (n > 0 && !demangle(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES, name, n))
        copy_text(name, n, mangled);
}

/* Compilers name their copies of a function "name.constprop.0", "name.part.1", "name.cold", and
 * libraries their versions "name@@GLIBC_2.17". */
static void copy_original_name(char *to, size_t n, const char *name)
{
    copy_text(to, n, name);
    size_t plain = strcspn(to, ".@");
    if (plain > 0)
        to[plain] = '\0';
}

static void name_function(Dwfl_Module *module, uint64_t address, pl_native_frame *frame)
{
    GElf_Off into;
    GElf_Sym symbol;
    const char *name = dwfl_module_addrinfo(module, address, &into, &symbol, NULL, NULL, NULL);
    if (!name || (into != 0 && into >= symbol.st_size))
        return;
    char original[MANGLED_BYTES_MAX];
    copy_original_name(original, sizeof original, name);
    if (strncmp(original, "_Z", 2) != 0 ||
        !demangle(original, DMGL_ANSI, frame->symbol, sizeof frame->symbol))
        copy_text(frame->symbol, sizeof frame->symbol, original);
}

static void name_line(Dwfl_Module *module, uint64_t address, pl_native_frame *frame)
{
    Dwfl_Line *line = dwfl_module_getsrc(module, address);
    int number = 0;
    const char *file = line ? dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (!file || number <= 0)
        return;
    char suffix[16];
    int n = snprintf(suffix, sizeof suffix, ":%d", number);
    copy_tail(frame->source, sizeof frame->source - (size_t)n, file);
    strcat(frame->source, suffix);
}

static void name_module(Dwfl_Module *module, pl_native_frame *frame)
{
    Dwarf_Addr start = 0;
    const char *name = dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
    GElf_Addr bias = start; /* of a module whose file is gone: an offset from its first page */
    dwfl_module_getelf(module, &bias);
    frame->offset = frame->address - bias;
    /* libdw adds the pid to the kernel's own: "[vdso: 4121]" */
    if (name && strncmp(name, "[vdso", 5) == 0)
        name = "[vdso]";
    copy_tail(frame->module, sizeof frame->module, name ? name : "");
}

void pl_symbols_name(Dwfl *dwfl, uint64_t address, bool is_return, pl_native_frame *frame)
{
    *frame = (pl_native_frame){.address = address};
    uint64_t code = address - (is_return ? 1 : 0);
    Dwfl_Module *module = dwfl_addrmodule(dwfl, code);
    if (!module)
        return;
    name_module(module, frame);
    name_function(module, code, frame);
    name_line(module, code, frame);
}

bool pl_symbols_read(Dwfl *dwfl, uint64_t address, void *buffer, size_t n)
{
    Dwfl_Module *module = dwfl_addrmodule(dwfl, address);
    GElf_Addr bias;
    Elf *elf = module ? dwfl_module_getelf(module, &bias) : NULL;
    size_t n_headers;
    if (!elf || elf_getphdrnum(elf, &n_headers) != 0)
        return false;
    uint64_t at = address - bias;
    for (size_t i = 0; i < n_headers && i < INT32_MAX; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD ||
            (header.p_flags & PF_W) || at < header.p_vaddr || header.p_filesz < n ||
            at - header.p_vaddr > header.p_filesz - n)
            continue;
        Elf_Data *data = elf_getdata_rawchunk(
            elf, (int64_t)(header.p_offset + (at - header.p_vaddr)), n, ELF_T_BYTE);
        if (!data || data->d_size != n)
            return false;
        memcpy(buffer, data->d_buf, n);
        return true;
    }
    return false;
}

/* The offsets of a module reported with bias 0 are its addresses. */
static void name_offsets(Dwfl *dwfl, const char *path, pl_native_frame *frames, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(frames[i].module, path) != 0)
            continue;
        pl_native_frame named;
        pl_symbols_name(dwfl, frames[i].offset, true, &named);
        copy_text(frames[i].symbol, sizeof frames[i].symbol, named.symbol);
        copy_text(frames[i].source, sizeof frames[i].source, named.source);
    }
}

static bool seen_before(const pl_native_frame *frames, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(frames[j].module, frames[i].module) == 0)
            return true;
    return false;
}

/* libdw would wait for the writer of a pipe, and the path comes from a record. */
static bool report_file(Dwfl *dwfl, const char *path)
{
    uint64_t ignored;
    int fd = pl_file_open_regular(path, &ignored);
    if (fd < 0)
        return false;
    if (dwfl_report_elf(dwfl, path, path, fd, 0, true))
        return true; /* it is libdw's now */
    close(fd);
    return false;
}

/* One module at a time, so that no more than one is in memory. */
void pl_inspect_symbols(pl_native_frame *frames, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *path = frames[i].module;
        if (path[0] != '/' || seen_before(frames, i))
            continue;
        PL_CLEANUP(pl_symbols_endp) Dwfl *dwfl = pl_symbols_begin();
        if (!dwfl || !report_file(dwfl, path))
            continue;
        dwfl_report_end(dwfl, NULL, NULL);
        name_offsets(dwfl, path, frames + i, n - i);
    }
}

void pl_inspect_symbol(pl_native_frame *frame)
{
    pl_inspect_symbols(frame, 1);
}
