/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/agent/confine.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "consumer/agent/rules_file.h"
#include "consumer/output/host.h"
#include "consumer/output/output_queue.h"
#include "policy/policy.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/log.h"
#include "shared/tools/parse.h"

#define PATHS_MAX 64

/* (uid_t)-1 and (gid_t)-1 mean "no change" to chown(2) and setresuid(2). */
static bool is_number(const char *name, uint32_t *ret_number)
{
	uint64_t number;

	if (parse_u64(name, 0, UINT32_MAX - 1, &number) < 0)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static bool find_user(const char *name, uid_t *ret_uid)
{
	const struct passwd *user;

	if (is_number(name, ret_uid))
		return true;
	user = getpwnam(name);
	if (user)
		*ret_uid = user->pw_uid;
	return user;
}

static bool find_group(const char *name, gid_t *ret_gid)
{
	const struct group *group;

	if (is_number(name, ret_gid))
		return true;
	group = getgrnam(name);
	if (group)
		*ret_gid = group->gr_gid;
	return group;
}

int confine_socket_group(const struct options *options, gid_t *ret_gid)
{
	const char *name = options->socket_group ? options->socket_group : options->group;

	if (find_group(name, ret_gid))
		return 0;
	log_error("group %s: no such group; make it with `groupadd --system %s`, or name "
		  "another with --group or --socket-group",
		  name, name);
	return -ENOENT;
}

gid_t confine_admin(const struct options *options)
{
	gid_t gid;

	return find_group(options->admin_group, &gid) ? gid : (gid_t)-1;
}

int confine_become(const struct options *options)
{
	int r;

	if (geteuid() == 0) {
		uid_t uid;
		gid_t gid;

		if (!find_user(options->user, &uid) || !find_group(options->group, &gid) ||
		    uid == 0) {
			log_error("--user %s: want an existing user other than root; make it with "
				  "`useradd --system --no-create-home %s`",
				  options->user, options->user);
			return -ENOENT;
		}
		r = policy_capabilities_become(uid, gid, &gid, 1);
		if (r < 0) {
			log_error("cannot become user %s: %s", options->user, strerror(-r));
			return r;
		}
	}
	r = policy_capabilities_none();
	if (r == 0)
		r = policy_harden();
	if (r < 0)
		log_error("cannot give up capabilities: %s", strerror(-r));
	return r;
}

struct path_list {
	struct policy_path items[PATHS_MAX];
	size_t n;
};

static int add_path(struct path_list *list, struct policy_path path)
{
	if (list->n >= PATHS_MAX) {
		log_error("--symbols-path: more than %d directories", PATHS_MAX / 2);
		return -E2BIG;
	}
	list->items[list->n++] = path;
	return 0;
}

/* Returns the directory of `path`, newly allocated; "." for a bare name. */
static char *parent_directory(const char *path)
{
	char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;

	if (!copy)
		return NULL;
	if (!slash) {
		free(copy);
		return strdup(".");
	}
	slash[slash == copy] = 0;
	return copy;
}

static int add_symbols(struct path_list *list, char *text)
{
	char *rest = text, *dir;
	int r;

	while (rest && (dir = strsep(&rest, ":"))) {
		if (!*dir)
			continue;
		if (access(dir, R_OK | X_OK) < 0)
			log_warning("--symbols-path: %s: %s: functions of files there get no names "
				    "from their files",
				    dir, strerror(errno));
		r = add_path(list, (struct policy_path){ .path = dir, .optional = true });
		if (r < 0)
			return r;
	}
	return 0;
}

static int collect_paths(const struct confinement *c, struct path_list *list, char *symbols,
			 const char *output_dir)
{
	size_t n;
	const struct policy_path *fixed = policy_landlock_paths(POLICY_CONSUMER, &n);
	bool unix_output = output_queue_kind(c->output) == OUTPUT_UNIX;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_path(list, fixed[i]);
	if (r == 0)
		r = add_path(list, (struct policy_path){ .path = c->options->bpf_dir });
	if (r == 0)
		r = add_path(list, (struct policy_path){ .path = c->host->cgroup2 });
	for (int i = 0; r == 0 && i < RULES_FILE_FOLDERS; i++)
		if (c->rules->folders[i][0])
			r = add_path(list, (struct policy_path){ .path = c->rules->folders[i] });
	/*
	 * A Landlock rule belongs to a folder, not to its name: a folder that replaces it has no
	 * such rule.
	 */
	for (int i = 0; r == 0 && i < RULES_FILE_AROUND; i++)
		if (c->rules->around[i][0])
			r = add_path(list, (struct policy_path){ .path = c->rules->around[i],
								 .optional = true });
	if (r == 0 && output_dir)
		r = add_path(list, (struct policy_path){ .path = output_dir,
							 .write = true,
							 .create = !unix_output });
	return r == 0 ? add_symbols(list, symbols) : r;
}

/* Returns the first path that must be there and cannot be reached, or NULL. */
static const char *find_unreachable(const struct path_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (!list->items[i].optional && access(list->items[i].path, F_OK) < 0)
			return list->items[i].path;
	return NULL;
}

int confine_files(const struct confinement *c)
{
	const char *output = output_queue_path(c->output), *wrong;
	_cleanup_free_ char *output_dir = output ? parent_directory(output) : NULL;
	_cleanup_free_ char *symbols =
		strdup(c->options->symbols_path ? c->options->symbols_path : "");
	struct path_list list = {};
	int r;

	if (!symbols || (output && !output_dir))
		return -ENOMEM;
	r = collect_paths(c, &list, symbols, output_dir);
	if (r < 0)
		return r;
	r = policy_landlock(list.items, list.n, &c->self->landlock_abi);
	wrong = r < 0 ? find_unreachable(&list) : NULL;
	if (r < 0)
		log_error("Landlock: %s: %s", wrong ? wrong : "its rules", strerror(-r));
	else if (!c->self->landlock_abi)
		log_warning("the kernel has no Landlock, continuing with file modes alone");
	return r;
}

int confine_calls(const struct confinement *c)
{
	uint32_t flags = 0;
	const char *what;
	int r;

	if (output_queue_kind(c->output) == OUTPUT_UNIX)
		flags |= POLICY_UNIX_OUTPUT;
	if (*options_broker(c->options))
		flags |= POLICY_USES_BROKER;
	r = policy_seccomp_flags(POLICY_CONSUMER, flags);
	if (r < 0) {
		log_error("system-call filter: %s", strerror(-r));
		return r;
	}
	r = policy_self_read(c->self);
	if (r < 0) {
		log_error("/proc/self/status: %s", strerror(-r));
		return r;
	}
	if (!policy_self_is_bare(c->self, &what)) {
		log_error("refusing to run: %s", what);
		return -EPERM;
	}
	return 0;
}
