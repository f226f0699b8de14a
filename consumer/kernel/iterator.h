/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iterator.h: a pinned BPF iterator read to its end. A read(2) may end anywhere in a record
 * (kernel/bpf/bpf_iter.c, bpf_seq_read), so what is left over stands in front of the next one.
 */
#ifndef TROCAR_CONSUMER_RECORDS_H
#define TROCAR_CONSUMER_RECORDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORDS_BUFFER_BYTES (64u << 10)
#define RECORDS_AGAIN_MAX    1000 /* reads in a row that yield nothing yet */

/*
 * Takes whole records from the start of `data` and returns the bytes that they were, less than
 * `bytes` when the last is cut; -errno ends the reading. `data` is aligned to 8.
 */
typedef ssize_t (*iterator_call)(void *context, const uint8_t *data, size_t bytes);

/*
 * Opens `path` and feeds all of it to `call`. 0; -EBADMSG when it ends in half a record or one is
 * larger than the buffer; what `call`, open(2) and read(2) say.
 */
int iterator_read(const char *path, iterator_call call, void *context);

#endif
