/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies from shared objects (include/takt/policy.h), as the scheduler's own kinds of policy.
 */
#ifndef TAKT_SIM_POLICY_OBJECT_H
#define TAKT_SIM_POLICY_OBJECT_H

#include "base/err.h"
#include "sched/order.h"
#include "sched/place.h"

struct takt_policy_object;

/* Opens it. -TAKT_E_UNSUPPORTED with the reason when it is none of ours. */
int takt_policy_object_open(const char *path, struct takt_policy_object **ret,
			    struct takt_err *err);
/* After everything that was made of it is gone; NULL is fine. */
void takt_policy_object_close(struct takt_policy_object *object);

/* The policies that it has, or NULL; borrowed until close. */
const struct takt_placement *takt_policy_object_placement(const struct takt_policy_object *object);
const struct takt_order *takt_policy_object_order(const struct takt_policy_object *object);
/* For takt_order_config.own of that order. */
const void *takt_policy_object_order_own(const struct takt_policy_object *object);

#endif
