/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control_request.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/json/json_tree.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/utf8.h"

/* The parts of a well-formed request; all borrowed from its tree. */
struct request {
	const char *method;
	const struct json_node *params; /* NULL: none */
	const struct json_node *id;	/* NULL: JSON's null, or is_notification */
	bool is_notification;
};

/* Fills in the error. Returns -1, as a method does. */
static int __attribute__((format(printf, 3, 4)))
set_error(struct control_error *error, enum control_code code, const char *format, ...)
{
	va_list args;

	error->code = code;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -1;
}

/* Returns whether a UTF-8 character begins at `at`, even a misplaced one. */
static bool is_character(const char *at, size_t bytes)
{
	unsigned char c = (unsigned char)*at;

	return utf8_sequence(at, bytes) && (c >= 0x20 || c == '\t' || c == '\r' || c == '\n');
}

static int set_json_error(struct control_error *error, const char *line, size_t bytes,
			  const struct json_fault *fault)
{
	size_t at = fault->offset;

	if (fault->too_deep)
		return set_error(error, CONTROL_PARSE, "nested deeper than %d", CONTROL_NESTING);
	if (at == bytes)
		return set_error(error, CONTROL_PARSE, "the JSON text ends too early");
	if (!is_character(line + at, bytes - at))
		return set_error(error, CONTROL_PARSE, "byte %zu is no UTF-8 text", at);
	return set_error(error, CONTROL_PARSE, "byte %zu: %s", at, fault->what);
}

static int parse_line(const char *line, size_t bytes, struct json_tree *ret_tree,
		      struct control_error *error)
{
	struct json_fault fault;
	int r;

	if (bytes > CONTROL_REQUEST_BYTES)
		return set_error(error, CONTROL_PARSE, "a request is at most %u bytes long",
				 CONTROL_REQUEST_BYTES);
	r = json_tree_read(line, bytes, CONTROL_NESTING, ret_tree, &fault);
	return r == -EBADMSG ? set_json_error(error, line, bytes, &fault) : r;
}

/* Returns whether the id can be repeated exactly by a client that reads numbers of 64 bits. */
static bool is_id(const struct json_node *id)
{
	switch (id->kind) {
	case JSON_NULL:
	case JSON_STRING:
		return true;
	case JSON_REAL:
		return isfinite(json_node_double(id));
	/* Longer integers saturate, so INT64_MIN and UINT64_MAX are refused. */
	case JSON_INTEGER:
		return json_node_i64(id) != INT64_MIN && json_node_u64(id) != UINT64_MAX;
	default:
		return false;
	}
}

/* Takes the id first, because an error answer repeats it. */
static int take_id(const struct json_node *root, struct request *request,
		   struct control_error *error)
{
	const struct json_node *id = json_node_member(root, "id");

	request->is_notification = !id;
	if (id && !is_id(id))
		return set_error(error, CONTROL_INVALID_REQUEST,
				 "/id: a string, a number of 64 bits, or null");
	request->id = json_node_get(root, "id");
	return 0;
}

static int refuse_unknown_keys(const struct json_node *root, struct control_error *error)
{
	for (const struct json_node *m = json_node_first(root); m; m = json_node_next(m))
		if (!json_node_has_key(m, "jsonrpc") && !json_node_has_key(m, "method") &&
		    !json_node_has_key(m, "params") && !json_node_has_key(m, "id"))
			return set_error(error, CONTROL_INVALID_REQUEST, "/%.64s: unknown key",
					 m->key);
	return 0;
}

static int take_keys(const struct json_node *root, struct request *request,
		     struct control_error *error)
{
	const struct json_node *method = json_node_get(root, "method");

	if (take_id(root, request, error) < 0 || refuse_unknown_keys(root, error) < 0)
		return -1;
	if (!json_node_equals(json_node_get(root, "jsonrpc"), "2.0"))
		return set_error(error, CONTROL_INVALID_REQUEST, "/jsonrpc: must be \"2.0\"");
	/* Refuses a NUL inside, so that strcmp(3) sees the whole name. */
	if (!json_node_is(method, JSON_STRING) || strlen(method->text) != method->bytes)
		return set_error(error, CONTROL_INVALID_REQUEST, "/method: must be a string");
	request->params = json_node_member(root, "params");
	if (request->params && request->params->kind != JSON_OBJECT)
		return set_error(error, CONTROL_INVALID_REQUEST, "/params: by name, in an object");
	request->method = method->text;
	return 0;
}

static int read_request(const struct json_node *root, struct request *request,
			struct control_error *error)
{
	if (json_node_is(root, JSON_ARRAY))
		return set_error(error, CONTROL_INVALID_REQUEST,
				 "batches are not supported: send one request per line");
	if (!json_node_is(root, JSON_OBJECT))
		return set_error(error, CONTROL_INVALID_REQUEST, "a request is an object");
	return take_keys(root, request, error);
}

/* Writes the part of an answer before its result or error. */
static void begin_answer(struct jsonw *answer, const struct json_node *id)
{
	answer->comma = false;
	jsonw_object(answer, NULL);
	jsonw_string(answer, "jsonrpc", "2.0");
	if (!id)
		jsonw_null(answer, "id");
	else if (json_node_is(id, JSON_STRING))
		jsonw_string_n(answer, "id", id->text, id->bytes);
	else
		jsonw_raw(answer, "id", id->text, id->bytes);
}

static int end_answer(struct jsonw *answer)
{
	jsonw_object_end(answer);
	answer->comma = false;
	jsonw_raw(answer, NULL, "\n", 1);
	answer->comma = false;
	return jsonw_end(answer);
}

/* Has the method write its result right into the answer; rewinds the answer when it fails. */
static int call_method(const struct control_method *method, void *context,
		       const struct control_peer *peer, const struct request *request,
		       struct jsonw *answer, struct control_error *error)
{
	struct jsonw_mark mark = jsonw_mark(answer);
	size_t before;
	int r;

	begin_answer(answer, request->id);
	jsonw_raw(answer, "result", "", 0);
	answer->comma = false;
	before = answer->bytes;
	r = method->call(context, peer, request->params, answer, error);
	if (r < 0 && !error->code)
		r = set_error(error, CONTROL_INTERNAL, "%s failed", method->name);
	if (r >= 0 && answer->bytes == before && !jsonw_end(answer))
		r = set_error(error, CONTROL_INTERNAL, "the method gave no result");
	if (r >= 0) {
		r = end_answer(answer);
		if (r == 0 && !request->is_notification)
			return 0;
	}
	jsonw_rewind(answer, mark);
	if (r == -EMSGSIZE)
		return set_error(error, CONTROL_INTERNAL,
				 "the answer would be longer than %zu bytes", answer->max_bytes);
	return r == 0 || r == -ENOMEM ? r : -1;
}

static int dispatch_request(const struct control_method *methods, void *context,
			    const struct control_peer *peer, const struct request *request,
			    struct jsonw *answer, struct control_error *error)
{
	for (const struct control_method *method = methods; method->name; method++) {
		if (!request->method || strcmp(method->name, request->method) != 0)
			continue;
		if (method->changes && !peer->admin)
			return set_error(error, CONTROL_FORBIDDEN,
					 "%s is for root and the admin group; you are uid %u",
					 method->name, (unsigned int)peer->uid);
		return call_method(method, context, peer, request, answer, error);
	}
	return set_error(error, CONTROL_NO_METHOD, "there is no method \"%.64s\"", request->method);
}

static int try_to_write_error(struct jsonw *answer, const struct json_node *id,
			      const struct control_error *error, bool with_data)
{
	struct jsonw_mark mark = jsonw_mark(answer);
	int r;

	begin_answer(answer, id);
	jsonw_object(answer, "error");
	jsonw_i64(answer, "code", error->code);
	jsonw_string(answer, "message", error->message);
	if (with_data)
		jsonw_raw(answer, "data", error->data.data, error->data.bytes);
	jsonw_object_end(answer);
	r = end_answer(answer);
	if (r < 0)
		jsonw_rewind(answer, mark);
	return r;
}

static int write_error(struct jsonw *answer, const struct json_node *id,
		       struct control_error *error)
{
	bool with_data = error->data.bytes && jsonw_end(&error->data) == 0;
	int r;

	r = try_to_write_error(answer, id, error, with_data);
	/* Too long for an answer: drop the error's details, then a giant id. */
	if (r == -EMSGSIZE && with_data)
		r = try_to_write_error(answer, id, error, false);
	if (r == -EMSGSIZE)
		r = try_to_write_error(answer, NULL, error, false);
	return r;
}

int control_request_answer(const struct control_method *methods, void *context,
			   const struct control_peer *peer, const char *line, size_t bytes,
			   struct jsonw *answer, int *ret_code)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	struct control_error error = { 0 };
	struct request request = { 0 };
	int r;

	jsonw_init(&error.data, CONTROL_ANSWER_BYTES);
	r = parse_line(line, bytes, &tree, &error);
	if (r >= 0)
		r = read_request(tree.nodes, &request, &error);
	if (r >= 0)
		r = dispatch_request(methods, context, peer, &request, answer, &error);
	/* Only a well-formed request can be a notification; a faulty one gets an answer. */
	if (r == -1 && !(request.is_notification && request.method))
		r = write_error(answer, request.id, &error) < 0 ? -ENOMEM : -1;
	jsonw_done(&error.data);
	if (r < -1)
		return r;
	*ret_code = r < 0 ? (int)error.code : 0;
	return 0;
}

int control_request_refuse(struct jsonw *answer, enum control_code code, const char *message)
{
	struct control_error error = { .code = code };

	snprintf(error.message, sizeof(error.message), "%s", message);
	return write_error(answer, NULL, &error);
}

int control_request(const struct control_method *methods, void *context,
		    const struct control_peer *peer, const char *line, size_t bytes,
		    struct jsonw *answer)
{
	int code;

	return control_request_answer(methods, context, peer, line, bytes, answer, &code);
}
