/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Request lines of the control socket, as a member of its group and as an admin (by the first
 * byte). For any input, the output is empty or one line of JSON with an id and a result or an
 * error, and no changing method runs without the right.
 */
#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/control/control.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static int do_echo(void *context, const struct control_peer *peer, const struct json_node *params,
		   struct jsonw *result, struct control_error *error)
{
	const struct json_node *text = json_node_get(params, "text");

	if (!json_node_is(text, JSON_STRING)) {
		error->code = CONTROL_BAD_PARAMS;
		strcpy(error->message, "/params/text: must be a string");
		jsonw_array(&error->data, NULL);
		jsonw_array_end(&error->data);
		return -1;
	}
	jsonw_string_n(result, NULL, text->text, text->bytes);
	return 0;
}

static int do_change(void *context, const struct control_peer *peer, const struct json_node *params,
		     struct jsonw *result, struct control_error *error)
{
	if (!peer->admin)
		abort();
	return do_echo(context, peer, params, result, error);
}

static int step_parts(struct control_job *job, struct jsonw *result, struct control_error *error)
{
	static unsigned int parts;

	if (++parts % 3)
		return 1;
	jsonw_u64(result, NULL, parts);
	return 0;
}

static void free_parts(struct control_job *job)
{
	free(job);
}

static int do_parts(void *context, const struct control_peer *peer, const struct json_node *params,
		    struct control_job **ret_job, struct control_error *error)
{
	struct control_job *job = malloc(sizeof(*job));

	if (!job)
		abort();
	*job = (struct control_job){ .step = step_parts, .free = free_parts };
	*ret_job = job;
	return 0;
}

static const struct control_method methods[] = {
	{ "parts", false, .begin = do_parts },
	{ "echo", false, do_echo },
	{ "change", true, do_change },
	{ 0 },
};

static void check(const struct jsonw *answer)
{
	json_tokener *tokener = json_tokener_new();
	json_object *root;

	if (jsonw_end(answer) < 0)
		abort();
	if (!answer->bytes) {
		json_tokener_free(tokener);
		return;
	}
	if (memchr(answer->data, '\n', answer->bytes) != answer->data + answer->bytes - 1)
		abort();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, answer->data, (int)answer->bytes);
	if (json_tokener_get_error(tokener) != json_tokener_success ||
	    !json_object_object_get_ex(root, "id", NULL) ||
	    json_object_object_get_ex(root, "result", NULL) ==
		    json_object_object_get_ex(root, "error", NULL))
		abort();
	json_object_put(root);
	json_tokener_free(tokener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_(jsonw_done) struct jsonw answer;
	struct control_peer peer = { .uid = 1000 };

	jsonw_init(&answer, CONTROL_ANSWER_BYTES);
	if (!bytes)
		return 0;
	peer.admin = data[0] == '+';
	if (control_request(methods, NULL, &peer, (const char *)data + 1, bytes - 1, &answer) == 0)
		check(&answer);
	return 0;
}
