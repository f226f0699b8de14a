/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker_client_testing.h: a thread that plays the broker: it answers each message by the next step
 * of a script.
 */
#ifndef TROCAR_TESTS_UNIT_CONSUMER_TESTING_BROKER_CLIENT_TESTING_H
#define TROCAR_TESTS_UNIT_CONSUMER_TESTING_BROKER_CLIENT_TESTING_H

#include "tests/unit/consumer/testing/unit_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/broker/broker_client.h"
#include "shared/tools/macro.h"

enum manner {
	GOOD, /* the right length */
	SHORT,
	LONG,
	SILENT,	   /* nothing at all */
	SLOW,	   /* good, but later than any caller waits */
	TARDY,	   /* good, and in time, but three of them are not */
	HANG_UP,   /* end of the connection instead of an answer */
	OTHER_SEQ, /* the number of another request */
	OTHER_REQUEST,
	OTHER_MAGIC,
	LIAR,  /* announces one descriptor more than it sends */
	EARLY, /* a refusal of the connection, before any request was read */
};

/* How one message is answered. */
struct step {
	enum manner manner;
	uint32_t refusal;
	int error;
	unsigned int descriptors;
	bool leave; /* then the connection ends */
};

struct fixture {
	char dir[32], path[64];
	int listener_fd, device_fd;
	pthread_t thread;
	bool started;
	struct step steps[16];
	size_t n_steps;
	/* what was heard */
	uint8_t heard[16][128];
	size_t heard_bytes[16], n_heard, connections;
	struct broker_client *link;
	unsigned int wait_ms; /* the link's */
};

static void send_answer(struct fixture *f, int fd, const struct step *step,
			const struct broker_request_header *asked)
{
	struct broker_answer answer[2] = { {
		.magic = BROKER_MAGIC + (step->manner == OTHER_MAGIC),
		.request = asked->request + (step->manner == OTHER_REQUEST),
		.sequence =
			step->manner == EARLY ? 0 : asked->sequence - (step->manner == OTHER_SEQ),
		.refusal = step->refusal,
		.error = step->error,
		.descriptors = step->descriptors + (step->manner == LIAR),
	} };
	struct iovec part = { answer, sizeof(answer[0]) };
	union {
		char room[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (step->manner == SHORT)
		part.iov_len -= 4;
	if (step->manner == LONG)
		part.iov_len += 4;
	if (step->descriptors) {
		struct cmsghdr *c = &control.align;

		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(step->descriptors * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(step->descriptors * sizeof(int));
		for (unsigned int i = 0; i < step->descriptors; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &f->device_fd, sizeof(int));
	}
	sendmsg(fd, &message, MSG_NOSIGNAL);
}

/* One connection, until a step ends it or the other side has gone. False: no step is left. */
static bool serve(struct fixture *f, int fd, size_t *at)
{
	while (*at < f->n_steps) {
		const struct step *step = &f->steps[*at];
		ssize_t n = recv(fd, f->heard[f->n_heard], sizeof(f->heard[0]), 0);

		if (n <= 0)
			return true;
		(*at)++;
		f->heard_bytes[f->n_heard] = (size_t)n;
		f->n_heard++;
		if (step->manner == HANG_UP)
			return true;
		if (step->manner == SLOW)
			usleep((BROKER_CLIENT_WAIT_MS + 300) * 1000);
		if (step->manner == TARDY)
			usleep(f->wait_ms * 400);
		if (step->manner != SILENT)
			send_answer(f, fd, step, (void *)f->heard[f->n_heard - 1]);
		if (step->leave)
			return true;
	}
	return false;
}

static void *play(void *context)
{
	struct fixture *f = context;
	size_t at = 0;
	bool more = true;

	while (more) {
		int fd = accept(f->listener_fd, NULL, NULL);

		if (fd < 0)
			break;
		f->connections++;
		more = serve(f, fd, &at);
		if (!more) { /* later requests get no answer */
			shutdown(f->listener_fd, SHUT_RDWR);
			recv(fd, f->heard[15], 1, 0);
		}
		close(fd);
	}
	return NULL;
}

static int setup(void **state)
{
	static struct fixture f;
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	f = (struct fixture){ .dir = "/tmp/link-XXXXXX", .wait_ms = BROKER_CLIENT_WAIT_MS };
	*state = &f;
	assert_non_null(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/socket", f.dir);
	memcpy(address.sun_path, f.path, strlen(f.path));
	f.device_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	f.listener_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f.listener_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f.listener_fd, 4), 0);
	return broker_client_new(f.path, f.wait_ms, &f.link);
}

/* So many times the patience: where the machine is busy, the thread that answers gets its CPU late.
 */
static void be_patient(struct fixture *f, unsigned int times)
{
	broker_client_free(f->link);
	f->wait_ms = times * BROKER_CLIENT_WAIT_MS;
	assert_int_equal(broker_client_new(f->path, f->wait_ms, &f->link), 0);
}

static void begin(struct fixture *f, const struct step *steps, size_t n)
{
	memcpy(f->steps, steps, n * sizeof(*steps));
	f->n_steps = n;
	f->started = true;
	assert_int_equal(pthread_create(&f->thread, NULL, play, f), 0);
}

#define PLAY(f, ...) \
	begin(f, (const struct step[]){ __VA_ARGS__ }, ARRAY_SIZE(((struct step[]){ __VA_ARGS__ })))

static void end(struct fixture *f)
{
	broker_client_free(f->link);
	f->link = NULL;
	shutdown(f->listener_fd, SHUT_RDWR);
	if (f->started)
		pthread_join(f->thread, NULL);
	f->started = false;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	end(f);
	if (f->listener_fd >= 0)
		close(f->listener_fd);
	close(f->device_fd);
	unlink(f->path);
	return rmdir(f->dir);
}

/* Descriptors that are open in this process. */
static inline int count_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static inline bool is_device(int fd)
{
	char path[64], target[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && !strcmp(target, "/dev/null") &&
	       (fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

#endif
