/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */
#include "cli/answer.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/say.h"

/* For several letters after one dash, getopt stays at the word until the last of them. */
const char *pl_refused_word(int argc, char **argv)
{
    const char *next = optind < argc ? argv[optind] : "";
    bool within = next[0] == '-' && next[1] != '-' && next[1] != '\0' && next[2] != '\0' &&
                  optopt != 0 && strchr(next + 1, optopt) != NULL;
    return within ? next : argv[optind - 1];
}

int pl_unknown_option(const char *command, const char *word, const struct option *longs,
                      pl_error *reterr)
{
    char names[32][32], text[PL_NEAREST_TEXT_BYTES];
    pl_nearest nearest = pl_nearest_begin(word, "=");
    for (size_t i = 0; longs[i].name && i < PL_COUNT_OF(names); i++) {
        snprintf(names[i], sizeof names[i], "--%s", longs[i].name);
        pl_nearest_try(&nearest, names[i]);
    }
    return pl_error_set(reterr, PL_EUSAGE, "%s: unknown option '%s'%s (see 'plimsoll %s --help')",
                        command, word, pl_nearest_text(&nearest, text), command);
}

bool pl_answer_parse(int argc, char **argv, bool takes_run, pl_answer_options *ret_options)
{
    static const struct option longs[] = {{"json", no_argument, NULL, 'j'}, {0}};
    pl_answer_options options = {0};
    opterr = 0;
    optind = 1;
    int c;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (c != 'j') {
            pl_error error = {0};
            (void)pl_unknown_option(argv[0], pl_refused_word(argc, argv), longs, &error);
            pl_say_error("%s", error.message);
            return false;
        }
        options.json = true;
    }
    int n_given = argc - optind;
    if (n_given > 0 && !takes_run) {
        pl_say_error("%s: unexpected argument '%s'", argv[0], argv[optind]);
        return false;
    }
    if (n_given > 1) {
        pl_say_error("%s: expected at most one run, got %d", argv[0], n_given);
        return false;
    }
    if (n_given == 1)
        options.run = argv[optind];
    *ret_options = options;
    return true;
}

int pl_answer_end(int r, const pl_error *error)
{
    if (r < 0) {
        pl_say_error("%s", error->message);
        return PL_EXIT_FAILURE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("plimsoll: cannot write the answer");
        return PL_EXIT_FAILURE;
    }
    return 0;
}
