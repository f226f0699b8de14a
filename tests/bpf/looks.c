/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * looks.c: the report of `looks` for threads that do not run: the thread, its system call, its
 * stack; and its limits: it never reports others or memory, never faults, never waits.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "held_file.h"
#include "look_fixture.h"
#include "shared/tools/io.h"

HARNESS_LOADS("looks", "on_stop", "ranges*", "sampler");

#define BOUND_NS 1000000000u /* a look takes 6 ms; one that waits is ended after 3 s */

static const uint64_t *user_frames(const struct seen_look *l)
{
	return l->frames + l->record.sample.kernel_frames;
}

static void assert_all_executable(const struct fixture *f, const struct seen_look *l)
{
	for (size_t i = 0; i < l->record.sample.user_frames; i++)
		if (!is_executable(f, SAMPLE_ADDRESS(user_frames(l)[i])))
			fail_msg("frame %zu is %lx", i, user_frames(l)[i]);
}

static void a_sleeping_thread_is_told_of(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct seen_look l;

	read_asleep(f.h, f.pid, &l);
	assert_int_equal(l.record.sample.tgid, f.pid);
	assert_int_equal(l.record.sample.tid, f.pid);
	assert_int_equal(l.record.sample.slot, SLOT);
	assert_int_equal(l.record.sample.start_ns, harness_start_ns(f.h, f.pid));
	assert_string_equal(l.record.sample.comm, "t-burn");
	assert_true(l.record.syscall == SYS_clock_nanosleep || l.record.syscall == SYS_pause);
	assert_true(l.record.sample.kernel_frames > 2);
	assert_true(l.record.sample.user_frames > 0);
	assert_all_executable(&f, &l);
	end(&f);
}

/* It is not walked again until it has run, or the reader has lost its reports. */
static void who_has_not_run_is_as_before(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct seen_look first, l;

	read_asleep(f.h, f.pid, &first);
	for (int i = 0; i < 3; i++) {
		read_looks(f.h, f.pid, &l);
		assert_true(l.told);
		assert_int_equal(l.record.head.flags, first.record.head.flags | LOOK_AS_BEFORE);
	}
	f.h->control->look_mode = LOOK_HELD_AGAIN; /* its report has no holder */
	read_looks(f.h, f.pid, &l);
	assert_true(l.record.head.flags & LOOK_AS_BEFORE);
	f.h->control->look_mode = LOOK_SESSIONS;
	f.h->control->look_epoch++;
	read_looks(f.h, f.pid, &l);
	assert_false(l.record.head.flags & LOOK_AS_BEFORE);
	assert_int_equal(l.record.switches, first.record.switches);
	assert_int_equal(l.record.sample.user_frames, first.record.sample.user_frames);
	/* A tracer's stop and the way on are switches. */
	kill(f.pid, SIGSTOP);
	harness_sleep_ms(50);
	read_looks(f.h, f.pid, &l);
	assert_int_equal(l.record.head.flags, LOOK_STOPPED);
	assert_int_equal(l.record.on.kind, LOOK_ON_NOTHING);
	kill(f.pid, SIGCONT);
	for (int i = 0; i < 200; i++) {
		read_looks(f.h, f.pid, &l);
		if (l.told && !(l.record.head.flags & LOOK_AS_BEFORE))
			break;
		harness_sleep_ms(10);
	}
	assert_false(l.record.head.flags & LOOK_AS_BEFORE);
	assert_true(l.record.switches > first.record.switches);
	end(&f);
}

static int stop_process(void *pid)
{
	return kill(*(const pid_t *)pid, SIGSTOP);
}

/* The sender of a signal that stops a process is named, also after it has ended. */
static void sender_is_named(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct bpf_link *link = bpf_program__attach(f.h->skel->progs.on_stop);
	struct seen_look l;
	pid_t sender;

	assert_non_null(link);
	read_asleep(f.h, f.pid, &l);
	sender = harness_fork(stop_process, &f.pid);
	for (int i = 0; i < 200; i++) {
		read_looks(f.h, f.pid, &l);
		if (l.record.head.flags == LOOK_STOPPED)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(l.record.head.flags, LOOK_STOPPED);
	assert_int_equal(l.record.on.kind, LOOK_ON_SENDER);
	assert_int_equal(l.record.on.number, sender);
	assert_memory_equal(l.record.on.name, "test-bpf-looks", sizeof("test-bpf-looks"));
	/* Other signals, and a further one that stops, change nothing. */
	kill(f.pid, SIGWINCH);
	kill(f.pid, SIGSTOP);
	f.h->control->look_epoch++;
	read_looks(f.h, f.pid, &l);
	assert_int_equal(l.record.on.number, sender);
	bpf_link__destroy(link);
	end(&f);
}

/* What halts a thread from outside: a tracer, which is named, or the freezer. */
static void who_is_halted(void **state)
{
	struct fixture f = begin_looks("sleep");
	char path[4200];
	struct seen_look l;
	FILE *file;

	read_asleep(f.h, f.pid, &l);
	assert_int_equal(l.record.head.flags & LOOK_HALTED, 0);
	assert_int_equal(ptrace(PTRACE_ATTACH, f.pid, 0, 0), 0);
	assert_int_equal(waitpid(f.pid, NULL, __WALL), f.pid);
	read_looks(f.h, f.pid, &l);
	assert_int_equal(l.record.head.flags, LOOK_TRACED);
	assert_int_equal(l.record.syscall, LOOK_NO_SYSCALL);
	assert_int_equal(l.record.on.kind, LOOK_ON_TRACER);
	assert_int_equal(l.record.on.number, getpid());
	assert_memory_equal(l.record.on.name, "test-bpf-looks", sizeof("test-bpf-looks"));
	assert_int_equal(ptrace(PTRACE_DETACH, f.pid, 0, 0), 0);
	snprintf(path, sizeof(path), "%s/cgroup.freeze", f.dir);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("1", file);
	fflush(file);
	for (int i = 0; i < 200 && !(l.record.head.flags & LOOK_FROZEN); i++) {
		harness_sleep_ms(10);
		read_looks(f.h, f.pid, &l);
	}
	assert_int_equal(l.record.head.flags, LOOK_FROZEN);
	fputs("0", file);
	fclose(file);
	harness_sleep_ms(100);
	read_asleep(f.h, f.pid, &l);
	assert_int_equal(l.record.head.flags & LOOK_HALTED, 0);
	end(&f);
}

static void nobody_else_is_told_of(void **state)
{
	struct fixture f = begin_looks("sleep");
	pid_t out = harness_spawn("t-out", "sleep", NULL);
	struct seen_look l;

	read_asleep(f.h, f.pid, &l);
	assert_int_equal(read_looks(f.h, out, &l), 1);
	assert_false(l.told);
	f.h->slots[SLOT].looked = 0;
	assert_int_equal(read_looks(f.h, f.pid, &l), 0);
	f.h->slots[SLOT].looked = 1;
	f.h->slots[SLOT].flags = SLOT_BY_PROCESS;
	assert_int_equal(read_looks(f.h, f.pid, &l), 0);
	f.h->slots[SLOT].flags = 0;
	assert_int_equal(read_looks(f.h, f.pid, &l), 1);
	/* The recorder's pass is over all watches that are there, by the same flags. */
	f.h->slots[SLOT].looked = 0;
	f.h->control->look_mode = LOOK_ALL;
	assert_int_equal(read_looks(f.h, out, &l), 1);
	assert_false(l.told);
	f.h->slots[SLOT].flags = SLOT_BY_PROCESS;
	assert_int_equal(read_looks(f.h, f.pid, &l), 0);
	f.h->slots[SLOT].flags = 0;
	f.h->slots[SLOT].state = SLOT_IDLE;
	assert_int_equal(read_looks(f.h, f.pid, &l), 0);
	f.h->slots[SLOT].state = SLOT_RECORDER;
	assert_int_equal(read_looks(f.h, f.pid, &l), 1);
	f.h->control->armed = 0;
	assert_int_equal(read_looks(f.h, f.pid, &l), 0);
	end(&f);
}

/* Whoever runs is on a CPU or waits for one, never for something else. */
static void who_runs_does_not_sleep(void **state)
{
	struct fixture f = begin_looks("burn");
	struct seen_look l;

	for (int i = 0; i < 100; i++) {
		f.h->control->look_epoch++;
		read_looks(f.h, f.pid, &l);
		if (l.told)
			assert_true(l.record.head.flags & LOOK_RUNNABLE);
	}
	end(&f);
}

/* Keeps it to CPU 0, where other threads get little. */
static void place(pid_t pid)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	assert_int_equal(sched_setaffinity(pid, sizeof(one), &one), 0);
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, -20), 0);
}

/* Returns in how many of 50 passes on CPU 0 the thread was found waiting. */
static int count_waits(struct fixture *f)
{
	struct seen_look l;
	int waits = 0;

	for (int i = 0; i < 50; i++) {
		harness_sleep_ms(4); /* the others run */
		f->h->control->look_epoch++;
		read_looks(f->h, f->pid, &l);
		waits += l.told;
	}
	return waits;
}

static void spin(void *unused)
{
	(void)unused;
	for (;;)
		;
}

/* Adds up how long a thread has run, or has waited for a CPU (/proc/PID/schedstat). */
static uint64_t read_schedstat(pid_t pid, bool waited)
{
	_cleanup_free_ char *text = NULL;
	unsigned long long ran_ns, waited_ns;
	char path[64];
	size_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	assert_int_equal(io_read_file(AT_FDCWD, path, 4096, &text, &bytes), 0);
	assert_int_equal(sscanf(text, "%llu %llu", &ran_ns, &waited_ns), 2);
	return waited ? waited_ns : ran_ns;
}

/*
 * Returns in how many passes a busy thread waits that has the reader's CPU to itself; -1 where
 * other work takes that CPU: then the thread waits for it too.
 */
static int count_alone(struct fixture *f)
{
	for (int i = 0; i < 20; i++) {
		uint64_t ran_ns = read_schedstat(getpid(), false);
		uint64_t waited_ns = read_schedstat(f->pid, true);
		int waits = count_waits(f);

		ran_ns = read_schedstat(getpid(), false) - ran_ns;
		waited_ns = read_schedstat(f->pid, true) - waited_ns;
		if (waited_ns < ran_ns + ran_ns / 10)
			return waits;
	}
	return -1;
}

/* The reader takes the CPU of a thread that would run without it; one that waits anyway is found.
 */
static void a_reader_does_not_see_itself(void **state)
{
	struct fixture f = begin_looks("burn");
	cpu_set_t before;
	pid_t other;
	int alone, beside;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	place(0);
	place(f.pid);
	alone = count_alone(&f);
	other = harness_start(spin, NULL, f.dir);
	place(other);
	beside = count_waits(&f);
	harness_kill(other);
	setpriority(PRIO_PROCESS, 0, 0);
	sched_setaffinity(0, sizeof(before), &before);
	end(&f);
	if (alone < 0)
		skip();
	assert_in_range(alone, 0, 10);
	assert_in_range(beside, 12, 50);
}

/* By a table the stack is walked as in a tick; without frame pointers it would end at once. */
static void a_table_leads_the_walk(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct ranges_record record = { 0 };
	struct seen_look l;

	read_asleep(f.h, f.pid, &l);
	assert_false(l.record.sample.flags & SAMPLE_UNWOUND);
	claim(&f, false);
	assert_true(fill(&f, &record));
	lie(&f,
	    (struct unwind_rule){ .cfa = UNWIND_CFA_SP,
				  .cfa_offset = 8,
				  .saved = UNWIND_SAVED(UNWIND_RA_CFA, UNWIND_FP_SAME) },
	    UNWIND_KIND_ROWS_ALONE);
	publish(&f, record.table_generation);
	/* Another table is another stack, also for a thread that has not run. */
	read_looks(f.h, f.pid, &l);
	assert_false(l.record.head.flags & LOOK_AS_BEFORE);
	assert_true(l.record.sample.flags & SAMPLE_UNWOUND);
	assert_int_equal(l.record.sample.table_generation, (uint32_t)record.table_generation);
	assert_in_range(l.record.sample.user_frames, 1, STACK_FRAMES);
	assert_all_executable(&f, &l);
	end(&f);
}

/*
 * A process that hangs has no tick that would add it to `targets`. A session's pass does, so that
 * it gets a table; a pass of the recorder does not.
 */
static void who_hangs_becomes_a_target(void **state)
{
	struct fixture f = begin_looks("sleep");
	int targets = bpf_map__fd(f.h->skel->maps.targets);
	const struct process_key key = { .tgid = (uint32_t)f.pid,
					 .start_ns = harness_start_ns(f.h, f.pid) };
	struct target target = { 0 };
	struct seen_look l;

	bpf_map_delete_elem(targets, &key);
	f.h->control->look_mode = LOOK_ALL;
	read_asleep(f.h, f.pid, &l);
	assert_true(bpf_map_lookup_elem(targets, &key, &target) < 0);
	f.h->control->look_mode = LOOK_SESSIONS;
	f.h->control->look_epoch++;
	read_asleep(f.h, f.pid, &l);
	assert_int_equal(bpf_map_lookup_elem(targets, &key, &target), 0);
	assert_int_equal(target.rule, NO_SLOT);
	assert_int_equal(target.flags, 0);
	/* What the consumer has written there stays. */
	target.unwind = 7;
	assert_int_equal(bpf_map_update_elem(targets, &key, &target, BPF_EXIST), 0);
	f.h->control->look_epoch++;
	read_asleep(f.h, f.pid, &l);
	assert_int_equal(bpf_map_lookup_elem(targets, &key, &target), 0);
	assert_int_equal(target.unwind, 7);
	end(&f);
}

#define WORDS 64

/* Memory of a child that stands in pause(2). */
struct stand {
	uint64_t words[WORDS]; /* its stack */
	uint64_t lie;	       /* each return address there */
	uint8_t data[16];      /* a call instruction, in memory that is not executable */
};

/* Its stack is a chain of frame pointers, each with the lie behind it. */
static void stand_on_lies(void *context)
{
	struct stand *s = context;

	for (size_t i = 0; i + 1 < WORDS; i += 2) {
		s->words[i] = (uintptr_t)&s->words[i + 2];
		s->words[i + 1] = s->lie;
	}
#if defined(__x86_64__)
	__asm__ volatile(
		"mov %0, %%rsp\n\tmov %0, %%rbp\n1:\tmov $34, %%eax\n\tsyscall\n\tjmp 1b" ::"r"(
			s->words));
#endif
	_exit(1);
}

/* Returns how many user frames of a stack of such lies are reported. */
static uint32_t count_frames(uint64_t (*choose)(struct stand *s))
{
	struct fixture f = begin_looks("sleep");
	struct stand *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct seen_look l;

	assert_ptr_not_equal(s, MAP_FAILED);
	s->lie = choose(s);
	harness_kill(f.pid);
	f.pid = harness_start(stand_on_lies, s, f.dir);
	read_asleep(f.h, f.pid, &l);
	assert_int_equal(l.record.syscall, SYS_pause);
	end(&f);
	munmap(s, sizeof(*s));
	return l.record.sample.user_frames;
}

static uint64_t data_behind_a_call(struct stand *s)
{
	s->data[3] = 0xe8;
	return (uintptr_t)&s->data[8];
}

static uint64_t code_behind_no_call(struct stand *s)
{
	return (uintptr_t)stand_on_lies + 1;
}

/*
 * The word is the truth here: the possible targets of a chain of pointers are reported, to the end.
 */
static uint64_t code_behind_a_call(struct stand *s)
{
	const uint8_t *code = (const uint8_t *)count_frames;

	for (size_t i = 0; i < 256; i++)
		if (code[i] == 0xe8)
			return (uintptr_t)code + i + 5;
	fail_msg("no call");
	return 0;
}

static void memory_is_not_told(void **state)
{
	assert_int_equal(count_frames(data_behind_a_call), 1);
}

static void only_callers_are_told(void **state)
{
	assert_int_equal(count_frames(code_behind_no_call), 1);
	assert_true(count_frames(code_behind_a_call) > WORDS / 4);
}

struct told {
	char path[128];
	volatile int ready;
};

/* Waits in pause(2) with a stack of pages that are never served. */
static void stand_on_held(void *context)
{
	struct told *told = context;
	int fd = open(told->path, O_RDONLY | O_CLOEXEC);
	char *at = mmap(NULL, HELD_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	if (fd < 0 || at == MAP_FAILED)
		_exit(41);
	told->ready = 1;
#if defined(__x86_64__)
	__asm__ volatile(
		"mov %0, %%rsp\n\tmov %0, %%rbp\n1:\tmov $34, %%eax\n\tsyscall\n\tjmp 1b" ::"r"(
			at + HELD_FILE_BYTES / 2));
#endif
	_exit(1);
}

/* Looks in a process of its own, which may be ended when it does not come back. */
static uint64_t look_apart(struct fixture *f, pid_t held, pid_t other, struct held_file *file)
{
	uint64_t begun_ns = harness_now_ns(), took_ns;
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct seen_look l, o;

		f->h->control->look_epoch++;
		read_looks(f->h, held, &l);
		f->h->control->look_epoch++;
		read_looks(f->h, other, &o);
		_exit(!l.told || l.record.sample.user_frames != 1 || !o.told ||
		      o.record.sample.user_frames < 1);
	}
	took_ns = held_file_wait(file, pid, begun_ns, &status);
	assert_int_equal(status, 0);
	return took_ns;
}

static void nobody_is_waited_for(void **state)
{
	struct told *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct held_file file = { .server = -1 };
	struct fixture f;
	struct seen_look l;
	uint64_t ns;
	pid_t held;

	assert_ptr_not_equal(told, MAP_FAILED);
	if (!held_file_begin(&file)) {
		print_message("no FUSE file system can be mounted here\n");
		skip();
	}
	snprintf(told->path, sizeof(told->path), "%s/%s", file.dir, HELD_FILE_NAME);
	f = begin_looks("sleep");
	held = harness_start(stand_on_held, told, f.dir);
	for (int i = 0; i < 200 && !told->ready; i++)
		harness_sleep_ms(10);
	assert_true(told->ready);
	harness_sleep_ms(100);
	read_asleep(f.h, f.pid, &l);
	ns = look_apart(&f, held, f.pid, &file);
	print_message("%.1f ms\n", (double)ns / 1e6);
	assert_in_range(ns, 0, BOUND_NS);
	harness_kill(held);
	end(&f);
	held_file_end(&file);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleeping_thread_is_told_of),
		cmocka_unit_test(who_has_not_run_is_as_before),
		cmocka_unit_test(sender_is_named),
		cmocka_unit_test(who_is_halted),
		cmocka_unit_test(nobody_else_is_told_of),
		cmocka_unit_test(who_runs_does_not_sleep),
		cmocka_unit_test(a_reader_does_not_see_itself),
		cmocka_unit_test(a_table_leads_the_walk),
		cmocka_unit_test(who_hangs_becomes_a_target),
		cmocka_unit_test(memory_is_not_told),
		cmocka_unit_test(only_callers_are_told),
		cmocka_unit_test(nobody_is_waited_for),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
