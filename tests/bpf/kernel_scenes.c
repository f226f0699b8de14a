/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kernel_scenes.c: kernel stacks that are walked by remembered rows, each compared with the
 * kernel's own answer, where that is hard: on file systems of their own, beside tracers, while
 * modules come and go. With TROCAR_LONG=1 five million of them, TROCAR_COMPARED=N so many.
 * TROCAR_PERIOD_NS=N: a tick each so many ns, where an emulated machine would do nothing but tick.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_work.h"
#include "loader/kernel_rows.h"
#include "sample_fixture.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/macro.h"
#include "shared/tools/parse.h"

#define COMPARED     2000
#define COMPARED_ALL 5000000
#define PERIOD_NS    40000 /* of a work's own time */
#define UNIT_S	     600   /* that one work in one scene may take */
#define FIRST_S	     60	   /* until the first is compared */
#define ASKED_PCT    10	   /* walks that may be given up: tracers, code of BPF */
#define COMMAND	     4200
#define BESIDE_MS    1500 /* until the other activity has begun */

/* What goes on meanwhile. */
struct scene {
	const char *name;
	const char
		*disk; /* the works make files on a new file system of this type; NULL: /var/tmp */
	const char *need;   /* a program that must be installed, or a file that must be there */
	const char *beside; /* a command of the shell that runs until it is killed */
	const char *after;  /* what undoes it */
	bool only_files;
};

/* Nobody else's functions are traced: the filter names few, and they are the works'. */
#define TRACE_NEED \
	"mount -t tracefs tracefs $D && echo vfs_read >$D/set_ftrace_filter; s=$?; umount $D; exit $s"
/* On 6.1 a reader of trace_pipe may meet its end while tracing goes on. */
#define TRACE_BEGIN                                                                           \
	"mount -t tracefs tracefs $D && cd $D && echo 'vfs_* tcp_sendmsg* pipe_*' "           \
	">set_ftrace_filter && echo function >current_tracer && while "                       \
	"[ $(cat tracing_on current_tracer | tr -d '\\n') = 1function ]; do cat trace_pipe; " \
	"done >/dev/null"
#define TRACE_END "cd $D && echo nop >current_tracer; echo >set_ftrace_filter; cd / && umount -l $D"
#define BPFTRACE                                                         \
	"exec bpftrace -e 'profile:hz:499 { @[kstack] = count(); } "     \
	"tracepoint:raw_syscalls:sys_enter { @[kstack(3)] = count(); } " \
	"tracepoint:sched:sched_switch { @s[kstack] = count(); }' >/dev/null"
#define MODULES                                                                                  \
	"set -- dummy ifb nlmon vcan zram brd null_blk sch_fq btrfs xfs; while :; do for m; do " \
	"modprobe -q $m; done; for m; do modprobe -qr $m; done; done"

static const struct scene scenes[] = {
	{ .name = "alone" },
	{ .name = "ext4", .disk = "ext4", .need = "command -v mkfs.ext4", .only_files = true },
	{ .name = "xfs", .disk = "xfs", .need = "command -v mkfs.xfs", .only_files = true },
	{ .name = "beside perf",
	  .need = "command -v perf",
	  .beside = "exec perf record -q -a -g -F 999 -o /dev/null" },
	{ .name = "beside bpftrace", .need = "command -v bpftrace", .beside = BPFTRACE },
	{ .name = "beside a tracer of functions",
	  .need = TRACE_NEED,
	  .beside = TRACE_BEGIN,
	  .after = TRACE_END },
	{ .name = "modules come and go",
	  .need = "test -e /proc/modules && modprobe -qn dummy",
	  .beside = MODULES },
};

static const char *const file_works[] = { "write", "read", "copy", "map", "ring_files" };

static struct {
	struct harness *h;
	char group[4096], folder[64];
	uint64_t want; /* of each work in each scene */
	uint64_t period_ns;
	uint64_t compared, asked;
	struct bpf_link *modules[2];
} run;

static int shell(const char *command)
{
	_cleanup_free_ char *line = NULL;
	int status;

	assert_true(asprintf(&line, "D=%s; %s", run.folder, command) > 0);
	status = system(line); /* NOLINT(cert-env33-c,concurrency-mt-unsafe) */
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool can_play(const struct scene *scene)
{
	char line[COMMAND];

	if (!scene->need)
		return true;
	snprintf(line, sizeof(line), "exec >/dev/null 2>&1; %s", scene->need);
	return shell(line) == 0;
}

static bool takes_part(const struct scene *scene, const struct kernel_work *work)
{
	for (size_t i = 0; i < ARRAY_SIZE(file_works); i++)
		if (!strcmp(work->name, file_works[i]))
			return true;
	return !scene->only_files;
}

/* Ticks of this process's children, in its own time: no other process is disturbed. */
static int tick_children(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = run.period_ns,
					.inherit = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(
		ioctl(fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(run.h->skel->progs.sampler)), 0);
	return fd;
}

/* How long a work may take that has come from `before` to `now`. */
static uint64_t limit_ns(const struct totals *before, const struct totals *now)
{
	bool any = now->kernel_stacks_compared != before->kernel_stacks_compared;

	return (any ? UNIT_S : FIRST_S) * 1000000000ull;
}

static void compare(const struct scene *scene, const struct kernel_work *work)
{
	struct totals before = harness_totals(run.h), now;
	int fd = tick_children();
	pid_t pid = harness_start(work->run, NULL, run.group);
	uint64_t begin_ns = harness_now_ns();

	do {
		run.h->control->heartbeat_ns = harness_now_ns();
		harness_sleep_ms(20);
		harness_drain(run.h);
		harness_forget(run.h);
		now = harness_totals(run.h);
	} while (now.kernel_stacks_compared - before.kernel_stacks_compared < run.want &&
		 now.kernel_stacks_wrong == before.kernel_stacks_wrong &&
		 harness_now_ns() - begin_ns < limit_ns(&before, &now));
	harness_kill(pid);
	close(fd);
	if (now.kernel_stacks_compared == before.kernel_stacks_compared)
		fail_msg(
			"%s, %s: none compared, %llu asked for", scene->name, work->name,
			(unsigned long long)(now.kernel_stacks_asked - before.kernel_stacks_asked));
	run.compared += now.kernel_stacks_compared - before.kernel_stacks_compared;
	run.asked += now.kernel_stacks_asked - before.kernel_stacks_asked;
	if (now.kernel_stacks_wrong != before.kernel_stacks_wrong)
		fail_msg("%s, %s: %llu wrong", scene->name, work->name,
			 (unsigned long long)now.kernel_stacks_wrong);
}

/* Makes the file system at run.folder, in a file that is gone as soon as it is mounted. */
static void mount_disk(const char *type)
{
	char line[COMMAND];

	snprintf(
		line, sizeof(line),
		"f=$(mktemp /var/tmp/trocar-disk-XXXXXX) && truncate -s 400M $f && mkfs.%s -q $f && "
		"mount -o loop -t %s $f $D; s=$?; rm -f $f; exit $s",
		type, type);
	assert_int_equal(shell(line), 0);
	kernel_work_dir = run.folder;
}

static pid_t start_beside(const char *command)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid) {
		harness_sleep_ms(BESIDE_MS);
		return pid;
	}
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

/* It must have run all the time. */
static void end_beside(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(-pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void play(const struct scene *scene)
{
	uint64_t compared = run.compared, asked = run.asked;
	pid_t beside = 0;

	if (!can_play(scene)) {
		print_message("%s: not here (%s)\n", scene->name, scene->need);
		return;
	}
	if (scene->disk)
		mount_disk(scene->disk);
	setenv("D", run.folder, 1); /* NOLINT(concurrency-mt-unsafe) */
	if (scene->beside)
		beside = start_beside(scene->beside);
	for (size_t i = 0; i < kernel_works_count; i++)
		if (takes_part(scene, &kernel_works[i]))
			compare(scene, &kernel_works[i]);
	if (beside)
		end_beside(beside);
	if (scene->after)
		shell(scene->after);
	if (scene->disk)
		umount2(run.folder, MNT_DETACH);
	kernel_work_dir = "/var/tmp";
	print_message("%s: %llu compared, none wrong, %llu asked for\n", scene->name,
		      (unsigned long long)(run.compared - compared),
		      (unsigned long long)(run.asked - asked));
}

static size_t count_units(void)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(scenes); i++)
		for (size_t k = 0, can = can_play(&scenes[i]); can && k < kernel_works_count; k++)
			count += takes_part(&scenes[i], &kernel_works[k]);
	return count;
}

/* Returns the number in the variable `name` of the environment, or `otherwise`. */
static uint64_t read_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name); /* NOLINT(concurrency-mt-unsafe) */

	if (text)
		assert_int_equal(parse_u64(text, 1, UINT32_MAX, &otherwise), 0);
	return otherwise;
}

static void each_walk_is_the_kernels_own(void **state)
{
	const struct harness_options options = { .kernel_stack_checked = 1,
						 .modules = !access("/proc/modules", F_OK) };
	bool is_long = getenv("TROCAR_LONG"); /* NOLINT(concurrency-mt-unsafe) */
	uint64_t some = getenv("TROCAR_SHORT") ? COMPARED / 5
					       : COMPARED; /* NOLINT(concurrency-mt-unsafe) */
	uint64_t want = read_number("TROCAR_COMPARED", is_long ? COMPARED_ALL : some);

	snprintf(run.folder, sizeof(run.folder), "/var/tmp/trocar-scenes-XXXXXX");
	assert_non_null(mkdtemp(run.folder));
	run.h = harness_new(&options);
	harness_watch(run.h, harness_group(run.h, "works", run.group), SLOT, SLOT_CAPTURE, 0);
	run.h->control->stale_ns = 60000000000u;
	if (options.modules) {
		run.modules[0] = bpf_program__attach(run.h->skel->progs.on_module_load);
		run.modules[1] = bpf_program__attach(run.h->skel->progs.on_module_free);
		assert_true(run.modules[0] && run.modules[1]);
	}
	if (!kernel_rows_learn(run.h->skel->progs.orc_symbols, run.h->skel->progs.orc_learn)) {
		rmdir(run.folder);
		harness_free(run.h);
		print_message("this kernel has no unwind tables, or hides them\n");
		skip();
	}
	run.want = want / count_units() + 1;
	run.period_ns = read_number("TROCAR_PERIOD_NS", PERIOD_NS);
	for (size_t i = 0; i < ARRAY_SIZE(scenes); i++)
		play(&scenes[i]);
	print_message("%llu compared, none wrong, %llu asked for\n",
		      (unsigned long long)run.compared, (unsigned long long)run.asked);
	rmdir(run.folder);
	assert_true(run.compared >= want / 2);
	assert_true(run.asked * 100 <= run.compared * ASKED_PCT);
	bpf_link__destroy(run.modules[0]);
	bpf_link__destroy(run.modules[1]);
	harness_free(run.h);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_walk_is_the_kernels_own) };

	harness_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
