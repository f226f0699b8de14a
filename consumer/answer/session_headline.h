/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_headline.h: the one sentence of session.end for a person: the first finding, the trigger,
 * the threads' waits, and the use of the CPU time. Report thread only.
 */
#ifndef TROCAR_CONSUMER_ANSWER_SESSION_HEADLINE_H
#define TROCAR_CONSUMER_ANSWER_SESSION_HEADLINE_H

#include <stddef.h>

#include "consumer/answer/answer.h"
#include "consumer/answer/session_digest.h"
#include "consumer/session/session_result.h"

/*
 * Writes the sentence, at most `space` bytes with its NUL. It starts with the first finding, if
 * there is one (not NULL); before it stands whether the cause is not known, by `answer`. `s` must
 * be sorted.
 */
void session_headline_write(const struct session_digest *s, const struct session_result *session,
			    const struct finding *first, const struct answer *answer, char *text,
			    size_t space);

#endif
