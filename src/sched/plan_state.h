/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the phases of a plan share. A plan is made in the cluster itself, under a mark: what it
 * places is taken there, what it tries out is undone at once. Afterwards the scheduler keeps it
 * open (sched_open.c) or undoes it.
 */
#ifndef TAKT_SCHED_PLAN_STATE_H
#define TAKT_SCHED_PLAN_STATE_H

#include "sched/sched_state.h"

/* Jobs, in the order in which they give their GPUs back. */
struct takt_plan_end {
	uint64_t end_ns;		/* UINT64_MAX = not known */
	struct takt_sched_entry *entry; /* NULL: a GPU that drains */
	struct takt_slot drain;
};

/* Something that is kept for a job that waits: see plan_reserve.c. */
struct takt_plan_kept {
	struct takt_sched_entry *entry;
	uint64_t start_ns; /* UINT64_MAX = not known */
	uint64_t end_ns;
	enum takt_start_how how;
	struct takt_slot *slots; /* owned */
	uint32_t slot_count;
	/* What will be left of each slot's node when it has started there. */
	struct takt_plan_spare {
		int64_t cpu_milli;
		int64_t mem_mib;
	} * spare;	 /* owned */
	bool foreseen;	 /* told, but nobody is held back for it: see plan_foresee.c */
	bool held;	 /* it is among `holds` */
	bool playing;	 /* while the future is played: it runs, */
	uint32_t played; /* with so many slots */
};

struct takt_plan_hold {
	uint32_t kind;
	struct takt_slot slot;
};

struct takt_planner {
	struct takt_sched *sched;
	struct takt_plan *plan;
	uint64_t now_ns;
	uint64_t wakeup_ns; /* the earliest instant at which something changes by itself */
	int rc;		    /* the first failure; the plan is given up */

	TAKT_VEC(struct takt_plan_placement) placements;
	TAKT_VEC(struct takt_plan_wait) waits;
	TAKT_VEC(struct takt_plan_eviction) evictions;
	TAKT_VEC(struct takt_plan_migration) migrations;
	TAKT_VEC(struct takt_plan_reservation) reservations;
	TAKT_VEC(struct takt_plan_layout) layouts;
	TAKT_VEC(struct takt_plan_fit) fits;

	uint32_t most_waits;		  /* of how many jobs it is said why they wait; */
	bool waits_cut;			  /* there are more */
	struct takt_sched_entry *head;	  /* strict: the first that waits for GPUs; NULL = none */
	struct takt_sched_entry *stash;	  /* ready jobs set aside, linked by next_stashed */
	struct takt_sched_group *blocked; /* linked by next_blocked */
	uint32_t tried;			  /* jobs that found no place behind the first */
	uint64_t waiting_milli;		  /* GPUs that all waiting jobs ask for; */
	bool waiting_known;		  /* counted when it is first asked for */
	struct takt_map asked; /* tenant -> GPU milli placed by this plan, without those below */

	bool ends_known;
	TAKT_VEC(struct takt_plan_end) ends;   /* by end, then id */
	TAKT_VEC(struct takt_plan_kept) kept;  /* in queue order */
	TAKT_VEC(struct takt_plan_hold) holds; /* taken in the cluster */

	/* The scope of the job that is looked at; see plan_scope.c. */
	struct takt_scope scope;
	TAKT_VEC(uint64_t) leave_out;
	TAKT_VEC(uint64_t) keep_off;	 /* by node; empty = nothing */
	TAKT_VEC(uint64_t) other_models; /* plan_models.c: the same, narrowed */
	bool has_stand_in;		 /* plan_models.c: tasks are picked as this kind */
	uint32_t stand_in;

	struct takt_slot *slots; /* owned: where tasks of the job looked at are tried */
	uint32_t slot_room;
};

/* sched_plan.c */

/* Notes a failure; the plan is given up. */
void takt_plan_fail(struct takt_planner *planner, int rc);
void takt_plan_wake_at(struct takt_planner *planner, uint64_t at_ns);

/* plan_order.c: the main pass, in queue order. */
void takt_plan_place_in_order(struct takt_planner *planner);
/* It names its GPUs: those alone are kept for it, as no other one could ever be its, and not in
 * place of what is kept for the first in line. */
bool takt_plan_names_gpus(const struct takt_planner *planner, const struct takt_sched_entry *entry);
void takt_plan_put_back(struct takt_planner *planner);
/* Why a job may not be looked at by this plan, whatever is free: HELD, DEPENDENCY, EARLIEST, ARRAY,
 * QUOTA; NONE if it may. */
enum takt_why takt_plan_not_ready(const struct takt_planner *planner,
				  const struct takt_sched_entry *entry);
/* Whether the tenants' limits and quotas leave it so many tasks. */
bool takt_plan_within_quota(const struct takt_planner *planner,
			    const struct takt_sched_entry *entry, uint32_t tasks);
/* A waiting job gets the slots found, taken in the cluster already. */
void takt_plan_start(struct takt_planner *planner, struct takt_sched_entry *entry, uint32_t n);

/* plan_pick.c: where one task goes. False if it fits nowhere in the scope (NULL = all). */
bool takt_plan_pick(struct takt_planner *planner, uint32_t kind, const struct takt_scope *scope,
		    struct takt_slot *ret);

/* plan_gang.c: where a job goes, were it to start at that time. Its tasks are taken in the cluster
 * and stand in planner->slots; the number of them, 0 = it fits nowhere and nothing is taken. */
uint32_t takt_plan_place(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 uint64_t start_ns);
/* All tasks of a gang, or as many as an elastic one needs, in the scope. */
uint32_t takt_plan_place_gang(struct takt_planner *planner, const struct takt_sched_entry *entry,
			      const struct takt_scope *scope);
/* n more tasks, the first of them slots[at], in the scope; how many found a place. */
uint32_t takt_plan_fill(struct takt_planner *planner, uint32_t kind, const struct takt_scope *scope,
			uint32_t at, uint32_t n);

/* plan_models.c: the same on nodes of one model. */
uint32_t takt_plan_place_on_one_model(struct takt_planner *planner,
				      const struct takt_sched_entry *entry,
				      const struct takt_scope *scope);
/* Whether a job that fits nowhere could start but for the policy, which lets it wait for a faster
 * model: who declines what is free holds nobody back. */
bool takt_plan_declines(const struct takt_planner *planner, const struct takt_sched_entry *entry);

/* plan_topology.c: the tasks of a job as near to each other as it asks, at least `least` of them
 * and at most `most`. */
uint32_t takt_plan_place_near(struct takt_planner *planner, const struct takt_sched_entry *entry,
			      const struct takt_scope *scope, uint32_t least, uint32_t most);

/* plan_scope.c: where the job may be from that time on; NULL = everywhere. Valid until the next
 * call. */
const struct takt_scope *takt_plan_scope(struct takt_planner *planner,
					 const struct takt_sched_entry *entry, uint64_t start_ns);
/* When a job that starts then is over, with the safety that is configured; UINT64_MAX = not known.
 */
uint64_t takt_plan_end_if_started(const struct takt_planner *planner,
				  const struct takt_sched_entry *entry, uint64_t start_ns);

/* plan_reserve.c: who runs next, where and when. */

/* Finds when and where a waiting job will be able to start, and keeps that for it. False if it
 * cannot, whatever ends. */
bool takt_plan_reserve(struct takt_planner *planner, struct takt_sched_entry *entry);
/* The job will be in these slots from start_ns on: what is kept and begins while it is there has so
 * much less of CPU and memory beside it. */
void takt_plan_use_spare(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 const struct takt_slot *slots, uint32_t n, uint64_t start_ns);
/* Whether a job, were it started now in planner->slots, leaves what is kept for jobs ahead of it.
 */
bool takt_plan_leaves_kept(const struct takt_planner *planner, const struct takt_sched_entry *entry,
			   uint32_t n);
/* Keeps the slots in planner->slots for a job for which others are pushed out now; what was kept
 * there for jobs behind it is not any more. */
void takt_plan_keep_now(struct takt_planner *planner, struct takt_sched_entry *entry, uint32_t n);
/* The same for what is told and not kept free: not before floor_ns, beside all that is kept or
 * foreseen for others. */
bool takt_plan_foresee(struct takt_planner *planner, struct takt_sched_entry *entry,
		       uint64_t floor_ns);
/* Whether it will be able to start at all, and what its start rests on; nothing is kept. */
bool takt_plan_can_start(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 enum takt_start_how *ret_how);
/* `entry` has just been started: what its slots were kept for gets others, or the same later. */
void takt_plan_keep_others(struct takt_planner *planner, const struct takt_sched_entry *entry);
const struct takt_plan_kept *takt_plan_kept_for(const struct takt_planner *planner,
						const struct takt_sched_entry *entry);
void takt_plan_add_reservations(struct takt_planner *planner);
void takt_plan_reserve_fini(struct takt_planner *planner);
/* Fills `ends`. */
void takt_plan_list_ends(struct takt_planner *planner);

/* plan_failure.c: jobs whose GPUs or nodes have failed are requeued, moved or stopped. */
void takt_plan_handle_failures(struct takt_planner *planner);
/* A task of a running job goes there, where it is taken in the cluster already. */
void takt_plan_move(struct takt_planner *planner, const struct takt_sched_entry *entry,
		    uint32_t task, const struct takt_slot *to);

/* plan_migrate.c: a few running tasks are moved to make room for the first job that waits. */
void takt_plan_consolidate(struct takt_planner *planner);

/* plan_preempt.c: pushes out running jobs for waiting ones that found no place. */
void takt_plan_preempt(struct takt_planner *planner);

/* plan_hold.c: what is kept is taken in the cluster for those who would be in its way. */

/* Whether a job that is over at end_ns would be in its way; of what is kept for a time that nobody
 * knows any would. */
bool takt_plan_is_in_way(const struct takt_plan_kept *kept, uint64_t end_ns);
/* Exactly what the job, started now, would be in the way of. Returns how many are kept so. */
uint32_t takt_plan_hold_for(struct takt_planner *planner, const struct takt_sched_entry *entry);
void takt_plan_hold_nothing(struct takt_planner *planner);
/* What is kept for one job, against `entry` started now (NULL = later); and giving back all holds
 * but the first so many. */
void takt_plan_hold(struct takt_planner *planner, const struct takt_plan_kept *kept,
		    const struct takt_sched_entry *entry);
void takt_plan_release_to(struct takt_planner *planner, size_t holds);

/* plan_ever.c: what keeps a gang from ever being placed as things are, whatever ends: IMPOSSIBLE,
 * UNHEALTHY or OUTSIDE; NONE for one that can be, and for a job of one task. */
enum takt_why takt_plan_why_never(struct takt_planner *planner,
				  const struct takt_sched_entry *entry);

/* plan_foresee.c: where and when the jobs start that wait, in queue order as far as `last` (NULL =
 * as far as plans look), and that as the start of each entry of `waits`. */
void takt_plan_foresee_queue(struct takt_planner *planner, const struct takt_sched_entry *last);

/* plan_why.c */
void takt_plan_explain(struct takt_planner *planner);
void takt_plan_explain_one(struct takt_planner *planner, const struct takt_sched_entry *entry);

/* sched_wait.c */

/* A job of whole GPUs on one node that asks for nothing else and runs as fast everywhere. */
bool takt_plan_is_plain(const struct takt_sched_entry *entry);
/* What a job of whole GPUs on one node waits for that takt does not govern: IMPOSSIBLE, SELECTOR,
 * UNHEALTHY or OUTSIDE; NONE if ending jobs can make room for it. */
enum takt_why takt_sched_ungoverned(const struct takt_sched *sched, uint32_t need, uint32_t flags);
/* The node where a job that waits for `why` is nearest to running, the lowest id of equal ones;
 * NULL when there is no node. */
struct takt_sched_host *takt_sched_nearest(const struct takt_sched *sched,
					   const struct takt_sched_job *job, enum takt_why why);
/* GPUs of the node that windows keep from the job now. */
uint64_t takt_plan_kept(const struct takt_planner *planner, const struct takt_sched_job *job,
			const struct takt_sched_host *host);
/* GPUs of the node (its number in the cluster) that windows keep for the job now. There it goes
 * first, whatever is kept for others after the window. */
uint64_t takt_plan_own(const struct takt_planner *planner, const struct takt_sched_job *job,
		       uint32_t node);
/* Why a job of whole GPUs on one node waits that this plan has not placed, with all counts, were it
 * not held; job_id and behind_job are 0. */
void takt_sched_explain(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_plan_wait *ret);

#endif
