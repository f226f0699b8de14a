/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control.h: the control socket: JSON-RPC 2.0, one object per line, over a stream Unix socket. This
 * file handles clients, framing, permission and dispatch; methods.c has the methods. Each client
 * costs a bounded amount of memory; a client that is slow, incomplete or malformed gets an error
 * and is closed. Main thread only. Fuzzed (tests/fuzz/consumer/control.c) through control_request.
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
#include "shared/rules/rules.h"

struct jsonw;

#define CONTROL_CLIENTS_MAX   64
#define CONTROL_REQUEST_BYTES RULES_REQUEST_BYTES
#define CONTROL_ANSWER_BYTES  (8u << 20)
#define CONTROL_JOBS_MAX      4		  /* requests in progress */
#define CONTROL_HELD_BYTES    (16u << 20) /* of all clients: unfinished requests, unread answers */
#ifndef CONTROL_IDLE_MS			  /* a test may set a shorter time */
#define CONTROL_IDLE_MS 60000		  /* limit for an incomplete request or an unread answer */
#endif

/* The peer: SO_PEERCRED and SO_PEERGROUPS, read at accept(2). */
struct control_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	bool admin;	     /* root, the agent's own user, or in the admin group */
	uint64_t connection; /* its number, from 1; never reused */
};

/*
 * A method. `params` is the request's params object or NULL (borrowed). On success it writes
 * exactly one JSON value to `result` with key NULL and returns 0. On failure it fills in `error`
 * and returns -1.
 */
typedef int (*control_call)(void *context, const struct control_peer *peer,
			    const struct json_node *params, struct jsonw *result,
			    struct control_error *error);

/*
 * A request that may take longer than a time slice of the main loop (turn.h). It is the first
 * member of a struct with the request's data, because the request itself no longer exists then.
 */
struct control_job {
	/*
	 * Continues until turn_until_ns. Returns 1: there is more, and nothing was written to
	 * `result`; 0 and -1: as control_call.
	 */
	int (*step)(struct control_job *job, struct jsonw *result, struct control_error *error);
	/* Frees the job, even before its end: the client has closed the connection. */
	void (*free)(struct control_job *job);
};

/* Begins a request in parts; otherwise as control_call. On success the caller owns *ret_job. */
typedef int (*control_begin)(void *context, const struct control_peer *peer,
			     const struct json_node *params, struct control_job **ret_job,
			     struct control_error *error);

struct control_method {
	const char *name;
	bool changes; /* it changes state: for admins only */
	control_call call;
	control_begin begin; /* instead of `call` */
};

struct control_stats {
	uint64_t accepted, refused, requests, errors, forbidden, closed_slow;
	unsigned int clients, jobs; /* current connections, and requests in progress */
};

struct control_server;

/*
 * Listens on `path` (mode 0660, group `group` unless (gid_t)-1). Removes a stale socket there;
 * returns -EADDRINUSE for a live one, -EEXIST for anything else. Call before the lock-down.
 * `methods` is borrowed and ends with a NULL name; admin_group (gid_t)-1: only root is admin.
 * Returns 0 or -errno. Release with control_free.
 */
int control_new(struct loop *loop, const char *path, gid_t group, gid_t admin_group,
		const struct control_method *methods, void *context,
		struct control_server **ret_server);

/*
 * Also treats processes of `user` as admins: the agent's own user, which could write its maps in
 * any case. In a container it is the user of `kubectl exec`. Call before the loop runs.
 */
void control_set_user(struct control_server *server, uid_t user);

/*
 * Registers `closed`, which is called with the number of each connection that ends, so that a
 * method's state for a connection ends with it.
 */
void control_on_close(struct control_server *server,
		      void (*closed)(void *context, uint64_t connection), void *context);

/*
 * Closes all clients and the socket; removes its path if it still belongs to this server and may be
 * removed.
 */
void control_free(struct control_server *server);

void control_stats(const struct control_server *server, struct control_stats *ret_stats);

/*
 * Answers one request line of `bytes` bytes for `peer`, however long that takes: appends the answer
 * with its '\n' to `answer` (nothing for a notification). Needs no socket. Returns 0 or -ENOMEM.
 */
int control_request(const struct control_method *methods, void *context,
		    const struct control_peer *peer, const char *line, size_t bytes,
		    struct jsonw *answer);

#endif
