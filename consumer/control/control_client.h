/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_client.h: one connection of the control socket: its bytes in and out; control.c decides
 * which peers may connect. Both buffers exist only while they are not empty.
 */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_CLIENT_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/control/control.h"
#include "consumer/control/control_request.h"

struct control_client {
	struct control_server *server;
	struct loop_source *source;
	struct control_peer peer;
	int fd;
	bool eof;     /* the peer will send no more */
	bool closing; /* an error was sent: close after sending it */
	char *in;     /* owned: in_bytes bytes of unanswered requests, from in_start on */
	size_t in_start, in_bytes, in_space;
	size_t in_scanned;		/* part of in_bytes known to contain no newline */
	struct control_pending pending; /* the request in progress, if there is one */
	struct jsonw out;		/* answers; out_sent bytes of them are sent */
	size_t out_sent;
	/* The time since when an incomplete request or an unread answer waits; 0: neither. */
	uint64_t since_ns;
	uint64_t asked_ns; /* time of its last request, or of its begin */
};

/* The admins in addition to root; -1: no group, no user. */
struct control_admins {
	gid_t group;
	uid_t user;
};

/* Takes `fd` over and reads the peer's credentials (unix(7), socket(7)). */
void control_client_init(struct control_client *client, int fd,
			 const struct control_admins *admins);
void control_client_done(struct control_client *client);

/* Reads once into the buffer. Returns 0; -EAGAIN; -EMSGSIZE if a request is too long; -errno. */
int control_client_read(struct control_client *client);

/*
 * Finds the next complete request, without its '\n', borrowed until control_client_next. Returns
 * false if there is none.
 */
bool control_client_line(struct control_client *client, const char **ret_line, size_t *ret_bytes);

/* Removes the first `bytes` bytes and the '\n' after them. */
void control_client_next(struct control_client *client, size_t bytes);

/* Sends the rest of the answer. Returns 0 when all is sent; -EAGAIN; -errno. */
int control_client_send(struct control_client *client);

static inline bool control_client_unsent(const struct control_client *client)
{
	return client->out.bytes > client->out_sent;
}

/* Returns the bytes of memory that this client holds. */
static inline size_t control_client_bytes(const struct control_client *client)
{
	return client->in_space + client->out.space;
}

#endif
