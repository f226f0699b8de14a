/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/evidence/sockets/socket_passes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "consumer/kernel/pinned_maps.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"

/* The last state of include/net/tcp_states.h that a socket with a descriptor may have. */
#define STATE_MAX 13

/*
 * Passes begin in the drains of a session, which run at the same interval, slightly early or late.
 */
#define SLACK_NS (5 * NSEC_PER_MSEC)

static int open_iterator(const struct socket_passes *p)
{
	int fd = p->pins->sockets_path ? open(p->pins->sockets_path, O_RDONLY | O_CLOEXEC) : -1;

	return fd < 0 ? -1 : fd;
}

/* One read without sessions empties the tables (bpf/sockets/socket.bpf.c). */
static void forget_sockets(const struct socket_passes *p)
{
	_cleanup_close_ int fd = -1;
	char none[8];

	p->pins->control->sockets = 0;
	fd = open_iterator(p);
	if (fd >= 0 && read(fd, none, sizeof(none)) < 0)
		return; /* EAGAIN: the tables are empty */
}

void socket_passes_init(struct socket_passes *p, struct pinned_maps *pins)
{
	*p = (struct socket_passes){ .pins = pins, .fd = -1 };
}

void socket_passes_done(struct socket_passes *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

bool socket_passes_are_there(const struct socket_passes *p)
{
	_cleanup_close_ int fd = open_iterator(p);

	return fd >= 0;
}

uint64_t socket_passes_ask(struct socket_passes *p)
{
	p->asked = true;
	return p->pass.number + 1;
}

uint64_t socket_passes_hold(struct socket_passes *p, struct socket_watcher *w)
{
	if (!p->watchers)
		forget_sockets(p);
	w->next = p->watchers;
	p->watchers = w;
	p->pins->control->sockets++;
	return socket_passes_ask(p);
}

void socket_passes_drop(struct socket_passes *p, struct socket_watcher *w)
{
	struct socket_watcher **at = &p->watchers;

	while (*at && *at != w)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = w->next;
	if (p->watchers) {
		p->pins->control->sockets--;
		return;
	}
	socket_passes_done(p);
	p->asked = false;
	forget_sockets(p);
}

/*
 * Ends the pass. Schedules the next one late enough that passes use no more of a CPU than the
 * budget. A pass on request does not count.
 */
static void end_pass(struct socket_passes *p, bool cut)
{
	uint64_t apart_ns = SOCKET_PASSES_EVERY_NS;
	struct socket_watcher *next;

	socket_passes_done(p);
	p->pass.cut = cut;
	if (p->counts)
		apart_ns = MAX(apart_ns, p->pass.cpu_ns * 100 / SOCKET_PASSES_BUDGET_PCT);
	p->due_ns = p->pass.began_ns + apart_ns - SLACK_NS;
	for (struct socket_watcher *w = p->watchers; w; w = next) {
		next = w->next;
		w->passed(w, &p->pass);
	}
}

static void take_nothing(void *context, const void *record, size_t bytes)
{
}

static bool begin_pass(struct socket_passes *p, uint64_t now_ns)
{
	if (!p->watchers || (!p->asked && now_ns < p->due_ns))
		return false;
	p->pass = (struct socket_pass){ .number = p->pass.number + 1, .began_ns = now_ns };
	p->counts = !p->asked;
	p->asked = false;
	/* A pass that was cut short may have left some records. */
	ring_drain(&p->pins->socket_looks, RING_ENDLESSLY, take_nothing, p);
	p->fd = open_iterator(p);
	if (p->fd < 0)
		end_pass(p, true);
	return p->fd >= 0;
}

bool socket_passes_is_sane(const struct socket_record *r, uint32_t slots)
{
	return r->slot < slots && r->way < SOCKET_WAYS_ && r->state < STATE_MAX &&
	       (r->family == AF_INET || r->family == AF_INET6);
}

static void take_record(void *context, const void *data, size_t bytes)
{
	struct socket_passes *p = context;
	const struct socket_record *record = data;

	if (bytes != sizeof(*record) || !socket_passes_is_sane(record, p->pins->abi.slots)) {
		p->bad++;
		return;
	}
	for (struct socket_watcher *w = p->watchers; w; w = w->next)
		w->seen(w, &p->pass, record);
}

/*
 * Reads once, and takes the records. Returns 1 if there are more, 0 at the end, or -errno. A read
 * returns EAGAIN when it has done enough work.
 */
static int read_once(struct socket_passes *p)
{
	char none[8];
	ssize_t n = read(p->fd, none, sizeof(none));
	int r = n < 0 ? -errno : 0;

	ring_drain(&p->pins->socket_looks, RING_ENDLESSLY, take_record, p);
	return r == -EAGAIN || r == -EINTR ? 1 : r;
}

void socket_passes_step(struct socket_passes *p, uint64_t until_ns)
{
	uint64_t begun_ns = clock_thread_ns();
	int r;

	if (p->fd < 0 && !begin_pass(p, clock_mono_ns()))
		return;
	do
		r = read_once(p);
	while (r > 0 && clock_mono_ns() < until_ns);
	p->pass.cpu_ns += clock_thread_ns() - begun_ns;
	if (r <= 0)
		end_pass(p, r < 0);
}

bool socket_passes_has_rest(const struct socket_passes *p)
{
	return p->fd >= 0 || (p->watchers && (p->asked || clock_mono_ns() >= p->due_ns));
}
