/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster: what there is, what is left of it, and where the next task goes.
 *
 * Nodes with CPU, memory and accelerators (of any kind and model, mixed within a node), their
 * health and outside use, fractions and MIG instances, the links inside and the topology outside.
 * Equal requests are one kind, interned once; everything that is kept for speed is kept per kind.
 *
 *	takt_cluster_kind(cluster, &request, &kind, err);
 *	mark = takt_cluster_mark(cluster);
 *	if (takt_cluster_pick(cluster, kind, NULL, &slot, NULL))
 *		takt_cluster_take(cluster, kind, &slot);
 *	else
 *		takt_cluster_explain(cluster, kind, NULL, &counts);
 *	takt_cluster_commit(cluster, mark);   or rollback
 *
 * Pure: no clock, file, environment or global; the same calls give the same answers everywhere.
 * Names are interned into small numbers; everything that is borrowed is borrowed for the call.
 * Functions that allocate return -ENOMEM and then have changed nothing that a caller can see.
 *
 * Choice among nodes: the policy's (place.h); ties go to the lowest rank. It is found without
 * looking at all nodes (place_index.h) and is always the one that looking at all would find
 * (takt_cluster_pick_naive, compared in tests on every decision).
 *
 * Choice inside a node, where the policy leaves it open: whole devices by the best-linked set
 * (takt_best_set; the lowest indices without a link class), a fraction on the device with the least
 * left, a MIG instance where it takes the fewest other places away; then the lowest index.
 */
#ifndef TAKT_SCHED_CLUSTER_H
#define TAKT_SCHED_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sched/cluster_node.h"
#include "sched/place.h"
#include "sched/request.h"

enum {
	TAKT_CLUSTER_MAX_MODELS = 64,
	TAKT_CLUSTER_MAX_LEVELS = 8,
	TAKT_CLUSTER_MAX_MIG = 8, /* memory slices of a device, and places of an instance */
	TAKT_CLUSTER_MAX_MIG_PROFILES = 63,
	TAKT_CLUSTER_MAX_LINK_CLASSES = 4096,
	TAKT_CLUSTER_MAX_SELECTORS = 4096,
	TAKT_CLUSTER_MAX_SPEEDS = 4096,
	TAKT_CLUSTER_MAX_NODES = 1 << 20,
	TAKT_CLUSTER_MAX_KINDS = 1 << 20,
	TAKT_CLUSTER_MAX_DOMAINS = 1 << 20,
	TAKT_CLUSTER_MAX_LABELS = 256,	 /* of one node, and taints */
	TAKT_CLUSTER_MAX_ROOM = 1 << 20, /* answer for tasks that ask for nothing */
};

struct takt_cluster_config {
	const struct takt_placement
		*placement;		       /* NULL = takt_placements[0]; outlives the cluster */
	const struct takt_workload *workload;  /* NULL = nothing is known */
	const struct takt_place_param *params; /* of the policy */
	size_t param_count;
	uint64_t seed; /* only for policies that draw */
	/* Memory for the index; least used kinds beyond it are computed anew. 0 = 160 MiB. */
	size_t max_index_bytes;
};

int takt_cluster_new(const struct takt_cluster_config *config, struct takt_cluster **ret,
		     struct takt_err *err);
void takt_cluster_free(struct takt_cluster *cluster); /* takes NULL */

/* Another policy, workload or parameters; tasks stay where they are. On failure all stays. */
int takt_cluster_set_placement(struct takt_cluster *cluster,
			       const struct takt_cluster_config *config, struct takt_err *err);

/*
 * Names.
 */

/* How an accelerator may be cut. An instance holds `size` memory slices and `slices` of computing;
 * it starts at a multiple of its size, and where its computing still fits the seven there are. */
struct takt_mig_profile {
	const char *name; /* "1g.10gb"; the same name is the same profile on every model */
	uint8_t size;	  /* 1, 2, 4, 8 */
	uint8_t slices;	  /* 1..7 */
	uint8_t max;	  /* of it on one device; 0 = as many as fit */
	uint32_t mem_mib; /* 0 = not known */
};

struct takt_model_desc {
	const char *name;	   /* "H100-80GB"; unique */
	const char *category;	   /* "gpu", "fpga", ...; NULL = "gpu" */
	uint32_t mem_mib;	   /* of each; 0 = not known, then no request for memory fits */
	uint32_t idle_mw, busy_mw; /* 0 = not known */
	const struct takt_mig_profile *mig;
	size_t mig_count;
};

/* A new model; of a name that is known, only with nothing else said or the same. Bit *ret of
 * request.model_mask. */
int takt_cluster_model(struct takt_cluster *cluster, const struct takt_model_desc *desc,
		       uint32_t *ret, struct takt_err *err);
int takt_cluster_model_find(const struct takt_cluster *cluster, const char *name); /* or -ENOENT */
size_t takt_cluster_model_count(const struct takt_cluster *cluster);
const char *takt_cluster_model_name(const struct takt_cluster *cluster, uint32_t model);
const char *takt_cluster_model_category(const struct takt_cluster *cluster, uint32_t model);

/* request.mig_profile of a name that a model has, or -ENOENT. */
int takt_cluster_mig_find(const struct takt_cluster *cluster, const char *name);
/* Memory slices of such an instance on accelerators of that model; 0 = it has none. */
uint32_t takt_cluster_mig_size(const struct takt_cluster *cluster, uint32_t model, uint8_t profile);

/* How `devices` accelerators of a node are linked: pair scores (devices x devices, symmetric, as
 * takt_link_score() gives them) and the NUMA node of each (NULL = all on one). Equal ones are one
 * class. Class 0 is there already: nothing known. */
int takt_cluster_link_class(struct takt_cluster *cluster, uint32_t devices,
			    const int32_t *pair_score, const uint8_t *numa, uint32_t *ret,
			    struct takt_err *err);

/* How fast a task runs on each model, in permille of a reference (1000; 0 = cannot run there or not
 * worth it): models beyond `count` have 0. Equal vectors are one. Vector 0: 1000 on every model. */
int takt_cluster_speeds(struct takt_cluster *cluster, const uint16_t *permille, size_t count,
			uint32_t *ret, struct takt_err *err);
uint32_t takt_cluster_speed(const struct takt_cluster *cluster, uint32_t speeds, uint32_t model);

/* The pair scores of a class, borrowed; NULL of class 0. */
const int32_t *takt_cluster_pair_scores(const struct takt_cluster *cluster, uint32_t link_class);

/* Levels of the topology from the outside in: "zone", "rack", "leaf", "nvlink". *ret counts from 1.
 * A known name gives its number. */
int takt_cluster_level(struct takt_cluster *cluster, const char *name, uint32_t *ret,
		       struct takt_err *err);
const char *takt_cluster_level_name(const struct takt_cluster *cluster, uint32_t level);
int takt_cluster_level_find(const struct takt_cluster *cluster, const char *name); /* or -ENOENT */
size_t takt_cluster_level_count(const struct takt_cluster *cluster);

/* A domain of a level inside `parent` (0 = the whole cluster, else of a level further out). Same
 * level, parent and name: same domain. */
int takt_cluster_domain(struct takt_cluster *cluster, uint32_t level, uint32_t parent,
			const char *name, uint32_t *ret, struct takt_err *err);
size_t takt_cluster_domain_count(const struct takt_cluster *cluster); /* ids 1..count */
const char *takt_cluster_domain_name(const struct takt_cluster *cluster, uint32_t domain);
uint32_t takt_cluster_domain_level(const struct takt_cluster *cluster, uint32_t domain);
uint32_t takt_cluster_domain_parent(const struct takt_cluster *cluster, uint32_t domain);
/* The domain of that level in which a node is; 0 = none. */
uint32_t takt_cluster_node_domain(const struct takt_cluster *cluster, uint32_t node,
				  uint32_t level);
/* Nodes in a domain in order of rank, borrowed until a node is added or removed. */
int takt_cluster_domain_nodes(struct takt_cluster *cluster, uint32_t domain, const uint32_t **ret,
			      size_t *ret_count);

/* Requirements on labels and taints, all of which must hold. Equal sets are one selector.
 * A node with a taint that no TOLERATES names takes no task; so does selector 0 there. */
enum takt_requirement_op {
	TAKT_REQUIREMENT_IN,	     /* the label is there with one of the values */
	TAKT_REQUIREMENT_NOT_IN,     /* it is not: absent, or another value */
	TAKT_REQUIREMENT_EXISTS,     /* it is there */
	TAKT_REQUIREMENT_NOT_EXISTS, /* it is not there */
	TAKT_REQUIREMENT_TOLERATES, /* a taint of the key, with one of the values if any is given */
	TAKT_REQUIREMENT_OP_COUNT
};
struct takt_requirement {
	enum takt_requirement_op op;
	const char *key;
	const char *const *values;
	size_t value_count;
};
int takt_cluster_selector(struct takt_cluster *cluster, const struct takt_requirement *requirements,
			  size_t count, uint32_t *ret, struct takt_err *err);

/*
 * Nodes.
 */

struct takt_label {
	const char *key;
	const char *value; /* NULL = "" */
};

/* Whether an accelerator may be cut into MIG instances. */
enum takt_mig_use {
	TAKT_MIG_OFF,	/* no */
	TAKT_MIG_FREE,	/* as tasks ask while nothing else is held there; whole again when empty */
	TAKT_MIG_FIXED, /* it is cut as `layout` says and stays so; no whole tasks, no fractions */
};

struct takt_device_desc {
	uint32_t model;
	uint32_t mem_mib; /* 0 = the model's */
	enum takt_mig_use mig;
	uint8_t layout[TAKT_CLUSTER_MAX_MIG]; /* FIXED: profile starting at each slice; 0 = none */
};

struct takt_node_desc {
	const char *name; /* NULL = none; need not be unique */
	int32_t cpu_milli;
	int64_t mem_mib;
	uint32_t device_count;
	uint32_t model;			       /* of all devices ... */
	const struct takt_device_desc *device; /* ... unless each is described here; else NULL */
	uint32_t link_class;
	uint32_t domain; /* innermost; 0 = none */
	bool rank_valid;
	uint32_t rank; /* unique; else one more than the highest so far */
	const struct takt_label *labels;
	size_t label_count;
	const struct takt_label *taints;
	size_t taint_count;
	int64_t price_micro_per_hour; /* of the currency used; 0 = not known */
	/* CPU power as PWR has it: each package of cpu_package_milli draws idle or busy. 0 = not
	 * known. */
	int32_t cpu_package_milli;
	uint32_t cpu_idle_mw, cpu_busy_mw;
};

int takt_cluster_add_node(struct takt_cluster *cluster, const struct takt_node_desc *desc,
			  uint32_t *ret, struct takt_err *err);
/* No new tasks there; what is held may still be given back. Its number is not used again. */
int takt_cluster_remove_node(struct takt_cluster *cluster, uint32_t node, struct takt_err *err);

/* Masks of devices, and the whole node. Tasks stay; telling what is known changes nothing.
 * -ENOENT for an unknown node, -EINVAL for a device that is not there. */
int takt_cluster_set_unhealthy(struct takt_cluster *cluster, uint32_t node, uint64_t mask);
int takt_cluster_set_outside(struct takt_cluster *cluster, uint32_t node, uint64_t mask);
int takt_cluster_set_draining(struct takt_cluster *cluster, uint32_t node, uint64_t mask);
int takt_cluster_set_drained(struct takt_cluster *cluster, uint32_t node, bool drained);
/* How a FIXED device is cut from now on. -EINVAL: it is not FIXED, a profile cannot start there, or
 * an instance that is held is none of the layout. */
int takt_cluster_set_layout(struct takt_cluster *cluster, uint32_t node, uint32_t device,
			    const uint8_t layout[TAKT_CLUSTER_MAX_MIG], struct takt_err *err);
/* Replaces all labels and taints. */
int takt_cluster_set_labels(struct takt_cluster *cluster, uint32_t node,
			    const struct takt_label *labels, size_t label_count,
			    const struct takt_label *taints, size_t taint_count,
			    struct takt_err *err);

size_t takt_cluster_node_count(const struct takt_cluster *cluster); /* removed ones, too */
/* Borrowed until a node is added; NULL = no such node. */
const struct takt_node *takt_cluster_node(const struct takt_cluster *cluster, uint32_t node);
const char *takt_cluster_node_name(const struct takt_cluster *cluster, uint32_t node);
int64_t takt_cluster_node_price(const struct takt_cluster *cluster, uint32_t node);

/* Over nodes that are not removed; kept up to date, so reading is free. */
struct takt_cluster_totals {
	uint64_t nodes, tasks;
	int64_t cpu_milli, cpu_held_milli;
	int64_t mem_mib, mem_held_mib;
	uint64_t devices;   /* of any model, whatever their health */
	uint64_t usable;    /* of these healthy, clean, without outside use */
	int64_t held_milli; /* MIG instances count by their share of seven slices */
	struct takt_model_totals {
		uint64_t devices;
		int64_t held_milli;
	} model[TAKT_CLUSTER_MAX_MODELS];
	struct takt_width_totals {
		uint32_t nodes;	 /* with so many devices, any models */
		uint32_t intact; /* of these all devices whole: TAKT_NODE_INTACT */
	} width[TAKT_REQUEST_MAX_DEVICES + 1];
};
const struct takt_cluster_totals *takt_cluster_totals(const struct takt_cluster *cluster);

/* What a node draws by its power model; -ENOENT when a part of it is not known. */
int takt_cluster_node_power_mw(const struct takt_cluster *cluster, uint32_t node, uint64_t *ret);
/* The same if a task came or one went (sign +1 or -1), for policies. */
int takt_cluster_node_power_after_mw(const struct takt_cluster *cluster, uint32_t node,
				     const struct takt_request *request, uint64_t dev_mask,
				     uint64_t *ret);

/*
 * Tasks.
 */

/* The kind of a request, interned. -EINVAL names what is wrong in it. Devices of a request that no
 * node could hold are no error. */
int takt_cluster_kind(struct takt_cluster *cluster, const struct takt_request *request,
		      uint32_t *ret, struct takt_err *err);
const struct takt_request *takt_cluster_request(const struct takt_cluster *cluster, uint32_t kind);
size_t takt_cluster_kind_count(const struct takt_cluster *cluster);

/* Which nodes come into question; NULL where a scope is taken means all. */
struct takt_scope {
	uint32_t domain;	   /* 0 = all */
	const uint64_t *leave_out; /* bit i: not node i; NULL = none */
	size_t leave_out_words;	   /* of 64 nodes each; nodes beyond are not left out */
	const uint32_t *only;	   /* these nodes only; NULL = any */
	size_t only_count;
	const uint64_t *keep_off; /* by node: devices that may not be used; NULL = none */
	size_t keep_off_count;	  /* nodes beyond have none */
};
/* Devices of the node that the scope keeps a task off. */
uint64_t takt_scope_keep_off(const struct takt_scope *scope, uint32_t node);

/* The best slot for one task by the policy; changes nothing. False if it fits nowhere in the scope,
 * or memory is short. ret_level may be NULL (for scan policies it is 0). */
bool takt_cluster_pick(struct takt_cluster *cluster, uint32_t kind, const struct takt_scope *scope,
		       struct takt_slot *ret, uint32_t *ret_level);
/* The same by looking at every node: the definition. */
bool takt_cluster_pick_naive(struct takt_cluster *cluster, uint32_t kind,
			     const struct takt_scope *scope, struct takt_slot *ret,
			     uint32_t *ret_level);

/* Is it free there? 0, or -EINVAL (no such node, device, MIG place; wrong number of devices),
 * -TAKT_E_CONFLICT (held, too little left). Health, outside use, selector and model are the
 * picker's business and not looked at: facts from an engine are taken as they are. */
int takt_cluster_can_take(const struct takt_cluster *cluster, uint32_t kind,
			  const struct takt_slot *slot);
/* Takes it, with the same answers, or -ENOMEM. */
int takt_cluster_take(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot);
/* Gives back what take took. -TAKT_E_CONFLICT if the node does not hold it. */
int takt_cluster_give(struct takt_cluster *cluster, uint32_t kind, const struct takt_slot *slot);

/* Changes of tasks since a mark can be undone (last first) or kept. Marks nest: end the innermost
 * first, each exactly once. Nodes must not be changed while a mark is open. */
uint64_t takt_cluster_mark(struct takt_cluster *cluster);
void takt_cluster_rollback(struct takt_cluster *cluster, uint64_t mark);
void takt_cluster_commit(struct takt_cluster *cluster, uint64_t mark);

/* A number that changes whenever anything does that a pick could depend on. */
uint64_t takt_cluster_version(const struct takt_cluster *cluster);
/* Changes only when nodes come or go, or their health, outside use or labels change. */
uint64_t takt_cluster_shape_version(const struct takt_cluster *cluster);

/* How many tasks of the kind fit on the node now, in a whole domain (0 = the cluster), each placed
 * by the choice inside a node. Kept per kind once asked, and brought up to date by changes. */
uint32_t takt_cluster_room(struct takt_cluster *cluster, uint32_t kind, uint32_t node);
uint64_t takt_cluster_domain_room(struct takt_cluster *cluster, uint32_t kind, uint32_t domain);
/* At least so many would fit on the node were it empty; 0 where that is not told at a glance (MIG,
 * memory of devices, NUMA, nodes with several models). */
uint32_t takt_cluster_room_when_empty(const struct takt_cluster *cluster, uint32_t kind,
				      uint32_t node);
uint64_t takt_cluster_domain_room_naive(struct takt_cluster *cluster, uint32_t kind,
					uint32_t domain);
/* The domain of a level with the least room that is enough for so many, the lowest number of equal
 * ones; level 0 is the whole cluster, domain 0. False if none is enough. */
bool takt_cluster_tightest(struct takt_cluster *cluster, uint32_t kind, uint32_t level,
			   uint64_t tasks, uint32_t *ret_domain);
/* Computes what a pick of this kind needs, so that the first one is as fast as the next. */
void takt_cluster_warm(struct takt_cluster *cluster, uint32_t kind);

/* Devices of a node that a task could use each by itself: right model, usable, enough left. */
uint64_t takt_cluster_candidates(const struct takt_cluster *cluster, const struct takt_node *node,
				 const struct takt_request *request);

/*
 * Why it does not fit.
 */

/* In the order in which the first one is named: what nothing can change before what waiting can. */
enum takt_fit {
	TAKT_FIT_SCOPE,	   /* outside the domain, or left out */
	TAKT_FIT_SELECTOR, /* labels or taints */
	TAKT_FIT_MODEL,	   /* no accelerator of an allowed model */
	TAKT_FIT_COUNT_OF, /* too few of them, were all free and healthy */
	TAKT_FIT_SIZE,	   /* too little CPU or memory, or accelerator memory, were it empty */
	TAKT_FIT_DRAINED,  /* node takes no new tasks */
	TAKT_FIT_HEALTH,   /* too few healthy ones */
	TAKT_FIT_OUTSIDE,  /* too few without outside use */
	TAKT_FIT_DEVICES,  /* too few wholly free */
	TAKT_FIT_FRACTION, /* none has that fraction left */
	TAKT_FIT_DEV_MEM,  /* none has that much memory left */
	TAKT_FIT_MIG,	   /* no place for such an instance */
	TAKT_FIT_NUMA,	   /* free ones, but not on one NUMA node */
	TAKT_FIT_CPU,
	TAKT_FIT_MEM,
	TAKT_FIT_PER_NODE, /* the limit of its kind a node */
	TAKT_FIT_POLICY,   /* it would fit, but the placement policy refuses for now */
	TAKT_FIT_CAUSES
};
const char *takt_fit_name(enum takt_fit cause); /* "model", "cpu", ... */

struct takt_fit_counts {
	uint32_t nodes; /* that are there */
	uint32_t fit;
	uint32_t first[TAKT_FIT_CAUSES]; /* nodes by the first cause; adds up to nodes - fit */
	uint32_t all[TAKT_FIT_CAUSES];	 /* nodes by each cause that applies */
};
/* Without a scope kept from call to call and brought up to date by changes. */
void takt_cluster_explain(struct takt_cluster *cluster, uint32_t kind,
			  const struct takt_scope *scope, struct takt_fit_counts *ret);
/* The same by looking at every node: the definition. */
void takt_cluster_explain_naive(struct takt_cluster *cluster, uint32_t kind,
				const struct takt_scope *scope, struct takt_fit_counts *ret);
/* Bit i: cause i keeps it from that node; 0 = it fits. */
uint32_t takt_cluster_why_not(struct takt_cluster *cluster, uint32_t kind, uint32_t node,
			      const struct takt_scope *scope);

/* Bytes of memory that the cluster holds, the index among them. */
struct takt_cluster_bytes {
	size_t nodes;
	size_t index;
	size_t other;
};
void takt_cluster_bytes(const struct takt_cluster *cluster, struct takt_cluster_bytes *ret);

#endif
