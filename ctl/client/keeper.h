/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keeper.h: the process that makes an agent and takes it away: loads the BPF programs, starts the
 * listener of the broker, and the consumer as a user of its own. It reads nothing from any of them
 * but how they ended.
 */
#ifndef TROCAR_CTL_CLIENT_KEEPER_H
#define TROCAR_CTL_CLIENT_KEEPER_H

#define KEEPER_FOLDER	    "/run/trocar-profile.%d" /* only root makes names there; by pid */
#define KEEPER_FOLDER_BYTES 48
#define KEEPER_CONTROL	    "control/control.sock"
#define KEEPER_PATH_BYTES   (KEEPER_FOLDER_BYTES + 32)

/*
 * As root: makes `folder` and the agent in it, writes a byte to news_fd when it answers at
 * KEEPER_CONTROL, and keeps it until the other end of life_fd closes. Then takes all away, in
 * reverse, and ends. The consumer may read programs in `symbols` for their names, one more folder;
 * NULL: none. The failure is on stderr, with the error output of the failed program.
 */
_Noreturn void keeper_run(const char *folder, const char *symbols, int life_fd, int news_fd);

#endif
