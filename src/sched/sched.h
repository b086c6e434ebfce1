/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: events in, plan out. Pure: a function of its event log.
 *
 * A caller-owned object is fed events (`update`) and asked for a plan (`run`). It reads no clock,
 * file, environment or global; time and randomness are arguments. `run` changes nothing that a
 * later plan depends on: a placement counts only when the engine has taken it and the caller says
 * so with TAKT_SCHED_JOB_PLACED. Therefore a scheduler rebuilt from its snapshot (a canonical,
 * minimal event log) gives the same plan, but for its version, as the one that lived through
 * everything (property test).
 *
 * Whoever asks again before an engine has answered either says JOB_PLACED when he sends the
 * placement (JOB_REQUEUED and GPU_DRAINED if it is refused), or takes care that he sends none
 * twice.
 *
 * The shape holds a cluster: nodes with GPUs and a pair-score matrix inside each. One machine is a
 * cluster of one node. Today: whole GPUs on one node a job, queue order priority then arrival.
 *
 * Order. Jobs are considered by (priority descending, submit_seq ascending). A job that cannot be
 * placed now although it could be once jobs that takt runs have ended (or what they left has
 * drained) holds back every job behind it: nothing overtakes a runnable job of higher rank, and
 * what is free stays free for it. A job that waits for what takt does not govern (outside
 * processes, quarantined or lost GPUs, a hold) holds nobody back. A job without GPUs takes nothing
 * from anybody and waits for nobody.
 *
 * Choice inside a node. Among the free GPUs the set with the largest sum of pair scores, exact up
 * to TAKT_SCHED_EXACT_GPUS free GPUs; ties: the set that leaves the larger pair-score sum among the
 * GPUs that stay free, then the lexicographically smallest list of indices. Above that limit the
 * set is grown greedily from each GPU in turn and improved by exchanges of one GPU until none
 * helps; the best of these by the same order wins (it is the exact best on uniform matrices and
 * when the good sets are the GPUs of one board; a test pins how near it comes elsewhere).
 * A job that may share GPUs with outside processes still takes as few of those as it can.
 *
 * Choice among nodes. Fewest GPUs with outside use, then the largest pair-score sum, then the
 * fewest free GPUs left over, then the lowest id.
 */
#ifndef TAKT_SCHED_SCHED_H
#define TAKT_SCHED_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "sched/sched_facts.h"
#include "sched/sched_plan.h"
#include "sched/tenant.h"

enum {
	TAKT_SCHED_EXACT_GPUS = 16,
};

/* What a GPU is to the scheduler. Outside use is a flag of its own: a GPU may be both free of
 * takt's jobs and used by somebody else. */
enum takt_gpu_state {
	TAKT_GPU_FREE,
	TAKT_GPU_ASSIGNED, /* an engine has taken a placement; the job has not started */
	TAKT_GPU_RUNNING,
	TAKT_GPU_DRAINING,    /* job over, driver still shows a process or memory */
	TAKT_GPU_QUARANTINED, /* unhealthy or set aside by an administrator */
	TAKT_GPU_LOST,	      /* fell off the bus or does not answer */
	TAKT_GPU_STATE_COUNT
};
/* Stable, for JSON; "?" for what is none. The arrays of names end in NULL. */
const char *takt_gpu_state_name(enum takt_gpu_state state);
extern const char *const takt_gpu_state_names[];

/*
 * What can happen. Events are facts, so a placement is taken also where the plan would not have
 * made it (a held job, a GPU that an outside process has come to meanwhile); refused is only what
 * contradicts the state, above all a GPU that another job holds or that still drains.
 *
 * A GPU's health and outside use are told apart from who holds it: a job keeps a GPU that is
 * quarantined under it. Telling what is known already changes nothing.
 */
enum takt_sched_event_kind {
	/* node: all its GPUs FREE, healthy, without outside use; or the return of a removed node,
	 * on which jobs that are still placed there hold their GPUs. Whoever adds a node whose GPUs
	 * may not be clean says so with GPU_DRAINING or GPU_HEALTH. */
	TAKT_SCHED_NODE_ADD,
	/* node_id: nothing is placed there any more. Jobs placed there stay placed until they are
	 * draining, requeued or ended; what drains is forgotten. */
	TAKT_SCHED_NODE_REMOVE,
	TAKT_SCHED_GPU_HEALTH,	/* node_id, gpu, state: FREE lifts, QUARANTINED or LOST sets */
	TAKT_SCHED_GPU_OUTSIDE, /* node_id, gpu, outside */
	/* node_id, gpu, job_id: a GPU that no job holds is not clean; job_id says whose it was, 0 =
	 * not known. */
	TAKT_SCHED_GPU_DRAINING,
	TAKT_SCHED_GPU_DRAINED, /* node_id, gpu: a DRAINING GPU is clean again */
	TAKT_SCHED_JOB_ADD,	/* job, at_ns: waiting since then */
	TAKT_SCHED_JOB_CHANGE, /* job: new priority, flags, earliest start or deadline of a job that
				  waits */
	/* job_id, and where: `slots`, one for each task, or for one task of whole GPUs also node_id
	 * and gpu_mask. An engine took it; GPUs ASSIGNED. */
	TAKT_SCHED_JOB_PLACED,
	TAKT_SCHED_JOB_RUNNING, /* job_id, at_ns: its GPUs are RUNNING */
	/* job_id: over, but not forgotten: it may be requeued. The GPUs it held, if any, are
	 * DRAINING, each until GPU_DRAINED. */
	TAKT_SCHED_JOB_DRAINING,
	/* job_id: a job that was placed waits again in its old order; GPUs that it held are
	 * DRAINING. */
	TAKT_SCHED_JOB_REQUEUED,
	/* job_id, in any state: forgotten; GPUs that it held are DRAINING. */
	TAKT_SCHED_JOB_ENDED,

	/* The events below are told by whoever knows more than one machine's GPUs. */
	TAKT_SCHED_MODEL,	  /* model: new, once */
	TAKT_SCHED_NAME,	  /* space, name_id, name: new, once */
	TAKT_SCHED_SELECTOR,	  /* selector: new, once */
	TAKT_SCHED_WORKLOAD,	  /* workload: new, once */
	TAKT_SCHED_OUTLOOK,	  /* outlook: new or other figures */
	TAKT_SCHED_TENANT,	  /* tenant: new or other figures; the parent is there already */
	TAKT_SCHED_TENANT_REMOVE, /* tenant_id: no job and no tenant below it is left */
	TAKT_SCHED_TENANT_USAGE,  /* tenant_id, usage: its books (tenant.h) as of at_ns */
	TAKT_SCHED_NODE_CORDON,	  /* node_id, outside: nothing new is placed there, or again */
	TAKT_SCHED_NODE_FAILED,	  /* node_id, at_ns: it failed then, which counts for flapping; so
				     do NODE_REMOVE and GPU_HEALTH that say when. The node need not
				     be there. */
	TAKT_SCHED_WINDOW_ADD,
	TAKT_SCHED_WINDOW_REMOVE,  /* window_id */
	TAKT_SCHED_JOB_ESTIMATE,   /* job_id, estimate_ns: a new prediction, in any state */
	TAKT_SCHED_JOB_CHECKPOINT, /* job_id, at_ns: what it did until then is safe */
	TAKT_SCHED_JOB_MOVED,	   /* job_id, slots: a placed job holds these instead */
	/* node_id, gpu, layout: a GPU of mig_cut is cut so from now on. What tasks hold stays. */
	TAKT_SCHED_GPU_LAYOUT,
	TAKT_SCHED_EVENT_COUNT
};
const char *takt_sched_event_name(enum takt_sched_event_kind kind); /* "node_add", ... */
extern const char *const takt_sched_event_names[];

/* What an event points at is borrowed for the call. */
struct takt_sched_event {
	enum takt_sched_event_kind kind;
	uint32_t node_id;
	uint32_t gpu; /* index within the node */
	enum takt_gpu_state state;
	bool outside;
	bool failed; /* JOB_ENDED, JOB_DRAINING: it did not end well; see takt_sched_after */
	uint64_t job_id;
	uint64_t gpu_mask;
	uint64_t at_ns; /* when it happened; 0 = not known */
	uint64_t estimate_ns;
	uint64_t window_id;
	uint64_t usage;
	uint32_t tenant_id;
	enum takt_sched_space space;
	uint32_t name_id;
	uint32_t slot_count;
	const struct takt_sched_slot *slots;
	const char *name;
	const uint8_t *layout; /* TAKT_SCHED_MIG_SLICES, as a node's mig_layout has them of a GPU */
	const struct takt_sched_model *model;
	const struct takt_sched_selector *selector;
	const struct takt_sched_workload *workload;
	const struct takt_sched_outlook *outlook;
	const struct takt_tenant *tenant;
	const struct takt_sched_window *window;
	struct takt_sched_node node;
	struct takt_sched_job job;
};

struct takt_sched;

enum takt_backfill {
	TAKT_BACKFILL_NONE,   /* nothing overtakes a job that waits for GPUs */
	TAKT_BACKFILL_GREEDY, /* whatever fits may overtake; large jobs may wait for ever */
	TAKT_BACKFILL_EASY,   /* who overtakes does not delay the predicted start of the first job
				 that waits */
	TAKT_BACKFILL_CONSERVATIVE, /* nor of the first reserve_depth ones */
	TAKT_BACKFILL_COUNT
};
extern const char *const takt_backfill_names[]; /* "none", "greedy", "easy", "conservative", NULL */

enum takt_reasons {
	TAKT_REASONS_ALL,   /* every plan says of each waiting job why */
	TAKT_REASONS_ASKED, /* none does; ask with takt_sched_why */
};

struct takt_order;
struct takt_order_config;
struct takt_placement;

/* Zero in each field is the default, and what one machine needs. */
struct takt_sched_config {
	uint32_t max_jobs;  /* refuse JOB_ADD beyond; 0 = 1,000,000 */
	uint32_t max_nodes; /* 0 = 100,000 */

	/* Who goes first; NULL: priority, then arrival. Borrowed until free, as is its config. */
	const struct takt_order *order;
	const struct takt_order_config *order_config;
	const struct takt_tenants_config *tenants; /* NULL = its defaults; read by new only */
	/* Which node; NULL: as "Choice among nodes" above. Borrowed until free. */
	const struct takt_placement *placement;

	enum takt_backfill backfill;
	uint32_t reserve_depth;	  /* jobs with a reservation, conservative; 0 = 16 */
	uint32_t backfill_depth;  /* jobs tried behind the first that waits; 0 = 1000 */
	uint32_t safety_permille; /* predicted run times are stretched by it; 0 = 1000 */
	bool preempt; /* push out preemptible jobs where the order says so, and for quotas */
	uint32_t preempt_depth;	 /* waiting jobs tried a plan; 0 = 8 */
	uint64_t min_runtime_ns; /* of every job, at least */
	uint32_t migrate_most;	 /* tasks moved a plan for consolidation; 0 = none */
	/* A node that failed flap_count times within flap_window_ns gets nothing new for
	 * flap_rest_ns. 0 in any = never. */
	uint32_t flap_count;
	uint64_t flap_window_ns;
	uint64_t flap_rest_ns;
	enum takt_reasons reasons;
	/* A GPU is clean when its job is over, as in a simulation: no draining. */
	bool clean_at_end;
};

/* Heap object; free takes NULL. */
int takt_sched_new(const struct takt_sched_config *config, struct takt_sched **ret,
		   struct takt_err *err);
void takt_sched_free(struct takt_sched *sched);

/* Take one event. -EINVAL (names the field) when it contradicts what went before, -TAKT_E_LIMIT
 * beyond max_jobs or max_nodes, -ENOMEM: then nothing changed. */
int takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
		      struct takt_err *err);

/* Whose share is how large, to be looked at; borrowed. */
const struct takt_tenants *takt_sched_tenants(const struct takt_sched *sched);

/* Number of events taken. */
uint64_t takt_sched_version(const struct takt_sched *sched);

/* Make a plan into *plan, which is zeroed or holds an earlier plan (released first). seed is used
 * only where a policy says so (none does today). -ENOMEM leaves *plan empty. */
int takt_sched_run(struct takt_sched *sched, uint64_t now_ns, uint64_t seed, struct takt_plan *plan,
		   struct takt_err *err);

/* The same plan, saying why of the first so many waiting jobs only; for callers with a long queue,
 * who ask for the others when somebody wants to know. At least 16, those whose start is predicted.
 */
int takt_sched_run_briefly(struct takt_sched *sched, uint64_t now_ns, uint32_t most_waits,
			   struct takt_plan *plan, struct takt_err *err);

/* Take all placements of the plan as facts, as JOB_PLACED would at that time; the plan is the
 * newest and nothing has happened since, else -TAKT_E_STALE. For callers who are their own engine.
 */
int takt_sched_commit(struct takt_sched *sched, const struct takt_plan *plan, uint64_t at_ns,
		      struct takt_err *err);

/* Why one waiting job waits, at that time: a plan with one entry in waits. -ENOENT when the job
 * does not wait. *plan as for takt_sched_run. */
int takt_sched_why(struct takt_sched *sched, uint64_t job_id, uint64_t now_ns,
		   struct takt_plan *plan, struct takt_err *err);

/* Can this ever run here? 0, or -TAKT_E_IMPOSSIBLE with the reason as message ("asks for 9 GPUs,
 * the largest node has 8"). For refusing at submit. It looks at the number of GPUs alone; what else
 * a job asks for (memory, CPUs, a model, a topology) is told by why it waits. */
int takt_sched_possible(const struct takt_sched *sched, const struct takt_sched_job *job,
			struct takt_err *err);

/* Hands the canonical event log of the present state to `emit`, in an order that update() accepts:
 * nodes by id, each with its GPUs' states, then jobs by submit_seq, then the removal of nodes that
 * are gone but still hold jobs. What an event points at is borrowed for the call. Stops at the
 * first negative return and returns it. */
int takt_sched_snapshot(const struct takt_sched *sched,
			int (*emit)(void *ctx, const struct takt_sched_event *event), void *ctx);

/* State of one GPU (its health first, then who holds it), and the job that holds it or, while it
 * drains, held it (0 = none). -ENOENT for an unknown node or GPU. Each ret may be NULL. */
int takt_sched_gpu(const struct takt_sched *sched, uint32_t node_id, uint32_t gpu,
		   enum takt_gpu_state *ret_state, bool *ret_outside, uint64_t *ret_job_id);

/* The best set of `need` GPUs among `free_mask` (see "Choice inside a node" above). -ENOENT when
 * too few are free. *ret_sum is its pair-score sum. Also used by `takt topo`. */
int takt_best_set(const int32_t *pair_score, uint32_t gpu_count, uint64_t free_mask, uint32_t need,
		  uint64_t *ret_mask, int64_t *ret_sum);

/* How two GPUs reach each other inside a node. */
enum takt_link {
	TAKT_LINK_UNKNOWN,
	TAKT_LINK_SYS,	/* across sockets */
	TAKT_LINK_NODE, /* between host bridges of a NUMA node */
	TAKT_LINK_PHB,	/* through a host bridge */
	TAKT_LINK_PXB,	/* several PCIe switches */
	TAKT_LINK_PIX,	/* one PCIe switch */
	TAKT_LINK_BOARD /* same board */
};
/* Pair score as the device plugins' allocators use it: SYS 10, NODE 20, PHB 30, PXB 40, PIX 50,
 * board 60 (unknown 0), plus 100 for each NVLink. */
int32_t takt_link_score(enum takt_link pcie, uint32_t nvlinks);
const char *takt_link_name(enum takt_link pcie); /* "SYS", "PIX", ... "?" when unknown */

#endif
