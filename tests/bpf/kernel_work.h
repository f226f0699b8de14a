/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_work.h: programs that spend their time in the kernel, each in other parts of it. */
#ifndef TROCAR_TESTS_BPF_KERNEL_WORK_H
#define TROCAR_TESTS_BPF_KERNEL_WORK_H

#include <stddef.h>

struct kernel_work {
	const char *name;
	void (*run)(void *context); /* does not return */
};

/* Where they make files; "/var/tmp". */
extern const char *kernel_work_dir;

extern const struct kernel_work kernel_works[];
extern const size_t kernel_works_count;

#endif
