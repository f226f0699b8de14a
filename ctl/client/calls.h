/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h: the commands that send a request to the agent and print its answer. `arguments` are the
 * words after the command's own words, as many as in its row in command.c. All return enum
 * command_exit.
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

/* Returns the path of the socket from the command line or the environment. */
const char *calls_socket(const struct options *options);

/*
 * Reads a rules file, "-" for standard input. On COMMAND_FINE the caller owns the text; else the
 * fault was printed.
 */
int calls_read_rules(const struct options *options, const char *file, char **ret_text,
		     size_t *ret_bytes);

/*
 * Returns whether client_open's error means that no agent runs, or none that the caller may access.
 */
bool calls_is_absent(int error);

/*
 * Returns a new text without newline: the socket without an agent, the reason, and the thing to
 * check. NULL: no memory.
 */
char *calls_absence(const struct options *options, int error);

/* Prints why there is no answer: one line, with the thing to check. Returns enum command_exit. */
int calls_explain(const struct options *options, int error);

/* Prints a node of the answer as one line of JSON. */
void calls_print_json(const struct options *options, const struct client_answer *answer,
		      const struct json_node *node);

/*
 * Prints why the agent refused, for an answer with an error. Returns COMMAND_HELD if the agent held
 * a session back, else COMMAND_FAILED.
 */
int calls_refused(const struct options *options, const struct client_answer *answer);

#endif
