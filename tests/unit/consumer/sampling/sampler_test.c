/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread plays the broker and opens real sampling events, without a program on them. */
#include "tests/unit/consumer/testing/fake_agent_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/io/loop.h"
#include "consumer/sampling/sampler.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/cpus.h"
#include "shared/tools/macro.h"

#define NOBODY UINT32_MAX

struct fixture {
	struct fake *f;
	struct agent *a;
	char path[96];
	int listener_fd;
	pthread_t thread; /* plays the broker; it may get no CPU for a while */
	size_t online;
	uint32_t first_cpu, last_cpu;
	/* how it answers from now on */
	uint32_t offline_cpu; /* -ENODEV for this one */
	uint32_t refused_cpu; /* refused by rate from this one on */
	/* what it was asked for */
	unsigned int samplers, recorders, attaches;
	uint32_t hz;
};

static int open_event(uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = 97,
		.freq = 1,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Sends the answer and closes fd (-1: none goes with it). */
static void answer(int connection, struct broker_answer answer, int fd)
{
	struct iovec part = { &answer, sizeof(answer) };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = {};
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	sendmsg(connection, &message, MSG_NOSIGNAL);
	if (fd >= 0)
		close(fd);
}

static int grant_sampler(struct fixture *t, const struct broker_sampler_open *body,
			 struct broker_answer *reply)
{
	t->samplers++;
	t->hz = body->hz;
	t->recorders += body->divisor == RECORDER_DIVISOR;
	if (body->cpu == t->offline_cpu) {
		reply->refusal = REFUSAL_GONE;
		reply->error = -ENODEV;
		return -1;
	}
	if (body->cpu >= t->refused_cpu) {
		reply->refusal = REFUSAL_RATE;
		return -1;
	}
	return open_event(body->cpu);
}

static void *play(void *context)
{
	struct fixture *t = context;
	struct {
		struct broker_request_header header;
		union {
			struct broker_sampler_open sampler;
			uint8_t rest[64];
		};
	} request;
	int connection;

	while ((connection = accept(t->listener_fd, NULL, NULL)) >= 0) {
		while (recv(connection, &request, sizeof(request), 0) > 0) {
			struct broker_answer reply = {
				.magic = BROKER_MAGIC,
				.request = request.header.request,
				.sequence = request.header.sequence,
			};
			int fd = -1;

			if (request.header.request == BROKER_SAMPLER_OPEN)
				fd = grant_sampler(t, &request.sampler, &reply);
			if (request.header.request == BROKER_SIGNAL_ATTACH) {
				t->attaches++;
				fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
			}
			reply.descriptors = fd >= 0;
			answer(connection, reply, fd);
		}
		close(connection);
	}
	return NULL;
}

static int setup(void **state)
{
	static struct fixture t;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_free_ uint32_t *cpus = NULL;

	t = (struct fixture){ .f = fake_new(), .offline_cpu = NOBODY, .refused_cpu = NOBODY };
	*state = &t;
	if (!t.f)
		return 0;
	t.a = &t.f->a;
	assert_int_equal(cpus_online(&cpus, &t.online), 0);
	t.first_cpu = cpus[0];
	t.last_cpu = cpus[t.online - 1];
	snprintf(t.path, sizeof(t.path), "%s/broker", t.f->dir);
	memcpy(address.sun_path, t.path, strlen(t.path));
	t.listener_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(t.listener_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(t.listener_fd, 4), 0);
	assert_int_equal(pthread_create(&t.thread, NULL, play, &t), 0);
	t.a->pins.abi.cpus_sampled = 0;
	broker_client_free(t.a->broker);
	assert_int_equal(broker_client_new(t.path, 50 * BROKER_CLIENT_WAIT_MS, &t.a->broker), 0);
	sampler_init(&t.a->sampler, &t.a->pins, t.a->loop, t.a->broker, &t.a->lines);
	signal_programs_init(&t.a->programs, t.a->broker);
	sampler_start(&t.a->sampler);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *t = *state;

	if (!t->f)
		return 0;
	sampler_done(&t->a->sampler);
	broker_client_free(t->a->broker);
	t->a->broker = NULL;
	shutdown(t->listener_fd, SHUT_RDWR);
	pthread_join(t->thread, NULL);
	close(t->listener_fd);
	unlink(t->path);
	fake_free(t->f);
	return 0;
}

static int count_events(void)
{
	char path[64], target[64];
	int n = 0;

	for (int fd = 0; fd < 256; fd++) {
		ssize_t bytes;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		bytes = readlink(path, target, sizeof(target) - 1);
		target[bytes < 0 ? 0 : bytes] = 0;
		n += strstr(target, "perf_event") != NULL;
	}
	return n;
}

/* The broker closes its copy a moment after it was sent. */
static void assert_events(size_t expected)
{
	for (int i = 0; i < 200 && (size_t)count_events() != expected; i++)
		usleep(5000);
	assert_int_equal(count_events(), expected);
}

/* As when watches come and go. */
static void watch(struct fixture *t, uint32_t count)
{
	sampler_watched(&t->a->sampler, count > 0);
}

static struct fixture *begin(void **state)
{
	struct fixture *t = *state;

	if (!t->f)
		skip();
	return t;
}

static void stop(void *context, uint32_t events)
{
	loop_stop(((struct agent *)context)->loop);
}

/* Runs the agent's loop for so long. */
static void run_loop(struct fixture *t, uint64_t ns)
{
	struct loop_source *timer;

	assert_int_equal(loop_timer(t->a->loop, stop, t->a, &timer), 0);
	assert_int_equal(loop_timer_set(timer, ns, 0), 0);
	assert_int_equal(loop_run(t->a->loop), 0);
	loop_remove(timer);
}

/* As when SAMPLER_REST_NS have passed since the last watch. */
static void end_of_rest(struct fixture *t)
{
	assert_non_null(t->a->sampler.rest);
	assert_int_equal(loop_timer_set(t->a->sampler.rest, 1, 0), 0);
	for (int i = 0; i < 100 && t->a->sampler.rest; i++)
		run_loop(t, 10 * NSEC_PER_MSEC);
}

static void follows_the_watches(void **state)
{
	struct fixture *t = begin(state);
	const char *reason;

	sampler_look(&t->a->sampler);
	assert_int_equal(t->samplers, 0);
	assert_int_equal(sampler_since_ns(&t->a->sampler), UINT64_MAX);
	watch(t, 1);
	assert_events(2 * t->online); /* the recorder's and the capture's */
	assert_int_equal(t->hz, FAKE_HZ);
	assert_int_equal(t->recorders, t->online);
	assert_true(sampler_since_ns(&t->a->sampler) <= clock_mono_ns());
	assert_int_equal(sampler_by(&t->a->sampler, &reason), SAMPLER_BROKER);
	watch(t, 2);
	assert_int_equal(t->samplers, 2 * t->online);
	watch(t, 0);
	assert_int_equal(sampler_since_ns(&t->a->sampler), UINT64_MAX);
	end_of_rest(t);
	assert_events(0);
}

/* How long the events of the first CPU have run, both together. */
static uint64_t ran_ns(const struct fixture *t)
{
	const struct cpu_event *e = &t->a->sampler.events[0];
	uint64_t sum_ns = 0, ns;

	for (int i = 0; i < CPU_EVENT_RATES_; i++) {
		assert_int_equal(read(e->at[i].fd, &ns, sizeof(ns)), sizeof(ns));
		sum_ns += ns;
	}
	return sum_ns;
}

/* Watches come and go: the broker is asked once, and nothing ticks in between. */
static void short_watches_ask_once(void **state)
{
	struct fixture *t = begin(state);
	uint64_t stopped_ns;

	for (int i = 0; i < 20; i++) {
		watch(t, 1);
		assert_true(sampler_since_ns(&t->a->sampler) <= clock_mono_ns());
		watch(t, 0);
	}
	assert_int_equal(t->samplers, 2 * t->online);
	assert_events(2 * t->online);
	assert_int_equal(t->f->control.divisor, 1);
	stopped_ns = ran_ns(t);
	usleep(20000);
	assert_int_equal(ran_ns(t), stopped_ns);
	watch(t, 1);
	usleep(20000);
	assert_true(ran_ns(t) > stopped_ns);
	watch(t, 0);
	end_of_rest(t);
	assert_events(0);
}

static void the_divisor_follows_the_sessions(void **state)
{
	struct fixture *t = begin(state);
	const struct control *c = &t->f->control;

	assert_int_equal(c->divisor, 1);
	watch(t, 1);
	sampler_capture_begin(&t->a->sampler);
	sampler_capture_begin(&t->a->sampler);
	assert_int_equal(c->divisor, RECORDER_DIVISOR);
	sampler_capture_end(&t->a->sampler);
	assert_int_equal(c->divisor, RECORDER_DIVISOR);
	sampler_capture_end(&t->a->sampler);
	assert_int_equal(c->divisor, 1);
	assert_int_equal(t->samplers, 2 * t->online);
	/* the last watch may go before its session does */
	sampler_capture_begin(&t->a->sampler);
	watch(t, 0);
	assert_events(2 * t->online);
	sampler_capture_end(&t->a->sampler);
	end_of_rest(t);
	assert_events(0);
}

static void a_cpu_that_went_is_not_missing(void **state)
{
	struct fixture *t = begin(state);
	size_t ticking, missing;
	const char *why;

	t->offline_cpu = t->last_cpu;
	watch(t, 1);
	sampler_state(&t->a->sampler, &ticking, &missing, &why);
	assert_int_equal(ticking, t->online - 1);
	assert_int_equal(missing, 0);
	assert_null(why);
	t->offline_cpu = NOBODY;
	sampler_look(&t->a->sampler);
	sampler_state(&t->a->sampler, &ticking, &missing, &why);
	assert_int_equal(ticking, t->online);
}

static void logs_a_refused_event_once_and_retries(void **state)
{
	struct fixture *t = begin(state);
	size_t ticking, missing;
	const char *why, *reason;

	t->refused_cpu = t->last_cpu;
	watch(t, 1);
	sampler_retry(&t->a->sampler);
	sampler_state(&t->a->sampler, &ticking, &missing, &why);
	assert_int_equal(ticking, t->online - 1);
	assert_int_equal(missing, 1);
	assert_string_equal(why, broker_refusal_help(REFUSAL_RATE));
	assert_int_equal(sampler_since_ns(&t->a->sampler), UINT64_MAX);
	assert_int_equal(fake_count(t->f, "error"), 1);
	assert_int_equal(t->samplers, 2 * t->online - 1); /* not before its time */
	t->refused_cpu = NOBODY;
	t->a->sampler.retry_ns = 0;
	sampler_retry(&t->a->sampler);
	sampler_state(&t->a->sampler, &ticking, &missing, &why);
	assert_int_equal(ticking, t->online);
	assert_int_equal(missing, 0);
	assert_int_equal(sampler_by(&t->a->sampler, &reason), SAMPLER_BROKER);
	assert_int_equal(fake_count(t->f, "error"), 1);
}

/* An event of a CPU that went offline and came back: its clock stands still. */
static void an_event_that_stands_still_is_replaced(void **state)
{
	struct fixture *t = begin(state);
	struct cpu_event *e;

	watch(t, 1);
	sampler_look(&t->a->sampler);
	assert_int_equal(t->samplers, 2 * t->online);
	e = &t->a->sampler.events[t->online - 1];
	assert_int_equal(ioctl(e->at[CPU_EVENT_RECORDER].fd, PERF_EVENT_IOC_DISABLE, 0), 0);
	sampler_look(&t->a->sampler); /* sees how far it came */
	sampler_look(&t->a->sampler);
	assert_int_equal(t->samplers, 2 * t->online + 2);
	assert_events(2 * t->online);
	assert_int_equal(t->a->sampler.n_events, t->online);
}

/* How much of its capture's period each CPU has used up; the events stand still by now. */
static uint64_t used_ns(const struct cpu_event *e)
{
	uint64_t count_ns = 0;

	assert_int_equal(read(e->at[CPU_EVENT_CAPTURE].fd, &count_ns, sizeof(count_ns)), 8);
	return count_ns;
}

static void the_cpus_begin_apart(void **state)
{
	struct fixture *t = begin(state);
	const struct cpu_event *events;
	uint64_t first_ns, last_ns;

	if (t->online < 2)
		skip();
	watch(t, 1);
	assert_int_equal(t->f->control.divisor, RECORDER_DIVISOR); /* both rates tick */
	for (int i = 0; i < 100 && t->a->sampler.spread; i++)
		run_loop(t, 100 * NSEC_PER_MSEC);
	assert_null(t->a->sampler.spread);
	assert_int_equal(t->f->control.divisor, 1);
	events = t->a->sampler.events;
	first_ns = used_ns(&events[0]);
	last_ns = used_ns(&events[t->online - 1]);
	assert_true(first_ns > 0);
	/* Half a period with two CPUs; less where the thread had to wait for a CPU in between. */
	assert_true(last_ns > first_ns + NSEC_PER_SEC / FAKE_HZ / 16);
	assert_int_equal(used_ns(&events[0]), first_ns);
	assert_int_equal(used_ns(&events[t->online - 1]), last_ns);
}

static void nobody_answers(void **state)
{
	struct fixture *t = begin(state);
	size_t ticking, missing;
	const char *why, *reason;

	broker_client_free(t->a->broker);
	assert_int_equal(broker_client_new("", BROKER_CLIENT_WAIT_MS, &t->a->broker), 0);
	t->a->sampler.broker = t->a->broker;
	watch(t, 1);
	watch(t, 2);
	sampler_state(&t->a->sampler, &ticking, &missing, &why);
	assert_int_equal(ticking, 0);
	assert_int_equal(missing, t->online);
	assert_int_equal(sampler_by(&t->a->sampler, &reason), SAMPLER_NONE);
	assert_non_null(strstr(reason, "--broker none"));
	watch(t, 0);
	watch(t, 1);
	assert_int_equal(fake_count(t->f, "error"), 1);
	sampler_capture_begin(&t->a->sampler);
	sampler_capture_end(&t->a->sampler);
	assert_events(0);
}

static void always_needs_nobody(void **state)
{
	struct fixture *t = begin(state);
	const char *reason;

	t->a->pins.abi.cpus_sampled = (uint32_t)t->online;
	sampler_start(&t->a->sampler);
	assert_int_equal(t->f->control.divisor, RECORDER_DIVISOR);
	watch(t, 1);
	sampler_capture_begin(&t->a->sampler);
	sampler_look(&t->a->sampler);
	sampler_capture_end(&t->a->sampler);
	assert_int_equal(t->f->control.divisor, RECORDER_DIVISOR);
	assert_int_equal(t->samplers, 0);
	assert_int_equal(sampler_since_ns(&t->a->sampler), 0);
	assert_int_equal(sampler_by(&t->a->sampler, &reason), SAMPLER_ALWAYS);
}

static void a_signal_is_attached_once_for_all(void **state)
{
	struct fixture *t = begin(state);
	const struct signal_programs *all = &t->a->programs;
	const char *why = NULL;
	int fd;

	assert_int_equal(signal_programs_hold(&t->a->programs, SIGNAL_SWITCH, &why), 0);
	assert_int_equal(signal_programs_hold(&t->a->programs, SIGNAL_SWITCH, &why), 0);
	assert_int_equal(t->attaches, 1);
	assert_int_equal(all->of[SIGNAL_SWITCH].n_fds, 1);
	fd = all->of[SIGNAL_SWITCH].fds[0];
	signal_programs_drop(&t->a->programs, SIGNAL_SWITCH);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	signal_programs_drop(&t->a->programs, SIGNAL_SWITCH);
	assert_true(fcntl(fd, F_GETFD) < 0);
	assert_int_equal(signal_programs_hold(&t->a->programs, SIGNAL_SWITCH, &why), 0);
	assert_int_equal(t->attaches, 2);
	signal_programs_drop(&t->a->programs, SIGNAL_SWITCH);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT_TESTS(sampler)
{
	const struct CMUnitTest tests[] = {
		TEST(follows_the_watches),
		TEST(short_watches_ask_once),
		TEST(the_divisor_follows_the_sessions),
		TEST(a_cpu_that_went_is_not_missing),
		TEST(logs_a_refused_event_once_and_retries),
		TEST(an_event_that_stands_still_is_replaced),
		TEST(the_cpus_begin_apart),
		TEST(nobody_answers),
		TEST(always_needs_nobody),
		TEST(a_signal_is_attached_once_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
