/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shared/files/namespaces.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

int host_read(struct host *ret_host)
{
	_cleanup_free_ char *boot_id = NULL;
	struct host host = {};
	struct utsname names;
	size_t bytes;
	int r;

	if (uname(&names) < 0)
		return -errno;
	snprintf(host.name, sizeof(host.name), "%s", names.nodename);
	snprintf(host.kernel, sizeof(host.kernel), "%s", names.release);
	r = io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 128, &boot_id, &bytes);
	if (r < 0)
		return r == -ENOENT ? -ENODATA : r;
	snprintf(host.boot_id, sizeof(host.boot_id), "%.36s", boot_id);
	host.cpus = (unsigned int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	r = cgroupfs_find_here(host.cgroup2, sizeof(host.cgroup2), &host.cgroup_mode);
	ret_host->cgroup_mode = host.cgroup_mode;
	if (r < 0)
		return r;
	host.hidden_processes = namespaces_hide_processes();
	host.hidden_proc = namespaces_hide_proc();
	host.shifted_clocks = namespaces_shift_clocks();
	host.hidden_cgroups = namespaces_hide_cgroups(host.cgroup2);
	*ret_host = host;
	return 0;
}
