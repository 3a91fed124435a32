/* SPDX-License-Identifier: Apache-2.0 */
#include "data/iterator/activity.h"

#include <string.h>

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

uint64_t pl_activity_progress(pl_pass *pass)
{
    uint64_t sum = 0, n_stages = 0;
    pthread_mutex_lock(&pass->mu);
    for (const pl_stage *stage = pass->stages; stage; stage = stage->earlier, n_stages++)
        sum += read_counter(&stage->profile.n_elements) + read_counter(&stage->profile.n_bad);
    pthread_mutex_unlock(&pass->mu);
    return sum + (n_stages << 48); /* opening or closing one is progress, too */
}

static bool is_entered(const pl_stage *stage)
{
    return atomic_load_explicit(&stage->profile.entered, memory_order_relaxed) != 0;
}

static bool is_calling(const pl_stage *stage)
{
    return atomic_load_explicit(&stage->profile.n_inside, memory_order_relaxed) > 0;
}

/* Then the input is to blame. */
static bool waits_for_input(const pl_pass *pass, const pl_stage *of)
{
    for (const pl_stage *stage = pass->stages; stage; stage = stage->earlier)
        if (stage->parent == of && (is_entered(stage) || is_calling(stage)))
            return true;
    return false;
}

static void describe_one(const pl_stage *stage, char text[PL_ACTIVITY_TEXT_BYTES])
{
    size_t n = strlen(text);
    char name[80] = "";
    if (stage->dataset->name)
        snprintf(name, sizeof name, " '%s'", stage->dataset->name);
    snprintf(text + n, PL_ACTIVITY_TEXT_BYTES - n, "%s%s%s: %s after %llu elements",
             n > 0 ? "; " : "", stage->dataset->class->name, name,
             is_calling(stage) ? "its function has not returned" : "it has made nothing",
             (unsigned long long)read_counter(&stage->profile.n_elements));
}

void pl_activity_describe(pl_pass *pass, char text[PL_ACTIVITY_TEXT_BYTES])
{
    text[0] = '\0';
    pthread_mutex_lock(&pass->mu);
    for (const pl_stage *stage = pass->stages; stage; stage = stage->earlier)
        if (is_calling(stage) || (is_entered(stage) && !waits_for_input(pass, stage)))
            describe_one(stage, text);
    pthread_mutex_unlock(&pass->mu);
    if (text[0] == '\0')
        snprintf(text, PL_ACTIVITY_TEXT_BYTES, "no stage is at work");
}
