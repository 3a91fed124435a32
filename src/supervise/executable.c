/* SPDX-License-Identifier: Apache-2.0 */
/* See executable.h. */
#include "supervise/executable.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"

#if defined __x86_64__
enum { OWN_MACHINE = EM_X86_64 };
#elif defined __aarch64__
enum { OWN_MACHINE = EM_AARCH64 };
#else
#error "which e_machine do programs have here?"
#endif

enum { SCRIPTS_MAX = 4, LINE_BYTES = 256 }; /* as many as the kernel follows; its BINPRM_BUF_SIZE */

/* Finds the file that execvp() would take. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    if (strchr(name, '/'))
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    const char *folders = getenv("PATH");
    for (const char *from = folders ? folders : "/usr/bin:/bin"; *from;) {
        size_t n = strcspn(from, ":");
        if (snprintf(path, PATH_MAX, "%.*s/%s", (int)n, n ? from : ".", name) < PATH_MAX &&
            access(path, X_OK) == 0)
            return true;
        from += n + (from[n] == ':');
    }
    return false;
}

/* Takes the first word of a `#!` line, or the second where the first is env(1). */
static bool named_by_script(char line[LINE_BYTES], char name[PATH_MAX])
{
    char *rest = NULL;
    line[strcspn(line, "\n")] = '\0';
    const char *interpreter = strtok_r(line + 2, " \t", &rest);
    if (!interpreter)
        return false;
    const char *slash = strrchr(interpreter, '/');
    const char *argument = strtok_r(NULL, " \t", &rest);
    bool is_env = strcmp(slash ? slash + 1 : interpreter, "env") == 0 && argument;
    bool plain = is_env && argument[0] != '-' && !strchr(argument, '=');
    return snprintf(name, PATH_MAX, "%s", plain ? argument : interpreter) < PATH_MAX;
}

/* Opens the program, or the interpreter of a script. -1 when there is none. */
static int open_program(const char *name, char path[PATH_MAX])
{
    char next[PATH_MAX];
    uint64_t ignored;
    if (snprintf(next, sizeof next, "%s", name) >= (int)sizeof next)
        return -1;
    for (int i = 0; i <= SCRIPTS_MAX && find_program(next, path); i++) {
        char line[LINE_BYTES] = "";
        int fd = pl_file_open_regular(path, &ignored);
        if (fd < 0)
            return -1;
        ssize_t n = pread(fd, line, sizeof line - 1, 0);
        if (n < 2 || line[0] != '#' || line[1] != '!')
            return fd;
        close(fd);
        if (!named_by_script(line, next))
            return -1;
    }
    return -1;
}

static bool read_at(int fd, uint64_t offset, void *to, size_t n)
{
    return offset <= INT64_MAX && pread(fd, to, n, (off_t)offset) == (ssize_t)n;
}

static bool read_loader(int fd, const Elf64_Ehdr *head, char loader[256])
{
    for (int i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(fd, head->e_phoff + (uint64_t)i * sizeof segment, &segment, sizeof segment) ||
            segment.p_type != PT_INTERP)
            continue;
        size_t n = pl_min_u64(segment.p_filesz, 255);
        if (!read_at(fd, segment.p_offset, loader, n))
            n = 0;
        loader[n] = '\0';
        return true;
    }
    return false;
}

/* Knows glibc's own loader by its many names. */
static bool is_other_libc(const char *loader)
{
    static const char *const others[] = {"ld-musl", "ld-uClibc", "ld64-uClibc", "linker"};
    const char *slash = strrchr(loader, '/');
    const char *name = slash ? slash + 1 : loader;
    for (size_t i = 0; i < PL_COUNT_OF(others); i++)
        if (strncmp(name, others[i], strlen(others[i])) == 0)
            return true;
    return false;
}

/* Returns the highest N of a GLIBC_2.N in a library: the version that it has, or needs. 0: none. */
static unsigned highest_version(const char *path)
{
    static const char mark[] = "GLIBC_2.";
    enum { MARK = sizeof mark - 1, OVERLAP = 16 };
    static char buffer[64 * 1024];
    unsigned highest = 0;
    size_t kept = 0;
    uint64_t ignored;
    int fd = pl_file_open_regular(path, &ignored);
    ssize_t n;
    while (fd >= 0 && (n = read(fd, buffer + kept, sizeof buffer - kept - 1)) > 0) {
        size_t end = kept + (size_t)n;
        buffer[end] = '\0';
        for (char *at = buffer; (at = memmem(at, (size_t)(buffer + end - at), mark, MARK));) {
            at += MARK;
            highest = (unsigned)pl_max_u64(highest, strtoul(at, NULL, 10) % 1000);
        }
        kept = pl_min_u64(end, OVERLAP);
        memmove(buffer, buffer + end - kept, kept);
    }
    if (fd >= 0)
        close(fd);
    return highest;
}

/* Looks beside the loader, where its C library lies. */
static unsigned glibc_of(const char *loader)
{
    char path[PATH_MAX], library[PATH_MAX + 16];
    if (!realpath(loader, path))
        return 0;
    *strrchr(path, '/') = '\0';
    snprintf(library, sizeof library, "%s/libc.so.6", path);
    return highest_version(library);
}

static enum pl_executable_obstacle find_obstacle(int fd, const char *guard_path,
                                                 pl_executable *program)
{
    Elf64_Ehdr head;
    if (!read_at(fd, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return PL_EXECUTABLE_NONE;
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != OWN_MACHINE)
        return PL_EXECUTABLE_MACHINE;
    if (head.e_phentsize != sizeof(Elf64_Phdr))
        return PL_EXECUTABLE_NONE;
    if (!read_loader(fd, &head, program->loader))
        return PL_EXECUTABLE_STATIC;
    if (is_other_libc(program->loader))
        return PL_EXECUTABLE_LIBC;
    program->glibc_minor = glibc_of(program->loader);
    program->glibc_needed = highest_version(guard_path);
    return program->glibc_minor && program->glibc_minor < program->glibc_needed
               ? PL_EXECUTABLE_OLD
               : PL_EXECUTABLE_NONE;
}

void pl_executable_look(const char *name, const char *guard_path, pl_executable *ret_program)
{
    *ret_program = (pl_executable){.obstacle = PL_EXECUTABLE_NONE};
    int fd = open_program(name, ret_program->path);
    if (fd < 0)
        return;
    ret_program->obstacle = find_obstacle(fd, guard_path, ret_program);
    close(fd);
}

void pl_executable_sentence(const pl_executable *program, char text[PL_EXECUTABLE_SENTENCE_BYTES])
{
    enum { SIZE = PL_EXECUTABLE_SENTENCE_BYTES };
    static const char alone[] = "requests over the line are not refused in it; its memory is "
                                "measured, and RLIMIT_DATA limits it";
    static const char with_children[] = "requests over the line are not refused in it, nor in what "
                                        "it starts; its memory is measured, and RLIMIT_DATA limits "
                                        "it";
    const char *path = program->path;
    text[0] = '\0';
    switch (program->obstacle) {
    case PL_EXECUTABLE_NONE:
        break;
    case PL_EXECUTABLE_STATIC:
        snprintf(text, SIZE, "'%s' is linked statically, and the guard cannot enter it: %s", path,
                 alone);
        break;
    case PL_EXECUTABLE_MACHINE:
        snprintf(text, SIZE,
                 "'%s' is for another machine, or 32-bit, and the guard cannot enter it: %s", path,
                 with_children);
        break;
    case PL_EXECUTABLE_LIBC:
        snprintf(text, SIZE, "'%s' is loaded by '%s', and the guard needs glibc: %s", path,
                 program->loader, alone);
        break;
    case PL_EXECUTABLE_OLD:
        snprintf(text, SIZE, "'%s' has glibc 2.%u, and the guard needs 2.%u: %s", path,
                 program->glibc_minor, program->glibc_needed, with_children);
        break;
    }
}
