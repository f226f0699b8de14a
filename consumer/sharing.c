/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sharing.h"

#include <string.h>

#include "consumer/agent.h"
#include "consumer/unwinding_room.h"
#include "shared/clock.h"
#include "shared/macro.h"

/* Of the sessions that run at once, this many may be one owner's. */
#define SESSIONS_OF_ONE (SESSIONS_MAX * 3 / 4)

struct owner *sharing_owner(struct agent *a, uint64_t cgroup_id, uint32_t pid_hint)
{
	char name[CGROUP_OWNER_BYTES];

	if (!cgroup_id || !cgroups_owner(&a->cgroups, cgroup_id, pid_hint, name))
		return NULL;
	return shares_owner(&a->shares, name);
}

/* Whether `w` is to go before `other`, which may be NULL. */
static bool goes_before(const struct watch *w, const struct watch *other)
{
	uint64_t mine = w->owner->held[SHARE_WATCHES];

	if (!other || mine != other->owner->held[SHARE_WATCHES])
		return !other || mine > other->owner->held[SHARE_WATCHES];
	if (watch_lingers(w) != watch_lingers(other))
		return watch_lingers(w);
	return w->start_ns > other->start_ns;
}

struct watch *sharing_displaced(struct agent *a, const struct owner *owner)
{
	struct watch *best = NULL;

	for (uint32_t i = 0; i < a->pins.abi.slots; i++) {
		struct watch *w = a->watches.by_slot[i];

		if (w && !w->session && !w->requested &&
		    owner_yields(w->owner, owner, SHARE_WATCHES, 1) && goes_before(w, best))
			best = w;
	}
	return best;
}

bool sharing_in_session(struct agent *a, const struct process *p)
{
	const char *path = NULL;

	if (p->watch && p->watch->session)
		return true;
	if (a->sessions.count)
		path = cgroups_path(&a->cgroups, p->cgroup_id, 0);
	for (size_t i = 0; path && i < SESSIONS_MAX; i++) {
		const struct session *s = a->sessions.running[i];
		size_t bytes = s ? strlen(s->cgroup) : 0;

		if (s && !strncmp(path, s->cgroup, bytes) && (!path[bytes] || path[bytes] == '/'))
			return true;
	}
	return false;
}

const char *sharing_held(struct agent *a, struct owner *owner, uint64_t now_ns)
{
	size_t running = 0;

	for (size_t i = 0; i < SESSIONS_MAX; i++)
		running +=
			a->sessions.running[i] && owner && a->sessions.running[i]->owner == owner;
	if (running >= SESSIONS_OF_ONE)
		return "too_many_sessions";
	switch (shares_may_capture(&a->shares, owner,
				   (uint64_t)a->active.set->rules->budget_s * MSEC_PER_SEC,
				   now_ns)) {
	case CAPTURE_OWNER_SPENT:
		return "budget_owner";
	case CAPTURE_ALL_SPENT:
		return "budget_all";
	default:
		return NULL;
	}
}

static void write_owner(const struct owner *owner, const uint64_t parts[SHARE_COUNT_],
			struct jsonw *w)
{
	jsonw_object(w, NULL);
	jsonw_string(w, "owner", owner->name);
	for (int i = 0; i < SHARE_COUNT_; i++)
		jsonw_u64(w, share_name((enum share)i), owner->held[i]);
	jsonw_array(w, "at_share");
	for (int i = 0; i < SHARE_COUNT_; i++)
		if (owner->held[i] && owner->held[i] >= parts[i])
			jsonw_string(w, NULL, share_name((enum share)i));
	jsonw_array_end(w);
	jsonw_object_end(w);
}

void sharing_write_status(struct agent *a, struct jsonw *w)
{
	const uint64_t capacity[SHARE_COUNT_] = {
		[SHARE_WATCHES] = a->pins.abi.slots,
		[SHARE_TABLES] = a->unwinding.table_count,
		[SHARE_ROWS] = (uint64_t)a->pins.abi.unwind_rows * 8,
		[SHARE_CAPTURED] = (uint64_t)a->active.set->rules->budget_s * MSEC_PER_SEC,
	};
	const struct owner *top[SHARING_TOP];
	uint64_t parts[SHARE_COUNT_];
	size_t n;

	unwinding_room_count(a);
	n = shares_top(&a->shares, capacity, clock_mono_ns(), top, SHARING_TOP);
	shares_parts(&a->shares, capacity, parts);
	jsonw_array(w, "owners");
	for (size_t i = 0; i < n; i++)
		write_owner(top[i], parts, w);
	jsonw_array_end(w);
}
