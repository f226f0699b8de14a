/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/preflight/preflight_internal.h"
#include "shared/abi/abi.h"
#include "shared/files/cgroupfs.h"
#include "shared/files/namespaces.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/parse.h"

#define SMALL_FILE_BYTES 65536

static int read_small_file(const char *path, char **ret_text)
{
	size_t bytes;

	return io_read_file(AT_FDCWD, path, SMALL_FILE_BYTES, ret_text, &bytes);
}

/* ---- cgroups and pressure */

static int probe_cgroup2(struct preflight_probes *p, const struct preflight_probe *probe,
			 struct preflight_row *row)
{
	enum cgroup_mode mode = CGROUP_NONE;
	char mount[1024];
	int r;

	r = cgroupfs_find_here(mount, sizeof(mount), &mode);
	if (r == 0) {
		PREFLIGHT_ROW_SAY(row, "%.200s, %s", mount, cgroupfs_mode_name(mode));
		return 0;
	}
	preflight_row_failed(row, -r);
	if (mode == CGROUP_V1_ONLY)
		PREFLIGHT_ROW_SAY(row, "only cgroup v1 is mounted");
	return PREFLIGHT_TOLD;
}

/* `why` is NULL if nothing is hidden. */
static int say_hidden(const char *why, struct preflight_row *row)
{
	if (!why)
		return 0;
	row->state = PREFLIGHT_MISSING;
	PREFLIGHT_ROW_SAY(row, "%s", why);
	return PREFLIGHT_TOLD;
}

static int probe_host_pids(struct preflight_probes *p, const struct preflight_probe *probe,
			   struct preflight_row *row)
{
	return say_hidden(namespaces_hide_processes(), row);
}

static int probe_host_cgroups(struct preflight_probes *p, const struct preflight_probe *probe,
			      struct preflight_row *row)
{
	enum cgroup_mode mode = CGROUP_NONE;
	char mount[1024];

	if (cgroupfs_find_here(mount, sizeof(mount), &mode) < 0)
		return say_hidden("no cgroup2 is mounted", row);
	return say_hidden(namespaces_hide_cgroups(mount), row);
}

void preflight_system_explain_proc(const char *mounts, struct preflight_row *row)
{
	bool group, hides = namespaces_proc_hides(mounts, &group);

	row->state = hides && !group ? PREFLIGHT_MISSING : PREFLIGHT_PRESENT;
	if (hides)
		PREFLIGHT_ROW_SAY(row, "/proc is mounted with hidepid=%s",
				  group ? " and gid=: the consumer has to be in that group" : "");
}

/*
 * The loader is root, so /proc hides nothing from it: the mount options show the consumer's view.
 */
static int probe_proc_pids(struct preflight_probes *p, const struct preflight_probe *probe,
			   struct preflight_row *row)
{
	_cleanup_free_ char *text = NULL;
	int r = read_small_file("/proc/self/mounts", &text);

	if (r < 0)
		return -r;
	preflight_system_explain_proc(text, row);
	return PREFLIGHT_TOLD;
}

static int probe_host_clocks(struct preflight_probes *p, const struct preflight_probe *probe,
			     struct preflight_row *row)
{
	return say_hidden(namespaces_shift_clocks(), row);
}

void preflight_system_explain_psi(int error, bool compiled, const char *cmdline,
				  struct preflight_row *row)
{
	bool off = strncmp(cmdline, "psi=0", 5) == 0 || strstr(cmdline, " psi=0") != NULL;

	if (error == 0) {
		row->state = PREFLIGHT_PRESENT;
		return;
	}
	row->state = PREFLIGHT_MISSING;
	if (error == EPERM || error == EACCES) {
		preflight_row_failed(row, error);
	} else if (off) {
		PREFLIGHT_ROW_SAY(row, "switched off on the kernel command line (psi=0)");
		row->how = "take psi=0 off the kernel command line";
	} else if (error == EOPNOTSUPP || compiled) {
		PREFLIGHT_ROW_SAY(row, "built in, but off by default on this kernel%s",
				  error == EOPNOTSUPP ? " (the files answer EOPNOTSUPP)" : "");
		row->how = "add psi=1 to the kernel command line";
	} else {
		PREFLIGHT_ROW_SAY(row, "the kernel was built without it");
	}
}

/* Reads the file once. Returns 0, or the errno of opening or reading. */
static int try_read(const char *path)
{
	_cleanup_free_ char *text = NULL;

	return -read_small_file(path, &text);
}

static int probe_psi(struct preflight_probes *p, const struct preflight_probe *probe,
		     struct preflight_row *row)
{
	_cleanup_free_ char *cmdline = NULL;
	int error = try_read("/proc/pressure/cpu");

	if (read_small_file("/proc/cmdline", &cmdline) < 0)
		cmdline = NULL;
	/* The struct always exists; it has members only with CONFIG_PSI. */
	preflight_system_explain_psi(error, error && preflight_btf_has_members(p->btf, "psi_group"),
				     cmdline ? cmdline : "", row);
	if (error == 0)
		PREFLIGHT_ROW_SAY(row, "/proc/pressure");
	return PREFLIGHT_TOLD;
}

static int probe_psi_cgroup(struct preflight_probes *p, const struct preflight_probe *probe,
			    struct preflight_row *row)
{
	enum cgroup_mode mode = CGROUP_NONE;
	char mount[1024];
	char path[1100];
	int error;

	if (cgroupfs_find_here(mount, sizeof(mount), &mode) < 0) {
		row->state = PREFLIGHT_MISSING;
		PREFLIGHT_ROW_SAY(row, mode == CGROUP_V1_ONLY ? "cgroup v1 has no pressure files"
							      : "no cgroup2");
		row->how = "mount cgroup2 (see cgroup2)";
		return PREFLIGHT_TOLD;
	}
	snprintf(path, sizeof(path), "%s/memory.pressure", mount);
	error = try_read(path);
	if (error == 0) {
		PREFLIGHT_ROW_SAY(row, "%.200s", path);
		return 0;
	}
	preflight_row_failed(row, error);
	if (error == EOPNOTSUPP) {
		PREFLIGHT_ROW_SAY(row, "the files are there and answer EOPNOTSUPP");
		row->how = "add psi=1 to the kernel command line";
	} else if (try_read("/proc/pressure/memory") != 0) {
		row->how = "see psi";
	}
	return PREFLIGHT_TOLD;
}

/* ---- restrictions of the kernel */

static int probe_lockdown(struct preflight_probes *p, const struct preflight_probe *probe,
			  struct preflight_row *row)
{
	_cleanup_free_ char *text = NULL;
	char *mode, *end;
	int r;

	r = read_small_file("/sys/kernel/security/lockdown", &text);
	if (r < 0) {
		/*
		 * Without securityfs the mode cannot be read. In mode confidentiality tp_btf would
		 * be missing.
		 */
		PREFLIGHT_ROW_SAY(
			row,
			"mode not known (%s); nothing refuses programs that read kernel memory: see tp_btf",
			strerror(-r));
		return 0;
	}
	mode = strchr(text, '[');
	end = mode ? strchr(mode, ']') : NULL;
	if (!end) {
		row->state = PREFLIGHT_UNKNOWN;
		PREFLIGHT_ROW_SAY(row, "the mode cannot be read");
		return PREFLIGHT_TOLD;
	}
	*end = '\0';
	row->state =
		strcmp(mode + 1, "confidentiality") == 0 ? PREFLIGHT_MISSING : PREFLIGHT_PRESENT;
	PREFLIGHT_ROW_SAY(row, "lockdown=%.32s", mode + 1);
	return PREFLIGHT_TOLD;
}

static int probe_seccomp(struct preflight_probes *p, const struct preflight_probe *probe,
			 struct preflight_row *row)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0 ? errno : 0;
}

static int probe_landlock(struct preflight_probes *p, const struct preflight_probe *probe,
			  struct preflight_row *row)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 0) {
		row->state = PREFLIGHT_MISSING;
		PREFLIGHT_ROW_SAY(row, errno == EOPNOTSUPP
					       ? "built in, but not in the kernel's lsm= list"
					       : "not in this kernel");
		return PREFLIGHT_TOLD;
	}
	PREFLIGHT_ROW_SAY(row, "version %ld", abi);
	return 0;
}

/* Probes whether a sysctl, /proc/sys/kernel/NAME, is at least `least`. */
static int probe_sysctl(const char *name, uint64_t least, struct preflight_row *row)
{
	_cleanup_free_ char *text = NULL;
	uint64_t number = 0;
	char path[96];
	int r;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	r = read_small_file(path, &text);
	if (r == 0) {
		text[strcspn(text, "\n")] = '\0';
		r = parse_u64(text, 0, UINT32_MAX, &number);
	}
	if (r < 0)
		return -r;
	row->state = number >= least ? PREFLIGHT_PRESENT : PREFLIGHT_MISSING;
	PREFLIGHT_ROW_SAY(row, "kernel.%s=%" PRIu64, name, number);
	return PREFLIGHT_TOLD;
}

static int probe_unprivileged_bpf(struct preflight_probes *p, const struct preflight_probe *probe,
				  struct preflight_row *row)
{
	return probe_sysctl("unprivileged_bpf_disabled", 1, row);
}

static int probe_stack_depth(struct preflight_probes *p, const struct preflight_probe *probe,
			     struct preflight_row *row)
{
	return probe_sysctl("perf_event_max_stack", STACK_FRAMES, row);
}

int preflight_system_capability(int capability, struct preflight_row *row)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	row->how = "run it as root, or give the unit this capability";
	if (syscall(SYS_capget, &header, data) < 0)
		return errno;
	row->state = data[capability / 32].permitted & (1u << (capability % 32))
			     ? PREFLIGHT_PRESENT
			     : PREFLIGHT_MISSING;
	return PREFLIGHT_TOLD;
}

const struct preflight_probe preflight_system_probes[PREFLIGHT_COUNT_] = {
	[PREFLIGHT_cgroup2] = { probe_cgroup2 },
	[PREFLIGHT_host_pids] = { probe_host_pids },
	[PREFLIGHT_host_cgroups] = { probe_host_cgroups },
	[PREFLIGHT_proc_pids] = { probe_proc_pids },
	[PREFLIGHT_host_clocks] = { probe_host_clocks },
	[PREFLIGHT_psi] = { probe_psi },
	[PREFLIGHT_psi_cgroup] = { probe_psi_cgroup },
	[PREFLIGHT_lockdown] = { probe_lockdown },
	[PREFLIGHT_seccomp] = { probe_seccomp },
	[PREFLIGHT_landlock] = { probe_landlock },
	[PREFLIGHT_unprivileged_bpf] = { probe_unprivileged_bpf },
	[PREFLIGHT_stack_depth] = { probe_stack_depth },
};
