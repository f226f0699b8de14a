/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sharing.h"

#include <string.h>

#include "consumer/agent.h"
#include "consumer/unwinding_room.h"
#include "shared/clock.h"
#include "shared/macro.h"

bool sharing_in_session(struct agent *a, const struct process *p)
{
	const char *path = NULL;

	if (p->watch && p->watch->session)
		return true;
	if (a->sessions.count)
		path = cgroups_path(&a->cgroups, p->cgroup_id, 0);
	for (size_t i = 0; path && i < SESSIONS_MAX; i++) {
		const struct session *s = a->sessions.running[i];
		size_t bytes = s ? strlen(s->result->cgroup) : 0;

		if (s && !strncmp(path, s->result->cgroup, bytes) &&
		    (!path[bytes] || path[bytes] == '/'))
			return true;
	}
	return false;
}
