/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/events/progress.h"

#include <unistd.h>

#include "ctl/cli/text.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define FIRST_NS NSEC_PER_SEC
#define EACH_NS	 (200 * NSEC_PER_MSEC)

void progress_init(struct progress *p, FILE *err, uint64_t all_bytes)
{
	*p = (struct progress){ .all_bytes = all_bytes };
	if (fileno(err) < 0 || !isatty(fileno(err)))
		return;
	p->err = err;
	p->began_ns = clock_mono_ns();
}

void progress_say(struct progress *p, uint64_t file_bytes)
{
	uint64_t bytes = p->before_bytes + file_bytes, now_ns;
	char read[TEXT_UNIT_BYTES], all[TEXT_UNIT_BYTES];

	if (!p->err)
		return;
	now_ns = clock_mono_ns();
	if (now_ns - p->began_ns < FIRST_NS || now_ns - p->said_ns < EACH_NS)
		return;
	p->said_ns = now_ns;
	p->said = true;
	text_bytes(bytes, read);
	if (p->all_bytes)
		fprintf(p->err, "\rreading: %u %% of %s \033[K",
			(unsigned int)(MIN(bytes, p->all_bytes) * 100 / p->all_bytes),
			text_bytes(p->all_bytes, all));
	else
		fprintf(p->err, "\rreading: %s \033[K", read);
	fflush(p->err);
}

void progress_next(struct progress *p, uint64_t file_bytes)
{
	p->before_bytes += file_bytes;
}

void progress_done(struct progress *p)
{
	if (p->err && p->said)
		fputs("\r\033[K", p->err);
	p->said = false;
}
