/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an administrator sets of the scheduler, as plain data: it is read from a file, stands in the
 * first line of a saved decision and becomes the scheduler's configuration in one place, so that a
 * decision is made again as it was made.
 */
#ifndef TAKT_CODEC_SCHED_SETTINGS_H
#define TAKT_CODEC_SCHED_SETTINGS_H

#include "base/err.h"
#include "sched/sched.h"

struct takt_sched_settings {
	char order[16]; /* of takt_order_all; "" = priority */
	enum takt_backfill backfill;
	bool preempt;
	uint64_t guard_ns;	 /* 0 = none */
	uint64_t min_runtime_ns; /* of a job before it is pushed out */
	uint64_t half_life_ns;	 /* of tenants' usage; 0 = the default */
};

/* A scheduler's configuration with what it points at: its address must stay. */
struct takt_sched_setup {
	struct takt_sched_config sched;
	struct takt_order_config order;
	struct takt_tenants_config tenants;
};

/* Priorities go before every order. -TAKT_E_USAGE names what is wrong and what would be accepted;
 * *ret is then as it was. */
int takt_sched_setup_init(const struct takt_sched_settings *settings, struct takt_sched_setup *ret,
			  struct takt_err *err);

#endif
