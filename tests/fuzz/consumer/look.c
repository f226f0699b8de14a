/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of the iterator `looks`, many in a row: the object of a wait is kept and written, for any
 * record, and an epoll or poll names a peer only where it is one of the internet.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/json/jsonw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define LINE_BYTES 4096

static void say_all(const struct look_on *on)
{
	char text[64];
	struct jsonw w;

	wait_objects_say(on, text, sizeof(text));
	if (wait_objects_say_peer(on, text, sizeof(text)) && !wait_objects_is_asked(on))
		abort();
	if (wait_objects_is_asked(on) && on->family != AF_INET && on->family != AF_INET6 &&
	    on->family != AF_UNIX)
		abort();
	if (wait_objects_is_asked(on) && wait_objects_is_idle_set(on))
		abort();
	jsonw_init(&w, LINE_BYTES);
	wait_objects_write(on, &w);
	jsonw_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct wait_objects objects;
	struct look_record record;
	const struct look_on *on;
	uint32_t number;

	wait_objects_init(&objects);
	for (; bytes >= sizeof(record); bytes -= sizeof(record), data += sizeof(record)) {
		uint8_t state;

		memcpy(&record, data, sizeof(record));
		state = wait_kind_state(&record);
		number = wait_objects_add(&objects, &record.on);
		wait_objects_lasts(&objects, number, record.head.time_ns);
		on = wait_objects_get(&objects, number);
		if (state >= WAIT_BLOCKED + WAIT_KIND_COUNT_ ||
		    wait_objects_state(state, on) >= WAIT_BLOCKED + WAIT_KIND_COUNT_)
			abort();
		if (on && wait_objects_is_asked(on) != wait_objects_is_asked(&record.on))
			abort();
		if (on)
			say_all(on);
	}
	wait_objects_done(&objects);
	return 0;
}
