/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * waits SECONDS FILE: one thread for each kind of wait, each in a function with the name of the
 * wait, from the start to the end: nap_on_purpose sleeps; take_ledger_lock waits for the lock that
 * hold_ledger_lock holds; read_empty_pipe, receive_no_answer, ask_catalog (a unix socket, in poll),
 * poll_for_work, select_for_work and wait_for_child wait for an event that never comes;
 * sync_journal writes FILE and syncs it again and again. Stack of each: begin_thread > FUNCTION.
 * Writes "ready" when all are there.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "workload.h"

static pthread_mutex_t ledger_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_there;
static uint32_t seconds;
static int held, journal;

NAMED static void nap_on_purpose(void)
{
	sleep(seconds);
	KEEP_FRAME();
}

NAMED static void hold_ledger_lock(void)
{
	pthread_mutex_lock(&ledger_lock);
	__atomic_store_n(&held, 1, __ATOMIC_RELEASE);
	sleep(seconds);
	pthread_mutex_unlock(&ledger_lock);
}

NAMED static void take_ledger_lock(void)
{
	while (!__atomic_load_n(&held, __ATOMIC_ACQUIRE))
		usleep(1000);
	pthread_mutex_lock(&ledger_lock);
	pthread_mutex_unlock(&ledger_lock);
}

NAMED static void read_empty_pipe(void)
{
	int ends[2];
	char byte;

	if (pipe(ends) == 0 && read(ends[0], &byte, 1) < 0)
		_exit(3);
	KEEP_FRAME();
}

NAMED static void receive_no_answer(void)
{
	int ends[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && recv(ends[0], &byte, 1, 0) < 0)
		_exit(3);
	KEEP_FRAME();
}

NAMED static void poll_for_work(void)
{
	struct pollfd none = { .fd = -1 };

	poll(&none, 1, (int)seconds * 1000);
	KEEP_FRAME();
}

/* Connects to itself by an abstract name, and waits for an answer. */
NAMED static void ask_catalog(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int bytes = 1 + snprintf(at.sun_path + 1, 64, "trocar-catalog-%d", getpid());
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)bytes);

	if (bind(listener, (struct sockaddr *)&at, n) || listen(listener, 1) ||
	    connect(fd, (struct sockaddr *)&at, n) || send(fd, "?", 1, 0) != 1)
		_exit(3);
	poll(&answer, 1, (int)seconds * 1000);
	KEEP_FRAME();
}

NAMED static void select_for_work(void)
{
	struct timeval time = { .tv_sec = seconds };
	int ends[2], work;
	fd_set reads;

	work = eventfd(0, EFD_CLOEXEC);
	if (work < 0 || pipe(ends) < 0)
		_exit(3);
	FD_ZERO(&reads);
	FD_SET(work, &reads);
	FD_SET(ends[0], &reads);
	select(ends[0] + 1, &reads, NULL, NULL, &time);
	KEEP_FRAME();
}

NAMED static void wait_for_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(seconds);
		pause();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	KEEP_FRAME();
}

NAMED static void sync_journal(void)
{
	static char block[65536];

	while (pwrite(journal, block, sizeof(block), 0) == sizeof(block) && fsync(journal) == 0)
		;
}

static void *begin_thread(void *context)
{
	void (*wait)(void) = (void (*)(void))context;

	pthread_barrier_wait(&all_there);
	wait();
	KEEP_FRAME();
	return NULL;
}

int main(int argc, char **argv)
{
	static void (*const all[])(void) = { nap_on_purpose,  hold_ledger_lock,	 take_ledger_lock,
					     read_empty_pipe, receive_no_answer, poll_for_work,
					     ask_catalog,     select_for_work,	 wait_for_child,
					     sync_journal };
	const unsigned int count = sizeof(all) / sizeof(*all);
	pthread_t thread;

	workload_deadline(argc, argv, "waits SECONDS FILE");
	seconds = workload_number(argc, argv, 1, 1, 1, WORKLOAD_SECONDS_MAX);
	journal = argc > 2 ? open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (journal < 0 || pthread_barrier_init(&all_there, NULL, count + 1))
		return 2;
	for (unsigned int i = 0; i < count; i++)
		if (pthread_create(&thread, NULL, begin_thread, (void *)all[i]))
			return 2;
	pthread_barrier_wait(&all_there);
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 2;
	sleep(seconds);
	return 0;
}
