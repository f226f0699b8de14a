/* SPDX-License-Identifier: BSD-2-Clause */
/* block_fixture.h: a disk of the test's own, a loop device, and how requests to it are read. */
#ifndef TROCAR_TESTS_BPF_BLOCK_FIXTURE_H
#define TROCAR_TESTS_BPF_BLOCK_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/macro.h"

#define SLOT	   7
#define DISK_BYTES (16u << 20)
#define KIB	   1024u

static char disk_path[64];
static int disk_fd = -1;

struct fixture {
	struct harness *h;
	struct bpf_link *links[6];
	char dir[4096], other_dir[4096];
	uint64_t id, other_id;
	uint32_t device;
};

/*
 * Makes a disk of a file. False, with errno, where the machine has no loop devices; it goes away
 * with the last descriptor.
 */
static inline bool make_disk(void)
{
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR };
	char file[] = "/var/tmp/trocar-disk-XXXXXX";
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), number;

	if (control < 0)
		return false;
	config.fd = (uint32_t)mkostemp(file, O_CLOEXEC);
	unlink(file);
	if ((int)config.fd < 0 || posix_fallocate((int)config.fd, 0, DISK_BYTES))
		return false;
	for (int i = 0; i < 8; i++) {
		number = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(disk_path, sizeof(disk_path), "/dev/loop%d", number);
		disk_fd = number < 0 ? -1 : open(disk_path, O_RDWR | O_DIRECT | O_CLOEXEC);
		if (disk_fd >= 0 && ioctl(disk_fd, LOOP_CONFIGURE, &config) == 0)
			break;
		/* Somebody else took it meanwhile. */
		close(disk_fd);
		disk_fd = -1;
	}
	close((int)config.fd);
	close(control);
	return disk_fd >= 0;
}

static inline void attach_all(struct fixture *f)
{
	struct trocar *s = f->h->skel;
	struct bpf_program *const programs[] = {
		s->progs.block_getrq, s->progs.block_issue,	s->progs.block_complete,
		s->progs.block_merge, s->progs.block_backmerge, s->progs.block_frontmerge
	};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		f->links[i] = bpf_program__attach(programs[i]);
		assert_non_null(f->links[i]);
	}
}

/* A watched group in which a session runs, and another one beside it. */
static inline struct fixture begin(const struct harness_options *options)
{
	struct fixture f = { .h = harness_new(options) };
	struct stat st;

	assert_int_equal(fstat(disk_fd, &st), 0);
	f.device = major(st.st_rdev) << 20 | minor(st.st_rdev);
	f.id = harness_group(f.h, "disk", f.dir);
	f.other_id = harness_group(f.h, "disk-other", f.other_dir);
	harness_watch(f.h, f.id, SLOT, SLOT_CAPTURE, 0);
	f.h->slots[SLOT].session = 1;
	f.h->control->heartbeat_ns = harness_now_ns();
	f.h->control->stale_ns = 60000000000u;
	attach_all(&f);
	return f;
}

static inline void end(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(f->links); i++)
		bpf_link__destroy(f->links[i]);
	harness_free(f->h);
}

/* Sets *ret_sums to the sums of a cgroup's requests of one kind to the disk, of all sizes. */
static inline void find_sums(const struct fixture *f, uint64_t cgroup_id, enum block_op op,
			     struct block_sums *ret_sums)
{
	int fd = bpf_map__fd(f->h->skel->maps.block_sums);
	struct block_key key, *last = NULL;
	struct block_sums sums;

	memset(ret_sums, 0, sizeof(*ret_sums));
	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key) {
		if (key.device != f->device || key.cgroup_id != cgroup_id || key.op != op)
			continue;
		assert_int_equal(bpf_map_lookup_elem(fd, &key, &sums), 0);
		assert_int_equal(key.slot, cgroup_id == f->id ? SLOT : NO_SLOT);
		ret_sums->requests += sums.requests;
		ret_sums->bytes += sums.bytes;
		ret_sums->queue_ns += sums.queue_ns;
		ret_sums->service_ns += sums.service_ns;
		ret_sums->longest_ns = MAX(ret_sums->longest_ns, sums.longest_ns);
		ret_sums->errors += sums.errors;
		ret_sums->merges += sums.merges;
		ret_sums->unissued += sums.unissued;
		for (int i = 0; i < QUEUE_BUCKETS; i++) {
			ret_sums->queue[i] += sums.queue[i];
			ret_sums->service[i] += sums.service[i];
		}
	}
}

static inline uint64_t count_steps(const uint32_t steps[QUEUE_BUCKETS])
{
	uint64_t n = 0;

	for (int i = 0; i < QUEUE_BUCKETS; i++)
		n += steps[i];
	return n;
}

/* Returns how many requests of the cgroup to the disk are not over. */
static inline size_t count_open(const struct fixture *f, uint64_t cgroup_id)
{
	int fd = bpf_map__fd(f->h->skel->maps.block_open);
	uint64_t key, *last = NULL;
	struct block_request r;
	size_t n = 0;

	for (; bpf_map_get_next_key(fd, last, &key) == 0; last = &key)
		n += bpf_map_lookup_elem(fd, &key, &r) == 0 && r.cgroup_id == cgroup_id &&
		     r.device == f->device;
	return n;
}

/* The losses of a slot, over all CPUs; NO_SLOT: of no watch. */
static inline struct slot_block read_losses(const struct fixture *f, uint32_t slot)
{
	struct slot_block each[HARNESS_CPUS] = {}, all = {};
	uint32_t at = LOSSES_OF(slot);

	assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.block_losses), &at, each),
			 0);
	for (int i = 0; i < HARNESS_CPUS; i++) {
		all.untracked += each[i].untracked;
		all.unlisted += each[i].unlisted;
		all.no_memory += each[i].no_memory;
	}
	return all;
}

/* What a child asks the disk for. */
struct work {
	enum block_op op;
	uint32_t times, bytes;
	bool everywhere; /* each elsewhere, so that none joins another */
};

/* Does the work and waits to be killed; `pipe_fd` reports its end. */
static int done_pipe[2];

static inline void do_work(void *context)
{
	const struct work *w = context;
	void *data = aligned_alloc(4096, DISK_BYTES);
	bool ok = data;

	memset(data, 1, DISK_BYTES);
	for (uint32_t i = 0; ok && i < w->times; i++) {
		off_t at = (off_t)(w->everywhere ? i * 2 * w->bytes % (DISK_BYTES / 2) : 0);

		if (w->op == BLOCK_READ)
			ok = pread(disk_fd, data, w->bytes, at) == (ssize_t)w->bytes;
		else if (w->op == BLOCK_WRITE)
			ok = pwrite(disk_fd, data, w->bytes, at) == (ssize_t)w->bytes;
		else
			ok = fdatasync(disk_fd) == 0;
	}
	if (write(done_pipe[1], &ok, sizeof(ok)) < 0)
		_exit(1);
	for (;;)
		pause();
}

/* Lets a child of the cgroup at `dir` do the work, and waits until it has. */
static inline void work_in(const char *dir, struct work work)
{
	bool ok = false;
	pid_t pid;

	assert_int_equal(pipe(done_pipe), 0);
	pid = harness_start(do_work, &work, dir);
	assert_int_equal(read(done_pipe[0], &ok, sizeof(ok)), sizeof(ok));
	assert_true(ok);
	harness_kill(pid);
	close(done_pipe[0]);
	close(done_pipe[1]);
}

/*
 * As `begin`, then `prepare` (NULL: none) and the work of the group and of the other one. Begins
 * again where an end was not seen: the kernel of some sandboxes runs no tracing program where an
 * end interrupts process 1 (docs/decisions/0042). Such a request stays open.
 */
static inline struct fixture begin_worked(const struct harness_options *options,
					  void (*prepare)(struct fixture *f), struct work own,
					  struct work other)
{
	for (int i = 0;; i++) {
		struct fixture f = begin(options);

		if (prepare)
			prepare(&f);
		if (own.times)
			work_in(f.dir, own);
		if (other.times)
			work_in(f.other_dir, other);
		if (i == 3 || count_open(&f, f.id) + count_open(&f, f.other_id) == 0)
			return f;
		print_message("# an end of a request was not seen: once more\n");
		end(&f);
	}
}

#endif
