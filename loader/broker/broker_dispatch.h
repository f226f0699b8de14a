/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_dispatch.h: from the bytes of a message to the answer: everything that can be judged
 * without asking the kernel. What a request does is a table of functions, so that this part runs
 * alone too (tests/fuzz). A request that may take its time is run elsewhere (broker_worker.h), and
 * its connection is not read until it is answered.
 */
#ifndef TROCAR_LOADER_BROKER_DISPATCH_H
#define TROCAR_LOADER_BROKER_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/broker/broker_peer.h"
#include "shared/abi.h"
#include "shared/broker.h"

/* More is refused; a start is thousands of pressure files in one go, and the bucket is full then.
 */
#define BROKER_RATE_S	  2000
#define BROKER_RATE_BURST 4000

/* What an operation gave: `count` descriptors, which the caller owns then. */
struct broker_result {
	enum broker_refusal refusal;
	int error; /* -errno where the kernel refused, else 0 */
	unsigned int count;
	int fds[BROKER_DESCRIPTORS_MAX];
	bool counted; /* what the asker holds was counted: */
	struct broker_holdings held;
};

/*
 * Functions get the context, the body, and a result that comes as granted without descriptors. What
 * may take its time is done apart, in a process of its own (broker_worker.h).
 */
struct broker_operation {
	/* Are the arguments in their ranges? Asks nobody. */
	bool (*check)(const void *body);
	/* Has something to be done apart first? NULL: no. */
	bool (*apart)(void *context, const void *body);
	/* That. Its refusal is the answer. */
	void (*work)(void *context, const void *body, struct broker_result *result);
	/* Checks the rest and does it. NULL: what was done apart is all. */
	void (*run)(void *context, const void *body, struct broker_result *result);
};

/* One message as it was received. */
struct broker_message {
	const void *data;
	size_t bytes;	/* of data */
	bool cut;	/* it was longer than BROKER_REQUEST_MAX */
	bool ancillary; /* something came along with it; the kernel has closed it again */
};

/* A request's body, aligned for any of them. */
union broker_body {
	uint64_t words[BROKER_REQUEST_MAX / sizeof(uint64_t)];
	uint8_t bytes[BROKER_REQUEST_MAX];
};

/* What is known of one connection. All 0 for a new one: hello is next. */
struct broker_session {
	enum broker_stage stage;
	uint32_t sequence;	/* of the last request that was in order */
	uint32_t request;	/* the last that was in order */
	union broker_body body; /* of that */
};

/* What became of a message. */
enum broker_verdict {
	BROKER_ANSWERED,
	BROKER_APART,	 /* in order: broker_dispatch_run does it, broker_dispatch_end answers it */
	BROKER_NOT_OURS, /* answered, and the connection ends */
};

struct broker_dispatch {
	const struct broker_operation *operations; /* BROKER_COUNT_ of them, by request */
	void *context;
	struct broker_counts *counts; /* never NULL; whoever maps another one sets it */
	uint64_t filled_ns;	      /* up to when the bucket is paid out */
	bool over_rate;		      /* the last message found the bucket empty, whatever it was */
	struct broker_counts own;     /* counts without a pin */
};

/* `operations`, `context`: as in the struct; borrowed. */
void broker_dispatch_init(const struct broker_operation *operations, void *context,
			  struct broker_dispatch *ret_dispatch);

/*
 * One message of the connection at `now_ns` (CLOCK_MONOTONIC). Where it is answered, fills the
 * answer and the result, whose descriptors the caller sends and closes. The bucket of requests is
 * one for all connections.
 */
enum broker_verdict broker_dispatch(struct broker_dispatch *d, struct broker_session *session,
				    const struct broker_message *m, uint64_t now_ns,
				    struct broker_answer *ret_answer,
				    struct broker_result *ret_result);

/* Does what is done apart; *result as for an operation. Counts nothing. */
void broker_dispatch_work(const struct broker_dispatch *d, const struct broker_session *session,
			  struct broker_result *result);

/* Does the rest, counts and answers, when the former has given *result. */
void broker_dispatch_end(struct broker_dispatch *d, struct broker_session *session,
			 struct broker_result *result, struct broker_answer *ret_answer);

/* Counts a refusal that is not a request's: a peer, one connection too many. */
void broker_dispatch_refuse(struct broker_dispatch *d, enum broker_refusal refusal,
			    struct broker_answer *ret_answer);

#endif
