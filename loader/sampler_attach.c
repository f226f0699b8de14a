/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/sampler_attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/cpus.h"

void sampler_attach_done(struct samplers *samplers)
{
	for (size_t i = 0; i < samplers->count; i++)
		cleanup_close(&samplers->items[i].link_fd);
	free(samplers->items);
	*samplers = (struct samplers){ 0 };
}

static int open_event(uint32_t cpu, uint64_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = hz,
		.freq = 1,
		.disabled = 1,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* The link holds the event; the event's own descriptor is closed once it is enabled. */
static int attach_event(int prog_fd, uint32_t cpu, uint64_t hz, int *ret_link_fd)
{
	_cleanup_close_ int event_fd = -1;
	_cleanup_close_ int link_fd = -1;

	event_fd = open_event(cpu, hz);
	if (event_fd < 0)
		return event_fd;
	link_fd = bpf_link_create(prog_fd, event_fd, BPF_PERF_EVENT, NULL);
	if (link_fd < 0)
		return -errno;
	if (ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
		return -errno;
	*ret_link_fd = TAKE_FD(link_fd);
	return 0;
}

int sampler_attach_all(int prog_fd, uint64_t hz, struct samplers *ret_samplers, uint32_t *ret_cpu)
{
	struct samplers set __attribute__((cleanup(sampler_attach_done))) = { 0 };
	_cleanup_free_ uint32_t *cpus = NULL;
	size_t n;
	int r;

	*ret_cpu = 0;
	r = cpus_online(&cpus, &n);
	if (r < 0)
		return r;
	set.items = calloc(n, sizeof(*set.items));
	if (!set.items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct sampler *s = &set.items[set.count];

		r = attach_event(prog_fd, cpus[i], hz, &s->link_fd);
		if (r == -ENODEV) /* went offline after the list was read */
			continue;
		if (r < 0) {
			*ret_cpu = cpus[i];
			return r;
		}
		s->cpu = cpus[i];
		set.count++;
	}
	*ret_samplers = set;
	set = (struct samplers){ 0 };
	return 0;
}
