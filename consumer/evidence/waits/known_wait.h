/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * known_wait.h: refines a wait by the functions in its stack, beyond its system call: a server that
 * waits in epoll for a row that another transaction has locked is not idle. Report thread only.
 */
#ifndef TROCAR_CONSUMER_EVIDENCE_WAITS_KNOWN_WAIT_H
#define TROCAR_CONSUMER_EVIDENCE_WAITS_KNOWN_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "consumer/naming/frame_name.h"
#include "consumer/sampling/stack_table.h"
#include "shared/abi/abi.h"

enum known_wait_what {
	KNOWN_WAIT_NOTHING,
	KNOWN_WAIT_LOCK,
	KNOWN_WAIT_PEER, /* another process or host */
	KNOWN_WAIT_SLEEP,
	KNOWN_WAIT_IDLE,      /* nothing to do */
	KNOWN_WAIT_CONDITION, /* on a condition variable: for work, or for another thread */
};

#define KNOWN_WAIT_CALLERS 3

struct known_wait {
	uint8_t state;	/* wait_kind.h: of the stack, or refined by its functions */
	bool idle;	/* wait_objects.h, refined by its functions */
	bool condition; /* on a condition variable or another futex that is no lock */
	bool event;	/* `condition` by the kind of the futex alone: its functions have no row */
	const struct look_on *on; /* the object of the wait; NULL: unknown */
	const struct named_frame
		*frame; /* identifies the place in the program where it waits; NULL: no frame */
	const char *callers[KNOWN_WAIT_CALLERS]; /* next named callers of `frame`; then NULL */
};

/*
 * Classifies a stack of waiting threads, which wait on `on` (NULL: unknown). `frames` are its `n`
 * named frames (after frame_proof_judge); their names are borrowed. ret_wait->frame is the
 * innermost function that a runtime has compiled; without one, the innermost named function that is
 * neither an entry point nor of the C library, and does not wait on behalf of its caller; without
 * one, the innermost frame of the program's own file, of user mode, or of the kernel. The callers,
 * up to main, are such functions too; of other files if `frame` is of a library.
 */
void known_wait_judge(const struct stack *stack, const struct look_on *on,
		      const struct named_frame *frames, size_t n, struct known_wait *ret_wait);

#endif
