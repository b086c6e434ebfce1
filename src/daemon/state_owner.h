/* SPDX-License-Identifier: Apache-2.0 */
/* Giving a takt's files from root, which has served so far, to the account that is to. */
#ifndef TAKT_DAEMON_STATE_OWNER_H
#define TAKT_DAEMON_STATE_OWNER_H

#include "base/err.h"
#include "base/sys.h"
#include "config/config.h"

/*
 * Makes state_dir, and all that root has in it, the account's, while no takt serves; of attempts at
 * jobs that run the shim goes on, and the account may read them. Makes it where it is not there;
 * does nothing where it is the account's already. As root. -ENOENT: no such account.
 */
int takt_state_give(const struct takt_sys *sys, const struct takt_config *config,
		    const char *account, struct takt_err *err);

/* The journal of clocks, which earlier versions kept in state_dir, goes to clocks_dir, which is
 * there; while no actuator has it. As root, to whom state_dir belongs still. */
int takt_clocks_move(const struct takt_sys *sys, const struct takt_config *config,
		     struct takt_err *err);

#endif
