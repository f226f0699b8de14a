/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ctl/cli/confine.h"
#include "shared/json/json_reader.h"
#include "shared/json/jsonw.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define FIRST_BYTES 65536u

int client_open(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = CLIENT_TIMEOUT_MS / 1000,
				    .tv_usec = CLIENT_TIMEOUT_MS % 1000 * 1000 };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* Limits connect(2), which waits while the backlog is full: EAGAIN after a timeout. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return TAKE_FD(fd);
}

static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	uint64_t now_ns = clock_mono_ns();
	int n;

	if (now_ns >= deadline_ns)
		return -ETIMEDOUT;
	n = poll(&poll_fd, 1, (int)((deadline_ns - now_ns) / NSEC_PER_MSEC + 1));
	if (n < 0 && errno != EINTR)
		return -errno;
	return 0;
}

/* The agent may refuse while we still send. Its reason can still be read, so EPIPE is no error. */
static int send_all(int fd, const char *data, size_t bytes, uint64_t deadline_ns)
{
	while (bytes) {
		ssize_t n = send(fd, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		int r;

		if (n >= 0) {
			data += n;
			bytes -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(fd, POLLOUT, deadline_ns);
		if (r < 0)
			return r;
	}
	return 0;
}

static int make_room(char **data, size_t *space, size_t bytes)
{
	size_t more = MIN(*space ? *space * 2 : (size_t)FIRST_BYTES, (size_t)CLIENT_ANSWER_BYTES);
	char *larger;

	if (bytes < *space)
		return 0;
	if (*space == CLIENT_ANSWER_BYTES)
		return -EPROTO;
	larger = realloc(*data, more);
	if (!larger)
		return -ENOMEM;
	*data = larger;
	*space = more;
	return 0;
}

/* Reads one line; *ret_bytes is its length without the '\n'. */
static int receive_line(int fd, uint64_t deadline_ns, char **ret_line, size_t *ret_bytes)
{
	_cleanup_free_ char *data = NULL;
	size_t bytes = 0, space = 0;

	for (;;) {
		const char *end;
		ssize_t n;
		int r;

		r = make_room(&data, &space, bytes);
		if (r < 0)
			return r;
		r = wait_for(fd, POLLIN, deadline_ns);
		if (r < 0)
			return r;
		n = recv(fd, data + bytes, space - bytes, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
		end = memchr(data + bytes, '\n', (size_t)n);
		bytes += (size_t)n;
		if (end) {
			*ret_bytes = (size_t)(end - data);
			*ret_line = TAKE_PTR(data);
			return 0;
		}
	}
}

static bool is_error(const struct json_node *error)
{
	return json_node_is(json_node_get(error, "code"), JSON_INTEGER) &&
	       json_node_is(json_node_get(error, "message"), JSON_STRING);
}

/* Parses the line, and takes ownership of it if it is an answer. */
static int read_answer(char **line, size_t bytes, struct client_answer *ret_answer)
{
	_cleanup_(client_answer_done) struct client_answer answer = { 0 };
	const struct json_node *result, *error;
	struct json_fault fault;
	int r;

	r = json_tree_read(*line, bytes, JSON_READER_NESTING, &answer.tree, &fault);
	if (r < 0)
		return r == -ENOMEM ? r : -EPROTO;
	result = json_node_member(answer.tree.nodes, "result");
	error = json_node_member(answer.tree.nodes, "error");
	if (!result == !error || (error && !is_error(error)))
		return -EPROTO;
	answer.line = TAKE_PTR(*line);
	answer.result = result;
	answer.error = error;
	*ret_answer = answer;
	answer = (struct client_answer){ 0 };
	return 0;
}

static int write_request(struct jsonw *request, const char *method, const struct jsonw *params)
{
	int r;

	jsonw_object(request, NULL);
	jsonw_string(request, "jsonrpc", "2.0");
	jsonw_u64(request, "id", 1);
	jsonw_string(request, "method", method);
	if (params) {
		r = jsonw_end(params);
		if (r < 0)
			return r;
		jsonw_raw(request, "params", params->data, params->bytes);
	}
	jsonw_object_end(request);
	return jsonw_end(request);
}

int client_ask(int fd, const char *method, const struct jsonw *params,
	       struct client_answer *ret_answer)
{
	uint64_t deadline_ns = clock_mono_ns() + CLIENT_TIMEOUT_MS * NSEC_PER_MSEC;
	_cleanup_(jsonw_done) struct jsonw request;
	_cleanup_free_ char *line = NULL;
	size_t bytes = 0;
	int r;

	jsonw_init(&request, CLIENT_REQUEST_BYTES);
	r = write_request(&request, method, params);
	if (r < 0)
		return r;
	r = send_all(fd, request.data, request.bytes, deadline_ns);
	if (r < 0)
		return r;
	r = send_all(fd, "\n", 1, deadline_ns);
	if (r < 0)
		return r;
	r = confine_now(CONFINE_READER);
	if (r < 0)
		return r;
	r = receive_line(fd, deadline_ns, &line, &bytes);
	if (r < 0)
		return r;
	return read_answer(&line, bytes, ret_answer);
}

int client_call(const char *path, const char *method, const struct jsonw *params,
		struct client_answer *ret_answer)
{
	_cleanup_close_ int fd = client_open(path);

	return fd < 0 ? fd : client_ask(fd, method, params, ret_answer);
}

void client_answer_done(struct client_answer *answer)
{
	json_tree_done(&answer->tree);
	free(answer->line);
	*answer = (struct client_answer){ 0 };
}
