/* SPDX-License-Identifier: BSD-2-Clause */
/* methods.h: what each method of the control socket does; docs/control.md is its reference. */
#ifndef TROCAR_CONSUMER_METHODS_H
#define TROCAR_CONSUMER_METHODS_H

#include "consumer/control.h"

/* The table for control_new; its context is the struct agent. Ends with a NULL name. */
extern const struct control_method methods_table[];

#endif
