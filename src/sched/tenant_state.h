/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the books of the tenants look like inside, for tenant*.c only.
 */
#ifndef TAKT_SCHED_TENANT_STATE_H
#define TAKT_SCHED_TENANT_STATE_H

#include "base/vec.h"
#include "sched/tenant.h"

struct takt_tenant_node {
	struct takt_tenant terms;
	struct takt_tenant_node *parent;  /* NULL for the root */
	struct takt_tenant_node *child;	  /* the first one; by rising id */
	struct takt_tenant_node *sibling; /* the next one */
	uint32_t depth;			  /* 0 for the root */
	/* Of jobs directly under it. */
	uint64_t own_has_milli;
	uint64_t own_want_milli;
	/* All with what is below it. */
	uint64_t has_milli;
	uint64_t want_milli;
	uint64_t usage; /* as of booked_ns */
	uint64_t booked_ns;
	/* As of the last division. */
	uint64_t deserved_milli;
	uint32_t rank;
};

struct takt_tenants {
	struct takt_tenants_config config;
	struct takt_tenant_node root;
	TAKT_VEC(struct takt_tenant_node *) nodes; /* owned, by id; the root is not among them */
};

/* NULL when there is none; the root has id 0. */
struct takt_tenant_node *takt_tenants_node(const struct takt_tenants *tenants, uint32_t id);

uint64_t takt_tenants_node_usage(const struct takt_tenants *tenants,
				 const struct takt_tenant_node *node, uint64_t now_ns);

#endif
