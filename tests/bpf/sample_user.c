/* SPDX-License-Identifier: BSD-2-Clause */
/* sample_user.c: the sampler: its user frames, and when there are none. */
#include <errno.h>
#include <link.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sample_fixture.h"

HARNESS_LOADS("sampler");

/* How many samples of `pid` are of the kernel's part alone; each of them is marked. */
static size_t without_user(struct fixture *f, pid_t pid)
{
	size_t count = 0;

	sample_stop(f->h);
	harness_drain(f->h);
	for (size_t i = 0; i < f->h->samples.count; i++) {
		const struct sample *s = sample_at(f->h, i);

		if (s->tgid != (uint32_t)pid)
			continue;
		count += s->flags & SAMPLE_KTHREAD ? 1 : 0;
		assert_int_equal(s->user_frames > 0, !(s->flags & SAMPLE_KTHREAD));
		assert_true(s->user_frames + s->kernel_frames > 0);
		assert_int_equal(f->h->samples.bytes[i], sample_bytes(s));
	}
	return count;
}

/*
 * A process that ends has given its memory back: of its last ticks only the kernel's part is
 * reported.
 */
static void the_ending_have_no_user_stack(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	size_t ending = 0;

	for (int i = 0; i < 50 && !ending; i++) {
		pid_t pid = harness_spawn("t-churn", "churn", f.dir);

		harness_forget(f.h);
		harness_tick(f.h, 4000);
		harness_kill(pid);
		ending += without_user(&f, pid);
	}
	assert_true(ending > 0);
	sample_end(&f);
}

/* In execve(2) the registers are of a program without its memory. */
static void the_changing_have_no_user_stack(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	pid_t pid = harness_spawn("t-become", "become", f.dir);
	size_t changing = 0;

	for (int i = 0; i < 50 && !changing; i++) {
		harness_forget(f.h);
		harness_tick(f.h, 4000);
		harness_sleep_ms(100);
		changing += without_user(&f, pid);
	}
	harness_kill(pid);
	assert_true(changing > 0);
	sample_end(&f);
}

struct place {
	uintptr_t address;
	uint64_t offset;
};

static int find_place(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct place *place = context;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && place->address >= at &&
		    place->address < at + p->p_memsz)
			place->offset = place->address - at + p->p_offset;
	}
	return 0;
}

/* The consumer has read the mappings of that image of the child; samples it then. */
static void map_image(struct fixture *f, uint32_t image)
{
	struct process_key key = { .tgid = (uint32_t)f->pid,
				   .start_ns = harness_start_ns(f->h, f->pid) };
	struct target target = { .flags = TARGET_MAPPED, .rule = NO_SLOT, .image = image };
	int fd = bpf_map__fd(f->h->skel->maps.targets);

	assert_int_equal(bpf_map_update_elem(fd, &key, &target, BPF_ANY), 0);
	harness_forget(f->h);
	sample_for(f->h, 0, 100);
	assert_true(f->h->samples.count > 0);
}

/* Most samples of a burning child have harness_burn as their leaf, by file offset. */
static void build_ids_until_mapped(void **state)
{
	struct fixture f = sample_begin(NULL, SLOT_CAPTURE, 0);
	struct place burn = { .address = (uintptr_t)harness_burn };
	size_t good = 0, both = 0, raw = 0;

	dl_iterate_phdr(find_place, &burn);
	assert_true(burn.offset > 0);
	sample_for(f.h, 0, 100);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = sample_at(f.h, i);
		struct frame_build_id frame;
		uint64_t address;

		assert_true(s->flags & SAMPLE_BUILD_ID);
		if (!s->user_frames)
			continue;
		memcpy(&frame, (const char *)(s + 1) + 8 * (size_t)s->kernel_frames, sizeof(frame));
		good += frame.status == 1 && frame.offset_or_ip - burn.offset < 512;
		/* Behind them stand the addresses, leaf first too. */
		assert_true(s->flags & SAMPLE_ADDRESSES);
		memcpy(&address,
		       (const char *)(s + 1) + 8 * (size_t)s->kernel_frames +
			       sizeof(frame) * s->user_frames,
		       sizeof(address));
		both += frame.status == 1 && frame.offset_or_ip - burn.offset < 512 &&
			((address ^ frame.offset_or_ip) & 0xfff) == 0 && address > burn.offset;
	}
	assert_true(f.h->samples.count > 0 && good * 10 >= f.h->samples.count * 9);
	assert_int_equal(both, good);

	/* Of an image that came before it is not known. */
	map_image(&f, sample_at(f.h, 0)->image - 1);
	for (size_t i = 0; i < f.h->samples.count; i++)
		assert_true(sample_at(f.h, i)->flags & SAMPLE_BUILD_ID);
	map_image(&f, sample_at(f.h, 0)->image);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = sample_at(f.h, i);
		uint64_t leaf;

		assert_false(s->flags & SAMPLE_BUILD_ID);
		if (!s->user_frames)
			continue;
		memcpy(&leaf, (const char *)(s + 1) + 8 * (size_t)s->kernel_frames, sizeof(leaf));
		raw += ((leaf - burn.offset) & 0xfff) < 512;
	}
	assert_true(raw * 10 >= f.h->samples.count * 9);
	sample_end(&f);
}

/* A ring with a kernel thread that looks for work all the time; a descriptor or -errno. */
static int open_ring(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 60000 };
	int fd = (int)syscall(SYS_io_uring_setup, 4, &params);

	return fd < 0 ? -errno : fd;
}

static void poll_a_ring(void *context)
{
	int fd = open_ring();

	if (fd < 0)
		return;
	/* It looks for a minute once it was woken; it may not sleep yet at the first time. */
	for (;;) {
		syscall(SYS_io_uring_enter, fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
		usleep(100000);
	}
}

/* A worker of io_uring is a thread of its process that never was in user mode. */
static void workers_have_no_user_stack(void **state)
{
	struct fixture f;
	int fd = open_ring();

	if (fd < 0) {
		print_message("no ring of io_uring can be made here: %s\n", strerror(-fd));
		skip();
	}
	close(fd);
	f = (struct fixture){ .h = harness_new(NULL) };
	f.id = harness_group(f.h, "ring", f.dir);
	harness_watch(f.h, f.id, SLOT, SLOT_CAPTURE, 0);
	f.pid = harness_start(poll_a_ring, NULL, f.dir);
	sample_for(f.h, 0, 200);
	for (size_t i = 0; i < f.h->samples.count; i++) {
		const struct sample *s = sample_at(f.h, i);

		if (s->tid == s->tgid)
			continue;
		assert_true(s->flags & SAMPLE_KTHREAD);
		assert_int_equal(s->user_frames, 0);
		assert_true(s->kernel_frames > 0);
	}
	assert_true(f.h->samples.count > 100);
	sample_end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ending_have_no_user_stack),
		cmocka_unit_test(the_changing_have_no_user_stack),
		cmocka_unit_test(build_ids_until_mapped),
		cmocka_unit_test(workers_have_no_user_stack),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
