/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/answer/find_sockets.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "consumer/answer/chain_links.h"
#include "consumer/answer/follow_peers.h"
#include "consumer/evidence/sockets/session_sockets.h"
#include "consumer/evidence/waits/session_waits.h"
#include "consumer/signals/time_histogram.h"
#include "shared/findings/socket_limits.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/number_text.h"

/* Fewer snapshots of a listener prove nothing about its queue. */
#define QUEUED_LOOKS_LEAST 3

#define PEER_BYTES (SESSION_SOCKETS_ADDRESS_BYTES + 32)

/* Appends to `says`, which has FINDINGS_SAYS_BYTES. */
__attribute__((format(printf, 2, 3))) static void add_text(char *says, const char *format, ...)
{
	size_t n = strlen(says);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(says + n, FINDINGS_SAYS_BYTES - n, format, arguments);
	va_end(arguments);
}

/*
 * Writes the address of the peer: "10.0.0.5:5432". The key of accepted connections has the
 * service's own port: then it writes "10.0.0.7:41234, a client of port 80" if the peer port of the
 * worst socket is known, else "clients of port 80 at 10.0.0.7".
 */
static void name_peer(const struct socket_peer *p, char text[PEER_BYTES])
{
	char host[SESSION_SOCKETS_ADDRESS_BYTES];
	struct socket_key key = p->key;

	if (key.way != SOCKET_ACCEPTED) {
		session_sockets_address(&key, text);
	} else if (p->worst.peer_port) {
		key.way = SOCKET_OPENED;
		key.port = p->worst.peer_port;
		session_sockets_address(&key, host);
		snprintf(text, PEER_BYTES, "%s, a client of port %u,", host, p->key.port);
	} else {
		session_sockets_host(&key, host);
		snprintf(text, PEER_BYTES, "clients of port %u at %s", p->key.port, host);
	}
}

static struct finding_evidence evidence_of(const struct socket_peer *p)
{
	struct finding_evidence e = { .type = "socket", .signal = "socket", .key = "address" };
	char text[SESSION_SOCKETS_ADDRESS_BYTES];

	session_sockets_host(&p->key, text);
	snprintf(e.value, sizeof(e.value), "%s", text);
	return e;
}

/* Whether the sign lasts: it is in at least SOCKET_LIMIT_LOOKS_PCT of the socket snapshots. */
static bool is_lasting(const struct socket_peers *peers, const struct socket_peer *p,
		       enum socket_sign sign)
{
	return p->signs[sign] &&
	       p->signs[sign] * 100ull >= (uint64_t)peers->looks * SOCKET_LIMIT_LOOKS_PCT;
}

/* ---- peers that threads waited for */

static uint64_t half_ns(const struct socket_peer *p)
{
	return time_histogram_percentile_ns(p->srtt, 50);
}

/* Whether a round trip was measured: sent data arrived, and an answer came back. */
static bool has_round_trips(const struct socket_peer *p)
{
	return time_histogram_count(p->srtt) && half_ns(p) != UINT64_MAX;
}

/* Whether segments were retransmitted to a peer from which nothing has come back. */
static bool is_silent(const struct socket_peer *p)
{
	return !time_histogram_count(p->srtt) && p->counts[SOCKET_RETRANSMITS];
}

/* Whether round trips take long, or packets wait on the way. */
static bool is_far(const struct socket_peer *p)
{
	uint64_t ns = has_round_trips(p) ? half_ns(p) : 0;

	if (ns >= SOCKET_LIMIT_FAR_MS * NSEC_PER_MSEC)
		return true;
	return ns >= SOCKET_LIMIT_QUEUED_MS * NSEC_PER_MSEC && p->rtt_least_ns &&
	       ns / p->rtt_least_ns >= SOCKET_LIMIT_QUEUED_TIMES;
}

static bool loses_segments(const struct socket_peer *p)
{
	uint64_t again = p->counts[SOCKET_RETRANSMITS];

	return again >= SOCKET_LIMIT_AGAIN_LEAST &&
	       again * 1000 >= p->counts[SOCKET_SEGMENTS] * SOCKET_LIMIT_AGAIN_PERMILLE;
}

/* Whether threads wait for TCP at this peer: for the network, or for space at the peer. */
static bool is_slow(const struct socket_peers *peers, const struct socket_peer *p)
{
	return is_far(p) || loses_segments(p) || is_silent(p) ||
	       is_lasting(peers, p, SOCKET_SIGN_STUCK) || is_lasting(peers, p, SOCKET_SIGN_UNACKED);
}

/* Converts a 4-byte address that is mapped into IPv6 back to 4 bytes. */
static uint8_t unmap_address(const struct look_on *on, uint8_t ret_address[16])
{
	const struct in6_addr *v6 = (const struct in6_addr *)on->peer;

	memset(ret_address, 0, 16);
	if (on->family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(v6)) {
		memcpy(ret_address, on->peer, 16);
		return AF_INET6;
	}
	memcpy(ret_address, on->peer + (on->family == AF_INET6 ? 12 : 0), 4);
	return AF_INET;
}

/* Returns the peer that the thread waits for; NULL if not known. */
static const struct socket_peer *peer_of(const struct socket_peers *peers, const struct look_on *on)
{
	const struct socket_peer *p = NULL;
	uint8_t address[16], family;

	if (!peers || !on || on->protocol != IPPROTO_TCP ||
	    (on->family != AF_INET && on->family != AF_INET6))
		return NULL;
	family = unmap_address(on, address);
	if (on->peer_port)
		p = socket_peers_find(peers, SOCKET_OPENED, family, address, on->peer_port);
	return p ? p : socket_peers_find(peers, SOCKET_ACCEPTED, family, address, on->local_port);
}

static bool is_wait(const struct session_wait *row)
{
	return row->state == ACCOUNT_SOCKET && !row->idle && !row->condition;
}

/* Sums over the threads that waited for one peer. */
struct waited_for {
	const struct socket_peer *peer; /* NULL: no known peer */
	uint64_t ns;
};

/*
 * Returns the peer with the most waiting time, of slow peers or of all, and the time of all these
 * peers together; *ret_all_ns is the time of all waits.
 */
static struct waited_for find_most(const struct findings_search *s,
				   const struct socket_peers *peers, bool slow,
				   uint64_t *ret_all_ns)
{
	const struct session_waits *waits = &s->summary->waits;
	struct waited_for most = { 0 };
	uint64_t top_ns = 0;

	*ret_all_ns = 0;
	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];
		const struct socket_peer *p = is_wait(row) ? peer_of(peers, row->on) : NULL;

		*ret_all_ns += is_wait(row) ? row->weight_ns : 0;
		if (!p || (slow && !is_slow(peers, p)))
			continue;
		most.ns += row->weight_ns;
		if (row->weight_ns >= top_ns)
			most.peer = p;
		top_ns = MAX(top_ns, row->weight_ns);
	}
	return most;
}

/* Appends how many of the segments were retransmitted. Connection requests are in no sum. */
static void say_again(const struct socket_peer *p, char *says)
{
	uint64_t again = p->counts[SOCKET_RETRANSMITS], all = p->counts[SOCKET_SEGMENTS];

	if (all >= again && all)
		add_text(says, ", %llu of %llu segments were sent again", (unsigned long long)again,
			 (unsigned long long)all);
	else if (again)
		add_text(says, ", %llu segments were sent again", (unsigned long long)again);
}

/* "; half of the round trips to 10.0.0.5:5432 took at most 210 ms (the quickest 0.2 ms), ..." */
static void say_way(const struct socket_peer *p, char *says)
{
	char peer[PEER_BYTES], ms[NUMBER_TEXT_BYTES], bytes[NUMBER_TEXT_BYTES];

	name_peer(p, peer);
	if (has_round_trips(p))
		add_text(says, "; half of the round trips to %s took at most %s", peer,
			 number_text_time(half_ns(p), ms));
	else
		add_text(says, "; no round trip to %s was measured", peer);
	if (p->rtt_least_ns)
		add_text(says, " (the quickest %s)", number_text_time(p->rtt_least_ns, ms));
	say_again(p, says);
	if (p->most[SOCKET_LEVEL_UNACKED])
		add_text(says, ", up to %s were not acknowledged",
			 number_text_bytes(p->most[SOCKET_LEVEL_UNACKED], bytes));
	if (p->counts[SOCKET_FULL_NS])
		add_text(says, ", up to %s waited %.1f s for space there",
			 number_text_bytes(p->most[SOCKET_LEVEL_UNSENT], bytes),
			 findings_search_seconds(p->counts[SOCKET_FULL_NS]));
}

/* Whether the other end of the sockets on which threads waited most is known. */
static bool names_peer(const struct session_wait *row)
{
	return row && row->on && (row->on->peer_port || row->on->peer_pid || row->on->path[0]);
}

void find_sockets_peer(struct findings_search *s)
{
	const struct socket_peers *peers = socket_peers_of(s->session->signals);
	uint64_t left_ns = s->part_ns[ACCOUNT_SOCKET], all_ns, slow_ns;
	struct waited_for slow = find_most(s, peers, true, &all_ns), most;
	const struct finding_evidence e = findings_search_evidence(s, ACCOUNT_SOCKET);
	const struct chain *chain =
		chain_links_find(&s->summary->chains, WAIT_BLOCKED + WAIT_SOCKET, NULL);
	const struct session_wait *top = session_waits_top(&s->summary->waits, ACCOUNT_SOCKET);
	const struct look_on *on = top ? top->on : NULL;
	char says[FINDINGS_SAYS_BYTES];

	if (slow.peer && all_ns) {
		struct finding_evidence of_peer = evidence_of(slow.peer);

		slow_ns = (uint64_t)((double)left_ns * (double)slow.ns / (double)all_ns);
		findings_search_say_place(s, ACCOUNT_SOCKET, "for the other ends of sockets", says);
		say_way(slow.peer, says);
		follow_peers_add(s, FINDING_SLOW_PEER, slow_ns, says, &of_peer, chain, 1,
				 "; meanwhile ", on);
		left_ns -= MIN(left_ns, slow_ns);
	}
	most = find_most(s, peers, false, &all_ns);
	findings_search_say_place(s, ACCOUNT_SOCKET, "for the other ends of sockets", says);
	if (most.peer && !is_slow(peers, most.peer)) {
		say_way(most.peer, says);
		if (has_round_trips(most.peer))
			add_text(says, ": the way to it is not slow");
	}
	follow_peers_add(s, FINDING_PEER, left_ns, says, &e, chain, 1, "; meanwhile ", on);
	if (!names_peer(top))
		findings_search_level(s, FINDING_PEER, FINDINGS_LIKELY,
				      "the other end is not known");
}

/* ---- peers that wait for the session's processes, or do not read from them */

/* Returns the time of the session that this number of socket snapshots represents. */
static uint64_t share_ns(const struct findings_search *s, const struct socket_peers *peers,
			 uint32_t looks)
{
	double length_ns = (double)s->found.time_ns[FINDINGS_SESSION];

	return peers->looks ? (uint64_t)(length_ns * looks / peers->looks) : 0;
}

/*
 * Returns the peer with this sign in the most socket snapshots; among equals, the peer with the
 * most of `level`.
 */
static const struct socket_peer *find_sign(const struct socket_peers *peers, enum socket_sign sign,
					   enum socket_level level)
{
	const struct socket_peer *top = NULL;

	for (size_t i = 0; i < peers->count; i++) {
		const struct socket_peer *p = &peers->items[i];

		if (p->signs[sign] &&
		    (!top || p->signs[sign] > top->signs[sign] ||
		     (p->signs[sign] == top->signs[sign] && p->most[level] > top->most[level])))
			top = p;
	}
	return top;
}

static void say_worst(const struct socket_peer *p, char *says)
{
	if (p->worst.tgid)
		add_text(says, "; the socket is of %.*s, process %u", COMM_BYTES, p->worst.comm,
			 p->worst.tgid);
}

/*
 * Returns the listener that dropped the most connections, for when no socket snapshot found its
 * queue full; NULL: none.
 */
static const struct socket_peer *find_drops(const struct socket_peers *peers)
{
	const struct socket_peer *top = NULL;

	for (size_t i = 0; i < peers->count; i++) {
		uint64_t drops = peers->items[i].counts[SOCKET_DROPS];

		if (drops && (!top || drops > top->counts[SOCKET_DROPS]))
			top = &peers->items[i];
	}
	return top;
}

/*
 * Returns a listener that had connections in its queue in each snapshot, and never fewer than
 * before: its threads do not accept, or do not keep up.
 */
static const struct socket_peer *find_queued(const struct socket_peers *peers)
{
	const struct socket_peer *p = find_sign(peers, SOCKET_SIGN_QUEUED, SOCKET_LEVEL_QUEUE);

	return p && peers->looks >= QUEUED_LOOKS_LEAST &&
			       p->signs[SOCKET_SIGN_QUEUED] == peers->looks
		       ? p
		       : NULL;
}

/* Appends where the threads of the service waited most; `works`: idle threads do not count. */
static void say_meanwhile(const struct findings_search *s, bool works, char *says)
{
	const struct session_waits *waits = &s->summary->waits;
	const struct session_wait *most = NULL;
	size_t n;

	for (size_t i = 0; i < waits->count; i++) {
		const struct session_wait *row = &waits->rows[i];

		if (works && row->idle && row->state != ACCOUNT_SLEEP)
			continue;
		if (!most || row->weight_ns > most->weight_ns)
			most = row;
	}
	if (!most || most->weight_ns * 2 < s->found.time_ns[FINDINGS_SESSION])
		return;
	add_text(says, "; meanwhile %llu of its threads %s %.1f s%s in ",
		 (unsigned long long)most->threads,
		 most->state == ACCOUNT_SLEEP ? "slept" : "waited",
		 findings_search_seconds(most->weight_ns),
		 most->idle && most->state != ACCOUNT_SLEEP ? " for clients or work" : "");
	n = strlen(says);
	session_waits_say_place(most, says + n, FINDINGS_SAYS_BYTES - n);
}

static void find_accept_queue(struct findings_search *s, const struct socket_peers *peers)
{
	const struct socket_peer *p = find_sign(peers, SOCKET_SIGN_QUEUE_FULL, SOCKET_LEVEL_QUEUE);
	char address[SESSION_SOCKETS_ADDRESS_BYTES], says[FINDINGS_SAYS_BYTES] = "";
	struct finding_evidence e;
	uint32_t looks;

	p = p ? p : find_drops(peers);
	p = p ? p : find_queued(peers);
	if (!p)
		return;
	e = evidence_of(p);
	session_sockets_address(&p->key, address);
	looks = p->signs[SOCKET_SIGN_QUEUE_FULL];
	if (looks || p->counts[SOCKET_DROPS]) {
		add_text(says,
			 "connections to %s were not accepted in time: its queue was full in %u "
			 "of %u snapshots, with %llu connections, for a backlog of %u",
			 address, looks, peers->looks,
			 (unsigned long long)p->most[SOCKET_LEVEL_QUEUE], p->queue_max);
	} else {
		looks = p->signs[SOCKET_SIGN_QUEUED];
		add_text(says,
			 "%llu connection%s waited to be accepted in the listen queue of %s, which "
			 "became no shorter in %u snapshots",
			 (unsigned long long)p->most[SOCKET_LEVEL_QUEUE],
			 p->most[SOCKET_LEVEL_QUEUE] == 1 ? "" : "s", address, looks);
	}
	if (p->counts[SOCKET_DROPS])
		add_text(says, "; %llu times a connection was dropped, and tried again",
			 (unsigned long long)p->counts[SOCKET_DROPS]);
	if (p->most[SOCKET_LEVEL_SYN_QUEUE])
		add_text(says, "; %llu more were on their way there",
			 (unsigned long long)p->most[SOCKET_LEVEL_SYN_QUEUE]);
	say_worst(p, says);
	say_meanwhile(s, false, says);
	findings_search_add(s, FINDING_ACCEPT_QUEUE, share_ns(s, peers, MAX(looks, 1u)), says, &e);
}

static void find_reader(struct findings_search *s, const struct socket_peers *peers)
{
	const struct socket_peer *p = find_sign(peers, SOCKET_SIGN_UNREAD, SOCKET_LEVEL_UNREAD);
	char peer[PEER_BYTES], bytes[NUMBER_TEXT_BYTES], says[FINDINGS_SAYS_BYTES] = "";
	struct finding_evidence e;

	if (!p)
		return;
	e = evidence_of(p);
	name_peer(p, peer);
	add_text(
		says,
		"data from %s were not read: up to %s in %llu connection%s, some of it for %.1f s; "
		"found in %u of %u snapshots",
		peer, number_text_bytes(p->most[SOCKET_LEVEL_UNREAD], bytes),
		(unsigned long long)p->most[SOCKET_LEVEL_CONNECTIONS],
		p->most[SOCKET_LEVEL_CONNECTIONS] == 1 ? "" : "s",
		(double)p->unread_ms / MSEC_PER_SEC, p->signs[SOCKET_SIGN_UNREAD], peers->looks);
	say_worst(p, says);
	/* A thread that runs instead has a finding of its own. */
	if (s->found.time_ns[FINDINGS_RUNNING] * 4 < s->found.time_ns[FINDINGS_SESSION])
		say_meanwhile(s, true, says);
	findings_search_add(s, FINDING_SLOW_READER,
			    share_ns(s, peers, p->signs[SOCKET_SIGN_UNREAD]), says, &e);
}

static void find_receiver(struct findings_search *s, const struct socket_peers *peers)
{
	const struct socket_peer *p = find_sign(peers, SOCKET_SIGN_STUCK, SOCKET_LEVEL_UNSENT);
	char peer[PEER_BYTES], bytes[NUMBER_TEXT_BYTES], says[FINDINGS_SAYS_BYTES] = "";
	bool one = p && (p->key.way != SOCKET_ACCEPTED || p->worst.peer_port);
	struct finding_evidence e;

	if (!p)
		return;
	e = evidence_of(p);
	name_peer(p, peer);
	add_text(says,
		 "%s %s not read the data sent there: up to %s waited here for space there, for "
		 "%.1f s without progress; found in %u of %u snapshots",
		 peer, one ? "does" : "do", number_text_bytes(p->most[SOCKET_LEVEL_UNSENT], bytes),
		 (double)p->stuck_ms / MSEC_PER_SEC, p->signs[SOCKET_SIGN_STUCK], peers->looks);
	if (p->counts[SOCKET_FULL_NS])
		add_text(says, "; its receive buffer was full for %.1f s",
			 findings_search_seconds(p->counts[SOCKET_FULL_NS]));
	say_worst(p, says);
	findings_search_add(s, FINDING_SLOW_RECEIVER,
			    share_ns(s, peers, p->signs[SOCKET_SIGN_STUCK]), says, &e);
}

void find_sockets_say_waiting(const struct findings_search *s, char says[FINDINGS_SAYS_BYTES])
{
	const struct socket_peers *peers = socket_peers_of(s->session->signals);
	const struct socket_peer *most = NULL;
	char address[SESSION_SOCKETS_ADDRESS_BYTES];

	for (size_t i = 0; peers && i < peers->count; i++) {
		uint64_t queue = peers->items[i].most[SOCKET_LEVEL_QUEUE];

		if (queue && (!most || queue > most->most[SOCKET_LEVEL_QUEUE]))
			most = &peers->items[i];
	}
	if (!most)
		return;
	session_sockets_address(&most->key, address);
	add_text(says, "; up to %llu connections waited to be accepted at %s",
		 (unsigned long long)most->most[SOCKET_LEVEL_QUEUE], address);
}

void find_sockets_clients(struct findings_search *s)
{
	const struct socket_peers *peers = socket_peers_of(s->session->signals);

	if (!peers)
		return;
	find_accept_queue(s, peers);
	find_reader(s, peers);
	find_receiver(s, peers);
}
