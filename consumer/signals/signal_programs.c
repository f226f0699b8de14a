/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/signals/signal_programs.h"

#include <unistd.h>

#include "consumer/broker/broker_ask.h"

void signal_programs_init(struct signal_programs *all, struct broker_client *link)
{
	*all = (struct signal_programs){ .broker = link };
}

static void close_signal(struct signal_programs *all, int signal)
{
	for (size_t i = 0; i < all->of[signal].n_fds; i++)
		close(all->of[signal].fds[i]);
	all->of[signal].n_fds = 0;
}

void signal_programs_done(struct signal_programs *all)
{
	for (int i = 0; i < SIGNAL_COUNT_; i++)
		close_signal(all, i);
}

int signal_programs_hold(struct signal_programs *all, enum signal_bit signal, const char **ret_why)
{
	int r = 0;

	if (!all->of[signal].n_fds)
		r = broker_ask_signal(all->broker, signal, all->of[signal].fds,
				      &all->of[signal].n_fds, ret_why);
	if (r == 0)
		all->of[signal].holders++;
	return r;
}

void signal_programs_drop(struct signal_programs *all, enum signal_bit signal)
{
	if (--all->of[signal].holders == 0)
		close_signal(all, signal);
}
