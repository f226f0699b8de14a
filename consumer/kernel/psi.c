/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/kernel/psi.h"
#include "shared/json/jsonw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool take_word(const char **p, const char *end, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(end - *p) < n || memcmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

static bool take_number(const char **p, const char *end, uint64_t *ret)
{
	const char *start = *p;
	uint64_t n = 0;

	while (*p < end && **p >= '0' && **p <= '9') {
		if (n > (UINT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(**p - '0');
		(*p)++;
	}
	*ret = n;
	return *p > start;
}

/* Parses " avg10=3.11": a whole number and two decimals (kernel/sched/psi.c prints %lu.%02lu). */
static bool take_average(const char **p, const char *end, const char *key, uint16_t *ret)
{
	uint64_t whole, cents;
	const char *point;

	if (!take_word(p, end, key) || !take_number(p, end, &whole) || !take_word(p, end, "."))
		return false;
	point = *p;
	if (!take_number(p, end, &cents) || *p - point != 2 || whole > 100)
		return false;
	*ret = (uint16_t)(whole * 100 + cents);
	return true;
}

static bool take_line(const char **p, const char *end, const char *name, struct psi_line *ret)
{
	struct psi_line line;

	if (!take_word(p, end, name) || !take_average(p, end, " avg10=", &line.avg10) ||
	    !take_average(p, end, " avg60=", &line.avg60) ||
	    !take_average(p, end, " avg300=", &line.avg300) || !take_word(p, end, " total=") ||
	    !take_number(p, end, &line.total_us) || !take_word(p, end, "\n"))
		return false;
	*ret = line;
	return true;
}

int psi_parse(const char *text, size_t bytes, struct psi *ret_psi)
{
	const char *p = text, *end = text + bytes;
	struct psi psi = {};

	if (!take_line(&p, end, "some", &psi.some))
		return -EINVAL;
	if (p < end) {
		if (!take_line(&p, end, "full", &psi.full) || p != end)
			return -EINVAL;
		psi.has_full = true;
	}
	*ret_psi = psi;
	return 0;
}

int psi_read(int fd, struct psi *ret_psi)
{
	char text[512];
	ssize_t n = pread(fd, text, sizeof(text), 0);

	if (n < 0)
		return -errno;
	return psi_parse(text, (size_t)n, ret_psi);
}

static void write_line(const struct psi_line *line, struct jsonw *w, const char *key)
{
	jsonw_object(w, key);
	jsonw_milli(w, "avg10", (int64_t)line->avg10 * 10);
	jsonw_milli(w, "avg60", (int64_t)line->avg60 * 10);
	jsonw_milli(w, "avg300", (int64_t)line->avg300 * 10);
	jsonw_u64(w, "total_us", line->total_us);
	jsonw_object_end(w);
}

void psi_write(const struct psi *psi, struct jsonw *w, const char *key)
{
	jsonw_object(w, key);
	write_line(&psi->some, w, "some");
	if (psi->has_full)
		write_line(&psi->full, w, "full");
	jsonw_object_end(w);
}

int psi_history_init(struct psi_history *h, size_t space)
{
	*h = (struct psi_history){ .space = space };
	h->points = calloc(space, sizeof(*h->points));
	return h->points ? 0 : -ENOMEM;
}

int psi_history_resize(struct psi_history *h, size_t space)
{
	struct psi_history fresh;
	int r;

	if (h->space == space)
		return 0;
	r = psi_history_init(&fresh, space);
	if (r < 0)
		return r;
	for (size_t i = h->count < space ? h->count : space; i > 0; i--) {
		const struct psi_point *p = &h->points[(h->newest + h->space - (i - 1)) % h->space];

		psi_history_add(&fresh, p->time_ns, &p->psi);
		fresh.points[fresh.newest].paused = p->paused;
	}
	psi_history_done(h);
	*h = fresh;
	return 0;
}

void psi_history_done(struct psi_history *h)
{
	free(h->points);
	*h = (struct psi_history){};
}

void psi_history_clear(struct psi_history *h)
{
	h->count = 0;
}

void psi_history_add(struct psi_history *h, uint64_t time_ns, const struct psi *psi)
{
	h->newest = (h->newest + 1) % h->space;
	h->points[h->newest] = (struct psi_point){ .time_ns = time_ns, .psi = *psi };
	if (h->count < h->space)
		h->count++;
}

void psi_history_pause(struct psi_history *h)
{
	if (h->count)
		h->points[h->newest].paused = true;
}

const struct psi_point *psi_history_newest(const struct psi_history *h)
{
	return h->count ? &h->points[h->newest] : NULL;
}

const struct psi_point *psi_history_since(const struct psi_history *h, uint64_t time_ns)
{
	const struct psi_point *p = psi_history_newest(h);

	for (size_t i = 1; i < h->count && p->time_ns > time_ns; i++)
		p = &h->points[(h->newest + h->space - i) % h->space];
	return p;
}

uint64_t psi_growth_us(const struct psi *from, const struct psi *to, bool full)
{
	uint64_t then = full ? from->full.total_us : from->some.total_us;
	uint64_t now = full ? to->full.total_us : to->some.total_us;

	return now > then ? now - then : 0;
}
