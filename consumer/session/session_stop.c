/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/session/session_stop.h"

#include <errno.h>

#include "shared/tools/clock.h"

static struct session *find_running(const struct sessions *all, uint64_t id)
{
	for (size_t i = 0; i < SESSIONS_MAX; i++)
		if (all->running[i] && all->running[i]->result->id == id)
			return all->running[i];
	return NULL;
}

int session_stop(struct sessions *all, uint64_t id, const struct session_stopped *by)
{
	struct session *s = find_running(all, id);
	uint64_t now_ns = clock_mono_ns();

	if (!s)
		return -ENOENT;
	if (s->ending || s->preparing || s->end_ns <= now_ns)
		return 0;
	s->end_ns = now_ns;
	s->result->stopped = *by;
	return 0;
}
