/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * choose.h: which of the sessions that are selected is shown. It is one, the newest, unless all are
 * asked for: the numbers of two sessions can be added up only by a reader that knows both.
 */
#ifndef TROCAR_CTL_EVENTS_CHOOSE_H
#define TROCAR_CTL_EVENTS_CHOOSE_H

#include "ctl/cli/options.h"
#include "ctl/events/select.h"
#include "ctl/events/store.h"

/*
 * Leaves of the selected sessions of each of `n_files` files (bits of store_session.files) the
 * newest that has ended, the newest where none has; with --all all of them. *ret_left: how many are
 * not shown. -EINVAL after printing on the options' `err`, with a list of the sessions, that none
 * is selected, or that --session is the beginning of several; -ENOMEM, -ENOSPC.
 */
int choose_sessions(const struct options *options, const struct select *select, struct store *store,
		    unsigned int n_files, uint32_t *ret_left);

#endif
