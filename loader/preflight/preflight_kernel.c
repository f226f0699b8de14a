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

#define NO_BTF "unknown: the check needs the kernel's BTF"

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

static void probe_btf(struct preflight_probes *p, struct preflight_row *row)
{
	int r = preflight_btf_load(p->btf);

	if (r < 0) {
		preflight_row_failed(row, -r);
		return;
	}
	preflight_row_present(row);
	PREFLIGHT_ROW_SAY(row, "%s, %u KiB", PREFLIGHT_BTF_PATH,
			  preflight_btf_bytes(p->btf) / 1024);
}

static void probe_map(struct preflight_row *row, uint32_t type, uint32_t entries)
{
	_cleanup_close_ int fd = -1;
	uint32_t bytes = type == BPF_MAP_TYPE_RINGBUF ? 0 : 4;

	fd = create_map(type, bytes, bytes, entries);
	if (fd < 0)
		preflight_row_failed(row, errno);
	else
		preflight_row_present(row);
}

static void probe_bpf_map(struct preflight_probes *p, struct preflight_row *row)
{
	probe_map(row, BPF_MAP_TYPE_ARRAY, 1);
}

static void probe_ring_buffer(struct preflight_probes *p, struct preflight_row *row)
{
	probe_map(row, BPF_MAP_TYPE_RINGBUF, (uint32_t)sysconf(_SC_PAGESIZE));
}

/*
 * Probes a map of task storage, which must have BTF for key and value. A kernel without it answers
 * EINVAL.
 */
static void probe_task_storage(struct preflight_probes *p, struct preflight_row *row)
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
	if (btf_fd < 0) {
		preflight_row_failed(row, errno);
		return;
	}
	attr.btf_fd = (uint32_t)btf_fd;
	fd = call_bpf(BPF_MAP_CREATE, &attr);
	if (fd < 0)
		preflight_row_failed(row, errno);
	else
		preflight_row_present(row);
}

/* ---- bpffs: an unmounted one that ends with its descriptor */

static void probe_bpffs(struct preflight_probes *p, struct preflight_row *row)
{
	_cleanup_close_ int fs = -1;

	fs = (int)syscall(SYS_fsopen, "bpf", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0) {
		preflight_row_failed(row, errno);
		return;
	}
	p->bpffs_fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
	if (p->bpffs_fd < 0) {
		preflight_row_failed(row, errno);
		return;
	}
	preflight_row_present(row);
}

/* ---- perf */

static void probe_perf_event(struct preflight_probes *p, struct preflight_row *row)
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
	if (fd < 0) {
		preflight_row_failed(row, errno);
		return;
	}
	p->prog_fd = load_program(BPF_PROG_TYPE_PERF_EVENT, 0, 0);
	if (p->prog_fd < 0) {
		preflight_row_failed(row, errno);
		return;
	}
	link.link_create.prog_fd = (uint32_t)p->prog_fd;
	link.link_create.target_fd = (uint32_t)fd;
	link.link_create.attach_type = BPF_PERF_EVENT;
	p->perf_link_fd = call_bpf(BPF_LINK_CREATE, &link);
	if (p->perf_link_fd < 0) {
		preflight_row_failed(row, errno);
		return;
	}
	preflight_row_present(row);
	PREFLIGHT_ROW_SAY(row, "CPU clock event with a program on CPU 0");
}

static void probe_perf_link_pin(struct preflight_probes *p, struct preflight_row *row)
{
	char path[64];
	union bpf_attr attr = { 0 };

	if (p->perf_link_fd < 0 || p->bpffs_fd < 0) {
		row->state = PREFLIGHT_UNKNOWN;
		PREFLIGHT_ROW_SAY(row, "unknown: the check needs perf_event and bpffs");
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d/probe", p->bpffs_fd);
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.bpf_fd = (uint32_t)p->perf_link_fd;
	if (call_bpf(BPF_OBJ_PIN, &attr) < 0)
		preflight_row_failed(row, errno);
	else
		preflight_row_present(row);
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

static bool has_btf(struct preflight_probes *p, struct preflight_row *row)
{
	int r = preflight_btf_load(p->btf);

	if (r == 0)
		return true;
	row->state = r == -ENOENT ? PREFLIGHT_MISSING : PREFLIGHT_UNKNOWN;
	PREFLIGHT_ROW_SAY(row, NO_BTF);
	return false;
}

static void probe_tp_btf(struct preflight_probes *p, struct preflight_row *row)
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

	if (!has_btf(p, row))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		snprintf(name, sizeof(name), "btf_trace_%s", points[i]);
		error = load_by_btf(p, BTF_KIND_TYPEDEF, name, BPF_TRACE_RAW_TP);
		if (error) {
			preflight_row_failed(row, error);
			PREFLIGHT_ROW_SAY(row, "%s: %s", points[i], strerror(error));
			return;
		}
	}
	preflight_row_present(row);
	PREFLIGHT_ROW_SAY(row, "%zu tracepoints", ARRAY_SIZE(points));
}

static void probe_iterator(struct preflight_probes *p, struct preflight_row *row, const char *name)
{
	int error;

	if (!has_btf(p, row))
		return;
	error = load_by_btf(p, BTF_KIND_FUNC, name, BPF_TRACE_ITER);
	if (error)
		preflight_row_failed(row, error);
	else
		preflight_row_present(row);
}

static void probe_iter_task(struct preflight_probes *p, struct preflight_row *row)
{
	probe_iterator(p, row, "bpf_iter_task");
}

/* Probes whether the kernel's own BTF has a function of that name. */
static void probe_function(struct preflight_probes *p, struct preflight_row *row, const char *name)
{
	int r;

	if (!has_btf(p, row))
		return;
	r = preflight_btf_find(p->btf, BTF_KIND_FUNC, name);
	if (r < 0)
		preflight_row_failed(row, -r);
	else
		preflight_row_present(row);
}

static void probe_find_vma(struct preflight_probes *p, struct preflight_row *row)
{
	probe_function(p, row, "bpf_find_vma");
}

static void probe_iter_ksym(struct preflight_probes *p, struct preflight_row *row)
{
	probe_iterator(p, row, "bpf_iter_ksym");
}

static void probe_vma_open_coded(struct preflight_probes *p, struct preflight_row *row)
{
	probe_function(p, row, "bpf_iter_task_vma_new");
}

/* Without CONFIG_SCHED_INFO the struct exists, and is empty (include/linux/sched.h). */
static void probe_sched_info(struct preflight_probes *p, struct preflight_row *row)
{
	if (!has_btf(p, row))
		return;
	if (preflight_btf_has_members(p->btf, "sched_info"))
		preflight_row_present(row);
	else
		preflight_row_failed(row, ENOTSUP);
}

static void probe_kernel_rows(struct preflight_probes *p, struct preflight_row *row)
{
	if (!has_btf(p, row))
		return;
	if (preflight_btf_has_members(p->btf, "orc_entry"))
		preflight_row_present(row);
	else
		preflight_row_failed(row, ENOTSUP);
}

/* Without CONFIG_SOCK_CGROUP_DATA the struct is empty (include/linux/cgroup-defs.h). */
static void probe_socket_cgroup(struct preflight_probes *p, struct preflight_row *row)
{
	if (!has_btf(p, row))
		return;
	if (preflight_btf_has_members(p->btf, "sock_cgroup_data"))
		preflight_row_present(row);
	else
		preflight_row_failed(row, ENOTSUP);
}

/* Before 72ba14deb40a the tracepoint passed only the number of the process. */
static void probe_oom_victims(struct preflight_probes *p, struct preflight_row *row)
{
	if (!has_btf(p, row))
		return;
	if (preflight_btf_takes_pointer(p->btf, "btf_trace_mark_victim", 1))
		preflight_row_present(row);
	else
		preflight_row_failed(row, ENOTSUP);
}

const preflight_call preflight_kernel_calls[PREFLIGHT_COUNT_] = {
	[PREFLIGHT_btf] = probe_btf,
	[PREFLIGHT_bpf_map] = probe_bpf_map,
	[PREFLIGHT_ring_buffer] = probe_ring_buffer,
	[PREFLIGHT_task_storage] = probe_task_storage,
	[PREFLIGHT_bpffs] = probe_bpffs,
	[PREFLIGHT_perf_event] = probe_perf_event,
	[PREFLIGHT_perf_link_pin] = probe_perf_link_pin,
	[PREFLIGHT_tp_btf] = probe_tp_btf,
	[PREFLIGHT_iter_task] = probe_iter_task,
	[PREFLIGHT_find_vma] = probe_find_vma,
	[PREFLIGHT_iter_ksym] = probe_iter_ksym,
	[PREFLIGHT_vma_open_coded] = probe_vma_open_coded,
	[PREFLIGHT_sched_info] = probe_sched_info,
	[PREFLIGHT_kernel_rows] = probe_kernel_rows,
	[PREFLIGHT_socket_cgroup] = probe_socket_cgroup,
	[PREFLIGHT_oom_victims] = probe_oom_victims,
};
