// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * block.bpf.c: measures disk requests by the cgroup that issued them: how long each request waited
 * until its disk got it, and how long the disk took. The programs are attached for the duration of
 * a session. They count the requests of all cgroups, because a session also reports the other users
 * of the disk.
 *
 * A request is made on behalf of a bio, by the thread that does the I/O or by a kernel thread that
 * writes back a cgroup's earlier writes. Only there the issuing cgroup is known. Later the request
 * is found by the address of its first bio, or by its own address if it has no bio, or has lost
 * some of them. The key is not the address itself but is derived from it (hidden_address.h),
 * because the consumer reads the table.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "bpf/kernel/kernel_block.h"
#include "bpf/maps/hidden_address.h"
#include "bpf/maps/maps.h"
#include "bpf/maps/table.h"
#include "bpf/maps/task_keys.h"
#include "bpf/maps/time_bucket.h"
#include "bpf/watch/scope.h"
#include "bpf/watch/watch_lookup.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define BIOS_BEFORE 16 /* bios that may precede the one of the request */

/* Both maps are empty and take no memory outside sessions. The consumer empties them. */
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, block_open, __u64, struct block_request, BLOCK_OPEN_MAX);
MAP_FLAGS(HASH, BPF_F_NO_PREALLOC, block_sums, struct block_key, struct block_sums, BLOCK_SUMS_MAX);

MAP(PERCPU_ARRAY, block_losses, __u32, struct slot_block, SLOTS_DEFAULT + 1);

static const struct block_sums no_sums;

/* The reason why a request is lost. */
enum loss { LOSS_UNTRACKED, LOSS_UNLISTED, LOSS_REUSED };

/*
 * Counts a loss in the slot's watch and in the watches around it. A loss of no watch is counted in
 * the element that all sessions read (LOSSES_OF). `error` is the error of the table.
 */
static __noinline int count_lost(__u32 index, __u32 loss, int error)
{
	bool no_memory = loss != LOSS_REUSED && table_was_short(error);

	for (int i = 0; i < WATCHES_NESTED; i++) {
		__u32 at = LOSSES_OF(index);
		struct slot_block *losses = bpf_map_lookup_elem(&block_losses, &at);
		const struct slot *slot;

		if (!losses)
			return 0;
		losses->unlisted += loss == LOSS_UNLISTED;
		losses->untracked += loss != LOSS_UNLISTED;
		losses->reused += loss == LOSS_REUSED;
		losses->no_memory += no_memory;
		slot = bpf_map_lookup_elem(&slots, &index);
		if (!slot || !watch_lookup_outer(slot, &index) || index == NO_SLOT)
			return 0;
	}
	return 0;
}

static __always_inline __u32 device_of(const struct gendisk *disk)
{
	__u32 major = BPF_CORE_READ(disk, major);

	return disk ? major << 20 | (BPF_CORE_READ(disk, first_minor) & 0xfffff) : 0;
}

/* A write without bytes is a flush: fsync sends one if all data have already been sent. */
static __always_inline __u8 op_of(__u32 flags, __u32 bytes)
{
	switch (flags & REQ_OP_MASK) {
	case REQ_OP_READ:
		return BLOCK_READ;
	case REQ_OP_WRITE:
		return bytes ? BLOCK_WRITE : BLOCK_FLUSH;
	case REQ_OP_WRITE_ZEROES:
		return BLOCK_WRITE;
	case REQ_OP_FLUSH:
		return BLOCK_FLUSH;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		return BLOCK_DISCARD;
	default:
		return BLOCK_OTHER;
	}
}

static __always_inline __u8 size_of(__u32 bytes)
{
	__u8 size = 0;

	for (__u32 most = 1u << BLOCK_SIZE_SHIFT; size < BLOCK_SIZES - 1; most *= 4) {
		if (bytes <= most)
			break;
		size++;
	}
	return size;
}

/*
 * Returns the cgroup that the bio is charged to, if the kernel charges by cgroup2; else NULL. If a
 * cgroup does not have the controller `io`, it is an ancestor with the controller.
 */
static __always_inline struct cgroup *charged_to(const struct bio *bio)
{
	struct cgroup *cgroup;

	if (!bpf_core_field_exists(bio->bi_blkg))
		return 0;
	cgroup = BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup);
	return BPF_CORE_READ(cgroup, root) && !BPF_CORE_READ(cgroup, root, hierarchy_id) ? cgroup
											 : 0;
}

/*
 * Sets the issuing cgroup: that of the running thread, or the one that a kernel thread works for.
 */
static __always_inline void find_asker(const struct bio *bio, struct block_request *ret_request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp), *charged = 0;

	if (task->flags & PF_KTHREAD)
		charged = charged_to(bio);
	if (charged)
		ret_request->flags = BLOCK_WRITEBACK;
	if (charged)
		cgroup = charged;
	if (!scope_allows(cgroup))
		return;
	ret_request->cgroup_id = BPF_CORE_READ(cgroup, kn, id);
	if (!watch_lookup(ret_request->cgroup_id, &ret_request->slot))
		ret_request->slot = NO_SLOT;
}

/* Returns the element for this kind of request, as table_get does. */
static __always_inline struct block_sums *find_sums(const struct block_request *r, int *ret_error)
{
	struct block_key key = { .cgroup_id = r->cgroup_id, .slot = r->slot, .device = r->device };

	key.op = r->op;
	key.size = size_of(r->bytes);
	key.flags = r->flags;
	return table_get(&block_sums, TABLE_BLOCK_SUMS, r->slot, &key, &no_sums, ret_error);
}

/* Adds a completed request. A request that was first seen at its end has no times. */
static __noinline int add_request(const struct block_request *r, __u64 now_ns, __u32 error)
{
	int no_room;
	struct block_sums *sums = find_sums(r, &no_room);
	__u64 issued_ns = r->issued_ns ? r->issued_ns : r->since_ns;

	if (!sums)
		return count_lost(r->slot, LOSS_UNLISTED, no_room);
	__sync_fetch_and_add(&sums->requests, 1);
	__sync_fetch_and_add(&sums->bytes, r->bytes);
	error |= r->failed;
	if (error)
		__sync_fetch_and_add(&sums->errors, 1);
	if (!r->since_ns) {
		__sync_fetch_and_add(&sums->unissued, 1);
		return 0;
	}
	__sync_fetch_and_add(&sums->queue_ns, issued_ns - r->since_ns);
	__sync_fetch_and_add(&sums->service_ns, now_ns - issued_ns);
	if (error)
		__sync_fetch_and_add(&sums->error_ns, now_ns - r->since_ns);
	time_bucket_count(sums->queue, QUEUE_BUCKETS, issued_ns - r->since_ns);
	time_bucket_count(sums->service, QUEUE_BUCKETS, now_ns - issued_ns);
	/* If two CPUs do this at once, the later one wins, and its time is nearly as long. */
	if (now_ns - r->since_ns > READ_WORD(sums->longest_ns))
		sums->longest_ns = now_ns - r->since_ns;
	return 0;
}

/* Sets the operation of a bio, its device, and the issuing cgroup. */
static __always_inline void set_bio(const struct bio *bio, struct block_request *ret_request)
{
	ret_request->device = device_of(BPF_CORE_READ(bio, bi_bdev, bd_disk));
	find_asker(bio, ret_request);
	ret_request->bytes = bio->bi_iter.bi_size;
	ret_request->op = op_of(bio->bi_opf, ret_request->bytes);
}

SEC("tp_btf/block_getrq")
int BPF_PROG(block_getrq, struct bio *bio)
{
	__u64 key, now_ns = bpf_ktime_get_ns();
	struct block_request r = { .since_ns = now_ns, .slot = NO_SLOT };
	const struct block_request *old;
	int error;

	if (watch_lookup_is_off(now_ns))
		return 0;
	key = hidden_address_of(bio);
	set_bio(bio, &r);
	error = bpf_map_update_elem(&block_open, &key, &r, BPF_NOEXIST);
	if (!error)
		return 0;
	/*
	 * The kernel reuses the bio: the rest of the earlier request is lost. A reused entry
	 * without a watch is not counted as a loss, because it hides no cgroup: the cgroup's other
	 * requests are in the tables.
	 */
	old = bpf_map_lookup_elem(&block_open, &key);
	if (!old || old->slot != NO_SLOT)
		count_lost(old ? old->slot : r.slot, old ? LOSS_REUSED : LOSS_UNTRACKED, error);
	if (old)
		bpf_map_update_elem(&block_open, &key, &r, BPF_ANY);
	return 0;
}

/*
 * Finds the entry of a request that has not been issued yet, by the bio that it was made for. Other
 * bios may precede that one. Sets *ret_key to the key of the entry.
 */
static __always_inline struct block_request *find_made(const struct request *rq, __u64 *ret_key)
{
	const struct bio *bio = BPF_CORE_READ(rq, bio);

	*ret_key = 0;
	for (int i = 0; i < BIOS_BEFORE && bio; i++) {
		struct block_request *made;

		*ret_key = hidden_address((__u64)bio);
		made = bpf_map_lookup_elem(&block_open, ret_key);
		if (made)
			return made;
		bio = BPF_CORE_READ(bio, bi_next);
	}
	return 0;
}

/* Stores an open request under another key. Out of line, because it is rare. */
static __noinline int keep_as(__u64 key, const struct block_request *r)
{
	int error = bpf_map_update_elem(&block_open, &key, r, BPF_ANY);

	if (error)
		count_lost(r->slot, LOSS_UNTRACKED, error);
	return 0;
}

/*
 * Returns the key of a request from its issue on: from then on no bio is put before its first one.
 */
static __always_inline __u64 issued_key(const struct request *rq)
{
	__u64 bio = (__u64)BPF_CORE_READ(rq, bio);

	return bio ? hidden_address(bio) : hidden_address_of(rq);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(block_issue, struct request *rq)
{
	__u64 key, made_key, now_ns = bpf_ktime_get_ns();
	struct block_request r = { .since_ns = now_ns, .slot = NO_SLOT };
	struct block_request *made;

	if (watch_lookup_is_off(now_ns))
		return 0;
	made_key = key = issued_key(rq);
	made = bpf_map_lookup_elem(&block_open, &key);
	if (!made)
		made = find_made(rq, &made_key);
	/* The disk had no space for it, and gets it once more. */
	if (made && made->issued_ns)
		return 0;
	if (made && made_key == key) {
		made->bytes = rq->__data_len;
		made->issued_ns = now_ns;
		return 0;
	}
	if (made) {
		r = *made;
		bpf_map_delete_elem(&block_open, &made_key);
	} else {
		r.device = device_of(BPF_CORE_READ(rq, q, disk));
		r.op = op_of(rq->cmd_flags, rq->__data_len);
	}
	r.bytes = rq->__data_len;
	r.issued_ns = now_ns;
	return keep_as(key, &r);
}

/* Finds an open request, and sets *ret_key to its key. */
static __always_inline struct block_request *find_open(const struct request *rq, __u64 *ret_key)
{
	struct block_request *known = find_made(rq, ret_key);

	if (known)
		return known;
	*ret_key = hidden_address_of(rq);
	return bpf_map_lookup_elem(&block_open, ret_key);
}

/*
 * A request that is completed in parts loses its bios one by one: it gets the key of its own
 * address.
 */
static __noinline int keep_rest(struct request *rq, __u32 error)
{
	struct block_request r, *known;
	__u64 key, own = hidden_address_of(rq);

	known = find_open(rq, &key);
	if (!known)
		return 0;
	if (error)
		known->failed = 1;
	if (key == own)
		return 0;
	r = *known;
	bpf_map_delete_elem(&block_open, &key);
	return keep_as(own, &r);
}

/*
 * The kernel reports a write with a flush twice: at its own end and, with no bytes, after the
 * flush. The second report is ignored here.
 */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_complete, struct request *rq, unsigned char error, unsigned int bytes)
{
	__u64 key, now_ns = bpf_ktime_get_ns();
	struct block_request r = { .slot = NO_SLOT };
	const struct block_request *known;

	if (watch_lookup_is_off(now_ns))
		return 0;
	if (bytes < rq->__data_len)
		return keep_rest(rq, error);
	known = find_open(rq, &key);
	if (known) {
		r = *known;
		bpf_map_delete_elem(&block_open, &key);
	} else if (bytes) {
		r.bytes = bytes;
		r.device = device_of(BPF_CORE_READ(rq, q, disk));
		r.op = op_of(rq->cmd_flags, bytes);
	} else {
		return 0;
	}
	return add_request(&r, now_ns, error);
}

static __always_inline void count_merge(const struct block_request *r)
{
	int error;
	struct block_sums *sums = find_sums(r, &error);

	if (sums)
		__sync_fetch_and_add(&sums->merges, 1);
}

/* The request becomes a part of another one and has no separate end. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(block_merge, struct request *rq)
{
	__u64 key;
	const struct block_request *made = find_made(rq, &key);
	struct block_request r;

	if (!made || watch_lookup_is_off(bpf_ktime_get_ns()))
		return 0;
	r = *made;
	bpf_map_delete_elem(&block_open, &key);
	count_merge(&r);
	return 0;
}

/* The bio becomes a part of an existing request. */
static __always_inline int count_joined(const struct bio *bio)
{
	struct block_request r = { .slot = NO_SLOT };

	if (watch_lookup_is_off(bpf_ktime_get_ns()))
		return 0;
	set_bio(bio, &r);
	count_merge(&r);
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(block_backmerge, struct bio *bio)
{
	return count_joined(bio);
}

SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(block_frontmerge, struct bio *bio)
{
	return count_joined(bio);
}
