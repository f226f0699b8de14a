/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/watch/scope.h"
#include "shared/json/jsonw.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

int scope_read(int fd, struct scope *ret_scope)
{
	struct scope s = { 0 };
	struct cgroup_key *before = NULL;

	while (s.count < SCOPE_PREFIXES &&
	       bpf_map_get_next_key(fd, before, &s.prefixes[s.count]) == 0) {
		if (s.prefixes[s.count].prefix_bits > 8 * CGROUP_PREFIX_BYTES)
			return -EPROTO;
		before = &s.prefixes[s.count++];
	}
	if (s.count < SCOPE_PREFIXES && errno != ENOENT)
		return -errno;
	*ret_scope = s;
	return 0;
}

bool scope_holds(const struct scope *s, const char *path)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strncmp(path, s->prefixes[i].path, s->prefixes[i].prefix_bits / 8))
			return true;
	return s->count == 0;
}

void scope_refuse(struct scope *s, const char *path, const struct event_lines *lines)
{
	s->refused++;
	if (s->logged)
		return;
	s->logged = true;
	event_line_error(
		lines, NULL, "out_of_scope",
		"make the rules narrower, or load with a --scope that includes it", NULL, NULL,
		"%s matches a rule and is not watched: it is outside of the loader's --scope",
		path);
}

void scope_write_prefixes(const struct scope *s, const char *name, struct jsonw *w)
{
	jsonw_array(w, name);
	for (size_t i = 0; i < s->count; i++)
		jsonw_string_n(w, NULL, s->prefixes[i].path, s->prefixes[i].prefix_bits / 8);
	jsonw_array_end(w);
}

void scope_write(const struct scope *s, struct jsonw *w)
{
	if (s->count == 0)
		return;
	jsonw_object(w, "scope");
	scope_write_prefixes(s, "prefixes", w);
	jsonw_u64(w, "refused", s->refused);
	jsonw_object_end(w);
}
