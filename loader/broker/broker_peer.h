/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_peer.h: who asks, and how much of what it was given it still holds. The kernel alone knows
 * that: in the process's table of descriptors, in its mappings (an event that is mapped lives on
 * without a descriptor), and in messages that it has not received yet. Its filter lets it neither
 * move nor send a descriptor (policy/syscalls.def), so that nothing passes from where has been
 * looked to where has not: messages first, then descriptors, then mappings. What it may still keep
 * from sight is one descriptor for each of its threads, which sits in poll(2) on it meanwhile.
 * Source: fs/proc/fd.c, unix_show_fdinfo in net/unix/af_unix.c, bpf_link_show_fdinfo in
 * kernel/bpf/syscall.c.
 */
#ifndef TROCAR_LOADER_BROKER_PEER_H
#define TROCAR_LOADER_BROKER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/broker.h"

/* Two events per CPU that is online, and these: a CPU's pair may be replaced before it is closed.
 */
#define BROKER_EVENTS_MARGIN 4

#define BROKER_CONNECTIONS 2 /* the consumer's main loop has one, who reads files the other */

/* One connection, as far as messages on it may hold something. */
struct broker_wire {
	int fd;		      /* borrowed; -1: none */
	unsigned int given;   /* events and links that were sent since all was received */
	unsigned int foreign; /* descriptors of other kinds in the last message */
};

/* What a process holds of ours. */
struct broker_holdings {
	unsigned int events;
	unsigned int links;
	unsigned int own;    /* of the links, those to programs that were asked for */
	unsigned int flying; /* of any kind, in messages that were not received */
};

struct broker_peer {
	pid_t pid;  /* 0: nobody */
	int dir_fd; /* /proc/PID, owned; -1: nobody */
	struct broker_wire wires[BROKER_CONNECTIONS];
	struct broker_holdings given; /* all that was, ever */
	struct broker_holdings held;  /* at most: the last count, and what was given since */
	bool counted;		      /* once at least, so that `held` says something */
	uint64_t rest_ns;	      /* no other count before, CLOCK_MONOTONIC */
};

#define BROKER_PEER_NONE \
	((struct broker_peer){ .dir_fd = -1, .wires = { { .fd = -1 }, { .fd = -1 } } })

/* Looks at the process `pid`. 0; -ESRCH: it is not there. */
int broker_peer_open(pid_t pid, struct broker_peer *ret_peer);
void broker_peer_close(struct broker_peer *peer);

/*
 * Counts what it holds; `own` is of links to the `n` programs `ids`. Takes the longer the more
 * descriptors and mappings it has, and is for a process of its own. 0; -ESRCH: it has ended, or its
 * first thread, which its /proc directory shows; -E2BIG, -EFBIG: more than can be looked through.
 */
int broker_peer_count(const struct broker_peer *peer, const uint32_t *ids, unsigned int n,
		      struct broker_holdings *ret_held);

/*
 * When a count has ended that began at `began_ns`, when `mark` had been given (peer->given of
 * then): what was given meanwhile may not be in `held`. NULL: it has failed. The next one is not to
 * begin before peer->rest_ns: three times as long as this took.
 */
void broker_peer_end(struct broker_peer *peer, const struct broker_holdings *mark,
		     const struct broker_holdings *held, uint64_t began_ns, uint64_t now_ns);

/* Is it known to hold less than `limit` events? */
bool broker_peer_may_sample(const struct broker_peer *peer, unsigned int limit);

/*
 * Is it known to hold no link to what is asked for, and `more` are at most `limit` in all? `fresh`:
 * just now it was counted for this request, so that `own` tells.
 */
bool broker_peer_may_attach(const struct broker_peer *peer, bool fresh, unsigned int more,
			    unsigned int limit);

/* An answer to `request` with so many descriptors goes out on the connection `fd`. */
void broker_peer_gave(struct broker_peer *peer, int fd, uint32_t request, unsigned int count);

/* The number in the line of `text`, of /proc/PID/fdinfo/N, that begins with `key` ("prog_id:\t"); 0
 * when there is none. */
uint32_t broker_peer_number(const char *text, const char *key);

/* How many of the lines of `text`, of /proc/PID/maps, are mappings of sampling events. */
unsigned int broker_peer_mapped(const char *text);

#endif
