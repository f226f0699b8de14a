/* SPDX-License-Identifier: BSD-2-Clause */
/* slot_nest.h: questions about watches that contain other watches. Main thread only. */
#ifndef TROCAR_CONSUMER_SIGNALS_SLOT_NEST_H
#define TROCAR_CONSUMER_SIGNALS_SLOT_NEST_H

#include <stdbool.h>
#include <stdint.h>

struct pinned_maps;

/* Returns whether the watch of slot `of` is the watch of `slot`, or is inside it. */
bool slot_nest_has(const struct pinned_maps *pins, uint32_t of, uint32_t slot);

/* The watch of a session. */
struct slot_nest {
	const struct pinned_maps *pins; /* borrowed */
	uint32_t slot;
};

/* slot_nest_has as a callback: `nest` is a struct slot_nest, `of` the slot in question. */
bool slot_nest_holds(const void *nest, uint32_t of);

/* The test for a session's slots; slot_nest_holds in the product. */
struct slot_owner {
	bool (*is_own)(const void *context, uint32_t slot);
	const void *context;
};

/* Returns whether a session runs on the watch of the slot, or on a watch that contains it. */
bool slot_nest_is_captured(const struct pinned_maps *pins, uint32_t slot);

#endif
