/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subscription.h: follows the agent's lines over one connection (docs/control.md, "subscribe and
 * lines"). The caller follows the lines of a request that it makes on the same connection.
 * Functions that return an int return enum command_exit and print failures themselves.
 */
#ifndef TROCAR_CTL_CLIENT_SUBSCRIPTION_H
#define TROCAR_CTL_CLIENT_SUBSCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

#include "ctl/cli/options.h"
#include "ctl/client/client.h"
#include "shared/tools/clock.h"

/* The interval between requests for lines. */
#define SUBSCRIPTION_ASK_NS (100 * NSEC_PER_MSEC)

/* Time for late names and lines after a capture has ended. */
#define SUBSCRIPTION_LATE_NS (30 * NSEC_PER_SEC)

struct subscription {
	const struct options *options; /* borrowed */
	int fd;			       /* owned; -1: not connected */
	uint64_t number;	       /* number of the subscription, assigned by the agent */
	uint64_t omitted; /* lines that the agent dropped, because they came too fast */
};

/*
 * Receives one line: an object with its text at answer->line + line->offset, line->extent bytes
 * long. Returns 0, or -errno to stop following.
 */
typedef int (*subscription_take)(void *context, const struct client_answer *answer,
				 const struct json_node *line);

/* Connects to the agent. Release with subscription_done, also after a failure. */
int subscription_connect(struct subscription *s, const struct options *options);

/* Subscribes on the connection: from now on the agent keeps lines for it. */
int subscription_begin(struct subscription *s);

/*
 * Sends a request on the connection; on COMMAND_FINE *ret_answer has a result, and the caller owns
 * it.
 */
int subscription_ask(struct subscription *s, const char *method, const struct jsonw *params,
		     struct client_answer *ret_answer);

/*
 * Requests lines once and passes each to `take`. *ret_more: more lines are available at once.
 * *ret_error is 0, or with COMMAND_FAILED the value of `take`, which is not printed yet.
 */
int subscription_lines(struct subscription *s, subscription_take take, void *context,
		       bool *ret_more, int *ret_error);

/* Waits until the next request is due. */
void subscription_pause(void);

/* Returns the member with that key and kind; NULL: none. */
const struct json_node *subscription_member(const struct json_node *object, const char *key,
					    enum json_kind kind);

void subscription_done(struct subscription *s);

#endif
