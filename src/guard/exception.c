/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the C++ exception that a dying thread has in flight. Python loads extensions privately, and
 * libstdc++ with them: no look-up by name finds it from here. But a thread that std::terminate()
 * ends has return addresses into it near the top of its stack; _dl_find_object() finds their
 * library without a lock, and we read that library's symbol table by hand. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "guard/guard.h"
#include "sys/proc.h"

/* From abort() up to std::terminate() there are under 100 words, in glibc 2.36 and libstdc++ 12. */
enum { STACK_WORDS = 512 };

/* DT_GNU_HASH. After it: the Bloom filter, the buckets, and the chain of hashes, from the symbol
 * `first` on; the lowest bit of a hash ends the chain of its bucket. */
typedef struct gnu_hash {
    uint32_t n_buckets;
    uint32_t first;
    uint32_t n_filter_words;
    uint32_t filter_shift;
} gnu_hash;

typedef struct symbol_table {
    const ElfW(Sym) * symbols;
    const char *names;
    const gnu_hash *hash;
} symbol_table;

static bool is_cxx_runtime(const struct link_map *map)
{
    const char *slash = strrchr(map->l_name, '/');
    const char *name = slash ? slash + 1 : map->l_name;
    return strncmp(name, "libstdc++.so", strlen("libstdc++.so")) == 0 ||
           strncmp(name, "libc++abi.so", strlen("libc++abi.so")) == 0;
}

static bool read_symbol_table(const struct link_map *map, symbol_table *ret_table)
{
    symbol_table table = {0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)entry->d_un.d_ptr; /* the loader has relocated it */
        if (entry->d_tag == DT_SYMTAB)
            table.symbols = at;
        else if (entry->d_tag == DT_STRTAB)
            table.names = at;
        else if (entry->d_tag == DT_GNU_HASH)
            table.hash = at;
    }
    *ret_table = table;
    return table.symbols && table.names && table.hash && table.hash->n_buckets > 0;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static const void *find_symbol(const struct link_map *map, const char *name)
{
    symbol_table table;
    if (!read_symbol_table(map, &table))
        return NULL;
    uint32_t wanted = hash_of(name);
    const ElfW(Addr) *filter = (const ElfW(Addr) *)(table.hash + 1);
    const uint32_t *buckets = (const uint32_t *)(filter + table.hash->n_filter_words);
    const uint32_t *chain = buckets + table.hash->n_buckets;
    uint32_t i = buckets[wanted % table.hash->n_buckets];
    for (; i >= table.hash->first; i++) {
        uint32_t hash = chain[i - table.hash->first];
        const ElfW(Sym) *symbol = &table.symbols[i];
        if ((hash | 1) == (wanted | 1) && symbol->st_value != 0 &&
            strcmp(table.names + symbol->st_name, name) == 0)
            return (const void *)(map->l_addr + symbol->st_value);
        if (hash & 1)
            break;
    }
    return NULL;
}

static const struct link_map *find_cxx_runtime(const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct dl_find_object found;
        if (_dl_find_object((void *)(uintptr_t)words[i], &found) == 0 &&
            is_cxx_runtime(found.dlfo_link_map))
            return found.dlfo_link_map;
    }
    return NULL;
}

const void *pl_exception_type(uint64_t stack_pointer)
{
    uint64_t words[STACK_WORDS];
    ssize_t n = pl_proc_read_memory(getpid(), stack_pointer, words, sizeof words);
    const struct link_map *runtime =
        n > 0 ? find_cxx_runtime(words, (size_t)n / sizeof *words) : NULL;
    if (!runtime)
        return NULL;
    const void *(*current)(void);
    *(const void **)&current = find_symbol(runtime, "__cxa_current_exception_type");
    return current ? current() : NULL;
}
