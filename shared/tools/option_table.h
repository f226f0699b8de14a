/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * option_table.h: the command lines of trocar-loader, trocar-consumer and trocar. A program has one
 * constant table of its options; this parses by it and prints the help from it. A value may stand
 * in the same argument ("--hz=97") or in the next ("--hz 97"). Of an option that is given twice the
 * last value holds, unless its row has `times`.
 */
#ifndef TROCAR_SHARED_OPTION_TABLE_H
#define TROCAR_SHARED_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_TABLE_FAULT_BYTES 320
#define OPTION_TABLE_TIMES_MAX	 32
#define OPTION_TABLE_WORDS_MAX	 4

/* What stands at a row's offset, and which values it takes. */
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
	char letter;	     /* 'h': -h means the same; 0: none */
	uint8_t times;	     /* of a TEXT: a struct option_list of at most so many; 0: one value */
	uint32_t users;	     /* bits of those that take it, of the program's choice */
	size_t offset;	     /* of its place in the program's struct */
	uint64_t min, max;   /* as the type says */
	const char *value;   /* what the help calls the value; NULL where there is none */
	const char *choices; /* "oncpu|none" */
	const char *preset;  /* the value when none is given, as one would give it; NULL: zero */
	const char *want;    /* what a TEXT or PATH has to be, for a fault; NULL: `value` says it */
	bool (*check)(const char *value); /* of a TEXT or PATH: does it hold? NULL: always */
	const char *help;
};

/* A row whose place is a field of the program's `struct options`; what follows are further fields.
 */
#define OPTION_ROW(type_, users_, field_, name_, ...)                            \
	{                                                                        \
		.name = (name_), .type = OPTION_TYPE_##type_, .users = (users_), \
		.offset = offsetof(struct options, field_), __VA_ARGS__          \
	}

/* The values of an option that may be given several times. */
struct option_list {
	const char *items[OPTION_TABLE_TIMES_MAX];
	size_t count;
};

/* Arguments that are no options. */
struct option_words {
	const char *items[OPTION_TABLE_WORDS_MAX];
	unsigned int count;
};

struct option_table {
	const struct option_row *rows;
	size_t n_rows;
	const char *helper; /* the command that lists the options: "trocar help" */
};

/*
 * Sets what the rows of `users` point at in `options` to their presets, then to what argv[0] to
 * argv[argc - 1] say. Texts are borrowed from argv and from the rows. Arguments that are no options
 * go to `words`, which begins empty; "--" then ends the options. Where `words` is NULL they are
 * refused. 0; on -EINVAL `fault` says in one line what is wrong and what would be right, and
 * `options` and `words` hold nothing to go by.
 */
int option_table_parse(const struct option_table *table, uint32_t users, int argc,
		       char *const argv[], void *options, struct option_words *words,
		       char fault[OPTION_TABLE_FAULT_BYTES]);

/* Prints the options of `users` with their ranges and presets, one a line, behind `indent`. */
void option_table_help(const struct option_table *table, uint32_t users, const char *indent,
		       FILE *out);

#endif
