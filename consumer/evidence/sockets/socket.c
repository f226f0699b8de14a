/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The signal `socket`: the TCP peers of the session's cgroup and the data that waits there. Socket
 * snapshots read the sockets that the cgroup's processes have descriptors of
 * (bpf/sockets/socket.bpf.c). Connections that begin, fail and end between the snapshots are
 * counted by a program that the broker attaches for the session (bpf/sockets/socket_state.bpf.c).
 * Without that program there are only snapshots.
 */
#include <stdlib.h>

#include "consumer/evidence/sockets/session_sockets.h"
#include "consumer/evidence/sockets/socket_passes.h"
#include "consumer/evidence/sockets/socket_peers.h"
#include "consumer/kernel/pinned_maps.h"
#include "consumer/signals/counter_signal.h"
#include "consumer/signals/signal_programs.h"
#include "consumer/signals/signals.h"
#include "consumer/signals/slot_nest.h"
#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

struct sockets {
	struct signal signal;
	struct socket_watcher watcher;
	const struct signal_host *host;
	const struct signal_target *target;
	bool holds;	       /* sampling passes are made for it */
	bool read;	       /* `before` is valid */
	bool asked;	       /* the last socket snapshot was requested */
	uint64_t last;	       /* the pass of the last socket snapshot */
	bool looked;	       /* the last socket snapshot is complete */
	const char *uncounted; /* why begins and ends are not counted: a literal; NULL: counted */
	struct socket_reading before;
	struct socket_view view;   /* owned */
	struct socket_peers peers; /* owned */
};

static const char unreadable[] = "the kernel side's records of sockets cannot be read";
static const char no_memory[] = "there was no memory for the sockets";
static const char no_look[] = "no socket snapshot was completed";
static const char by_rule[] =
	"the kernel side takes socket snapshots by cgroup, and the session is of some of its "
	"processes";
static const char one_process[] =
	"the kernel side counts connections by cgroup, and the session is of one process";
static const char no_cgroup[] =
	"on this kernel a socket has no cgroup: it was built without CONFIG_SOCK_CGROUP_DATA";

static struct sockets *sockets_of(struct signal *s)
{
	return (struct sockets *)s;
}

static struct sockets *sockets_of_watcher(struct socket_watcher *w)
{
	return (struct sockets *)((char *)w - offsetof(struct sockets, watcher));
}

static struct signal *create_sockets(const struct signal_host *host,
				     const struct signal_target *target)
{
	struct sockets *s = counter_signal_new(sizeof(*s), NULL);

	if (s && socket_view_init(&s->view) < 0) {
		free(s);
		s = NULL;
	}
	if (!s)
		return NULL;
	s->host = host;
	s->target = target;
	return &s->signal;
}

static void destroy_sockets(struct signal *signal)
{
	struct sockets *s = sockets_of(signal);

	socket_maps_forget(&s->before);
	socket_view_done(&s->view);
	socket_peers_done(&s->peers);
	free(s);
}

static void take_socket(struct socket_watcher *w, const struct socket_pass *pass,
			const struct socket_record *record)
{
	struct sockets *s = sockets_of_watcher(w);

	if ((!s->target->only_tgid || record->tgid == s->target->only_tgid) &&
	    slot_nest_has(s->host->pins, record->slot, s->target->slot))
		socket_view_add(&s->view, record);
}

/*
 * Counts of earlier sessions do not belong to this one: the first socket snapshot has added the
 * earlier bytes of each connection to the sums.
 */
static void end_look(struct socket_watcher *w, const struct socket_pass *pass)
{
	struct sockets *s = sockets_of_watcher(w);

	if (!s->read && !pass->cut)
		s->read = socket_maps_read(s->host->pins, s->target->slot, &s->before) == 0;
	socket_view_end_look(&s->view, pass->cut);
	s->looked = s->asked && pass->number >= s->last;
}

/* Attaches the program if it can work. A late broker is asked again. */
static void attach_program(struct sockets *s, bool late)
{
	if (s->target->only_tgid) {
		s->uncounted = one_process;
		return;
	}
	if (!s->host->pins->abi.socket_cgroup) {
		s->uncounted = no_cgroup;
		return;
	}
	s->signal.held = signal_programs_hold(s->host->programs, SIGNAL_SOCKET, &s->uncounted) == 0;
	s->signal.unattached = !s->signal.held;
	if (!s->signal.held)
		return;
	s->uncounted = NULL;
	if (late)
		counter_signal_run(&s->signal, s->target);
}

/*
 * Starts the socket snapshots. If there was none before, nothing was counted, and the first
 * snapshot adds nothing.
 */
static void begin_looks(struct sockets *s)
{
	bool first = !s->host->sockets->watchers;

	s->watcher.seen = take_socket;
	s->watcher.passed = end_look;
	socket_passes_hold(s->host->sockets, &s->watcher);
	s->read = first && socket_maps_read(s->host->pins, s->target->slot, &s->before) == 0;
	s->holds = true;
	s->signal.off_reason = NULL;
}

static void attach_sockets(struct signal *signal, const struct signal_host *host,
			   const struct signal_target *target)
{
	struct sockets *s = sockets_of(signal);

	if (target->stop_ns)
		return;
	if (s->holds) {
		attach_program(s, true);
		return;
	}
	if (target->by_process && !target->only_tgid) {
		signal->off_reason = by_rule;
		return;
	}
	if (!host->sockets || !socket_passes_are_there(host->sockets)) {
		signal->off_reason = unreadable;
		return;
	}
	begin_looks(s);
	attach_program(s, false);
}

/* Takes the last socket snapshot, which the session waits for. */
static bool prepare_sockets(struct signal *signal, const struct signal_host *host,
			    const struct signal_target *target)
{
	struct sockets *s = sockets_of(signal);

	if (!s->holds)
		return true;
	if (!s->asked)
		s->last = socket_passes_ask(host->sockets);
	s->asked = true;
	return s->looked;
}

static void end_sockets(struct signal *signal, const struct signal_host *host,
			const struct signal_target *target)
{
	struct sockets *s = sockets_of(signal);
	const struct slot_nest nest = { host->pins, target->slot };
	const struct slot_owner owner = { slot_nest_holds, &nest };
	struct socket_reading now = {};
	const char *off_reason = NULL;

	if (!s->holds)
		return;
	s->holds = false;
	if (!s->view.looks)
		off_reason = no_look;
	else if (target->shared && !target->only_tgid)
		off_reason = by_rule;
	else if (!s->read || socket_maps_read(host->pins, target->slot, &now) < 0)
		off_reason = unreadable;
	else if (socket_peers_make(&s->view, &s->before, &now, target->only_tgid ? NULL : &owner,
				   &s->peers) < 0)
		off_reason = no_memory;
	counter_signal_end(signal, host, off_reason, &s->peers, &s->peers.ledger);
	socket_passes_drop(host->sockets, &s->watcher);
	socket_maps_forget(&now);
	socket_maps_forget(&s->before);
}

/* The session is over: do not use data of the main thread any more. */
static void close_sockets(struct signal *signal, const struct signal_host *host,
			  const struct signal_target *target)
{
	struct sockets *s = sockets_of(signal);

	s->host = NULL;
	s->target = NULL;
}

static void write_counts(const struct socket_peers *peers, struct jsonw *w)
{
	static const char *const names[] = {
#define SOCKET_COUNT(id, json, help) [SOCKET_##id] = (json),
#include "shared/abi/socket_counts.def"
#undef SOCKET_COUNT
	};

	for (int i = 0; i < SOCKET_COUNTS_; i++)
		jsonw_u64(w, names[i], peers->all.counts[i]);
}

/* Writes the sums over all peers; the lines have the details. */
static void write_sockets(const struct signal *signal, struct jsonw *w)
{
	const struct sockets *s = (const struct sockets *)signal;
	const struct socket_peers *peers = signal->evidence;

	if (!counter_signal_write_begin("sockets", peers, signal->off_reason, w))
		return;
	jsonw_u64(w, "looks", peers->looks);
	jsonw_u64(w, "connections", peers->all.last[SOCKET_LEVEL_CONNECTIONS]);
	jsonw_u64(w, "peers", peers->count + peers->others);
	if (peers->counted)
		write_counts(peers, w);
	if (s->uncounted)
		jsonw_string(w, "uncounted_reason", s->uncounted);
	jsonw_u64_nonzero(w, "late_ms", signal->late_ms);
	jsonw_u64_nonzero(w, "unlisted", peers->unlisted);
	jsonw_object_end(w);
}

const struct signal_kind socket_kind = {
	.id = SIGNAL_SOCKET,
	.counts = "socket snapshots",
	.table = "limits of a snapshot",
	/*
	 * If time was lost, and for a request: a waiting or an awaited service has peers. A session
	 * without a problem pays for a few socket snapshots.
	 */
	.is_auto = trigger_reason_asks_why,
	.create = create_sockets,
	.destroy = destroy_sockets,
	.attach = attach_sockets,
	.prepare = prepare_sockets,
	.end = end_sockets,
	.close = close_sockets,
	.write = write_sockets,
	.lines = session_sockets_put,
};
