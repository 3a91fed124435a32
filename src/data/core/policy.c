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

/* A share says little of the first few. */
enum { FRACTION_FROM = 100 };

const pl_policy pl_policy_fail = {.on_error = PL_ON_ERROR_FAIL};

/* ---- bad ones ---- */

static pl_bad *new_with(const char *message, const char *stage, const char *path)
{
    size_t n_message = strlen(message) + 1, n_stage = stage ? strlen(stage) + 1 : 0;
    size_t n_path = path ? strlen(path) + 1 : 0;
    pl_bad *bad = malloc(sizeof *bad + n_message + n_stage + n_path);
    if (!bad)
        return NULL;
    *bad = (pl_bad){.index = -1, .offset = -1};
    memcpy(bad->message, message, n_message);
    if (stage)
        bad->stage = memcpy(bad->message + n_message, stage, n_stage);
    if (path)
        bad->path = memcpy(bad->message + n_message + n_stage, path, n_path);
    return bad;
}

pl_bad *pl_bad_new(int code, const char *message)
{
    pl_bad *bad = new_with(message, NULL, NULL);
    if (bad)
        bad->code = code;
    return bad;
}

pl_bad *pl_bad_new_at(const pl_error *error, size_t reason_at, const char *stage, int64_t index,
                      const pl_element *element)
{
    pl_bad *bad = new_with(error->message, stage, element->origin ? element->origin->path : NULL);
    if (!bad)
        return NULL;
    size_t n = strlen(error->message);
    bad->code = error->code;
    bad->reason = bad->message + (reason_at < n ? reason_at : n);
    bad->index = index;
    bad->offset = element->origin ? element->offset : -1;
    return bad;
}

pl_bad *pl_bad_copy(const pl_bad *chain)
{
    pl_bad *first = NULL, **last = &first;
    for (; chain; chain = chain->next) {
        pl_bad *bad = new_with(chain->message, chain->stage, chain->path);
        if (!bad)
            break;
        bad->code = chain->code;
        bad->index = chain->index;
        bad->offset = chain->offset;
        bad->reason = chain->reason ? bad->message + (chain->reason - chain->message) : NULL;
        *last = bad;
        last = &bad->next;
    }
    return first;
}

void pl_bad_free(pl_bad *chain)
{
    while (chain) {
        pl_bad *next = chain->next;
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
        code == -ENOMEM || code == -ECANCELED || code == -ETIMEDOUT || code == PL_ASKED;
    return policy->on_error != PL_ON_ERROR_FAIL && !of_the_pass;
}

int pl_policy_check(const pl_policy *policy, const pl_bad_count *count, bool at_end,
                    const char *message, pl_error *reterr)
{
    const char *of = message[0] ? "; one of them: " : "";
    if (policy->max_bad > 0 && count->n_bad > policy->max_bad)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "%" PRIu64 " elements are bad, and %" PRIu64 " may be%s%s",
                            count->n_bad, policy->max_bad, of, message);
    double share = count->n_items > 0 ? (double)count->n_bad / (double)count->n_items : 0;
    bool enough = at_end || count->n_items >= FRACTION_FROM;
    if (policy->max_bad_fraction > 0 && enough && share > policy->max_bad_fraction)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "%" PRIu64 " of %" PRIu64 " elements are bad, and %g %% may be%s%s",
                            count->n_bad, count->n_items, policy->max_bad_fraction * 100, of,
                            message);
    return 0;
}

int pl_policy_ask(const pl_policy *policy, const pl_bad_row *row, const char *message,
                  uint64_t *n_asked, pl_error *reterr)
{
    uint64_t n = row->count.n_bad;
    if (n < *n_asked) /* another row */
        *n_asked = 0;
    if (policy->max_bad_fraction == 0 || n < FRACTION_FROM || n / 2 < *n_asked)
        return 0;
    *n_asked = n;
    return pl_error_set(reterr, PL_ASKED, "%" PRIu64 " %" PRIu64 " %" PRIuPTR " %s", n,
                        row->count.n_items, row->stage, message);
}

const char *pl_policy_asked(const pl_error *error, pl_bad_row *ret_row)
{
    char *end;
    ret_row->count.n_bad = strtoull(error->message, &end, 10);
    ret_row->count.n_items = strtoull(end, &end, 10);
    ret_row->stage = strtoull(end, &end, 10);
    return *end == ' ' ? end + 1 : end;
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

static void write_line(const pl_bad *bad, FILE *to)
{
    write_time(to);
    fputs(", \"stage\": ", to);
    pl_quoted_json(bad->stage, to);
    fprintf(to, ", \"index\": %" PRId64 ", \"path\": ", bad->index);
    if (bad->path)
        pl_quoted_json(bad->path, to);
    else
        fputs("null", to);
    if (bad->offset >= 0)
        fprintf(to, ", \"offset\": %" PRId64, bad->offset);
    else
        fputs(", \"offset\": null", to);
    fprintf(to, ", \"code\": \"%s\", \"reason\": ", pl_error_name(bad->code));
    pl_quoted_json(bad->reason, to);
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
                            policy->quarantine_path, pl_error_text(r), bad->message);
    return 0;
}
