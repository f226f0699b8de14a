/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_request.h: one request line: parsing, permission, dispatch. Uses no socket, keeps no
 * state.
 */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_REQUEST_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_REQUEST_H

#include <stddef.h>

#include "consumer/control/control.h"

#define CONTROL_NESTING 32

/*
 * As control_request. *ret_code is 0 when the method succeeded, else the failure's enum
 * control_code, also for a notification, which gets no answer.
 */
int control_request_answer(const struct control_method *methods, void *context,
			   const struct control_peer *peer, const char *line, size_t bytes,
			   struct jsonw *answer, int *ret_code);

/*
 * Writes an error line without an id, for a client that is closed after it. Returns 0 or -ENOMEM.
 */
int control_request_refuse(struct jsonw *answer, enum control_code code, const char *message);

#endif
