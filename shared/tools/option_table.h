/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * option_table.h: parses the command lines of trocar-loader, trocar-consumer and trocar. Each
 * program has one constant table of its options, which this file uses to parse and to print the
 * help. A value is in the same argument ("--hz=97") or in the next ("--hz 97"). If an option is
 * given twice, the last value counts, unless its row has `times`.
 */
#ifndef TROCAR_SHARED_TOOLS_OPTION_TABLE_H
#define TROCAR_SHARED_TOOLS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_TABLE_FAULT_BYTES 320
#define OPTION_TABLE_TIMES_MAX	 32
#define OPTION_TABLE_WORDS_MAX	 258

/* The type of the member at a row's offset, and its valid values. */
enum option_type {
	OPTION_TYPE_SET,    /* bool, true when given; no value */
	OPTION_TYPE_CLEAR,  /* bool, false when given; no value */
	OPTION_TYPE_NUMBER, /* uint64_t within [min, max] */
	OPTION_TYPE_POWER,  /* uint64_t, a power of two within [min, max] */
	OPTION_TYPE_TEXT,   /* const char *, at least `min` bytes */
	OPTION_TYPE_CHOICE, /* const char *, one of `choices` */
	OPTION_TYPE_PATH,   /* const char *, absolute, without "//", "." and "..", under `max` bytes
			     */
};

struct option_row {
	const char *name; /* without the dashes */
	enum option_type type;
	char letter;	/* 'h': -h means the same; 0: none */
	uint8_t times;	/* of a TEXT: the most values of a struct option_list; 0: one value */
	uint64_t users; /* bits that the program assigns: programs or verbs that take the option */
	size_t offset;	/* of the member in the program's struct */
	uint64_t min, max;   /* by the type */
	const char *value;   /* the value's name in the help; NULL: there is no value */
	const char *choices; /* "oncpu|none" */
	const char *preset;  /* the default, in the form of an argument; NULL: zero */
	const char *want;    /* of a TEXT or PATH: its valid values, for a fault; NULL: `value` */
	bool (*check)(const char *value); /* of a TEXT or PATH: is it valid? NULL: always */
	const char *help; /* NULL: the help leaves it out, because it is for tests */
};

/* A row for a member of the program's `struct options`; further members of the row follow. */
#define OPTION_ROW(type_, users_, field_, name_, ...)                            \
	{                                                                        \
		.name = (name_), .type = OPTION_TYPE_##type_, .users = (users_), \
		.offset = offsetof(struct options, field_), __VA_ARGS__          \
	}

/* The values of an option that may be given more than once. */
struct option_list {
	const char *items[OPTION_TABLE_TIMES_MAX];
	size_t count;
};

/* Arguments that are not options. */
struct option_words {
	const char *items[OPTION_TABLE_WORDS_MAX];
	unsigned int count;
	unsigned int before; /* words before "--"; without a "--": all */
};

struct option_table {
	const struct option_row *rows;
	size_t n_rows;
	const char *helper; /* the command that lists the options: "trocar help" */
};

/*
 * Sets the members that the rows of `users` name in `options` to their defaults, then to the values
 * in argv[0] to argv[argc - 1]. Texts are borrowed from argv and from the rows. Adds arguments that
 * are not options to `words`, which is empty at first; after "--" all arguments are added there. If
 * `words` is NULL such arguments are refused. 0; -EINVAL: `fault` is one line with the fault and
 * the right form, and the contents of `options` and `words` are undefined.
 */
int option_table_parse(const struct option_table *table, uint64_t users, int argc,
		       char *const argv[], void *options, struct option_words *words,
		       char fault[OPTION_TABLE_FAULT_BYTES]);

/* Prints the options of `users` with their ranges and defaults, one per line, after `indent`. */
void option_table_help(const struct option_table *table, uint64_t users, const char *indent,
		       FILE *out);

#endif
