/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_peer.h: the peer process: counts how many of the received events and links the peer still
 * holds. Only the kernel knows this number: they may be in the peer's descriptor table, in its
 * mappings (a mapped event lives on without a descriptor), and in messages that it has not
 * received. The peer's filter permits neither moving nor sending a descriptor
 * (policy/syscalls.def), so counting messages, then descriptors, then mappings misses nothing that
 * moves between them. The peer can hide one descriptor per thread, by closing it while that thread
 * polls it. Source: fs/proc/fd.c, unix_show_fdinfo in net/unix/af_unix.c, bpf_link_show_fdinfo in
 * kernel/bpf/syscall.c.
 */
#ifndef TROCAR_LOADER_BROKER_BROKER_PEER_H
#define TROCAR_LOADER_BROKER_BROKER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/broker/broker.h"

/*
 * Events beyond two per online CPU: the consumer may open a CPU's new pair of events before it
 * closes the old one.
 */
#define BROKER_EVENTS_MARGIN 4

#define BROKER_CONNECTIONS 2 /* one for the consumer's main loop, one for its file readers */

/* The descriptors that unreceived messages on one connection may hold. */
struct broker_wire {
	int fd;		      /* borrowed; -1: none */
	unsigned int given;   /* events and links sent since the peer had received everything */
	unsigned int foreign; /* descriptors of other kinds in the last message */
};

/* A process's holdings from the broker. */
struct broker_holdings {
	unsigned int events;
	unsigned int links;
	unsigned int own;    /* links to the programs of the request; also counted in `links` */
	unsigned int flying; /* of any kind, in messages that the process has not received */
};

struct broker_peer {
	pid_t pid;  /* 0: no peer */
	int dir_fd; /* /proc/PID, owned; -1: no peer */
	struct broker_wire wires[BROKER_CONNECTIONS];
	struct broker_holdings given; /* all descriptors ever sent to the peer */
	struct broker_holdings held; /* an upper bound: the last count plus the grants since then */
	bool counted;		     /* `held` is the result of a count */
	uint64_t paid_ns;	     /* CLOCK_MONOTONIC: all counts are paid for then */
	uint64_t rest_ns;	     /* the next count must not begin earlier */
};

#define BROKER_PEER_NONE \
	((struct broker_peer){ .dir_fd = -1, .wires = { { .fd = -1 }, { .fd = -1 } } })

/* Opens /proc/PID of the peer. 0; -ESRCH: no such process. */
int broker_peer_open(pid_t pid, struct broker_peer *ret_peer);
void broker_peer_close(struct broker_peer *peer);

/*
 * Counts the peer's holdings; `own` is the number of links to the `n` programs `ids`. Takes longer
 * the more descriptors and mappings the peer has, so call it in a worker. 0; -ESRCH: the peer, or
 * its first thread, has ended; -E2BIG, -EFBIG: the peer has more descriptors or mappings than can
 * be counted.
 */
int broker_peer_count(const struct broker_peer *peer, const uint32_t *ids, unsigned int n,
		      struct broker_holdings *ret_held);

/*
 * Takes the result of a count that began at `began_ns`; `mark` is peer->given at that moment. Adds
 * the grants since then, because the count may have missed them. `held` NULL: the count failed.
 * Sets peer->rest_ns so that counts take at most a quarter of a long time, and at most 25 ms in a
 * row.
 */
void broker_peer_end(struct broker_peer *peer, const struct broker_holdings *mark,
		     const struct broker_holdings *held, uint64_t began_ns, uint64_t now_ns);

/* Returns whether the peer is known to hold fewer than `limit` events. */
bool broker_peer_may_sample(const struct broker_peer *peer, unsigned int limit);

/*
 * Returns whether the peer is known to hold no link to the request's programs, and at most `limit`
 * links after `more` are added. `fresh`: the count was made for this request, so `own` is exact.
 */
bool broker_peer_may_attach(const struct broker_peer *peer, bool fresh, unsigned int more,
			    unsigned int limit);

/*
 * Records an answer to `request` with `count` descriptors. Call it when the answer is sent on the
 * connection `fd`.
 */
void broker_peer_gave(struct broker_peer *peer, int fd, uint32_t request, unsigned int count);

/*
 * Returns the number in the line that begins with `key` ("prog_id:\t") of `text`,
 * /proc/PID/fdinfo/N; 0 without such a line.
 */
uint32_t broker_peer_number(const char *text, const char *key);

/* Returns the number of lines of `text`, /proc/PID/maps, that are mappings of sampling events. */
unsigned int broker_peer_mapped(const char *text);

#endif
