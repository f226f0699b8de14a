/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "policy/policy.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"

struct row {
	enum policy_process process;
	cap_value_t capability;
	enum policy_stage first, last;
};

static const struct row rows[] = {
#define CAP(process, capability, first, last, reason) \
	{ POLICY_##process, capability, STAGE_##first, STAGE_##last },
#include "policy/capabilities.def"
#undef CAP
};

static void free_set(cap_t *set)
{
	if (*set)
		cap_free(*set);
}

uint64_t policy_capabilities_rows(enum policy_process process, enum policy_stage stage)
{
	uint64_t set = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].process == process && rows[i].last >= stage)
			set |= 1ULL << rows[i].capability;
	return set;
}

static bool holds_capability(cap_t set, cap_value_t capability, cap_flag_t flag)
{
	cap_flag_value_t value = CAP_CLEAR;

	return cap_get_flag(set, capability, flag, &value) == 0 && value == CAP_SET;
}

/* Drops all capabilities except `keep` from the bounding set. -EPERM: no CAP_SETPCAP. */
static int drop_bounding(uint64_t keep)
{
	for (cap_value_t c = 0; c < 64; c++) {
		int present = prctl(PR_CAPBSET_READ, c, 0, 0, 0);

		if (present < 0)
			break; /* EINVAL: above the last capability of this kernel */
		if (!present || (keep & (1ULL << c)))
			continue;
		if (prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
			return -errno;
	}
	return 0;
}

/*
 * Reduces the permitted set to `keep`, makes the rest of it effective, and empties the inheritable
 * and ambient sets.
 */
static int restrict_to(uint64_t keep)
{
	cap_t now __attribute__((cleanup(free_set))) = NULL;
	cap_t next __attribute__((cleanup(free_set))) = NULL;

	now = cap_get_proc();
	next = cap_init();
	if (!now || !next)
		return -ENOMEM;
	for (cap_value_t c = 0; c < 64; c++) {
		if (!(keep & (1ULL << c)) || !holds_capability(now, c, CAP_PERMITTED))
			continue;
		if (cap_set_flag(next, CAP_PERMITTED, 1, &c, CAP_SET) < 0 ||
		    cap_set_flag(next, CAP_EFFECTIVE, 1, &c, CAP_SET) < 0)
			return -errno;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	if (cap_set_proc(next) < 0)
		return -errno;
	return 0;
}

/* Restricts the bounding set first: that needs CAP_SETPCAP, which restrict_to may drop. */
static int keep_only(uint64_t keep)
{
	int r_bound, r;

	r_bound = drop_bounding(keep);
	r = restrict_to(keep);
	if (r < 0)
		return r;
	return r_bound;
}

int policy_capabilities_keep(enum policy_process process, enum policy_stage stage)
{
	return keep_only(policy_capabilities_rows(process, stage));
}

int policy_capabilities_none(void)
{
	return keep_only(0);
}

int policy_capabilities_drop(int capability)
{
	return keep_only(~(1ULL << capability));
}

static bool is_uid(uid_t uid)
{
	uid_t real, effective, saved;

	return getresuid(&real, &effective, &saved) == 0 && real == uid && effective == uid &&
	       saved == uid;
}

static bool is_gid(gid_t gid)
{
	gid_t real, effective, saved;

	return getresgid(&real, &effective, &saved) == 0 && real == gid && effective == gid &&
	       saved == gid;
}

static bool has_groups(const gid_t *groups, size_t n)
{
	gid_t here[NGROUPS_MAX > 256 ? 256 : NGROUPS_MAX];
	int count = getgroups(ARRAY_SIZE(here), here);

	if (count < 0 || (size_t)count != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (here[i] != groups[i])
			return false;
	return true;
}

int policy_capabilities_become(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups)
{
	int r;

	r = drop_bounding(0);
	if (r < 0 && r != -EPERM)
		return r;
	if (!has_groups(groups, n_groups) && setgroups(n_groups, groups) < 0)
		return -errno;
	if (!is_gid(gid) && setresgid(gid, gid, gid) < 0)
		return -errno;
	if (!is_uid(uid) && setresuid(uid, uid, uid) < 0)
		return -errno;
	return is_uid(uid) && is_gid(gid) && has_groups(groups, n_groups) ? 0 : -EPERM;
}
