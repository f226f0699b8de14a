/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * socket_fixture.h: a process of the test's in a watched cgroup with a running session, and the
 * kernel side's reports of its sockets. Functions assert.
 */
#ifndef TROCAR_TESTS_BPF_SOCKET_FIXTURE_H
#define TROCAR_TESTS_BPF_SOCKET_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

#define SLOT	 5
#define TOLD_MAX 20000

#define STATE_ESTABLISHED 1
#define STATE_CLOSE_WAIT  8
#define STATE_LISTEN	  10

/* The records of one reading. */
struct told {
	struct socket_record items[TOLD_MAX];
	size_t count;
	size_t reads, most;	     /* reads that it took, and the most records of one of them */
	uint64_t longest_ns, cpu_ns; /* CPU time of the longest read, and of all */
};

struct fixture {
	struct harness *h;
	struct bpf_link *state;	   /* of socket_state; NULL: it is not attached */
	struct bpf_link *iterator; /* of sockets */
	struct ring_buffer *ring;
	char dir[4096], other_dir[4096];
	uint64_t id, other_id;
	struct told told; /* of the last reading */
};

static inline int keep_record(void *context, void *data, size_t bytes)
{
	struct told *told = context;

	assert_int_equal(bytes, sizeof(told->items[0]));
	assert_true(told->count < TOLD_MAX);
	memcpy(&told->items[told->count++], data, bytes);
	return 0;
}

/* A watched group in which a session runs that looks at sockets, and another one beside it. */
static inline struct fixture *begin(const struct harness_options *options)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->h = harness_new(options);
	f->id = harness_group(f->h, "sockets", f->dir);
	f->other_id = harness_group(f->h, "sockets-other", f->other_dir);
	harness_watch(f->h, f->id, SLOT, SLOT_CAPTURE, 0);
	f->h->slots[SLOT].session = 1;
	f->h->control->heartbeat_ns = harness_now_ns();
	f->h->control->stale_ns = 60000000000u;
	f->h->control->sockets = 1;
	f->ring = ring_buffer__new(bpf_map__fd(f->h->skel->maps.socket_looks), keep_record,
				   &f->told, NULL);
	assert_non_null(f->ring);
	f->iterator = harness_iterator(f->h->skel->progs.sockets);
	assert_non_null(f->iterator);
	return f;
}

static inline void attach_state(struct fixture *f)
{
	f->state = bpf_program__attach(f->h->skel->progs.socket_state);
	assert_non_null(f->state);
}

static inline void end(struct fixture *f)
{
	bpf_link__destroy(f->state);
	bpf_link__destroy(f->iterator);
	ring_buffer__free(f->ring);
	harness_kill_all();
	harness_free(f->h);
	free(f);
}

static inline uint64_t own_cpu_ns(void)
{
	struct timespec at;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at), 0);
	return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Makes one pass, and keeps its records. */
static inline const struct told *look(struct fixture *f)
{
	_cleanup_close_ int fd = bpf_iter_create(bpf_link__fd(f->iterator));
	uint64_t began_ns, took_ns;
	size_t had;
	char none[16];
	ssize_t n;

	assert_true(fd >= 0);
	memset(&f->told, 0, sizeof(f->told));
	do {
		had = f->told.count;
		began_ns = own_cpu_ns();
		n = read(fd, none, sizeof(none));
		took_ns = own_cpu_ns() - began_ns;
		f->told.longest_ns = MAX(f->told.longest_ns, took_ns);
		f->told.cpu_ns += took_ns;
		assert_true(n == 0 || (n < 0 && errno == EAGAIN));
		ring_buffer__consume(f->ring);
		f->told.reads++;
		f->told.most = MAX(f->told.most, f->told.count - had);
	} while (n);
	return &f->told;
}

/* Returns the record of a socket with this own port in this state; NULL: nothing. */
static inline const struct socket_record *find_told(const struct fixture *f, uint16_t port,
						    uint8_t state)
{
	for (size_t i = 0; i < f->told.count; i++)
		if (f->told.items[i].local_port == port && f->told.items[i].state == state)
			return &f->told.items[i];
	return NULL;
}

/* Returns the sums of a key: an address of the loopback in `family`; all zeros: there are none. */
static inline struct socket_sums find_sums(const struct fixture *f, enum socket_way way,
					   uint8_t family, uint16_t port)
{
	struct socket_key key = {
		.slot = SLOT, .port = port, .family = family, .way = (uint8_t)way
	};
	struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	struct socket_sums sums = {};

	if (family == AF_INET)
		memcpy(key.address, &loopback, sizeof(loopback));
	else
		memcpy(key.address, &in6addr_loopback, sizeof(in6addr_loopback));
	bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.socket_sums), &key, &sums);
	return sums;
}

/* Returns how many elements a map has. */
static inline size_t count_elements(const struct bpf_map *map)
{
	char key[64], *last = NULL;
	size_t n = 0;

	assert_true(bpf_map__key_size(map) <= sizeof(key));
	for (; bpf_map_get_next_key(bpf_map__fd(map), last, key) == 0; last = key)
		n++;
	return n;
}

/* The losses of the slot, over all CPUs. */
static inline struct slot_sockets read_losses(const struct fixture *f)
{
	struct slot_sockets each[HARNESS_CPUS] = {}, all = {};
	uint32_t slot = SLOT;

	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.socket_losses), &slot, each), 0);
	for (int i = 0; i < HARNESS_CPUS; i++) {
		for (int k = 0; k < SOCKET_COUNTS_; k++)
			all.rest[k] += each[i].rest[k];
		for (int k = 0; k < SOCKET_LOSSES_; k++)
			all.lost[k] += each[i].lost[k];
	}
	return all;
}

/* ---- a process in the watched cgroup, which follows commands */

enum verb {
	DO_LISTEN,  /* a: the family, b: the backlog; returns the descriptor, and its port in `port`
		     */
	DO_CONNECT, /* a: the family, port: of the loopback; likewise */
	DO_TRY,	    /* as DO_CONNECT, and gives up at once */
	DO_WAIT_OUT, /* as DO_CONNECT; b: asks so often again */
	DO_ACCEPT,   /* a: of the listener */
	DO_SEND,     /* a: the descriptor, b: so many bytes */
	DO_READ,
	DO_CLOSE,
	DO_RESET,     /* closes it with a reset */
	DO_DUPLICATE, /* a: the descriptor, b: so many times */
	DO_FORK,      /* a child that has all descriptors too, and sleeps */
};

struct order {
	enum verb verb;
	int a, b;
	uint16_t port;
};

struct answer {
	int result; /* -errno */
	uint16_t port;
};

struct worker {
	pid_t pid;
	int orders[2], answers[2];
};

static inline int make_address(int family, uint16_t port, struct sockaddr_storage *ret_address)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret_address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret_address;

	memset(ret_address, 0, sizeof(*ret_address));
	if (family == AF_INET) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	v6->sin6_addr = in6addr_loopback;
	return sizeof(*v6);
}

static inline uint16_t port_of(int fd)
{
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &bytes) < 0)
		return 0;
	return ntohs(at.ss_family == AF_INET ? ((struct sockaddr_in *)&at)->sin_port
					     : ((struct sockaddr_in6 *)&at)->sin6_port);
}

/* Binds to the loopback of the family; AF_UNSPEC: to all addresses of both. */
static inline int listen_here(int family, int backlog)
{
	int fd = socket(family == AF_INET ? AF_INET : AF_INET6, SOCK_STREAM, 0), zero = 0;
	struct sockaddr_storage at;
	int bytes = make_address(family == AF_INET ? AF_INET : AF_INET6, 0, &at);

	if (family == AF_UNSPEC) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		((struct sockaddr_in6 *)&at)->sin6_addr = in6addr_any;
	}
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, (socklen_t)bytes) < 0 ||
	    listen(fd, backlog) < 0)
		return -errno;
	return fd;
}

static inline int connect_there(int family, uint16_t port, int again)
{
	struct sockaddr_storage at;
	int bytes = make_address(family, port, &at), fd = socket(family, SOCK_STREAM, 0);
	int one = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (again)
		setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &again, sizeof(again));
	if (connect(fd, (struct sockaddr *)&at, (socklen_t)bytes) == 0)
		return fd;
	bytes = errno;
	close(fd);
	return -bytes;
}

/* Begins to connect, and closes the socket before an answer has come. */
static inline int try_to_connect(int family, uint16_t port)
{
	struct sockaddr_storage at;
	int bytes = make_address(family, port, &at);
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect(fd, (struct sockaddr *)&at, (socklen_t)bytes) == 0 || errno != EINPROGRESS)
		return -EINVAL;
	return close(fd);
}

/* Sends as much as goes without waiting. Returns how much that is. */
static inline int send_bytes(int fd, int bytes)
{
	static char data[65536];
	int done = 0;
	ssize_t n;

	while (done < bytes) {
		n = send(fd, data, (size_t)MIN(bytes - done, (int)sizeof(data)),
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n <= 0)
			break;
		done += (int)n;
	}
	return done;
}

static inline int read_bytes(int fd, int bytes)
{
	static char data[65536];
	int done = 0;
	ssize_t n;

	while (done < bytes) {
		n = recv(fd, data, (size_t)MIN(bytes - done, (int)sizeof(data)), 0);
		if (n <= 0)
			break;
		done += (int)n;
	}
	return done;
}

static inline int reset_connection(int fd)
{
	struct linger at_once = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	return close(fd);
}

static inline int fork_child(void)
{
	pid_t pid = fork();

	while (pid == 0)
		pause();
	return pid;
}

static inline int obey(const struct order *o)
{
	switch (o->verb) {
	case DO_LISTEN:
		return listen_here(o->a, o->b);
	case DO_CONNECT:
	case DO_WAIT_OUT:
		return connect_there(o->a, o->port, o->b);
	case DO_TRY:
		return try_to_connect(o->a, o->port);
	case DO_ACCEPT:
		return accept(o->a, NULL, NULL);
	case DO_SEND:
		return send_bytes(o->a, o->b);
	case DO_READ:
		return read_bytes(o->a, o->b);
	case DO_CLOSE:
		return close(o->a);
	case DO_RESET:
		return reset_connection(o->a);
	case DO_DUPLICATE:
		for (int i = 0; i < o->b; i++)
			if (dup(o->a) < 0)
				return -errno;
		return 0;
	case DO_FORK:
		return fork_child();
	default:
		return -EINVAL;
	}
}

static inline void work(void *context)
{
	const struct worker *w = context;
	struct order o;

	while (read(w->orders[0], &o, sizeof(o)) == sizeof(o)) {
		struct answer a = { .result = obey(&o) };

		if (a.result < 0 && a.result > -4096 && o.verb != DO_CONNECT &&
		    o.verb != DO_WAIT_OUT)
			a.result = -errno;
		if (a.result >= 0 && (o.verb == DO_LISTEN || o.verb == DO_CONNECT))
			a.port = port_of(a.result);
		if (write(w->answers[1], &a, sizeof(a)) < 0)
			_exit(1);
	}
	for (;;)
		pause();
}

/* Begins a process in the cgroup at `dir` (NULL: ours). */
static inline struct worker *begin_worker(const char *dir)
{
	struct worker *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(pipe(w->orders), 0);
	assert_int_equal(pipe(w->answers), 0);
	w->pid = harness_start(work, w, dir);
	return w;
}

static inline struct answer tell(struct worker *w, struct order o)
{
	struct answer a = {};

	assert_int_equal(write(w->orders[1], &o, sizeof(o)), sizeof(o));
	assert_int_equal(read(w->answers[0], &a, sizeof(a)), sizeof(a));
	return a;
}

/* Ends it, and so all of its connections. */
static inline void end_worker(struct worker *w)
{
	harness_kill(w->pid);
	close(w->orders[0]);
	close(w->orders[1]);
	close(w->answers[0]);
	close(w->answers[1]);
	free(w);
}

/* A connection to a listener of another worker. */
struct pair {
	int opened, accepted; /* descriptors of the two workers */
	uint16_t port;	      /* of its opener */
};

static inline struct pair connect_workers(struct worker *from, struct worker *to, int listener,
					  uint16_t port, int family)
{
	struct answer opened = tell(from, (struct order){ DO_CONNECT, family, 0, port });
	struct answer accepted;

	assert_true(opened.result >= 0);
	accepted = tell(to, (struct order){ DO_ACCEPT, listener, 0, 0 });
	assert_true(accepted.result >= 0);
	return (struct pair){ opened.result, accepted.result, opened.port };
}

#endif
