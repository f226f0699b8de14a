/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_errors.h: from the errors ring, and from losses that no record told of, to error lines. */
#ifndef TROCAR_CONSUMER_KERNEL_ERRORS_H
#define TROCAR_CONSUMER_KERNEL_ERRORS_H

struct agent;

/* Drains the errors ring; lost discovery events cause a scan at once. */
void kernel_errors_drain(struct agent *a);

#endif
