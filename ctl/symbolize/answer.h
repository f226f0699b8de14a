/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.h: the requests to the process that reads a file of symbols, and its answers, each as one
 * message. That process has read a hostile file and an attacker may control it: every byte of an
 * answer is checked. Fuzzed (tests/fuzz/ctl/answer.c).
 */
#ifndef TROCAR_CTL_SYMBOLIZE_ANSWER_H
#define TROCAR_CTL_SYMBOLIZE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/symbolize/unnamed.h"

#define ANSWER_NAME_BYTES 512  /* of a name; longer names are cut, as the agent cuts them */
#define ANSWER_FILE_BYTES 1024 /* of a source file's path; longer paths are omitted */
#define ANSWER_INLINED	  16   /* inlined functions at one address */
#define ANSWER_PLACES	  (1 + ANSWER_INLINED)
#define ANSWER_BYTES	  (32u << 10) /* of a message */

/* Without padding: it is part of a key of a pool. */
struct answer_question {
	uint64_t offset; /* in the file */
	uint32_t caller; /* 1: it is a return address: the call is before it */
	uint32_t zero;
};

/* A function, and the source line of the address. NULL: not known. */
struct answer_place {
	const char *fn, *file;
	uint32_t line; /* from 1 when there is a file */
};

struct answer {
	enum unnamed unnamed;
	const char *raw; /* the symbol, if it differs from its readable name; else NULL */
	unsigned int n;	 /* places, at least 1 */
	/* First the function of the symbol, then the inlined functions, innermost first. */
	struct answer_place places[ANSWER_PLACES];
};

/* Writes the message; texts above their limits are cut or omitted. Returns its length in bytes. */
size_t answer_write(const struct answer *answer, char data[ANSWER_BYTES]);

/* Reads a message; the texts of *ret_answer point into it. 0 or -EBADMSG. */
int answer_read(const char *data, size_t bytes, struct answer *ret_answer);

#endif
