/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_warnings.c: reports values of one rule that can never match, or are probably a mistake. */
#include <string.h>

#include "shared/rules/rules_internal.h"
#include "shared/tools/macro.h"

#define MOUNT "/sys/fs/cgroup"

static bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t bytes = strlen(text), own = strlen(suffix);

	return bytes >= own && strcmp(text + bytes - own, suffix) == 0;
}

/* Returns the first character that is usual in patterns: '*', '?' or '|'. NULL: there is none. */
static const char *find_pattern(const char *text)
{
	return strpbrk(text, "*?|");
}

/*
 * Warns of a name with a pattern character: it is compared as it is, and no program has such a
 * name.
 */
static void warn_pattern(const char *name, const struct json_node *comm, struct rules_collect *c)
{
	const char *sign = find_pattern(name);

	if (*sign == '|')
		rules_collect_add(c, comm,
				  "\"%s\" is one name with a '|' in it, which no process has; must "
				  "be a list of names",
				  name);
	else if (*sign == '*' && !sign[1] && sign != name)
		rules_collect_add(c, comm,
				  "\"%s\" is a name with a '*' in it, not a pattern; must be "
				  "\"comm_prefix\": \"%.*s\"",
				  name, (int)(sign - name), name);
	else
		rules_collect_add(c, comm,
				  "\"%s\" is a name with a '%c' in it, not a pattern; must be a "
				  "whole name, or comm_prefix with how it begins",
				  name, *sign);
}

/* Warns of a name that no process has (proc(5), /proc/PID/comm). */
static void warn_comm(const char *name, bool exact, const struct json_node *comm,
		      struct rules_collect *c)
{
	const char *slash = strrchr(name, '/'), *space = strstr(name, " -");
	size_t bytes = strlen(name);

	if (find_pattern(name))
		warn_pattern(name, comm, c);
	else if (name[0] == '/')
		rules_collect_add(c, comm,
				  "\"%s\" is a path, and a process's name has none before it; must "
				  "be the name as in /proc/PID/comm%s%s%s",
				  name, slash[1] ? ", as \"" : "", slash + 1, slash[1] ? "\"" : "");
	else if (space && space != name)
		rules_collect_add(
			c, comm,
			"\"%s\" has arguments, and a process's name has none; must be the "
			"name as in /proc/PID/comm, as \"%.*s\"",
			name, (int)(space - name), name);
	else if (name[0] == ' ' || (exact && name[bytes - 1] == ' '))
		rules_collect_add(c, comm,
				  "\"%s\" has a space at an end, which counts; must be the name "
				  "without it",
				  name);
	else if (name[0] == '[' && (!exact || name[bytes - 1] == ']'))
		rules_collect_add(
			c, comm,
			"\"%s\" has the brackets in which ps(1) shows kernel threads; must "
			"be the name without them",
			name);
}

static void warn_comms(const struct rule *r, const struct json_node *match, struct rules_collect *c)
{
	const struct json_node *comm =
		json_node_member(match, r->comm_exact ? "comm" : "comm_prefix");

	if (r->n_comms && !json_node_is(comm, JSON_ARRAY)) {
		warn_comm(r->comms[0], r->comm_exact, comm, c);
		return;
	}
	comm = r->n_comms ? json_node_first(comm) : NULL;
	for (uint32_t i = 0; comm; i++, comm = json_node_next(comm))
		warn_comm(r->comms[i], true, comm, c);
}

/*
 * Warns of a prefix that no path of the kernel begins with (kernfs_path_from_node()), and of one
 * that excludes the unit's own cgroup.
 */
static void warn_cgroup(const struct rule *r, const struct json_node *cgroup,
			struct rules_collect *c)
{
	const char *path = r->cgroup_prefix, *sign = find_pattern(path);
	const char *below = path + strlen(MOUNT);

	if (begins_with(path, MOUNT) && (!*below || *below == '/'))
		rules_collect_add(c, cgroup,
				  "\"%s\" is a path on this machine; must be the path below the "
				  "cgroup2 mount: \"%s\"",
				  path, *below ? below : "/");
	else if (sign)
		rules_collect_add(c, cgroup,
				  "\"%s\" has a '%c' in it, and is compared byte by byte, not as a "
				  "pattern; must be how the path begins",
				  path, *sign);
	else if (strstr(path, "//") || strstr(path, "/./") || strstr(path, "/../"))
		rules_collect_add(c, cgroup,
				  "\"%s\" is no path as the kernel writes it; must be without //, "
				  "/./ and /../",
				  path);
	else if (ends_with(path, ".service/") || ends_with(path, ".scope/"))
		rules_collect_add(c, cgroup,
				  "\"%s\" begins the cgroups below the unit, not the unit's own; "
				  "must be \"%.*s\" where its processes are meant",
				  path, (int)strlen(path) - 1, path);
}

/* Warns of a signal without a program that the rule has from `defaults`. */
static void warn_inherited(const struct rule *r, const struct json_node *rule,
			   struct rules_collect *c)
{
	if (!r->signals_auto && r->signals & RULES_SIGNALS_WITHOUT_PROGRAM)
		rules_collect_add(
			c, rule,
			"\"%s\" has a signal without a program in this version from "
			"/defaults/capture/signals, so each session would be inconclusive; must "
			"not be there",
			r->name);
}

static void warn_signals(const struct rule *r, const struct json_node *rule,
			 struct rules_collect *c)
{
	const struct json_node *signals =
		json_node_member(json_node_member(rule, "capture"), "signals");

	if (!signals) {
		warn_inherited(r, rule, c);
		return;
	}
	for (const struct json_node *m = json_node_first(signals); m; m = json_node_next(m))
		if (rules_signal_bit(m->text, m->bytes) & RULES_SIGNALS_WITHOUT_PROGRAM)
			rules_collect_add(
				c, m,
				"\"%s\" has no program in this version, so each session of \"%s\" "
				"would be inconclusive; must not be here",
				m->text, r->name);
}

/* Returns whether nothing starts a capture. An empty `when` is intended, and does not count. */
static bool begins_nothing(const struct rule *r, const struct json_node *rule)
{
	return !r->n_when && !r->on_exec && !r->on_oom_kill && !json_node_member(rule, "when");
}

static void warn_rule(const struct rule *r, const struct rules_place *place,
		      struct rules_collect *c)
{
	if (begins_nothing(r, place->rule))
		rules_collect_add(c, place->rule,
				  "\"%s\" has neither \"when\" nor \"on\": it captures only by "
				  "`trocar capture`; must have one of them, or \"when\": [] where "
				  "that is meant",
				  r->name);
	warn_comms(r, place->match, c);
	if (r->cgroup_prefix)
		warn_cgroup(r, json_node_member(place->match, "cgroup_prefix"), c);
	warn_signals(r, place->rule, c);
}

void rules_warnings_add(const struct rules *rules, const struct rules_place *places,
			struct rules_collect *c)
{
	for (size_t i = 0; i < rules->count; i++)
		warn_rule(&rules->rules[i], &places[i], c);
}
