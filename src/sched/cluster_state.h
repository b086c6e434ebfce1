/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cluster remembers, for its own files only.
 *
 * Nodes lie in pages that never move, hot part and devices apart; everything rarely looked at is in
 * a second array. Bit i of the masks over nodes is node i, in order of adding; `order` has them by
 * rank.
 */
#ifndef TAKT_SCHED_CLUSTER_STATE_H
#define TAKT_SCHED_CLUSTER_STATE_H

#include "base/map.h"
#include "base/vec.h"
#include "sched/cluster.h"

#define TAKT_CLUSTER_NONE UINT32_MAX

enum {
	TAKT_CLUSTER_PAGE = 256, /* nodes */
	TAKT_CLUSTER_COMPUTE_SLICES = 7,
	TAKT_GLANCE_LOOK = UINT8_MAX,
};

struct takt_cluster_profile {
	uint8_t size; /* 0: this model has none of it */
	uint8_t slices;
	uint8_t max; /* 8 = as many as fit */
};

struct takt_cluster_model {
	char *name;	/* owned */
	char *category; /* owned */
	uint32_t mem_mib;
	uint32_t idle_mw;
	uint32_t busy_mw;
	bool has_mig;
	struct takt_cluster_profile mig[TAKT_CLUSTER_MAX_MIG_PROFILES + 1]; /* by profile id */
};

struct takt_cluster_links {
	uint32_t devices;
	int32_t *pair_score;			 /* owned */
	uint64_t numa[TAKT_REQUEST_MAX_DEVICES]; /* devices of each NUMA node */
	uint32_t numa_count;
	/* owned, for at most 8 devices: best set by free mask and size, 0 = not asked yet */
	uint8_t *best;
};

struct takt_cluster_domain {
	char *name; /* owned */
	uint32_t level;
	uint32_t parent;
	TAKT_VEC(uint32_t) nodes; /* those in it, by rank while !stale */
	bool stale;
};

struct takt_cluster_requirement {
	enum takt_requirement_op op;
	char *key;     /* owned */
	char **values; /* owned */
	size_t value_count;
};

struct takt_cluster_selector {
	struct takt_cluster_requirement *requirements; /* owned */
	size_t count;
	uint64_t *nodes; /* owned: bit i: its labels and taints allow it */
	size_t words;
};

struct takt_cluster_label {
	char *key;   /* owned, the value behind its end */
	char *value; /* part of key's memory */
};

/* The part of a node that is seldom looked at. */
struct takt_cluster_cold {
	char *name;			   /* owned; may be NULL */
	struct takt_cluster_label *labels; /* owned */
	struct takt_cluster_label *taints; /* owned */
	uint16_t label_count;
	uint16_t taint_count;
	int32_t cpu_package_milli;
	uint32_t cpu_idle_mw;
	uint32_t cpu_busy_mw;
	int64_t price_micro_per_hour;
	uint16_t shape_tasks[TAKT_NODE_SHAPES]; /* tasks of each shape */
};

struct takt_cluster_speeds {
	uint16_t permille[TAKT_CLUSTER_MAX_MODELS];
};

/* What a quick look at a node is enough for. */
enum takt_cluster_quick {
	TAKT_QUICK_NONE,
	TAKT_QUICK_NO_DEVICE,
	TAKT_QUICK_WHOLE,
	TAKT_QUICK_FRACTION,
};

struct takt_cluster_kind {
	struct takt_request request;
	uint32_t next; /* of the same hash, or NONE */
	enum takt_cluster_quick quick;
	uint64_t models; /* model_mask, all ones for any */
	/* The same request without memory, whose levels it can share; itself if there is none. */
	uint32_t group;
	bool memory_counts;	      /* too often it was memory that kept it from a node */
	struct takt_place_view *view; /* owned by the index; NULL until asked for */
};

struct takt_cluster_page {
	void *memory;		 /* owned */
	struct takt_node *nodes; /* inside it, aligned */
};

struct takt_cluster_undo {
	uint32_t kind;
	bool taken;
	struct takt_slot slot;
};

/* What of a node is enough to see that most kinds do not fit there: four of these to a cache line.
 */
struct takt_glance {
	int32_t cpu_left_milli;
	uint32_t mem_left_mib; /* no more than this shows */
	uint16_t most_left;
	uint8_t whole; /* devices */
	uint8_t model; /* or TAKT_GLANCE_LOOK: the rest has to be looked at */
	uint32_t spare;
};

/* Nodes by when they last changed in a way that some kinds cannot be indifferent to. */
enum takt_recent {
	TAKT_RECENT_ANY,      /* in any way */
	TAKT_RECENT_WHOLE,    /* had or has a whole device */
	TAKT_RECENT_FRACTION, /* had or has anything left of a device */
	TAKT_RECENT_COUNT
};

/* A log of them, each node once: at its last entry, others of it being crossed out. */
struct takt_recent_log {
	uint32_t *node; /* owned: entry i is at i % size; NONE = crossed out */
	uint64_t *last; /* owned, by node: its last entry plus 1; 0 = none */
	uint64_t head;	/* entries so far */
	uint64_t lost;	/* entries that a growth of the log has dropped */
};

/* The index (place_index.c). */
struct takt_place_index {
	struct takt_glance *glance; /* owned: by node */
	struct takt_recent_log recent[TAKT_RECENT_COUNT];
	size_t log_size;	/* of each, a power of two */
	size_t cap;		/* nodes that there is room for */
	uint64_t freed;		/* those after which more may fit than before */
	uint64_t order_version; /* changes when positions do */
	uint64_t clock;		/* of the last view asked */
	size_t bytes;		/* of all views */
	size_t max_bytes;
};

struct takt_cluster {
	const struct takt_placement *placement; /* borrowed */
	void *placement_state;			/* owned by the policy */
	uint64_t policy_epoch;			/* of levels */
	uint32_t phase;
	uint64_t said_epoch; /* by the policy */

	TAKT_VEC(struct takt_cluster_model) models;
	TAKT_VEC(char *) profiles; /* owned names; id is index + 1 */
	TAKT_VEC(struct takt_cluster_links) links;
	TAKT_VEC(char *) levels;		      /* owned; level is index + 1 */
	TAKT_VEC(struct takt_cluster_domain) domains; /* id is index + 1 */
	struct takt_map domain_by_name;
	TAKT_VEC(struct takt_cluster_selector) selectors; /* [0] = no requirement */
	struct takt_map selector_by_text;

	TAKT_VEC(struct takt_cluster_page) pages;
	TAKT_VEC(struct takt_cluster_cold) cold;
	size_t node_count;
	uint32_t next_rank;
	TAKT_VEC(uint32_t) order; /* by rank while !order_stale; removed ones, too */
	bool order_stale;
	/* Room for as many as there are nodes. */
	uint32_t *sort_scratch;		 /* owned */
	const struct takt_node **listed; /* owned */
	size_t scratch_cap;

	TAKT_VEC(struct takt_cluster_speeds) speeds; /* [0] = equal on all */
	TAKT_VEC(struct takt_cluster_kind) kinds;
	struct takt_map kind_by_hash;
	struct takt_map per_node; /* kind << 32 | node: tasks there; kinds with a limit only */

	TAKT_VEC(struct takt_cluster_undo) undo;
	uint32_t marks; /* open */
	uint64_t version;
	uint64_t shape_version;
	struct takt_cluster_totals totals;
	uint32_t tainted; /* nodes that have a taint */
	size_t device_bytes;
	struct takt_place_index index;
};

static inline struct takt_node *takt_cluster_at(const struct takt_cluster *cluster, uint32_t node)
{
	return &cluster->pages.at[node / TAKT_CLUSTER_PAGE].nodes[node % TAKT_CLUSTER_PAGE];
}

static inline uint32_t takt_bits(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

static inline const struct takt_cluster_kind *
takt_cluster_kind_at(const struct takt_cluster *cluster, uint32_t kind)
{
	return &cluster->kinds.at[kind];
}

/* cluster.c */

/* Something about the node has changed. frees: more may fit on it than before. */
void takt_cluster_touch(struct takt_cluster *cluster, struct takt_node *node, bool frees);
/* Asks the policy whether all levels are stale, and for which phase it scores. */
void takt_cluster_update_epoch(struct takt_cluster *cluster);

/* cluster_domain.c */

/* Room for one more node in a domain and all around it. */
int takt_cluster_domain_reserve(struct takt_cluster *cluster, uint32_t domain);
void takt_cluster_domain_enter(struct takt_cluster *cluster, const struct takt_node *node);
void takt_cluster_domain_leave(struct takt_cluster *cluster, const struct takt_node *node);
void takt_cluster_domains_fini(struct takt_cluster *cluster);

/* cluster_node.c */

/* Compares node numbers by rank, then number; for takt_sort, ctx is the cluster. */
int takt_cluster_by_rank(const void *a, const void *b, void *ctx);

/* By rank; sorted first if need be. */
const uint32_t *takt_cluster_order(struct takt_cluster *cluster);
/* Usability or holding of a device has changed: what policies see of it follows. */
void takt_cluster_refresh(struct takt_cluster *cluster, struct takt_node *node, uint32_t device);
void takt_cluster_nodes_fini(struct takt_cluster *cluster);

/* cluster_selector.c */

bool takt_cluster_selects(const struct takt_cluster *cluster, uint32_t selector, uint32_t node);
/* Room in every selector's mask for `nodes` nodes. */
int takt_cluster_selectors_reserve(struct takt_cluster *cluster, size_t nodes);
void takt_cluster_selectors_update(struct takt_cluster *cluster, uint32_t node);
void takt_cluster_selectors_fini(struct takt_cluster *cluster);

/* cluster_names.c */

void takt_cluster_names_fini(struct takt_cluster *cluster);
/* The best-linked `need` of the devices in `from`, every one of `forced` among them. */
uint64_t takt_cluster_best_linked(struct takt_cluster *cluster, const struct takt_node *node,
				  uint64_t from, uint64_t forced, uint32_t need);

/* cluster_mig.c */

bool takt_mig_fits(const struct takt_cluster *cluster, const struct takt_device *device,
		   uint8_t profile, uint32_t start);
/* Where it takes the fewest other places away; false if there is no room. */
bool takt_mig_choose(const struct takt_cluster *cluster, const struct takt_device *device,
		     uint8_t profile, uint32_t *ret_start, uint32_t *ret_harm);
void takt_mig_hold(const struct takt_cluster *cluster, struct takt_device *device, uint8_t profile,
		   uint32_t start, bool taken);
/* How many of it fit one after the other. */
uint32_t takt_mig_room(const struct takt_cluster *cluster, const struct takt_device *device,
		       uint8_t profile);
bool takt_mig_possible(const struct takt_cluster *cluster, const struct takt_device *device,
		       uint8_t profile);
int64_t takt_mig_milli(const struct takt_cluster *cluster, const struct takt_device *device,
		       uint8_t profile);

/* cluster_fit.c */

uint32_t takt_fit_dev_mem(const struct takt_request *request, const struct takt_device *device,
			  uint32_t milli);
/* Whether a task fits, but for the scope. */
bool takt_fit(const struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind);
/* The same from the devices themselves, without what is kept about kinds and nodes for speed: what
 * takt_fit() is judged by. */
bool takt_fit_plain(const struct takt_cluster *cluster, const struct takt_node *node,
		    uint32_t kind);
/* Causes why it does not, but for the scope; 0 = it fits. */
uint32_t takt_fit_causes(const struct takt_cluster *cluster, const struct takt_node *node,
			 uint32_t kind);
/* The same, and whether the policy refuses the node. */
uint32_t takt_fit_why(const struct takt_cluster *cluster, const struct takt_node *node,
		      uint32_t kind);
/* Devices that a task may be put on, all of one model if it takes several. */
uint64_t takt_fit_devices(const struct takt_cluster *cluster, const struct takt_node *node,
			  const struct takt_request *request);
/* The same without some of them. */
uint64_t takt_fit_devices_off(const struct takt_cluster *cluster, const struct takt_node *node,
			      const struct takt_request *request, uint64_t keep_off);
/* What a quick look at a node is enough for. */
enum takt_cluster_quick takt_fit_quick(const struct takt_request *request);
/* How many fit one after the other. */
uint32_t takt_fit_room(const struct takt_cluster *cluster, const struct takt_node *node,
		       uint32_t kind);
uint32_t takt_fit_room_when_empty(const struct takt_cluster *cluster, const struct takt_node *node,
				  uint32_t kind);

/* cluster_pick.c */

/* Level of a task that fits there. */
uint32_t takt_pick_level(const struct takt_cluster *cluster, const struct takt_node *node,
			 uint32_t kind);
/* Where in the node a task goes that fits there. */
void takt_pick_slot(struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind,
		    uint64_t dev_mask, uint64_t keep_off, struct takt_slot *ret);
/* The same by a score policy's choice of devices. */
void takt_pick_on(struct takt_cluster *cluster, const struct takt_node *node, uint32_t kind,
		  uint64_t keep_off, struct takt_slot *ret);
bool takt_scope_has(const struct takt_cluster *cluster, const struct takt_scope *scope,
		    uint32_t node);
/* Whether a task that fits on the node does so on what the scope leaves of it. */
bool takt_scope_fits(const struct takt_cluster *cluster, const struct takt_scope *scope,
		     const struct takt_node *node, uint32_t kind);
/* Nodes of the scope that come first by rank, at most all: those of its list, of its domain, or
 * all; leave_out is not looked at. */
const uint32_t *takt_scope_nodes(struct takt_cluster *cluster, const struct takt_scope *scope,
				 size_t *ret_count);

#endif
