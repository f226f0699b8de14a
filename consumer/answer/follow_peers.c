/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/follow_peers.h"

#include <stdio.h>
#include <string.h>

#include "consumer/answer/session_chains.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_objects.h"
#include "shared/tools/macro.h"

#define HOPS 3 /* processes that are followed */

/* Returns the running time of the process by its accounts; 0: unknown. */
static uint64_t sum_running(const struct findings_search *s, uint32_t tgid)
{
	const struct thread_pools *accounts = findings_search_accounts(s->session);
	uint64_t ns = 0;

	for (size_t i = 0; accounts && i < accounts->count; i++)
		if (accounts->items[i].tgid == tgid)
			ns += accounts->items[i].part_ns[ACCOUNT_RUNNING];
	return ns;
}

/* Whether the process ran for most of the session. */
static bool is_busy(const struct findings_search *s, uint32_t tgid)
{
	return sum_running(s, tgid) * 2 >= s->found.time_ns[FINDINGS_SESSION];
}

/* Whether the process has only one thread, by its accounts or, without them, by its waits. */
static bool is_single(const struct findings_search *s, uint32_t tgid)
{
	const struct thread_pools *accounts = findings_search_accounts(s->session);
	uint64_t threads = 0;
	bool known;

	for (size_t i = 0; accounts && i < accounts->count; i++)
		if (accounts->items[i].tgid == tgid)
			threads += accounts->items[i].threads;
	known = threads;
	for (size_t i = 0; !known && i < s->summary->waits.places.count; i++)
		threads += s->summary->waits.places.rows[i].tgid == tgid;
	return threads == 1;
}

/* Whether the threads there neither had work nor slept for a time of their own. */
static bool is_idle(const struct wait_place *place)
{
	return wait_place_is_idle(place) && place->state != ACCOUNT_SLEEP;
}

/*
 * Returns where the threads of the process waited most: for work, if some of them did. Beside such
 * threads a waiting one may be a background thread.
 */
static const struct wait_place *find_place(const struct findings_search *s, uint32_t tgid)
{
	const struct wait_places *places = &s->summary->waits.places;
	const struct wait_place *most = NULL;

	for (size_t i = 0; i < places->count; i++) {
		const struct wait_place *place = &places->rows[i];
		bool idle = is_idle(place);

		if (place->tgid != tgid ||
		    place->weight_ns * 2 < s->found.time_ns[FINDINGS_SESSION])
			continue;
		if (!most || idle > is_idle(most) ||
		    (idle == is_idle(most) && place->weight_ns > most->weight_ns))
			most = place;
	}
	return most;
}

static const char *say_activity(const struct wait_place *place)
{
	if (place->state == ACCOUNT_SLEEP)
		return "slept";
	return is_idle(place) ? "waited for work or clients" : "waited";
}

/*
 * Appends the activity of the process at the other end of `on`: its running time, or the wait of
 * its only thread. Of several threads it is not known which of them should have worked. Returns the
 * object of that wait, or NULL.
 */
static const struct look_on *follow_one(const struct findings_search *s, const struct look_on *on,
					char says[FINDINGS_SAYS_BYTES])
{
	uint64_t ran_ns = sum_running(s, on->peer_pid);
	const struct wait_place *place =
		is_single(s, on->peer_pid) ? find_place(s, on->peer_pid) : NULL;
	bool runs = is_busy(s, on->peer_pid);
	size_t n = strlen(says);

	if (on->peer_flags || (!runs && !place))
		return NULL;
	n += (size_t)snprintf(
		says + n, FINDINGS_SAYS_BYTES - n, "; meanwhile %.*s (process %u) %s %.1f s%s",
		COMM_BYTES, on->peer_comm, on->peer_pid, runs ? "ran" : say_activity(place),
		findings_search_seconds(runs ? ran_ns : place->weight_ns), runs ? " on a CPU" : "");
	if (runs || n >= FINDINGS_SAYS_BYTES)
		return NULL;
	if (place->fn)
		wait_place_say(place, says + n, FINDINGS_SAYS_BYTES - n);
	else if (place->on)
		wait_objects_say_object(place->on, says + n, FINDINGS_SAYS_BYTES - n);
	return place->on;
}

void follow_peers(const struct findings_search *s, const struct look_on *on,
		  char says[FINDINGS_SAYS_BYTES])
{
	uint32_t followed[HOPS];

	for (int hop = 0; hop < HOPS && on && wait_objects_has_process(on); hop++) {
		for (int i = 0; i < hop; i++)
			if (followed[i] == on->peer_pid)
				return;
		followed[hop] = on->peer_pid;
		on = follow_one(s, on, says);
	}
}

void follow_peers_add(struct findings_search *s, enum finding_cause cause, uint64_t ns, char *says,
		      const struct finding_evidence *evidence, const struct chain *c, uint32_t from,
		      const char *leads, const struct look_on *on)
{
	size_t n = strlen(says), more = strlen(leads);

	if (c && c->count > from && n + more < FINDINGS_SAYS_BYTES) {
		memcpy(says + n, leads, more + 1);
		session_chains_say(c, from, s->names, s->session->disks, says + n + more,
				   FINDINGS_SAYS_BYTES - n - more);
	}
	if (c && c->count > from)
		on = c->links[c->count - 1].place ? c->links[c->count - 1].place->on : NULL;
	follow_peers(s, on, says);
	findings_search_add_numbered(s, cause, ns, says, evidence,
				     c && c->count > from ? c->number : 0);
}

/* Whether the child that the threads of `waiter` wait for holds them up. */
static bool holds_up(const struct findings_search *s, const struct wait_place *waiter)
{
	const struct look_on *on = waiter->on;

	for (int hop = 0; hop < HOPS; hop++) {
		const struct wait_place *place;

		if (!on || on->kind != LOOK_ON_CHILD || !wait_objects_has_process(on))
			return false;
		if (on->peer_flags || is_busy(s, on->peer_pid))
			return true;
		place = find_place(s, on->peer_pid);
		if (!place || is_idle(place))
			return false;
		if (place->part == ACCOUNT_SLEEP)
			return !is_single(s, waiter->tgid);
		if (place->part != ACCOUNT_CHILD)
			return true;
		on = place->on;
	}
	return false;
}

/* Whether another captured thread waits for this process to end: it is inside a chain of them. */
static bool is_awaited(const struct wait_places *places, uint32_t tgid)
{
	for (size_t i = 0; i < places->count; i++) {
		const struct look_on *on = places->rows[i].on;

		if (on && on->kind == LOOK_ON_CHILD && on->peer_pid == tgid)
			return true;
	}
	return false;
}

uint64_t follow_peers_child(const struct findings_search *s, const struct wait_place **ret_place)
{
	const struct wait_places *places = &s->summary->waits.places;
	uint64_t ns = 0;

	*ret_place = NULL;
	for (size_t i = 0; i < places->count; i++) {
		const struct wait_place *place = &places->rows[i];

		if (place->part != ACCOUNT_CHILD || is_awaited(places, place->tgid) ||
		    !holds_up(s, place))
			continue;
		ns += place->weight_ns;
		if (!*ret_place || place->weight_ns > (*ret_place)->weight_ns)
			*ret_place = place;
	}
	return ns;
}
