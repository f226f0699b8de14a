/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chain_links.h: chains from the nodes that chains.c has made, each by the way with the most time;
 * and summarises selected waits.
 */
#ifndef TROCAR_CONSUMER_REPORT_CHAIN_LINKS_H
#define TROCAR_CONSUMER_REPORT_CHAIN_LINKS_H

#include "consumer/report/chains.h"

/* Sets the items of `all`, one for each first node. 0 or -ENOMEM. */
int chain_links_make(const struct long_waits *waits, const struct wait_places *places,
		     struct chains *all);

/* Which locks of first links are wanted (lock of struct chain_link). */
struct chains_wanted {
	bool (*takes)(const void *context, uint32_t lock);
	const void *context;
};

/*
 * Returns the chain with the most links, among those with a first link that waits in `state`
 * (wait_kind.h), not for work, and for a wanted lock (NULL: any) half as long as the heaviest and
 * more; NULL: there is none.
 */
const struct chain *chain_links_find(const struct chains *c, uint8_t state,
				     const struct chains_wanted *wanted);

/*
 * Returns the part of such waits behind threads that waited in `last` themselves, with no thread
 * behind them; WAIT_FOR_CPU: behind threads that had no CPU. 0 to 1.
 */
double chain_links_behind(const struct chains *c, uint8_t state, const struct chains_wanted *wanted,
			  uint8_t last);

/* Returns the word of an end: "interrupt", ... */
const char *chain_links_end(enum chain_end end);

#endif
