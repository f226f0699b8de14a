/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_events.h: what is written of how processes are unwound. It writes and remembers nothing:
 * what was said already its callers know. Main thread only.
 */
#ifndef TROCAR_CONSUMER_UNWIND_EVENTS_H
#define TROCAR_CONSUMER_UNWIND_EVENTS_H

#include "consumer/event_budget.h"
#include "consumer/event_log.h"
#include "consumer/process.h"
#include "consumer/unwind/unwind_files.h"
#include "consumer/unwind_tables.h"

/*
 * Writes process.unwind: how `p` is unwound, with the modules of its plan that have no rows; if its
 * rule has a line left.
 */
void unwind_events_say(const struct event_log *log, struct event_budget *budget,
		       const struct process *p, struct unwind_files *files);

/* Writes the object `unwind` of the status method; `totals` are the kernel side's. */
void unwind_events_write_status(const struct unwind_tables *tables, const struct totals *totals,
				struct jsonw *w);

#endif
