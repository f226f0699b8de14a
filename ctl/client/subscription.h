/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subscription.h: follows the agent's lines over one connection (docs/control.md, "subscribe and
 * lines"), on which the caller also makes the request to follow. Functions that return an int
 * return enum command_exit and print the failure themselves.
 */
#ifndef TROCAR_CTL_CLIENT_SUBSCRIPTION_H
#define TROCAR_CTL_CLIENT_SUBSCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/cli/options.h"
#include "ctl/client/client.h"
#include "shared/tools/clock.h"

/* How often to ask for lines. */
#define SUBSCRIPTION_ASK_NS (100 * NSEC_PER_MSEC)

/* For names and lines, after a capture has ended. */
#define SUBSCRIPTION_LATE_NS (30 * NSEC_PER_SEC)

struct subscription {
	const struct options *options; /* borrowed */
	int fd;			       /* owned; -1: not connected */
	uint64_t number;	       /* the agent's */
	uint64_t omitted;	       /* lines that came too fast for the agent to keep them */
};

/*
 * Takes one line: an object; its text is answer->line + line->offset, line->extent bytes long. 0,
 * or -errno, which ends the following.
 */
typedef int (*subscription_take)(void *context, const struct client_answer *answer,
				 const struct json_node *line);

/* Connects. Release with subscription_done, also after a failure. */
int subscription_connect(struct subscription *s, const struct options *options);

/* Subscribes on the connection: lines from now on are kept for it. */
int subscription_begin(struct subscription *s);

/* Asks on the connection; on COMMAND_FINE *ret_answer has a result and is the caller's. */
int subscription_ask(struct subscription *s, const char *method, const struct jsonw *params,
		     struct client_answer *ret_answer);

/*
 * Asks once for lines and gives each to `take`. *ret_more: there are more at once. *ret_error is 0,
 * or with COMMAND_FAILED the value of `take`, which is not printed yet.
 */
int subscription_lines(struct subscription *s, subscription_take take, void *context,
		       bool *ret_more, int *ret_error);

/* Waits until it is time to ask again. */
void subscription_pause(void);

/* The member of that key and kind; NULL: none. */
const struct json_node *subscription_member(const struct json_node *object, const char *key,
					    enum json_kind kind);

void subscription_done(struct subscription *s);

#endif
