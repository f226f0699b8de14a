/* SPDX-License-Identifier: BSD-2-Clause */
/* broker_ask.h: one function for each request to the broker. */
#ifndef TROCAR_CONSUMER_BROKER_BROKER_ASK_H
#define TROCAR_CONSUMER_BROKER_BROKER_ASK_H

#include <stddef.h>
#include <stdint.h>

#include "consumer/broker/broker_client.h"
#include "shared/abi/abi.h"
#include "shared/rules/rules.h"

/*
 * Each makes its request. Returns 0 with a descriptor that the caller owns, close-on-exec;
 * -ENOTCONN without a broker (not running, too late, or of another version). If the broker refuses:
 * -EACCES for a rule of the broker, or the kernel's own error. On failure *ret_why is the reason as
 * a sentence (static; `ret_why` may be NULL).
 */
int broker_ask_sampler(struct broker_client *link, uint32_t cpu, uint32_t hz, uint32_t divisor,
		       int *ret_fd, const char **ret_why);
int broker_ask_pressure(struct broker_client *link, uint64_t cgroup_id, enum resource resource,
			int *ret_fd, const char **ret_why);
int broker_ask_mapping(struct broker_client *link, const struct process_key *process,
		       uint64_t start, uint64_t end, int *ret_fd, const char **ret_why);
int broker_ask_jit_map(struct broker_client *link, const struct process_key *process, int *ret_fd,
		       const char **ret_why);

/*
 * Asks for the programs of a signal; errors as for the requests above. Writes *ret_count
 * descriptors to fds[BROKER_DESCRIPTORS_MAX], one per row of probes.def of that signal.
 */
int broker_ask_signal(struct broker_client *link, uint32_t signal, int *fds, size_t *ret_count,
		      const char **ret_why);

#endif
