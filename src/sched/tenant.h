/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants: who may have how much of the cluster, who is owed most, and from whom may be taken back.
 *
 * A tree. The root (id 0, always there) owns the whole capacity; jobs run under any tenant but the
 * root, and what a tenant has is counted for all its ancestors too. Amounts are GPU-milli (1000 =
 * one GPU). Instants are arguments and only a change of what a tenant has moves its books, so that
 * the state is a function of the changes and asking changes nothing.
 *
 * Decayed usage. What a tenant had counts half after every half_life. With R running since the last
 * change at t0 and U booked then, after d = t - t0:
 *
 *	usage(t) = U x 2^(-d/H)  +  R x tau x (1 - 2^(-d/H)),	tau = H / ln 2
 *
 * that is the integral of R with decaying weight, in GPU-milli x milliseconds. 2^(-x) comes from a
 * table of 64 steps a half-life with straight lines between (error below 2e-5, never rising), so
 * the usage of a tenant that runs nothing never rises and that of one that runs R never passes
 * max(U, R x tau).
 *
 * Deserved share, by water-filling as KAI-Scheduler divides among its queues: from the root down,
 * the amount of a parent is given to its children in two rounds, each until all are satisfied or
 * nothing is left, no child ever getting more than it asks for (what it has and what waits):
 *
 *	1. up to the smaller of request and quota, weighted by quota;
 *	2. of the rest up to the request, weighted by `weight`; larger `priority` is served before
 *	   smaller. Who may not borrow stays at its quota.
 *
 * With usage_k > 0 the weight of round 2 is max(w + k (w - u), 0), where w and u are the child's
 * parts of all siblings' weights and decayed usages (time-based fair share); those whom it leaves
 * no weight come after the others, by their plain weights.
 *
 * Each round is exact: what is given sums to the smaller of amount and (capped) requests,
 *remainders being spread in order of id.
 *
 * Rank. Among siblings the one with the smallest usage / weight goes first (then the lower id);
 * walked depth first, this numbers all tenants: the order of fair_share.
 *
 * Quota. A request is refused at the first ancestor whose `limit` it would pass, or, from one that
 * may not borrow, whose quota it would pass.
 *
 * Reclaim. Of two tenants, compare the two branches below their nearest common ancestor. A waiting
 * job may take from the other branch if that one has more than it deserves, and
 *	- the job's branch stays, with the job, within what it deserves; or
 *	- with the job it still has no larger part of what it deserves than the other one without
 *the victim (GPUs do not divide as shares do). What has been taken so cannot be taken back the same
 *way: neither rule holds with the roles exchanged.
 */
#ifndef TAKT_SCHED_TENANT_H
#define TAKT_SCHED_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_TENANT_ROOT = 0,
	TAKT_TENANT_MAX_DEPTH = 8, /* levels below the root */
};

struct takt_tenant {
	uint32_t id;	      /* > 0, unique */
	uint32_t parent;      /* TAKT_TENANT_ROOT or a tenant that is there */
	uint32_t weight;      /* 1..1000000 */
	int32_t priority;     /* of what is over quota: larger is served first */
	uint64_t quota_milli; /* deserved before anything is shared */
	uint64_t limit_milli; /* never more than this; 0 = no limit */
	bool may_borrow;      /* may have more than its quota while others leave it */
};

struct takt_tenants_config {
	uint32_t max_tenants;	/* 0 = 10,000 */
	uint64_t half_life_ns;	/* of usage; 0 = 7 days */
	uint32_t usage_k_milli; /* k of time-based fair share in thousandths; 0 = off, up to 10,000
				 */
};

struct takt_tenants;

/* Heap object; free takes NULL. -EINVAL names the field. */
int takt_tenants_new(const struct takt_tenants_config *config, struct takt_tenants **ret,
		     struct takt_err *err);
void takt_tenants_free(struct takt_tenants *tenants);

/* A new tenant, or other terms for one that is there (its parent stays). -EINVAL names the field,
 * -TAKT_E_LIMIT beyond max_tenants, -ENOMEM: nothing changed. */
int takt_tenants_set(struct takt_tenants *tenants, const struct takt_tenant *tenant,
		     struct takt_err *err);
/* -ENOENT, or -EBUSY while it has children, runs something or has something waiting. */
int takt_tenants_remove(struct takt_tenants *tenants, uint32_t id, struct takt_err *err);

size_t takt_tenants_count(const struct takt_tenants *tenants); /* the root not counted */
/* By rising id; borrowed until the next set or remove. i < count. */
const struct takt_tenant *takt_tenants_at(const struct takt_tenants *tenants, size_t i);
const struct takt_tenant *takt_tenants_find(const struct takt_tenants *tenants, uint32_t id);

/* A job of this tenant takes or gives back GPUs at now_ns. Instants of one tenant never go back (an
 * earlier one counts as the last). -ENOENT; -EINVAL when it gives back more than it has. */
int takt_tenants_take(struct takt_tenants *tenants, uint32_t id, uint64_t milli, uint64_t now_ns);
int takt_tenants_give(struct takt_tenants *tenants, uint32_t id, uint64_t milli, uint64_t now_ns);
/* What waits under it becomes more or less by `milli`: only requests count for shares. */
int takt_tenants_want(struct takt_tenants *tenants, uint32_t id, int64_t milli);

/* What it has now, with all below it; 0 for one that is not there. */
uint64_t takt_tenants_has_milli(const struct takt_tenants *tenants, uint32_t id);
/* Decayed usage in GPU-milli x ms, with all below it. */
uint64_t takt_tenants_usage(const struct takt_tenants *tenants, uint32_t id, uint64_t now_ns);

/* Books from a snapshot: sets the usage of this tenant (its ancestors not touched) as of now. */
int takt_tenants_restore(struct takt_tenants *tenants, uint32_t id, uint64_t usage,
			 uint64_t now_ns);

/* The books as they are kept: usage as of *ret_booked_ns, so that restoring them gives the same
 * state. 0 and 0 for one that is not there. */
void takt_tenants_books(const struct takt_tenants *tenants, uint32_t id, uint64_t *ret_usage,
			uint64_t *ret_booked_ns);

/* Divides the capacity and numbers the tenants as of now. What the three questions below answer is
 * as of the last call. -ENOMEM leaves all as it was. */
int takt_tenants_divide(struct takt_tenants *tenants, uint64_t capacity_milli, uint64_t now_ns);
uint64_t takt_tenants_deserved_milli(const struct takt_tenants *tenants, uint32_t id);
/* 0 is served first; a tenant that is not there comes last. */
uint32_t takt_tenants_rank(const struct takt_tenants *tenants, uint32_t id);
/* May a waiting job of `id` for `milli` push out one of `victim` that has `victim_milli`? */
bool takt_tenants_may_reclaim(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
			      uint32_t victim, uint64_t victim_milli);

/* The same for several victims, one taken after the other, all for the one job. */
struct takt_tenant_part {
	uint32_t tenant;
	uint64_t milli;
};
bool takt_tenants_may_reclaim_all(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
				  const struct takt_tenant_part *victims, size_t count);

enum takt_quota {
	TAKT_QUOTA_OK,
	TAKT_QUOTA_BORROWS, /* fits, above the quota of at least one on the way up */
	TAKT_QUOTA_LIMIT,   /* would pass a limit */
	TAKT_QUOTA_FULL,    /* would pass the quota of one that may not borrow */
	TAKT_QUOTA_UNKNOWN, /* no such tenant */
	TAKT_QUOTA_COUNT
};
const char *takt_quota_name(enum takt_quota quota); /* "ok", "borrows", ...; "?" */

/* May a job of `id` have `milli` more now? *ret_at (may be NULL) is the tenant that decided: whose
 * limit or quota it is, or the first that borrows; untouched for OK and UNKNOWN. */
enum takt_quota takt_tenants_check(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
				   uint32_t *ret_at);

/* One round of the division, for itself: fills given[] with at most `amount`, no more than cap[i]
 * each, in proportion to weight[i]; entries of weight 0 get nothing. Returns what is left: 0 unless
 * all with a weight have their cap. `n` may be 0. */
uint64_t takt_water_fill(uint64_t amount, const uint64_t *weight, const uint64_t *cap, size_t n,
			 uint64_t *given);

/* 2^(-span/half_life) in units of 2^-32; half_life > 0. Falls from 2^32 to 0, never rises. */
uint64_t takt_decay(uint64_t span_ns, uint64_t half_life_ns);

#endif
