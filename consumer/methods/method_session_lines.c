/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/methods/method_session_lines.h"

#include <errno.h>
#include <string.h>

#include "consumer/methods/methods.h"
#include "consumer/output/event_line.h"
#include "consumer/output/kept_lines.h"
#include "shared/json/jsonw.h"

/* The first digits of a session id, or all 16. */
static bool is_prefix(const struct json_node *value)
{
	return json_node_is(value, JSON_STRING) && value->bytes &&
	       value->bytes < SESSION_TEXT_BYTES &&
	       strspn(value->text, "0123456789abcdef") == value->bytes;
}

static int fail_find(int r, const char *session, struct control_error *error)
{
	if (r == -EEXIST)
		return control_error_fail(error, CONTROL_BAD_PARAMS,
					  "params.session: more than one session begins with %s: "
					  "want more digits",
					  session);
	if (!session)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "no session has ended since the agent began");
	return control_error_fail(error, CONTROL_NOT_FOUND,
				  "no lines of a session %s are kept: see the agent's output",
				  session);
}

int method_session_lines(void *context, const struct control_peer *peer,
			 const struct json_node *params, struct jsonw *w,
			 struct control_error *error)
{
	const struct json_node *session = json_node_get(params, "session");
	const char *prefix = session ? session->text : NULL;
	struct methods *m = context;
	int r;

	if (session && !is_prefix(session))
		return control_error_fail(
			error, CONTROL_BAD_PARAMS,
			"params.session: want 1 to 16 of a session's digits, from the first on");
	if (!m->kept)
		return control_error_fail(error, CONTROL_NOT_FOUND,
					  "the agent keeps no lines: it runs with --keep-kib 0");
	jsonw_object(w, NULL);
	r = kept_lines_write(m->kept, prefix, w);
	if (r < 0)
		return fail_find(r, prefix, error);
	jsonw_object_end(w);
	return 0;
}
