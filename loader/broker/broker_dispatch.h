/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_dispatch.h: turns a message into an answer and makes no kernel call itself. The operations
 * are a table of functions, so that tests/fuzz runs this part with operations that open nothing. A
 * request that may block runs in a worker process (broker_worker.h); the broker does not read the
 * connection until that request is answered.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_DISPATCH_H
#define TROCAR_LOADER_BROKER_BROKER_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/broker/broker_peer.h"
#include "shared/abi/abi.h"
#include "shared/broker/broker.h"

/*
 * Requests above this rate are refused. The burst covers a start of the consumer: thousands of
 * pressure files at once.
 */
#define BROKER_RATE_S	  2000
#define BROKER_RATE_BURST 4000

/* An operation's result: `count` descriptors, which the caller owns. */
struct broker_result {
	enum broker_refusal refusal;
	int error; /* -errno where the kernel refused, else 0 */
	unsigned int count;
	int fds[BROKER_DESCRIPTORS_MAX];
	bool counted; /* the worker counted the peer's descriptors: */
	struct broker_holdings held;
};

/*
 * The functions of one request. Each gets the context, the body, and a result that is granted and
 * has no descriptors. `work` runs in a worker process, because it may block (broker_worker.h).
 */
struct broker_operation {
	/* Returns whether the arguments are in their ranges. Makes no kernel call. */
	bool (*check)(const void *body);
	/* Returns whether `work` must run first. NULL: no. */
	bool (*apart)(void *context, const void *body);
	/* Runs in the worker. If it refuses, that is the answer. */
	void (*work)(void *context, const void *body, struct broker_result *result);
	/* Runs in the broker, after `work` if that ran. NULL: `work` does it all. */
	void (*run)(void *context, const void *body, struct broker_result *result);
};

/* One message as it was received. */
struct broker_message {
	const void *data;
	size_t bytes;	/* of data */
	bool cut;	/* it was longer than BROKER_REQUEST_MAX and was truncated */
	bool ancillary; /* it carried ancillary data; the kernel has closed the descriptors */
};

/* A request's body, aligned for each of its structs. */
union broker_body {
	uint64_t words[BROKER_REQUEST_MAX / sizeof(uint64_t)];
	uint8_t bytes[BROKER_REQUEST_MAX];
};

/* The state of one connection. All 0 for a new one; its first request must be hello. */
struct broker_session {
	enum broker_stage stage;
	uint32_t sequence;	/* of the last request with the right number */
	uint32_t request;	/* that request (enum broker_request) */
	union broker_body body; /* its body */
};

/* What the caller does next with the connection. */
enum broker_verdict {
	BROKER_ANSWERED,
	BROKER_APART,	 /* run broker_dispatch_work in a worker, then broker_dispatch_end */
	BROKER_NOT_OURS, /* send the answer and close the connection */
};

struct broker_dispatch {
	const struct broker_operation *operations; /* BROKER_COUNT_ of them, by request */
	void *context;
	struct broker_counts *counts; /* never NULL: `own`, or the mapped pin */
	uint64_t filled_ns;	      /* the token bucket is empty up to this moment */
	bool over_rate;		      /* the last message found the bucket empty */
	struct broker_counts own;     /* the counts while no pin is mapped */
};

/* `operations`, `context`: as in the struct; borrowed. */
void broker_dispatch_init(const struct broker_operation *operations, void *context,
			  struct broker_dispatch *ret_dispatch);

/*
 * Handles one message at `now_ns` (CLOCK_MONOTONIC). Unless it returns BROKER_APART, it fills the
 * answer and the result; the caller sends and closes the descriptors of the result. All connections
 * share one token bucket.
 */
enum broker_verdict broker_dispatch(struct broker_dispatch *d, struct broker_session *session,
				    const struct broker_message *m, uint64_t now_ns,
				    struct broker_answer *ret_answer,
				    struct broker_result *ret_result);

/* Runs `work` of the stored request, in the worker; *result as for an operation. Counts nothing. */
void broker_dispatch_work(const struct broker_dispatch *d, const struct broker_session *session,
			  struct broker_result *result);

/*
 * Runs the rest of the stored request after the worker's *result, counts it and fills the answer.
 */
void broker_dispatch_end(struct broker_dispatch *d, struct broker_session *session,
			 struct broker_result *result, struct broker_answer *ret_answer);

/* Counts a refusal before any request: a foreign peer, or one connection too many. */
void broker_dispatch_refuse(struct broker_dispatch *d, enum broker_refusal refusal,
			    struct broker_answer *ret_answer);

#endif
