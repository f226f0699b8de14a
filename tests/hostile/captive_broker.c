/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker, asked by hand: each request of broker.def, with bodies that are right, half right or
 * anything, in messages that are right or not. An answer has CAPTIVE_SLOW_NS.
 */
#include "captive.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shared/rules/rules.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define WAIT_MS	     3000 /* for an answer, before the connection is given up */
#define MESSAGE_MAX  256
#define FLOOD	     48
#define FLOOD_CHANCE 40 /* one in so many */

struct message {
	_Alignas(uint64_t) uint8_t bytes[MESSAGE_MAX];
	size_t n;
};

static void fill_hello(struct captive *c, const struct prey *p, void *body)
{
	memcpy(body, &(struct broker_hello){ .abi_version = ABI_VERSION },
	       sizeof(struct broker_hello));
}

static void fill_sampler_open(struct captive *c, const struct prey *p, void *body)
{
	struct broker_sampler_open b = {
		.cpu = (uint32_t)captive_random(c, 3),
		.hz = captive_random(c, 4) ? 97 : (uint16_t)captive_random(c, 1100),
		.divisor = (uint16_t)(captive_random(c, 3) ? 1 : captive_random(c, 1100)),
	};

	memcpy(body, &b, sizeof(b));
}

/* Signals that have programs. */
static const uint32_t probed[] = {
#define PROBE(program, signal, tracepoint, help) SIGNAL_##signal,
#include "shared/abi/probes.def"
#undef PROBE
};

static void fill_signal_attach(struct captive *c, const struct prey *p, void *body)
{
	struct broker_signal_attach b = {
		.signal = (uint32_t)captive_random(c, SIGNAL_COUNT_ + 1),
	};

	if (captive_random(c, 2))
		b.signal = probed[captive_random(c, ARRAY_SIZE(probed))];

	memcpy(body, &b, sizeof(b));
}

static void fill_pressure_open(struct captive *c, const struct prey *p, void *body)
{
	struct broker_pressure_open b = {
		.cgroup_id = p->cgroup_id,
		.resource = (uint32_t)captive_random(c, RESOURCE_COUNT_),
	};

	memcpy(body, &b, sizeof(b));
}

static void fill_mapping_open(struct captive *c, const struct prey *p, void *body)
{
	struct broker_mapping_open b = { .tgid = p->pid, .start_ns = p->start_ns };

	if (p->range_count) {
		size_t i = captive_random(c, p->range_count);

		b.start = p->ranges[i].start;
		b.end = p->ranges[i].end;
	}
	memcpy(body, &b, sizeof(b));
}

static void fill_jit_map_open(struct captive *c, const struct prey *p, void *body)
{
	struct broker_jit_map_open b = { .tgid = p->pid, .start_ns = p->start_ns };

	memcpy(body, &b, sizeof(b));
}

static void (*const fills[])(struct captive *c, const struct prey *p, void *body) = {
	[BROKER_HELLO] = fill_hello,
	[BROKER_SAMPLER_OPEN] = fill_sampler_open,
	[BROKER_SIGNAL_ATTACH] = fill_signal_attach,
	[BROKER_PRESSURE_OPEN] = fill_pressure_open,
	[BROKER_MAPPING_OPEN] = fill_mapping_open,
	[BROKER_JIT_MAP_OPEN] = fill_jit_map_open,
};

_Static_assert(ARRAY_SIZE(fills) == BROKER_COUNT_, "a request is never asked");

static const struct {
	size_t body_bytes;
	unsigned int descriptors;
} requests[] = {
#define BROKER(id, name, stage, body, descriptors, help) { sizeof(body), descriptors },
#include "shared/broker/broker.def"
#undef BROKER
};

static void hang_up(struct captive_link *link)
{
	close(link->fd);
	*link = (struct captive_link){ .fd = -1 };
}

/* Writes a request in order; for `p`, where it is one of a process or cgroup. */
static void compose(struct captive *c, struct captive_link *link, uint32_t request,
		    const struct prey *p, struct message *m)
{
	struct broker_request_header header = {
		.magic = BROKER_MAGIC,
		.request = request,
		.sequence = ++link->sequence,
	};

	memcpy(m->bytes, &header, sizeof(header));
	m->n = sizeof(header) + requests[request].body_bytes;
	fills[request](c, p, m->bytes + sizeof(header));
}

/* Spoils it: some of its words, its length, or all of it. */
static void spoil(struct captive *c, struct message *m)
{
	size_t from = captive_random(c, 8) ? sizeof(struct broker_request_header) : 0;

	switch (captive_random(c, 4)) {
	case 0:
		captive_fill(c, m->bytes, sizeof(m->bytes));
		m->n = captive_random(c, MESSAGE_MAX + 1);
		break;
	case 1:
		m->n = captive_random(c, MESSAGE_MAX + 1);
		break;
	case 2:
		captive_fill(c, m->bytes + from, m->n - from);
		break;
	default:
		from += captive_random(c, (m->n - from) / 4) * 4;
		captive_fill(c, m->bytes + from, 4);
	}
}

static void keep(struct captive *c, uint32_t request, int fd)
{
	struct captive_held *held;

	/* Full, or tired of something: another takes its place. */
	if (c->held_count == CAPTIVE_HELD || (c->held_count && !captive_random(c, 3))) {
		held = &c->held[captive_random(c, c->held_count)];
		if (held->memory)
			munmap(held->memory, CAPTIVE_PAGE);
		close(held->fd);
	} else {
		held = &c->held[c->held_count++];
	}
	*held = (struct captive_held){ .fd = fd, .request = request };
}

static unsigned int take_descriptors(struct captive *c, struct msghdr *message, uint32_t request)
{
	unsigned int n = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h)) {
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= h->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, (const uint8_t *)h + at, sizeof(fd));
			if (request < BROKER_COUNT_)
				keep(c, request, fd);
			else
				close(fd); /* a leak, by `judge` */
			n++;
		}
	}
	return n;
}

/* One of the prey that the message, whatever became of it, asks for; NULL: none. */
static const struct prey *asked_for(const struct captive *c, const struct message *m)
{
	const void *body = m->bytes + sizeof(struct broker_request_header);
	struct broker_pressure_open pressure;
	struct broker_mapping_open mapping;
	struct broker_jit_map_open jit_map;
	uint32_t request;

	memcpy(&request, m->bytes + offsetof(struct broker_request_header, request),
	       sizeof(request));
	memcpy(&pressure, body, sizeof(pressure));
	memcpy(&mapping, body, sizeof(mapping));
	memcpy(&jit_map, body, sizeof(jit_map));
	for (size_t i = 0; i < c->prey_count; i++) {
		const struct prey *p = &c->prey[i];

		if ((request == BROKER_PRESSURE_OPEN && pressure.cgroup_id == p->cgroup_id) ||
		    (request == BROKER_MAPPING_OPEN && mapping.tgid == p->pid) ||
		    (request == BROKER_JIT_MAP_OPEN && jit_map.tgid == p->pid))
			return p;
	}
	return NULL;
}

static unsigned int asked_hz(const struct message *m)
{
	struct broker_sampler_open b;

	memcpy(&b, m->bytes + sizeof(struct broker_request_header), sizeof(b));
	return b.hz;
}

/* What was granted must have been asked for, and be of the scope. */
static void judge(struct captive *c, const struct broker_answer *answer, unsigned int descriptors,
		  const struct message *m)
{
	uint32_t request = answer->request;
	const struct prey *p = m ? asked_for(c, m) : NULL;

	if (answer->refusal != REFUSAL_NONE) {
		if (descriptors || answer->refusal >= REFUSAL_COUNT_)
			captive_leak(c, "refused with %u, and %u descriptors", answer->refusal,
				     descriptors);
		else
			c->refused[answer->refusal]++;
		return;
	}
	if (request >= BROKER_COUNT_ || descriptors > requests[request].descriptors) {
		captive_leak(c, "%u descriptors for request %u", descriptors, request);
		return;
	}
	c->granted[request]++;
	if (m && request == BROKER_SAMPLER_OPEN && asked_hz(m) > c->hz)
		captive_leak(c, "an event of %u ticks a second, the load has %u", asked_hz(m),
			     c->hz);
	if (p && p->kind == PREY_OUTSIDE)
		captive_leak(c, "request %u granted for process %u, outside of the scope", request,
			     p->pid);
}

/* Requests that were refused before their number was looked at are not numbered. */
static void number(struct captive_link *link, const struct broker_answer *answer)
{
	if (answer->refusal == REFUSAL_LENGTH || answer->refusal == REFUSAL_REQUEST ||
	    answer->refusal == REFUSAL_SEQUENCE)
		link->sequence--;
}

/* How long the captive itself has waited for a CPU, ever: the second word of its schedstat. */
static uint64_t delayed_ns(const struct captive *c)
{
	char text[64];
	ssize_t n = pread(c->schedstat_fd, text, sizeof(text) - 1, 0);
	char *rest = text;
	uint64_t delayed = 0;

	text[n > 0 ? n : 0] = '\0';
	strsep(&rest, " ");
	return rest && parse_u64(strsep(&rest, " "), 0, UINT64_MAX, &delayed) == 0 ? delayed : 0;
}

static void measure(struct captive *c, uint32_t request, uint64_t took_ns)
{
	c->answers++;
	c->slowest_ns = MAX(c->slowest_ns, took_ns);
	if (took_ns <= CAPTIVE_SLOW_NS || c->slow++ >= CAPTIVE_LEAKS)
		return;
	printf("slow: request %u took %.1f ms\n", request, (double)took_ns / 1e6);
}

/* The next answer. False at the end of the connection. */
static bool receive(struct captive *c, struct captive_link *link, const struct message *m)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))];
	struct broker_answer answer = { 0 };
	struct iovec part = { .iov_base = &answer, .iov_len = sizeof(answer) };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct pollfd readable = { .fd = link->fd, .events = POLLIN };
	uint64_t began_ns = captive_now_ns(), late_ns = delayed_ns(c), took_ns;
	ssize_t n;

	if (poll(&readable, 1, WAIT_MS) <= 0) {
		measure(c, BROKER_COUNT_, WAIT_MS * 1000000ull);
		return false;
	}
	took_ns = captive_now_ns() - began_ns;
	late_ns = delayed_ns(c) - late_ns;
	n = recvmsg(link->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n != sizeof(answer))
		return false;
	/* The first may have to wait for a broker that is started for it. */
	if (answer.sequence > 1)
		measure(c, answer.request, took_ns - MIN(took_ns, late_ns));
	number(link, &answer);
	judge(c, &answer, take_descriptors(c, &message, answer.request), m);
	return true;
}

static bool ask(struct captive *c, struct captive_link *link, const struct message *m)
{
	return send(link->fd, m->bytes, m->n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)m->n &&
	       receive(c, link, m);
}

static bool greet(struct captive *c, struct captive_link *link)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct message m = { .n = 0 };

	memcpy(address.sun_path, c->broker,
	       MIN(strlen(c->broker) + 1, sizeof(address.sun_path) - 1));
	link->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	link->sequence = 0;
	if (link->fd < 0 || connect(link->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return false;
	compose(c, link, BROKER_HELLO, c->prey, &m);
	return ask(c, link, &m);
}

/* Many at once, and the answers afterwards: or never. */
static bool flood(struct captive *c, struct captive_link *link)
{
	struct message m = { .n = 0 };
	uint64_t sent = 0;

	for (; sent < FLOOD; sent++) {
		compose(c, link, (uint32_t)captive_random(c, BROKER_COUNT_), captive_prey(c), &m);
		if (send(link->fd, m.bytes, m.n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	if (captive_random(c, 4) == 0)
		return false;
	while (sent-- > 0)
		if (!receive(c, link, NULL))
			return false;
	return true;
}

void captive_ask(struct captive *c)
{
	struct captive_link *link = &c->links[captive_random(c, ARRAY_SIZE(c->links))];
	struct message m = { .n = 0 };
	bool good;

	if (link->fd < 0 && !greet(c, link)) {
		hang_up(link);
		return;
	}
	if (!captive_random(c, FLOOD_CHANCE)) {
		good = flood(c, link);
	} else {
		compose(c, link, (uint32_t)captive_random(c, BROKER_COUNT_), captive_prey(c), &m);
		if (!captive_random(c, 4))
			spoil(c, &m);
		good = ask(c, link, &m) && captive_random(c, 100);
	}
	if (!good)
		hang_up(link);
}
