/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_dispatch.h: from the bytes of a message to the answer: everything that can be judged
 * without asking the kernel. What a request does is a table of functions, so that this part runs
 * alone too (tests/fuzz).
 */
#ifndef TROCAR_LOADER_BROKER_DISPATCH_H
#define TROCAR_LOADER_BROKER_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
};

struct broker_operation {
	/* Are the arguments in their ranges? Asks nobody. */
	bool (*check)(const void *body);
	/* Checks the rest and does it. *result comes as granted without descriptors. */
	void (*run)(void *context, const void *body, struct broker_result *result);
};

/* One message as it was received. */
struct broker_message {
	const void *data;
	size_t bytes;	/* of data */
	bool cut;	/* it was longer than BROKER_REQUEST_MAX */
	bool ancillary; /* something came along with it; the kernel has closed it again */
};

struct broker_dispatch {
	const struct broker_operation *operations; /* BROKER_COUNT_ of them, by request */
	void *context;
	struct broker_counts *counts; /* never NULL; whoever maps another one sets it */
	enum broker_stage stage;
	uint32_t sequence;	  /* of the last request that was in order on this connection */
	uint64_t filled_ns;	  /* up to when the bucket is paid out */
	bool over_rate;		  /* the last message found the bucket empty, whatever it was */
	struct broker_counts own; /* counts without a pin */
};

/* `operations`, `context`: as in the struct; borrowed. */
void broker_dispatch_init(const struct broker_operation *operations, void *context,
			  struct broker_dispatch *ret_dispatch);

/* A new connection: hello is next. The bucket stays as it is. */
void broker_dispatch_connect(struct broker_dispatch *d);

/*
 * One request of the connection at `now_ns` (CLOCK_MONOTONIC). Fills the answer and the result,
 * whose descriptors the caller sends and closes. False when the message was none of ours: the
 * answer still goes out, and the connection ends.
 */
bool broker_dispatch(struct broker_dispatch *d, const struct broker_message *m, uint64_t now_ns,
		     struct broker_answer *ret_answer, struct broker_result *ret_result);

/* Counts a refusal that is not a request's: a peer, a second connection. */
void broker_dispatch_refuse(struct broker_dispatch *d, enum broker_refusal refusal,
			    struct broker_answer *ret_answer);

#endif
