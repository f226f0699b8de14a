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

/* Writes the account of the thread, as a consumer may: into the array, or into the hash alone. */
static inline void put_times(const struct fixture *f, pid_t tid, const struct thread_times *times,
			     bool near)
{
	const struct account_key key = { .tid = (uint32_t)tid };
	struct near_account element = { .owner = near ? key.tid | ACCOUNT_NEAR_READY : 0,
					.times = *times };
	uint32_t at = key.tid % ACCOUNTS_NEAR;
	int e = bpf_map_update_elem(bpf_map__fd(f->h->skel->maps.accounts_near), &at, &element,
				    BPF_ANY);

	assert_int_equal(e, 0);
	if (!near)
		e = bpf_map_update_elem(bpf_map__fd(f->h->skel->maps.accounts), &key, times,
					BPF_ANY);
	assert_int_equal(e, 0);
}

static inline uint64_t sum_parts(const struct time_account *a)
{
	uint64_t sum = 0;

	for (int i = 0; i < ACCOUNT_PARTS_; i++)
		sum += a->part_ns[i];
	return sum;
}

/* Whether an account has all of `flags`. Its time is added to *ns. */
static inline bool count_account(const struct time_account *a, uint32_t flags, uint64_t *ns)
{
	if ((a->flags & flags) != flags)
		return false;
	assert_int_equal(sum_parts(a), a->since_ns - a->first_ns);
	*ns += sum_parts(a);
	return true;
}

/* Accounts with all of `flags`; their sums of parts are *ret_ns. */
static inline size_t count_elements(const struct fixture *f, uint32_t flags, uint64_t *ret_ns)
{
	int fd = bpf_map__fd(f->h->skel->maps.accounts);
	struct account_key key, *previous = NULL;
	struct thread_times times;
	struct near_account near;
	size_t n = 0;

	*ret_ns = 0;
	for (uint32_t i = 0; i < ACCOUNTS_NEAR; i++) {
		assert_int_equal(
			bpf_map_lookup_elem(bpf_map__fd(f->h->skel->maps.accounts_near), &i, &near),
			0);
		n += near.owner && count_account(&near.times.account, flags, ret_ns);
	}
	while (bpf_map_get_next_key(fd, previous, &key) == 0) {
		previous = &key;
		n += !bpf_map_lookup_elem(fd, &key, &times) &&
		     count_account(&times.account, flags, ret_ns);
	}
	return n;
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
