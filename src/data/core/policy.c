/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "data/core/quoted.h"

/* A share of fewer elements says little. */
enum { FRACTION_FROM = 100 };

const pl_policy pl_policy_fail = {.on_error = PL_ON_ERROR_FAIL};

/* ---- bad ones ---- */

pl_bad *pl_bad_new(const pl_error *error, const char *stage, const char *path)
{
    size_t n_stage = stage ? strlen(stage) + 1 : 0, n_path = path ? strlen(path) + 1 : 0;
    pl_bad *bad = malloc(sizeof *bad + n_stage + n_path);
    if (!bad)
        return NULL;
    *bad = (pl_bad){0};
    pl_error_copy(&bad->error, error);
    if (stage)
        bad->stage = memcpy(bad->texts, stage, n_stage);
    if (path)
        bad->path = memcpy(bad->texts + n_stage, path, n_path);
    return bad;
}

pl_bad *pl_bad_copy(const pl_bad *chain)
{
    pl_bad *first = NULL, **last = &first;
    for (; chain; chain = chain->next) {
        pl_bad *bad = pl_bad_new(&chain->error, chain->stage, chain->path);
        if (!bad)
            break;
        *last = bad;
        last = &bad->next;
    }
    return first;
}

void pl_bad_free(pl_bad *chain)
{
    while (chain) {
        pl_bad *next = chain->next;
        pl_error_done(&chain->error);
        free(chain);
        chain = next;
    }
}

pl_bad *pl_bad_join(pl_bad *before, pl_bad *after)
{
    pl_bad *first = before ? before : after;
    if (!before || !after)
        return first;
    int n = 1;
    for (; before->next; before = before->next)
        n++;
    before->next = after;
    for (; n < PL_BAD_CHAIN && before; n++)
        before = before->next;
    if (before)
        pl_bad_free(PL_TAKE(before->next));
    return first;
}

/* ---- the policy ---- */

bool pl_policy_may_skip(const pl_policy *policy, int code)
{
    bool of_the_pass =
        code == -ENOMEM || code == -ECANCELED || code == -ETIMEDOUT || code == PL_CHECK_LIMIT;
    return policy->on_error != PL_ON_ERROR_FAIL && !of_the_pass;
}

/* It is of the example's kind, and has its payload: a Python exception is the cause of both. */
static int refuse(pl_error *reterr, const pl_error *one, const char *numbers)
{
    const char *of = one && one->message[0] ? "; one of them: " : "";
    pl_error_set(reterr, PL_ECORRUPT, "%s%s%s", numbers, of, of[0] ? one->message : "");
    if (one && reterr) {
        pl_error_payload_ref(one->payload);
        pl_error_attach(reterr, one->payload);
        pl_error_of_kind(reterr, one->kind);
    }
    return PL_ECORRUPT;
}

int pl_policy_check(const pl_policy *policy, const pl_bad_count *count, bool at_end,
                    const pl_error *one, pl_error *reterr)
{
    char numbers[128];
    double share = count->n_items > 0 ? (double)count->n_bad / (double)count->n_items : 0;
    bool enough = at_end || count->n_items >= FRACTION_FROM;
    if (policy->max_bad > 0 && count->n_bad > policy->max_bad)
        snprintf(numbers, sizeof numbers, "%" PRIu64 " elements are bad, and %" PRIu64 " may be",
                 count->n_bad, policy->max_bad);
    else if (policy->max_bad_fraction > 0 && enough && share > policy->max_bad_fraction)
        snprintf(numbers, sizeof numbers,
                 "%" PRIu64 " of %" PRIu64 " elements are bad, and %g %% may be", count->n_bad,
                 count->n_items, policy->max_bad_fraction * 100);
    else
        return 0;
    return refuse(reterr, one, numbers);
}

typedef struct question {
    pl_error_payload payload;
    pl_bad_row row;
    pl_error one;
} question;

static void free_question(pl_error_payload *payload)
{
    question *asked = (question *)payload;
    pl_error_done(&asked->one);
    free(asked);
}

int pl_policy_ask(const pl_policy *policy, const pl_bad_row *row, const pl_error *one,
                  uint64_t *n_asked, pl_error *reterr)
{
    uint64_t n = row->count.n_bad;
    if (n < *n_asked) /* another row */
        *n_asked = 0;
    if (policy->max_bad_fraction == 0 || n < FRACTION_FROM || n / 2 < *n_asked)
        return 0;
    question *asked = calloc(1, sizeof *asked);
    if (!asked)
        return 0;
    *n_asked = n;
    asked->payload = (pl_error_payload){.n_refs = 1, .free = free_question};
    asked->row = *row;
    if (one)
        pl_error_copy(&asked->one, one);
    pl_error_set(reterr, PL_CHECK_LIMIT, "are %" PRIu64 " bad elements too many?", n);
    pl_error_attach(reterr, &asked->payload);
    return PL_CHECK_LIMIT;
}

const pl_bad_row *pl_policy_asked(const pl_error *error, const pl_error **ret_one)
{
    const question *asked = (const question *)error->payload;
    *ret_one = &asked->one;
    return &asked->row;
}

/* ---- the quarantine ---- */

static void write_time(FILE *to)
{
    uint64_t now_ns = pl_clock_realtime_ns();
    time_t now = (time_t)(now_ns / PL_NS_PER_SEC);
    struct tm parts;
    char text[32];
    gmtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    fprintf(to, "{\"time\": \"%s.%03uZ\"", text, (unsigned)(now_ns / PL_NS_PER_MS % 1000));
}

static void write_text_or_null(const char *name, const char *text, FILE *to)
{
    fprintf(to, ", \"%s\": ", name);
    if (text && text[0])
        pl_quoted_json(text, to);
    else
        fputs("null", to);
}

static void write_line(const pl_bad *bad, FILE *to)
{
    const pl_error *error = &bad->error;
    int64_t offset = pl_error_offset(error);
    write_time(to);
    fputs(", \"stage\": ", to);
    pl_quoted_json(bad->stage, to);
    fprintf(to, ", \"index\": %" PRId64, error->element);
    write_text_or_null("path", bad->path, to);
    if (offset >= 0)
        fprintf(to, ", \"offset\": %" PRId64, offset);
    else
        fputs(", \"offset\": null", to);
    fprintf(to, ", \"code\": \"%s\"", pl_error_name(error->code));
    write_text_or_null("op", error->op, to);
    fputs(", \"reason\": ", to);
    pl_quoted_json(pl_error_what(error), to);
    fputs("}\n", to);
}

/* Appends in one call, so that lines of several processes do not mix. */
static int append(const char *path, const char *line, size_t n)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0)
        return -errno;
    ssize_t done;
    do
        done = write(fd, line, n);
    while (done < 0 && errno == EINTR);
    int r = done < 0 ? -errno : (size_t)done < n ? -ENOSPC : 0;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}

int pl_policy_note(const pl_policy *policy, const pl_bad *bad, pl_error *reterr)
{
    if (policy->on_error != PL_ON_ERROR_QUARANTINE)
        return 0;
    char *line = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&line, &n);
    if (!to)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a line of the quarantine");
    write_line(bad, to);
    bool whole = !ferror(to);
    int r = fclose(to) == 0 && whole ? append(policy->quarantine_path, line, n) : -ENOMEM;
    free(line);
    if (r < 0)
        return pl_error_set(reterr, r, "quarantine '%s': cannot be written to: %s; of: %s",
                            policy->quarantine_path, pl_error_text(r), bad->error.message);
    return 0;
}
