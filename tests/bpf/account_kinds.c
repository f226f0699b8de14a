/* SPDX-License-Identifier: BSD-2-Clause */
/* account_kinds.c: the kind of wait that the kernel side finds, against the true one. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "account_fixture.h"

HARNESS_LOADS("account_*", "orc_symbols");

static int pipe_fds[2], socket_fds[2];

static void block_lock(void *context)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
}

static void block_pipe(void *context)
{
	char byte;

	(void)!read(pipe_fds[0], &byte, 1);
}

static void block_receive(void *context)
{
	char byte;

	recv(socket_fds[0], &byte, 1, 0);
}

static void block_read(void *context)
{
	char byte;

	(void)!read(socket_fds[0], &byte, 1);
}

static void block_poll(void *context)
{
	struct pollfd fd = { .fd = pipe_fds[0], .events = POLLIN };

	poll(&fd, 1, -1);
}

static void block_child(void *context)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		block_sleep(NULL);
	}
	waitpid(pid, NULL, 0);
}

static void block_stopped(void *context)
{
	raise(SIGSTOP);
}

/* Its tracer is the test itself, which lets it stand. */
static void block_traced(void *context)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
}

/* Touches a page that is never filled in. */
static void block_fault(void *context)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	volatile char *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)page, 4096 },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &range) < 0)
		_exit(1);
	*page = 1;
}

static void block_nothing(void *context)
{
	for (volatile int i = 0;; i++)
		;
}

static const struct kind {
	void (*block)(void *context);
	uint32_t part;
} kinds[] = {
	{ block_sleep, ACCOUNT_SLEEP },	  { block_lock, ACCOUNT_LOCK },
	{ block_pipe, ACCOUNT_PIPE },	  { block_receive, ACCOUNT_SOCKET },
	{ block_read, ACCOUNT_SOCKET },	  { block_poll, ACCOUNT_IDLE },
	{ block_child, ACCOUNT_CHILD },	  { block_stopped, ACCOUNT_STOPPED },
	{ block_traced, ACCOUNT_TRACED }, { block_fault, ACCOUNT_FAULT },
};

/* Checks that of a time all but the slack was a wait of this kind. */
static void assert_waited(const struct account_record *before, const struct account_record *after,
			  uint32_t part)
{
	const struct time_account *a = &after->head.account;

	assert_int_equal(a->first_ns, before->head.account.first_ns);
	assert_int_equal(sum_parts(a), a->since_ns - a->first_ns);
	assert_near_ms(a->part_ns[part] - before->head.account.part_ns[part],
		       a->since_ns - before->head.account.since_ns);
}

/* Who sleeps since before: the reading enters it, and the kind is that of its wait. */
static void kinds_since_before(void **state)
{
	struct account_record before[ARRAY_SIZE(kinds)], after;
	pid_t pid[ARRAY_SIZE(kinds)];
	struct fixture f = begin(NULL, 0);

	bpf_link__destroy(f.link);
	f.link = NULL;
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		pid[i] = harness_start(kinds[i].block, NULL, f.dir);
	harness_sleep_ms(300);
	f.link = bpf_program__attach(f.h->skel->progs.account_switch);
	assert_non_null(f.link);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_true(read_accounts(&f, pid[i], &before[i]) >= ARRAY_SIZE(kinds));
	harness_sleep_ms(500);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		read_accounts(&f, pid[i], &after);
		assert_waited(&before[i], &after, kinds[i].part);
		assert_true(after.head.open_ns >= 500 * MSEC);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		harness_kill(pid[i]);
	end(&f);
}

/* Reads the kernel's symbols, which distinguish a page fault from an interrupt. */
static void learn_symbols(const struct fixture *f)
{
	char *bytes = NULL;

	assert_int_equal(harness_read(f->h->skel->progs.orc_symbols, &bytes), 0);
	free(bytes);
}

static void judge_switches(const struct harness_options *options)
{
	struct account_record before[ARRAY_SIZE(kinds)], after;
	pid_t pid[ARRAY_SIZE(kinds)];
	struct fixture f = begin(options, 0);

	learn_symbols(&f);

	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_fds), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		pid[i] = harness_start(kinds[i].block, NULL, f.dir);
	harness_sleep_ms(300);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		read_accounts(&f, pid[i], &before[i]);
	harness_sleep_ms(500);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		read_accounts(&f, pid[i], &after);
		assert_waited(&before[i], &after, kinds[i].part);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		harness_kill(pid[i]);
	end(&f);
}

/* Who goes to sleep while the program is attached: it finds the kind itself. */
static void kinds_of_switches(void **state)
{
	judge_switches(NULL);
}

/* The same as on kernels where memory behind a number can be read by a helper only. */
static void kinds_without_cast(void **state)
{
	judge_switches(&(struct harness_options){ .vmas_tree = true });
}

static void write_freeze(const struct fixture *f, const char *word)
{
	char path[4200];
	FILE *file;

	snprintf(path, sizeof(path), "%s/cgroup.freeze", f->dir);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(word, file);
	assert_int_equal(fclose(file), 0);
}

/* A cgroup is frozen: neither the program that burns CPU nor the one that sleeps is in a fault. */
static void frozen(void **state)
{
	const int made = pipe(pipe_fds);
	struct fixture f = begin(NULL, 0);
	struct account_record before, after;
	const pid_t pid[] = { harness_start(block_nothing, NULL, f.dir),
			      harness_start(block_pipe, NULL, f.dir),
			      harness_start(block_stopped, NULL, f.dir) };
	static const uint32_t parts[] = { ACCOUNT_FROZEN, ACCOUNT_FROZEN, ACCOUNT_STOPPED };

	assert_int_equal(made, 0);
	harness_sleep_ms(200);
	write_freeze(&f, "1");
	harness_sleep_ms(200);
	for (size_t i = 0; i < ARRAY_SIZE(pid); i++) {
		read_accounts(&f, pid[i], &before);
		harness_sleep_ms(300);
		read_accounts(&f, pid[i], &after);
		assert_waited(&before, &after, parts[i]);
	}
	write_freeze(&f, "0");
	harness_sleep_ms(100);
	read_accounts(&f, pid[1], &before);
	harness_sleep_ms(300);
	read_accounts(&f, pid[1], &after);
	assert_waited(&before, &after, ACCOUNT_PIPE);
	for (size_t i = 0; i < ARRAY_SIZE(pid); i++)
		harness_kill(pid[i]);
	end(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_since_before),
		cmocka_unit_test(kinds_of_switches),
		cmocka_unit_test(kinds_without_cast),
		cmocka_unit_test(frozen),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
