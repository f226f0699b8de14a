/* SPDX-License-Identifier: BSD-2-Clause */
/* control_error.h: the errors of the control socket. */
#ifndef TROCAR_CONSUMER_CONTROL_CONTROL_ERROR_H
#define TROCAR_CONSUMER_CONTROL_CONTROL_ERROR_H

#include "shared/json/jsonw.h"

/* JSON-RPC error codes in addition to the standard's own (-32700, -32600 ... -32603). */
enum control_code {
	CONTROL_PARSE = -32700,
	CONTROL_INVALID_REQUEST = -32600,
	CONTROL_NO_METHOD = -32601,
	CONTROL_BAD_PARAMS = -32602,
	CONTROL_INTERNAL = -32603,
	CONTROL_CLOSED =
		-32000, /* too many clients, too slow, too long; then the client is closed */
	CONTROL_FORBIDDEN = -32001,
	CONTROL_REJECTED = -32002, /* faulty rules: `data` has the faults */
	CONTROL_HELD =
		-32003, /* a session could not start: `data` has the reason and the time to retry */
	CONTROL_NOT_FOUND = -32004,
	CONTROL_BUSY = -32005, /* too many long requests are in progress */
};

/*
 * The error that a failing method fills in; `data` is a writer of JSON text, empty if there is
 * none.
 */
struct control_error {
	enum control_code code;
	char message[256];
	struct jsonw data;
};

/* Fills in code and message. Returns -1. */
int control_error_fail(struct control_error *error, enum control_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
