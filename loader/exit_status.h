/* SPDX-License-Identifier: BSD-2-Clause */
/* exit_status.h: the exit statuses of trocar-loader, as in its man page. */
#ifndef TROCAR_LOADER_EXIT_STATUS_H
#define TROCAR_LOADER_EXIT_STATUS_H

enum exit_status {
	EXIT_FINE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_LOADED = 3, /* `load`: a set is already loaded */
	EXIT_NEEDS = 4,	 /* `check`: something required is missing */
};

#endif
