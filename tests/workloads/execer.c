/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * execer SECONDS DELAY_SECONDS PROGRAM [ARGUMENT...]: sleeps, then becomes PROGRAM by execve: the
 * same pid and start time under another name. PROGRAM bounds its own time.
 */
#include "workload.h"

int main(int argc, char **argv)
{
	(void)workload_deadline(argc, argv, "execer SECONDS DELAY_SECONDS PROGRAM [ARGUMENT...]");
	if (argc < 4)
		return 2;
	workload_rest(workload_number(argc, argv, 2, 1, 0, WORKLOAD_SECONDS_MAX) * 1000000000ull);
	alarm(0);
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 1;
}
