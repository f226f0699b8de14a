/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signal_programs.h: holds the links of the signals' BPF programs, which the broker attaches while
 * a session wants them. Sessions that want the same signal share its link descriptors. When the
 * consumer dies the kernel closes them and so detaches the programs. Main thread only.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_SIGNAL_PROGRAMS_H
#define TROCAR_CONSUMER_SIGNALS_SIGNAL_PROGRAMS_H

#include <stddef.h>

#include "shared/broker/broker.h"
#include "shared/rules/rules.h"

struct broker_client;

struct signal_programs {
	struct broker_client *broker; /* borrowed */
	struct {
		int fds[BROKER_DESCRIPTORS_MAX];
		size_t n_fds;
		unsigned int holders; /* sessions that want it */
	} of[SIGNAL_COUNT_];
};

void signal_programs_init(struct signal_programs *all, struct broker_client *link);

/* Closes all descriptors. */
void signal_programs_done(struct signal_programs *all);

/*
 * Attaches the programs of a signal through the broker; if another session already has them
 * attached, only adds a holder. Returns 0, or -errno of broker_ask_signal
 * (consumer/broker/broker_ask.h) with the reason in *ret_why. Call signal_programs_drop once for
 * each 0.
 */
int signal_programs_hold(struct signal_programs *all, enum signal_bit signal, const char **ret_why);
void signal_programs_drop(struct signal_programs *all, enum signal_bit signal);

#endif
