/* SPDX-License-Identifier: BSD-2-Clause */
/* alone.h: what alone.bpf.c and bench-beside share. */
#ifndef TROCAR_TESTS_BENCH_ALONE_H
#define TROCAR_TESTS_BENCH_ALONE_H

#define ALONE_PROCESSES 65536 /* a power of two */

#endif
