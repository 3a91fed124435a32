/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that are kept: a table by signature, and a list by when they were used. With the
 * GIL. What the cache has refers to no call: see program_ref(); a call that ends takes its programs
 * along. */
#include <string.h>

#include "python/program/program_private.h"

enum { N_PLACES = 256 }; /* twice PROGRAM_KEPT */

static program *places[N_PLACES];
static program *first, *last; /* used last, and longest ago */
static int n_kept;

/* After wyhash: words are multiplied into each other. */
static uint64_t hash_of(const byte_list *signature)
{
    const char *at = signature->data;
    size_t n = signature->n;
    uint64_t hash = n * UINT64_C(0x9E3779B97F4A7C15), word = 0;
    for (; n >= sizeof word; n -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0xE7037ED1A0B428DB);
        hash = (uint64_t)product ^ (uint64_t)(product >> 64) ^ hash << 1;
    }
    word = 0;
    memcpy(&word, at, n);
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x8EBC6AF09C88C6E3);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void unlink_use(program *self)
{
    *(self->before ? &self->before->after : &first) = self->after;
    *(self->after ? &self->after->before : &last) = self->before;
}

static void link_first(program *self)
{
    self->before = NULL;
    self->after = first;
    *(first ? &first->before : &last) = self;
    first = self;
}

static void drop(program *self)
{
    program **at = &places[self->hash % N_PLACES];
    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    unlink_use(self);
    self->kept = false;
    n_kept--;
    program_let_go(self);
}

program *program_cache_find(const node_walk *walk)
{
    const byte_list *signature = &walk->signature;
    uint64_t hash = hash_of(signature);
    for (program *p = places[hash % N_PLACES]; p; p = p->next)
        if (p->hash == hash && p->n_signature == signature->n &&
            memcmp(p->signature, signature->data, signature->n) == 0) {
            if (p != first) {
                unlink_use(p);
                link_first(p);
            }
            return program_ref(p);
        }
    return NULL;
}

void program_cache_keep(program *self, const node_walk *walk)
{
    self->signature = PyMem_Malloc(walk->signature.n);
    if (!self->signature)
        return;
    memcpy(self->signature, walk->signature.data, walk->signature.n);
    self->n_signature = walk->signature.n;
    self->hash = hash_of(&walk->signature);
    self->kept = true;
    self->next = places[self->hash % N_PLACES];
    places[self->hash % N_PLACES] = self;
    link_first(self);
    atomic_fetch_add(&self->n_refs, 1);
    if (++n_kept > PROGRAM_KEPT)
        drop(last);
}

void program_cache_forget(const call *ended)
{
    for (program *p = first, *after; p; p = after) {
        after = p->after;
        for (int i = 0; i < p->n_calls; i++)
            if (p->calls[i] == ended) {
                drop(p);
                break;
            }
    }
}

void program_cache_forget_all(void)
{
    while (first)
        drop(first);
}
