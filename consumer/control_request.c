/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control_request.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shared/cleanup.h"
#include "shared/json/utf8.h"
#include "shared/jsonw.h"
#include "shared/macro.h"

/* What a well-formed request says; all borrowed from its parsed object. */
struct request {
	const char *method;
	json_object *params;
	json_object *id; /* NULL: JSON's null, unless is_notification */
	bool is_notification;
};

static void put_object(json_object **object)
{
	json_object_put(*object);
}

static void free_tokener(json_tokener **tokener)
{
	if (*tokener)
		json_tokener_free(*tokener);
}

/* Says what is wrong; returns -1 as a method does. */
static int __attribute__((format(printf, 3, 4)))
fail(struct control_error *error, enum control_code code, const char *format, ...)
{
	va_list args;

	error->code = code;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -1;
}

/*
 * json-c takes overlong forms and surrogates, ends at a NUL, and lets control characters stand in
 * strings: so the bytes are looked at before it sees them.
 */
static bool is_text(const char *line, size_t bytes, size_t *ret_offset)
{
	for (size_t i = 0, n; i < bytes; i += n) {
		unsigned char c = (unsigned char)line[i];

		n = utf8_sequence(line + i, bytes - i);
		if (!n || (c < 0x20 && c != '\t' && c != '\r')) {
			*ret_offset = i;
			return false;
		}
	}
	return true;
}

static int parse(const char *line, size_t bytes, json_object **ret_root,
		 struct control_error *error)
{
	_cleanup_(free_tokener) json_tokener *tokener = json_tokener_new_ex(CONTROL_NESTING);
	_cleanup_(put_object) json_object *root = NULL;
	enum json_tokener_error code;
	size_t offset = 0;

	if (!tokener)
		return -ENOMEM;
	if (bytes > CONTROL_REQUEST_BYTES)
		return fail(error, CONTROL_PARSE, "a request is at most %u bytes long",
			    CONTROL_REQUEST_BYTES);
	if (!is_text(line, bytes, &offset))
		return fail(error, CONTROL_PARSE, "byte %zu is no UTF-8 text", offset);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	root = json_tokener_parse_ex(tokener, line, (int)bytes);
	code = json_tokener_get_error(tokener);
	offset = json_tokener_get_parse_end(tokener);
	if (code == json_tokener_continue) { /* a bare word or number ends with what follows it */
		root = json_tokener_parse_ex(tokener, " ", 1);
		code = json_tokener_get_error(tokener);
		offset = bytes;
	}
	if (code == json_tokener_error_depth)
		return fail(error, CONTROL_PARSE, "nested deeper than %d", CONTROL_NESTING);
	if (code == json_tokener_continue)
		return fail(error, CONTROL_PARSE, "the JSON text ends too early");
	if (code != json_tokener_success)
		return fail(error, CONTROL_PARSE, "byte %zu: %s", offset,
			    json_tokener_error_desc(code));
	for (; offset < bytes; offset++)
		if (!strchr(" \t\r", line[offset]))
			return fail(error, CONTROL_PARSE, "byte %zu: text after the request",
				    offset);
	*ret_root = TAKE_PTR(root);
	return 0;
}

/* An id that can be given back exactly. json-c cuts integers at 64 bits: the rims are refused. */
static bool is_id(json_object *id)
{
	switch (json_object_get_type(id)) {
	case json_type_null:
	case json_type_string:
		return true;
	case json_type_double:
		return isfinite(json_object_get_double(id));
	case json_type_int:
		return json_object_get_int64(id) != INT64_MIN &&
		       json_object_get_uint64(id) != UINT64_MAX;
	default:
		return false;
	}
}

/* A string without a NUL inside, so that strcmp(3) sees all of it. */
static bool is_word(json_object *object)
{
	return json_object_is_type(object, json_type_string) &&
	       strlen(json_object_get_string(object)) == (size_t)json_object_get_string_len(object);
}

/* Takes the keys out of a request object; the id first, for the sake of the error that follows. */
static int take_keys(json_object *root, struct request *request, struct control_error *error)
{
	json_object *version = NULL, *method = NULL, *id = NULL;

	request->is_notification = !json_object_object_get_ex(root, "id", &id);
	if (!is_id(id)) {
		return fail(error, CONTROL_INVALID_REQUEST,
			    "/id: a string, a number of 64 bits, or null");
	}
	request->id = id;
	json_object_object_foreach(root, key, value)
	{
		if (strcmp(key, "jsonrpc") != 0 && strcmp(key, "method") != 0 &&
		    strcmp(key, "params") != 0 && strcmp(key, "id") != 0)
			return fail(error, CONTROL_INVALID_REQUEST, "/%.64s: unknown key", key);
		(void)value;
	}
	json_object_object_get_ex(root, "jsonrpc", &version);
	if (!is_word(version) || strcmp(json_object_get_string(version), "2.0") != 0)
		return fail(error, CONTROL_INVALID_REQUEST, "/jsonrpc: must be \"2.0\"");
	json_object_object_get_ex(root, "method", &method);
	if (!is_word(method))
		return fail(error, CONTROL_INVALID_REQUEST, "/method: must be a string");
	if (json_object_object_get_ex(root, "params", &request->params) &&
	    !json_object_is_type(request->params, json_type_object))
		return fail(error, CONTROL_INVALID_REQUEST, "/params: by name, in an object");
	request->method = json_object_get_string(method);
	return 0;
}

static int understand(json_object *root, struct request *request, struct control_error *error)
{
	if (json_object_is_type(root, json_type_array))
		return fail(error, CONTROL_INVALID_REQUEST,
			    "batches are not supported: send one request per line");
	if (!json_object_is_type(root, json_type_object))
		return fail(error, CONTROL_INVALID_REQUEST, "a request is an object");
	return take_keys(root, request, error);
}

/* Writes what comes before the result or the error. */
static void begin_answer(struct jsonw *answer, json_object *id)
{
	answer->comma = false;
	jsonw_object(answer, NULL);
	jsonw_string(answer, "jsonrpc", "2.0");
	if (!id) {
		jsonw_null(answer, "id");
	} else if (json_object_is_type(id, json_type_string)) {
		jsonw_string_n(answer, "id", json_object_get_string(id),
			       (size_t)json_object_get_string_len(id));
	} else {
		const char *number = json_object_to_json_string(id);

		jsonw_raw(answer, "id", number, strlen(number));
	}
}

static int end_answer(struct jsonw *answer)
{
	jsonw_object_end(answer);
	answer->comma = false;
	jsonw_raw(answer, NULL, "\n", 1);
	answer->comma = false;
	return jsonw_end(answer);
}

/* The method writes its result right into the answer; what it wrote is undone when it fails. */
static int call(const struct control_method *method, void *context, const struct control_peer *peer,
		const struct request *request, struct jsonw *answer, struct control_error *error)
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
		r = fail(error, CONTROL_INTERNAL, "%s failed", method->name);
	if (r >= 0 && answer->bytes == before && !jsonw_end(answer))
		r = fail(error, CONTROL_INTERNAL, "the method gave no result");
	if (r >= 0) {
		r = end_answer(answer);
		if (r == 0 && !request->is_notification)
			return 0;
	}
	jsonw_rewind(answer, mark);
	if (r == -EMSGSIZE)
		return fail(error, CONTROL_INTERNAL, "the answer would be longer than %zu bytes",
			    answer->max_bytes);
	return r == 0 || r == -ENOMEM ? r : -1;
}

static int dispatch(const struct control_method *methods, void *context,
		    const struct control_peer *peer, const struct request *request,
		    struct jsonw *answer, struct control_error *error)
{
	for (const struct control_method *method = methods; method->name; method++) {
		if (!request->method || strcmp(method->name, request->method) != 0)
			continue;
		if (method->changes && !peer->admin)
			return fail(error, CONTROL_FORBIDDEN,
				    "%s is for root and the admin group; you are uid %u",
				    method->name, (unsigned int)peer->uid);
		return call(method, context, peer, request, answer, error);
	}
	return fail(error, CONTROL_NO_METHOD, "there is no method \"%.64s\"", request->method);
}

static int try_error(struct jsonw *answer, json_object *id, const struct control_error *error,
		     bool with_data)
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

static int write_error(struct jsonw *answer, json_object *id, struct control_error *error)
{
	bool with_data = error->data.bytes && jsonw_end(&error->data) == 0;
	int r;

	r = try_error(answer, id, error, with_data);
	/* Better an error without its details, or without a giant id, than none. */
	if (r == -EMSGSIZE && with_data)
		r = try_error(answer, id, error, false);
	if (r == -EMSGSIZE)
		r = try_error(answer, NULL, error, false);
	return r;
}

int control_request_answer(const struct control_method *methods, void *context,
			   const struct control_peer *peer, const char *line, size_t bytes,
			   struct jsonw *answer, int *ret_code)
{
	_cleanup_(put_object) json_object *root = NULL;
	struct control_error error = { 0 };
	struct request request = { 0 };
	int r;

	jsonw_init(&error.data, CONTROL_ANSWER_BYTES);
	r = parse(line, bytes, &root, &error);
	if (r >= 0)
		r = understand(root, &request, &error);
	if (r >= 0)
		r = dispatch(methods, context, peer, &request, answer, &error);
	/* Only a well-formed request can be a notification: any other is told of its fault. */
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
