/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter_signal.h: the common part of signals that count: programs count while a session holds
 * them, and the session takes the difference of two readings. Main thread only, except for the
 * functions that write.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_COUNTER_SIGNAL_H
#define TROCAR_CONSUMER_SIGNALS_COUNTER_SIGNAL_H

#include "consumer/signals/signals.h"

/*
 * Allocates the struct of a kind, `bytes` zeros that begin with its struct signal. `off_reason` is
 * a literal; NULL: the signal has not been attached yet. Returns NULL without memory. Release with
 * free().
 */
void *counter_signal_new(size_t bytes, const char *off_reason);

/*
 * Attaches the kind's programs, unless they are attached already or the session has ended.
 * `one_process` is the reason not to attach them for a part of a cgroup; NULL: there is none.
 * `empty` empties the kind's tables before the first session; NULL: nothing to empty. Returns
 * whether the programs are attached; if so, read the counters and call counter_signal_started. Sets
 * off_reason if not.
 */
bool counter_signal_hold(struct signal *s, const struct signal_host *host,
			 const struct signal_target *target, const char *one_process,
			 void (*empty)(const struct pinned_maps *pins));

/*
 * Ends an attach by the result of the first reading, 0 or -errno. After an error the programs are
 * detached, and off_reason is `unreadable`.
 */
void counter_signal_started(struct signal *s, const struct signal_host *host,
			    const struct signal_target *target, int r, const char *unreadable);

/* Clears off_reason. After an attach that failed, also sets late_ms. */
void counter_signal_run(struct signal *s, const struct signal_target *target);

/*
 * Detaches the programs, if they are attached. Sets off_reason; if it is NULL, sets the evidence
 * and its ledger instead.
 */
void counter_signal_end(struct signal *s, const struct signal_host *host, const char *off_reason,
			void *evidence, const struct ledger *counted);

/*
 * Begins the object `key` of session.end if the signal has evidence; if not, writes null and
 * KEY_reason instead. Returns `has_evidence`.
 */
bool counter_signal_write_begin(const char *key, bool has_evidence, const char *off_reason,
				struct jsonw *w);

#endif
