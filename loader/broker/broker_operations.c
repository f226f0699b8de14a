/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The effect of each request, and why it is safe for a client without any privilege.
 *
 * The broker answers only the consumer's user (SO_PEERCRED). An attacker may control the consumer,
 * and with it every argument and the content of the maps that the consumer writes (`watches`,
 * `targets`). The checks against these maps catch mistakes; they stop no attacker. The defence is
 * that each operation grants very little.
 *
 * sampler_open grants a perf event on one CPU that runs only our own verified program: root owns
 * the pin, and the event has no sample type, no registers, no addresses. The program writes only
 * for watches, which the consumer may set anyway. The broker sets the rate, at most the rate of the
 * load; the consumer's filter lets it enable and disable the event, not change its rate. At most
 * two events per CPU plus BROKER_EVENTS_MARGIN: broker_peer.c counts the consumer's holdings.
 *
 * signal_attach grants links to our pinned programs of a signal in probes.def, and refuses while
 * the consumer still holds one of them.
 *
 * pressure_open grants cpu.pressure, memory.pressure or io.pressure of a cgroup, by the kernel's
 * handle below the cgroup2 mount: the request has no path and reaches no other file. All users may
 * read these files, and only triggers can be written to them. The broker adds one right: files
 * opened with CAP_SYS_RESOURCE accept windows below 2 s.
 *
 * mapping_open grants a file that a process has mapped, read-only, if it begins with the header of
 * an ELF program or library (broker_process.c). It resolves only the kernel's link to the mapping,
 * no path of the caller. It opens the file only after an O_PATH descriptor has shown that it is a
 * regular file, because opening a device or a pipe has effects. It refuses set-user-id and
 * set-group-id files, and files of file systems that a process may serve (broker_mount.c). So it
 * grants the content of programs and libraries, even of those that the consumer's user may not read
 * (docs/threats.md).
 *
 * jit_map_open grants one file, with a path made from the kernel's own numbers: /tmp/perf-PID.map
 * below the root of a process. It opens each component with O_PATH, follows no symbolic link, and
 * checks each mount before it looks up a name in it. The file must be a regular file of the
 * process's own user with one name, on the mount of its folder. So no link in /tmp and no bind
 * mount leads to another file. The content is text that the process wrote for profilers. Its size
 * is not limited here: the consumer reads only the end of it.
 *
 * No operation writes, creates, removes or executes a file. Each request has a fixed length, and
 * none makes the broker keep memory. Every descriptor is close-on-exec, and is sent in the answer
 * or closed. The two operations that open foreign files run in worker processes (broker_worker.h):
 * a file system that never answers blocks only that process.
 */
#include "loader/broker/broker_operations.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/broker/broker_pressure.h"
#include "loader/broker/broker_process.h"
#include "loader/broker/broker_scope.h"
#include "shared/files/cgroupfs.h"
#include "shared/rules/rules.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/cpus.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"

#define HZ_MAX 999 /* as --hz of the loader */

static void grant_fd(struct broker_result *result, int fd)
{
	result->fds[result->count++] = fd;
}

/* Refuses with the kernel's error, or GONE if the object no longer exists. */
static void refuse_error(struct broker_result *result, int error)
{
	bool gone = error == -ESTALE || error == -ENODEV || error == -ESRCH;

	result->refusal = gone ? REFUSAL_GONE : REFUSAL_KERNEL;
	result->error = error;
}

/* ---- hello: the currently loaded set */

static bool check_hello(const void *body)
{
	const struct broker_hello *b = body;

	return b->pad == 0;
}

/* Adds the counts made before the pin was mapped to the pin, and counts in the pin from now on. */
static void adopt_counts(struct broker_dispatch *d, struct broker_counts *counts)
{
	counts->starts += d->own.starts;
	for (size_t i = 0; i < ARRAY_SIZE(counts->granted); i++)
		counts->granted[i] += d->own.granted[i];
	for (size_t i = 0; i < ARRAY_SIZE(counts->refused); i++)
		counts->refused[i] += d->own.refused[i];
	d->own = (struct broker_counts){ 0 };
	d->counts = counts;
}

/* Opens the currently pinned set: another load may have replaced the last one. */
static int reopen_tables(struct broker_operations *o)
{
	int r;

	o->dispatch->counts = &o->dispatch->own;
	broker_tables_close(&o->tables);
	r = broker_tables_open(o->bpf_dir, &o->tables);
	o->loaded = r == 0;
	if (r == 0)
		adopt_counts(o->dispatch, o->tables.counts);
	return r;
}

static void run_hello(void *context, const void *body, struct broker_result *result)
{
	const struct broker_hello *b = body;
	int r;

	if (b->abi_version != ABI_VERSION) {
		result->refusal = REFUSAL_VERSION;
		return;
	}
	r = reopen_tables(context);
	if (r == -EPROTO)
		result->refusal = REFUSAL_VERSION;
	else if (r < 0)
		refuse_error(result, r);
}

/* ---- sampler_open */

static bool check_sampler(const void *body)
{
	const struct broker_sampler_open *b = body;

	return b->cpu < CPUS_MAX && b->hz >= 1 && b->hz <= HZ_MAX && b->divisor >= 1 &&
	       b->divisor <= DIVISOR_MAX;
}

/* Returns two per online CPU plus BROKER_EVENTS_MARGIN; 0 if the CPUs cannot be read. */
static unsigned int count_allowed_events(void)
{
	_cleanup_free_ uint32_t *cpus = NULL;
	size_t n = 0;

	return cpus_online(&cpus, &n) < 0 ? 0 : 2 * (unsigned int)n + BROKER_EVENTS_MARGIN;
}

/*
 * Counts the peer's holdings into the result. Refuses with GONE if the peer has ended; other errors
 * leave `counted` false.
 */
static void count_held(struct broker_operations *o, const uint32_t *ids, unsigned int n,
		       struct broker_result *result)
{
	int r = broker_peer_count(o->peer, ids, n, &result->held);

	result->counted = r == 0;
	result->error = r;
	if (r == -ESRCH)
		result->refusal = REFUSAL_GONE;
}

/* Returns whether to count: only if the known upper bound does not allow one more event. */
static bool needs_event_count(void *context, const void *body)
{
	const struct broker_operations *o = context;

	return !broker_peer_may_sample(o->peer, count_allowed_events());
}

static void count_events(void *context, const void *body, struct broker_result *result)
{
	count_held(context, NULL, 0, result);
}

/*
 * Opens the event with the program set by ioctl, not by a bpf_link: a link owns the event, and the
 * consumer could not enable and disable it. The event holds the program, so one descriptor is
 * enough. The period of CPU_CLOCK is in nanoseconds (perf_swevent_init_hrtimer in
 * kernel/events/core.c); whole nanoseconds, as in sample weights.
 */
static void open_sampler(void *context, const void *body, struct broker_result *result)
{
	const struct broker_operations *o = context;
	const struct broker_sampler_open *b = body;
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NSEC_PER_SEC / b->hz * b->divisor,
		.disabled = 1,
	};
	_cleanup_close_ int fd = -1;

	if (b->hz > o->tables.hz)
		result->refusal = REFUSAL_ARGUMENT;
	else if (!broker_peer_may_sample(o->peer, count_allowed_events()))
		result->refusal = REFUSAL_EVENTS;
	if (result->refusal != REFUSAL_NONE)
		return;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)b->cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, o->tables.sampler_fd) < 0)
		refuse_error(result, -errno);
	else
		grant_fd(result, TAKE_FD(fd));
}

/* ---- signal_attach */

static bool check_signal(const void *body)
{
	const struct broker_signal_attach *b = body;

	return b->signal < SIGNAL_COUNT_ && b->pad == 0;
}

static void close_granted(struct broker_result *result)
{
	while (result->count > 0)
		close(result->fds[--result->count]);
}

/* Lists the ids of the signal's programs; none for sampling, which is granted by sampler_open. */
static unsigned int list_programs(const struct broker_tables *tables, uint32_t signal,
				  uint32_t ids[BROKER_DESCRIPTORS_MAX])
{
	unsigned int n = 0;

	for (size_t i = 0; i < tables->n_probes; i++)
		if (tables->probes[i].signal == signal)
			ids[n++] = tables->probes[i].id;
	return n;
}

/* Returns true: the links are always counted, because sessions are rare. */
static bool needs_link_count(void *context, const void *body)
{
	const struct broker_operations *o = context;
	const struct broker_signal_attach *b = body;
	uint32_t ids[BROKER_DESCRIPTORS_MAX];

	return list_programs(&o->tables, b->signal, ids) > 0;
}

static void count_links(void *context, const void *body, struct broker_result *result)
{
	struct broker_operations *o = context;
	const struct broker_signal_attach *b = body;
	uint32_t ids[BROKER_DESCRIPTORS_MAX];
	unsigned int n = list_programs(&o->tables, b->signal, ids);

	count_held(o, ids, n, result);
}

/* Attaches all of the signal's programs or none. */
static void attach_programs(const struct broker_tables *tables, uint32_t signal,
			    struct broker_result *result)
{
	for (size_t i = 0; i < tables->n_probes; i++) {
		int fd;

		if (tables->probes[i].signal != signal)
			continue;
		fd = bpf_raw_tracepoint_open(NULL, tables->probes[i].fd);
		if (fd < 0) {
			refuse_error(result, -errno);
			close_granted(result);
			return;
		}
		grant_fd(result, fd);
	}
}

static void attach_signal(void *context, const void *body, struct broker_result *result)
{
	const struct broker_operations *o = context;
	const struct broker_signal_attach *b = body;
	uint32_t ids[BROKER_DESCRIPTORS_MAX];
	unsigned int n = list_programs(&o->tables, b->signal, ids);

	if (!n)
		result->refusal = REFUSAL_ARGUMENT;
	else if (!broker_peer_may_attach(o->peer, result->counted, n,
					 (unsigned int)o->tables.n_probes))
		result->refusal = REFUSAL_ATTACHED;
	else
		attach_programs(&o->tables, b->signal, result);
}

/* ---- pressure_open */

static bool check_pressure(const void *body)
{
	const struct broker_pressure_open *b = body;

	return b->resource < RESOURCE_COUNT_ && b->pad == 0;
}

static void open_pressure(void *context, const void *body, struct broker_result *result)
{
	const struct broker_operations *o = context;
	const struct broker_pressure_open *b = body;
	int fd;

	if (!broker_tables_has(o->tables.watches_fd, &b->cgroup_id)) {
		result->refusal = REFUSAL_UNWATCHED;
		return;
	}
	if (!broker_scope_holds_id(o->tables.scope_fd, o->cgroup_fd, o->root_id, b->cgroup_id)) {
		result->refusal = REFUSAL_SCOPE;
		return;
	}
	fd = o->cgroup_fd < 0
		     ? -ENOTSUP
		     : broker_pressure_open(o->cgroup_fd, o->root_id, b->cgroup_id, b->resource);
	if (fd < 0)
		refuse_error(result, fd);
	else
		grant_fd(result, fd);
}

/* ---- mapping_open */

static bool check_mapping(const void *body)
{
	const struct broker_mapping_open *b = body;

	return b->tgid >= 1 && b->tgid <= INT_MAX && b->start < b->end && b->pad == 0;
}

/*
 * Returns whether the process is in `targets` (from events, ticks, iterators) or a watched cgroup.
 */
static bool is_known(const struct broker_operations *o, const struct process_key *key,
		     int process_fd)
{
	uint64_t cgroup_id;

	if (broker_tables_has(o->tables.targets_fd, key))
		return true;
	return o->cgroup_fd >= 0 &&
	       broker_process_cgroup(process_fd, o->cgroup_fd, &cgroup_id) == 0 &&
	       broker_tables_has(o->tables.watches_fd, &cgroup_id);
}

static bool is_in_scope(const struct broker_operations *o, int process_fd)
{
	uint64_t id;

	return o->tables.scope_fd < 0 ||
	       (broker_process_cgroup(process_fd, o->cgroup_fd, &id) == 0 &&
		broker_scope_holds_id(o->tables.scope_fd, o->cgroup_fd, o->root_id, id));
}

/*
 * Opens /proc/PID of a known process. The descriptor stays bound to this process: after the end of
 * the process nothing can be opened below it, and a new process with the same number has another
 * directory. So the check of the caller's start time has no race; grant_checked repeats it.
 */
static int open_known(const struct broker_operations *o, const struct process_key *key,
		      struct broker_result *result)
{
	_cleanup_close_ int process_fd = broker_process_open(key->tgid);

	if (process_fd < 0) {
		refuse_error(result, process_fd);
		return -1;
	}
	result->refusal = broker_process_is(process_fd, key->start_ns, &result->error);
	if (result->refusal == REFUSAL_NONE && !is_in_scope(o, process_fd))
		result->refusal = REFUSAL_SCOPE;
	if (result->refusal == REFUSAL_NONE && !is_known(o, key, process_fd))
		result->refusal = REFUSAL_UNKNOWN_PROCESS;
	return result->refusal == REFUSAL_NONE ? TAKE_FD(process_fd) : -1;
}

/* Grants `fd`, unless `r` or the refusal forbids it, or the process has ended in the meantime. */
static void grant_checked(int process_fd, const struct process_key *key, int r, int *fd,
			  struct broker_result *result)
{
	if (r < 0) {
		refuse_error(result, r);
		return;
	}
	if (result->refusal == REFUSAL_NONE)
		result->refusal = broker_process_is(process_fd, key->start_ns, &result->error);
	if (result->refusal == REFUSAL_NONE)
		grant_fd(result, TAKE_FD(*fd));
}

static void open_mapping(void *context, const void *body, struct broker_result *result)
{
	const struct broker_mapping_open *b = body;
	const struct process_key key = { .tgid = b->tgid, .start_ns = b->start_ns };
	_cleanup_close_ int process_fd = open_known(context, &key, result), fd = -1;
	int r;

	/* From here on a file system may block this worker, with its open files. */
	broker_operations_done(context);
	if (process_fd < 0)
		return;
	r = broker_process_mapping(process_fd, b->start, b->end, &fd, &result->refusal);
	grant_checked(process_fd, &key, r, &fd, result);
}

/* ---- jit_map_open */

static bool check_jit_map(const void *body)
{
	const struct broker_jit_map_open *b = body;

	return b->tgid >= 1 && b->tgid <= INT_MAX && b->pad == 0;
}

static void open_jit_map(void *context, const void *body, struct broker_result *result)
{
	const struct broker_jit_map_open *b = body;
	const struct process_key key = { .tgid = b->tgid, .start_ns = b->start_ns };
	_cleanup_close_ int process_fd = open_known(context, &key, result), fd = -1;
	int r;

	broker_operations_done(context); /* as in mapping_open */
	if (process_fd < 0)
		return;
	r = broker_process_jit_map(process_fd, &fd, &result->refusal);
	grant_checked(process_fd, &key, r, &fd, result);
}

static bool is_apart(void *context, const void *body)
{
	return true;
}

const struct broker_operation broker_operations_table[BROKER_COUNT_] = {
	[BROKER_HELLO] = { check_hello, .run = run_hello },
	[BROKER_SAMPLER_OPEN] = { check_sampler, needs_event_count, count_events, open_sampler },
	[BROKER_SIGNAL_ATTACH] = { check_signal, needs_link_count, count_links, attach_signal },
	[BROKER_PRESSURE_OPEN] = { check_pressure, .run = open_pressure },
	[BROKER_MAPPING_OPEN] = { check_mapping, is_apart, open_mapping },
	[BROKER_JIT_MAP_OPEN] = { check_jit_map, is_apart, open_jit_map },
};

void broker_operations_init(const char *bpf_dir, struct broker_peer *peer,
			    struct broker_operations *ret_operations)
{
	*ret_operations = (struct broker_operations){
		.bpf_dir = bpf_dir,
		.peer = peer,
		.tables = BROKER_TABLES_NONE,
		.cgroup_fd = -1,
	};
}

static int find_cgroups(struct broker_operations *o)
{
	_cleanup_close_ int fd = -1;
	enum cgroup_mode mode;
	char path[PATH_MAX];
	struct stat st;
	int r;

	r = cgroupfs_find_here(path, sizeof(path), &mode);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	o->root_id = st.st_ino;
	o->cgroup_fd = TAKE_FD(fd);
	return 0;
}

void broker_operations_start(struct broker_operations *o, struct broker_dispatch *dispatch)
{
	int r;

	o->dispatch = dispatch;
	dispatch->own.starts = 1;
	r = find_cgroups(o);
	if (r < 0)
		log_warning("broker: no cgroup2 mount (%s), continuing without pressure files",
			    strerror(-r));
	r = reopen_tables(o);
	if (r < 0)
		log_warning("broker: %s: %s, continuing; hello checks again", o->bpf_dir,
			    r == -ENOENT   ? "nothing is loaded"
			    : r == -EPROTO ? "loaded by another version"
					   : strerror(-r));
}

void broker_operations_done(struct broker_operations *o)
{
	broker_tables_close(&o->tables);
	cleanup_close(&o->cgroup_fd);
}
