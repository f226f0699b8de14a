/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unwind_events.h: writes how processes are unwound. It keeps no state: its callers know the
 * earlier reports. Main thread only.
 */
#ifndef TROCAR_CONSUMER_PROCESS_UNWIND_EVENTS_H
#define TROCAR_CONSUMER_PROCESS_UNWIND_EVENTS_H

#include "consumer/output/event_budget.h"
#include "consumer/output/event_log.h"
#include "consumer/process/process.h"
#include "consumer/process/unwind_tables.h"
#include "consumer/runtimes/code_names.h"
#include "consumer/unwind/store/unwind_files.h"

/*
 * Writes process.unwind if the rule of `p` has a line left: how `p` is unwound, and the modules of
 * its plan that have no rows.
 */
void unwind_events_say(const struct event_log *log, struct event_budget *budget,
		       const struct process *p, struct unwind_files *files);

/*
 * Writes the object `unwind` of the status method; `totals` are the kernel side's counters, `names`
 * those of the code objects of language runtimes.
 */
void unwind_events_write_status(const struct unwind_tables *tables, const struct totals *totals,
				const struct code_names_stats *names, struct jsonw *w);

#endif
