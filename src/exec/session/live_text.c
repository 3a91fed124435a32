/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the list of live.h as a table or JSON. Users choose names, of any bytes, so this file
 * makes them printable. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "exec/session/live.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "util/text.h"

static const char *const kind_names[] = {
    [PL_LIVE_VARIABLE] = "variable", [PL_LIVE_CONSTANT] = "constant", [PL_LIVE_TENSOR] = "tensor",
    [PL_LIVE_SESSION] = "session",   [PL_LIVE_RUN] = "run",
};

static const char *const where_names[] = {
    [PL_LIVE_NOWHERE] = "-",
    [PL_LIVE_MEMORY] = "memory",
    [PL_LIVE_SPILL] = "spill",
    [PL_LIVE_FILE] = "file",
};

static bool has_elements(const pl_live_entry *entry)
{
    return entry->where != PL_LIVE_NOWHERE;
}

/* Returns the bytes of the character that begins here, in shortest-form UTF-8; 0: it is not
 * valid. */
static int character_bytes(const unsigned char *at)
{
    int n = at[0] < 0x80   ? 1
            : at[0] < 0xc2 ? 0
            : at[0] < 0xe0 ? 2
            : at[0] < 0xf0 ? 3
            : at[0] < 0xf5 ? 4
                           : 0;
    for (int i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool too_long = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool no_character = (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf4 && at[1] >= 0x90);
    return n > 1 && (too_long || no_character) ? 0 : n;
}

static void write_quoted(const char *text, FILE *to)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', to);
    while (*at) {
        int n = character_bytes(at);
        if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(to, "\\u%04x", *at);
        else if (n == 0)
            fputs("\\ufffd", to);
        else
            fwrite(at, 1, (size_t)n, to);
        at += n > 0 ? n : 1;
    }
    fputc('"', to);
}

/* Replaces bytes that do not print by '?', so that a name cannot control the terminal. */
static void write_name(const char *text, FILE *to)
{
    int n = 0;
    for (; *text; text++, n++)
        fputc(*text >= 0x20 && *text < 0x7f ? *text : '?', to);
    fprintf(to, "%*s", n < 32 ? 32 - n : 0, "");
}

static void write_entry(const pl_live_entry *entry, FILE *to)
{
    fprintf(to, "%-8s ", kind_names[entry->kind]);
    write_name(entry->name, to);
    fprintf(to, " %-8s %-16s %10s %-6s %4d ",
            has_elements(entry) ? pl_dtype_info_of(entry->dtype)->name : "-",
            has_elements(entry) ? PL_SHAPE_TEXT(&entry->shape) : "-", PL_SIZE(entry->bytes),
            where_names[entry->where], entry->n_refs);
    if (entry->session > 0)
        fprintf(to, " session %" PRIu64, entry->session);
    fprintf(to, "%s%s\n", entry->shared ? " shared" : "", entry->pinned ? " pinned" : "");
}

static void write_text(const pl_live *live, FILE *to)
{
    fprintf(to, "%-8s %-32s %-8s %-16s %10s %-6s %4s\n", "kind", "name", "dtype", "shape", "bytes",
            "where", "refs");
    for (int i = 0; i < live->n_entries; i++)
        write_entry(&live->entries[i], to);
    for (int i = 0; i < live->n_totals; i++) {
        const pl_live_total *total = &live->totals[i];
        fputs(i == 0 ? "\nin scope                                    n     memory      spill      "
                       " file\n"
                     : "",
              to);
        write_name(total->scope[0] ? total->scope : "(none)", to);
        fprintf(to, " %12d %10s %10s %10s\n", total->n, PL_SIZE(total->memory_bytes),
                PL_SIZE(total->spill_bytes), PL_SIZE(total->file_bytes));
    }
}

static void write_json_entry(const pl_live_entry *entry, FILE *to)
{
    fprintf(to, "{\"kind\":\"%s\",\"name\":", kind_names[entry->kind]);
    write_quoted(entry->name, to);
    fputs(",\"scope\":", to);
    write_quoted(entry->scope, to);
    if (entry->session > 0)
        fprintf(to, ",\"session\":%" PRIu64, entry->session);
    if (has_elements(entry))
        fprintf(to, ",\"dtype\":\"%s\",\"shape\":%s,\"where\":\"%s\",\"shared\":%s,\"pinned\":%s",
                pl_dtype_info_of(entry->dtype)->name, PL_SHAPE_TEXT(&entry->shape),
                where_names[entry->where], entry->shared ? "true" : "false",
                entry->pinned ? "true" : "false");
    fprintf(to, ",\"bytes\":%" PRIu64 ",\"n_refs\":%d}", entry->bytes, entry->n_refs);
}

static void write_json(const pl_live *live, FILE *to)
{
    fputs("{\"schema\":1,\"entries\":[", to);
    for (int i = 0; i < live->n_entries; i++) {
        fputs(i > 0 ? "," : "", to);
        write_json_entry(&live->entries[i], to);
    }
    fputs("],\"totals\":[", to);
    for (int i = 0; i < live->n_totals; i++) {
        const pl_live_total *total = &live->totals[i];
        fputs(i > 0 ? ",{\"scope\":" : "{\"scope\":", to);
        write_quoted(total->scope, to);
        fprintf(to,
                ",\"n\":%d,\"memory_bytes\":%" PRIu64 ",\"spill_bytes\":%" PRIu64
                ",\"file_bytes\":%" PRIu64 "}",
                total->n, total->memory_bytes, total->spill_bytes, total->file_bytes);
    }
    fputs("]}\n", to);
}

char *pl_live_text(const pl_live *live, bool as_json)
{
    PL_NULL_GIVES(live, NULL);
    pl_text text;
    if (!pl_text_open(&text))
        return NULL;
    (as_json ? write_json : write_text)(live, text.to);
    return pl_text_close(&text);
}
