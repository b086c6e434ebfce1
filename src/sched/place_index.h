/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the best node without looking at all of them.
 *
 * For each kind of request that was asked for there is a view: the level of every node where it
 * fits, by the placement policy, in buckets from which the best is read off at once
 * (place_buckets.h). A node that changes (a task comes or goes, health, labels) is entered in a
 * log, and its entry before is crossed out; when a kind is asked for, it reads the log from where
 * it was the last time, so each node that has changed is looked at again, once however often it
 * changed. So a decision costs what has changed, not what there is. There are three logs, so that
 * kinds that need whole devices do not look at nodes that had none before and have none after; and
 * most of the nodes that are looked at are dismissed at a glance, at sixteen bytes that say they
 * have too little.
 *
 * Kinds that differ in memory alone share levels where the policy does not look at the memory asked
 * for: which of the best have that memory is seen when one is picked.
 *
 * What a view shows is a function of the present state of the nodes alone, so the choice is the one
 * that looking at all nodes would make, whatever happened before (test: the two are compared on
 * every decision).
 *
 * A kind that fits nowhere keeps fitting nowhere until something is freed: repeated rejections are
 * answered without reading the log.
 *
 * Beside levels a view has, each only once asked for and each with its own place in the log: why
 * the kind does not fit (nodes counted by cause), and how many of it would fit (by domain).
 *
 * Views beyond the memory allowed are dropped, the least recently asked first, and made anew when
 * they are asked for again. Without memory for a view all nodes are looked at: slower, but the
 * same.
 */
#ifndef TAKT_SCHED_PLACE_INDEX_H
#define TAKT_SCHED_PLACE_INDEX_H

#include "sched/cluster_state.h"
#include "sched/place_buckets.h"

struct takt_place_levels {
	struct takt_buckets buckets; /* by position */
	uint16_t *level;	     /* owned: by node; NULL until first asked */
	uint32_t level_cap;
	uint64_t seen; /* log entries that are in it */
	uint64_t order_version;
	uint64_t epoch;
	uint64_t
		empty_at; /* index.freed when it fitted nowhere; UINT64_MAX = it fits, or unknown */
	bool refuses;	  /* the policy refused a node: may change with any change of a node */
};

struct takt_place_view {
	uint64_t asked; /* index.clock when it was asked last */
	size_t bytes;
	struct takt_place_levels levels[TAKT_PLACE_MAX_PHASES];

	uint32_t *causes; /* owned, by node; NULL until first asked */
	uint32_t causes_cap;
	uint64_t causes_seen;
	uint64_t causes_epoch;
	uint32_t causes_phase;
	struct takt_fit_counts counts;

	uint32_t *room; /* owned, by node; NULL until first asked */
	uint32_t room_cap;
	uint64_t room_seen;
	uint64_t *domain_room; /* owned, by domain; [0] = the cluster */
	uint32_t domain_cap;
};

/* The node has changed. frees: more may fit on it than before. */
void takt_index_note(struct takt_cluster *cluster, struct takt_node *node, bool frees);
/* Room for so many nodes. */
int takt_index_reserve(struct takt_cluster *cluster, size_t nodes);
void takt_index_drop_views(struct takt_cluster *cluster);
void takt_index_fini(struct takt_cluster *cluster);

/* Brought up to date, the levels of the present phase; NULL = no memory. */
struct takt_place_levels *takt_index_levels(struct takt_cluster *cluster, uint32_t kind);
struct takt_place_view *takt_index_causes(struct takt_cluster *cluster, uint32_t kind);
struct takt_place_view *takt_index_room(struct takt_cluster *cluster, uint32_t kind);

#endif
