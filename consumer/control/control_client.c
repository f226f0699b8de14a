/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/control/control_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/json/jsonw.h"
#include "shared/tools/clock.h"
#include "shared/tools/macro.h"

#define FIRST_BYTES 4096
#define GROUPS_MAX  1024 /* a process in more groups counts as being in none */

static bool in_groups(int fd, gid_t group)
{
	gid_t groups[GROUPS_MAX];
	socklen_t bytes = sizeof(groups);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(groups[0]); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static bool is_admin(int fd, const struct ucred *cred, const struct control_admins *admins)
{
	return cred->uid == 0 || (admins->user != (uid_t)-1 && cred->uid == admins->user) ||
	       (admins->group != (gid_t)-1 &&
		(cred->gid == admins->group || in_groups(fd, admins->group)));
}

/* Reads the peer's credentials as of its connect(2): later changes of the peer have no effect. */
static void read_peer(int fd, const struct control_admins *admins, struct control_peer *ret_peer)
{
	struct ucred cred;
	socklen_t bytes = sizeof(cred);

	*ret_peer = (struct control_peer){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0 || bytes != sizeof(cred))
		return;
	ret_peer->pid = cred.pid;
	ret_peer->uid = cred.uid;
	ret_peer->gid = cred.gid;
	ret_peer->admin = is_admin(fd, &cred, admins);
}

void control_client_init(struct control_client *client, int fd, const struct control_admins *admins)
{
	*client = (struct control_client){ .fd = fd, .asked_ns = clock_mono_ns() };
	read_peer(fd, admins, &client->peer);
	jsonw_init(&client->out, CONTROL_ANSWER_BYTES);
}

void control_client_done(struct control_client *client)
{
	loop_remove(client->source);
	if (client->fd >= 0)
		close(client->fd);
	control_request_abandon(&client->pending);
	free(client->in);
	jsonw_done(&client->out);
}

/* Moves unread bytes to the front of the buffer; enlarges the buffer if it is still full. */
static int make_room(struct control_client *client)
{
	const size_t most = CONTROL_REQUEST_BYTES + 1; /* with its '\n' */
	size_t space = client->in_space ? client->in_space * 2 : FIRST_BYTES;
	char *larger;

	if (client->in_start) {
		memmove(client->in, client->in + client->in_start, client->in_bytes);
		client->in_start = 0;
	}
	if (client->in_bytes < client->in_space)
		return 0;
	if (client->in_space == most)
		return -EMSGSIZE;
	space = MIN(space, most);
	larger = realloc(client->in, space);
	if (!larger)
		return -ENOMEM;
	client->in = larger;
	client->in_space = space;
	return 0;
}

static void free_input(struct control_client *client)
{
	if (client->in_bytes)
		return;
	free(client->in);
	client->in = NULL;
	client->in_start = 0;
	client->in_space = 0;
	client->in_scanned = 0;
}

int control_client_read(struct control_client *client)
{
	ssize_t n;
	int r;

	r = make_room(client);
	if (r < 0)
		return r;
	n = recv(client->fd, client->in + client->in_bytes, client->in_space - client->in_bytes,
		 MSG_DONTWAIT);
	r = n < 0 ? -errno : 0;
	if (n == 0)
		client->eof = true;
	else if (n > 0)
		client->in_bytes += (size_t)n;
	free_input(client);
	return r;
}

bool control_client_line(struct control_client *client, const char **ret_line, size_t *ret_bytes)
{
	const char *begin, *end;

	/*
	 * Scans new bytes only; otherwise a request sent byte by byte would cost the square of its
	 * length.
	 */
	if (client->in_scanned >= client->in_bytes)
		return false;
	begin = client->in + client->in_start;
	end = memchr(begin + client->in_scanned, '\n', client->in_bytes - client->in_scanned);
	if (!end) {
		client->in_scanned = client->in_bytes;
		return false;
	}
	*ret_line = begin;
	*ret_bytes = (size_t)(end - begin);
	return true;
}

void control_client_next(struct control_client *client, size_t bytes)
{
	client->in_start += bytes + 1;
	client->in_bytes -= bytes + 1;
	client->in_scanned = 0;
	free_input(client);
}

int control_client_send(struct control_client *client)
{
	while (control_client_unsent(client)) {
		ssize_t n = send(client->fd, client->out.data + client->out_sent,
				 client->out.bytes - client->out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		client->out_sent += (size_t)n;
	}
	jsonw_done(&client->out);
	client->out_sent = 0;
	return 0;
}
