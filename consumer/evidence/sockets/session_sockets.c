/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/session_sockets.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "consumer/signals/time_histogram.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

static const char *const ways[] = {
#define SOCKET_WAY(id, json, help) [SOCKET_##id] = (json),
#include "shared/abi/socket_ways.def"
#undef SOCKET_WAY
};
_Static_assert(ARRAY_SIZE(ways) == SOCKET_WAYS_, "a row for each");

static const char *const levels[] = {
#define SOCKET_LEVEL(id, json) [SOCKET_LEVEL_##id] = (json),
#include "consumer/evidence/sockets/socket_levels.def"
};
_Static_assert(ARRAY_SIZE(levels) == SOCKET_LEVELS_, "a row for each");

static const char *const signs[] = {
#define SOCKET_SIGN(id, json) [SOCKET_SIGN_##id] = (json),
#include "consumer/evidence/sockets/socket_levels.def"
};
_Static_assert(ARRAY_SIZE(signs) == SOCKET_SIGNS_, "a row for each");

static const char *const counts[] = {
#define SOCKET_COUNT(id, json, help) [SOCKET_##id] = (json),
#include "shared/abi/socket_counts.def"
#undef SOCKET_COUNT
};
_Static_assert(ARRAY_SIZE(counts) == SOCKET_COUNTS_, "a row for each");

static const char *const states[SOCKET_STATES] = {
#define TCP_STATE(number, json) [number] = (json),
#include "shared/abi/tcp_states.def"
#undef TCP_STATE
};

/* Members that the lines of a session share. */
struct socket_lines {
	const struct event_lines *lines;
	const struct event_subject *subject;
	const struct socket_peers *peers;
};

void session_sockets_host(const struct socket_key *key, char text[SESSION_SOCKETS_ADDRESS_BYTES])
{
	if (!inet_ntop(key->family, key->address, text, SESSION_SOCKETS_ADDRESS_BYTES))
		text[0] = 0;
}

void session_sockets_address(const struct socket_key *key, char text[SESSION_SOCKETS_ADDRESS_BYTES])
{
	char host[SESSION_SOCKETS_ADDRESS_BYTES];

	session_sockets_host(key, host);
	if (key->way == SOCKET_ACCEPTED)
		snprintf(text, SESSION_SOCKETS_ADDRESS_BYTES, "%.45s at port %u", host, key->port);
	else
		snprintf(text, SESSION_SOCKETS_ADDRESS_BYTES,
			 key->family == AF_INET6 ? "[%.45s]:%u" : "%.45s:%u", host, key->port);
}

static void begin_line(const struct socket_lines *l, const char *type, struct jsonw *w)
{
	event_line_begin(l->lines, w, type, l->subject);
	jsonw_string(w, "signal", rules_signal_name(SIGNAL_SOCKET));
}

static void write_levels(const struct socket_peer *p, struct jsonw *w)
{
	for (int i = 0; i < SOCKET_LEVELS_; i++) {
		if (!p->most[i] && i != SOCKET_LEVEL_CONNECTIONS)
			continue;
		jsonw_object(w, levels[i]);
		jsonw_u64(w, "first", p->first[i]);
		jsonw_u64(w, "last", p->last[i]);
		jsonw_u64(w, "most", p->most[i]);
		jsonw_object_end(w);
	}
	for (int i = 0; i < SOCKET_SIGNS_; i++)
		jsonw_u64_nonzero(w, signs[i], p->signs[i]);
	jsonw_u64_nonzero(w, "unread_ms", p->unread_ms);
	jsonw_u64_nonzero(w, "stuck_ms", p->stuck_ms);
}

static void write_states(const struct socket_peer *p, struct jsonw *w)
{
	jsonw_object(w, "states");
	for (int i = 0; i < SOCKET_STATES; i++)
		if (p->states[i] && states[i])
			jsonw_u64(w, states[i], p->states[i]);
	jsonw_object_end(w);
}

/* Writes the counts that are not 0; always writes the bytes of connections. */
static void write_counts(const struct socket_peer *p, struct jsonw *w)
{
	for (int i = 0; i < SOCKET_COUNTS_; i++) {
		bool always = i == SOCKET_BYTES_IN || i == SOCKET_BYTES_OUT ||
			      i == SOCKET_SEGMENTS || i == SOCKET_RETRANSMITS;

		if (p->counts[i] || (always && p->key.way != SOCKET_LISTENS))
			jsonw_u64(w, counts[i], p->counts[i]);
	}
}

static void write_part(const char *key, const uint64_t steps[QUEUE_BUCKETS], struct jsonw *w)
{
	if (!time_histogram_count(steps))
		return;
	jsonw_object(w, key);
	time_histogram_write_percentile("p50", steps, 50, w);
	time_histogram_write_percentile("p99", steps, 99, w);
	jsonw_object_end(w);
}

static void write_srtt(const struct socket_peer *p, struct jsonw *w)
{
	if (!p->srtt_most_ns)
		return;
	jsonw_object(w, "srtt");
	jsonw_u64_nonzero(w, "least", p->rtt_least_ns);
	time_histogram_write_percentile("p50", p->srtt, 50, w);
	jsonw_u64(w, "most", p->srtt_most_ns);
	jsonw_object_end(w);
}

static void write_worst(const struct socket_peer *p, struct jsonw *w)
{
	if (!p->worst.tgid)
		return;
	jsonw_object(w, "worst");
	jsonw_u64(w, "pid", p->worst.tgid);
	jsonw_string_n(w, "comm", p->worst.comm, strnlen(p->worst.comm, sizeof(p->worst.comm)));
	jsonw_u64(w, "local_port", p->worst.local_port);
	if (p->key.way != SOCKET_LISTENS)
		jsonw_u64(w, "peer_port", p->worst.peer_port);
	jsonw_u64(w, "waits", p->worst.waits);
	jsonw_object_end(w);
}

static void write_sums(const struct socket_lines *l, const struct socket_peer *p, struct jsonw *w)
{
	jsonw_u64(w, "looks", l->peers->looks);
	write_levels(p, w);
	if (l->peers->counted)
		write_counts(p, w);
	write_part("connect", p->connect, w);
	write_part("life", p->life, w);
	write_srtt(p, w);
	jsonw_u64_nonzero(w, "foreign", p->foreign);
}

static void put_peer(const struct socket_lines *l, const struct socket_peer *p)
{
	char address[SESSION_SOCKETS_ADDRESS_BYTES];
	struct jsonw w;

	session_sockets_host(&p->key, address);
	begin_line(l, "socket", &w);
	jsonw_string(&w, "way", ways[p->key.way]);
	jsonw_string(&w, "address", address);
	jsonw_u64(&w, "port", p->key.port);
	write_sums(l, p, &w);
	write_states(p, &w);
	if (p->key.way == SOCKET_LISTENS && p->most[SOCKET_LEVEL_CONNECTIONS])
		jsonw_u64(&w, "queue_limit", p->queue_max);
	write_worst(p, &w);
	event_line_end(l->lines, &w);
}

static void put_rest(const struct socket_lines *l)
{
	struct jsonw w;

	begin_line(l, "socket", &w);
	jsonw_u64(&w, "others", l->peers->others);
	write_sums(l, &l->peers->rest, &w);
	event_line_end(l->lines, &w);
}

static void put_histogram(const struct socket_lines *l, const char *part,
			  const uint64_t steps[QUEUE_BUCKETS], uint64_t sum_ns)
{
	struct jsonw w;

	if (!time_histogram_count(steps))
		return;
	begin_line(l, "histogram", &w);
	jsonw_object(&w, "key");
	jsonw_string(&w, "of", "socket");
	jsonw_string(&w, "part", part);
	jsonw_object_end(&w);
	time_histogram_write(steps, sum_ns, &w);
	event_line_end(l->lines, &w);
}

void session_sockets_put(const struct session_result *s, const struct event_lines *lines,
			 const struct event_subject *subject)
{
	const struct socket_lines l = { lines, subject, socket_peers_of(s->signals) };
	const struct socket_peer *all;

	if (!l.peers)
		return;
	all = &l.peers->all;
	for (size_t i = 0; i < l.peers->count; i++)
		put_peer(&l, &l.peers->items[i]);
	if (l.peers->others)
		put_rest(&l);
	put_histogram(&l, "connect", all->connect, all->counts[SOCKET_CONNECT_NS]);
	put_histogram(&l, "life", all->life, all->counts[SOCKET_LIFE_NS]);
	put_histogram(&l, "srtt", all->srtt, all->srtt_sum_ns);
}
