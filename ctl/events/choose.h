/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choose.h: chooses the session to show among the selected sessions. It is the newest one, unless
 * the user asks for all: only a reader that knows both sessions can add up their numbers.
 */
#ifndef TROCAR_CTL_EVENTS_CHOOSE_H
#define TROCAR_CTL_EVENTS_CHOOSE_H

#include "ctl/cli/options.h"
#include "ctl/events/select.h"
#include "ctl/events/store.h"

/*
 * Deselects all sessions of each of the `n_files` files (bits of store_session.files) except the
 * newest one that has ended, or the newest one if none has ended; keeps all with --all. *ret_left
 * is the number of sessions that are not shown. -EINVAL: no session is selected, or --session is
 * the beginning of several ids; this was printed on the options' `err` with a list of the sessions;
 * -ENOMEM, -ENOSPC.
 */
int choose_sessions(const struct options *options, const struct select *select, struct store *store,
		    unsigned int n_files, uint32_t *ret_left);

#endif
