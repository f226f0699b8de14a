/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/symbolize/members.h"

#include <errno.h>

#include "ctl/events/event.h"
#include "shared/json/jsonw.h"

static bool is_one_of(const struct json_text *key, const char *const *words)
{
	for (; *words; words++)
		if (event_is(key, *words))
			return true;
	return false;
}

int members_copy(const char *text, size_t bytes, const char *const *without, struct jsonw *w)
{
	struct json_text key;
	struct json_reader json;

	json_reader_init(&json, text, bytes, JSON_READER_NESTING);
	json_reader_object(&json);
	while (json_reader_key(&json, &key)) {
		const char *start = key.data - 1; /* its quote */

		json_reader_skip(&json);
		if (!json.fault && !is_one_of(&key, without))
			jsonw_raw(w, NULL, start, (size_t)(json.at - start));
	}
	return json.fault ? -EBADMSG : 0;
}
