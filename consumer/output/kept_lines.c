/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/output/kept_lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define ID_BYTES 17 /* 16 digits and the NUL (event_line_session_text) */

struct kept_session {
	char id[ID_BYTES];
	uint64_t omitted;
	size_t bytes; /* bytes of its lines that are held */
};

struct kept_lines {
	pthread_mutex_t mutex;
	size_t space, bytes;
	char *data; /* owned; NULL before the first line */
	struct kept_session sessions[KEPT_LINES_SESSIONS];
	unsigned int count; /* number of sessions, ever */
	char last[ID_BYTES];
};

int kept_lines_new(size_t bytes, struct kept_lines **ret_kept)
{
	struct kept_lines *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->mutex, NULL);
	k->space = bytes;
	*ret_kept = k;
	return 0;
}

void kept_lines_free(struct kept_lines *k)
{
	if (!k)
		return;
	pthread_mutex_destroy(&k->mutex);
	free(k->data);
	free(k);
}

/* One line of a text, with its '\n'. */
struct line {
	const char *text;
	size_t bytes;
};

static struct line first_line(const char *text, size_t bytes)
{
	const char *end = memchr(text, '\n', bytes);

	return (struct line){ text, end ? (size_t)(end - text) + 1 : bytes };
}

/*
 * Returns false for a line without a session: the session id follows directly after the boot id
 * (event_line_begin). Anywhere else the key may belong to a label, which users name freely; inside
 * a text its quotes would be escaped.
 */
static bool find_session(struct line line, char id[ID_BYTES])
{
	static const char boot[] = "\"boot_id\":\"", session[] = "\",\"session\":\"";
	const char *at = memmem(line.text, line.bytes, boot, strlen(boot));
	const char *end = line.text + line.bytes;

	if (at)
		at = memchr(at + strlen(boot), '"', (size_t)(end - at) - strlen(boot));
	if (!at || (size_t)(end - at) < sizeof(session) + ID_BYTES ||
	    memcmp(at, session, strlen(session)) != 0)
		return false;
	memcpy(id, at + strlen(session), ID_BYTES - 1);
	id[ID_BYTES - 1] = '\0';
	return true;
}

static bool is_end(struct line line)
{
	static const char begin[] = "{\"v\":1,\"type\":\"session.end\"";

	return line.bytes > strlen(begin) && !memcmp(line.text, begin, strlen(begin));
}

static unsigned int count_sessions(const struct kept_lines *k)
{
	return MIN(k->count, (unsigned int)KEPT_LINES_SESSIONS);
}

static struct kept_session *find_known(struct kept_lines *k, const char *id)
{
	for (unsigned int i = 0; i < count_sessions(k); i++)
		if (!strcmp(k->sessions[i].id, id))
			return &k->sessions[i];
	return NULL;
}

/*
 * Returns how many bytes each session may keep, so that all together have at most `bytes`: the
 * space that small sessions leave is shared equally by the others.
 */
static size_t find_part(const struct kept_lines *k, size_t bytes)
{
	unsigned int n = count_sessions(k), over = n;
	size_t part = n ? bytes / n : 0;

	for (unsigned int before = n + 1; over && over < before;) {
		size_t left = bytes;

		before = over;
		over = 0;
		for (unsigned int i = 0; i < n; i++)
			if (k->sessions[i].bytes > part)
				over++;
			else
				left -= k->sessions[i].bytes;
		part = over ? left / over : part;
	}
	return part;
}

/*
 * Whether to drop the line; if so, counts it. Lines of a session that lost its place are dropped.
 */
static bool drops_line(struct kept_lines *k, struct line line, size_t part)
{
	struct kept_session *session;
	char id[ID_BYTES];

	session = find_session(line, id) ? find_known(k, id) : NULL;
	if (!session)
		return true;
	if (session->bytes <= part)
		return false;
	session->bytes -= line.bytes;
	session->omitted++;
	return true;
}

/* Drops the oldest lines of the sessions that have the most, until at most `bytes` are held. */
static void drop_lines(struct kept_lines *k, size_t bytes)
{
	size_t part = find_part(k, bytes), kept = 0;

	for (size_t at = 0; at < k->bytes;) {
		struct line line = first_line(k->data + at, k->bytes - at);

		at += line.bytes;
		if (drops_line(k, line, part))
			continue;
		memmove(k->data + kept, line.text, line.bytes);
		kept += line.bytes;
	}
	k->bytes = kept;
}

/* The lines of a session that loses its place are dropped: no id leads to them any more. */
static struct kept_session *get_session(struct kept_lines *k, const char *id)
{
	struct kept_session *one = find_known(k, id);
	bool gone;

	if (one)
		return one;
	one = &k->sessions[k->count++ % KEPT_LINES_SESSIONS];
	gone = one->bytes > 0;
	*one = (struct kept_session){ 0 };
	memcpy(one->id, id, ID_BYTES);
	if (gone)
		drop_lines(k, SIZE_MAX);
	return one;
}

/* Allocates memory as lines arrive: touching all of it at once would delay the caller. */
static bool make_room(struct kept_lines *k)
{
	if (!k->data)
		k->data = malloc(k->space);
	return k->data;
}

/* Drops a quarter at a time, so that few lines pay for moving the others. */
static void keep_line(struct kept_lines *k, struct line line)
{
	struct kept_session *session;
	char id[ID_BYTES];

	if (!find_session(line, id))
		return;
	session = get_session(k, id);
	if (is_end(line))
		memcpy(k->last, id, ID_BYTES);
	if (line.bytes > k->space / 4 || !make_room(k)) {
		session->omitted++;
		return;
	}
	if (k->bytes + line.bytes > k->space)
		drop_lines(k, k->space / 4 * 3 - line.bytes);
	memcpy(k->data + k->bytes, line.text, line.bytes);
	k->bytes += line.bytes;
	session->bytes += line.bytes;
}

void kept_lines_put(void *kept, const char *data, size_t bytes, uint64_t lines)
{
	struct kept_lines *k = kept;

	pthread_mutex_lock(&k->mutex);
	for (size_t at = 0; at < bytes;) {
		struct line line = first_line(data + at, bytes - at);

		keep_line(k, line);
		at += line.bytes;
	}
	pthread_mutex_unlock(&k->mutex);
}

/* Finds the only session with an id that begins with the prefix. 0, -ENOENT, -EEXIST. */
static int find_by_prefix(const struct kept_lines *k, const char *prefix,
			  const struct kept_session **ret_session)
{
	const struct kept_session *found = NULL;

	for (unsigned int i = 0; i < count_sessions(k); i++) {
		if (strncmp(k->sessions[i].id, prefix, strlen(prefix)) != 0)
			continue;
		if (found)
			return -EEXIST;
		found = &k->sessions[i];
	}
	*ret_session = found;
	return found ? 0 : -ENOENT;
}

static void write_session(const struct kept_lines *k, const struct kept_session *session,
			  struct jsonw *w)
{
	jsonw_string(w, "session", session->id);
	jsonw_array(w, "lines");
	for (size_t at = 0; at < k->bytes;) {
		struct line line = first_line(k->data + at, k->bytes - at);
		char id[ID_BYTES];

		if (find_session(line, id) && !strcmp(id, session->id))
			jsonw_raw(w, NULL, line.text, line.bytes - 1);
		at += line.bytes;
	}
	jsonw_array_end(w);
	jsonw_u64(w, "omitted", session->omitted);
}

int kept_lines_write(struct kept_lines *k, const char *session, struct jsonw *w)
{
	const struct kept_session *found;
	int r = -ENOENT;

	pthread_mutex_lock(&k->mutex);
	if (session || k->last[0])
		r = find_by_prefix(k, session ? session : k->last, &found);
	if (r == 0)
		write_session(k, found, w);
	pthread_mutex_unlock(&k->mutex);
	return r;
}
