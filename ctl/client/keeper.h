/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * keeper.h: the supervisor: the process that starts an agent and removes it. It loads the BPF
 * programs, starts the broker's listener, and starts the consumer as a separate user. It reads
 * nothing from them except their exit status.
 */
#ifndef TROCAR_CTL_CLIENT_KEEPER_H
#define TROCAR_CTL_CLIENT_KEEPER_H

#define KEEPER_FOLDER	    "/run/trocar-profile.%d" /* only root makes names there; by pid */
#define KEEPER_FOLDER_BYTES 48
#define KEEPER_CONTROL	    "control/control.sock"
#define KEEPER_PATH_BYTES   (KEEPER_FOLDER_BYTES + 32)

/*
 * Runs as root. Makes `folder` and the agent in it, writes a byte to news_fd once the agent answers
 * at KEEPER_CONTROL, and keeps the agent until the other end of life_fd closes. Then removes
 * everything in reverse order, and exits. The consumer may also read the folder `symbols` for names
 * of functions; NULL: no such folder. Prints failures on stderr, with the error output of the
 * failed program.
 */
_Noreturn void keeper_run(const char *folder, const char *symbols, int life_fd, int news_fd);

#endif
