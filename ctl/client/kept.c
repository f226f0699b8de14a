/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/kept.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/cli/command_exit.h"
#include "ctl/cli/text.h"
#include "ctl/client/calls.h"
#include "ctl/client/subscription.h"
#include "ctl/events/pool.h"
#include "ctl/render/text_report.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"

/* Makes an empty memory file the standard input. 0 or -errno. */
static int replace_input(void)
{
	_cleanup_close_ int fd = memfd_create("trocar-lines", MFD_CLOEXEC);

	return fd < 0 || dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;
}

static int write_lines(const struct client_answer *answer, const struct json_node *lines)
{
	for (const struct json_node *m = json_node_first(lines); m; m = json_node_next(m)) {
		int r = io_write_full(STDIN_FILENO, answer->line + m->offset, m->extent);

		if (r == 0)
			r = io_write_full(STDIN_FILENO, "\n", 1);
		if (r < 0)
			return r;
	}
	return lseek(STDIN_FILENO, 0, SEEK_SET) < 0 ? -errno : 0;
}

static int take_answer(const struct options *options, const struct client_answer *answer)
{
	const struct json_node *lines = subscription_member(answer->result, "lines", JSON_ARRAY);
	uint64_t omitted =
		json_node_u64(subscription_member(answer->result, "omitted", JSON_INTEGER));
	int r;

	if (!lines)
		return calls_explain(options, -EPROTO);
	if (omitted)
		fprintf(options->err,
			"trocar: %" PRIu64 " line%s of the session %s not kept any more: see the "
			"agent's output (and its --keep-kib)\n",
			omitted, text_s(omitted), omitted == 1 ? "is" : "are");
	r = write_lines(answer, lines);
	return r < 0 ? calls_explain(options, r) : COMMAND_FINE;
}

int kept_read(const struct options *options, const char *session)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	_cleanup_(jsonw_done) struct jsonw params;
	int r = replace_input();

	pool_seed(); /* after the first call the program is not allowed to */
	jsonw_init(&params, CLIENT_REQUEST_BYTES);
	jsonw_object(&params, NULL);
	if (session)
		jsonw_string(&params, "session", session);
	jsonw_object_end(&params);
	if (r == 0)
		r = client_call(calls_socket(options), "session.lines", &params, &answer);
	if (r < 0)
		return calls_explain(options, r);
	return answer.error ? calls_refused(options, &answer) : take_answer(options, &answer);
}

int kept_show_call(const struct options *options, const char *const *arguments)
{
	static const char *const none[] = { NULL };
	int status = kept_read(options, arguments[0]);

	return status == COMMAND_FINE ? text_report_call(options, none) : status;
}
