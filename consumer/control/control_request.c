/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control_request.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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
		return control_error_fail(error, CONTROL_PARSE, "nested deeper than %d",
					  CONTROL_NESTING);
	if (at == bytes)
		return control_error_fail(error, CONTROL_PARSE, "the JSON text ends too early");
	if (!is_character(line + at, bytes - at))
		return control_error_fail(error, CONTROL_PARSE, "byte %zu is no UTF-8 text", at);
	return control_error_fail(error, CONTROL_PARSE, "byte %zu: %s", at, fault->what);
}

static int parse_line(const char *line, size_t bytes, struct json_tree *ret_tree,
		      struct control_error *error)
{
	struct json_fault fault;
	int r;

	if (bytes > CONTROL_REQUEST_BYTES)
		return control_error_fail(error, CONTROL_PARSE,
					  "a request is at most %u bytes long",
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
		return control_error_fail(error, CONTROL_INVALID_REQUEST,
					  "/id: a string, a number of 64 bits, or null");
	request->id = json_node_get(root, "id");
	return 0;
}

static int refuse_unknown_keys(const struct json_node *root, struct control_error *error)
{
	for (const struct json_node *m = json_node_first(root); m; m = json_node_next(m))
		if (!json_node_has_key(m, "jsonrpc") && !json_node_has_key(m, "method") &&
		    !json_node_has_key(m, "params") && !json_node_has_key(m, "id"))
			return control_error_fail(error, CONTROL_INVALID_REQUEST,
						  "/%.64s: unknown key", m->key);
	return 0;
}

static int take_keys(const struct json_node *root, struct request *request,
		     struct control_error *error)
{
	const struct json_node *method = json_node_get(root, "method");

	if (take_id(root, request, error) < 0 || refuse_unknown_keys(root, error) < 0)
		return -1;
	if (!json_node_equals(json_node_get(root, "jsonrpc"), "2.0"))
		return control_error_fail(error, CONTROL_INVALID_REQUEST,
					  "/jsonrpc: must be \"2.0\"");
	/* Refuses an embedded NUL, so that strcmp(3) sees the whole name. */
	if (!json_node_is(method, JSON_STRING) || strlen(method->text) != method->bytes)
		return control_error_fail(error, CONTROL_INVALID_REQUEST,
					  "/method: must be a string");
	request->params = json_node_member(root, "params");
	if (request->params && request->params->kind != JSON_OBJECT)
		return control_error_fail(error, CONTROL_INVALID_REQUEST,
					  "/params: by name, in an object");
	request->method = method->text;
	return 0;
}

static int read_request(const struct json_node *root, struct request *request,
			struct control_error *error)
{
	if (json_node_is(root, JSON_ARRAY))
		return control_error_fail(error, CONTROL_INVALID_REQUEST,
					  "batches are not supported: send one request per line");
	if (!json_node_is(root, JSON_OBJECT))
		return control_error_fail(error, CONTROL_INVALID_REQUEST, "a request is an object");
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

/* Writes the part of an answer before its result; *ret_before is the length up to there. */
static void begin_result(struct jsonw *answer, const struct json_node *id, size_t *ret_before)
{
	begin_answer(answer, id);
	jsonw_raw(answer, "result", "", 0);
	answer->comma = false;
	*ret_before = answer->bytes;
}

/*
 * Ends the answer of a method that returned `r` and wrote its result directly into the answer, from
 * `before` on; rewinds the answer to `mark` if it failed or is not wanted.
 */
static int end_result(struct jsonw *answer, struct jsonw_mark mark, size_t before, int r,
		      const char *method, bool is_notification, struct control_error *error)
{
	if (r < 0 && !error->code)
		r = control_error_fail(error, CONTROL_INTERNAL, "%s failed", method);
	if (r >= 0 && answer->bytes == before && !jsonw_end(answer))
		r = control_error_fail(error, CONTROL_INTERNAL, "the method gave no result");
	if (r >= 0) {
		r = end_answer(answer);
		if (r == 0 && !is_notification)
			return 0;
	}
	jsonw_rewind(answer, mark);
	if (r == -EMSGSIZE)
		return control_error_fail(error, CONTROL_INTERNAL,
					  "the answer would be longer than %zu bytes",
					  answer->max_bytes);
	return r == 0 || r == -ENOMEM ? r : -1;
}

static int call_method(const struct control_method *method, void *context,
		       const struct control_peer *peer, const struct request *request,
		       struct jsonw *answer, struct control_error *error)
{
	struct jsonw_mark mark = jsonw_mark(answer);
	size_t before;
	int r;

	begin_result(answer, request->id, &before);
	r = method->call(context, peer, request->params, answer, error);
	return end_result(answer, mark, before, r, method->name, request->is_notification, error);
}

void control_request_abandon(struct control_pending *pending)
{
	if (pending->job)
		pending->job->free(pending->job);
	free((char *)pending->id.text);
	*pending = (struct control_pending){};
}

/* Returns the id of the answer; NULL: JSON's null. */
static const struct json_node *pending_id(const struct control_pending *pending)
{
	return pending->id.text ? &pending->id : NULL;
}

/* Continues the job. Returns 1 if there is more; else like call_method. */
static int step_job(struct control_pending *pending, struct jsonw *answer,
		    struct control_error *error)
{
	struct jsonw_mark mark = jsonw_mark(answer);
	size_t before;
	int r;

	begin_result(answer, pending_id(pending), &before);
	r = pending->job->step(pending->job, answer, error);
	if (r <= 0)
		return end_result(answer, mark, before, r, pending->method,
				  pending->is_notification, error);
	jsonw_rewind(answer, mark);
	return 1;
}

static char *copy_text(const char *text, size_t bytes)
{
	char *copy = malloc(bytes + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	return copy;
}

/* Copies the id: the request's line is gone when the job has ended. */
static int keep_id(struct control_pending *pending, const struct request *request)
{
	if (!request->id)
		return 0;
	pending->id.text = copy_text(request->id->text, request->id->bytes);
	if (!pending->id.text)
		return -ENOMEM;
	pending->id.kind = request->id->kind;
	pending->id.bytes = request->id->bytes;
	return 0;
}

/* Begins a job and continues it at once: most jobs end there. Returns like step_job. */
static int begin_job(const struct control_method *method, void *context,
		     const struct control_peer *peer, const struct request *request,
		     struct control_pending *pending, struct jsonw *answer,
		     struct control_error *error)
{
	int r = method->begin(context, peer, request->params, &pending->job, error);

	if (r < 0)
		return error->code ? -1
				   : control_error_fail(error, CONTROL_INTERNAL, "%s failed",
							method->name);
	pending->method = method->name;
	pending->is_notification = request->is_notification;
	r = keep_id(pending, request);
	return r < 0 ? r : step_job(pending, answer, error);
}

/* Returns 1 if a job continues; 0, -1, -ENOMEM. */
static int dispatch_request(const struct control_method *methods, void *context,
			    const struct control_peer *peer, const struct request *request,
			    struct control_pending *pending, struct jsonw *answer,
			    struct control_error *error)
{
	for (const struct control_method *method = methods; method->name; method++) {
		if (!request->method || strcmp(method->name, request->method) != 0)
			continue;
		if (method->changes && !peer->admin)
			return control_error_fail(
				error, CONTROL_FORBIDDEN,
				"%s is for root and the admin group; you are uid %u", method->name,
				(unsigned int)peer->uid);
		if (method->begin)
			return begin_job(method, context, peer, request, pending, answer, error);
		return call_method(method, context, peer, request, answer, error);
	}
	return control_error_fail(error, CONTROL_NO_METHOD, "there is no method \"%.64s\"",
				  request->method);
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

/*
 * Writes the error of a request that has failed (`r` -1) unless it is not wanted. Returns 0 with
 * *ret_code; -ENOMEM.
 */
static int answer_failure(int r, const struct json_node *id, bool wanted, struct jsonw *answer,
			  struct control_error *error, int *ret_code)
{
	if (r == -1 && wanted && write_error(answer, id, error) < 0)
		r = -ENOMEM;
	if (r < -1)
		return r;
	*ret_code = r < 0 ? (int)error->code : 0;
	return 0;
}

int control_request_answer(const struct control_method *methods, void *context,
			   const struct control_peer *peer, const char *line, size_t bytes,
			   unsigned int jobs, struct jsonw *answer, int *ret_code,
			   struct control_pending *ret_pending)
{
	_cleanup_(json_tree_done) struct json_tree tree = { 0 };
	_cleanup_(control_request_abandon) struct control_pending pending = { 0 };
	struct control_error error = { 0 };
	struct request request = { 0 };
	int r;

	jsonw_init(&error.data, CONTROL_ANSWER_BYTES);
	r = parse_line(line, bytes, &tree, &error);
	if (r >= 0)
		r = read_request(tree.nodes, &request, &error);
	if (r >= 0)
		r = dispatch_request(methods, context, peer, &request, &pending, answer, &error);
	if (r == 1 && jobs >= CONTROL_JOBS_MAX)
		r = control_error_fail(
			&error, CONTROL_BUSY,
			"%u requests that read all processes are in progress: try again later",
			jobs);
	/* Only a well-formed request can be a notification; a faulty one gets an answer. */
	if (r != 1)
		r = answer_failure(r, request.id, !(request.is_notification && request.method),
				   answer, &error, ret_code);
	jsonw_done(&error.data);
	if (r != 1)
		return r;
	*ret_code = 0;
	*ret_pending = pending;
	pending = (struct control_pending){ 0 };
	return 0;
}

int control_request_continue(struct control_pending *pending, struct jsonw *answer, int *ret_code)
{
	struct control_error error = { 0 };
	int r;

	jsonw_init(&error.data, CONTROL_ANSWER_BYTES);
	r = step_job(pending, answer, &error);
	*ret_code = 0;
	if (r != 1) {
		r = answer_failure(r, pending_id(pending), !pending->is_notification, answer,
				   &error, ret_code);
		control_request_abandon(pending);
	}
	jsonw_done(&error.data);
	return r < 0 ? r : 0;
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
	_cleanup_(control_request_abandon) struct control_pending pending = { 0 };
	int code, r;

	r = control_request_answer(methods, context, peer, line, bytes, 0, answer, &code, &pending);
	while (r == 0 && pending.job)
		r = control_request_continue(&pending, answer, &code);
	return r;
}
