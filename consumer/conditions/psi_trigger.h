/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * psi_trigger.h: one trigger of the kernel on a pressure file: the text to write into it, and the
 * meaning of errors (Documentation/accounting/psi.rst; psi_trigger_create() in kernel/sched/psi.c).
 * A trigger has the privilege of the process that opened the file. Without CAP_SYS_RESOURCE its
 * window must be a multiple of 2 s, and the kernel checks it every 2 s; with it, the kernel checks
 * every tenth of the window.
 */
#ifndef TROCAR_CONSUMER_CONDITIONS_PSI_TRIGGER_H
#define TROCAR_CONSUMER_CONDITIONS_PSI_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* psi_write() reads at most this much. */
#define PSI_TRIGGER_TEXT_BYTES 32

/* The privilege of the process that opens the files, as far as its triggers have shown. */
enum psi_trigger_power {
	PSI_TRIGGER_POWER_UNKNOWN,
	PSI_TRIGGER_PLAIN,	/* without CAP_SYS_RESOURCE */
	PSI_TRIGGER_PRIVILEGED, /* windows of any length; a psimon thread per cgroup */
};

/* Why no trigger follows a threshold. */
struct psi_trigger_refusal {
	int error;	    /* -errno */
	bool retry;	    /* temporary: try again */
	bool all;	    /* affects all files: do not try the others now */
	const char *reason; /* a literal sentence */
};

/*
 * Writes "some 100000 500000" and its NUL: psi_write() overwrites the last byte with a NUL. Times
 * in microseconds. Returns the bytes to write, NUL included.
 */
size_t psi_trigger_text(char text[PSI_TRIGGER_TEXT_BYTES], bool full, uint64_t stall_us,
			uint64_t window_us);

/*
 * Asks the kernel through `fd`, a pressure file opened for writing, to signal stalls of stall_ms
 * within window_ms by POLLPRI. *power is the known privilege of the opener; the call updates it.
 * Returns 0; -EINVAL (window not a multiple of 2 s without privilege); -EBUSY (the descriptor has a
 * trigger already); -EOPNOTSUPP; -ENODEV; -errno of write(2).
 */
int psi_trigger_arm(int fd, bool full, uint32_t stall_ms, uint32_t window_ms,
		    enum psi_trigger_power *power);

/*
 * Returns the meaning of an error in opening the file (by broker or kernel) or in arming the
 * trigger.
 */
struct psi_trigger_refusal psi_trigger_refusal(int error);

/* Returns the interval of the kernel's checks as text: "every 2 s", "every tenth of the window". */
const char *psi_trigger_pace(enum psi_trigger_power power);

#endif
