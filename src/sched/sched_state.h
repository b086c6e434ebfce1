/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler remembers, for the files of this room only.
 *
 * Who holds what is told twice: to the cluster (cluster.h), which knows what is left everywhere and
 * where the next task goes, and as one mask a fact on the node here, so that a question about whole
 * GPUs of a node is a few word operations.
 *
 * Jobs that wait and may start are in groups: those that are alike in everything that decides where
 * they fit. If the first of a group finds no place, none of the group does, so a plan looks at
 * groups and not at jobs.
 */
#ifndef TAKT_SCHED_STATE_H
#define TAKT_SCHED_STATE_H

#include "base/heap.h"
#include "base/map.h"
#include "base/vec.h"
#include "sched/cluster.h"
#include "sched/order.h"
#include "sched/sched.h"

enum takt_sched_phase {
	TAKT_SCHED_WAITING,
	TAKT_SCHED_ASSIGNED,
	TAKT_SCHED_RUNNING,
	TAKT_SCHED_DRAINING, /* over; its GPUs have left it and drain on their own */
};

/* Macros: an enumerator has to fit an int. */
#define TAKT_SCHED_NO_KIND UINT32_MAX /* a request that no node could ever hold */
#define TAKT_SCHED_NOWHERE UINT32_MAX /* in no such list */

struct takt_sched_host {
	uint32_t id;
	uint32_t gpu_count;
	uint32_t node; /* in the cluster */
	bool removed;  /* kept only because jobs are placed there */
	bool cordoned;
	bool resting;	     /* it flaps; see sched_flap.c */
	uint32_t placed;     /* tasks of jobs that are ASSIGNED or RUNNING here */
	int32_t *pair_score; /* owned */
	uint64_t *gpu_job; /* owned: who holds each GPU wholly, or held it while it drains; 0 = none
			    */
	uint8_t *sharers;  /* owned: tasks that hold a part of each GPU */
	uint64_t quarantined; /* disjoint from lost */
	uint64_t lost;
	uint64_t outside;
	uint64_t assigned; /* disjoint: assigned, running, draining; shared GPUs are running */
	uint64_t running;
	uint64_t draining;
	uint64_t drain_held; /* what of `draining` the cluster holds, as tasks of drain_kind */
	bool ails, unclean;  /* as counted in the scheduler's totals */
	struct takt_sched_node facts; /* as told, for the snapshot; its lists are owned */
	/* Of the plan being made; mean nothing afterwards. */
	uint64_t taken;	   /* by placements of this plan */
	uint64_t reserved; /* free, but kept for the first job that waits for GPUs */
};

/* All that decides where a job fits, and nothing else; compared as bytes. */
struct takt_sched_shape {
	uint32_t kind;
	uint32_t tasks, min_tasks;
	uint32_t topology, level;
	uint32_t tenant;
	uint32_t near_group, near_level;
	uint32_t apart_group, apart_level;
	uint32_t array_limit;
	uint32_t workload;
	uint64_t array;
	uint64_t owner;
	uint64_t alone; /* job id, for jobs that a window is kept for; else 0 */
};
_Static_assert(sizeof(struct takt_sched_shape) == 12 * sizeof(uint32_t) + 3 * sizeof(uint64_t),
	       "no padding: it is hashed and compared as bytes");

struct takt_sched_group {
	struct takt_sched_shape shape;
	struct takt_heap jobs;	       /* ready ones, by key */
	struct takt_heap_node node;    /* in `ready` while it has jobs */
	struct takt_sched_group *next; /* of the same hash */
	uint64_t hash;
	uint32_t members; /* jobs that wait and have it, ready or not */
	/* Of the plan being made. */
	bool blocked;
	uint32_t blocked_reach; /* nothing that reaches as far fits; see plan_scope.c */
	struct takt_sched_group *next_blocked;
	struct takt_sched_entry *candidate; /* see plan_preempt.c */
	/* Whether it could ever be placed, and what that rests on; see plan_ever.c. */
	uint64_t judged;
	bool never;
	/* The plan that said why one of them waits, and where; see plan_why.c. */
	uint64_t told;
	size_t told_at;
};

struct takt_sched_entry {
	struct takt_sched_job job; /* `after` is owned */
	enum takt_sched_phase phase;
	uint32_t kind;			/* in the cluster, or NO_KIND */
	uint32_t task_milli;		/* accelerators of one task, as tenants are charged */
	uint32_t index;			/* in `jobs`; NOWHERE in a half-built one */
	uint32_t queue_at;		/* in `queue`, or NOWHERE */
	uint32_t fresh_at;		/* in `fresh`, or NOWHERE */
	uint32_t awaited;		/* dependencies of others on it that are not settled */
	struct takt_sched_array *array; /* NULL = none */
	struct takt_sched_group *group; /* while it waits, unless NO_KIND */
	struct takt_heap_node node;	/* in group->jobs */
	struct takt_order_key key;
	uint64_t key_until_ns; /* then it is another one; UINT64_MAX = never */
	/* ASSIGNED or RUNNING, or placed by the open plan: one for each task; else none. */
	struct takt_slot *slots; /* &one, or owned */
	struct takt_slot one;
	uint32_t slot_count;
	/* Its books; see sched_books.c. */
	uint64_t attained_gpu_ms; /* of attempts that are over */
	uint64_t ran_ns, waited_ns;
	uint64_t since_ns;	/* it waits or runs since then */
	uint64_t checkpoint_ns; /* 0 = none */
	/* In `placed` while it is ASSIGNED or RUNNING. */
	struct takt_sched_entry *next_placed;
	struct takt_sched_entry **placed_link; /* what points at it */
	/* Of the plan being made. */
	struct takt_sched_entry *next_stashed;
	uint64_t mark; /* serial of the plan that did something with it */
};

struct takt_sched_array {
	uint32_t members; /* jobs that have it */
	uint32_t running; /* placed, those of the open plan too */
};

struct takt_sched_flap {
	uint32_t node_id;
	uint32_t count;
	uint64_t at_ns[8]; /* the newest failures, oldest first */
};

/* Where a running task is to be moved: taken in the cluster while the plan is open. */
struct takt_sched_borrowed {
	uint32_t kind;
	struct takt_slot slot;
};

/* A plan whose placements the cluster still holds; see sched_open.c. */
struct takt_sched_open {
	bool is;
	uint64_t mark; /* of the cluster */
	TAKT_VEC(struct takt_sched_entry *) placed;
	TAKT_VEC(struct takt_sched_borrowed) borrowed;
};

struct takt_sched {
	struct takt_sched_config config;
	struct takt_order_config order_config;
	struct takt_cluster *cluster;		    /* owned */
	struct takt_tenants *tenants;		    /* owned */
	TAKT_VEC(struct takt_sched_host *) hosts;   /* owned, by id */
	TAKT_VEC(struct takt_sched_host *) host_of; /* by number in the cluster; NULL = gone */
	TAKT_VEC(struct takt_sched_entry *) jobs;   /* owned, in no order */
	struct takt_sched_entry *placed;	    /* of `jobs`, linked by next_placed */
	struct takt_map by_id;			    /* job id -> struct takt_sched_entry */
	struct takt_map by_seq;			    /* submit_seq -> struct takt_sched_entry */

	TAKT_VEC(struct takt_sched_entry *) fresh;  /* wait and have no key yet */
	struct takt_heap ready;			    /* groups with jobs, by their first */
	TAKT_VEC(struct takt_sched_group *) groups; /* owned */
	struct takt_map group_by_hash;
	uint32_t empty_groups;	/* of `groups` */
	uint64_t keys_from_ns;	/* keys are as of then, */
	uint64_t keys_until_ns; /* and some key is another one at this time */
	bool keys_stale;	/* some key is another one already */
	/* Those that wait, and gaps: some that do not any more, NULL where one is forgotten. The
	 * first queue_sorted are in queue order, then come new ones; see sched_queue.c. */
	TAKT_VEC(struct takt_sched_entry *) queue;
	size_t queue_sorted;
	size_t queue_gaps; /* that the last one who went through it has met */

	TAKT_VEC(struct takt_sched_model) models;	/* as told; model 0 is not among them */
	TAKT_VEC(char *) names[TAKT_SPACE_COUNT];	/* owned; id 1 is [0] */
	TAKT_VEC(struct takt_sched_selector) selectors; /* as told, in that order */
	TAKT_VEC(struct takt_sched_workload) workloads;
	TAKT_VEC(struct takt_sched_outlook *) outlooks; /* owned, by id */
	struct takt_map selector_by_id;			/* -> number in the cluster */
	struct takt_map arrays;			    /* array id -> struct takt_sched_array, owned */
	TAKT_VEC(struct takt_sched_window) windows; /* by id; `nodes` owned */
	TAKT_VEC(struct takt_sched_flap) flaps;	    /* by node id */
	struct takt_sched_open open;
	uint32_t drain_kind; /* one whole GPU: what an unclean one is held by in the cluster */
	TAKT_VEC(uint32_t) domains_of[TAKT_SCHED_LEVELS]; /* the cluster's, by level - 1 */
	uint32_t domains_known;				  /* numbers up to this are in there */
	uint64_t serial;				  /* of plans */
	uint64_t version;
	uint32_t ailing;    /* hosts that are removed, or have GPUs that are quarantined or lost */
	uint32_t unclean;   /* hosts with draining GPUs */
	uint32_t tainted;   /* hosts with taints */
	uint32_t estimated; /* jobs of which it is said how long they run */
};

static inline uint32_t takt_sched_count(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

/* The lowest `count` bits. */
static inline uint64_t takt_sched_low_bits(uint32_t count)
{
	return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

static inline bool takt_sched_is_placed(const struct takt_sched_entry *entry)
{
	return entry->phase == TAKT_SCHED_ASSIGNED || entry->phase == TAKT_SCHED_RUNNING;
}

static inline uint32_t takt_sched_tasks(const struct takt_sched_job *job)
{
	return job->tasks ? job->tasks : 1;
}

static inline uint32_t takt_sched_min_tasks(const struct takt_sched_job *job)
{
	return job->min_tasks ? job->min_tasks : takt_sched_tasks(job);
}

/* A placed job has a task on a node that is gone: what it holds there cannot be given and taken
 * again while a plan tries things out. */
static inline bool takt_sched_on_removed(const struct takt_sched *sched,
					 const struct takt_sched_entry *entry)
{
	for (uint32_t i = 0; i < entry->slot_count; i++)
		if (sched->host_of.at[entry->slots[i].node]->removed)
			return true;
	return false;
}

/* sched_host.c: nodes. */

/* NULL when there is none of that id; removed ones are found too. */
struct takt_sched_host *takt_sched_host_find(const struct takt_sched *sched, uint32_t id);
/* Where a node of that id is or would be in `hosts`. */
size_t takt_sched_host_place(const struct takt_sched *sched, uint32_t id);
/* Known to the cluster, not yet in `hosts`. */
int takt_sched_host_new(struct takt_sched *sched, const struct takt_sched_node *node,
			struct takt_sched_host **ret, struct takt_err *err);
void takt_sched_host_free(struct takt_sched_host *host); /* takes NULL */
/* One that holds nothing any more: the cluster forgets it, then as free. */
void takt_sched_host_retire(struct takt_sched *sched, struct takt_sched_host *host);
/* One of its GPUs is cut otherwise, see TAKT_SCHED_GPU_LAYOUT. */
int takt_sched_host_cut(struct takt_sched *sched, struct takt_sched_host *host, uint32_t gpu,
			const uint8_t *layout, struct takt_err *err);
/* After a change of its masks: the cluster and the totals follow. */
void takt_sched_host_tell(struct takt_sched *sched, struct takt_sched_host *host);
/* Where the cluster holds an unclean GPU. */
struct takt_slot takt_sched_drain_slot(const struct takt_sched_host *host, uint64_t bit);
/* GPUs that a job with these flags could ever use while health and outside use stay as they are. */
uint64_t takt_sched_host_eligible(const struct takt_sched_host *host, uint32_t flags);
/* Those of them that nothing holds now, `taken` ones excepted. */
uint64_t takt_sched_host_free_gpus(const struct takt_sched_host *host, uint32_t flags);
enum takt_gpu_state takt_sched_host_gpu_state(const struct takt_sched_host *host, uint32_t gpu);
/* A task of a placed job comes, goes. The cluster is told by the caller. */
void takt_sched_host_hold(struct takt_sched_host *host, const struct takt_sched_entry *entry,
			  const struct takt_slot *slot);
void takt_sched_host_release(struct takt_sched *sched, struct takt_sched_host *host,
			     const struct takt_sched_entry *entry, const struct takt_slot *slot);

/* sched_group.c: waiting jobs that are alike. */

void takt_sched_groups_init(struct takt_sched *sched, size_t max_jobs);
void takt_sched_groups_fini(struct takt_sched *sched);
/* The group of a job, with room for one more; NULL = no memory. */
struct takt_sched_group *takt_sched_group_for(struct takt_sched *sched,
					      const struct takt_sched_entry *entry);
/* Joining: it gets its key when the next plan is made, and is ready then. */
void takt_sched_join(struct takt_sched *sched, struct takt_sched_entry *entry,
		     struct takt_sched_group *group);
void takt_sched_leave(struct takt_sched *sched, struct takt_sched_entry *entry);
/* Into and out of its group's heap. */
void takt_sched_make_ready(struct takt_sched *sched, struct takt_sched_entry *entry);
void takt_sched_unready(struct takt_sched *sched, struct takt_sched_entry *entry);
/* The group whose first job goes first of all; NULL = no job is ready. */
struct takt_sched_group *takt_sched_first_group(const struct takt_sched *sched);
struct takt_sched_entry *takt_sched_first_job(const struct takt_sched_group *group);
/* A blocked group is not among the ready ones. */
void takt_sched_block(struct takt_sched *sched, struct takt_sched_group *group);
void takt_sched_unblock(struct takt_sched *sched, struct takt_sched_group *group);

/* sched_keys.c: every waiting job has its key, as of now. */
int takt_sched_refresh_keys(struct takt_sched *sched, uint64_t now_ns);

/* sched_queue.c: afterwards `queue` has all jobs that wait, in order, and gaps. -ENOMEM. */
int takt_sched_sort_queue(struct takt_sched *sched);
/* What stands there, NULL = a gap. */
struct takt_sched_entry *takt_sched_queue_at(const struct takt_sched *sched, size_t at);
/* Its key is another one: it may not be in order where it stands. */
void takt_sched_queue_moved(struct takt_sched *sched, const struct takt_sched_entry *entry);
/* Room for one more; entering it, if it is not in there. */
int takt_sched_queue_reserve(struct takt_sched *sched);
void takt_sched_enqueue(struct takt_sched *sched, struct takt_sched_entry *entry);
/* Its length at most. */
size_t takt_sched_queue_most(size_t max_jobs);

/* sched_books.c */

/* GPUs of all its tasks, of those it has if it has any. */
uint64_t takt_sched_gpu_milli(const struct takt_sched_entry *entry);
void takt_sched_waits_since(struct takt_sched *sched, struct takt_sched_entry *entry,
			    uint64_t at_ns);
void takt_sched_waits_no_more(struct takt_sched *sched, struct takt_sched_entry *entry,
			      uint64_t at_ns);
void takt_sched_runs_since(struct takt_sched *sched, struct takt_sched_entry *entry,
			   uint64_t at_ns);
void takt_sched_runs_no_more(struct takt_sched *sched, struct takt_sched_entry *entry,
			     uint64_t at_ns);
/* As an order policy sees it; tenant_ahead is 0. */
void takt_sched_order_job(const struct takt_sched *sched, const struct takt_sched_entry *entry,
			  struct takt_order_job *ret);
/* A predicted span with the safety that is configured. */
uint64_t takt_sched_stretched_ns(const struct takt_sched *sched, uint64_t estimate_ns);
/* What is left of its predicted run time when it starts (again). */
uint64_t takt_sched_left_ns(const struct takt_sched_entry *entry);
/* When a running job ends; UINT64_MAX = not known. */
uint64_t takt_sched_predicted_end_ns(const struct takt_sched *sched,
				     const struct takt_sched_entry *entry, uint64_t now_ns);

/* sched_array.c */
int takt_sched_join_array(struct takt_sched *sched, struct takt_sched_entry *entry);
void takt_sched_leave_array(struct takt_sched *sched, struct takt_sched_entry *entry);

/* sched_request.c: the kind of a job's tasks (NO_KIND: more GPUs than a node may have), and what
 * one is charged. */
int takt_sched_kind_of(struct takt_sched *sched, const struct takt_sched_job *job,
		       uint32_t *ret_kind, uint32_t *ret_milli, struct takt_err *err);

/* sched_update_job.c, sched_update_place.c */
void takt_sched_entry_free(struct takt_sched_entry *entry);
/* `slots` becomes its own, unless it is `local`, which is copied. */
void takt_sched_set_slots(struct takt_sched_entry *entry, struct takt_slot *slots, uint32_t n,
			  const struct takt_slot *local);
void takt_sched_clear_slots(struct takt_sched_entry *entry);
/* A waiting job whose slots are set and taken in the cluster is ASSIGNED. */
void takt_sched_settle_in(struct takt_sched *sched, struct takt_sched_entry *entry, uint64_t at_ns);
/* A placed job, if it is one, gives up its slots. */
void takt_sched_leave_place(struct takt_sched *sched, struct takt_sched_entry *entry,
			    uint64_t at_ns);

/* sched_open.c: the newest plan, whose placements the cluster still holds. */

/* They are given back; nothing to do when there is none. Before anything changes. */
void takt_sched_close(struct takt_sched *sched);

/* sched_flap.c: nodes that fail again and again. */

/* A failure at that time, 0 = not known: not counted. */
int takt_sched_note_failure(struct takt_sched *sched, uint32_t node_id, uint64_t at_ns,
			    struct takt_err *err);
/* Until when the node is left alone; 0 = it need not be. */
uint64_t takt_sched_rests_until(const struct takt_sched *sched, uint32_t node_id);
/* Nodes that flap rest, others do not any more. Returns when that changes next, UINT64_MAX = never.
 */
uint64_t takt_sched_update_rest(struct takt_sched *sched, uint64_t now_ns);

/* sched_words.c */

/* Name of a label; NULL when there is none of that id. */
const char *takt_sched_label(const struct takt_sched *sched, uint32_t id);
/* Key and value of a label's name, in `text`. */
void takt_sched_split_label(const char *name, char text[TAKT_SCHED_MAX_NAME],
			    struct takt_label *ret);
struct takt_sched_workload *takt_sched_workload_find(const struct takt_sched *sched, uint32_t id);

/* sched_outlook.c: what is expected of run times. */

/* Borrowed for as long as the scheduler lives; NULL when there is none of that id. */
const struct takt_order_outlook *takt_sched_outlook_find(const struct takt_sched *sched,
							 uint32_t id);

/* sched_linkset.c: the best set that contains all of `forced` (a part of free_mask of at most
 * `need` GPUs). need <= GPUs in free_mask. */
uint64_t takt_sched_best_with(const int32_t *pair_score, uint32_t gpu_count, uint64_t free_mask,
			      uint64_t forced, uint32_t need, int64_t *ret_sum);

#endif
