/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log.h: writes messages for people to stderr, one line each. Only the programs log; functions of
 * shared/ and policy/ return errors. With log_journal(true) each line starts with sd-daemon(3)'s
 * "<N>" priority.
 */
#ifndef TROCAR_SHARED_TOOLS_LOG_H
#define TROCAR_SHARED_TOOLS_LOG_H

#include <stdbool.h>

/* Sets the name at the start of every line; `name` is borrowed. */
void log_open(const char *name);

/* Prefixes lines with their priority for the journal. */
void log_journal(bool on);

/* Each writes one line "name: message" to stderr; errno is preserved. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
