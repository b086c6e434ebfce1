/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue orders to compare with, for simulations; the daemon does not link them.
 */
#ifndef TAKT_SCHED_COMPARE_COMPARE_ORDER_H
#define TAKT_SCHED_COMPARE_COMPARE_ORDER_H

#include "sched/order.h"

extern const struct takt_order takt_compare_srpt;

#endif
