/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "ctl/client.h"
#include "ctl/command.h"
#include "policy/policy.h"

/* The answer comes from another process, and a terminal is behind us. */
static int confine(void)
{
	int r = policy_harden();

	return r < 0 ? r : policy_seccomp(POLICY_CTL);
}

int main(int argc, char *argv[])
{
	int status;

	client_before_answer(confine);
	status = command_main(argc, argv, stdout, stderr);
	/* A full disk or a closed pipe behind stdout is a failure too. */
	if (fflush(stdout) == EOF || ferror(stdout))
		return status == COMMAND_FINE ? COMMAND_FAILED : status;
	return status;
}
