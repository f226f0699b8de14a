/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * completion.h: prints the shell's completion of the command line of `trocar`. The commands come
 * from the table of ctl/command.c, the options from options.h, so a new row is completed without
 * another word.
 */
#ifndef TROCAR_CTL_CLI_COMPLETION_H
#define TROCAR_CTL_CLI_COMPLETION_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A command, as its help has it. */
struct completion_command {
	const char *words[2];  /* the second may be NULL */
	const char *arguments; /* "[FILE]"; NULL: none */
	const char *help;
	uint64_t options; /* OPTION_BIT */
};

/*
 * Prints the completion for `shell`, which is "bash", "zsh" or "fish", for `n` commands. Commands
 * of the same first word stand together. -EINVAL: no such shell; nothing is printed.
 */
int completion_print(const char *shell, const struct completion_command *commands, size_t n,
		     FILE *out);

#endif
