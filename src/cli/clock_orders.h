/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators say with takt clock: cap, apply, restore; and what they would do by hand
 * where takt may not. */
#ifndef TAKT_CLI_CLOCK_ORDERS_H
#define TAKT_CLI_CLOCK_ORDERS_H

#include "cli/verb.h"

/* --watts or --clear on the GPUs of the mask. */
int takt_clock_cap_verb(struct takt_cli *cli, uint64_t gpu_mask, struct takt_clock_view *view,
			struct takt_err *err);

/* --file into *ret; messages name the file and the line. */
int takt_clock_policy_read(const struct takt_cli *cli, struct takt_clock_policy *ret,
			   struct takt_err *err);

/* What is declared of each GPU of the view, which is as it was and is then as it is. Prints what
 * changes; with --dry-run nothing does. */
int takt_clock_apply_verb(struct takt_cli *cli, const struct takt_clock_policy *policy,
			  struct takt_clock_view *view, struct takt_err *err);

/* Takes that back. Returns the exit status: not 0 where a GPU does not stand at its baseline yet.
 */
int takt_clock_restore_verb(struct takt_cli *cli, struct takt_clock_view *view,
			    struct takt_err *err);

/* Adds to an error for want of permission, or of an actuator, what an administrator would run:
 * nvidia-smi with `words` on those GPUs. */
void takt_clock_advise(const struct takt_clock_view *view, uint64_t gpu_mask, const char *words,
		       struct takt_err *err);

#endif
