/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h: the control socket: JSON-RPC 2.0, one object per line, over a stream Unix socket. It
 * knows clients, framing, permission and dispatch; what a method does stands in methods.c. Each
 * client costs a bounded amount of memory; one that is slow, half-done or malformed is told, then
 * closed. Main thread only. Fuzzed (tests/fuzz/consumer/control.c) through control_request.
 */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "consumer/control/control_error.h"
#include "consumer/io/loop.h"
#include "shared/json/json_node.h"
#include "shared/json/jsonw.h"

#define CONTROL_CLIENTS_MAX   64
#define CONTROL_REQUEST_BYTES (1u << 20)
#define CONTROL_ANSWER_BYTES  (8u << 20)
#define CONTROL_HELD_BYTES    (16u << 20) /* of all clients' half-done requests and unread answers */
#ifndef CONTROL_IDLE_MS			  /* a test may be shorter of patience */
#define CONTROL_IDLE_MS 60000 /* a half-done request or an unread answer waits this long */
#endif

/* Who asks, by SO_PEERCRED and SO_PEERGROUPS at accept(2). */
struct control_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	bool admin; /* root or in the admin group: may change something */
};

/*
 * A method. `params` is the request's params object or NULL (borrowed). Success: exactly one JSON
 * value written to `result` with key NULL, returns 0. Failure: error filled in, returns -1.
 */
typedef int (*control_call)(void *context, const struct control_peer *peer,
			    const struct json_node *params, struct jsonw *result,
			    struct control_error *error);

struct control_method {
	const char *name;
	bool changes; /* for admins only */
	control_call call;
};

struct control_stats {
	uint64_t accepted, refused, requests, errors, forbidden, closed_slow;
	unsigned int clients;
};

struct control_server;

/*
 * Listens on `path` (mode 0660, group `group` unless (gid_t)-1; a stale socket is removed, a live
 * one is -EADDRINUSE, anything else in its place -EEXIST). To be called before the lock-down.
 * `methods` ends with a NULL name and is borrowed; admin_group (gid_t)-1: only root. 0 or -errno.
 */
int control_new(struct loop *loop, const char *path, gid_t group, gid_t admin_group,
		const struct control_method *methods, void *context,
		struct control_server **ret_server);

/* Closes all clients and the socket, and removes its path when it is still ours and may be. */
void control_free(struct control_server *server);

void control_stats(const struct control_server *server, struct control_stats *ret_stats);

/*
 * Answers one request line of `bytes` bytes for `peer`: writes the answer with its '\n' to `answer`
 * (nothing for a notification). No socket needed. 0 or -ENOMEM.
 */
int control_request(const struct control_method *methods, void *context,
		    const struct control_peer *peer, const char *line, size_t bytes,
		    struct jsonw *answer);

#endif
