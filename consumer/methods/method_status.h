/* SPDX-License-Identifier: BSD-2-Clause */
/* method_status.h: the control method status. */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_STATUS_H
#define TROCAR_CONSUMER_METHODS_METHOD_STATUS_H

#include "consumer/control/control.h"

/* It is a control_call, with a struct methods as context. */
int method_status(void *context, const struct control_peer *peer, const struct json_node *params,
		  struct jsonw *w, struct control_error *error);

#endif
