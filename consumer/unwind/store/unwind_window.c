/* SPDX-License-Identifier: BSD-2-Clause */
#include "consumer/unwind/store/unwind_window.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int unwind_window_open(int fd, uint64_t offset, size_t bytes, struct unwind_window *ret_window)
{
	uint64_t within = offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	void *pages = mmap(NULL, bytes + within, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   (off_t)(offset - within));

	if (pages == MAP_FAILED)
		return -errno;
	*ret_window = (struct unwind_window){ .at = (char *)pages + within,
					      .pages = pages,
					      .bytes = bytes + within };
	return 0;
}

void unwind_window_close(struct unwind_window *w)
{
	if (w->pages)
		munmap(w->pages, w->bytes);
	*w = (struct unwind_window){ 0 };
}
