/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_peer.h: the peer process: counts how many of the events and links that it was given it
 * still holds. Only the kernel knows: they may be in the peer's descriptor table, in its mappings
 * (a mapped event lives on without a descriptor), and in messages that it has not received. The
 * peer's filter permits neither moving nor sending a descriptor (policy/syscalls.def), so counting
 * messages, then descriptors, then mappings misses nothing that moves between them. It can hide one
 * descriptor per thread, by closing it while that thread polls it. Source: fs/proc/fd.c,
 * unix_show_fdinfo in net/unix/af_unix.c, bpf_link_show_fdinfo in kernel/bpf/syscall.c.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_PEER_H
#define TROCAR_LOADER_BROKER_BROKER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/broker/broker.h"

/*
 * Events beyond two per online CPU: the consumer may open a CPU's new pair before it closes the old
 * one.
 */
#define BROKER_EVENTS_MARGIN 4

#define BROKER_CONNECTIONS 2 /* one of the consumer's main loop, one of its file readers */

/* What messages on one connection may hold. */
struct broker_wire {
	int fd;		      /* borrowed; -1: none */
	unsigned int given;   /* events and links sent since the peer had received everything */
	unsigned int foreign; /* descriptors of other kinds in the last message */
};

/* A process's holdings from the broker. */
struct broker_holdings {
	unsigned int events;
	unsigned int links;
	unsigned int own;    /* of the links, those to the request's own programs */
	unsigned int flying; /* of any kind, in messages that it has not received */
};

struct broker_peer {
	pid_t pid;  /* 0: nobody */
	int dir_fd; /* /proc/PID, owned; -1: nobody */
	struct broker_wire wires[BROKER_CONNECTIONS];
	struct broker_holdings given; /* everything that was ever given */
	struct broker_holdings held;  /* an upper bound: the last count, and the grants since */
	bool counted;		      /* `held` is the result of a count */
	uint64_t paid_ns;	      /* when all counts are paid for, CLOCK_MONOTONIC */
	uint64_t rest_ns;	      /* the next count must not begin before */
};

#define BROKER_PEER_NONE \
	((struct broker_peer){ .dir_fd = -1, .wires = { { .fd = -1 }, { .fd = -1 } } })

/* Opens /proc/PID of the peer. 0; -ESRCH: it is not there. */
int broker_peer_open(pid_t pid, struct broker_peer *ret_peer);
void broker_peer_close(struct broker_peer *peer);

/*
 * Counts the peer's holdings; `own` is the number of links to the `n` programs `ids`. Takes longer
 * the more descriptors and mappings the peer has: call it in a worker. 0; -ESRCH: the peer, or its
 * first thread, has ended; -E2BIG, -EFBIG: it has more than can be counted.
 */
int broker_peer_count(const struct broker_peer *peer, const uint32_t *ids, unsigned int n,
		      struct broker_holdings *ret_held);

/*
 * Takes the result of a count that began at `began_ns`; `mark` is peer->given of that moment. Adds
 * the grants of that time, which the count may have missed. `held` NULL: the count failed. Sets
 * peer->rest_ns: of a long time counts take a quarter, and 25 ms in a row.
 */
void broker_peer_end(struct broker_peer *peer, const struct broker_holdings *mark,
		     const struct broker_holdings *held, uint64_t began_ns, uint64_t now_ns);

/* Returns whether the peer surely holds fewer than `limit` events. */
bool broker_peer_may_sample(const struct broker_peer *peer, unsigned int limit);

/*
 * Returns whether the peer surely holds no link to the request's programs, and with `more` links at
 * most `limit` in all. `fresh`: it was counted for this request, so `own` is exact.
 */
bool broker_peer_may_attach(const struct broker_peer *peer, bool fresh, unsigned int more,
			    unsigned int limit);

/* Call when an answer to `request` with `count` descriptors goes out on the connection `fd`. */
void broker_peer_gave(struct broker_peer *peer, int fd, uint32_t request, unsigned int count);

/*
 * Returns the number in the line that begins with `key` ("prog_id:\t") of `text`,
 * /proc/PID/fdinfo/N; 0 without such a line.
 */
uint32_t broker_peer_number(const char *text, const char *key);

/* Returns the number of lines of `text`, /proc/PID/maps, that are mappings of sampling events. */
unsigned int broker_peer_mapped(const char *text);

#endif
