/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/runner/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALIDATOR    TROCAR_SOURCE "/tests/e2e/validate.py"
#define EXIT_SKIPPED 77 /* as Meson has it: something that it needs is not here */
#define NOTE_BYTES   16384

/* The results of a running test file so far. */
struct progress {
	const char *file;
	unsigned int *number; /* of the last case of the program */
	unsigned int cases, failed;
	char why[512];	       /* of the next case that is skipped */
	char note[NOTE_BYTES]; /* the end of the output since the last case */
};

static struct unit_file *files;
static char folder[64]; /* of the kept lines, each file's in NAME.jsonl */

void unit_add(struct unit_file *file)
{
	struct unit_file **at = &files;

	while (*at && strcmp((*at)->name, file->name) < 0)
		at = &(*at)->next;
	file->next = *at;
	*at = file;
}

void unit_keep_lines(const char *path)
{
	const char *to = getenv("TROCAR_UNIT_LINES");
	char bytes[65536];
	ssize_t n;
	int in, out;

	if (!to)
		return;
	in = open(path, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	close(in);
	close(out);
}

static void print_case(struct progress *p, bool fine, const char *name, const char *rest)
{
	printf("%sok %u - %s: %s%s\n", fine ? "" : "not ", ++*p->number, p->file, name, rest);
	p->cases++;
	p->failed += !fine;
	p->note[0] = p->why[0] = 0;
}

static void print_skip(struct progress *p, const char *name)
{
	char rest[600];

	if (!p->why[0])
		strcpy(p->why, geteuid() ? "it needs root" : "it cannot run here");
	snprintf(rest, sizeof(rest), " # SKIP %s", p->why);
	print_case(p, true, name, rest);
}

/* Keeps the end of a test's output; a program that is killed has no line of its own. */
static void keep_note(struct progress *p, const char *line)
{
	size_t had = strlen(p->note), more = strlen(line) + 3;

	if (more >= sizeof(p->note))
		return;
	if (had + more >= sizeof(p->note)) {
		memmove(p->note, p->note + had / 2, had - had / 2 + 1);
		had = strlen(p->note);
	}
	if (had + more < sizeof(p->note))
		snprintf(p->note + had, sizeof(p->note) - had, "# %s\n", line);
}

/* Takes one line of cmocka's TAP: a case, or something else that a test has printed. */
static void take_line(struct progress *p, char *line)
{
	bool bad = strncmp(line, "not ok ", 7) == 0;
	unsigned int number;
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if ((bad || strncmp(line, "ok ", 3) == 0) &&
	    sscanf(line + (bad ? 7 : 3), "%u %n", &number, &at) == 1) {
		char *name = line + (bad ? 7 : 3) + at;

		if (strncmp(name, "# SKIP ", 7) == 0)
			print_skip(p, name + 7);
		else
			print_case(p, !bad, strncmp(name, "- ", 2) ? name : name + 2, "");
	} else if (strncmp(line, "skipped: ", 9) == 0) {
		snprintf(p->why, sizeof(p->why), "%.500s", line + 9);
	} else if (line[0] == '#') {
		if (strncmp(line, "# ok", 4) != 0 && strncmp(line, "# not ok", 8) != 0)
			puts(line);
	} else if (strncmp(line, "1..", 3) != 0) {
		snprintf(p->why, sizeof(p->why), "%.500s", line);
		keep_note(p, line);
	}
}

/* The process of one test file. Does not return. */
static void run_child(const struct unit_file *file, int out, int argc, char **argv)
{
	char lines[256];

	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close(out);
	setlinebuf(stdout);
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 1);
	snprintf(lines, sizeof(lines), "%s/%s.jsonl", folder, file->name);
	setenv("TROCAR_UNIT_LINES", lines, 1);
	exit(file->run(argc, argv)); /* not _exit: what was not freed shows at the end */
}

/* How the process of a file ended, where that is a failure that no case has. */
static void take_end(struct progress *p, int status)
{
	char how[128];

	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED && !p->cases) {
		print_skip(p, "all tests");
		return;
	}
	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "(ended by signal %d: %s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) && !p->failed)
		snprintf(how, sizeof(how), "(exit status %d)", WEXITSTATUS(status));
	else if (!p->cases)
		strcpy(how, "(no test ran)");
	else
		return;
	printf("not ok %u - %s: %s\n%s", ++*p->number, p->file, how, p->note);
	p->failed++;
}

/* Runs one file. Returns whether all went well. */
static bool run_file(const struct unit_file *file, unsigned int *number, int argc, char **argv)
{
	struct progress p = { .file = file->name, .number = number };
	char line[4096];
	int ends[2], status;
	FILE *said;
	pid_t pid;

	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		run_child(file, ends[1], argc, argv);
	}
	close(ends[1]);
	said = fdopen(ends[0], "re");
	while (said && fgets(line, sizeof(line), said))
		take_line(&p, line);
	if (said)
		fclose(said);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	take_end(&p, status);
	return p.failed == 0;
}

/* Adds the files of kept lines to the validator's arguments. Returns how many there are. */
static size_t find_lines(char **arguments, size_t most)
{
	size_t n = 0;

	for (const struct unit_file *file = files; file; file = file->next) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s.jsonl", folder, file->name);
		if (access(path, F_OK) == 0 && n < most)
			arguments[n++] = strdup(path);
	}
	return n;
}

/* Validates all lines that were kept, and removes them. Returns whether all are right. */
static bool validate_lines(unsigned int *number)
{
	char *arguments[256] = { "/usr/bin/python3", VALIDATOR };
	size_t n = find_lines(arguments + 2, 250);
	struct progress p = { .file = "all", .number = number };
	int status = 0;
	pid_t pid;

	if (!n)
		return true;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execv(arguments[0], arguments);
		_exit(EXIT_SKIPPED);
	}
	waitpid(pid, &status, 0);
	for (size_t i = 0; i < n; i++) {
		unlink(arguments[2 + i]);
		free(arguments[2 + i]);
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) {
		strcpy(p.why, "the validator needs python3 and its module jsonschema");
		print_skip(&p, "lines follow docs/schema");
		return true;
	}
	print_case(&p, status == 0, "lines follow docs/schema", "");
	return status == 0;
}

/* Whether the file is one of those that the command line or $TROCAR_UNIT names, or none is. */
static bool is_chosen(const char *name, int argc, char **argv)
{
	const char *list = getenv("TROCAR_UNIT");
	size_t bytes = strlen(name);
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--args") != 0; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	if (i > 1)
		return false;
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strncmp(at, name, bytes) == 0 && (!at[bytes] || at[bytes] == ','))
			return true;
	return !list || !*list;
}

/*
 * Finds the words after `--args NAME`. Returns how many arguments that is, with the name as first.
 */
static int find_arguments(const char *name, int argc, char **argv, char ***ret_arguments)
{
	for (int i = 1; i + 1 < argc; i++) {
		int n = 1;

		if (strcmp(argv[i], "--args") != 0 || strcmp(argv[i + 1], name) != 0)
			continue;
		while (i + 1 + n < argc && strcmp(argv[i + 1 + n], "--args") != 0)
			n++;
		*ret_arguments = argv + i + 1;
		return n;
	}
	*ret_arguments = argv;
	return 1;
}

static int run_all(int argc, char **argv)
{
	unsigned int number = 0;
	bool fine = true, found = false;

	for (const struct unit_file *file = files; file; file = file->next) {
		char **arguments;
		int n = find_arguments(file->name, argc, argv, &arguments);

		if (!is_chosen(file->name, argc, argv))
			continue;
		found = true;
		fine &= run_file(file, &number, n, arguments);
	}
	if (!found) {
		fprintf(stderr, "%s: no such file; there are:", argv[0]);
		for (const struct unit_file *file = files; file; file = file->next)
			fprintf(stderr, " %s", file->name);
		fputc('\n', stderr);
		return 2;
	}
	fine &= validate_lines(&number);
	printf("1..%u\n", number);
	return fine ? 0 : 1;
}

int main(int argc, char **argv)
{
	int r;

	setlinebuf(stdout);
	strcpy(folder, "/tmp/trocar-unit-lines-XXXXXX");
	if (!mkdtemp(folder)) {
		perror(folder);
		return 2;
	}
	r = run_all(argc, argv);
	rmdir(folder);
	return r;
}
