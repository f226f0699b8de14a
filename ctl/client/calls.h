/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h: what each command does: asks the agent and shows its answer. `arguments` are the words
 * after the command's own, as many as its row in command.c has. All return enum command_exit.
 */
#ifndef TROCAR_CTL_CLIENT_CALLS_H
#define TROCAR_CTL_CLIENT_CALLS_H

#include "ctl/cli/options.h"
#include "ctl/client/client.h"

int calls_status(const struct options *options, const char *const *arguments);
int calls_rules_get(const struct options *options, const char *const *arguments);
int calls_rules_set(const struct options *options, const char *const *arguments);
int calls_watches(const struct options *options, const char *const *arguments);
int calls_sessions(const struct options *options, const char *const *arguments);
int calls_version(const struct options *options, const char *const *arguments);

/* The socket that the command line or the environment names. */
const char *calls_socket(const struct options *options);

/*
 * Reads a rules file, "-" for standard input. On COMMAND_FINE the text is the caller's; else it has
 * printed the fault.
 */
int calls_read_rules(const struct options *options, const char *file, char **ret_text,
		     size_t *ret_bytes);

/* Whether client_open's error means: there is no agent, or none that the caller may ask. */
bool calls_is_absent(int error);

/*
 * A new text without newline: where no agent is, the reason, and the thing to check. NULL: no
 * memory.
 */
char *calls_absence(const struct options *options, int error);

/* Says why there is no answer: one line, with the thing to check. Returns enum command_exit. */
int calls_explain(const struct options *options, int error);

/* Prints a node of the answer as one line of JSON. */
void calls_print_json(const struct options *options, const struct client_answer *answer,
		      const struct json_node *node);

/*
 * Says why the agent refused: its answer has an error. Returns COMMAND_HELD when it held a session
 * back, else COMMAND_FAILED.
 */
int calls_refused(const struct options *options, const struct client_answer *answer);

#endif
