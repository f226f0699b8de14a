// SPDX-License-Identifier: BSD-2-Clause
/*
 * other_ends.c: the processes at the other end of pipes and TCP connections that a thread of a
 * captured cgroup waits on, and of those alone.
 */
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "look_scene.h"

HARNESS_LOADS("looks", "other_ends", "ranges*");

/* Shared by the processes. The test closes its own descriptors, so each end has one holder. */
struct ends {
	int waits, other; /* descriptors: the waiting process closes `other`, the holder `waits` */
	struct sockaddr_in at;
};

#define FIRST_COPY 1000 /* copies of a descriptor have higher numbers than the harness's */

static struct harness *the_harness; /* of the running test */

/* Finds the other ends anew. */
static void walk(void)
{
	struct bpf_link *link = harness_iterator(the_harness->skel->progs.other_ends);
	int fd = bpf_iter_create(bpf_link__fd(link));
	char none[8];
	ssize_t n;

	assert_true(fd >= 0);
	do
		n = read(fd, none, sizeof(none));
	while (n < 0 && errno == EAGAIN);
	assert_int_equal(n, 0);
	close(fd);
	bpf_link__destroy(link);
}

static size_t count_keys(void)
{
	struct end_key key, *last = NULL;
	size_t n = 0;

	while (bpf_map_get_next_key(bpf_map__fd(the_harness->skel->maps.ends), last, &key) == 0) {
		last = &key;
		n++;
	}
	return n;
}

static bool has_key(const struct end_key *key, struct end_value *ret_value)
{
	return bpf_map_lookup_elem(bpf_map__fd(the_harness->skel->maps.ends), key, ret_value) == 0;
}

static void hold(void *context)
{
	const struct ends *e = context;

	close(e->waits);
	for (;;)
		pause();
}

/* Starts a process outside of the captured cgroup that has the other end. */
static pid_t start_holder(struct ends *e)
{
	return harness_start(hold, e, the_harness->group);
}

static void fill_pipe(void *context)
{
	const struct ends *e = context;
	char bytes[4096] = "";

	close(e->other);
	while (write(e->waits, bytes, sizeof(bytes)) > 0)
		;
}

static void read_pipe(void *context)
{
	const struct ends *e = context;
	char byte;

	close(e->other);
	while (read(e->waits, &byte, 1) > 0)
		;
}

/* Starts the waiting process until it waits on an object of this kind, and returns the object. */
static struct look_on wait_on(struct fixture *f, void (*call)(void *context), void *context,
			      uint32_t kind, bool full)
{
	struct seen_look l;

	harness_kill(f->pid);
	f->pid = harness_start(call, context, f->dir);
	for (int i = 0; i < 500; i++) {
		read_asleep(f->h, f->pid, &l);
		if (l.record.on.kind == kind && l.record.on.state >= full)
			break;
		harness_sleep_ms(10);
	}
	assert_int_equal(l.record.on.kind, kind);
	return l.record.on;
}

/* Both ends of a pipe: the reader of a full one, and the writer of an empty one. */
static void ends_of_pipes(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct end_value value;

	the_harness = f.h;
	f.h->control->seeks = 1;
	for (int full = 0; full < 2; full++) {
		struct end_key key = { .kind = full ? END_READER : END_WRITER };
		struct ends e;
		struct look_on on;
		pid_t holder;
		int fds[2];

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		e = (struct ends){ .waits = fds[full], .other = fds[!full] };
		holder = start_holder(&e);
		on = wait_on(&f, full ? fill_pipe : read_pipe, &e, LOOK_ON_PIPE, full);
		close(fds[0]);
		close(fds[1]);
		key.inode = on.inode;
		key.device = on.device;
		assert_true(has_key(&key, &value));
		assert_int_equal(value.slot, SLOT);
		walk();
		assert_true(has_key(&key, &value));
		assert_int_equal(value.count, 1);
		assert_int_equal(value.processes[0].tgid, holder);
		assert_int_equal(value.processes[0].flags, 0);
		assert_true(value.processes[0].comm[0]);
		/* A pass counts anew, and reports a halt. */
		kill(holder, SIGSTOP);
		assert_int_equal(waitpid(holder, NULL, WUNTRACED), holder);
		walk();
		assert_true(has_key(&key, &value));
		assert_int_equal(value.count, 1);
		assert_int_equal(value.processes[0].flags, LOOK_STOPPED);
		harness_kill(holder);
	}
	end(&f);
}

static void ask(void *context)
{
	const struct ends *e = context;
	char byte = 'x';

	close(e->other);
	assert_int_equal(send(e->waits, &byte, 1, MSG_NOSIGNAL), 1);
	recv(e->waits, &byte, 1, 0);
}

static void connect_and_ask(void *context)
{
	struct ends *e = context;

	close(e->other);
	e->waits = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(e->waits, (struct sockaddr *)&e->at, sizeof(e->at)), 0);
	e->other = -1;
	ask(e);
}

static struct end_key tcp_key(const struct look_on *on)
{
	struct end_key key = {
		.kind = END_TCP, .family = AF_INET, .port = on->peer_port, .net = on->net
	};

	memcpy(key.address, on->peer, 4);
	return key;
}

/* The process that has accepted the connection, not one that only listens at its address. */
static void who_accepted(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct sockaddr_in at;
	int listener = listen_at(&at);
	struct pair p = connect_pair(listener, &at);
	struct ends e = { .waits = p.opened, .other = p.accepted };
	struct end_value value;
	struct end_key key;
	struct look_on on;
	pid_t holder;

	the_harness = f.h;
	f.h->control->seeks = 1;
	holder = start_holder(&e);
	close(p.accepted);
	e.other = -1;
	on = wait_on(&f, ask, &e, LOOK_ON_SOCKET, false);
	close(p.opened);
	assert_true(on.net);
	key = tcp_key(&on);
	walk();
	assert_true(has_key(&key, &value));
	/* All three have the listener. */
	assert_int_equal(value.count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(value.processes[i].listens,
				 value.processes[i].tgid != (uint32_t)holder);
	harness_kill(holder);
	walk();
	assert_true(has_key(&key, &value));
	/* The connection has ended with the holder: the waiting process may have ended too. */
	assert_in_range(value.count, 1, 2);
	for (uint32_t i = 0; i < value.count; i++)
		assert_int_equal(value.processes[i].listens, 1);
	close(listener);
	end(&f);
}

/* A connection that is not accepted yet: the listener is at all addresses. */
static void who_listens(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct ends e = { .other = -1 };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t bytes = sizeof(any);
	struct end_value value;
	struct end_key key;
	struct look_on on;

	the_harness = f.h;
	f.h->control->seeks = 1;
	assert_int_equal(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&any, &bytes), 0);
	e.at = any;
	e.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	e.other = listener;
	on = wait_on(&f, connect_and_ask, &e, LOOK_ON_SOCKET, false);
	assert_true(on.asked);
	walk();
	key = tcp_key(&on);
	assert_true(has_key(&key, &value));
	assert_int_equal(value.count, 0);
	key = (struct end_key){ .kind = END_TCP_ANY, .port = on.peer_port, .net = on.net };
	assert_true(has_key(&key, &value));
	assert_int_equal(value.count, 1);
	assert_int_equal(value.processes[0].tgid, getpid());
	assert_int_equal(value.processes[0].listens, 1);
	close(listener);
	end(&f);
}

/* Nothing is sought without a session that wants it, and the table is empty afterwards. */
static void only_for_sessions(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct ends e;
	int fds[2];

	the_harness = f.h;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	e = (struct ends){ .waits = fds[1], .other = -1 };
	wait_on(&f, fill_pipe, &e, LOOK_ON_PIPE, true);
	assert_int_equal(count_keys(), 0);
	f.h->control->seeks = 1;
	f.h->slots[SLOT].state = SLOT_RECORDER;
	wait_on(&f, fill_pipe, &e, LOOK_ON_PIPE, true);
	assert_int_equal(count_keys(), 0);
	f.h->slots[SLOT].state = SLOT_CAPTURE;
	f.h->control->look_mode = LOOK_ALL; /* the recorder's passes report sessions' waits too */
	wait_on(&f, fill_pipe, &e, LOOK_ON_PIPE, true);
	assert_int_equal(count_keys(), 1);
	assert_int_equal(f.h->control->used[TABLE_ENDS], 1);
	walk();
	assert_int_equal(count_keys(), 1);
	f.h->control->seeks = 0;
	walk();
	assert_int_equal(count_keys(), 0);
	assert_int_equal(f.h->control->used[TABLE_ENDS], 0);
	assert_int_equal(f.h->slots[SLOT].used[TABLE_ENDS], 0);
	close(fds[0]);
	close(fds[1]);
	end(&f);
}

/* Fills the table with keys of no object. */
static void fill_ends(void)
{
	struct end_value value = { .slot = SLOT };

	for (uint32_t i = 0; i < ENDS_MAX; i++) {
		struct end_key key = { .inode = i + 1, .kind = END_KINDS_ };

		assert_int_equal(bpf_map_update_elem(bpf_map__fd(the_harness->skel->maps.ends),
						     &key, &value, BPF_NOEXIST),
				 0);
	}
}

/* A wait without space in the table: the slot of its watch counts it. */
static void without_space(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct ends e;
	int fds[2];

	the_harness = f.h;
	f.h->control->seeks = 1;
	assert_int_equal(f.h->slots[SLOT].unsought, 0);
	fill_ends();
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	e = (struct ends){ .waits = fds[1], .other = -1 };
	wait_on(&f, fill_pipe, &e, LOOK_ON_PIPE, true);
	assert_int_equal(count_keys(), ENDS_MAX);
	assert_int_not_equal(f.h->slots[SLOT].unsought, 0);
	close(fds[0]);
	close(fds[1]);
	end(&f);
}

/* A process with more descriptors than a pass walks: the pass counts the others. */
static void beyond_limits(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct rlimit files;
	int last = 0;

	the_harness = f.h;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur <= FIRST_COPY + END_FILES_MAX + 500) {
		end(&f);
		print_message("the limit of descriptors is %llu\n",
			      (unsigned long long)files.rlim_cur);
		skip();
	}
	f.h->control->seeks = 1;
	walk();
	assert_int_equal(f.h->control->ends_left_out, 0);
	while (last >= 0 && last < FIRST_COPY + END_FILES_MAX + 500)
		last = fcntl(0, F_DUPFD, FIRST_COPY);
	assert_true(last > 0);
	walk();
	assert_in_range(f.h->control->ends_left_out, 1, 500 + 64);
	close_range(FIRST_COPY, ~0u, 0);
	end(&f);
}

static void wait_for_lock(void *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	flock(fd, LOCK_EX);
}

/* A lock of flock(2) outlives the process that took it, where a child has inherited the file. */
static void who_inherited_a_lock(void **state)
{
	struct fixture f = begin_looks("sleep");
	struct end_key key = { .kind = END_LOCK };
	struct end_value value;
	struct look_on on;
	char path[64];
	pid_t *holder = mmap(NULL, sizeof(*holder), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t locker, child;

	the_harness = f.h;
	f.h->control->seeks = 1;
	snprintf(path, sizeof(path), "/tmp/trocar_other_ends_%d", getpid());
	locker = fork();
	if (locker == 0) {
		int fd = open(path, O_RDONLY | O_CREAT, 0600);

		flock(fd, LOCK_EX);
		child = fork();
		while (child == 0)
			pause();
		*holder = child;
		_exit(0);
	}
	assert_int_equal(waitpid(locker, NULL, 0), locker);
	on = wait_on(&f, wait_for_lock, path, LOOK_ON_FILE, false);
	assert_int_equal(on.state, LOOK_LOCK_FILE);
	assert_int_equal(on.peer_pid, 0);
	assert_true(on.address && on.address >> 63 == 0);
	walk();
	key.inode = on.address;
	assert_true(has_key(&key, &value));
	assert_int_equal(value.count, 1);
	assert_int_equal(value.processes[0].tgid, *holder);
	kill(*holder, SIGKILL);
	unlink(path);
	munmap(holder, sizeof(*holder));
	end(&f);
}

/* Makes a network namespace of its own with the address 10.9.8.7; `forged`: as any user may. */
static void enter_network(bool forged)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd;

	assert_int_equal(unshare(CLONE_NEWNET | (forged ? CLONE_NEWUSER : 0)), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	*(struct sockaddr_in *)&r.ifr_addr =
		(struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = inet_addr("10.9.8.7") };
	assert_int_equal(ioctl(fd, SIOCSIFADDR, &r), 0);
	r.ifr_flags = IFF_UP;
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &r), 0);
	close(fd);
}

/* Asks a child, which has accepted the connection and does not answer. */
static void ask_in_network(void *context)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(5432),
					.sin_addr.s_addr = inet_addr("10.9.8.7") };
	int listener, opened = -1;
	char byte = 'x';

	enter_network(*(bool *)context);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 4), 0);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (accept(listener, NULL, NULL) >= 0)
			for (;;)
				pause();
		_exit(1);
	}
	close(listener);
	opened = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(opened, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(opened, &byte, 1, MSG_NOSIGNAL), 1);
	recv(opened, &byte, 1, 0);
}

/* A network namespace that a user has made with the address of a peer does not count. */
static void no_forged_address(void **state)
{
	struct fixture f = begin_looks("sleep");
	bool forged = true;
	pid_t forger = harness_start(ask_in_network, &forged, f.h->group);
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(5432),
					.sin_addr.s_addr = inet_addr("10.9.8.7") };
	int one = 1, bound = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct end_value value;
	struct end_key key;
	struct look_on on;

	/* Any user may also listen at an address that the host does not have. */
	assert_int_equal(setsockopt(bound, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one)), 0);
	assert_int_equal(bind(bound, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(bound, 1), 0);
	the_harness = f.h;
	f.h->control->seeks = 1;
	forged = false;
	on = wait_on(&f, ask_in_network, &forged, LOOK_ON_SOCKET, false);
	assert_true(on.asked);
	harness_sleep_ms(200); /* both children accept */
	walk();
	key = tcp_key(&on);
	assert_int_equal(key.net, 0);
	assert_true(has_key(&key, &value));
	assert_int_equal(value.count, 1);
	harness_kill(forger);
	walk();
	assert_true(has_key(&key, &value));
	assert_int_equal(value.count, 1);
	close(bound);
	end(&f);
}

/* With a scope, a holder outside of it stays unknown. */
static void scope_hides_others(void **state)
{
	const struct harness_options options = { .scoped = true };
	struct fixture f = { .h = harness_new(&options) };
	struct end_key key = { .kind = END_READER };
	char scope[4200], inside[4096], outside[4096];
	struct end_value value;
	struct seen_look l;
	struct ends e;
	pid_t holders[2];
	uint64_t id;
	int fds[2];

	the_harness = f.h;
	f.h->control->seeks = 1;
	snprintf(scope, sizeof(scope), "%s/within", f.h->path);
	harness_scope(f.h, scope);
	id = harness_group(f.h, "within", inside);
	harness_group(f.h, "without", outside);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	e = (struct ends){ .waits = fds[1], .other = fds[0] };
	holders[0] = harness_start(hold, &e, outside);
	holders[1] = harness_start(hold, &e, inside);
	f.pid = harness_start(fill_pipe, &e, inside);
	harness_watch(f.h, id, SLOT, SLOT_CAPTURE, 0);
	f.h->slots[SLOT].looked = 1;
	do
		read_asleep(f.h, f.pid, &l);
	while (!l.record.on.state);
	close(fds[0]);
	close(fds[1]);
	walk();
	key.inode = l.record.on.inode;
	key.device = l.record.on.device;
	assert_true(has_key(&key, &value));
	assert_int_equal(value.count, 1);
	assert_int_equal(value.processes[0].tgid, holders[1]);
	harness_kill(holders[0]);
	harness_kill(holders[1]);
	harness_kill(f.pid);
	harness_free(f.h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_of_pipes),      cmocka_unit_test(who_accepted),
		cmocka_unit_test(who_listens),	      cmocka_unit_test(who_inherited_a_lock),
		cmocka_unit_test(only_for_sessions),  cmocka_unit_test(no_forged_address),
		cmocka_unit_test(scope_hides_others), cmocka_unit_test(without_space),
		cmocka_unit_test(beyond_limits),
	};

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
