/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/link.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/cleanup.h"
#include "shared/clock.h"
#include "shared/macro.h"

struct link {
	pthread_mutex_t lock;
	struct sockaddr_un address; /* sun_path "": no broker is asked for */
	int fd;			    /* -1: not connected */
	bool greeting;		    /* hello was sent on it, and its answer is still to come */
	uint32_t sequence;	    /* of the last request on this connection */
	uint64_t retry_ns;	    /* no attempt to connect before this moment */
	const char *why;	    /* what was wrong with the last attempt; NULL: nothing */
	struct link_counts counts;
};

/* What came with an answer. */
struct brought {
	int fds[BROKER_DESCRIPTORS_MAX];
	size_t n;
};

int link_new(const char *path, struct link **ret_link)
{
	_cleanup_free_ struct link *link = calloc(1, sizeof(*link));

	if (!link)
		return -ENOMEM;
	link->fd = -1;
	link->address.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(link->address.sun_path))
		return -ENAMETOOLONG;
	memcpy(link->address.sun_path, path, strlen(path) + 1);
	link->why = *path ? NULL : "no broker is asked for (--broker none)";
	pthread_mutex_init(&link->lock, NULL);
	*ret_link = TAKE_PTR(link);
	return 0;
}

static void hang_up(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->greeting = false;
}

void link_free(struct link *link)
{
	if (!link)
		return;
	hang_up(link);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

/* The connection is of no use any more; the broker is tried again later. */
static int lose(struct link *link, const char *why)
{
	hang_up(link);
	link->why = why;
	link->retry_ns = clock_mono_ns() + LINK_RETRY_NS;
	return -ENOTCONN;
}

static void close_catch(struct brought *caught)
{
	for (size_t i = 0; i < caught->n; i++)
		close(caught->fds[i]);
	caught->n = 0;
}

/* Waits for something to read, or only looks (0 ms): 0, -ETIMEDOUT or -errno. */
static int wait_readable(int fd, unsigned int wait_ms)
{
	uint64_t end_ns = clock_mono_ns() + wait_ms * NSEC_PER_MSEC;

	for (;;) {
		struct pollfd want = { .fd = fd, .events = POLLIN };
		uint64_t now_ns = clock_mono_ns();
		uint64_t left_ns = end_ns - MIN(now_ns, end_ns);
		int n = poll(&want, 1, (int)((left_ns + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC));

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Takes the descriptors out of the control part; false when it is not one SCM_RIGHTS at most. */
static bool take_descriptors(struct msghdr *message, struct brought *ret_caught)
{
	struct brought caught = { .n = 0 };
	bool fine = !(message->msg_flags & (MSG_TRUNC | MSG_CTRUNC));

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0), n = bytes / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
			fine = false;
			continue;
		}
		fine = fine && !caught.n;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (caught.n < ARRAY_SIZE(caught.fds))
				caught.fds[caught.n++] = fd;
			else
				close(fd);
		}
	}
	*ret_caught = caught;
	return fine;
}

/* One message of exactly an answer's length. -ECONNRESET: the other side has gone. */
static int receive(int fd, struct broker_answer *ret_answer, struct brought *ret_caught)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(ret_caught->fds))];
	struct iovec part = { .iov_base = ret_answer, .iov_len = sizeof(*ret_answer) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct brought caught = {};
	ssize_t n;
	bool fine;

	n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	fine = take_descriptors(&message, &caught);
	if (n == sizeof(*ret_answer) && fine) {
		*ret_caught = caught;
		return 0;
	}
	close_catch(&caught);
	return n == 0 ? -ECONNRESET : -EBADMSG;
}

/* A connection that is refused as a whole is so before its request is read: sequence 0. */
static bool answers(const struct broker_answer *answer, uint32_t request, uint32_t sequence)
{
	if (answer->magic != BROKER_MAGIC || answer->refusal >= REFUSAL_COUNT_)
		return false;
	if (answer->refusal != REFUSAL_NONE && sequence == 1 && !answer->sequence)
		return true;
	return answer->request == request && answer->sequence == sequence;
}

/* As many descriptors as were promised, and as the request may bring. */
static bool count_fits(const struct broker_answer *answer, const struct broker_row *row, size_t n)
{
	if (n != answer->descriptors || n > row->descriptors)
		return false;
	return answer->refusal == REFUSAL_NONE ? !n == !row->descriptors : !n;
}

/* Sends a request on the connection that is there. -ECONNRESET: the broker has left. */
static int post(struct link *link, uint32_t request, const void *body, size_t bytes)
{
	const struct broker_row *row = broker_row(request);
	struct broker_request_header header = {
		.magic = BROKER_MAGIC,
		.request = request,
		.sequence = ++link->sequence,
	};
	uint8_t message[BROKER_REQUEST_MAX];

	if (!row || row->bytes != sizeof(header) + bytes || row->bytes > sizeof(message))
		return -EBADMSG;
	memcpy(message, &header, sizeof(header));
	memcpy(message + sizeof(header), body, bytes);
	if (send(link->fd, message, row->bytes, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return 0;
}

/*
 * The answer to the request that was sent last. 0 when it was answered, granted or not;
 * -ECONNRESET: the broker has left; -ETIMEDOUT; -EBADMSG: what came is no answer.
 */
static int await(struct link *link, uint32_t request, unsigned int wait_ms,
		 struct broker_answer *ret_answer, struct brought *ret_caught)
{
	struct brought caught = {};
	int r = wait_readable(link->fd, wait_ms);

	if (r == 0)
		r = receive(link->fd, ret_answer, &caught);
	if (r < 0)
		return r;
	if (!answers(ret_answer, request, link->sequence) ||
	    !count_fits(ret_answer, broker_row(request), caught.n)) {
		close_catch(&caught);
		return -EBADMSG;
	}
	*ret_caught = caught;
	return 0;
}

static int exchange(struct link *link, uint32_t request, const void *body, size_t bytes,
		    struct broker_answer *ret_answer, struct brought *ret_caught)
{
	int r = post(link, request, body, bytes);

	return r < 0 ? r : await(link, request, LINK_WAIT_MS, ret_answer, ret_caught);
}

static const char *exchange_text(int r)
{
	switch (r) {
	case -ECONNRESET:
		return "the broker ended the connection without an answer";
	case -ETIMEDOUT:
		return "the broker did not answer in time";
	case -EBADMSG:
		return "the broker's answer was malformed";
	}
	return "the broker's socket failed";
}

static const char *connect_text(int error)
{
	switch (error) {
	case ENOENT:
		return "there is no broker's socket: its optional unit is not installed or not "
		       "started";
	case ECONNREFUSED:
		return "nobody listens at the broker's socket";
	case EACCES:
	case EPERM:
		return "this user may not connect to the broker's socket";
	case EAGAIN:
		return "the broker's socket takes no further connection";
	case EPROTOTYPE:
		return "the broker's socket is not of the type SOCK_SEQPACKET";
	}
	return "the broker's socket cannot be connected to";
}

/*
 * Hello's answer. A broker that has to be started on a machine in trouble may need longer than we
 * wait: then the connection stays, and whoever asks next looks whether the answer has come.
 */
static int end_greeting(struct link *link, unsigned int wait_ms)
{
	struct broker_answer answer = {};
	struct brought none = {};
	int r = await(link, BROKER_HELLO, wait_ms, &answer, &none);

	if (r == -ETIMEDOUT) {
		link->why = exchange_text(r);
		return -ENOTCONN;
	}
	if (r < 0)
		return lose(link, exchange_text(r));
	if (answer.refusal != REFUSAL_NONE) {
		link->counts.refused[answer.refusal]++;
		return lose(link, broker_refusal_help(answer.refusal));
	}
	link->greeting = false;
	link->counts.granted[BROKER_HELLO]++;
	link->why = NULL;
	return 0;
}

/* A new connection, on which hello was granted; link->why says what was wrong. */
static int open_connection(struct link *link)
{
	struct broker_hello hello = { .abi_version = ABI_VERSION };
	int r;

	link->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (link->fd < 0)
		return lose(link, "no socket could be made");
	if (connect(link->fd, (struct sockaddr *)&link->address, sizeof(link->address)) < 0)
		return lose(link, connect_text(errno));
	link->sequence = 0;
	r = post(link, BROKER_HELLO, &hello, sizeof(hello));
	if (r < 0)
		return lose(link, exchange_text(r));
	link->greeting = true;
	return end_greeting(link, LINK_WAIT_MS);
}

static int connected(struct link *link)
{
	if (link->greeting)
		return end_greeting(link, 0);
	if (link->fd >= 0)
		return 0;
	if (!link->address.sun_path[0] || (link->why && clock_mono_ns() < link->retry_ns))
		return -ENOTCONN;
	return open_connection(link);
}

/*
 * On a connection that was there before, an end without an answer is the broker that left because
 * nobody had asked for a while: once more, on a new one. What was asked for can be asked twice,
 * because an answer that never came brought nothing.
 */
static int talk(struct link *link, uint32_t request, const void *body, size_t bytes,
		struct broker_answer *ret_answer, struct brought *ret_caught)
{
	bool reused = link->fd >= 0 && !link->greeting;
	int r = connected(link);

	if (r < 0)
		return r;
	r = exchange(link, request, body, bytes, ret_answer, ret_caught);
	if (r == -ECONNRESET && reused) {
		hang_up(link);
		r = open_connection(link);
		if (r < 0)
			return r;
		r = exchange(link, request, body, bytes, ret_answer, ret_caught);
	}
	return r < 0 ? lose(link, exchange_text(r)) : 0;
}

/* The errno that the answer carries, under its wall; a rule of the broker is -EACCES. */
static int refusal_error(const struct broker_answer *answer)
{
	return answer->error < 0 && answer->error >= -4095 ? answer->error : -EACCES;
}

static int ask(struct link *link, uint32_t request, const void *body, size_t bytes,
	       struct brought *ret_caught, const char **ret_why)
{
	struct broker_answer answer = {};
	const char *why = NULL;
	int r;

	pthread_mutex_lock(&link->lock);
	r = talk(link, request, body, bytes, &answer, ret_caught);
	if (r < 0) {
		link->counts.unreachable++;
		why = link->why;
	} else if (answer.refusal != REFUSAL_NONE) {
		link->counts.refused[answer.refusal]++;
		why = broker_refusal_help(answer.refusal);
		r = refusal_error(&answer);
	} else {
		link->counts.granted[request]++;
	}
	pthread_mutex_unlock(&link->lock);
	if (r < 0 && ret_why)
		*ret_why = why;
	return r;
}

static int ask_one(struct link *link, uint32_t request, const void *body, size_t bytes, int *ret_fd,
		   const char **ret_why)
{
	struct brought caught = {};
	int r = ask(link, request, body, bytes, &caught, ret_why);

	if (r == 0)
		*ret_fd = caught.fds[0];
	return r;
}

int link_greet(struct link *link, const char **ret_why)
{
	int r;

	pthread_mutex_lock(&link->lock);
	r = connected(link);
	if (r < 0)
		*ret_why = link->why;
	pthread_mutex_unlock(&link->lock);
	return r;
}

int link_sampler_open(struct link *link, uint32_t cpu, uint32_t hz, uint32_t divisor, int *ret_fd,
		      const char **ret_why)
{
	struct broker_sampler_open body = {
		.cpu = cpu,
		.hz = (uint16_t)hz,
		.divisor = (uint16_t)divisor,
	};

	return ask_one(link, BROKER_SAMPLER_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int link_pressure_open(struct link *link, uint64_t cgroup_id, enum resource resource, int *ret_fd,
		       const char **ret_why)
{
	struct broker_pressure_open body = { .cgroup_id = cgroup_id, .resource = resource };

	return ask_one(link, BROKER_PRESSURE_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int link_mapping_open(struct link *link, const struct process_key *process, uint64_t start,
		      uint64_t end, int *ret_fd, const char **ret_why)
{
	struct broker_mapping_open body = {
		.start_ns = process->start_ns,
		.start = start,
		.end = end,
		.tgid = process->tgid,
	};

	return ask_one(link, BROKER_MAPPING_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int link_jit_map_open(struct link *link, const struct process_key *process, int *ret_fd,
		      const char **ret_why)
{
	struct broker_jit_map_open body = { .start_ns = process->start_ns, .tgid = process->tgid };

	return ask_one(link, BROKER_JIT_MAP_OPEN, &body, sizeof(body), ret_fd, ret_why);
}

int link_signal_attach(struct link *link, uint32_t signal, int *fds, size_t *ret_count,
		       const char **ret_why)
{
	struct broker_signal_attach body = { .signal = signal };
	struct brought caught = {};
	int r = ask(link, BROKER_SIGNAL_ATTACH, &body, sizeof(body), &caught, ret_why);

	if (r < 0)
		return r;
	memcpy(fds, caught.fds, caught.n * sizeof(*fds));
	*ret_count = caught.n;
	return 0;
}

bool link_there(struct link *link, const char **ret_why)
{
	const char *why;

	pthread_mutex_lock(&link->lock);
	why = link->why;
	pthread_mutex_unlock(&link->lock);
	if (why)
		*ret_why = why;
	return !why;
}

void link_counts(struct link *link, struct link_counts *ret_counts)
{
	pthread_mutex_lock(&link->lock);
	*ret_counts = link->counts;
	pthread_mutex_unlock(&link->lock);
}
