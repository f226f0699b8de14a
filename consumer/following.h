/* SPDX-License-Identifier: BSD-2-Clause */
/* following.h: the methods by which a client follows the event lines: subscribe, and lines. */
#ifndef TROCAR_CONSUMER_FOLLOWING_H
#define TROCAR_CONSUMER_FOLLOWING_H

#include "consumer/control.h"

/* Both are a control_call, with a struct methods as context. */
int following_subscribe(void *context, const struct control_peer *peer,
			const struct json_node *params, struct jsonw *result,
			struct control_error *error);
int following_lines(void *context, const struct control_peer *peer, const struct json_node *params,
		    struct jsonw *result, struct control_error *error);

#endif
