/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `--queue NAME` means: an order of the queue, with or without backfill and preemption.
 *
 * NAME is one of the presets below, any order of sched/order.h, or a shared object. Behind it may
 * stand, in any number, +none +easy +conservative (backfill) and +preempt or +keep (push running
 * jobs out where the order says so, or never): "las+keep", "qssf+none". An order by itself is
 * backfilled as EASY does and preempts if it is one that does. Without preemption (+keep) a preset
 * that lets whatever fits run is backfilled as EASY does; takt conservatively, 32 jobs deep.
 */
#ifndef TAKT_SIM_QUEUE_POLICY_H
#define TAKT_SIM_QUEUE_POLICY_H

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "sched/order.h"
#include "sched/sched.h"
#include "sim/sim_policies.h"

struct takt_queue_policy {
	char name[TAKT_SIM_POLICY_NAME];
	const struct takt_order *order; /* borrowed, static */
	struct takt_order_config config;
	enum takt_backfill backfill;
	uint32_t reserve_depth; /* conservative; 0 = the scheduler's default */
	bool preempt;
	bool perfect; /* it is told what run times will be, whatever the experiment estimates */
	struct takt_policy_object *object; /* owned; NULL for one of takt's orders */
};

struct takt_queue_policies {
	TAKT_VEC(struct takt_queue_policy) at;
};

/* *ret is overwritten; untouched on failure, whose message lists what there is. */
int takt_queue_policies(const char *list, struct takt_queue_policies *ret, struct takt_err *err);
void takt_queue_policies_fini(struct takt_queue_policies *policies);

/* "fifo       first come, first served\n...", for help. */
void takt_queue_policies_text(struct takt_str *out);

#endif
