/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signal_programs.h: the BPF programs of the signals, attached by the broker while a session wants
 * them: link descriptors, shared by all sessions that want the same signal. Our death closes them.
 * Main thread only.
 */
#ifndef TROCAR_CONSUMER_SIGNALS_SIGNAL_PROGRAMS_H
#define TROCAR_CONSUMER_SIGNALS_SIGNAL_PROGRAMS_H

#include <stddef.h>

#include "shared/broker/broker.h"
#include "shared/rules/rules.h"

struct broker_client;

struct signal_programs {
	struct broker_client *link; /* to the broker, borrowed */
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
 * Attaches the programs of a signal, or joins who has them already. 0, or -errno as
 * broker_ask_signal with the reason. Each 0 wants one signal_programs_drop.
 */
int signal_programs_hold(struct signal_programs *all, enum signal_bit signal, const char **ret_why);
void signal_programs_drop(struct signal_programs *all, enum signal_bit signal);

#endif
