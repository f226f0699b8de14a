/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/client/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/cli/text.h"
#include "ctl/client/client.h"
#include "ctl/client/programs.h"
#include "shared/tools/cleanup.h"
#include "shared/tools/clock.h"
#include "shared/tools/environment.h"
#include "shared/tools/macro.h"

#define UID_FIRST  61184 /* dynamic users: systemd.exec(5), DynamicUser= */
#define UID_LAST   65519
#define ANSWER_S   30 /* timeout of the consumer's first answer */
#define END_S	   10 /* timeout of a requested end */
#define LOOK_MS	   10
#define SAID_BYTES 4096 /* the last bytes of the programs' output */
#define SAID_READS 16	/* of a pipe that holds 64 KiB */
#define RULES_NAME "rules.json"
#define NO_RULES   "{\"version\": 1, \"rules\": []}\n"

struct keeper {
	const char *folder, *symbols;
	int life_fd, news_fd;
	int said_fds[2]; /* a pipe for the programs' output; -1: none */
	char said[SAID_BYTES];
	size_t said_bytes;
	char loader[PATH_MAX], activate[PATH_MAX], consumer[PATH_MAX];
	char id[16]; /* number of the user and of the group */
	char bpf[KEEPER_PATH_BYTES], broker[KEEPER_PATH_BYTES], control[KEEPER_PATH_BYTES];
	char rules[KEEPER_PATH_BYTES];
	uid_t uid;
	bool made, loaded;
	pid_t activate_pid, consumer_pid;
};

static void say_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say_failure(const char *format, ...)
{
	va_list words;

	fputs("trocar: no agent could be started: ", stderr);
	va_start(words, format);
	vfprintf(stderr, format, words);
	va_end(words);
	fputc('\n', stderr);
}

static const char *write_path(const struct keeper *k, const char *name,
			      char path[KEEPER_PATH_BYTES])
{
	snprintf(path, KEEPER_PATH_BYTES, "%s/%s", k->folder, name);
	return path;
}

static bool find_programs(struct keeper *k)
{
	const char *all[] = { program_path(PROGRAM_LOADER, k->loader),
			      program_path(PROGRAM_CONSUMER, k->consumer),
			      program_path(PROGRAM_ACTIVATE, k->activate) };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (access(all[i], X_OK) == 0)
			continue;
		say_failure("%s: %s: install the package trocar", all[i], strerror(errno));
		return false;
	}
	return true;
}

/*
 * Returns whether a process runs as this user: of another capture, or of another program that uses
 * such numbers.
 */
static bool is_running(uid_t id)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc");
	const struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_uid == id)
			return true;
	return !dir;
}

/*
 * Returns whether no account has this number, systemd has given it to no service, and no process
 * uses it now.
 */
static bool is_free(uid_t id)
{
	char note[64];

	snprintf(note, sizeof(note), "/run/systemd/dynamic-uid/%u", id);
	return !getpwuid(id) && !getgrgid(id) && access(note, F_OK) < 0 && !is_running(id);
}

static bool take_user(struct keeper *k)
{
	uid_t n = UID_LAST - UID_FIRST + 1, first = (uid_t)getpid() % n;

	for (uid_t i = 0; i < n; i++) {
		k->uid = UID_FIRST + (first + i) % n;
		if (!is_free(k->uid))
			continue;
		snprintf(k->id, sizeof(k->id), "%u", k->uid);
		return true;
	}
	say_failure("all users from %d to %d are taken", UID_FIRST, UID_LAST);
	return false;
}

static bool write_rules(const struct keeper *k)
{
	_cleanup_close_ int fd = open(k->rules, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	return fd >= 0 && write(fd, NO_RULES, strlen(NO_RULES)) == (ssize_t)strlen(NO_RULES) &&
	       fchown(fd, 0, k->uid) == 0 && fchmod(fd, 0640) == 0;
}

static bool make_folder(struct keeper *k)
{
	char path[KEEPER_PATH_BYTES];

	umask(077);
	k->made = mkdir(k->folder, 0700) == 0;
	if (k->made && chown(k->folder, 0, k->uid) == 0 && chmod(k->folder, 0750) == 0 &&
	    mkdir(write_path(k, "control", path), 0700) == 0 && chown(path, k->uid, k->uid) == 0 &&
	    write_rules(k) && pipe2(k->said_fds, O_CLOEXEC | O_NONBLOCK) == 0)
		return true;
	say_failure("%s: %s", k->folder, strerror(errno));
	return false;
}

/*
 * Starts a program with its output to the pipe; the program does not block if the pipe is full.
 * Returns its pid; 0: it failed, and the reason was printed.
 */
static pid_t start_program(const struct keeper *k, const char *const words[])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char *small[ENVIRONMENT_ROOM];
	sigset_t all;
	pid_t pid = 0;
	int r;

	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, k->said_fds[1], STDERR_FILENO);
	r = posix_spawn(&pid, words[0], &actions, &attributes, (char *const *)words,
			environment_small(environ, small));
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (r == 0)
		return pid;
	say_failure("%s: %s", words[0], strerror(r));
	return 0;
}

/* Reads the text in the pipe, at most its capacity, and keeps the end. */
static void take_said(struct keeper *k)
{
	char text[SAID_BYTES];
	size_t kept;
	ssize_t n;

	for (int i = 0; i < SAID_READS && (n = read(k->said_fds[0], text, sizeof(text))) > 0; i++) {
		kept = MIN(k->said_bytes, sizeof(k->said) - (size_t)n);
		memmove(k->said, k->said + k->said_bytes - kept, kept);
		memcpy(k->said + kept, text, (size_t)n);
		k->said_bytes = kept + (size_t)n;
	}
}

/* Prints the output through text_tame, because it is from a process that root does not trust. */
static void print_said(struct keeper *k)
{
	const char *line, *end = k->said, *newline;

	take_said(k);
	for (line = k->said; line < k->said + k->said_bytes; line = end + 1) {
		_cleanup_free_ char *tame = NULL;

		end = k->said + k->said_bytes;
		newline = memchr(line, '\n', (size_t)(end - line));
		end = newline ? newline : end;
		tame = text_tame(line, (size_t)(end - line));
		fprintf(stderr, "%s\n", tame ? tame : "(no memory)");
	}
}

/* Waits until the process has ended; returns whether it succeeded. */
static bool wait_well(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool has_ended(pid_t *pid)
{
	if (waitpid(*pid, NULL, WNOHANG) != *pid)
		return false;
	*pid = 0;
	return true;
}

/* Returns whether the command has closed its end, or has ended. */
static bool is_over(struct keeper *k, int timeout_ms)
{
	struct pollfd ends[] = { { .fd = k->life_fd, .events = POLLIN },
				 { .fd = k->said_fds[0], .events = POLLIN } };

	if (poll(ends, ARRAY_SIZE(ends), timeout_ms) <= 0)
		return false;
	if (ends[1].revents)
		take_said(k);
	return ends[0].revents != 0;
}

/*
 * Polls at short intervals until the program is ready. False: it will not be ready; the reason was
 * printed.
 */
static bool wait_until(struct keeper *k, bool (*is_ready)(const struct keeper *k), pid_t *pid,
		       const char *program)
{
	uint64_t until_ns = clock_mono_ns() + ANSWER_S * NSEC_PER_SEC;

	while (!is_ready(k)) {
		if (is_over(k, LOOK_MS))
			return false;
		if (!has_ended(pid) && clock_mono_ns() < until_ns)
			continue;
		say_failure("%s %s:", program, *pid ? "does not answer" : "failed");
		return false;
	}
	return true;
}

static bool load_programs(struct keeper *k)
{
	const char *words[] = { k->loader, "load", "--bpf-dir", k->bpf, "--group", k->id, NULL };
	pid_t pid = start_program(k, words);

	k->loaded = pid > 0; /* also after a failure, which may leave a part loaded */
	if (pid > 0 && wait_well(pid))
		return true;
	if (pid > 0)
		say_failure("%s load failed:", k->loader);
	return false;
}

/* Allows the consumer's group to connect as soon as the socket exists. */
static bool has_socket(const struct keeper *k)
{
	return chown(k->broker, 0, k->uid) == 0;
}

static bool start_broker(struct keeper *k)
{
	const char *words[] = { k->activate, k->broker, k->loader, "broker", "--bpf-dir",
				k->bpf,	     "--user",	k->id,	   NULL };

	k->activate_pid = start_program(k, words);
	return k->activate_pid && wait_until(k, has_socket, &k->activate_pid, k->activate);
}

static bool has_answer(const struct keeper *k)
{
	_cleanup_close_ int fd = client_open(k->control);

	return fd >= 0;
}

static bool start_consumer(struct keeper *k)
{
	const char *words[] = { k->consumer, "--rules",
				k->rules,    "--bpf-dir",
				k->bpf,	     "--socket",
				k->control,  "--broker",
				k->broker,   "--user",
				k->id,	     "--group",
				k->id,	     "--admin-group",
				"0",	     k->symbols ? "--symbols-path" : NULL,
				k->symbols,  NULL };

	k->consumer_pid = start_program(k, words);
	return k->consumer_pid && wait_until(k, has_answer, &k->consumer_pid, k->consumer);
}

static void stop_program(pid_t *pid)
{
	uint64_t until_ns = clock_mono_ns() + END_S * NSEC_PER_SEC;

	if (!*pid)
		return;
	kill(*pid, SIGTERM);
	while (!has_ended(pid)) {
		if (clock_mono_ns() > until_ns)
			kill(*pid, SIGKILL);
		poll(NULL, 0, LOOK_MS);
	}
}

static void unload_programs(struct keeper *k)
{
	const char *words[] = { k->loader, "unload", "--bpf-dir", k->bpf, NULL };
	pid_t pid;

	take_said(k); /* the programs that filled the pipe have ended: makes space for the loader */
	pid = k->loaded ? start_program(k, words) : 0;
	if (pid > 0 && !wait_well(pid))
		fprintf(stderr, "trocar: %s could not be unloaded; %s unload --bpf-dir %s\n",
			k->bpf, k->loader, k->bpf);
}

static void remove_folder(const struct keeper *k)
{
	static const char *const files[] = { RULES_NAME, KEEPER_CONTROL, "broker.sock" };
	static const char *const folders[] = { "control", "bpf", "." };
	char path[KEEPER_PATH_BYTES];

	if (!k->made)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		unlink(write_path(k, files[i], path));
	for (size_t i = 0; i + 1 < ARRAY_SIZE(folders); i++)
		rmdir(write_path(k, folders[i], path));
	if (rmdir(k->folder) < 0)
		fprintf(stderr, "trocar: %s stays: %s\n", k->folder, strerror(errno));
}

/* Waits for the requested end. False: the consumer ended before, which was printed. */
static bool keep_agent(struct keeper *k)
{
	while (!is_over(k, -1))
		;
	if (!has_ended(&k->consumer_pid))
		return true;
	fprintf(stderr, "trocar: %s ended by itself:\n", k->consumer);
	return false;
}

/*
 * The supervisor must end only when the command ends, on any signal to the command; otherwise it
 * would leave everything behind.
 */
static void shield_keeper(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_IGN);
}

_Noreturn void keeper_run(const char *folder, const char *symbols, int life_fd, int news_fd)
{
	struct keeper k = { .folder = folder,
			    .symbols = symbols,
			    .life_fd = life_fd,
			    .news_fd = news_fd,
			    .said_fds = { -1, -1 } };
	bool well;

	write_path(&k, "bpf", k.bpf);
	write_path(&k, "broker.sock", k.broker);
	write_path(&k, KEEPER_CONTROL, k.control);
	write_path(&k, RULES_NAME, k.rules);
	shield_keeper();
	well = find_programs(&k) && take_user(&k) && make_folder(&k);
	well = well && load_programs(&k) && !is_over(&k, 0) && start_broker(&k) &&
	       start_consumer(&k);
	if (well && write(k.news_fd, "", 1) == 1)
		well = keep_agent(&k);
	if (!well && k.said_fds[0] >= 0)
		print_said(&k);
	stop_program(&k.consumer_pid);
	stop_program(&k.activate_pid);
	unload_programs(&k);
	remove_folder(&k);
	_exit(well ? 0 : 1);
}
