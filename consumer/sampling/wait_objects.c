/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/sampling/wait_objects.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "consumer/sampling/wait_files.h"
#include "consumer/sampling/wait_kind.h"
#include "consumer/sampling/wait_numbers.h"
#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define ADDRESS_BYTES (INET6_ADDRSTRLEN + 9) /* "[", "]:", port, NUL */
#define PROCESS_BYTES 128		     /* see say_process */

void wait_objects_init(struct wait_objects *o)
{
	*o = (struct wait_objects){ 0 };
	idmap_init(&o->by_hash, WAIT_OBJECTS_MAX);
	idmap_init(&o->holders, WAIT_OBJECTS_MAX);
}

void wait_objects_done(struct wait_objects *o)
{
	free(o->items);
	idmap_done(&o->by_hash);
	idmap_done(&o->holders);
	*o = (struct wait_objects){ 0 };
}

static bool is_internet(const struct look_on *on)
{
	return on->kind == LOOK_ON_SOCKET && (on->family == AF_INET || on->family == AF_INET6);
}

static bool is_unix(const struct look_on *on)
{
	return on->kind == LOOK_ON_SOCKET && on->family == AF_UNIX;
}

/*
 * Whether it is a server's end of a connection, also after wait_objects_plain, which omits the
 * port. An unconnected UDP socket receives from any sender.
 */
static bool is_served(const struct look_on *on)
{
	if (is_unix(on))
		return on->end == LOOK_END_SERVED;
	if (!is_internet(on) || !on->local_port || on->local_port >= WAIT_CLIENT_PORTS)
		return false;
	return on->peer_port ? on->peer_port >= WAIT_CLIENT_PORTS
			     : on->state == TCP_ESTABLISHED || on->protocol == IPPROTO_UDP;
}

/* Whether `on` may be a lock: its state is then enum look_lock. */
static bool may_be_lock(const struct look_on *on)
{
	return on->kind == LOOK_ON_FUTEX || on->kind == LOOK_ON_FILE ||
	       on->kind == LOOK_ON_MMAP_LOCK;
}

bool wait_objects_is_lock(const struct look_on *on)
{
	return may_be_lock(on) && on->state > LOOK_LOCK_EVENT;
}

bool wait_objects_is_event(const struct look_on *on)
{
	return on->kind == LOOK_ON_FUTEX && on->state == LOOK_LOCK_EVENT;
}

static bool is_set(const struct look_on *on)
{
	return on->kind == LOOK_ON_EPOLL || on->kind == LOOK_ON_POLL || on->kind == LOOK_ON_SELECT;
}

bool wait_objects_is_asked(const struct look_on *on)
{
	if (!is_set(on))
		return false;
	if (on->family == AF_UNIX)
		return on->asked;
	return on->peer_port && (on->family == AF_INET || on->family == AF_INET6);
}

bool wait_objects_is_unanswered(const struct look_on *on)
{
	return wait_objects_is_asked(on) || (is_internet(on) && on->asked);
}

bool wait_objects_is_full_pipe(const struct look_on *on)
{
	return on->kind == LOOK_ON_PIPE && on->state;
}

/* Whether `on` is a lock of a file: its holder is a process, not a thread. */
static bool is_file_lock(const struct look_on *on)
{
	return on->kind == LOOK_ON_FILE && on->state == LOOK_LOCK_FILE;
}

bool wait_objects_has_process(const struct look_on *on)
{
	return on->peer_pid && (on->peers || on->kind == LOOK_ON_CHILD || is_file_lock(on));
}

bool wait_objects_is_held_up(const struct look_on *on)
{
	return wait_objects_is_full_pipe(on) || on->peer_flags;
}

bool wait_objects_is_idle_set(const struct look_on *on)
{
	return is_set(on) && !wait_objects_is_asked(on) && !on->cut && !on->unix_opened;
}

/* Copies the known members of a unix socket. For a server's end, all its clients are alike. */
static void copy_unix(struct look_on *to, const struct look_on *on)
{
	to->end = on->end;
	memcpy(to->path, on->path, sizeof(to->path) - 1);
	if (on->end == LOOK_END_SERVED)
		return;
	to->peer_pid = on->peer_pid;
	memcpy(to->peer_comm, on->peer_comm, sizeof(to->peer_comm) - 1);
}

/* Keeps of a set: the kinds of its members, the peer, and its reported unix socket. */
static struct look_on plain_set(const struct look_on *on)
{
	struct look_on n = { .kind = on->kind };

	for (int i = 0; i < LOOK_MEMBERS_; i++)
		n.kinds[i] = on->kinds[i] != 0;
	copy_unix(&n, on);
	if (!wait_objects_is_asked(on))
		return n;
	n.family = on->family;
	n.asked = n.family == AF_UNIX; /* without a port it is the only sign of a request */
	n.protocol = on->protocol;
	n.net = on->net;
	n.peer_port = on->peer_port;
	memcpy(n.peer, on->peer, sizeof(n.peer));
	return n;
}

struct look_on wait_objects_plain(const struct look_on *on)
{
	struct look_on n = *on;

	if (is_set(on))
		return plain_set(on);
	if (on->kind == LOOK_ON_TIMER)
		return wait_numbers_timer(on);
	if (on->kind == LOOK_ON_MMAP_LOCK) { /* without the object that its system call has */
		n = (struct look_on){ .kind = on->kind,
				      .state = on->state,
				      .peer_pid = on->peer_pid };
		memcpy(n.peer_comm, on->peer_comm, sizeof(n.peer_comm));
	}
	if (n.kind == LOOK_ON_NOTHING || n.kind >= LOOK_ON_COUNT_)
		return (struct look_on){ 0 };
	n.longest_ns = 0;
	n.items = n.sockets = n.asked = n.others = n.cut = n.unread = n.unix_opened = 0;
	n.asked = is_internet(on) && on->asked;
	n.end = 0;
	memset(n.kinds, 0, sizeof(n.kinds));
	if (!wait_objects_is_lock(on) && on->kind != LOOK_ON_CHILD)
		n.peer_pid = 0;
	if (!n.peer_pid) {
		memset(n.peer_comm, 0, sizeof(n.peer_comm));
		n.peer_flags = 0;
	}
	n.peers = 0;
	n.peer_comm[sizeof(n.peer_comm) - 1] = 0;
	wait_files_plain(on, &n);
	if (is_unix(on))
		copy_unix(&n, on);
	n.name[sizeof(n.name) - 1] = 0;
	if (n.kind != LOOK_ON_CHILD && n.kind != LOOK_ON_SEMAPHORES && n.kind != LOOK_ON_FUTEX &&
	    n.kind != LOOK_ON_TRACER && n.kind != LOOK_ON_SENDER)
		n.number = 0;
	if (n.kind != LOOK_ON_SOCKET)
		return n;
	n.inode = 0;
	n.device = 0;
	if (is_served(on))
		n.peer_port = 0;
	else if (n.peer_port)
		n.local_port = 0;
	return n;
}

static uint64_t hash_of(const struct look_on *on)
{
	const unsigned char *bytes = (const unsigned char *)on;
	uint64_t hash = 0xcbf29ce484222325ULL, word;

	_Static_assert(sizeof(*on) % sizeof(word) == 0, "whole words");

	for (size_t i = 0; i < sizeof(*on); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash | 1;
}

static bool is_counted(const struct look_on *on)
{
	return is_set(on) || is_unix(on) || on->kind == LOOK_ON_TIMER;
}

/* Keeps the largest counts of a set. A set without a request has no peer, and no counts for it. */
static void add_counts(struct look_on *item, const struct look_on *on)
{
	if (item->kind == LOOK_ON_TIMER)
		wait_numbers_add(item, on);
	item->unread = MAX(item->unread, on->unread);
	if (!is_set(item))
		return;
	item->items = MAX(item->items, on->items);
	item->sockets = MAX(item->sockets, on->sockets);
	item->cut = item->cut || on->cut;
	item->unix_opened = MAX(item->unix_opened, on->unix_opened);
	for (int i = 0; i < LOOK_MEMBERS_; i++)
		item->kinds[i] = MAX(item->kinds[i], on->kinds[i]);
	if (!wait_objects_is_asked(item))
		return;
	item->asked = MAX(item->asked, on->asked);
	item->others = MAX(item->others, on->others);
	item->longest_ns = MAX(item->longest_ns, on->longest_ns);
}

/* Whether it is known since when the answer is due. Unix sockets and UDP keep no times. */
static bool knows_since(const struct look_on *on)
{
	return on->family != AF_UNIX && on->protocol != IPPROTO_UDP;
}

void wait_objects_lasts(struct wait_objects *o, uint32_t number, uint64_t longest_ns)
{
	struct look_on *item = number && number <= o->count ? &o->items[number - 1] : NULL;

	if (item && wait_objects_is_unanswered(item) && knows_since(item))
		item->longest_ns = MAX(item->longest_ns, longest_ns);
}

/*
 * Removes the holder of a lock that WAIT_OBJECTS_HOLDERS other threads have held: it goes from
 * thread to thread, and an object for each would leave no space for others. So do the children of
 * a thread that starts one after the other.
 */
static void limit_holders(struct wait_objects *o, struct look_on *one)
{
	struct look_on lock = *one;
	uintptr_t holders;
	uint64_t hash;

	if ((!wait_objects_is_lock(one) && one->kind != LOOK_ON_CHILD) || !one->peer_pid ||
	    idmap_get(&o->by_hash, hash_of(one)))
		return;
	lock.peer_pid = 0;
	lock.peer_flags = 0;
	if (one->kind == LOOK_ON_CHILD)
		lock.number = -1;
	memset(lock.peer_comm, 0, sizeof(lock.peer_comm));
	hash = hash_of(&lock);
	holders = (uintptr_t)idmap_get(&o->holders, hash);
	if (holders >= WAIT_OBJECTS_HOLDERS ||
	    idmap_put(&o->holders, hash, (void *)(holders + 1)) < 0)
		*one = lock;
}

uint32_t wait_objects_add(struct wait_objects *o, const struct look_on *on)
{
	struct look_on one = wait_objects_plain(on), was;
	uint64_t hash;
	uintptr_t number;

	if (one.kind == LOOK_ON_NOTHING)
		return 0;
	limit_holders(o, &one);
	hash = hash_of(&one);
	number = (uintptr_t)idmap_get(&o->by_hash, hash);
	if (number)
		was = wait_objects_plain(&o->items[number - 1]);
	if (number && memcmp(&was, &one, sizeof(one)) == 0) {
		if (is_counted(&one))
			add_counts(&o->items[number - 1], on);
		return (uint32_t)number;
	}
	/* An object with the hash of another one is left out instead of being confused with it. */
	if (number) {
		o->left_out++;
		return 0;
	}
	if (o->count == o->space) {
		size_t space = o->space ? 2 * o->space : 64;
		struct look_on *items = o->count < WAIT_OBJECTS_MAX
						? reallocarray(o->items, space, sizeof(*items))
						: NULL;

		if (!items) {
			o->left_out++;
			return 0;
		}
		o->items = items;
		o->space = space;
	}
	number = o->count + 1;
	if (idmap_put(&o->by_hash, hash, (void *)number) < 0) {
		o->left_out++;
		return 0;
	}
	if (is_counted(&one))
		add_counts(&one, on);
	o->items[o->count++] = one;
	return (uint32_t)number;
}

/* Sets the key of a TCP connection from here. */
static void make_tcp_key(const struct look_on *on, struct end_key *key)
{
	const struct in6_addr *v6 = (const struct in6_addr *)on->peer;

	key->kind = END_TCP;
	key->port = on->peer_port;
	key->net = on->net;
	key->family = AF_INET;
	if (on->family == AF_INET) {
		memcpy(key->address, on->peer, 4);
	} else if (IN6_IS_ADDR_V4MAPPED(v6)) {
		memcpy(key->address, on->peer + 12, 4);
	} else {
		key->family = AF_INET6;
		memcpy(key->address, on->peer, 16);
	}
}

bool wait_objects_end_key(const struct look_on *on, struct end_key *ret_key)
{
	*ret_key = (struct end_key){ 0 };
	if (on->kind == LOOK_ON_PIPE) {
		ret_key->kind = on->state ? END_READER : END_WRITER;
		ret_key->inode = on->inode;
		ret_key->device = on->device;
	} else if (is_file_lock(on)) {
		ret_key->kind = END_LOCK;
		ret_key->inode = on->address;
		return on->address;
	} else if (on->kind == LOOK_ON_FILE && strncmp(on->fs, "fuse", 4) == 0) {
		ret_key->kind = END_FUSE;
		ret_key->device = on->device;
	} else if ((is_set(on) || on->kind == LOOK_ON_SOCKET) && on->protocol == IPPROTO_TCP &&
		   on->peer_port && (on->family == AF_INET || on->family == AF_INET6)) {
		make_tcp_key(on, ret_key);
	} else {
		return false;
	}
	return true;
}

void wait_objects_set_end(struct wait_objects *o, uint32_t number,
			  const struct end_process *process, uint32_t count)
{
	struct look_on *item = number && number <= o->count ? &o->items[number - 1] : NULL;

	if (!item || !process->tgid || (wait_objects_is_lock(item) && !item->address))
		return;
	if (is_set(item)) /* of a unix socket in the set */
		memset(item->path, 0, sizeof(item->path));
	item->peer_pid = process->tgid;
	item->peer_flags = process->flags;
	item->peers = count;
	memcpy(item->peer_comm, process->comm, sizeof(item->peer_comm) - 1);
}

const struct look_on *wait_objects_get(const struct wait_objects *o, uint32_t number)
{
	return number && number <= o->count ? &o->items[number - 1] : NULL;
}

uint8_t wait_objects_state(uint8_t state, const struct look_on *on)
{
	if (state == WAIT_BLOCKED + WAIT_IDLE && on && wait_objects_is_asked(on))
		return WAIT_BLOCKED + WAIT_SOCKET;
	/* A lock of the kernel: a system call or page fault of any kind may wait for it. */
	if (state >= WAIT_BLOCKED && on && on->kind != LOOK_ON_FUTEX && wait_objects_is_lock(on))
		return WAIT_BLOCKED + WAIT_LOCK;
	return state;
}

bool wait_objects_is_idle(uint8_t state, const struct look_on *on)
{
	static const bool idle[] = {
#define WAIT_KIND(id, json, is_idle, help) [WAIT_##id] = (is_idle),
#include "shared/abi/waits.def"
#undef WAIT_KIND
	};

	state = wait_objects_state(state, on);
	if (state < WAIT_BLOCKED)
		return false;
	return idle[state - WAIT_BLOCKED] ||
	       (state == WAIT_BLOCKED + WAIT_SOCKET && on && is_served(on));
}

/* Makes "10.0.0.5:5432" or "[::1]:80"; false if it is no address. */
static bool make_address(const struct look_on *on, const uint8_t *address, uint16_t port,
			 char all[ADDRESS_BYTES])
{
	char text[INET6_ADDRSTRLEN];

	if (!inet_ntop(on->family, address, text, sizeof(text)))
		return false;
	if (!port)
		snprintf(all, ADDRESS_BYTES, "%s", text);
	else
		snprintf(all, ADDRESS_BYTES, on->family == AF_INET ? "%s:%u" : "[%s]:%u", text,
			 port);
	return true;
}

static void write_address(struct jsonw *w, const char *key, const struct look_on *on,
			  const uint8_t *address, uint16_t port)
{
	char all[ADDRESS_BYTES];

	if (make_address(on, address, port, all))
		jsonw_string(w, key, all);
}

/* Writes "the unix socket /run/x.sock (cart)", or "a unix socket" if nothing is known. */
static int say_unix(const struct look_on *on, char *text, size_t space)
{
	return snprintf(text, space, "%s unix socket%s%s%s%.*s%s", on->path[0] ? "the" : "a",
			on->path[0] ? " " : "", on->path, on->peer_comm[0] ? " (" : "", COMM_BYTES,
			on->peer_comm, on->peer_comm[0] ? ")" : "");
}

/* Words for why the process at the other end does not run; NULL: it is not halted. */
static const char *say_halt(const struct look_on *on)
{
	switch (on->peer_flags) {
	case LOOK_STOPPED:
		return "stopped by a signal";
	case LOOK_TRACED:
		return "stopped by a tracer";
	case LOOK_FROZEN:
		return "frozen";
	default:
		return NULL;
	}
}

/*
 * Writes the process at the other end: `before` "postgres, process 12, stopped by a signal" and
 * `after`; "" if it is not known.
 */
static void say_process(const struct look_on *on, const char *before, const char *after,
			char text[PROCESS_BYTES])
{
	const char *halt = say_halt(on);
	char more[32] = "";

	*text = 0;
	if (!on->peer_pid || (!on->peers && on->kind != LOOK_ON_CHILD))
		return;
	if (on->peers > 1)
		snprintf(more, sizeof(more), " and %u more", on->peers - 1);
	snprintf(text, PROCESS_BYTES, "%s%.*s, process %u%s%s%s%s", before, COMM_BYTES,
		 on->peer_comm, on->peer_pid, more, halt ? ", " : "", halt ? halt : "", after);
}

int wait_objects_say_peer(const struct look_on *on, char *text, size_t space)
{
	char peer[ADDRESS_BYTES], others[32] = "", process[PROCESS_BYTES];

	if (!wait_objects_is_asked(on))
		return 0;
	if (on->family == AF_UNIX)
		return say_unix(on, text, space);
	if (!make_address(on, on->peer, on->peer_port, peer))
		return 0;
	if (!knows_since(on))
		return snprintf(text, space, "udp %s", peer);
	if (on->others)
		snprintf(others, sizeof(others), "; %u wait for others", on->others);
	say_process(on, "", "; ", process);
	return snprintf(text, space, "%s (%s%u connection%s a thread, the longest for %llu ms%s)",
			peer, process, on->asked, on->asked == 1 ? "" : "s",
			(unsigned long long)(on->longest_ns / NSEC_PER_MSEC), others);
}

/* Writes " held by NAME (process 12)" for a lock with a known holder. Returns the length. */
static int say_holder(const struct look_on *on, char *text, size_t space)
{
	if (!wait_objects_is_lock(on) || !on->peer_pid)
		return 0;
	return snprintf(text, space, " held by %s (%s %u)", on->peer_comm,
			on->state == LOOK_LOCK_FILE ? "process" : "thread", on->peer_pid);
}

int wait_objects_say_object(const struct look_on *on, char *text, size_t space)
{
	char peer[ADDRESS_BYTES], process[PROCESS_BYTES];
	int n;

	switch (on->kind) {
	case LOOK_ON_FILE:
		*process = 0;
		if (!wait_objects_is_lock(on))
			say_process(on, ", served by ", "", process);
		n = wait_files_say(on, text, space);
		return n < 0 || (size_t)n >= space
			       ? n
			       : n + snprintf(text + n, space - (size_t)n, "%s", process);
	case LOOK_ON_CHILD:
		say_process(on, " for ", "", process);
		return snprintf(text, space, "%s", process);
	case LOOK_ON_MMAP_LOCK:
		return snprintf(text, space,
				" on the kernel's lock of its address space (mmap_lock)");
	case LOOK_ON_PIPE:
		say_process(on, on->state ? " that leads to " : " that comes from ", "", process);
		return snprintf(text, space, " on a %spipe%s", on->state ? "full " : "", process);
	case LOOK_ON_TRACER:
		return snprintf(text, space, " by %s (process %d)", on->name, on->number);
	case LOOK_ON_SENDER:
		return snprintf(text, space, ", sent by %s (process %d)", on->name, on->number);
	case LOOK_ON_SOCKET:
		if (is_unix(on) && space > sizeof(" on "))
			return snprintf(text, space, " on ") + say_unix(on, text + 4, space - 4);
		if (is_internet(on) && !on->peer_port && on->protocol == IPPROTO_UDP)
			return snprintf(text, space, " on udp port %u", on->local_port);
		if (!is_internet(on) || !on->peer_port ||
		    !make_address(on, on->peer, on->peer_port, peer))
			return snprintf(text, space, " on a socket");
		say_process(on, " (", ")", process);
		return snprintf(text, space, " on %s to %s%s",
				on->protocol == IPPROTO_UDP ? "udp" : "tcp", peer, process);
	default:
		return 0;
	}
}

int wait_objects_say(const struct look_on *on, char *text, size_t space)
{
	int n = wait_objects_say_object(on, text, space);

	return n < 0 || (size_t)n >= space ? n : n + say_holder(on, text + n, space - (size_t)n);
}

/* Writes the name, or the number if it has no name. */
static void write_number(struct jsonw *w, const char *key, const char *name, unsigned int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	jsonw_string(w, key, name ? name : text);
}

/* Writes the process at the other end. */
static void write_process(const struct look_on *on, struct jsonw *w)
{
	if (on->peer_pid)
		jsonw_u64(w, "peer_pid", on->peer_pid);
	if (on->peer_comm[0])
		jsonw_string_n(w, "peer_comm", on->peer_comm, strnlen(on->peer_comm, COMM_BYTES));
	if (on->peers > 1)
		jsonw_u64(w, "peer_processes", on->peers);
	if (say_halt(on))
		jsonw_string(w, "peer_halt",
			     on->peer_flags == LOOK_STOPPED  ? "stopped"
			     : on->peer_flags == LOOK_TRACED ? "traced"
							     : "frozen");
}

/*
 * Writes the known members of a unix socket: its own members, or those of the socket that its set
 * reported.
 */
static void write_unix(const struct look_on *on, struct jsonw *w)
{
	static const char *const ends[] = {
		[LOOK_END_OPENED] = "opened", [LOOK_END_SERVED] = "served"
	};

	if (!is_set(on) && on->end < ARRAY_SIZE(ends) && ends[on->end])
		jsonw_string(w, "end", ends[on->end]);
	if (on->path[0])
		jsonw_string(w, "path", on->path);
	write_process(on, w);
	if (on->unread)
		jsonw_u64(w, "unread", on->unread);
}

static void write_socket(const struct look_on *on, struct jsonw *w)
{
	static const char *const states[] = {
#define TCP_STATE(number, json) [number] = (json),
#include "shared/abi/tcp_states.def"
#undef TCP_STATE
	};
	bool known = on->state < ARRAY_SIZE(states) && states[on->state];

	write_number(w, "family",
		     on->family == AF_UNIX	? "unix"
		     : on->family == AF_INET	? "inet"
		     : on->family == AF_INET6	? "inet6"
		     : on->family == AF_NETLINK ? "netlink"
						: NULL,
		     on->family);
	if (is_unix(on))
		write_unix(on, w);
	if (!is_internet(on))
		return;
	write_number(w, "protocol",
		     on->protocol == IPPROTO_TCP   ? "tcp"
		     : on->protocol == IPPROTO_UDP ? "udp"
						   : NULL,
		     on->protocol);
	write_address(w, "local", on, on->local, on->local_port);
	write_address(w, "peer", on, on->peer, on->peer_port);
	if (on->protocol == IPPROTO_TCP && known)
		jsonw_string(w, "state", states[on->state]);
	if (on->asked)
		jsonw_u64(w, "longest_ms", on->longest_ns / NSEC_PER_MSEC);
	write_process(on, w);
}

/* Writes the number of descriptors of a set by kind. */
static void write_kinds(const struct look_on *on, struct jsonw *w)
{
	static const char *const names[] = {
#define LOOK_MEMBER(id, json, help) json,
#include "shared/abi/look_members.def"
#undef LOOK_MEMBER
	};

	jsonw_object(w, "kinds");
	for (int i = 0; i < LOOK_MEMBERS_; i++)
		if (on->kinds[i])
			jsonw_u64(w, names[i], on->kinds[i]);
	jsonw_object_end(w);
}

/* Writes the peer that a set waits for. */
static void write_asked(const struct look_on *on, struct jsonw *w)
{
	if (on->family != AF_UNIX)
		write_address(w, "peer", on, on->peer, on->peer_port);
	if (on->protocol == IPPROTO_UDP)
		jsonw_string(w, "protocol", "udp");
	if (on->asked)
		jsonw_u64(w, "asked", on->asked);
	if (on->others)
		jsonw_u64(w, "others", on->others);
	if (knows_since(on))
		jsonw_u64(w, "longest_ms", on->longest_ns / NSEC_PER_MSEC);
}

/* Counts and times are those of the sample that found most. */
static void write_set(const struct look_on *on, struct jsonw *w)
{
	if (wait_objects_is_asked(on))
		write_asked(on, w);
	jsonw_u64(w, "opened", on->sockets);
	if (on->unix_opened)
		jsonw_u64(w, "unix_opened", on->unix_opened);
	write_unix(on, w);
	jsonw_u64(w, "items", on->items);
	write_kinds(on, w);
	if (on->cut)
		jsonw_bool(w, "cut", true);
}

static void write_lock(const struct look_on *on, struct jsonw *w)
{
	static const char *const locks[] = {
		[LOOK_LOCK_EVENT] = "event",   [LOOK_LOCK_MUTEX] = "mutex",
		[LOOK_LOCK_RWLOCK] = "rwlock", [LOOK_LOCK_READERS] = "readers",
		[LOOK_LOCK_FILE] = "file",
	};
	_Static_assert(ARRAY_SIZE(locks) == LOOK_LOCKS_, "a name for each kind of lock");

	if (on->state >= ARRAY_SIZE(locks) || !locks[on->state])
		return;
	jsonw_string(w, "lock", locks[on->state]);
	if (!on->peer_pid)
		return;
	jsonw_object(w, "holder");
	jsonw_u64(w, on->state == LOOK_LOCK_FILE ? "pid" : "tid", on->peer_pid);
	jsonw_string_n(w, "comm", on->peer_comm, strnlen(on->peer_comm, COMM_BYTES));
	jsonw_object_end(w);
}

static void write_members(const struct look_on *on, struct jsonw *w)
{
	switch (on->kind) {
	case LOOK_ON_FILE:
		wait_files_write(on, w);
		if (on->peers && !wait_objects_is_lock(on))
			write_process(on, w);
		break;
	case LOOK_ON_PIPE:
	case LOOK_ON_CHILD:
		wait_numbers_write(on, w);
		write_process(on, w);
		break;
	case LOOK_ON_SOCKET:
		write_socket(on, w);
		break;
	case LOOK_ON_EPOLL:
	case LOOK_ON_POLL:
	case LOOK_ON_SELECT:
		write_set(on, w);
		break;
	default:
		wait_numbers_write(on, w);
	}
}

void wait_objects_write(const struct look_on *on, struct jsonw *w)
{
	static const char *const kinds[] = {
		[LOOK_ON_FILE] = "file",
		[LOOK_ON_PIPE] = "pipe",
		[LOOK_ON_SOCKET] = "socket",
		[LOOK_ON_OTHER] = "other",
		[LOOK_ON_FUTEX] = "futex",
		[LOOK_ON_CHILD] = "child",
		[LOOK_ON_EPOLL] = "epoll",
		[LOOK_ON_POLL] = "poll",
		[LOOK_ON_SELECT] = "select",
		[LOOK_ON_TIMER] = "timer",
		[LOOK_ON_SEMAPHORES] = "semaphores",
		[LOOK_ON_TRACER] = "tracer",
		[LOOK_ON_MMAP_LOCK] = "mmap_lock",
		[LOOK_ON_SENDER] = "sender",
	};
	_Static_assert(ARRAY_SIZE(kinds) == LOOK_ON_COUNT_, "a name for each kind");

	jsonw_object(w, "on");
	jsonw_string(w, "what", kinds[on->kind]);
	write_members(on, w);
	if (may_be_lock(on))
		write_lock(on, w);
	jsonw_object_end(w);
}
