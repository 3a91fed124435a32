/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluators: a runtime and its cached programs, in a hash table by signature and a list by last
 * use. The lock of expr.h guards all of it; dropped programs are freed without the lock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "program/lazy_program.h"

enum { N_PLACES = 256, N_PROGRAMS = 128 };

struct pl_evaluator {
    _Atomic int n_refs;
    pl_runtime *runtime;
    pl_lazy_program *places[N_PLACES];
    pl_lazy_program *first, *last; /* most and least recently used */
    int n_kept, n_most;
    const char *advice; /* set before the evaluator is shared; may be NULL */
    pl_evaluator *next; /* of all evaluators */
};

static pl_evaluator *evaluators; /* the lock */

int pl_evaluator_new(pl_runtime *runtime, int n_programs, pl_evaluator **ret_evaluator,
                     pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(ret_evaluator, reterr);
    pl_evaluator *self = calloc(1, sizeof *self);
    if (!self)
        return pl_error_set(reterr, -ENOMEM, "out of memory for an evaluator");
    self->n_refs = 1;
    self->runtime = pl_runtime_ref(runtime);
    self->n_most = n_programs > 0 ? n_programs : N_PROGRAMS;
    pl_exprs_lock();
    self->next = evaluators;
    evaluators = self;
    pl_exprs_unlock();
    *ret_evaluator = self;
    return 0;
}

pl_evaluator *pl_evaluator_ref(pl_evaluator *self)
{
    PL_NULL_GIVES(self, NULL);
    atomic_fetch_add(&self->n_refs, 1);
    return self;
}

pl_runtime *pl_evaluator_runtime(const pl_evaluator *self)
{
    PL_NULL_GIVES(self, NULL);
    return self->runtime;
}

void pl_evaluator_set_advice(pl_evaluator *self, const char *advice)
{
    PL_NULL_DOES_NOTHING(self);
    self->advice = advice;
}

/* The reason may be cut, the advice may not. */
int pl_evaluator_advise(const pl_evaluator *self, int r, pl_error *reterr)
{
    if (r != PL_EBUDGET || !self->advice || !reterr)
        return r;
    int n_advice = (int)strnlen(self->advice, sizeof reterr->message / 2);
    int n_most = PL_ERROR_MESSAGE_BYTES - 1 - n_advice - reterr->reason_at;
    return pl_error_reword(reterr, "%.*s%.*s", n_most > 0 ? n_most : 0, pl_error_reason(reterr),
                           n_advice, self->advice);
}

/* ---- the cache ---- */

/* After wyhash: words are multiplied into each other. */
static uint64_t hash_of(const pl_byte_list *signature)
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

static void unlink_use(pl_evaluator *self, pl_lazy_program *program)
{
    *(program->before ? &program->before->after : &self->first) = program->after;
    *(program->after ? &program->after->before : &self->last) = program->before;
}

static void link_first(pl_evaluator *self, pl_lazy_program *program)
{
    program->before = NULL;
    program->after = self->first;
    *(self->first ? &self->first->before : &self->last) = program;
    self->first = program;
}

/* Puts the program in front of those that were dropped before. */
static void drop(pl_evaluator *self, pl_lazy_program *program, pl_lazy_program **dropped)
{
    pl_lazy_program **at = &self->places[program->hash % N_PLACES];
    while (*at != program)
        at = &(*at)->next;
    *at = program->next;
    unlink_use(self, program);
    program->kept = false;
    program->next = *dropped;
    *dropped = program;
    self->n_kept--;
}

static pl_lazy_program *find(pl_evaluator *self, const pl_byte_list *signature, uint64_t hash)
{
    pl_lazy_program *p = self->places[hash % N_PLACES];
    while (p && !(p->hash == hash && p->n_signature == signature->n &&
                  memcmp(p->signature, signature->data, signature->n) == 0))
        p = p->next;
    if (p && p != self->first) {
        unlink_use(self, p);
        link_first(self, p);
    }
    return p;
}

/* Replaces the least recently used program. Out of memory, the program is not cached. */
static void keep(pl_evaluator *self, pl_lazy_program *program, pl_walk *walk, uint64_t hash)
{
    program->signature = malloc(walk->signature.n);
    if (!program->signature)
        return;
    memcpy(program->signature, walk->signature.data, walk->signature.n);
    program->n_signature = walk->signature.n;
    program->hash = hash;
    program->kept = true;
    program->next = self->places[hash % N_PLACES];
    self->places[hash % N_PLACES] = program;
    link_first(self, program);
    atomic_fetch_add(&program->n_refs, 1);
    if (++self->n_kept > self->n_most)
        drop(self, self->last, &walk->dropped);
}

int pl_evaluator_program(pl_evaluator *self, pl_walk *walk, pl_expr *const *fetches, int n_fetches,
                         pl_lazy_program **ret)
{
    uint64_t hash = hash_of(&walk->signature);
    pl_lazy_program *found = find(self, &walk->signature, hash);
    if (found) {
        *ret = pl_lazy_program_ref(found);
        return 0;
    }
    int r = pl_lazy_program_build(walk, fetches, n_fetches, ret, walk->reterr);
    if (r == 0)
        keep(self, *ret, walk, hash);
    return r;
}

/* ---- dropping ---- */

static bool has_call(const pl_lazy_program *program, const pl_routine *routine)
{
    for (int i = 0; i < program->n_calls; i++)
        if (program->calls[i] == routine)
            return true;
    return false;
}

/* NULL: all of them. */
static void forget(pl_evaluator *self, const pl_routine *routine, pl_lazy_program **dropped)
{
    for (pl_lazy_program *p = self->first, *after; p; p = after) {
        after = p->after;
        if (!routine || has_call(p, routine))
            drop(self, p, dropped);
    }
}

void pl_evaluators_forget(const pl_routine *ended)
{
    pl_lazy_program *dropped = NULL;
    pl_exprs_lock();
    for (pl_evaluator *at = evaluators; at; at = at->next)
        forget(at, ended, &dropped);
    pl_exprs_unlock();
    pl_lazy_program_let_go(dropped);
}

void pl_evaluator_forget(pl_evaluator *self)
{
    PL_NULL_DOES_NOTHING(self);
    pl_lazy_program *dropped = NULL;
    pl_exprs_lock();
    forget(self, NULL, &dropped);
    pl_exprs_unlock();
    pl_lazy_program_let_go(dropped);
}

void pl_evaluator_unref(pl_evaluator *self)
{
    if (!self || atomic_fetch_sub(&self->n_refs, 1) > 1)
        return;
    pl_evaluator_forget(self);
    pl_exprs_lock();
    pl_evaluator **at = &evaluators;
    while (*at != self)
        at = &(*at)->next;
    *at = self->next;
    pl_exprs_unlock();
    pl_runtime_unref(self->runtime);
    free(self);
}
