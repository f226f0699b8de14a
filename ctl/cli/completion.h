/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * completion.h: prints a shell's completion script for the command line of `trocar`. The commands
 * are those of the table of ctl/command.c, the options those of options.h, so a new row needs no
 * change here.
 */
#ifndef TROCAR_CTL_CLI_COMPLETION_H
#define TROCAR_CTL_CLI_COMPLETION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A command, as in its help. */
struct completion_command {
	const char *words[2];  /* the second may be NULL */
	const char *arguments; /* "[FILE]"; NULL: none */
	const char *help;
	uint64_t options; /* OPTION_BIT */
};

/*
 * Prints the completion of `n` commands for `shell`: "bash", "zsh" or "fish". Commands with the
 * same first word must be adjacent. -EINVAL: no such shell; nothing is printed.
 */
int completion_print(const char *shell, const struct completion_command *commands, size_t n,
		     FILE *out);

#endif
