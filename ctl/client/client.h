/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client.h: one call over the agent's control socket (docs/control.md). The answer is foreign data:
 * its length is bounded, it is parsed strictly, and checked to be an answer before it is used.
 */
#ifndef TROCAR_CTL_CLIENT_CLIENT_H
#define TROCAR_CTL_CLIENT_CLIENT_H

#include <stddef.h>

#include "shared/json/json_tree.h"
#include "shared/rules/rules.h"

struct jsonw;

#define CLIENT_REQUEST_BYTES RULES_REQUEST_BYTES /* the agent accepts no longer line */
#define CLIENT_ANSWER_BYTES  ((8u << 20) + 1)
#ifndef CLIENT_TIMEOUT_MS /* a test may set a shorter one */
#define CLIENT_TIMEOUT_MS 10000
#endif

/*
 * Either `result` or `error` is set; both are parts of the tree. Release with client_answer_done.
 */
struct client_answer {
	char *line; /* owned, without '\n', not terminated: offsets of nodes count from here */
	struct json_tree tree;
	const struct json_node *result;
	const struct json_node *error; /* an object with the number `code`, the string `message` */
};

/*
 * Connects to the socket `path`. The descriptor serves one call at a time; the caller closes it.
 * -ETIMEDOUT, else the -errno of socket(2) and connect(2).
 */
int client_open(const char *path);

/*
 * Calls `method` with `params` (JSON text of an object, NULL for none). 0 if the agent answered,
 * also with an error. -EMSGSIZE: the request is longer than the agent accepts; -EPROTO: the reply
 * is not an answer; -ETIMEDOUT; -EPIPE: closed without an answer. After a failure the connection is
 * of no use any more. Before the first answer the program gives up unneeded privileges (confine.h).
 */
int client_ask(int fd, const char *method, const struct jsonw *params,
	       struct client_answer *ret_answer);

/* Calls client_open and client_ask, and closes the connection. */
int client_call(const char *path, const char *method, const struct jsonw *params,
		struct client_answer *ret_answer);

void client_answer_done(struct client_answer *answer);

#endif
