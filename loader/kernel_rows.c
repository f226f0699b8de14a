/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/kernel_rows.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include "shared/tools/cleanup.h"

/* The program writes nothing, so one read visits all symbols. */
static bool read_symbols(const struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	_cleanup_close_ int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	bool whole;
	char byte;

	whole = fd >= 0 && read(fd, &byte, sizeof(byte)) == 0;
	bpf_link__destroy(link);
	return whole;
}

bool kernel_rows_learn(const struct bpf_program *symbols, const struct bpf_program *learn)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	return read_symbols(symbols) && bpf_prog_test_run_opts(bpf_program__fd(learn), &run) == 0 &&
	       run.retval > 0;
}
