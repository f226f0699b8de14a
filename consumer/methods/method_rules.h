/* SPDX-License-Identifier: BSD-2-Clause */
/* method_rules.h: the control methods rules.get, rules.check and rules.set. */
#ifndef TROCAR_CONSUMER_METHODS_METHOD_RULES_H
#define TROCAR_CONSUMER_METHODS_METHOD_RULES_H

#include "consumer/control/control.h"

/* Each is a control_call or a control_begin, with a struct methods as context. */
int method_rules_get(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error);
int method_rules_check(void *context, const struct control_peer *peer,
		       const struct json_node *params, struct control_job **ret_job,
		       struct control_error *error);
int method_rules_set(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *w, struct control_error *error);

#endif
