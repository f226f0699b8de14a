/* SPDX-License-Identifier: BSD-2-Clause */
#include "loader/options.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "shared/macro.h"
#include "shared/parse.h"

enum kind {
	KIND_NUMBER,
	KIND_TEXT,
	KIND_LIST,
	KIND_FLAG,
};

enum shape {
	SHAPE_ANY,
	SHAPE_POWER,
};

static const struct row {
	enum kind kind;
	uint32_t verbs;
	const char *name;
	size_t offset; /* in struct options */
	uint64_t min, max, number;
	enum shape shape;
	const char *text;
	const char *help;
} rows[] = {
#define ROW(kind_, verbs_, field, name_, ...)        \
	{ .kind = (kind_),                           \
	  .verbs = (verbs_),                         \
	  .name = (name_),                           \
	  .offset = offsetof(struct options, field), \
	  __VA_ARGS__ },
#define NUMBER(verbs_, field, name_, min_, max_, default_, shape_, help_)                          \
	ROW(KIND_NUMBER, verbs_, field, name_, .min = (min_), .max = (max_), .number = (default_), \
	    .shape = SHAPE_##shape_, .help = (help_))
#define TEXT(verbs_, field, name_, default_, help_) \
	ROW(KIND_TEXT, verbs_, field, name_, .text = (default_), .help = (help_))
#define LIST(verbs_, field, name_, help_) ROW(KIND_LIST, verbs_, field, name_, .help = (help_))
#define FLAG(verbs_, field, name_, help_) ROW(KIND_FLAG, verbs_, field, name_, .help = (help_))
#include "loader/options.def"
};

static void *field_of(struct options *o, const struct row *row)
{
	return (char *)o + row->offset;
}

static void defaults(struct options *ret_options)
{
	struct options o = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].kind == KIND_NUMBER)
			*(uint64_t *)field_of(&o, &rows[i]) = rows[i].number;
		else if (rows[i].kind == KIND_TEXT)
			*(const char **)field_of(&o, &rows[i]) = rows[i].text;
	}
	*ret_options = o;
}

/* The row that `argument` names, with the text behind '=' if it has one. */
static const struct row *find(uint32_t verb, const char *argument, const char **ret_value)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t bytes = strlen(rows[i].name);

		if (!(rows[i].verbs & verb) || strncmp(argument, rows[i].name, bytes) != 0)
			continue;
		if (argument[bytes] != '\0' && argument[bytes] != '=')
			continue;
		*ret_value = argument[bytes] == '=' ? argument + bytes + 1 : NULL;
		return &rows[i];
	}
	return NULL;
}

static int set_number(const struct row *row, const char *value, struct options *o, char *fault,
		      size_t space)
{
	uint64_t number;
	int r;

	r = parse_u64(value, row->min, row->max, &number);
	if (r == 0 && (row->shape == SHAPE_ANY || (number & (number - 1)) == 0)) {
		*(uint64_t *)field_of(o, row) = number;
		return 0;
	}
	snprintf(fault, space, "%s %.40s: a %s from %" PRIu64 " to %" PRIu64 " is needed",
		 row->name, value, row->shape == SHAPE_POWER ? "power of two" : "number", row->min,
		 row->max);
	return -EINVAL;
}

static int add(const struct row *row, const char *value, struct options *o, char *fault,
	       size_t space)
{
	struct options_list *list = field_of(o, row);

	if (list->count == ARRAY_SIZE(list->items)) {
		snprintf(fault, space, "%s: at most %zu of them", row->name,
			 ARRAY_SIZE(list->items));
		return -EINVAL;
	}
	list->items[list->count++] = value;
	return 0;
}

static int set(const struct row *row, const char *value, struct options *o, char *fault,
	       size_t space)
{
	if (row->kind == KIND_NUMBER)
		return set_number(row, value, o, fault, space);
	if (row->kind == KIND_LIST)
		return add(row, value, o, fault, space);
	if (row->kind == KIND_TEXT)
		*(const char **)field_of(o, row) = value;
	else
		*(bool *)field_of(o, row) = true;
	return 0;
}

bool options_always_oncpu(const struct options *o)
{
	return strcmp(o->always, "oncpu") == 0;
}

/* Absolute, short, and written in the one way that names and messages rely on. */
static bool is_clean_path(const char *path)
{
	const char *at = path;

	if (path[0] != '/' || strlen(path) >= BPFDIR_PATH_BYTES)
		return false;
	while (*at == '/') {
		size_t bytes = strcspn(at + 1, "/");

		if (bytes == 0 || (bytes == 1 && at[1] == '.') ||
		    (bytes == 2 && at[1] == '.' && at[2] == '.'))
			return false;
		at += 1 + bytes;
	}
	return true;
}

static int check_scope(const struct options *o, char *fault, size_t space)
{
	for (size_t i = 0; i < o->scope.count; i++) {
		const char *prefix = o->scope.items[i];

		if (prefix[0] == '/' && strlen(prefix) < CGROUP_PREFIX_BYTES)
			continue;
		snprintf(fault, space,
			 "--scope %.80s: the beginning of a cgroup's path is needed, as "
			 "/system.slice/nginx, under %d bytes",
			 prefix, CGROUP_PREFIX_BYTES);
		return -EINVAL;
	}
	return 0;
}

static int check(const struct options *o, char *fault, size_t space)
{
	if (!is_clean_path(o->bpf_dir) || strcmp(o->bpf_dir, "/sys/fs/bpf") == 0) {
		snprintf(fault, space,
			 "--bpf-dir %.80s: an absolute path under %d bytes without '.', '..' and "
			 "'//' is needed, and not the system's own /sys/fs/bpf",
			 o->bpf_dir, BPFDIR_PATH_BYTES);
		return -EINVAL;
	}
	if (o->group[0] == '\0') {
		snprintf(fault, space, "--group: a group's name or number is needed");
		return -EINVAL;
	}
	if (o->user[0] == '\0') {
		snprintf(fault, space, "--user: a user's name or number is needed");
		return -EINVAL;
	}
	if (!options_always_oncpu(o) && strcmp(o->always, "none") != 0) {
		snprintf(fault, space, "--always %.40s: oncpu or none is needed", o->always);
		return -EINVAL;
	}
	return check_scope(o, fault, space);
}

int options_parse(uint32_t verb, int argc, char *const argv[], struct options *ret_options,
		  char *fault, size_t space)
{
	struct options o;
	int r;

	defaults(&o);
	for (int i = 0; i < argc; i++) {
		const char *value;
		const struct row *row = find(verb, argv[i], &value);

		if (!row || (row->kind == KIND_FLAG && value)) {
			snprintf(fault, space, "%.80s: no such option here", argv[i]);
			return -EINVAL;
		}
		if (row->kind != KIND_FLAG && !value) {
			if (++i >= argc) {
				snprintf(fault, space, "%s: a value is needed", row->name);
				return -EINVAL;
			}
			value = argv[i];
		}
		r = set(row, value, &o, fault, space);
		if (r < 0)
			return r;
	}
	r = check(&o, fault, space);
	if (r < 0)
		return r;
	*ret_options = o;
	return 0;
}

void options_help(uint32_t verb, FILE *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		if (!(row->verbs & verb))
			continue;
		fprintf(out, "    %-20s %s", row->name, row->help);
		if (row->kind == KIND_NUMBER)
			fprintf(out, " (%" PRIu64 " to %" PRIu64 ", %" PRIu64 ")", row->min,
				row->max, row->number);
		else if (row->kind == KIND_TEXT)
			fprintf(out, " (%s)", row->text);
		fputc('\n', out);
	}
}
