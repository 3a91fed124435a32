/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a native library: reading says no, or what it says is within bounds and printable.
 */
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "preflight/elf.h"

static long n_taken, n_refused; /* 0 of either would make the test worthless */

static void check_text(const char *text, size_t n)
{
    REQUIRE(memchr(text, '\0', n) != NULL);
    for (; *text != '\0'; text++)
        REQUIRE(*text >= ' ' && *text <= '~');
}

static void read_it(int fd)
{
    pl_elf elf;
    int r = pl_elf_read(fd, &elf);
    REQUIRE(r == 0 || r == PL_EFORMAT || r == PL_ECORRUPT);
    n_taken += r == 0;
    n_refused += r < 0;
    if (r < 0)
        return;
    REQUIRE(elf.n_needed >= 0 && elf.n_needed <= PL_ELF_NEEDED);
    for (int i = 0; i < elf.n_needed; i++)
        check_text(elf.needed[i], sizeof elf.needed[i]);
    check_text(elf.soname, sizeof elf.soname);
    check_text(elf.machine, sizeof elf.machine);
    check_text(elf.glibc_needs, sizeof elf.glibc_needs);
    check_text(elf.glibc_is, sizeof elf.glibc_is);
    check_text(elf.plimsoll, sizeof elf.plimsoll);
}

static int open_bytes(const uint8_t *bytes, size_t n)
{
    int fd = memfd_create("elf", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    int fd = open_bytes(data, n);
    read_it(fd);
    close(fd);
    return 0;
}

#ifndef PL_LIBFUZZER

static uint8_t *library;
static size_t library_bytes;

/* The smallest of those that this program has loaded, and that asks glibc for something. */
static int look_at_loaded(struct dl_phdr_info *info, size_t size, void *path)
{
    static off_t smallest = INT64_MAX;
    (void)size;
    struct stat status;
    pl_elf elf;
    if (info->dlpi_name[0] == '/' && stat(info->dlpi_name, &status) == 0 &&
        status.st_size < smallest && pl_elf_read_at("", info->dlpi_name, &elf) == 0 &&
        elf.n_needed > 0 && elf.glibc_needs[0] != '\0') {
        smallest = status.st_size;
        snprintf(path, 4096, "%s", info->dlpi_name);
    }
    return 0;
}

static int load_library(void **state)
{
    (void)state;
    char path[4096] = "";
    dl_iterate_phdr(look_at_loaded, path);
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL && fseek(file, 0, SEEK_END) == 0);
    library_bytes = (size_t)ftell(file);
    library = malloc(library_bytes);
    rewind(file);
    REQUIRE(library != NULL && fread(library, 1, library_bytes, file) == library_bytes);
    fclose(file);
    return 0;
}

static int unload_library(void **state)
{
    (void)state;
    free(library);
    return 0;
}

static void a_whole_library_is_understood(void **state)
{
    (void)state;
    int fd = open_bytes(library, library_bytes);
    pl_elf elf = {0};
    assert_int_equal(pl_elf_read(fd, &elf), 0);
    close(fd);
    bool has_libc = false;
    for (int i = 0; i < elf.n_needed; i++)
        has_libc |= strcmp(elf.needed[i], "libc.so.6") == 0;
    assert_true(has_libc);
    assert_true(strncmp(elf.glibc_needs, "2.", 2) == 0);
    assert_non_null(strstr(elf.soname, ".so"));
    assert_true(elf.machine[0] != '\0');
}

static void a_truncated_library_harms_nobody(void **state)
{
    (void)state;
    int fd = open_bytes(library, library_bytes);
    n_taken = n_refused = 0;
    for (size_t n = library_bytes; n > 0; n -= n > 4096 ? 97 : 1) {
        REQUIRE(ftruncate(fd, (off_t)n) == 0);
        read_it(fd);
    }
    close(fd);
    assert_true(n_refused > 0);
}

static uint64_t seed = 1;

static uint64_t random_below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % n;
}

/* Mostly where structure is: the header, and the sections' table; else anywhere. */
static size_t choose_offset(void)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)library;
    size_t table = (size_t)header->e_shnum * header->e_shentsize;
    uint64_t choice = random_below(4);
    if (choice == 0)
        return random_below(sizeof *header);
    if (choice == 1 && header->e_shoff + table <= library_bytes)
        return header->e_shoff + random_below(table);
    return random_below(library_bytes);
}

static uint8_t choose_byte(void)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff};
    return random_below(2) ? edges[random_below(sizeof edges)] : (uint8_t)random_below(256);
}

/* Sections that are read: spoilt, they mislead the reader itself. */
static size_t choose_in_sections(void)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)library;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(library + header->e_shoff);
    for (int i = 0; i < 200; i++) {
        const Elf64_Shdr *one = &sections[random_below(header->e_shnum)];
        bool read = one->sh_type == SHT_DYNAMIC || one->sh_type == SHT_GNU_verneed ||
                    one->sh_type == SHT_NOTE || one->sh_type == SHT_GNU_verdef;
        if (read && one->sh_size > 0)
            return one->sh_offset + random_below(one->sh_size);
    }
    return choose_offset();
}

static void a_spoilt_library_harms_nobody(void **state)
{
    (void)state;
    int fd = open_bytes(library, library_bytes);
    n_taken = n_refused = 0;
    for (long i = 0; i < n_tries; i++) {
        size_t offsets[8];
        size_t n = 1 + random_below(8);
        for (size_t j = 0; j < n; j++) {
            uint8_t byte = choose_byte();
            offsets[j] = random_below(2) ? choose_in_sections() : choose_offset();
            REQUIRE(pwrite(fd, &byte, 1, (off_t)offsets[j]) == 1);
        }
        read_it(fd);
        for (size_t j = 0; j < n; j++)
            REQUIRE(pwrite(fd, &library[offsets[j]], 1, (off_t)offsets[j]) == 1);
    }
    close(fd);
    assert_true(n_taken > n_tries / 4);
    assert_true(n_refused > 0);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 20000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_library_is_understood),
        cmocka_unit_test(a_truncated_library_harms_nobody),
        cmocka_unit_test(a_spoilt_library_harms_nobody),
    };
    return cmocka_run_group_tests(tests, load_library, unload_library);
}

#endif
