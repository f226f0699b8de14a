/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/broker/broker_peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define STAT_BYTES   4096
#define FDINFO_BYTES 4096
#define MAPS_BYTES   (4u << 20) /* 30,000 mappings; more could not be read in time */
#define SOCKETS_MAX  512	/* the control socket has at most 64 clients */
#define TARGET_BYTES 32		/* of a descriptor's link; the compared texts are shorter */

/*
 * Counts take at most a quarter of the time: after each, REST times its cost must pass. A session
 * begins with about six counts in a row, of about a millisecond each, and the consumer's main loop
 * waits for them. So a client does not wait while less than CREDIT_NS is left to pass.
 */
#define REST	  3
#define CREDIT_NS (100 * NSEC_PER_MSEC)

static const char perf_event[] = "anon_inode:[perf_event]";
static const char bpf_link[] = "anon_inode:bpf_link";
static const char socket_kind[] = "socket:[";

int broker_peer_open(pid_t pid, struct broker_peer *ret_peer)
{
	struct broker_peer peer = BROKER_PEER_NONE;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	peer.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (peer.dir_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	peer.pid = pid;
	*ret_peer = peer;
	return 0;
}

void broker_peer_close(struct broker_peer *peer)
{
	cleanup_close(&peer->dir_fd);
	*peer = BROKER_PEER_NONE;
}

uint32_t broker_peer_number(const char *text, const char *key)
{
	const char *at = text;
	char number[16];
	uint64_t value;
	size_t bytes;

	while (strncmp(at, key, strlen(key)) != 0) {
		at = strchr(at, '\n');
		if (!at)
			return 0;
		at++;
	}
	at += strlen(key);
	bytes = strcspn(at, "\n");
	if (bytes >= sizeof(number))
		return 0;
	memcpy(number, at, bytes);
	number[bytes] = '\0';
	return parse_u64(number, 0, UINT32_MAX, &value) < 0 ? 0 : (uint32_t)value;
}

unsigned int broker_peer_mapped(const char *text)
{
	unsigned int found = 0;

	for (const char *at = text; (at = strstr(at, perf_event)); at += strlen(perf_event))
		found += at > text && at[-1] == ' ';
	return found;
}

/*
 * Checks that the process can be counted: /proc shows neither descriptors nor mappings of a process
 * without its first thread. Returns 0; -ESRCH: the process, or its first thread, has ended.
 */
static int check_alive(const struct broker_peer *peer)
{
	_cleanup_free_ char *text = NULL;
	const char *name_end;
	size_t bytes;
	int r;

	r = io_read_file(peer->dir_fd, "stat", STAT_BYTES, &text, &bytes);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	name_end = strrchr(text, ')');
	if (!name_end || strncmp(name_end, ") ", 2) != 0)
		return -EBADMSG;
	return strchr("ZX", name_end[2]) ? -ESRCH : 0;
}

/*
 * Reads the next descriptor of the peer and its link, "socket:[1234]" or "anon_inode:[perf_event]",
 * cut to TARGET_BYTES; "" if it was closed in the meantime. 1; 0: there are no more; -errno.
 */
static int read_next(DIR *d, const char **ret_name, char target[TARGET_BYTES])
{
	const struct dirent *e;
	ssize_t n;

	do {
		errno = 0;
		e = readdir(d);
		if (!e)
			return -errno;
	} while (e->d_name[0] == '.');
	n = readlinkat(dirfd(d), e->d_name, target, TARGET_BYTES - 1);
	if (n < 0 && errno != ENOENT && errno != ESRCH)
		return -errno;
	target[MAX(n, 0)] = '\0';
	*ret_name = e->d_name;
	return 1;
}

static int read_info_number(const struct broker_peer *peer, const char *name, const char *key,
			    uint32_t *ret_number)
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	size_t bytes;
	int r;

	snprintf(path, sizeof(path), "fdinfo/%.16s", name);
	r = io_read_file(peer->dir_fd, path, FDINFO_BYTES, &text, &bytes);
	if (r == -ENOENT || r == -ESRCH)
		return 0; /* closed in the meantime */
	if (r == 0)
		*ret_number = broker_peer_number(text, key);
	return r;
}

/*
 * Opens the peer's descriptor table through our descriptor of /proc/PID: another process may have
 * the peer's number by now.
 */
static DIR *open_table(const struct broker_peer *peer)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/fd", peer->dir_fd);
	return opendir(path);
}

/* Counts descriptors in messages that wait at a socket of the peer. */
static int count_messages(const struct broker_peer *peer, struct broker_holdings *held)
{
	_cleanup_closedir_ DIR *d = open_table(peer);
	char target[TARGET_BYTES];
	unsigned int sockets = 0;
	const char *name = "";
	int r = 1;

	if (!d)
		return -errno;
	while (r >= 0 && (r = read_next(d, &name, target)) > 0) {
		uint32_t flying = 0;

		if (strncmp(target, socket_kind, strlen(socket_kind)) != 0)
			continue;
		if (++sockets > SOCKETS_MAX)
			return -E2BIG;
		r = read_info_number(peer, name, "scm_fds: ", &flying);
		held->flying += flying;
	}
	return r;
}

static int count_table(const struct broker_peer *peer, const uint32_t *ids, unsigned int n,
		       struct broker_holdings *held)
{
	_cleanup_closedir_ DIR *d = open_table(peer);
	char target[TARGET_BYTES];
	const char *name = "";
	int r = 1;

	if (!d)
		return -errno;
	while (r >= 0 && (r = read_next(d, &name, target)) > 0) {
		uint32_t id = 0;

		held->events += strcmp(target, perf_event) == 0;
		if (strcmp(target, bpf_link) != 0)
			continue;
		held->links++;
		r = read_info_number(peer, name, "prog_id:\t", &id);
		for (unsigned int i = 0; i < n; i++)
			held->own += ids[i] == id;
	}
	return r;
}

static int count_maps(const struct broker_peer *peer, struct broker_holdings *held)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes;
	int r;

	r = io_read_file(peer->dir_fd, "maps", MAPS_BYTES, &text, &bytes);
	if (r == 0)
		held->events += broker_peer_mapped(text);
	return r;
}

int broker_peer_count(const struct broker_peer *peer, const uint32_t *ids, unsigned int n,
		      struct broker_holdings *ret_held)
{
	struct broker_holdings held = { 0 };
	int r;

	r = check_alive(peer);
	if (r == 0)
		r = count_messages(peer, &held);
	if (r == 0)
		r = count_table(peer, ids, n, &held);
	if (r == 0)
		r = count_maps(peer, &held);
	if (r == 0)
		r = check_alive(peer);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	*ret_held = held;
	return 0;
}

/* Returns whether the peer has received every message that we sent. */
static bool has_received_all(const struct broker_wire *wire)
{
	int bytes = 0;

	return ioctl(wire->fd, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

/*
 * Runs after the count: a message that is unreceived now was unreceived then. Subtracts files on
 * their way to the requesting thread, which are not events. Adds the grants on a connection if the
 * count cannot see the other end (a thread polls it and has closed the descriptor).
 */
static void count_wires(struct broker_peer *peer, struct broker_holdings *held)
{
	for (size_t i = 0; i < ARRAY_SIZE(peer->wires); i++) {
		struct broker_wire *wire = &peer->wires[i];

		if (wire->fd < 0 || has_received_all(wire)) {
			wire->given = wire->foreign = 0;
			continue;
		}
		held->flying -= MIN(held->flying, wire->foreign);
		held->flying += wire->given;
	}
}

void broker_peer_end(struct broker_peer *peer, const struct broker_holdings *mark,
		     const struct broker_holdings *held, uint64_t began_ns, uint64_t now_ns)
{
	peer->paid_ns = MAX(peer->paid_ns, began_ns) + (REST + 1) * (now_ns - began_ns);
	peer->rest_ns = peer->paid_ns - MIN(peer->paid_ns, CREDIT_NS);
	peer->counted = held != NULL;
	if (!held)
		return;
	peer->held = *held;
	count_wires(peer, &peer->held);
	peer->held.events += peer->given.events - mark->events;
	peer->held.links += peer->given.links - mark->links;
}

bool broker_peer_may_sample(const struct broker_peer *peer, unsigned int limit)
{
	return peer->counted && peer->held.events + peer->held.flying < limit;
}

bool broker_peer_may_attach(const struct broker_peer *peer, bool fresh, unsigned int more,
			    unsigned int limit)
{
	const struct broker_holdings *held = &peer->held;
	unsigned int own = fresh ? held->own : held->links;

	return peer->counted && !own && !held->flying && held->links + more <= limit;
}

void broker_peer_gave(struct broker_peer *peer, int fd, uint32_t request, unsigned int count)
{
	unsigned int events = request == BROKER_SAMPLER_OPEN ? count : 0;
	unsigned int links = request == BROKER_SIGNAL_ATTACH ? count : 0;

	peer->given.events += events;
	peer->given.links += links;
	peer->held.events += events;
	peer->held.links += links;
	for (size_t i = 0; i < ARRAY_SIZE(peer->wires); i++) {
		struct broker_wire *wire = &peer->wires[i];

		if (wire->fd != fd)
			continue;
		wire->given += events + links;
		wire->foreign = count - events - links;
	}
}
