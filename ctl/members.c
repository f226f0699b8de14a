/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/members.h"

#include <errno.h>

#include "ctl/event.h"

static bool is_one_of(const struct scan_text *key, const char *const *words)
{
	for (; *words; words++)
		if (event_is(key, *words))
			return true;
	return false;
}

int members_copy(const char *text, size_t bytes, const char *const *without, struct jsonw *w)
{
	struct scan_text key;
	struct scan s;

	scan_init(&s, text, bytes);
	scan_object(&s);
	while (scan_key(&s, &key)) {
		const char *start = key.data - 1; /* its quote */

		scan_skip(&s);
		if (!s.fault && !is_one_of(&key, without))
			jsonw_raw(w, NULL, start, (size_t)(s.at - start));
	}
	return s.fault ? -EBADMSG : 0;
}
