/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * held_file.h: a FUSE file system of one file with bytes that no reader ever gets: the server reads
 * each request for them and does not answer. Any user can have one (fusermount3); the test mounts
 * it as root.
 */
#ifndef TROCAR_TESTS_BPF_HELD_FILE_H
#define TROCAR_TESTS_BPF_HELD_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HELD_FILE_BYTES (1u << 21)
#define HELD_FILE_NAME	"held"

struct held_file {
	char dir[64]; /* of the mount; the file is HELD_FILE_NAME in it */
	pid_t server;
	int connection; /* the end of the server's connection, so that it can be cut */
};

/*
 * Mounts and serves it. False where this machine has no FUSE; waiting readers are released at the
 * end.
 */
bool held_file_begin(struct held_file *h);
void held_file_end(struct held_file *h);

/*
 * Waits for a child that asks something of the file; one that does not come back is ended after 3
 * s, with the file. Returns for how long it asked: ns since begun_ns (clock_mono_ns). *ret_status:
 * how it ended, by waitpid(2); -1: it did not come back.
 */
uint64_t held_file_wait(struct held_file *h, pid_t pid, uint64_t begun_ns, int *ret_status);

#endif
