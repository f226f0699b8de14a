/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_request.h: one request line: parsing, permission, dispatch. Uses no socket.
 */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_REQUEST_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_REQUEST_H

#include <stddef.h>

#include "consumer/control/control.h"

#define CONTROL_NESTING 32

/* A request in progress: its job, and the data of its answer. Zeroed: no request. */
struct control_pending {
	struct control_job *job; /* owned; NULL: the request is answered */
	const char *method;
	struct json_node id; /* its kind and text, which is owned; NULL text: JSON's null */
	bool is_notification;
};

/*
 * Like control_request, but does not wait: if the request takes longer than this time slice,
 * nothing is written, and *ret_pending has a job, which control_request_continue continues. If
 * `jobs`, the number of such requests, is CONTROL_JOBS_MAX or more, it is refused instead.
 * *ret_code is 0 if the method succeeded, else the failure's enum control_code, also for a
 * notification, which gets no answer.
 */
int control_request_answer(const struct control_method *methods, void *context,
			   const struct control_peer *peer, const char *line, size_t bytes,
			   unsigned int jobs, struct jsonw *answer, int *ret_code,
			   struct control_pending *ret_pending);

/*
 * Continues a request in progress. Results as control_request_answer; once it is answered, its job
 * is gone.
 */
int control_request_continue(struct control_pending *pending, struct jsonw *answer, int *ret_code);

/* Abandons a request in progress, if there is one. */
void control_request_abandon(struct control_pending *pending);

/* Writes an error line without an id, for a client that is then closed. Returns 0 or -ENOMEM. */
int control_request_refuse(struct jsonw *answer, enum control_code code, const char *message);

#endif
