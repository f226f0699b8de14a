/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * service_notify.h: tells the service manager how the consumer is (sd_notify(3), by own code: one
 * datagram socket). The socket is made and connected before the lock-down, because the system-call
 * filter allows no socket(2) and Landlock closes abstract sockets that are not connected yet;
 * afterwards only sendto(2) is used. Without a service manager every call does nothing.
 */
#ifndef TROCAR_CONSUMER_IO_SERVICE_NOTIFY_H
#define TROCAR_CONSUMER_IO_SERVICE_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Longest message, with its NUL; what is longer is cut in STATUS=. */
#define SERVICE_NOTIFY_BYTES 512

/* Longest wait for a service manager that does not read: less than what the rings can hold. */
#define SERVICE_NOTIFY_WAIT_MS 100

struct service_notify {
	int fd;		      /* -1: nobody wants to know */
	uint64_t watchdog_ns; /* it wants to hear from us this often; 0: it does not watch */
};

#define SERVICE_NOTIFY_NONE ((struct service_notify){ .fd = -1 })

/*
 * Connects to `socket`, the value of $NOTIFY_SOCKET: an absolute path, or "@name" in the
 * abstract namespace; NULL or empty: no service manager. `usec` and `pid` are $WATCHDOG_USEC and
 * $WATCHDOG_PID (may be NULL); a watchdog of another process is not ours. 0; -EINVAL: a value is
 * none; -EAFNOSUPPORT: a kind of address that is not a Unix socket; -errno of socket(2) and
 * connect(2).
 */
int service_notify_open(const char *socket, const char *usec, const char *pid,
			struct service_notify *ret_notify);
void service_notify_close(struct service_notify *notify);

/*
 * Sends `state` ("READY=1", "WATCHDOG=1", "STOPPING=1") and STATUS= with the one line that the
 * format makes; line breaks in it become spaces. Waits at most SERVICE_NOTIFY_WAIT_MS. 0 or -errno:
 * -EAGAIN when the service manager does not read.
 */
int service_notify_say(const struct service_notify *notify, const char *state, const char *format,
		       ...) __attribute__((format(printf, 3, 4)));

#endif
