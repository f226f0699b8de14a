/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/conditions/psi_trigger.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "shared/tools/macro.h"

#define PLAIN_WINDOW_US 2000000
#define WINDOW_MAX_US	10000000

static const struct psi_trigger_refusal refusals[] = {
	{ -ENOTCONN, true, true, "no broker opens the pressure file" },
	{ -EACCES, false, false, "the broker refused to open the pressure file" },
	{ -EINVAL, false, false,
	  "the broker has no CAP_SYS_RESOURCE: the kernel then takes only windows that are a "
	  "multiple of 2000 ms" },
	{ -EBUSY, false, false, "the pressure file already has another trigger" },
	{ -EOPNOTSUPP, false, false, "PSI is off in this kernel (psi=1 at boot switches it on)" },
	{ -ENODEV, false, false, "the cgroup or its pressure file is gone" },
	{ -ENOENT, false, false, "the cgroup or its pressure file is gone" },
	{ -EMFILE, true, true, "no descriptor is left (LimitNOFILE)" },
	{ -ENFILE, true, true, "the system has no descriptor left (fs.file-max)" },
	{ -ENOSPC, true, true,
	  "the user's epoll watches are all taken (fs.epoll.max_user_watches)" },
	{ -ENOMEM, true, true, "the kernel has no memory for a trigger" },
	{ -EAGAIN, true, true, "the kernel could not start its thread for the trigger (pid_max)" },
	{ -EPERM, false, false,
	  "the kernel lets only CAP_SYS_RESOURCE open it (before Linux 6.4)" },
};

size_t psi_trigger_text(char text[PSI_TRIGGER_TEXT_BYTES], bool full, uint64_t stall_us,
			uint64_t window_us)
{
	int n = snprintf(text, PSI_TRIGGER_TEXT_BYTES, "%s %llu %llu", full ? "full" : "some",
			 (unsigned long long)stall_us, (unsigned long long)window_us);

	return (size_t)MIN(n, PSI_TRIGGER_TEXT_BYTES - 1) + 1;
}

static int write_trigger(int fd, bool full, uint64_t stall_us, uint64_t window_us)
{
	char text[PSI_TRIGGER_TEXT_BYTES];
	size_t n = psi_trigger_text(text, full, stall_us, window_us);

	return write(fd, text, n) < 0 ? -errno : 0;
}

int psi_trigger_arm(int fd, bool full, uint32_t stall_ms, uint32_t window_ms,
		    enum psi_trigger_power *power)
{
	uint64_t stall_us = stall_ms * 1000ULL, window_us = window_ms * 1000ULL;
	bool plain_too = window_us % PLAIN_WINDOW_US == 0, probed = false;
	int r;

	/*
	 * Only a privileged opener may have a window that is one microsecond longer: this probes
	 * the opener's privilege, and the window is equally useful.
	 */
	if (*power == PSI_TRIGGER_POWER_UNKNOWN && plain_too && window_us < WINDOW_MAX_US) {
		r = write_trigger(fd, full, stall_us, window_us + 1);
		if (r == 0)
			*power = PSI_TRIGGER_PRIVILEGED;
		if (r != -EINVAL)
			return r;
		probed = true;
	}
	r = write_trigger(fd, full, stall_us, window_us);
	if (!plain_too && (r == 0 || r == -EINVAL))
		*power = r == 0 ? PSI_TRIGGER_PRIVILEGED : PSI_TRIGGER_PLAIN;
	else if (probed && r == 0)
		*power = PSI_TRIGGER_PLAIN;
	return r;
}

struct psi_trigger_refusal psi_trigger_refusal(int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (refusals[i].error == error)
			return refusals[i];
	return (struct psi_trigger_refusal){ error, false, false,
					     "the kernel refused the trigger" };
}

const char *psi_trigger_pace(enum psi_trigger_power power)
{
	switch (power) {
	case PSI_TRIGGER_PLAIN:
		return "the kernel checks every 2 s";
	case PSI_TRIGGER_PRIVILEGED:
		return "the kernel checks every tenth of the window";
	case PSI_TRIGGER_POWER_UNKNOWN:
		break;
	}
	return "the kernel checks every 2 s or more often";
}
