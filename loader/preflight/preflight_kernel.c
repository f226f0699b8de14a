/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/preflight/preflight_internal.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

static int call_bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* ---- BPF */

static int create_map(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = key_bytes,
		.value_size = value_bytes,
		.max_entries = entries,
	};

	return call_bpf(BPF_MAP_CREATE, &attr);
}

/*
 * Loads "r0 = 0; exit", which every program type accepts. Returns the descriptor, or -1 with errno.
 */
static int load_program(uint32_t type, uint32_t attach_type, uint32_t btf_id)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = type,
		.expected_attach_type = attach_type,
		.attach_btf_id = btf_id,
		.insns = (uint64_t)(uintptr_t)code,
		.insn_cnt = ARRAY_SIZE(code),
		.license = (uint64_t)(uintptr_t) "Dual BSD/GPL",
	};

	return call_bpf(BPF_PROG_LOAD, &attr);
}

static int probe_btf(struct preflight_probes *p, const struct preflight_probe *probe,
		     struct preflight_row *row)
{
	int r = preflight_btf_load(p->btf);

	if (r == 0)
		PREFLIGHT_ROW_SAY(row, "%s, %u KiB", PREFLIGHT_BTF_PATH,
				  preflight_btf_bytes(p->btf) / 1024);
	return -r;
}

static int probe_bpf_map(struct preflight_probes *p, const struct preflight_probe *probe,
			 struct preflight_row *row)
{
	_cleanup_close_ int fd = create_map(BPF_MAP_TYPE_ARRAY, 4, 4, 1);

	return fd < 0 ? errno : 0;
}

static int probe_ring_buffer(struct preflight_probes *p, const struct preflight_probe *probe,
			     struct preflight_row *row)
{
	_cleanup_close_ int fd =
		create_map(BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)sysconf(_SC_PAGESIZE));

	return fd < 0 ? errno : 0;
}

/*
 * Probes a map of task storage, which must have BTF for key and value. A kernel without it answers
 * EINVAL.
 */
static int probe_task_storage(struct preflight_probes *p, const struct preflight_probe *probe,
			      struct preflight_row *row)
{
	static const struct {
		struct btf_header header;
		uint32_t types[4];
		char strings[5];
	} text = {
		.header = { .magic = BTF_MAGIC,
			    .version = 1,
			    .hdr_len = sizeof(struct btf_header),
			    .type_len = 16,
			    .str_off = 16,
			    .str_len = 5 },
		.types = { 1, BTF_KIND_INT << 24, 4, BTF_INT_SIGNED << 24 | 32 },
		.strings = "\0int",
	};
	union bpf_attr load = { .btf = (uint64_t)(uintptr_t)&text, .btf_size = 24 + 16 + 5 };
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_TASK_STORAGE,
		.key_size = 4,
		.value_size = 4,
		.map_flags = BPF_F_NO_PREALLOC,
		.btf_key_type_id = 1,
		.btf_value_type_id = 1,
	};
	_cleanup_close_ int btf_fd = -1;
	_cleanup_close_ int fd = -1;

	btf_fd = call_bpf(BPF_BTF_LOAD, &load);
	if (btf_fd < 0)
		return errno;
	attr.btf_fd = (uint32_t)btf_fd;
	fd = call_bpf(BPF_MAP_CREATE, &attr);
	return fd < 0 ? errno : 0;
}

/* ---- bpffs: an unmounted one that ends with its descriptor */

static int probe_bpffs(struct preflight_probes *p, const struct preflight_probe *probe,
		       struct preflight_row *row)
{
	_cleanup_close_ int fs = -1;

	fs = (int)syscall(SYS_fsopen, "bpf", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return errno;
	p->bpffs_fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	return p->bpffs_fd < 0 ? errno : 0;
}

/* ---- perf */

static int probe_perf_event(struct preflight_probes *p, const struct preflight_probe *probe,
			    struct preflight_row *row)
{
	struct perf_event_attr event = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(event),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 97,
		.freq = 1,
		.disabled = 1,
	};
	_cleanup_close_ int fd = -1;
	union bpf_attr link = { 0 };

	fd = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return errno;
	p->prog_fd = load_program(BPF_PROG_TYPE_PERF_EVENT, 0, 0);
	if (p->prog_fd < 0)
		return errno;
	link.link_create.prog_fd = (uint32_t)p->prog_fd;
	link.link_create.target_fd = (uint32_t)fd;
	link.link_create.attach_type = BPF_PERF_EVENT;
	p->perf_link_fd = call_bpf(BPF_LINK_CREATE, &link);
	if (p->perf_link_fd < 0)
		return errno;
	PREFLIGHT_ROW_SAY(row, "CPU clock event with a program on CPU 0");
	return 0;
}

static int probe_perf_link_pin(struct preflight_probes *p, const struct preflight_probe *probe,
			       struct preflight_row *row)
{
	char path[64];
	union bpf_attr attr = { 0 };

	if (p->perf_link_fd < 0 || p->bpffs_fd < 0) {
		row->state = PREFLIGHT_UNKNOWN;
		PREFLIGHT_ROW_SAY(row, "unknown: the check needs perf_event and bpffs");
		return PREFLIGHT_TOLD;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d/probe", p->bpffs_fd);
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.bpf_fd = (uint32_t)p->perf_link_fd;
	return call_bpf(BPF_OBJ_PIN, &attr) < 0 ? errno : 0;
}

/* ---- programs that attach by BTF */

/* Loads the program of load_program for the BTF type of that name. Returns 0 or the errno. */
static int load_by_btf(struct preflight_probes *p, uint32_t kind, const char *name,
		       uint32_t attach_type)
{
	_cleanup_close_ int fd = -1;
	int id;

	id = preflight_btf_find(p->btf, kind, name);
	if (id < 0)
		return -id;
	fd = load_program(BPF_PROG_TYPE_TRACING, attach_type, (uint32_t)id);
	return fd < 0 ? errno : 0;
}

static int probe_tp_btf(struct preflight_probes *p, const struct preflight_probe *probe,
			struct preflight_row *row)
{
	static const char *const points[] = {
		"sched_process_exec",
		"sched_process_fork",
		"sched_process_exit",
		"task_rename",
		"cgroup_mkdir",
		"cgroup_rmdir",
		"cgroup_notify_populated",
	};
	char name[64];
	int error;

	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		snprintf(name, sizeof(name), "%s%s", probe->name, points[i]);
		error = load_by_btf(p, BTF_KIND_TYPEDEF, name, BPF_TRACE_RAW_TP);
		if (error) {
			preflight_row_failed(row, error);
			PREFLIGHT_ROW_SAY(row, "%s: %s", points[i], strerror(error));
			return PREFLIGHT_TOLD;
		}
	}
	PREFLIGHT_ROW_SAY(row, "%zu tracepoints", ARRAY_SIZE(points));
	return 0;
}

static int probe_iterator(struct preflight_probes *p, const struct preflight_probe *probe,
			  struct preflight_row *row)
{
	return load_by_btf(p, BTF_KIND_FUNC, probe->name, BPF_TRACE_ITER);
}

/* Probes whether the kernel's own BTF has a function of that name. */
static int probe_function(struct preflight_probes *p, const struct preflight_probe *probe,
			  struct preflight_row *row)
{
	int r = preflight_btf_find(p->btf, BTF_KIND_FUNC, probe->name);

	return r < 0 ? -r : 0;
}

/* Without their option of the kernel some structs exist, and are empty. */
static int probe_members(struct preflight_probes *p, const struct preflight_probe *probe,
			 struct preflight_row *row)
{
	return preflight_btf_has_members(p->btf, probe->name) ? 0 : ENOTSUP;
}

/* Before 72ba14deb40a the tracepoint passed only the number of the process. */
static int probe_oom_victims(struct preflight_probes *p, const struct preflight_probe *probe,
			     struct preflight_row *row)
{
	return preflight_btf_takes_pointer(p->btf, probe->name, 1) ? 0 : ENOTSUP;
}

const struct preflight_probe preflight_kernel_probes[PREFLIGHT_COUNT_] = {
	[PREFLIGHT_btf] = { probe_btf },
	[PREFLIGHT_bpf_map] = { probe_bpf_map },
	[PREFLIGHT_ring_buffer] = { probe_ring_buffer },
	[PREFLIGHT_task_storage] = { probe_task_storage },
	[PREFLIGHT_bpffs] = { probe_bpffs },
	[PREFLIGHT_perf_event] = { probe_perf_event },
	[PREFLIGHT_perf_link_pin] = { probe_perf_link_pin },
	[PREFLIGHT_tp_btf] = { probe_tp_btf, "btf_trace_" },
	[PREFLIGHT_iter_task] = { probe_iterator, "bpf_iter_task" },
	[PREFLIGHT_find_vma] = { probe_function, "bpf_find_vma" },
	[PREFLIGHT_iter_ksym] = { probe_iterator, "bpf_iter_ksym" },
	[PREFLIGHT_vma_open_coded] = { probe_function, "bpf_iter_task_vma_new" },
	/* CONFIG_SCHED_INFO (include/linux/sched.h) */
	[PREFLIGHT_sched_info] = { probe_members, "sched_info" },
	[PREFLIGHT_kernel_rows] = { probe_members, "orc_entry" },
	/* CONFIG_SOCK_CGROUP_DATA (include/linux/cgroup-defs.h) */
	[PREFLIGHT_socket_cgroup] = { probe_members, "sock_cgroup_data" },
	[PREFLIGHT_oom_victims] = { probe_oom_victims, "btf_trace_mark_victim" },
};
