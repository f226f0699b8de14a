/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/load.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "loader/accounts.h"
#include "loader/bpffs/bpfdir.h"
#include "loader/bpffs/pin_set.h"
#include "loader/exit_status.h"
#include "loader/kernelset.h"
#include "loader/preflight/preflight.h"
#include "loader/preflight/preflight_btf.h"
#include "policy/policy.h"
#include "shared/tools/clock.h"
#include "shared/tools/log.h"
#include "shared/tools/macro.h"
#include "shared/tools/memory.h"

/* Libbpf reads and copies the kernel's types three times, 11 MB each. */
#define HEAP_BYTES (48u << 20)

/* The state of a load, for undo_load. */
struct load {
	const struct options *o;
	gid_t gid;
	struct bpfdir dir;
	bool staged;
	struct kernelset set;
	const char *what; /* the object of the running step, for the error message */
};

/*
 * A step of the load. It starts a stage: capabilities that the stage does not need are dropped
 * before.
 */
struct step {
	enum policy_stage stage;
	int (*run)(struct load *l);
	const char *failed; /* the beginning of the error message */
};

static int mount_bpfdir(struct load *l)
{
	l->what = l->o->bpf_dir;
	return bpfdir_open(&l->dir, l->gid);
}

static int load_kernelset(struct load *l)
{
	l->what = "maps and programs";
	return kernelset_load(l->o, &l->set);
}

/*
 * CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON, so it is dropped as early as possible: here,
 * unless an undo would have to unmount. Not earlier: libbpf reads the BTF of modules for types that
 * the kernel's own BTF lacks, and perf_event_open(2) needs it with Debian's perf_event_paranoid=3.
 */
static int attach_kernelset(struct load *l)
{
	int r;

	r = kernelset_attach(&l->set, l->o, &l->what);
	if (r < 0 || l->dir.mounted)
		return r;
	r = policy_capabilities_drop(CAP_SYS_ADMIN);
	return r == -EPERM ? 0 : r;
}

static int pin_kernelset(struct load *l)
{
	int r;

	l->what = PIN_SET_NEW;
	r = pin_set_stage(l->o->bpf_dir);
	if (r < 0)
		return r;
	l->staged = true;
	return kernelset_pin(&l->set, l->o->bpf_dir, l->gid, &l->what);
}

static int commit_pins(struct load *l)
{
	int r;

	l->what = l->o->bpf_dir;
	r = pin_set_commit(l->o->bpf_dir);
	if (r == 0)
		l->staged = false;
	return r;
}

static const struct step steps[] = {
	{ STAGE_MOUNT, mount_bpfdir, "cannot make the bpf directory" },
	{ STAGE_LOAD, load_kernelset, "the kernel refuses" },
	{ STAGE_ATTACH, attach_kernelset, "cannot attach" },
	{ STAGE_PIN, pin_kernelset, "cannot pin" },
	{ STAGE_PIN, commit_pins, "cannot install the new set" },
};

/*
 * Returns whether a signal interrupts the load: main() blocks signals, and one may be pending
 * between the steps.
 */
static bool is_interrupted(void)
{
	static const int heard[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	sigset_t pending;

	if (sigpending(&pending) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(heard); i++)
		if (sigismember(&pending, heard[i]) == 1)
			return true;
	return false;
}

/*
 * -EPERM: the bounding set stays as it is; permitted and effective are reduced, and no_new_privs
 * holds.
 */
static int drop_capabilities(enum policy_stage stage)
{
	int r = policy_capabilities_keep(POLICY_LOADER, stage);

	return r == -EPERM ? 0 : r;
}

static void undo_load(struct load *l)
{
	int r = 0;

	if (l->staged)
		r = pin_set_unstage(l->o->bpf_dir, NULL);
	kernelset_done(&l->set);
	if (r == 0)
		r = bpfdir_undo(&l->dir);
	if (r < 0)
		log_error("%s: the undo is not complete (%s): run trocar-loader unload",
			  l->o->bpf_dir, strerror(-r));
}

static void log_failure(const struct step *step, const struct load *l, int error)
{
	if (error == -EINTR)
		log_error("interrupted: everything is undone");
	else if (bpfdir_is_lost(&l->dir))
		log_error("%s: the mount was taken away while the set was loaded (umount --lazy, "
			  "or another mount over it): everything is undone, load again",
			  l->o->bpf_dir);
	else
		log_error("%s %s: %s%s", step->failed, l->what, strerror(-error),
			  error == -EPERM || error == -EACCES ? " (see trocar-loader check)" : "");
}

static int run_steps(struct load *l)
{
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		r = is_interrupted() ? -EINTR : drop_capabilities(steps[i].stage);
		if (r == 0)
			r = steps[i].run(l);
		if (r == 0 && bpfdir_is_lost(&l->dir))
			r = -ESTALE;
		if (r < 0) {
			log_failure(&steps[i], l, r);
			if (r != -EINTR && r != -ESTALE &&
			    (steps[i].stage == STAGE_LOAD || steps[i].stage == STAGE_ATTACH))
				preflight_explain_failure();
			return r;
		}
	}
	return 0;
}

/* Finds out whether a set is loaded already. A half-finished one does not count. */
static int look_for_set(const struct load *l, bool *ret_loaded)
{
	struct abi_header h;
	int r;

	r = pin_set_abi(l->o->bpf_dir, &h);
	if (r == -ENOENT) {
		*ret_loaded = false;
		return 0;
	}
	*ret_loaded = true;
	if (l->o->replace)
		return 0;
	if (r < 0 && r != -EPROTO) {
		log_error("the pin %s/abi cannot be read: %s; is %s the folder of another bpffs or "
			  "of files? name another one (--bpf-dir), or remove it",
			  l->o->bpf_dir, strerror(-r), l->o->bpf_dir);
		return r;
	}
	if (r == 0)
		log_error("already loaded at %s: ABI %u, %u Hz on %u CPUs, %" PRIu64
			  " s ago; use --replace to replace it, or unload to remove it",
			  l->o->bpf_dir, h.version, h.hz, h.cpus_sampled,
			  (uint64_t)((clock_mono_ns() - h.loaded_ns) / NSEC_PER_SEC));
	else
		log_error(
			"already loaded at %s, by another version; use --replace to replace it, or "
			"unload to remove it",
			l->o->bpf_dir);
	return -EEXIST;
}

/* Removes the leftovers of a killed load: pins without an `abi`, and everything in new/. */
static int clean_leftovers(const struct load *l, bool loaded)
{
	unsigned int staged = 0, standing = 0;
	int r;

	r = pin_set_unstage(l->o->bpf_dir, &staged);
	if (r == 0 && !loaded)
		r = pin_set_remove(l->o->bpf_dir, &standing);
	if (staged + standing > 0)
		log_warning("%s: removed %u pins of a load that was cut short", l->o->bpf_dir,
			    staged + standing);
	if (r < 0)
		log_error("%s: cannot remove what a load that was cut short left: %s",
			  l->o->bpf_dir, strerror(-r));
	return r;
}

static int prepare_load(struct load *l)
{
	int r;

	if (access(PREFLIGHT_BTF_PATH, R_OK) < 0) {
		r = -errno;
		log_error("the kernel has no BTF (%s: %s): it must be built with "
			  "CONFIG_DEBUG_INFO_BTF",
			  PREFLIGHT_BTF_PATH, strerror(-r));
		return r;
	}
	r = accounts_find_group(l->o->group, &l->gid);
	if (r < 0) {
		log_error(
			"there is no group %s: make it with \"groupadd --system %s\", or name another "
			"(or its number) with --group",
			l->o->group, l->o->group);
		return r;
	}
	r = preflight_surroundings();
	if (r < 0)
		return r;
	r = bpfdir_lock(l->o->bpf_dir, true, &l->dir);
	if (r < 0)
		bpfdir_log_unlocked(l->o->bpf_dir, r);
	return r;
}

static int load_set(struct load *l)
{
	bool loaded = false;
	int r;

	r = look_for_set(l, &loaded);
	if (r == 0)
		r = clean_leftovers(l, loaded);
	if (r == 0)
		r = run_steps(l);
	if (r < 0)
		return r;
	log_info("loaded at %s: ABI %u, %" PRIu64 " Hz on %zu CPUs%s, %s", l->o->bpf_dir,
		 ABI_VERSION, l->o->hz, l->set.samplers.count,
		 l->set.samplers.count ? "" : " until the broker opens them",
		 loaded ? "replacing the old set; restart trocar-consumer"
			: "ready for trocar-consumer");
	return 0;
}

int load_run(const struct options *o)
{
	struct load l = { .o = o, .dir = BPFDIR_NONE, .what = "" };
	int r;

	memory_keep(HEAP_BYTES);
	r = prepare_load(&l);
	if (r < 0)
		return EXIT_FAILED;
	r = load_set(&l);
	if (r < 0) {
		undo_load(&l);
		return r == -EEXIST ? EXIT_LOADED : EXIT_FAILED;
	}
	bpfdir_close(&l.dir);
	policy_capabilities_none();
	kernelset_done(&l.set);
	return EXIT_FINE;
}
