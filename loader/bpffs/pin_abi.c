/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/bpffs/pin_abi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>

#include "loader/bpffs/bpfdir.h"
#include "shared/tools/cleanup.h"

int pin_abi_read(const char *dir, struct abi_header *ret_header)
{
	struct abi_header header = { 0 };
	_cleanup_close_ int fd = -1;
	struct bpf_map_info info = { 0 };
	__u32 bytes = sizeof(info), zero = 0;
	char path[BPFDIR_PATH_BYTES + sizeof("/abi")];

	snprintf(path, sizeof(path), "%s/abi", dir);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	if (bpf_obj_get_info_by_fd(fd, &info, &bytes) < 0)
		return -errno;
	if (info.value_size != sizeof(header)) /* the header of another version */
		return -EPROTO;
	if (bpf_map_lookup_elem(fd, &zero, &header) < 0)
		return -errno;
	*ret_header = header;
	return 0;
}
