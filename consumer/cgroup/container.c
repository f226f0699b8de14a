/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/cgroup/container.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shared/json/jsonw.h"
#include "shared/tools/macro.h"

#define UID_BYTES      36 /* of RFC 9562 */
#define UID_HASH_BYTES 32 /* of a static pod: a hash (kubelet: pkg/kubelet/config/common.go) */

static const char *const runtime_names[] = {
	[RUNTIME_NONE] = NULL,
#define RUNTIME(id, json) [RUNTIME_##id] = (json),
#include "consumer/cgroup/container.def"
};
_Static_assert(ARRAY_SIZE(runtime_names) == RUNTIME_COUNT_, "a runtime without a row");

static const char *const qos_names[] = {
	[QOS_NONE] = NULL,
#define QOS(id, json) [QOS_##id] = (json),
#include "consumer/cgroup/container.def"
};
_Static_assert(ARRAY_SIZE(qos_names) == QOS_COUNT_, "a class without a row");

/* A component of the path, or the rest of one. Not terminated. */
struct span {
	const char *text;
	size_t bytes;
};

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/*
 * Whether a host name, or a name that lxc and machined accept, may have the character: letters,
 * digits, '-', '_' and '.'.
 */
static bool is_host(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
	       c == '_' || c == '.';
}

/*
 * Whether a unit's name may have the character: VALID_CHARS_WITH_AT of systemd,
 * src/basic/unit-name.c.
 */
static bool is_unit(char c)
{
	return is_host(c) || c == ':' || c == '\\' || c == '@';
}

static bool all_bytes(struct span s, bool (*is)(char c))
{
	for (size_t i = 0; i < s.bytes; i++)
		if (!is(s.text[i]))
			return false;
	return s.bytes > 0;
}

static bool shape_HEX64(struct span s)
{
	return s.bytes == CONTAINER_ID_BYTES && all_bytes(s, is_hex);
}

static bool is_pod_uid(struct span s, char dash)
{
	if (s.bytes == UID_HASH_BYTES)
		return all_bytes(s, is_hex);
	if (s.bytes != UID_BYTES)
		return false;
	for (size_t i = 0; i < s.bytes; i++) {
		bool between = i == 8 || i == 13 || i == 18 || i == 23;

		if (between ? s.text[i] != dash : !is_hex(s.text[i]))
			return false;
	}
	return true;
}

static bool shape_UID(struct span s)
{
	return is_pod_uid(s, '-');
}

/* In the name of a slice '-' separates levels, so the kubelet writes '_' instead. */
static bool shape_UID_SLICE(struct span s)
{
	return is_pod_uid(s, '_');
}

static bool shape_HOST(struct span s)
{
	return s.bytes <= CONTAINER_HOST_BYTES && s.text[0] != '.' && all_bytes(s, is_host);
}

static int hex_digit(char c)
{
	return !is_hex(c) ? -1 : c <= '9' ? c - '0' : c - 'a' + 10;
}

/*
 * Undoes unit_name_escape (systemd: src/basic/unit-name.c) into `text`: '-' stands for '/', \xNN
 * for a byte. Returns the bytes, 0 when the result is no name of a machine.
 */
static size_t unescape_unit(struct span s, char text[CONTAINER_HOST_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < s.bytes; i++) {
		int high, low;

		if (n == CONTAINER_HOST_BYTES)
			return 0;
		if (s.text[i] != '\\') {
			text[n++] = s.text[i] == '-' ? '/' : s.text[i];
			continue;
		}
		if (s.bytes - i < 4 || s.text[i + 1] != 'x')
			return 0;
		high = hex_digit(s.text[i + 2]);
		low = hex_digit(s.text[i + 3]);
		if (high < 0 || low < 0)
			return 0;
		text[n++] = (char)(high << 4 | low);
		i += 3;
	}
	return n && shape_HOST((struct span){ text, n }) ? n : 0;
}

static bool shape_ESCAPED(struct span s)
{
	char text[CONTAINER_HOST_BYTES];

	return unescape_unit(s, text) > 0;
}

enum gives { GIVES_CONTAINER, GIVES_MONITOR, GIVES_MACHINE, GIVES_MINDER, GIVES_GROUP };

/* The form of a component; one row of NAME or POD. */
struct pattern {
	const char *above, *prefix, *suffix;
	bool (*shape)(struct span s);
	uint8_t owner; /* enum container_runtime or container_qos */
	uint8_t gives;
};

static const struct pattern names[] = {
#define NAME(runtime, gives, above, prefix, shape, suffix) \
	{ above, prefix, suffix, shape_##shape, RUNTIME_##runtime, GIVES_##gives },
#include "consumer/cgroup/container.def"
};

static const struct pattern pods[] = {
#define POD(qos, above, prefix, shape, suffix) \
	{ above, prefix, suffix, shape_##shape, QOS_##qos, 0 },
#include "consumer/cgroup/container.def"
};

static const char *const units[] = {
#define UNIT(suffix) suffix,
#include "consumer/cgroup/container.def"
};

/* The component being read, and the path above it. */
struct walk {
	const char *path;
	struct span above; /* without the '/' before the component */
	struct span name;
	bool in_pod; /* the component above is the cgroup of a pod */
};

static bool starts_with(struct span s, const char *prefix)
{
	return s.bytes >= strlen(prefix) && !memcmp(s.text, prefix, strlen(prefix));
}

static bool ends_with(struct span s, const char *suffix)
{
	size_t bytes = strlen(suffix);

	return s.bytes >= bytes && !memcmp(s.text + s.bytes - bytes, suffix, bytes);
}

static bool fits_above(const struct walk *w, const char *above)
{
	size_t bytes = strlen(above);

	if (!bytes)
		return true;
	if (!strcmp(above, "/pod"))
		return w->in_pod;
	if (!strcmp(above, "/first"))
		return w->above.bytes > 1 && !memchr(w->above.text + 1, '/', w->above.bytes - 1);
	return w->above.bytes > bytes && ends_with(w->above, above) &&
	       w->above.text[w->above.bytes - bytes - 1] == '/';
}

/* Removes the prefix: at the start, or with '*' also after the name of any slice. */
static bool take_prefix(struct span *s, const char *prefix)
{
	struct span rest = *s;

	if (*prefix != '*') {
		if (!starts_with(rest, prefix))
			return false;
		*s = (struct span){ rest.text + strlen(prefix), rest.bytes - strlen(prefix) };
		return true;
	}
	while (!starts_with(rest, prefix + 1)) {
		const char *dash = memchr(rest.text, '-', rest.bytes);

		if (!dash)
			return false;
		rest.bytes -= (size_t)(dash + 1 - rest.text);
		rest.text = dash + 1;
	}
	*s = rest;
	return take_prefix(s, prefix + 1);
}

static bool fits_pattern(const struct walk *w, const struct pattern *p,
			 struct container_part *ret_part)
{
	struct span s = w->name;

	if (!ends_with(s, p->suffix))
		return false;
	s.bytes -= strlen(p->suffix);
	if (!take_prefix(&s, p->prefix) || !s.bytes || !p->shape(s) || !fits_above(w, p->above))
		return false;
	*ret_part = (struct container_part){ (uint16_t)(s.text - w->path), (uint16_t)s.bytes };
	return true;
}

/*
 * Takes the name of an inner container, replacing an outer one's. Pod and machine stay the outer
 * ones.
 */
static void take_name(struct container *c, const struct pattern *p, struct container_part part)
{
	const struct container_part none = {};

	if (p->gives == GIVES_GROUP)
		return;
	c->runtime = p->owner;
	c->monitored = none;
	if (p->gives == GIVES_CONTAINER) {
		c->id = part;
	} else if (p->gives == GIVES_MACHINE) {
		c->id = none;
		c->machine = part;
	} else {
		c->monitored = part;
	}
}

static void see_name(struct container *c, const struct walk *w)
{
	struct container_part part;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!fits_pattern(w, &names[i], &part))
			continue;
		take_name(c, &names[i], part);
		return;
	}
}

static bool see_pod(struct container *c, const struct walk *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
		if (!fits_pattern(w, &pods[i], &c->pod))
			continue;
		c->qos = pods[i].owner;
		return true;
	}
	return false;
}

static void see_unit(struct container *c, const struct walk *w)
{
	struct span s = w->name;

	/*
	 * cg_escape of systemd, src/basic/cgroup-util.c: escapes names that are also kernel file
	 * names.
	 */
	if (s.bytes && s.text[0] == '_')
		s = (struct span){ s.text + 1, s.bytes - 1 };
	if (s.bytes > CONTAINER_UNIT_BYTES || !all_bytes(s, is_unit))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (s.bytes > strlen(units[i]) && ends_with(s, units[i]))
			c->unit = (struct container_part){ (uint16_t)(s.text - w->path),
							   (uint16_t)s.bytes };
}

static void see_component(struct container *c, struct walk *w)
{
	see_name(c, w);
	see_unit(c, w);
	w->in_pod = see_pod(c, w);
}

/* Reads "POD.slice:PREFIX:ID": a runtime without the systemd driver got the driver's notation. */
static void see_notation(struct container *c, struct walk *w)
{
	const struct span whole = w->name;
	const char *colon = memchr(whole.text, ':', whole.bytes);

	if (!colon ||
	    !ends_with((struct span){ whole.text, (size_t)(colon - whole.text) }, ".slice")) {
		see_component(c, w);
		return;
	}
	w->name.bytes = (size_t)(colon - whole.text);
	see_component(c, w);
	w->name.text = colon + 1;
	w->name.bytes = whole.bytes - (size_t)(colon + 1 - whole.text);
	see_component(c, w);
	w->name = whole;
}

struct container container_parse(const char *path)
{
	struct container c = {};
	struct walk w = { .path = path };
	const char *at = path;

	if (!path || strnlen(path, UINT16_MAX) == UINT16_MAX)
		return c;
	while (*at) {
		size_t slashes = strspn(at, "/");

		w.above = (struct span){ path, (size_t)(at - path) };
		w.name = (struct span){ at + slashes, strcspn(at + slashes, "/") };
		at += slashes + w.name.bytes;
		if (w.name.bytes)
			see_notation(&c, &w);
	}
	return c;
}

static void write_part(struct jsonw *w, const char *key, const char *path,
		       struct container_part part)
{
	if (part.bytes)
		jsonw_string_n(w, key, path + part.at, part.bytes);
}

void container_write_ids(const struct container *c, const char *path, struct jsonw *w)
{
	char text[UID_BYTES];

	write_part(w, "container_id", path, c->id);
	if (!c->pod.bytes || c->pod.bytes > sizeof(text))
		return;
	for (size_t i = 0; i < c->pod.bytes; i++)
		text[i] = path[c->pod.at + i] == '_' ? '-' : path[c->pod.at + i];
	jsonw_string_n(w, "pod_uid", text, c->pod.bytes);
}

static void write_runtime(const struct container *c, struct jsonw *w)
{
	if (c->runtime == RUNTIME_NONE)
		return;
	jsonw_string(w, "runtime", runtime_names[c->runtime]);
	if (!runtime_names[c->runtime])
		jsonw_string(w, "runtime_reason",
			     "the cgroup's name identifies the container, not its runtime");
}

static void write_machine(const struct container *c, const char *path, struct jsonw *w)
{
	const struct span s = { path + c->machine.at, c->machine.bytes };
	char text[CONTAINER_HOST_BYTES];
	size_t bytes;

	if (!s.bytes)
		return;
	/* Only an escaped name has a backslash; in any other name '-' is a '-'. */
	bytes = memchr(s.text, '\\', s.bytes) ? unescape_unit(s, text) : 0;
	jsonw_string_n(w, "machine", bytes ? text : s.text, bytes ? bytes : s.bytes);
}

void container_write(const struct container *c, const char *path, struct jsonw *w)
{
	if (!c->runtime && !c->qos && !c->unit.bytes)
		return;
	jsonw_object(w, "container");
	write_runtime(c, w);
	write_machine(c, path, w);
	write_part(w, "monitor_of", path, c->monitored);
	if (c->qos)
		jsonw_string(w, "qos", qos_names[c->qos]);
	write_part(w, "unit", path, c->unit);
	jsonw_object_end(w);
}
