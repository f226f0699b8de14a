/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel_work.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/tools/macro.h"

#define BLOCK_BYTES 65536
#define BLOCKS	    64

static char block[BLOCK_BYTES] __attribute__((aligned(4096)));

const char *kernel_work_dir = "/var/tmp";

static _Noreturn void leave(const char *what)
{
	perror(what);
	_exit(1);
}

/* A child that ends with its parent. */
static pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		leave("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it has ended before: without an event */
			_exit(0);
	}
	return pid;
}

/* A file without a name, on the disk. */
static int open_file(int flags)
{
	int fd = open(kernel_work_dir, O_TMPFILE | O_RDWR | flags, 0600);

	if (fd < 0)
		leave(kernel_work_dir);
	return fd;
}

static void write_and_sync(void *context)
{
	int fd = open_file(0);

	for (;;) {
		for (off_t i = 0; i < BLOCKS; i++)
			if (pwrite(fd, block, sizeof(block), i * BLOCK_BYTES) < 0)
				leave("pwrite");
		fdatasync(fd);
		if (ftruncate(fd, 0) < 0)
			leave("ftruncate");
	}
}

static void read_cached(void *context)
{
	int fd = open_file(0);

	for (off_t i = 0; i < BLOCKS; i++)
		if (pwrite(fd, block, sizeof(block), i * BLOCK_BYTES) < 0)
			leave("pwrite");
	for (;;)
		for (off_t i = 0; i < BLOCKS; i++)
			if (pread(fd, block, sizeof(block), i * BLOCK_BYTES) < 0)
				leave("pread");
}

/* The destination's pages are taken away each time: the copy to user memory faults. */
static void fault_in_copies(void *context)
{
	char *to =
		mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open_file(0);

	if (to == MAP_FAILED || pwrite(fd, block, sizeof(block), 0) < 0)
		leave("fault_in_copies");
	for (;;) {
		madvise(to, BLOCK_BYTES, MADV_DONTNEED);
		if (pread(fd, to, BLOCK_BYTES, 0) < 0)
			leave("pread");
	}
}

static void map_files(void *context)
{
	int fd = open_file(0);

	if (ftruncate(fd, BLOCK_BYTES) < 0)
		leave("ftruncate");
	for (;;) {
		char *at = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (at == MAP_FAILED)
			leave("mmap");
		for (size_t i = 0; i < BLOCK_BYTES; i += 4096)
			at[i]++;
		munmap(at, BLOCK_BYTES);
	}
}

static void make_processes(void *context)
{
	for (;;) {
		pid_t pid = fork_child();

		if (pid == 0) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		waitpid(pid, NULL, 0);
	}
}

static void *end_at_once(void *context)
{
	return NULL;
}

static void make_threads(void *context)
{
	for (;;) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, end_at_once, NULL) == 0)
			pthread_join(thread, NULL);
	}
}

static void throw_bytes(int in, int out, size_t bytes)
{
	char buffer[4096];

	for (;;)
		if (write(out, buffer, bytes) < 0 || read(in, buffer, sizeof(buffer)) < 0)
			leave("throw_bytes");
}

static void pipe_bytes(void *context)
{
	int there[2], back[2];

	if (pipe(there) < 0 || pipe(back) < 0)
		leave("pipe");
	if (fork_child() == 0)
		throw_bytes(there[0], back[1], 1);
	throw_bytes(back[0], there[1], 1);
}

static void unix_bytes(void *context)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		leave("socketpair");
	if (fork_child() == 0)
		throw_bytes(pair[0], pair[0], 1000);
	throw_bytes(pair[1], pair[1], 1000);
}

/* A listening socket on a free port of the loopback. */
static int listen_somewhere(struct sockaddr_in *ret_address)
{
	socklen_t bytes = sizeof(*ret_address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*ret_address = (struct sockaddr_in){ .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)ret_address, bytes) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)ret_address, &bytes) < 0)
		leave("listen");
	return fd;
}

static int connect_to(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		leave("connect");
	return fd;
}

static void tcp_bytes(void *context)
{
	struct sockaddr_in address;
	int listener = listen_somewhere(&address), fd;

	if (fork_child() == 0) {
		fd = connect_to(&address);
		throw_bytes(fd, fd, 100);
	}
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		leave("accept");
	throw_bytes(fd, fd, 100);
}

static void tcp_connections(void *context)
{
	struct sockaddr_in address;
	int listener = listen_somewhere(&address);

	for (;;) {
		int one = connect_to(&address), other = accept(listener, NULL, NULL);
		struct linger at_once = { .l_onoff = 1 };

		setsockopt(one, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(one);
		close(other);
	}
}

static void wait_for_timers(void *context)
{
	struct itimerspec often = { { 0, 100000 }, { 0, 100000 } };
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), set = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN };
	uint64_t times;

	if (timer < 0 || set < 0 || timerfd_settime(timer, 0, &often, NULL) < 0 ||
	    epoll_ctl(set, EPOLL_CTL_ADD, timer, &event) < 0)
		leave("timerfd");
	for (;;)
		if (epoll_wait(set, &event, 1, -1) < 0 || read(timer, &times, sizeof(times)) < 0)
			leave("epoll_wait");
}

static volatile sig_atomic_t alarms;

static void note_alarm(int number)
{
	alarms++;
}

static void take_signals(void *context)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } };

	signal(SIGALRM, note_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	for (;;)
		kill(getpid(), SIGALRM);
}

static uint32_t word;

static void *wake_waiter(void *context)
{
	for (;;) {
		__atomic_add_fetch(&word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void wait_in_futex(void *context)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wake_waiter, NULL))
		leave("pthread_create");
	for (;;)
		syscall(SYS_futex, &word, FUTEX_WAIT, word, NULL, NULL, 0);
}

static void walk_names(void *context)
{
	struct stat s;
	char path[64];

	for (int i = 0;; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d/%d", i % 8, i);
		stat(path, &s);
		stat("/usr/lib/../share/./doc", &s);
		open("/usr/share/doc/none", O_RDONLY | O_CLOEXEC);
	}
}

/* Ring of io_uring(7), mapped. */
struct ring {
	int fd;
	struct io_uring_params params;
	char *memory;
	struct io_uring_sqe *requests;
};

static struct ring make_ring(void)
{
	struct ring r = {};
	const struct io_uring_params *p = &r.params;
	size_t submit, complete;

	r.fd = (int)syscall(SYS_io_uring_setup, 8, &r.params);
	if (r.fd < 0) /* not in this kernel, or forbidden */
		wait_for_timers(NULL);
	submit = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	complete = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	/* One mapping holds both rings (IORING_FEAT_SINGLE_MMAP, Linux 5.4). */
	r.memory = mmap(NULL, submit > complete ? submit : complete, PROT_READ | PROT_WRITE,
			MAP_SHARED, r.fd, IORING_OFF_SQ_RING);
	r.requests = mmap(NULL, p->sq_entries * sizeof(*r.requests), PROT_READ | PROT_WRITE,
			  MAP_SHARED, r.fd, IORING_OFF_SQES);
	if (r.memory == MAP_FAILED || r.requests == MAP_FAILED)
		leave("io_uring");
	return r;
}

static uint32_t *ring_word(struct ring *r, uint32_t offset)
{
	return (uint32_t *)(r->memory + offset);
}

/* Makes one request and waits for its answer. */
static void ask_ring(struct ring *r, const struct io_uring_sqe *request)
{
	const struct io_uring_params *p = &r->params;
	uint32_t *tail = ring_word(r, p->sq_off.tail), i = *tail & (p->sq_entries - 1);

	r->requests[i] = *request;
	ring_word(r, p->sq_off.array)[i] = i;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, r->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	__atomic_store_n(ring_word(r, p->cq_off.head),
			 __atomic_load_n(ring_word(r, p->cq_off.tail), __ATOMIC_ACQUIRE),
			 __ATOMIC_RELEASE);
}

/* Empty requests: what a ring does around each. */
static void submit_to_ring(void *context)
{
	const struct io_uring_sqe nothing = { .opcode = IORING_OP_NOP };
	struct ring r = make_ring();

	for (;;)
		ask_ring(&r, &nothing);
}

/* Writes and reads of a file, at once and by the ring's own threads. */
static void move_by_ring(void *context)
{
	struct io_uring_sqe request = { .addr = (uintptr_t)block, .len = BLOCK_BYTES };
	struct ring r = make_ring();

	request.fd = open_file(0);
	for (int i = 0;; i++) {
		request.opcode = i & 1 ? IORING_OP_READ : IORING_OP_WRITE;
		request.flags = i & 2 ? IOSQE_ASYNC : 0;
		request.off = (uint64_t)(i / 4 % BLOCKS) * BLOCK_BYTES;
		ask_ring(&r, &request);
	}
}

const struct kernel_work kernel_works[] = {
	{ "write", write_and_sync },	{ "read", read_cached },       { "copy", fault_in_copies },
	{ "map", map_files },		{ "fork", make_processes },    { "threads", make_threads },
	{ "pipe", pipe_bytes },		{ "unix", unix_bytes },	       { "tcp", tcp_bytes },
	{ "connect", tcp_connections }, { "timers", wait_for_timers }, { "signals", take_signals },
	{ "futex", wait_in_futex },	{ "names", walk_names },       { "ring", submit_to_ring },
	{ "ring_files", move_by_ring },
};
const size_t kernel_works_count = ARRAY_SIZE(kernel_works);
