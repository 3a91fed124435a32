/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/quoted.h"

#include <stdint.h>

/* Decodes the character that begins here, in shortest-form UTF-8; returns 0 bytes if it is
 * invalid. */
static int decode(const unsigned char *at, uint32_t *ret_character)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    int n = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    uint32_t c = n < 2 ? at[0] : at[0] & (0x7fu >> n);
    for (int i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (at[i] & 0x3f);
    }
    *ret_character = c;
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

static void write_escaped(uint32_t c, FILE *to)
{
    if (c == '"' || c == '\\')
        fprintf(to, "\\%c", (int)c);
    else if (c >= 0x20 && c < 0x7f)
        fputc((int)c, to);
    else if (c < 0x10000)
        fprintf(to, "\\u%04x", c);
    else
        fprintf(to, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
}

void pl_quoted_json(const char *text, FILE *to)
{
    fputc('"', to);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        uint32_t c = 0;
        int n = decode(at, &c);
        write_escaped(n > 0 ? c : 0xdc00u + *at, to);
        at += n > 0 ? n : 1;
    }
    fputc('"', to);
}
