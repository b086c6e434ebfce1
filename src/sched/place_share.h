/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares of a node in use, for the policies that look at nothing else, and the devices a task may
 * be put on.
 */
#ifndef TAKT_SCHED_PLACE_SHARE_H
#define TAKT_SCHED_PLACE_SHARE_H

#include "sched/cluster.h"

/* Parts of a node that would be held after a task, in permille; without a request those held now.
 * Devices that cannot be used count as held. 1000 of what the node does not have. */
uint32_t takt_share_of_devices(const struct takt_node *node, const struct takt_request *request);
uint32_t takt_share_of_cpu(const struct takt_node *node, const struct takt_request *request);
/* Of devices if the request asks for any, else of CPU. */
uint32_t takt_share_asked(const struct takt_node *node, const struct takt_request *request);

/* Devices that the task may be put on, out of those that choice offers where there is one; only
 * those without outside use, if they are enough. May name devices with too little left. */
uint64_t takt_share_devices(const struct takt_cluster *cluster, const struct takt_node *node,
			    const struct takt_request *request,
			    const struct takt_place_choice *choice);

/* A task on a part of one device that is not a MIG instance. */
static inline bool takt_share_is_fraction(const struct takt_request *request)
{
	return request->devices == 1 && request->milli != TAKT_REQUEST_WHOLE &&
	       !request->mig_profile;
}

/* For a fraction, the device with the most left, lowest index first; for all else 0. */
uint64_t takt_share_emptiest(const struct takt_node *node, const struct takt_request *request,
			     uint64_t candidates);

#endif
