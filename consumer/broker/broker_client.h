/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_client.h: the consumer's connection to the broker. It connects at the first request, and
 * again after the broker has left (the broker leaves when idle). Without a broker every call fails
 * at once, and the client tries again after BROKER_CLIENT_RETRY_NS.
 *
 * A client is one connection with one request at a time. Any thread may call, and waits for the
 * call before. The main loop has a client of its own, and the threads that ask for foreign files
 * another one, because the broker may take a second to answer those. No call waits longer for its
 * answer than the client's limit, nor do several calls in a row together. A late answer does not
 * end the connection: until it comes every call fails at once, and then it answers whoever asks for
 * the very same.
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

/* Makes a request (see broker_ask.h): `bytes` of `body`. The caller owns what it brings. */
int broker_client_ask(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		      struct broker_client_brought *ret_brought, const char **ret_why);

/* True while the last request found a broker, or none was made yet; else *ret_why says what was
 * wrong. */
bool broker_client_there(struct broker_client *link, const char **ret_why);

/* Never waits. */
void broker_client_counts(struct broker_client *link, struct broker_client_counts *ret_counts);

#endif
