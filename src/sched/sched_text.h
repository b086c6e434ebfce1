/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two files that write sentences about waiting jobs. */
#ifndef TAKT_SCHED_TEXT_H
#define TAKT_SCHED_TEXT_H

#include "sched/sched_plan.h"

/* The sentence, unless the reason is one that is told by the GPUs of one node. */
bool takt_text_by_nodes(const struct takt_plan_wait *wait, struct takt_str *text);

#endif
