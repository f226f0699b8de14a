/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service_notify.h: reports the consumer's state to the service manager (sd_notify(3), in own code:
 * one datagram socket). service_notify_open makes and connects the socket before the lock-down,
 * because the system-call filter forbids socket(2) and Landlock forbids connecting to abstract
 * sockets. Afterwards only sendto(2) is used. Without a service manager every call does nothing.
 */
#ifndef TROCAR_CONSUMER_IO_SERVICE_NOTIFY_H
#define TROCAR_CONSUMER_IO_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Longest message, with its NUL. A longer STATUS= is cut. */
#define SERVICE_NOTIFY_BYTES 512

/*
 * Longest wait for a service manager that does not read: shorter than the time that the rings can
 * buffer.
 */
#define SERVICE_NOTIFY_WAIT_MS 100

struct service_notify {
	int fd;		      /* -1: there is no service manager */
	uint64_t watchdog_ns; /* longest time between two messages; 0: no watchdog */
};

#define SERVICE_NOTIFY_NONE ((struct service_notify){ .fd = -1 })

/*
 * Connects to `socket`, the value of $NOTIFY_SOCKET: an absolute path, or "@name" in the abstract
 * namespace. NULL or empty: there is no service manager. `usec` and `pid` are $WATCHDOG_USEC and
 * $WATCHDOG_PID (may be NULL); a watchdog for another pid is ignored. 0; -EINVAL: one of the values
 * is malformed; -EAFNOSUPPORT: the address is not a Unix socket; -errno of socket(2) and
 * connect(2).
 */
int service_notify_open(const char *socket, const char *usec, const char *pid,
			struct service_notify *ret_notify);
void service_notify_close(struct service_notify *notify);

/*
 * Sends `state` ("READY=1", "WATCHDOG=1", "STOPPING=1") and STATUS= with the one line that `format`
 * makes. Replaces line breaks in that line by spaces. Waits at most SERVICE_NOTIFY_WAIT_MS. 0 or
 * -errno: -EAGAIN when the service manager does not read.
 */
int service_notify_say(const struct service_notify *notify, const char *state, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));

#endif
