/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_client.h: the consumer's side of the broker: one function per request that reads like a
 * plain call. Connects at the first request, again after the broker has left (it leaves when idle),
 * and goes on without it: then every call fails at once, and the broker is tried again after
 * BROKER_CLIENT_RETRY_NS.
 *
 * A link is one connection with one request at a time; any thread may call, and waits for the one
 * before. So the main loop has one of its own, and the threads that ask for foreign files another:
 * those answers may take the broker a second. No call waits longer than the link's limit for its
 * answer, nor do several in a row together. An answer that is late does not end the connection: it
 * is waited for aside, and until then every call fails at once; it is the answer to whoever asks
 * for the very same then.
 */
#ifndef TROCAR_CONSUMER_BROKER_BROKER_CLIENT_H
#define TROCAR_CONSUMER_BROKER_BROKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/broker/broker.h"
#include "shared/rules/rules.h"

#define BROKER_CLIENT_WAIT_MS 100 /* of the main loop */
#define BROKER_CLIENT_FILE_WAIT_MS                                              \
	1500 /* of others: the broker gives a file that hangs up after a second \
	      */
#define BROKER_CLIENT_GREET_MS 1000 /* before the loop runs */

#define BROKER_CLIENT_GRACE_NS \
	(1ULL * 1000000000) /* an answer that is late for less is no matter */
#define BROKER_CLIENT_OWED_NS (10ULL * 1000000000) /* and for more, the connection is given up */
/* Below the 5 s between two drains, so that each drain that finds something missing asks. */
#define BROKER_CLIENT_RETRY_NS (4ULL * 1000000000)

struct broker_client;
struct broker_client_brought;
struct loop;

/* What became of requests, for `trocar status`. */
struct broker_client_counts {
	uint64_t granted[BROKER_COUNT_];
	uint64_t refused[REFUSAL_COUNT_]; /* as answered to us; the broker's own counts are in its
					     pin */
	uint64_t unreachable;		  /* requests that found no broker, or no answer in time */
};

/* `path` of the socket (copied); "" for none, then every call is -ENOTCONN. A call waits at most
 * `wait_ms`. Opens nothing yet. 0, -ENOMEM or -ENAMETOOLONG (longer than a Unix address). */
int broker_client_new(const char *path, unsigned int wait_ms, struct broker_client **ret_link);
void broker_client_free(struct broker_client *link);

typedef void (*broker_client_call)(void *context);

/*
 * `call` is called on the loop when an answer that was late is there, or when so much time was
 * waited that the rest had to be put off, and may be asked now. From here on the link is the main
 * thread's alone; broker_client_free comes before loop_free. 0 or -errno.
 */
int broker_client_listen(struct broker_client *link, struct loop *loop, broker_client_call call,
			 void *context);

/* Is the last failure one that passes by itself, within BROKER_CLIENT_GRACE_NS, with a call of
 * broker_client_listen?
 */
bool broker_client_waits(struct broker_client *link);

/* Connects and says hello where that is not done yet, and waits at most `wait_ms`: 0, or -ENOTCONN
 * with the reason. What it waits is not counted with other calls'. */
int broker_client_greet(struct broker_client *link, unsigned int wait_ms, const char **ret_why);

/* Any request, for those below: `bytes` of `body`; what it brings is the caller's. */
int broker_client_ask(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		      struct broker_client_brought *ret_brought, const char **ret_why);

/*
 * Each: 0 and a descriptor that the caller owns, close-on-exec; -ENOTCONN without a broker (not
 * there, not in time, or of another version); else refused: -EACCES for a rule of the broker, or
 * the kernel's own error, with the sentence in *ret_why (static; may be NULL).
 */
int broker_client_sampler_open(struct broker_client *link, uint32_t cpu, uint32_t hz,
			       uint32_t divisor, int *ret_fd, const char **ret_why);
int broker_client_pressure_open(struct broker_client *link, uint64_t cgroup_id,
				enum resource resource, int *ret_fd, const char **ret_why);
int broker_client_mapping_open(struct broker_client *link, const struct process_key *process,
			       uint64_t start, uint64_t end, int *ret_fd, const char **ret_why);
int broker_client_jit_map_open(struct broker_client *link, const struct process_key *process,
			       int *ret_fd, const char **ret_why);

/* As above; *ret_count descriptors in fds[BROKER_DESCRIPTORS_MAX], one per row of probes.def of
 * that signal. */
int broker_client_signal_attach(struct broker_client *link, uint32_t signal, int *fds,
				size_t *ret_count, const char **ret_why);

/* True while the last request found a broker, or none was made yet; else *ret_why says what was
 * wrong. */
bool broker_client_there(struct broker_client *link, const char **ret_why);

/* Never waits. */
void broker_client_counts(struct broker_client *link, struct broker_client_counts *ret_counts);

#endif
