/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/cli/confine.h"
#include "ctl/command.h"
#include "policy/policy.h"

/* The input is foreign, and the output may be a terminal. */
static int confine_process(enum confine what)
{
	int r;

	if (what == CONFINE_RESOLVER) /* its parent is already hardened */
		return policy_seccomp(POLICY_RESOLVER);
	r = policy_harden();
	return r < 0 ? r
		     : policy_seccomp_flags(POLICY_CTL,
					    what == CONFINE_OPENER ? POLICY_OPENS_FILES : 0);
}

int main(int argc, char *argv[])
{
	int status;

	errno = 0;
	confine_by(confine_process);
	status = command_main(argc, argv, stdout, stderr);
	/* A full disk or a closed pipe at stdout is a failure too. */
	if (fflush(stdout) != EOF && !ferror(stdout))
		return status;
	fprintf(stderr, "trocar: cannot write the output: %s\n", strerror(errno));
	return status == COMMAND_FINE ? COMMAND_FAILED : status;
}
