/* SPDX-License-Identifier: BSD-2-Clause */
/* account_fixture.h: a watched group in which a session keeps accounts, and how they are read. */
#ifndef TROCAR_TESTS_BPF_ACCOUNT_FIXTURE_H
#define TROCAR_TESTS_BPF_ACCOUNT_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "harness.h"
#include "shared/tools/macro.h"

#define SLOT	 7
#define MSEC	 1000000ull
#define SLACK_MS 20 /* of a machine on which others work */

struct fixture {
	struct harness *h;
	struct bpf_link *link;
	char dir[4096];
	uint64_t id;
};

static inline struct fixture begin(const struct harness_options *options, uint32_t flags)
{
	struct fixture f = { .h = harness_new(options) };

	f.id = harness_group(f.h, "account", f.dir);
	harness_watch(f.h, f.id, SLOT, SLOT_CAPTURE, flags);
	f.h->slots[SLOT].session = 1;
	f.h->control->heartbeat_ns = harness_now_ns();
	f.h->control->stale_ns = 60000000000u;
	f.link = bpf_program__attach(f.h->skel->progs.account_switch);
	assert_non_null(f.link);
	return f;
}

static inline void end(struct fixture *f)
{
	bpf_link__destroy(f->link);
	harness_free(f->h);
}

/* Reads all accounts; the record of thread `tid` is *ret_record. Returns how many there are. */
static inline size_t read_accounts(const struct fixture *f, pid_t tid,
				   struct account_record *ret_record)
{
	char *bytes = NULL;
	size_t n = harness_read(f->h->skel->progs.account_threads, &bytes), found = 0;

	memset(ret_record, 0, sizeof(*ret_record));
	for (size_t at = 0; at + sizeof(*ret_record) <= n; at += sizeof(*ret_record)) {
		struct account_record record;

		memcpy(&record, bytes + at, sizeof(record));
		if (record.head.tid == (uint32_t)tid)
			*ret_record = record;
		found += record.head.tid > 0;
	}
	free(bytes);
	return found;
}

static inline uint64_t sum_parts(const struct time_account *a)
{
	uint64_t sum = 0;

	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		sum += a->part_ns[i];
	return sum;
}

static inline bool is_near_ms(uint64_t ns, uint64_t wanted_ns)
{
	uint64_t difference = ns > wanted_ns ? ns - wanted_ns : wanted_ns - ns;

	if (difference > SLACK_MS * MSEC + wanted_ns / 20)
		print_error("%.1f ms, and not %.1f\n", (double)ns / MSEC, (double)wanted_ns / MSEC);
	return difference <= SLACK_MS * MSEC + wanted_ns / 20;
}

static inline void assert_near_ms(uint64_t ns, uint64_t wanted_ns)
{
	assert_true(is_near_ms(ns, wanted_ns));
}

static inline void block_sleep(void *context)
{
	for (;;)
		sleep(1000);
}

#endif
