/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chain_links.h: builds chains from the nodes of chains.c, each along the path with the most time,
 * and summarizes selected waits.
 */
#ifndef TROCAR_CONSUMER_ANSWER_CHAIN_LINKS_H
#define TROCAR_CONSUMER_ANSWER_CHAIN_LINKS_H

#include "consumer/answer/chains.h"

/* Sets the items of `all`, one for each first node. Returns 0 or -ENOMEM. */
int chain_links_make(const struct long_waits *waits, const struct wait_places *places,
		     struct chains *all);

/* Selects the locks of first links (lock of struct chain_link). */
struct chains_wanted {
	bool (*takes)(const void *context, uint32_t lock);
	const void *context;
};

/*
 * Returns the longest chain with a first link that waits in `state` (wait_kind.h), not for work,
 * for a wanted lock (NULL: any), and at least half as long as the heaviest such link; NULL if there
 * is none.
 */
const struct chain *chain_links_find(const struct chains *c, uint8_t state,
				     const struct chains_wanted *wanted);

/*
 * Returns the share of such waits at the end of which the awaited thread waited in `last` itself,
 * for no further thread; WAIT_FOR_CPU: the share at the end of which it had no CPU. 0 to 1.
 */
double chain_links_behind(const struct chains *c, uint8_t state, const struct chains_wanted *wanted,
			  uint8_t last);

/* Returns the word for a chain end: "interrupt", ... */
const char *chain_links_end(enum chain_end end);

#endif
