/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>

#include "ctl/command.h"

int main(int argc, char *argv[])
{
	int status = command_main(argc, argv, stdout, stderr);

	/* A full disk or a closed pipe behind stdout is a failure too. */
	if (fflush(stdout) == EOF || ferror(stdout))
		return status == COMMAND_FINE ? COMMAND_FAILED : status;
	return status;
}
