/* SPDX-License-Identifier: BSD-2-Clause */
#include "shared/tools/option_table.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "shared/tools/parse.h"
#include "shared/tools/similar.h"

#define WANT_BYTES	  192
#define OPTION_NAME_BYTES 64
#define HELP_WIDTH	  22 /* width of the longest option with its value in the help */

/* The state of one parse. */
struct parse {
	const struct option_table *table;
	uint64_t users;
	char *const *argv;
	int argc, at; /* argv[at] is the next argument */
	void *options;
	struct option_words *words;
	bool words_only; /* after "--" */
	char *fault;
};

static void *place_of(const struct parse *p, const struct option_row *row)
{
	return (char *)p->options + row->offset;
}

static bool takes_value(const struct option_row *row)
{
	return row->type != OPTION_TYPE_SET && row->type != OPTION_TYPE_CLEAR;
}

/* Writes "oncpu|none" as "oncpu or none", "a|b|c" as "a, b or c". */
static void write_choices(const char *choices, char text[WANT_BYTES])
{
	size_t used = 0;

	for (const char *at = choices; *at;) {
		size_t bytes = strcspn(at, "|");
		const char *next = at + bytes + (at[bytes] == '|');
		const char *join = !*next ? "" : strchr(next, '|') ? ", " : " or ";

		used += (size_t)snprintf(text + used, WANT_BYTES - used, "%.*s%s", (int)bytes, at,
					 join);
		if (used >= WANT_BYTES)
			return;
		at = next;
	}
}

/* Writes the values that the option takes. */
static void write_want(const struct option_row *row, char text[WANT_BYTES])
{
	if (row->type == OPTION_TYPE_NUMBER || row->type == OPTION_TYPE_POWER)
		snprintf(text, WANT_BYTES, "a %s from %" PRIu64 " to %" PRIu64,
			 row->type == OPTION_TYPE_POWER ? "power of two" : "number", row->min,
			 row->max);
	else if (row->type == OPTION_TYPE_CHOICE)
		write_choices(row->choices, text);
	else if (row->type == OPTION_TYPE_PATH)
		snprintf(text, WANT_BYTES,
			 "an absolute path under %" PRIu64 " bytes without '.', '..' and '//'%s%s",
			 row->max, row->want ? ", " : "", row->want ? row->want : "");
	else
		snprintf(text, WANT_BYTES, "%s", row->want ? row->want : row->value);
}

/* Writes the fault for a `value` that the option does not take; NULL: the value is missing. */
static int refuse_value(const struct parse *p, const struct option_row *row, const char *value)
{
	char want[WANT_BYTES] = "";

	write_want(row, want);
	snprintf(p->fault, OPTION_TABLE_FAULT_BYTES, "--%s%s%.80s: want %s%s", row->name,
		 value && *value ? " " : "", value ? value : "", want,
		 value ? "" : ", and there is no value");
	return -EINVAL;
}

static int refuse_argument(const struct parse *p, const char *argument, const char *why)
{
	snprintf(p->fault, OPTION_TABLE_FAULT_BYTES, "%.80s: %s; see %s", argument, why,
		 p->table->helper);
	return -EINVAL;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t length = strlen(value);

	for (const char *at = choices; *at;) {
		size_t bytes = strcspn(at, "|");

		if (bytes == length && strncmp(at, value, bytes) == 0)
			return true;
		at += bytes + (at[bytes] == '|');
	}
	return false;
}

/*
 * Returns whether the path is absolute, without empty, "." and ".." components: names and messages
 * rely on that.
 */
static bool is_clean_path(const char *path)
{
	const char *at = path;

	if (path[0] != '/')
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

static bool is_text_fine(const struct option_row *row, const char *value)
{
	if (row->type == OPTION_TYPE_CHOICE)
		return is_choice(row->choices, value);
	if (row->type == OPTION_TYPE_PATH && (strlen(value) >= row->max || !is_clean_path(value)))
		return false;
	if (row->type == OPTION_TYPE_TEXT && strlen(value) < row->min)
		return false;
	return !row->check || row->check(value);
}

static int add_to_list(const struct parse *p, const struct option_row *row, const char *value)
{
	struct option_list *list = place_of(p, row);

	if (list->count == row->times) {
		snprintf(p->fault, OPTION_TABLE_FAULT_BYTES, "--%s %.80s: want at most %u of them",
			 row->name, value, row->times);
		return -EINVAL;
	}
	list->items[list->count++] = value;
	return 0;
}

static int set_value(const struct parse *p, const struct option_row *row, const char *value)
{
	uint64_t number;

	switch (row->type) {
	case OPTION_TYPE_SET:
	case OPTION_TYPE_CLEAR:
		*(bool *)place_of(p, row) = row->type == OPTION_TYPE_SET;
		return 0;
	case OPTION_TYPE_NUMBER:
	case OPTION_TYPE_POWER:
		if (parse_u64(value, row->min, row->max, &number) < 0 ||
		    (row->type == OPTION_TYPE_POWER && (number & (number - 1)) != 0))
			return refuse_value(p, row, value);
		*(uint64_t *)place_of(p, row) = number;
		return 0;
	case OPTION_TYPE_TEXT:
	case OPTION_TYPE_CHOICE:
	case OPTION_TYPE_PATH:
		break;
	}
	if (!is_text_fine(row, value))
		return refuse_value(p, row, value);
	if (row->times)
		return add_to_list(p, row, value);
	*(const char **)place_of(p, row) = value;
	return 0;
}

static int set_presets(const struct parse *p)
{
	for (size_t i = 0; i < p->table->n_rows; i++) {
		const struct option_row *row = &p->table->rows[i];
		int r = 0;

		if (row->type == OPTION_TYPE_CLEAR)
			*(bool *)place_of(p, row) = true;
		else if (row->preset)
			r = set_value(p, row, row->preset);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Returns the row that `argument` names; *ret_value is the text after its '=', or NULL. */
static const struct option_row *find_row(const struct parse *p, const char *argument,
					 const char **ret_value)
{
	bool is_letter = argument[1] != '-' && argument[1] && !argument[2];
	const char *name = argument + 2;
	size_t bytes = is_letter ? 0 : strcspn(name, "=");

	*ret_value = !is_letter && name[bytes] ? name + bytes + 1 : NULL;
	for (size_t i = 0; i < p->table->n_rows; i++) {
		const struct option_row *row = &p->table->rows[i];

		if (!(row->users & p->users))
			continue;
		if (is_letter ? row->letter == argument[1]
			      : argument[1] == '-' && strlen(row->name) == bytes &&
					strncmp(row->name, name, bytes) == 0)
			return row;
	}
	return NULL;
}

/* Writes the fault for an unknown option, with the most similar option if there is one. */
static int refuse_option(const struct parse *p, const char *argument)
{
	char name[OPTION_NAME_BYTES];
	const char *meant = NULL;
	size_t distance = 0;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
	for (size_t i = 0; argument[1] == '-' && i < p->table->n_rows; i++)
		if (p->table->rows[i].users & p->users)
			similar_offer(name, p->table->rows[i].name, &meant, &distance);
	if (!meant)
		return refuse_argument(p, argument, "no such option here");
	snprintf(p->fault, OPTION_TABLE_FAULT_BYTES,
		 "%.80s: no such option here; did you mean --%s?", argument, meant);
	return -EINVAL;
}

/* Parses the option argv[at] and its value. */
static int take_option(struct parse *p)
{
	const char *argument = p->argv[p->at], *value;
	const struct option_row *row = find_row(p, argument, &value);

	if (!row)
		return refuse_option(p, argument);
	if (!takes_value(row) && value)
		return refuse_argument(p, argument, "takes no value");
	if (takes_value(row) && !value && ++p->at < p->argc)
		value = p->argv[p->at];
	if (takes_value(row) && !value)
		return refuse_value(p, row, NULL);
	return set_value(p, row, value);
}

static int take_word(struct parse *p, const char *word)
{
	if (!p->words)
		return refuse_argument(p, word, "no such argument here, only options");
	if (p->words->count == OPTION_TABLE_WORDS_MAX)
		return refuse_argument(p, word, "too many arguments");
	p->words->items[p->words->count++] = word;
	p->words->before += !p->words_only;
	return 0;
}

int option_table_parse(const struct option_table *table, uint64_t users, int argc,
		       char *const argv[], void *options, struct option_words *words,
		       char fault[OPTION_TABLE_FAULT_BYTES])
{
	struct parse p = {
		.table = table,
		.users = users,
		.argv = argv,
		.argc = argc,
		.options = options,
		.words = words,
		.fault = fault,
	};
	int r;

	r = set_presets(&p);
	for (; r == 0 && p.at < argc; p.at++) {
		const char *argument = argv[p.at];

		if (!p.words_only && words && strcmp(argument, "--") == 0)
			p.words_only = true;
		else if (!p.words_only && argument[0] == '-' && argument[1])
			r = take_option(&p);
		else
			r = take_word(&p, argument);
	}
	return r;
}

/* Prints "(5 to 999; default 97)", or the part of it that applies. */
static void print_bounds(const struct option_row *row, FILE *out)
{
	char bounds[WANT_BYTES] = "";

	if (row->type == OPTION_TYPE_NUMBER || row->type == OPTION_TYPE_POWER)
		snprintf(bounds, sizeof(bounds), "%s%" PRIu64 " to %" PRIu64,
			 row->type == OPTION_TYPE_POWER ? "power of two, " : "", row->min,
			 row->max);
	else if (row->type == OPTION_TYPE_CHOICE)
		write_choices(row->choices, bounds);
	if (!*bounds && !row->preset && !row->times)
		return;
	fprintf(out, " (%s", bounds);
	if (row->times)
		fprintf(out, "%sup to %u times", *bounds ? "; " : "", row->times);
	if (row->preset)
		fprintf(out, "%sdefault %s", *bounds ? "; " : "", row->preset);
	fputc(')', out);
}

void option_table_help(const struct option_table *table, uint64_t users, const char *indent,
		       FILE *out)
{
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct option_row *row = &table->rows[i];
		char name[64];

		if (!(row->users & users) || !row->help)
			continue;
		snprintf(name, sizeof(name), "--%s%s%s%s%.1s", row->name, row->value ? " " : "",
			 row->value ? row->value : "", row->letter ? ", -" : "", &row->letter);
		fprintf(out, "%s%-*s %s", indent, HELP_WIDTH, name, row->help);
		print_bounds(row, out);
		fputc('\n', out);
	}
}
