/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_objects.h: the objects that threads wait on, without duplicates: files, pipes, sockets,
 * futexes, children. Stacks refer to them by number. The main thread fills the table, then the
 * report thread owns it.
 */
#ifndef TROCAR_CONSUMER_SAMPLING_WAIT_OBJECTS_H
#define TROCAR_CONSUMER_SAMPLING_WAIT_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi/abi.h"
#include "shared/tools/idmap.h"

struct jsonw;

#define WAIT_OBJECTS_MAX     4096
#define WAIT_OBJECTS_HOLDERS 4 /* holders of one lock; it is reported without further ones */

/*
 * A socket belongs to a server if its own port is below this and its peer's is not: the first port
 * that Linux gives to clients by default (net.ipv4.ip_local_port_range).
 */
#define WAIT_CLIENT_PORTS 32768

/* All zeros: empty. Release with wait_objects_done. */
struct wait_objects {
	struct look_on *items; /* owned */
	size_t count, space;
	struct idmap by_hash; /* hash -> number */
	struct idmap holders; /* hash of a lock -> its objects with a holder */
	uint64_t left_out; /* samples of objects that did not fit, or with a hash that is taken */
};

void wait_objects_init(struct wait_objects *o);
void wait_objects_done(struct wait_objects *o);

/*
 * Returns `on` without the members that differ between equal objects: descriptor numbers, and ports
 * that a client got by chance, so that a thousand connections of one server to another are one
 * object. An epoll or poll keeps the peer that it waits for, and no counts. All zeros: the awaited
 * object is unknown.
 */
struct look_on wait_objects_plain(const struct look_on *on);

/*
 * Returns the number of the object that `on` (plain) describes, from 1; 0: unknown or dropped. For
 * an epoll or poll, keeps the largest counts.
 */
uint32_t wait_objects_add(struct wait_objects *o, const struct look_on *on);

/*
 * Records that the peer of an epoll, a poll or a connection has owed its answer for longest_ns.
 * `number` may be 0.
 */
void wait_objects_lasts(struct wait_objects *o, uint32_t number, uint64_t longest_ns);

/*
 * Sets *ret_key to the key of the other end of `on`. Returns false if `ends` has none: it is no
 * pipe, connection from here, or file of FUSE.
 */
bool wait_objects_end_key(const struct look_on *on, struct end_key *ret_key);

/* Sets the process at the other end of an object, one of `count`. */
void wait_objects_set_end(struct wait_objects *o, uint32_t number,
			  const struct end_process *process, uint32_t count);

/* Returns the object with this number; NULL for 0. */
const struct look_on *wait_objects_get(const struct wait_objects *o, uint32_t number);

/* Returns whether `on` is an epoll or poll that waits for a peer's answer. */
bool wait_objects_is_asked(const struct look_on *on);

/* As wait_objects_is_asked, or a TCP connection opened from here with a question to its peer. */
bool wait_objects_is_unanswered(const struct look_on *on);

/*
 * Returns whether the process at the other end of `on` is known: of a child, a pipe, a TCP
 * connection or a lock of a file. Of a unix socket only the process that opened it is known, which
 * may have left it to another one.
 */
bool wait_objects_has_process(const struct look_on *on);

/*
 * Returns whether the other end of `on` holds the thread up, whatever it did before: a full pipe,
 * or a process that is halted.
 */
bool wait_objects_is_held_up(const struct look_on *on);

/* Returns whether `on` is a full pipe: the thread waits until the other end reads. */
bool wait_objects_is_full_pipe(const struct look_on *on);

/* Returns whether `on` is an epoll or poll that was judged completely and waits for no answer. */
bool wait_objects_is_idle_set(const struct look_on *on);

/* Returns whether `on` is a lock: a mutex, a rwlock, a lock of a file or of the kernel. */
bool wait_objects_is_lock(const struct look_on *on);

/* Returns whether `on` is a futex that is no lock: a condition variable, a semaphore, ... */
bool wait_objects_is_event(const struct look_on *on);

/*
 * Returns the state (wait_kind.h) of a thread that waits on `on` (NULL: unknown), from its system
 * call in `state`: a thread in an epoll or poll that waits for an answer waits for a socket, and
 * one that waits for a lock of the kernel waits for a lock.
 */
uint8_t wait_objects_state(uint8_t state, const struct look_on *on);

/*
 * Returns whether a thread in `state` (wait_kind.h) that waits on `on` (NULL: unknown) is idle: by
 * the kind of its wait, or because it is a server that waits for a client's next request.
 */
bool wait_objects_is_idle(uint8_t state, const struct look_on *on);

/*
 * Writes the peer that an epoll or poll waits for: "10.0.0.7:8080 (12 connections a thread, the
 * longest for 1900 ms; 3 wait for others)". The counts are the largest of any one thread. Returns
 * the length; 0 if it waits for none.
 */
int wait_objects_say_peer(const struct look_on *on, char *text, size_t space);

/*
 * Writes the object of a thread's wait as the end of a sentence: " on the file NAME", " on tcp to
 * PEER", " on a pipe"; writes nothing if its number would mean nothing to a reader. Returns the
 * length.
 */
int wait_objects_say_object(const struct look_on *on, char *text, size_t space);

/* Writes the object and, of a lock with a known holder, " held by NAME (thread 12)" after it. */
int wait_objects_say(const struct look_on *on, char *text, size_t space);

/* Writes `on`: {...}. */
void wait_objects_write(const struct look_on *on, struct jsonw *w);

#endif
