/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_events.h: what is written of how processes are unwound. It writes and remembers nothing:
 * what was said already its callers know. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_EVENTS_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_EVENTS_H

#include "consumer/output/event_budget.h"
#include "consumer/output/event_log.h"
#include "consumer/process/process.h"
#include "consumer/process/unwind_tables.h"
#include "consumer/unwind/store/unwind_files.h"

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
