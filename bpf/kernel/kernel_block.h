/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernel_block.h: the structures of the block layer that the programs read, declared as in
 * kernel.h. Sources: include/linux/{blk_types,blk-mq,blkdev,bvec}.h and block/blk-cgroup.h of Linux
 * 6.1 to 7.2.
 */
#ifndef TROCAR_BPF_KERNEL_KERNEL_BLOCK_H
#define TROCAR_BPF_KERNEL_KERNEL_BLOCK_H

#include "bpf/kernel/kernel.h"

/* The operation in bio.bi_opf and request.cmd_flags: enum req_op. */
#define REQ_OP_MASK	    0xffu
#define REQ_OP_READ	    0
#define REQ_OP_WRITE	    1
#define REQ_OP_FLUSH	    2
#define REQ_OP_DISCARD	    3
#define REQ_OP_SECURE_ERASE 5
#define REQ_OP_WRITE_ZEROES 9

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major, first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg; /* only with CONFIG_BLK_CGROUP */
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len; /* remaining bytes of the request */
	struct bio *bio;
};

#pragma clang attribute pop

#endif
