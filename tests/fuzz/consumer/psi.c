/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of pressure files: what is accepted holds averages of at most 100 %, and ends in a line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/kernel/psi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_line(const struct psi_line *line)
{
	if (line->avg10 > 10099 || line->avg60 > 10099 || line->avg300 > 10099)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct psi psi, before;
	int r;

	memset(&psi, 0xa5, sizeof(psi));
	memcpy(&before, &psi, sizeof(psi));
	r = psi_parse((const char *)data, bytes, &psi);
	if (r < 0) {
		/* A refused text leaves no trace. */
		if (memcmp(&before, &psi, sizeof(psi)))
			abort();
		return 0;
	}
	if (!bytes || data[bytes - 1] != '\n')
		abort();
	check_line(&psi.some);
	if (psi.has_full)
		check_line(&psi.full);
	return 0;
}
