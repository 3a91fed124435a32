/* SPDX-License-Identifier: Apache-2.0 */
/* See elf.h. Strings are read one at a time: the string table of a framework can have tens of MiB.
 */
#include "preflight/elf.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "base/version_note.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"

enum {
    SECTION_BYTES = 4 << 20,
    X86_ISA_NEEDED = 0xc0008002, /* GNU_PROPERTY_X86_ISA_1_NEEDED of the x86-64 psABI */
    MOST_VERSIONS = 4096,
};

typedef struct source {
    int fd;
    Elf *elf;
    pl_elf *found;
} source;

/* Reads a string from the table in section `link`; "" if there is none. */
static void read_string(const source *from, size_t link, uint64_t offset, char *text, size_t n)
{
    GElf_Shdr strings;
    Elf_Scn *section = elf_getscn(from->elf, link);
    text[0] = '\0';
    if (section == NULL || gelf_getshdr(section, &strings) == NULL ||
        strings.sh_type != SHT_STRTAB || offset >= strings.sh_size ||
        strings.sh_offset > (uint64_t)INT64_MAX - strings.sh_size)
        return;
    size_t room = (size_t)pl_min_u64(n - 1, strings.sh_size - offset);
    ssize_t got = pread(from->fd, text, room, (off_t)(strings.sh_offset + offset));
    text[got > 0 ? got : 0] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?'; /* it reaches terminals */
}

static void read_dynamic(const source *from, const GElf_Shdr *header, Elf_Data *data)
{
    pl_elf *found = from->found;
    GElf_Dyn entry;
    for (int i = 0; gelf_getdyn(data, i, &entry) != NULL && entry.d_tag != DT_NULL; i++) {
        char *name = entry.d_tag == DT_SONAME ? found->soname : NULL;
        if (entry.d_tag == DT_NEEDED && found->n_needed < PL_ELF_NEEDED)
            name = found->needed[found->n_needed++];
        if (name != NULL)
            read_string(from, header->sh_link, entry.d_un.d_val, name, PL_ELF_NAME_BYTES);
    }
}

/* Keeps the version in "GLIBC_2.28" if it is the highest so far. GLIBC_PRIVATE has no version. */
static void keep_highest(char highest[16], const char *name)
{
    static const char prefix[] = "GLIBC_";
    pl_version before, now;
    if (strncmp(name, prefix, sizeof prefix - 1) != 0 || strlen(name) >= 16 + sizeof prefix - 1)
        return;
    name += sizeof prefix - 1;
    if (pl_version_parse(name, &now) < 0)
        return;
    if (pl_version_parse(highest, &before) < 0 || pl_version_compare(&now, &before) > 0)
        strcpy(highest, name);
}

/* Moves to the next entry of the chain. False at its end, or if the offset is out of bounds. */
static bool step(int *offset, uint32_t next, const Elf_Data *data)
{
    if (next == 0 || next > data->d_size || (uint64_t)*offset + next >= data->d_size)
        return false;
    *offset += (int)next;
    return true;
}

static void read_needed_versions(const source *from, const GElf_Shdr *header, Elf_Data *data)
{
    GElf_Verneed need;
    GElf_Vernaux version;
    int budget = MOST_VERSIONS, at = 0;
    do {
        if (gelf_getverneed(data, at, &need) == NULL)
            return;
        int inner = at;
        if (!step(&inner, need.vn_aux, data))
            continue;
        do {
            char name[PL_ELF_NAME_BYTES];
            if (gelf_getvernaux(data, inner, &version) == NULL)
                break;
            read_string(from, header->sh_link, version.vna_name, name, sizeof name);
            keep_highest(from->found->glibc_needs, name);
        } while (--budget > 0 && step(&inner, version.vna_next, data));
    } while (--budget > 0 && step(&at, need.vn_next, data));
}

static void read_defined_versions(const source *from, const GElf_Shdr *header, Elf_Data *data)
{
    GElf_Verdef definition;
    GElf_Verdaux name_of;
    int budget = MOST_VERSIONS, at = 0;
    do {
        char name[PL_ELF_NAME_BYTES];
        if (gelf_getverdef(data, at, &definition) == NULL)
            return;
        int inner = at;
        if (!step(&inner, definition.vd_aux, data) ||
            gelf_getverdaux(data, inner, &name_of) == NULL)
            continue;
        read_string(from, header->sh_link, name_of.vda_name, name, sizeof name);
        keep_highest(from->found->glibc_is, name);
    } while (--budget > 0 && step(&at, definition.vd_next, data));
}

/* A property is its type, size and bytes, padded to a multiple of 8. */
static void read_properties(pl_elf *found, const uint8_t *bytes, size_t n)
{
    uint32_t type, size, value;
    for (size_t at = 0; at + 8 <= n; at += 8 + (((size_t)size + 7) & ~(size_t)7)) {
        memcpy(&type, bytes + at, sizeof type);
        memcpy(&size, bytes + at + 4, sizeof size);
        if (size > n - at - 8)
            return;
        if (type == X86_ISA_NEEDED && size == sizeof value) {
            memcpy(&value, bytes + at + 8, sizeof value);
            found->x86_levels |= value;
        }
    }
}

/* Accepts a text of at most 15 printable characters. */
static void read_own_version(pl_elf *found, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n && i + 1 < sizeof found->plimsoll && bytes[i] > ' ' && bytes[i] <= '~';
         i++) {
        found->plimsoll[i] = (char)bytes[i];
        found->plimsoll[i + 1] = '\0';
    }
}

static void read_notes(const source *from, const GElf_Shdr *header, Elf_Data *data)
{
    (void)header;
    GElf_Nhdr note;
    size_t name, bytes, at = 0, next;
    while ((next = gelf_getnote(data, at, &note, &name, &bytes)) > at) {
        const uint8_t *start = data->d_buf;
        if (note.n_type == NT_GNU_PROPERTY_TYPE_0 && note.n_namesz == 4 &&
            memcmp(start + name, "GNU", 4) == 0)
            read_properties(from->found, start + bytes, note.n_descsz);
        if (note.n_type == PL_VERSION_NOTE_TYPE && note.n_namesz == sizeof PL_VERSION_NOTE_NAME &&
            memcmp(start + name, PL_VERSION_NOTE_NAME, sizeof PL_VERSION_NOTE_NAME) == 0)
            read_own_version(from->found, start + bytes, note.n_descsz);
        at = next;
    }
}

static void read_section(const source *from, Elf_Scn *section)
{
    static const struct {
        GElf_Word type;
        void (*read)(const source *from, const GElf_Shdr *header, Elf_Data *data);
    } readers[] = {{SHT_DYNAMIC, read_dynamic},
                   {SHT_GNU_verneed, read_needed_versions},
                   {SHT_GNU_verdef, read_defined_versions},
                   {SHT_NOTE, read_notes}};
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == NULL || header.sh_size > SECTION_BYTES)
        return;
    for (size_t i = 0; i < PL_COUNT_OF(readers); i++) {
        if (header.sh_type != readers[i].type)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        if (data != NULL && data->d_buf != NULL)
            readers[i].read(from, &header, data);
    }
}

static int read_all(const source *from)
{
    GElf_Ehdr header;
    if (elf_kind(from->elf) != ELF_K_ELF || gelf_getehdr(from->elf, &header) == NULL)
        return PL_EFORMAT;
    size_t n_sections;
    if (elf_getshdrnum(from->elf, &n_sections) < 0)
        return PL_ECORRUPT;
    if (header.e_machine == EM_X86_64 || header.e_machine == EM_AARCH64)
        strcpy(from->found->machine, header.e_machine == EM_X86_64 ? "x86_64" : "aarch64");
    for (Elf_Scn *section = NULL; (section = elf_nextscn(from->elf, section)) != NULL;)
        read_section(from, section);
    return 0;
}

int pl_elf_read(int fd, pl_elf *ret_elf)
{
    pl_elf found = {0};
    if (elf_version(EV_CURRENT) == EV_NONE)
        return -ENOTSUP;
    source from = {.fd = fd, .elf = elf_begin(fd, ELF_C_READ, NULL), .found = &found};
    if (from.elf == NULL)
        return PL_EFORMAT;
    int r = read_all(&from);
    elf_end(from.elf);
    if (r == 0)
        *ret_elf = found;
    return r;
}

int pl_elf_read_at(const char *root, const char *path, pl_elf *ret_elf)
{
    int fd = pl_sysroot_open(root, path);
    if (fd < 0)
        return fd;
    int r = pl_elf_read(fd, ret_elf);
    close(fd);
    return r;
}
