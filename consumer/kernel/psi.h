/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * psi.h: reads pressure files (Documentation/accounting/psi.rst) and computes the stall over a
 * window. Keeps no state of its own.
 */
#ifndef TROCAR_CONSUMER_KERNEL_PSI_H
#define TROCAR_CONSUMER_KERNEL_PSI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw;

/* One line of a pressure file: averages in hundredths of a percent, total in microseconds. */
struct psi_line {
	uint16_t avg10, avg60, avg300;
	uint64_t total_us;
};

struct psi {
	struct psi_line some, full;
	bool has_full; /* the cpu file has no full line before Linux 5.13 */
};

/* Parses the text of a pressure file. 0 or -EINVAL. Fuzzed (tests/fuzz/consumer/psi.c). */
int psi_parse(const char *text, size_t bytes, struct psi *ret_psi);

/* Reads the open pressure file (pread at 0) and parses it. 0; -EOPNOTSUPP, -ENODEV, -errno. */
int psi_read(int fd, struct psi *ret_psi);

/* Writes {"some": {...}, "full": {...}}. */
void psi_write(const struct psi *psi, struct jsonw *w, const char *key);

/* The last readings with their times: a ring that covers the longest window. */
struct psi_history {
	struct psi_point {
		uint64_t time_ns;
		struct psi psi;
		bool paused; /* no reading followed for a while: growth may be from its end */
	} * points;	     /* owned ring of `space` */
	size_t space, count, newest;
};

/* Allocates `space` points. Returns 0 or -ENOMEM. */
int psi_history_init(struct psi_history *h, size_t space);

/*
 * Changes the capacity to `space` points and keeps the newest that fit. Also allocates for an
 * all-zero history. Returns 0 or -ENOMEM.
 */
int psi_history_resize(struct psi_history *h, size_t space);
void psi_history_done(struct psi_history *h);
void psi_history_clear(struct psi_history *h);
void psi_history_add(struct psi_history *h, uint64_t time_ns, const struct psi *psi);

/* Marks the newest point as `paused`. */
void psi_history_pause(struct psi_history *h);

/* Returns the newest point, or NULL. */
const struct psi_point *psi_history_newest(const struct psi_history *h);

/* Returns the newest point at or before `time_ns`, else the oldest one; NULL if there is none. */
const struct psi_point *psi_history_since(const struct psi_history *h, uint64_t time_ns);

/*
 * Returns the growth of the total from one reading to a later one, in microseconds; 0 if it did not
 * grow.
 */
uint64_t psi_growth_us(const struct psi *from, const struct psi *to, bool full);

#endif
