/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/broker/broker_ask.h"

#include <string.h>

#include "consumer/broker/broker_client_wire.h"

static int ask_one(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		   int *ret_fd, const char **ret_why)
{
	struct broker_client_brought caught = {};
	int r = broker_client_ask(link, request, body, bytes, &caught, ret_why);

	if (r == 0)
		*ret_fd = caught.fds[0];
	return r;
}

int broker_ask_sampler(struct broker_client *link, uint32_t cpu, uint32_t hz, uint32_t divisor,
		       int *ret_fd, const char **ret_why)
{
	struct broker_sampler_open body = {
		.cpu = cpu,
		.hz = (uint16_t)hz,
		.divisor = (uint16_t)divisor,
	};

	return ask_one(link, BROKER_SAMPLER_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int broker_ask_pressure(struct broker_client *link, uint64_t cgroup_id, enum resource resource,
			int *ret_fd, const char **ret_why)
{
	struct broker_pressure_open body = { .cgroup_id = cgroup_id, .resource = resource };

	return ask_one(link, BROKER_PRESSURE_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int broker_ask_mapping(struct broker_client *link, const struct process_key *process,
		       uint64_t start, uint64_t end, int *ret_fd, const char **ret_why)
{
	struct broker_mapping_open body = {
		.start_ns = process->start_ns,
		.start = start,
		.end = end,
		.tgid = process->tgid,
	};

	return ask_one(link, BROKER_MAPPING_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int broker_ask_jit_map(struct broker_client *link, const struct process_key *process, int *ret_fd,
		       const char **ret_why)
{
	struct broker_jit_map_open body = { .start_ns = process->start_ns, .tgid = process->tgid };

	return ask_one(link, BROKER_JIT_MAP_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int broker_ask_signal(struct broker_client *link, uint32_t signal, int *fds, size_t *ret_count,
		      const char **ret_why)
{
	struct broker_signal_attach body = { .signal = signal };
	struct broker_client_brought caught = {};
	int r = broker_client_ask(link, BROKER_SIGNAL_ATTACH, &body, sizeof(body), &caught,
				  ret_why);

	if (r < 0)
		return r;
	memcpy(fds, caught.fds, caught.n * sizeof(*fds));
	*ret_count = caught.n;
	return 0;
}
