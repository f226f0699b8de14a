/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.h: the consumer's side of the broker: one function per request that reads like a plain call.
 * Connects at the first request, again after the broker has left (it leaves when idle), and goes on
 * without it: then every call fails at once, and the broker is tried again after LINK_RETRY_NS. Any
 * thread may call; one request at a time. A call waits at most LINK_WAIT_MS for its answer.
 */
#ifndef TROCAR_CONSUMER_LINK_H
#define TROCAR_CONSUMER_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/abi.h"
#include "shared/broker.h"
#include "shared/rules.h"

#define LINK_WAIT_MS 1000
/* Below the 5 s between two drains, so that each drain that finds something missing asks. */
#define LINK_RETRY_NS (4ULL * 1000000000)

struct link;

/* What became of requests, for `trocar status`. */
struct link_counts {
	uint64_t granted[BROKER_COUNT_];
	uint64_t refused[REFUSAL_COUNT_]; /* as answered to us; the broker's own counts are in its
					     pin */
	uint64_t unreachable;		  /* requests that found no broker, or no answer in time */
};

/* `path` of the socket (copied); "" for none, then every call is -ENOTCONN. Opens nothing yet. 0,
 * -ENOMEM or -ENAMETOOLONG (longer than a Unix address). */
int link_new(const char *path, struct link **ret_link);
void link_free(struct link *link);

/* Connects and says hello where that is not done yet: 0, or -ENOTCONN with the reason. */
int link_greet(struct link *link, const char **ret_why);

/*
 * Each: 0 and a descriptor that the caller owns, close-on-exec; -ENOTCONN without a broker (not
 * there, not in time, or of another version); else refused: -EACCES for a rule of the broker, or
 * the kernel's own error, with the sentence in *ret_why (static; may be NULL).
 */
int link_sampler_open(struct link *link, uint32_t cpu, uint32_t hz, uint32_t divisor, int *ret_fd,
		      const char **ret_why);
int link_pressure_open(struct link *link, uint64_t cgroup_id, enum resource resource, int *ret_fd,
		       const char **ret_why);
int link_mapping_open(struct link *link, const struct process_key *process, uint64_t start,
		      uint64_t end, int *ret_fd, const char **ret_why);
int link_jit_map_open(struct link *link, const struct process_key *process, int *ret_fd,
		      const char **ret_why);

/* As above; *ret_count descriptors in fds[BROKER_DESCRIPTORS_MAX], one per row of probes.def of
 * that signal. */
int link_signal_attach(struct link *link, uint32_t signal, int *fds, size_t *ret_count,
		       const char **ret_why);

/* True while the last request found a broker, or none was made yet; else *ret_why says what was
 * wrong. */
bool link_there(struct link *link, const char **ret_why);

void link_counts(struct link *link, struct link_counts *ret_counts);

#endif
