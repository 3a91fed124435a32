/* SPDX-License-Identifier: Apache-2.0 */
/* The command table of `plimsoll`. */
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/version_note.h"
#include "cli/commands.h"
#include "cli/say.h"
#include "sys/lost_page.h"

PL_VERSION_NOTE;

static const struct command {
    const char *name;
    int (*call)(int argc, char **argv);
    const char *summary;
    const char *usage;
} commands[] = {
    {"run", pl_cmd_run, "run a command under the line, and explain how it ended",
     "usage: plimsoll run [OPTION...] -- COMMAND [ARG...]\n"
     "\n"
     "  --budget SIZE|N%     the line: 512M, 2G, or 80% of what there is (default: what\n"
     "                       PLIMSOLL_BUDGET says, else all, less the reserve)\n"
     "  --reserve SIZE       kept above the line for what cannot be refused (default: 80M, or an\n"
     "                       eighth of a small budget)\n"
     "  --sparse[=PROGRAM]   large arrays count when touched, not when made (of PROGRAM only)\n"
     "  --observe            record and explain, refuse nothing\n"
     "  --hang-after TIME    report threads and locks after so long without progress (90s, 5m)\n"
     "  --hang-stop          then stop the command\n"
     "  --kernel FILE        the command is a Jupyter kernel, FILE its connection file; auto: the\n"
     "                       one that the command names\n"
     "  --record DIR         keep the record in DIR (default: the state folder)\n"
     "  --report FILE        also write the report, as JSON, to FILE\n"
     "  --quiet              print no explanation at the end\n"
     "\n"
     "The exit status is the command's own; 128+N if signal N ended it; 125 if plimsoll itself\n"
     "failed; 126 if the command cannot be run, 127 if it cannot be found.\n"},
    {"explain", pl_cmd_explain, "explain what happened to a run",
     "usage: plimsoll explain [RUN] [--json]\n"
     "\n"
     "RUN is an id from 'plimsoll runs' or the start of one, the pid of one of its processes, the\n"
     "path of a record, or 'last' (the default).\n"},
    {"top", pl_cmd_top, "show the state of a run now: memory, processes, notebook cells",
     "usage: plimsoll top [RUN] [--json]\n"
     "\n"
     "RUN is named as for 'plimsoll explain'. The default is the run that this process is in, "
     "else\n"
     "the newest that still runs.\n"},
    {"runs", pl_cmd_runs, "list the runs on record", "usage: plimsoll runs [--json]\n"},
    {"budget", pl_cmd_budget, "show how much memory is available, and what limits it",
     "usage: plimsoll budget [--budget SIZE|N%] [--reserve SIZE] [--json]\n"},
    {"doctor", pl_cmd_doctor, "find what would go wrong on this machine, and how to fix it",
     pl_doctor_usage},
    {"check", pl_cmd_check, "find the bad files of a dataset before training hits them",
     pl_check_usage},
    {"jupyter", pl_cmd_jupyter, "make, list and remove Jupyter kernels that run under the line",
     pl_jupyter_usage},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(void)
{
    printf("plimsoll keeps programs below a line of memory, and explains why they died\n\n"
           "usage: plimsoll COMMAND [ARG...]\n\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    printf("  %-9s %s\n", "help", "show this, or a command's options: plimsoll help COMMAND");
    printf("\n'plimsoll COMMAND --help' shows a command's options, 'plimsoll --version' the "
           "version and what\nit was built with.\n");
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    char text[PL_NEAREST_TEXT_BYTES];
    pl_nearest nearest = pl_nearest_begin(name, "");
    for (int i = 0; i < N_COMMANDS; i++)
        pl_nearest_try(&nearest, commands[i].name);
    pl_say_error("unknown command '%s'%s (see 'plimsoll help')", name,
                 pl_nearest_text(&nearest, text));
    return PL_EXIT_FAILURE;
}

/* The options of the command named; without a name, the list of commands. */
static int help(const char *name)
{
    const struct command *command = name ? find_command(name) : NULL;
    if (name && !command && strcmp(name, "help") != 0)
        return refuse_command(name);
    if (command)
        fputs(command->usage, stdout);
    else
        print_help();
    return 0;
}

/* --help among the command's own options, not among those of what it runs. */
static int asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    pl_lost_page_survive(); /* a program can truncate the ledger of its run */
    if (strcmp(name, "--version") == 0)
        return pl_cmd_version(argc - 1, argv + 1);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(NULL);
    if (strcmp(name, "help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (!*name) {
        pl_say_error("no command given (see 'plimsoll help')");
        return PL_EXIT_FAILURE;
    }
    const struct command *command = find_command(name);
    if (!command)
        return refuse_command(name);
    return asks_for_help(argc - 1, argv + 1) ? help(name) : command->call(argc - 1, argv + 1);
}
