/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/broker/broker_client.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "consumer/broker/broker_client_wire.h"
#include "consumer/io/loop.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define NOTHING UINT32_MAX /* no request */

/* A request, kept for comparison with later ones. */
struct asked {
	uint32_t request; /* NOTHING: none */
	size_t bytes;
	uint8_t body[BROKER_REQUEST_MAX];
};

struct broker_client {
	pthread_mutex_t lock;
	struct sockaddr_un address; /* sun_path "": no broker to connect to */
	int fd;			    /* -1: not connected */
	uint32_t sequence;	    /* of the last request on this connection */
	struct asked owed;	    /* the request with a late answer */
	uint64_t owed_ns;	    /* when it was sent */
	struct asked late;	    /* its late answer has arrived and is not taken yet */
	struct broker_answer late_answer;
	struct broker_client_brought late_brought;
	unsigned int wait_ms; /* longest wait for an answer */
	uint64_t spent_ns;    /* the used-up part of wait_ms */
	uint64_t spent_at_ns; /* when spent_ns was computed */
	uint64_t retry_ns;    /* earliest next attempt to connect */
	const char *why;      /* why the last attempt failed; NULL: it succeeded */
	struct broker_client_counts counts;
	/* Set by broker_client_listen; NULL before. */
	struct loop *loop;
	broker_client_call call;
	void *context;
	struct loop_source *source; /* of fd, while an answer is owed */
	struct loop_source *timer;  /* expires when all of wait_ms is available again */
};

static const char too_late[] = "the broker did not answer in time";
static const char too_slow[] = "the broker answers slowly: the other requests are sent later";

int broker_client_new(const char *path, unsigned int wait_ms, struct broker_client **ret_link)
{
	_cleanup_free_ struct broker_client *link = calloc(1, sizeof(*link));

	if (!link)
		return -ENOMEM;
	link->fd = -1;
	link->owed.request = link->late.request = NOTHING;
	link->wait_ms = wait_ms;
	link->address.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(link->address.sun_path))
		return -ENAMETOOLONG;
	memcpy(link->address.sun_path, path, strlen(path) + 1);
	link->why = *path ? NULL : "the broker is not used (--broker none)";
	pthread_mutex_init(&link->lock, NULL);
	*ret_link = TAKE_PTR(link);
	return 0;
}

static void add_one(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Closes a late answer that no caller took. */
static void drop_late(struct broker_client *link)
{
	if (link->late.request != NOTHING)
		broker_client_wire_close(&link->late_brought);
	link->late.request = NOTHING;
}

/* Forgets the request with a late answer. */
static void settle_owed(struct broker_client *link)
{
	link->owed.request = NOTHING;
	loop_remove(TAKE_PTR(link->source));
}

static void hang_up(struct broker_client *link)
{
	settle_owed(link);
	drop_late(link);
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

void broker_client_free(struct broker_client *link)
{
	if (!link)
		return;
	hang_up(link);
	loop_remove(link->timer);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

/* Closes an unusable connection, and sets when the client connects again. */
static int lose_connection(struct broker_client *link, const char *why)
{
	hang_up(link);
	link->why = why;
	link->retry_ns = clock_mono_ns() + BROKER_CLIENT_RETRY_NS;
	return -ENOTCONN;
}

static void on_answer(void *context, uint32_t events);

/*
 * Keeps the connection for a late answer and sends nothing else on it until then. On a machine in
 * trouble, starting the broker takes longer than the client waits.
 */
static int note_owed(struct broker_client *link, uint32_t request, const void *body, size_t bytes)
{
	link->owed = (struct asked){ .request = request, .bytes = bytes };
	memcpy(link->owed.body, body, bytes);
	link->owed_ns = clock_mono_ns();
	link->why = too_late;
	if (link->loop &&
	    loop_add(link->loop, link->fd, EPOLLIN, on_answer, link, &link->source) < 0)
		link->source = NULL; /* then the next caller collects the answer */
	return -ENOTCONN;
}

/*
 * Returns the remaining part of the waiting limit. Waiting uses it up, and it grows back as time
 * passes, at the same rate: so the loop never waits longer than wait_ms in a row, however many
 * requests it makes.
 */
static uint64_t patience_ns(struct broker_client *link)
{
	uint64_t now_ns = clock_mono_ns(), paid_ns = now_ns - link->spent_at_ns;

	if (!link->loop)
		return link->wait_ms * NSEC_PER_MSEC;
	link->spent_ns -= MIN(link->spent_ns, paid_ns);
	link->spent_at_ns = now_ns;
	return link->wait_ms * NSEC_PER_MSEC - link->spent_ns;
}

static int wait_for_answer(struct broker_client *link, unsigned int wait_ms)
{
	uint64_t began_ns = clock_mono_ns();
	int r = broker_client_wire_wait(link->fd, wait_ms);

	link->spent_at_ns = clock_mono_ns();
	link->spent_ns =
		MIN(link->spent_ns + link->spent_at_ns - began_ns, link->wait_ms * NSEC_PER_MSEC);
	return r;
}

/*
 * Waits for the answer, then receives it like broker_client_wire_receive. -ETIMEDOUT: no answer
 * arrived.
 */
static int await_answer(struct broker_client *link, uint32_t request, unsigned int wait_ms,
			struct broker_answer *ret_answer, struct broker_client_brought *ret_brought)
{
	int r = wait_for_answer(link, wait_ms);

	return r < 0 ? r
		     : broker_client_wire_receive(link->fd, request, link->sequence, ret_answer,
						  ret_brought);
}

static int end_greeting(struct broker_client *link, const struct broker_answer *answer)
{
	if (answer->refusal != REFUSAL_NONE) {
		add_one(&link->counts.refused[answer->refusal]);
		return lose_connection(link, broker_refusal_help(answer->refusal));
	}
	add_one(&link->counts.granted[BROKER_HELLO]);
	link->why = NULL;
	return 0;
}

/*
 * Receives a late answer, or finds that it will not arrive. 0: it arrived, and the next request may
 * be sent.
 */
static int collect_owed(struct broker_client *link)
{
	struct broker_answer answer = {};
	struct broker_client_brought brought = {};
	struct asked owed = link->owed;
	int r = broker_client_wire_receive(link->fd, owed.request, link->sequence, &answer,
					   &brought);

	if (r == -EAGAIN && clock_mono_ns() - link->owed_ns < BROKER_CLIENT_OWED_NS)
		return -ENOTCONN;
	if (r < 0)
		return lose_connection(link, r == -EAGAIN ? too_late : broker_client_wire_text(r));
	settle_owed(link);
	if (owed.request == BROKER_HELLO)
		return end_greeting(link, &answer);
	link->why = NULL;
	link->late = owed;
	link->late_answer = answer;
	link->late_brought = brought;
	return 0;
}

/* Takes the late answer if it answers exactly this request; otherwise closes it. */
static bool take_late(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		      struct broker_answer *ret_answer, struct broker_client_brought *ret_brought)
{
	const struct asked *late = &link->late;

	if (late->request != request || late->bytes != bytes ||
	    memcmp(late->body, body, bytes) != 0) {
		drop_late(link);
		return false;
	}
	*ret_answer = link->late_answer;
	*ret_brought = link->late_brought;
	link->late.request = NOTHING;
	return true;
}

static void on_answer(void *context, uint32_t events)
{
	struct broker_client *link = context;
	int r;

	pthread_mutex_lock(&link->lock);
	r = collect_owed(link);
	pthread_mutex_unlock(&link->lock);
	if (r < 0)
		return;
	link->call(link->context);
	pthread_mutex_lock(&link->lock);
	drop_late(link);
	pthread_mutex_unlock(&link->lock);
}

static void on_paid(void *context, uint32_t events)
{
	struct broker_client *link = context;

	link->call(link->context);
}

int broker_client_listen(struct broker_client *link, struct loop *loop, broker_client_call call,
			 void *context)
{
	int r = loop_timer(loop, on_paid, link, &link->timer);

	if (r < 0)
		return r;
	link->loop = loop;
	link->call = call;
	link->context = context;
	return 0;
}

/* Opens a connection and sends the hello; link->why has the reason for a failure. */
static int open_connection(struct broker_client *link, unsigned int wait_ms)
{
	struct broker_hello hello = { .abi_version = ABI_VERSION };
	struct broker_answer answer = {};
	struct broker_client_brought none = {};
	int r;

	link->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (link->fd < 0)
		return lose_connection(link, "no socket could be made");
	if (connect(link->fd, (struct sockaddr *)&link->address, sizeof(link->address)) < 0)
		return lose_connection(link, broker_client_wire_connect_text(errno));
	link->sequence = 0;
	r = broker_client_wire_send(link->fd, BROKER_HELLO, ++link->sequence, &hello,
				    sizeof(hello));
	if (r == 0)
		r = await_answer(link, BROKER_HELLO, wait_ms, &answer, &none);
	if (r == -ETIMEDOUT)
		return note_owed(link, BROKER_HELLO, &hello, sizeof(hello));
	return r < 0 ? lose_connection(link, broker_client_wire_text(r))
		     : end_greeting(link, &answer);
}

/* Whether the client may try to connect now. */
static bool may_try(const struct broker_client *link)
{
	return link->address.sun_path[0] && (!link->why || clock_mono_ns() >= link->retry_ns);
}

/*
 * Whether the limit allows one more answer: at least half of wait_ms is left. If not, sets the
 * timer that calls the listener when it is.
 */
static int check_patience(struct broker_client *link, unsigned int *ret_wait_ms)
{
	uint64_t left_ns = patience_ns(link);

	if (left_ns >= link->wait_ms * NSEC_PER_MSEC / 2) {
		*ret_wait_ms = (unsigned int)(left_ns / NSEC_PER_MSEC);
		return 0;
	}
	link->why = too_slow;
	loop_timer_set(link->timer, link->wait_ms * NSEC_PER_MSEC, 0);
	return -ENOTCONN;
}

/* Connects unless it is connected, within the rest of the limit. */
static int reconnect_broker(struct broker_client *link)
{
	unsigned int wait_ms;
	int r;

	if (link->fd >= 0)
		return 0;
	if (!may_try(link))
		return -ENOTCONN;
	r = check_patience(link, &wait_ms);
	return r < 0 ? r : open_connection(link, wait_ms);
}

static int exchange_messages(struct broker_client *link, uint32_t request, const void *body,
			     size_t bytes, struct broker_answer *ret_answer,
			     struct broker_client_brought *ret_brought)
{
	unsigned int wait_ms;
	int r = check_patience(link, &wait_ms);

	if (r < 0)
		return r;
	r = broker_client_wire_send(link->fd, request, ++link->sequence, body, bytes);
	return r < 0 ? r : await_answer(link, request, wait_ms, ret_answer, ret_brought);
}

/*
 * Makes a request. If a previously used connection ends without an answer, the broker has exited
 * because it was idle: so connects and sends again, once. That is safe, because an answer that
 * never arrived granted nothing.
 */
static int ask_broker(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		      struct broker_answer *ret_answer, struct broker_client_brought *ret_brought)
{
	bool reused = link->fd >= 0 && link->owed.request == NOTHING;
	int r = link->owed.request != NOTHING ? collect_owed(link) : 0;

	if (r == 0 && take_late(link, request, body, bytes, ret_answer, ret_brought))
		return 0;
	if (r == 0)
		r = reconnect_broker(link);
	if (r < 0)
		return r;
	r = exchange_messages(link, request, body, bytes, ret_answer, ret_brought);
	if (r == -ECONNRESET && reused) {
		hang_up(link);
		r = reconnect_broker(link);
		if (r < 0)
			return r;
		r = exchange_messages(link, request, body, bytes, ret_answer, ret_brought);
	}
	if (r == -ETIMEDOUT)
		return note_owed(link, request, body, bytes);
	return r < 0 && r != -ENOTCONN ? lose_connection(link, broker_client_wire_text(r)) : r;
}

/* Returns the errno of the answer if it is a valid one; -EACCES if a rule of the broker refused. */
static int refusal_error(const struct broker_answer *answer)
{
	return answer->error < 0 && answer->error >= -4095 ? answer->error : -EACCES;
}

int broker_client_ask(struct broker_client *link, uint32_t request, const void *body, size_t bytes,
		      struct broker_client_brought *ret_brought, const char **ret_why)
{
	struct broker_answer answer = {};
	const char *why = NULL;
	int r;

	pthread_mutex_lock(&link->lock);
	r = ask_broker(link, request, body, bytes, &answer, ret_brought);
	if (r < 0) {
		add_one(&link->counts.unreachable);
		why = link->why;
	} else if (answer.refusal != REFUSAL_NONE) {
		add_one(&link->counts.refused[answer.refusal]);
		why = broker_refusal_help(answer.refusal);
		r = refusal_error(&answer);
	} else {
		add_one(&link->counts.granted[request]);
		link->why = NULL;
	}
	pthread_mutex_unlock(&link->lock);
	if (r < 0 && ret_why)
		*ret_why = why;
	return r;
}

int broker_client_greet(struct broker_client *link, unsigned int wait_ms, const char **ret_why)
{
	int r = 0;

	pthread_mutex_lock(&link->lock);
	if (link->owed.request != NOTHING)
		r = collect_owed(link);
	else if (link->fd < 0)
		r = may_try(link) ? open_connection(link, wait_ms) : -ENOTCONN;
	link->spent_ns = 0;
	if (r < 0)
		*ret_why = link->why;
	pthread_mutex_unlock(&link->lock);
	return r;
}

bool broker_client_waits(struct broker_client *link)
{
	bool waits;

	pthread_mutex_lock(&link->lock);
	waits = link->why == too_slow || (link->owed.request != NOTHING &&
					  clock_mono_ns() - link->owed_ns < BROKER_CLIENT_GRACE_NS);
	pthread_mutex_unlock(&link->lock);
	return waits;
}

bool broker_client_there(struct broker_client *link, const char **ret_why)
{
	const char *why;

	pthread_mutex_lock(&link->lock);
	why = link->why;
	pthread_mutex_unlock(&link->lock);
	if (why)
		*ret_why = why;
	return !why;
}

/* Does not take the lock, because a thread that waits for an answer holds it. */
void broker_client_counts(struct broker_client *link, struct broker_client_counts *ret_counts)
{
	const uint64_t *from = (const uint64_t *)&link->counts;
	uint64_t *to = (uint64_t *)ret_counts;

	for (size_t i = 0; i < sizeof(link->counts) / sizeof(*from); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}
