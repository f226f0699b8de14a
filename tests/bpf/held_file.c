/* SPDX-License-Identifier: BSD-2-Clause */
#include "held_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/tools/clock.h"

#define FILE_NODE   2u
#define WAIT_MAX_NS 3000000000u

static struct fuse_attr attributes(uint64_t node)
{
	bool dir = node == FUSE_ROOT_ID;

	return (struct fuse_attr){
		.ino = node,
		.size = dir ? 0 : HELD_FILE_BYTES,
		.mode = dir ? S_IFDIR | 0755 : S_IFREG | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

union answer {
	struct fuse_init_out init;
	struct fuse_entry_out entry;
	struct fuse_attr_out attr;
	struct fuse_open_out open;
};

/* What goes behind the header: its bytes, -errno, or 0 for no answer at all. */
static int answer_to(const struct fuse_in_header *in, union answer *out)
{
	memset(out, 0, sizeof(*out));
	switch (in->opcode) {
	case FUSE_INIT:
		out->init.major = FUSE_KERNEL_VERSION;
		out->init.minor = 31;
		out->init.max_write = 4096;
		return sizeof(out->init);
	case FUSE_LOOKUP:
		out->entry.nodeid = FILE_NODE;
		out->entry.entry_valid = 3600;
		out->entry.attr = attributes(FILE_NODE);
		return sizeof(out->entry);
	case FUSE_GETATTR:
		out->attr.attr = attributes(in->nodeid);
		return sizeof(out->attr);
	case FUSE_OPEN:
		return sizeof(out->open);
	case FUSE_READ:
	case FUSE_FORGET:
		return 0;
	default:
		return -ENOSYS;
	}
}

static _Noreturn void serve(int fd)
{
	static char request[1 << 17];

	for (;;) {
		struct {
			struct fuse_out_header head;
			union answer body;
		} out;
		const struct fuse_in_header *in = (const void *)request;
		int r;

		if (read(fd, request, sizeof(request)) < (ssize_t)sizeof(*in))
			_exit(0); /* unmounted */
		r = answer_to(in, &out.body);
		if (r == 0)
			continue;
		out.head = (struct fuse_out_header){ .len = sizeof(out.head) +
							    (r > 0 ? (uint32_t)r : 0),
						     .error = r < 0 ? r : 0,
						     .unique = in->unique };
		if (write(fd, &out, out.head.len) < 0)
			continue; /* the reader has gone */
	}
}

bool held_file_begin(struct held_file *h)
{
	char options[128];

	snprintf(h->dir, sizeof(h->dir), "/tmp/trocar-held-XXXXXX");
	h->connection = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (h->connection < 0 || !mkdtemp(h->dir))
		return false;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 h->connection);
	if (mount("trocar", h->dir, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		return false;
	h->server = fork();
	if (h->server == 0)
		serve(h->connection);
	return h->server > 0;
}

void held_file_end(struct held_file *h)
{
	umount2(h->dir, MNT_FORCE);
	umount2(h->dir, MNT_DETACH);
	kill(h->server, SIGKILL);
	waitpid(h->server, NULL, 0);
	close(h->connection);
	rmdir(h->dir);
}

uint64_t held_file_wait(struct held_file *h, pid_t pid, uint64_t begun_ns, int *ret_status)
{
	int status = -1;

	while (waitpid(pid, &status, WNOHANG) == 0 && clock_mono_ns() - begun_ns < WAIT_MAX_NS)
		usleep(1000);
	begun_ns = clock_mono_ns() - begun_ns;
	if (status == -1) {
		kill(pid, SIGKILL); /* which does not end that wait: the unmount does */
		held_file_end(h);
		waitpid(pid, NULL, 0);
	}
	*ret_status = status;
	return begun_ns;
}
