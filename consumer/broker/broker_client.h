/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_client.h: the consumer's connection to the broker. The client connects at the first
 * request, and again after the broker has exited (it exits when idle). Without a broker every call
 * fails at once, and the client connects again after BROKER_CLIENT_RETRY_NS at the earliest.
 *
 * A client is one connection that carries one request at a time. Any thread may call; it waits
 * until the call of another thread has returned. The main loop has its own client, and the threads
 * that ask for files of other processes have another one, because the broker may take a second to
 * answer those.
 *
 * A call waits for its answer at most as long as the client's limit. Several calls in a row share
 * that limit. A late answer does not end the connection: until it arrives every call fails at once;
 * then the client passes it to the next caller with an identical request.
 */
#ifndef TROCAR_CONSUMER_BROKER_BROKER_CLIENT_H
#define TROCAR_CONSUMER_BROKER_BROKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/broker/broker.h"
#include "shared/rules/rules.h"

#define BROKER_CLIENT_WAIT_MS 100 /* the main loop's limit */

/* The limit of other threads: the broker gives up on a file that does not answer after a second. */
#define BROKER_CLIENT_FILE_WAIT_MS 1500

#define BROKER_CLIENT_GREET_MS 1000 /* before the loop runs */

/*
 * The consumer does not report an answer that is less than BROKER_CLIENT_GRACE_NS late. After
 * BROKER_CLIENT_OWED_NS the client closes the connection.
 */
#define BROKER_CLIENT_GRACE_NS (1ULL * 1000000000)
#define BROKER_CLIENT_OWED_NS  (10ULL * 1000000000)

/*
 * Shorter than the 5 s between two drains, so that each drain that finds something missing makes a
 * request.
 */
#define BROKER_CLIENT_RETRY_NS (4ULL * 1000000000)

struct broker_client;
struct broker_client_brought;
struct loop;

/* The number of requests by outcome, for `trocar status`. */
struct broker_client_counts {
	uint64_t granted[BROKER_COUNT_];
	uint64_t refused[REFUSAL_COUNT_]; /* the broker's own counts are in its pin */
	uint64_t unreachable; /* requests without a broker, or without an answer in time */
};

/*
 * Makes a client for the socket at `path` (copied); "": no broker, every call returns -ENOTCONN. A
 * call waits at most `wait_ms`. Connects to nothing yet. 0, -ENOMEM or -ENAMETOOLONG (longer than a
 * Unix address).
 */
int broker_client_new(const char *path, unsigned int wait_ms, struct broker_client **ret_link);
void broker_client_free(struct broker_client *link);

typedef void (*broker_client_call)(void *context);

/*
 * Registers `call` with the loop. The client calls it when a late answer has arrived, and when
 * requests that it postponed because the limit was used up may be made again. From here on only the
 * main thread uses the client; call broker_client_free before loop_free. Returns 0 or -errno.
 */
int broker_client_listen(struct broker_client *link, struct loop *loop, broker_client_call call,
			 void *context);

/*
 * Returns whether the last failure is temporary: it ends within BROKER_CLIENT_GRACE_NS, with the
 * call registered by broker_client_listen.
 */
bool broker_client_waits(struct broker_client *link);

/*
 * Connects and sends the hello unless that is done, and waits at most `wait_ms`. 0, or -ENOTCONN
 * with the reason. This wait does not count against the client's limit.
 */
int broker_client_greet(struct broker_client *link, unsigned int wait_ms, const char **ret_why);

/*
 * Makes a request (see broker_ask.h) of `bytes` bytes of `body`. The caller owns the descriptors in
 * *ret_brought.
 */
int broker_client_ask(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		      struct broker_client_brought *ret_brought, const char **ret_why);

/*
 * Returns whether the last request found a broker, or no request was made yet; otherwise *ret_why
 * is the reason.
 */
bool broker_client_there(struct broker_client *link, const char **ret_why);

/* Copies the counters. Never waits. */
void broker_client_counts(struct broker_client *link, struct broker_client_counts *ret_counts);

#endif
