/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iterator.h: reads a pinned BPF iterator to its end. A read(2) may end anywhere in a record
 * (kernel/bpf/bpf_iter.c, bpf_seq_read), so iterator_read keeps the incomplete record and prepends
 * it to the next read.
 */
#ifndef TROCAR_CONSUMER_KERNEL_ITERATOR_H
#define TROCAR_CONSUMER_KERNEL_ITERATOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORDS_BUFFER_BYTES (64u << 10)
#define RECORDS_AGAIN_MAX    1000 /* reads in a row that may return EAGAIN */

/*
 * Consumes whole records from the start of `data` and returns their length in bytes, less than
 * `bytes` if the last record is incomplete. A -errno ends the reading. `data` is aligned to 8.
 */
typedef ssize_t (*iterator_call)(void *context, const uint8_t *data, size_t bytes);

/*
 * Opens `path` and passes all of its bytes to `call`. Returns 0; -EBADMSG if the stream ends inside
 * a record or a record is larger than the buffer; -errno of `call`, open(2) and read(2).
 */
int iterator_read(const char *path, iterator_call call, void *context);

#endif
