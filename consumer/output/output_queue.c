/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue is a byte ring. Producers append to it under the mutex. The writing thread writes from
 * it without the mutex, which is safe because no other thread moves `head`. The bytes of a line
 * stay in the ring until all of them are written. So the thread completes a line that a full disk
 * cut, and rewrites a line completely in the next file or connection if the previous one ended
 * within it.
 */
#include "consumer/output/output_queue.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"
#include "shared/tools/memory.h"
#include "shared/tools/thread.h"

#define WRITE_BYTES    (256u << 10) /* per write(2): bounds the time until the thread sees a stop */
#define BACKOFF_MIN_MS 100u
#define BACKOFF_MAX_MS 2000u
#define AGAIN_MS       10

/* Over the time-out of output_queue_stop, for a thread inside write(2). */
#define STOP_GRACE_MS 500
#define FOREVER	      UINT64_MAX

struct output {
	pthread_t thread;
	bool started;
	bool joined;
	int wake_fd;
	int ended_fd;
	int epoll_fd;		   /* waits for wake_fd, and sometimes for the output */
	output_queue_tap_call tap; /* NULL: there is no tap */
	void *tap_context;

	/* Protected by the mutex. */
	pthread_mutex_t mutex;
	struct output_ring ring;
	size_t head; /* start of the oldest line that is not completely written */
	bool sleeping;
	bool reopen;
	bool stop;
	bool ended; /* permanently: nothing is written any more */
	uint64_t deadline_ns;
	struct output_queue_stats stats; /* queued_bytes is the fill of the ring */

	/* Used only by the writing thread once it runs. */
	struct output_sink sink;
	bool reopening; /* open the output again, from open_at_ns on */
	size_t partial; /* bytes at head that fd has accepted */
	uint32_t backoff_ms;
	uint64_t write_at_ns, open_at_ns;
};

static void output_queue_freep(struct output **o)
{
	output_queue_free(*o);
}

int output_queue_new(const char *where, size_t queue_bytes, struct output **ret_output)
{
	_cleanup_(output_queue_freep) struct output *o = calloc(1, sizeof(*o));
	struct epoll_event woken = { .events = EPOLLIN };
	int r;

	if (!queue_bytes)
		return -EINVAL;
	if (!o)
		return -ENOMEM;
	o->sink.fd = -1;
	o->wake_fd = o->ended_fd = o->epoll_fd = -1;
	o->backoff_ms = BACKOFF_MIN_MS;
	pthread_mutex_init(&o->mutex, NULL);
	o->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->wake_fd < 0)
		return -errno;
	o->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (o->ended_fd < 0)
		return -errno;
	o->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (o->epoll_fd < 0)
		return -errno;
	if (epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, o->wake_fd, &woken) < 0)
		return -errno;
	/* Memory that the queue never used is not resident, because nothing writes to it here. */
	o->ring = (struct output_ring){ malloc(queue_bytes), queue_bytes };
	if (!o->ring.data)
		return -ENOMEM;
	o->stats.queue_bytes = queue_bytes;
	r = output_sink_open(where, &o->sink);
	if (r < 0)
		return r;
	*ret_output = TAKE_PTR(o);
	return 0;
}

/* EAGAIN means that the counter is full: then the waiting thread wakes in any case. */
static void raise_event(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one));
}

static void wake_writer(const struct output *o)
{
	raise_event(o->wake_fd);
}

/*
 * Sleeps until woken, until `fd` accepts data (unless -1), or until `until_ns`. epoll cannot wait
 * for a regular file, which always accepts data: then it returns soon, and the caller tries again.
 */
static void wait_for(const struct output *o, int fd, uint64_t until_ns)
{
	struct epoll_event takes = { .events = EPOLLOUT }, happened;
	bool added = fd >= 0 && epoll_ctl(o->epoll_fd, EPOLL_CTL_ADD, fd, &takes) == 0;
	int timeout_ms = fd >= 0 && !added ? AGAIN_MS : -1;
	uint64_t value;

	if (until_ns != FOREVER) {
		uint64_t now_ns = clock_mono_ns();
		uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		int left_ms = (int)MIN(left_ns / NSEC_PER_MSEC + 1, (uint64_t)INT_MAX);

		timeout_ms = timeout_ms < 0 ? left_ms : MIN(timeout_ms, left_ms);
	}
	epoll_wait(o->epoll_fd, &happened, 1, timeout_ms);
	if (added)
		epoll_ctl(o->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	(void)!read(o->wake_fd, &value, sizeof(value));
}

static void count_error(struct output *o, int error)
{
	pthread_mutex_lock(&o->mutex);
	o->stats.write_errors++;
	o->stats.last_error = error;
	pthread_mutex_unlock(&o->mutex);
}

static uint64_t next_try(struct output *o)
{
	uint64_t at_ns = clock_mono_ns() + o->backoff_ms * NSEC_PER_MSEC;

	o->backoff_ms = MIN(o->backoff_ms * 2, BACKOFF_MAX_MS);
	return at_ns;
}

/*
 * Called when fd has accepted `n` more bytes: returns the space of complete lines to the producers.
 */
static void advance_head(struct output *o, size_t n)
{
	size_t whole;
	uint64_t lines = output_ring_lines(&o->ring, o->head + o->partial, n, &whole);

	o->backoff_ms = BACKOFF_MIN_MS;
	pthread_mutex_lock(&o->mutex);
	if (lines) {
		size_t bytes = o->partial + whole;

		o->stats.lines += lines;
		o->stats.bytes += bytes;
		o->stats.queued_bytes -= bytes;
		/*
		 * An empty ring starts at 0 again, so that a short queue touches the same few
		 * pages.
		 */
		o->head = o->stats.queued_bytes ? (o->head + bytes) % o->stats.queue_bytes : 0;
		o->partial = n - whole;
	} else {
		o->partial += n;
	}
	if (!o->reopening)
		o->stats.last_error = 0;
	pthread_mutex_unlock(&o->mutex);
}

static bool peer_gone(int error)
{
	return error == EPIPE || error == ECONNRESET || error == ENOTCONN || error == ECONNREFUSED;
}

static void write_failed(struct output *o, int error)
{
	count_error(o, error);
	if (o->reopening && clock_mono_ns() >= o->open_at_ns) {
		/*
		 * The old file cannot take the rest of its line, so the new file gets the whole
		 * line.
		 */
		o->partial = 0;
		return;
	}
	if (o->sink.final && peer_gone(error)) {
		pthread_mutex_lock(&o->mutex);
		o->ended = true;
		pthread_mutex_unlock(&o->mutex);
		raise_event(o->ended_fd);
		return;
	}
	o->write_at_ns = next_try(o);
	if (o->sink.kind == OUTPUT_UNIX && peer_gone(error)) {
		output_sink_close(&o->sink);
		o->partial = 0;
		o->reopening = true;
		o->open_at_ns = o->write_at_ns;
	}
}

/*
 * Writes at most `n` bytes with one write(2), after the bytes written already; waits if fd accepts
 * nothing.
 */
static void write_some(struct output *o, size_t n, uint64_t until_ns)
{
	struct iovec iov[2];
	ssize_t written;
	int count;

	count = output_ring_pieces(&o->ring, o->head + o->partial, n, iov);
	written = output_sink_write(&o->sink, iov, count);
	if (written > 0)
		advance_head(o, (size_t)written);
	else if (written == -EAGAIN)
		wait_for(o, o->sink.fd, until_ns);
	else if (written != -EINTR)
		write_failed(o, written ? (int)-written : EIO);
}

static void open_again(struct output *o)
{
	int r = output_sink_reopen(&o->sink);

	if (r < 0) {
		/*
		 * An open file stays in use: a line in a renamed file is better than a lost line.
		 */
		count_error(o, -r);
		o->open_at_ns = next_try(o);
		return;
	}
	o->partial = 0;
	o->reopening = false;
	o->write_at_ns = 0;
}

/* Opens the path again before more is written to a file that has lost its name. */
static void look_for_file(struct output *o, uint64_t now_ns)
{
	if (o->reopening || !output_sink_is_lost(&o->sink, now_ns))
		return;
	o->reopening = true;
	o->open_at_ns = 0;
	pthread_mutex_lock(&o->mutex);
	o->stats.lost_files++;
	pthread_mutex_unlock(&o->mutex);
}

/* Runs one step of the writing thread with `used` bytes in the queue. */
static void write_step(struct output *o, size_t used, uint64_t deadline_ns)
{
	uint64_t now_ns = clock_mono_ns(), until_ns = deadline_ns;
	bool opening;

	if (used)
		look_for_file(o, now_ns);
	opening = o->reopening && now_ns >= o->open_at_ns;

	if (opening && !o->partial) {
		open_again(o);
		return;
	}
	if (o->sink.fd >= 0 && used && (opening || now_ns >= o->write_at_ns)) {
		size_t left = used - o->partial;
		size_t n = opening ? output_ring_line(&o->ring, o->head + o->partial, left) : left;

		write_some(o, MIN(n, (size_t)WRITE_BYTES), until_ns);
		return;
	}
	if (o->reopening)
		until_ns = MIN(until_ns, o->open_at_ns);
	if (o->sink.fd >= 0 && used)
		until_ns = MIN(until_ns, o->write_at_ns);
	wait_for(o, -1, until_ns);
}

/* Reads the next task of the thread; false when the thread must end. */
static bool read_state(struct output *o, size_t *ret_used, uint64_t *ret_deadline_ns)
{
	bool go_on;

	pthread_mutex_lock(&o->mutex);
	*ret_used = o->ended ? 0 : o->stats.queued_bytes;
	*ret_deadline_ns = o->stop ? o->deadline_ns : FOREVER;
	go_on = !o->stop || (*ret_used && clock_mono_ns() < o->deadline_ns);
	if (o->reopen && o->sink.kind != OUTPUT_STDOUT) {
		o->reopening = true;
		o->open_at_ns = 0;
	}
	o->reopen = false;
	o->sleeping = !*ret_used;
	pthread_mutex_unlock(&o->mutex);
	return go_on;
}

static void *run_writer(void *context)
{
	struct output *o = context;
	uint64_t deadline_ns;
	size_t used;

	while (read_state(o, &used, &deadline_ns))
		write_step(o, used, deadline_ns);
	return NULL;
}

void output_queue_tap(struct output *o, output_queue_tap_call tap, void *context)
{
	o->tap = tap;
	o->tap_context = context;
}

int output_queue_start(struct output *o)
{
	sigset_t all, before;
	int r;

	/*
	 * The main thread handles signals. With SIGPIPE blocked in this thread write(2) returns
	 * EPIPE.
	 */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = thread_start(&o->thread, NULL, "writer", run_writer, o);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return r;
	o->started = true;
	return 0;
}

static void append_bytes(struct output *o, const char *data, size_t bytes)
{
	struct iovec iov[2];
	int count = output_ring_pieces(&o->ring, o->head + o->stats.queued_bytes, bytes, iov);

	memcpy(iov[0].iov_base, data, iov[0].iov_len);
	if (count > 1)
		memcpy(iov[1].iov_base, data + iov[0].iov_len, iov[1].iov_len);
	o->stats.queued_bytes += bytes;
}

bool output_queue_put(struct output *o, const char *data, size_t bytes, uint64_t lines)
{
	bool fits, sleeping = false;

	if (!bytes)
		return true;
	pthread_mutex_lock(&o->mutex);
	/* Text without '\n' at its end would mix with the next line. */
	fits = !o->stop && data[bytes - 1] == '\n' &&
	       bytes <= o->stats.queue_bytes - o->stats.queued_bytes;
	if (fits) {
		append_bytes(o, data, bytes);
		sleeping = o->sleeping;
		o->sleeping = false;
	} else {
		o->stats.dropped_lines += lines;
		o->stats.dropped_bytes += bytes;
	}
	pthread_mutex_unlock(&o->mutex);
	if (sleeping)
		wake_writer(o);
	if (fits && o->tap)
		o->tap(o->tap_context, data, bytes, lines);
	return fits;
}

void output_queue_count_dropped(struct output *o, uint64_t lines)
{
	pthread_mutex_lock(&o->mutex);
	o->stats.dropped_lines += lines;
	pthread_mutex_unlock(&o->mutex);
}

void output_queue_reopen(struct output *o)
{
	pthread_mutex_lock(&o->mutex);
	o->reopen = true;
	pthread_mutex_unlock(&o->mutex);
	wake_writer(o);
}

void output_queue_stats(struct output *o, struct output_queue_stats *ret_stats)
{
	pthread_mutex_lock(&o->mutex);
	*ret_stats = o->stats;
	pthread_mutex_unlock(&o->mutex);
}

void output_queue_give_back(struct output *o)
{
	pthread_mutex_lock(&o->mutex);
	if (!o->stats.queued_bytes)
		memory_drop(o->ring.data, o->ring.space);
	pthread_mutex_unlock(&o->mutex);
}

/* Waits for the thread to end; false if it hangs in the kernel (a dead network file system). */
static bool join_writer(struct output *o, uint32_t timeout_ms)
{
	uint64_t until_ns = clock_real_ns() + (timeout_ms + STOP_GRACE_MS) * NSEC_PER_MSEC;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
		.tv_nsec = (long)(until_ns % NSEC_PER_SEC),
	};

	return pthread_timedjoin_np(o->thread, NULL, &until) == 0;
}

struct output_queue_left output_queue_stop(struct output *o, uint32_t timeout_ms)
{
	struct output_queue_left left;

	if (o->joined)
		return (struct output_queue_left){ 0 };
	pthread_mutex_lock(&o->mutex);
	o->stop = true;
	o->deadline_ns = clock_mono_ns() + timeout_ms * NSEC_PER_MSEC;
	pthread_mutex_unlock(&o->mutex);
	wake_writer(o);
	o->joined = !o->started || join_writer(o, timeout_ms);
	pthread_mutex_lock(&o->mutex);
	left = output_ring_left(&o->ring, o->head, o->stats.queued_bytes);
	o->stats.dropped_lines += left.lines;
	o->stats.dropped_bytes += left.bytes;
	if (o->joined)
		o->stats.queued_bytes = 0;
	pthread_mutex_unlock(&o->mutex);
	return left;
}

void output_queue_free(struct output *o)
{
	if (!o)
		return;
	if (o->started && !o->joined)
		output_queue_stop(o, 0);
	if (o->started && !o->joined)
		return; /* the thread still uses this memory in write(2); the process ends */
	output_sink_done(&o->sink);
	cleanup_close(&o->wake_fd);
	cleanup_close(&o->ended_fd);
	cleanup_close(&o->epoll_fd);
	pthread_mutex_destroy(&o->mutex);
	free(o->ring.data);
	free(o);
}

int output_queue_ended_fd(const struct output *o)
{
	return o->ended_fd;
}

enum output_queue_kind output_queue_kind(const struct output *o)
{
	return o->sink.kind;
}

const char *output_queue_path(const struct output *o)
{
	return o->sink.path;
}

const char *output_queue_name(const struct output *o)
{
	return o->sink.path ? o->sink.path : "standard output";
}
