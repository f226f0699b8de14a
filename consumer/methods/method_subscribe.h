/* SPDX-License-Identifier: BSD-2-Clause */
/* method_subscribe.h: the methods by which a client follows the event lines: subscribe, and lines.
 */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_SUBSCRIBE_H
#define TROCAR_CONSUMER_METHODS_METHOD_SUBSCRIBE_H

#include "consumer/control/control.h"

/* Both are a control_call, with a struct methods as context. */
int method_subscribe(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *result, struct control_error *error);
int method_subscribe_lines(void *context, const struct control_peer *peer,
			   const struct json_node *params, struct jsonw *result,
			   struct control_error *error);

#endif
