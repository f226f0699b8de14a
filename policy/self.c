/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "policy/policy.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/io.h"
#include "shared/tools/macro.h"

#define STATUS_BYTES_MAX 65536 /* enough for more than 4096 groups */

/*
 * A line of /proc/PID/status: the column and base of its number, and its member of struct
 * policy_self.
 */
static const struct line {
	const char *key;
	int column; /* from 0 */
	int base;
	size_t offset;
	size_t bytes;
} lines[] = {
#define LINE(key, column, base, member)                                           \
	{                                                                         \
		"\n" key ":", column, base, offsetof(struct policy_self, member), \
			sizeof(((struct policy_self *)0)->member)                 \
	}
	LINE("CapInh", 0, 16, cap_inh),
	LINE("CapPrm", 0, 16, cap_prm),
	LINE("CapEff", 0, 16, cap_eff),
	LINE("CapBnd", 0, 16, cap_bnd),
	LINE("CapAmb", 0, 16, cap_amb),
	LINE("Seccomp", 0, 10, seccomp),
	LINE("NoNewPrivs", 0, 10, no_new_privs),
	LINE("Uid", 1, 10, uid),
	LINE("Gid", 1, 10, gid),
#undef LINE
};

/* Parses the number in `column` of the line that starts with `key`. */
static int parse_field(const char *status, const char *key, int column, int base,
		       uint64_t *ret_number)
{
	const char *at = strstr(status, key);
	uint64_t number;
	char *end;

	if (!at)
		return -EBADMSG;
	at += strlen(key);
	for (int i = 0;; i++) {
		at += strspn(at, " \t");
		errno = 0;
		number = strtoull(at, &end, base);
		if (end == at || errno)
			return -EBADMSG;
		if (i == column)
			break;
		at = end;
	}
	*ret_number = number;
	return 0;
}

int policy_self_parse(const char *status, struct policy_self *ret_self)
{
	struct policy_self self = *ret_self;
	uint64_t number;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		const struct line *l = &lines[i];
		char *to = (char *)&self + l->offset;

		r = parse_field(status, l->key, l->column, l->base, &number);
		if (r < 0)
			return r;
		if (l->bytes == sizeof(uint32_t))
			*(uint32_t *)to = (uint32_t)number;
		else
			*(uint64_t *)to = number;
	}
	*ret_self = self;
	return 0;
}

int policy_self_read(struct policy_self *ret_self)
{
	_cleanup_free_ char *status = NULL;
	struct policy_self self = *ret_self;
	size_t bytes;
	int r;

	r = io_read_file(AT_FDCWD, "/proc/self/status", STATUS_BYTES_MAX, &status, &bytes);
	if (r < 0)
		return r;
	r = policy_self_parse(status, &self);
	if (r < 0)
		return r;
	r = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	if (r < 0)
		return -errno;
	self.dumpable = r == 1;
	*ret_self = self;
	return 0;
}

bool policy_self_is_bare(const struct policy_self *self, const char **ret_what)
{
	const struct {
		bool fine;
		const char *what;
	} promises[] = {
		{ self->cap_eff == 0, "the effective capability set is not empty" },
		{ self->cap_prm == 0, "the permitted capability set is not empty" },
		{ self->cap_inh == 0, "the inheritable capability set is not empty" },
		{ self->cap_amb == 0, "the ambient capability set is not empty" },
		{ self->cap_bnd == 0, "the capability bounding set is not empty" },
		{ self->no_new_privs == 1, "no_new_privs is not set" },
		{ self->seccomp == 2, "no system-call filter is in force" },
		{ self->uid != 0, "it runs as root" },
		{ !self->dumpable, "it is dumpable" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(promises); i++) {
		if (!promises[i].fine) {
			*ret_what = promises[i].what;
			return false;
		}
	}
	return true;
}
