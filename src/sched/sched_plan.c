/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making a plan: place in queue order until a job waits for GPUs that takt governs, then say of
 * every job that is left why it waits.
 *
 * Jobs that ask for the same (GPUs, flags) wait for the same things, so whatever costs a walk over
 * the nodes is found once a kind and plan, not once a job.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/sched_state.h"

/* A kind is (GPUs asked for, may share); whatever is over the most a node can have is one. */
enum {
	TOO_MANY = TAKT_SCHED_MAX_NODE_GPUS + 1,
	KINDS = 2 * (TOO_MANY + 1)
};

struct planner {
	struct takt_sched *sched;
	struct takt_plan *plan;
	const struct takt_sched_entry *head; /* the first that waits for GPUs; NULL = none */
	struct ungoverned {
		bool known;
		enum takt_why why;
	} ungoverned[KINDS];
	struct explained {
		bool known;
		struct takt_plan_wait wait;
	} explained[KINDS];
};

static size_t kind_of(const struct takt_sched_job *job)
{
	size_t need = job->gpus < TOO_MANY ? job->gpus : TOO_MANY;

	return 2 * need + (job->flags & TAKT_JOB_USE_OUTSIDE ? 1 : 0);
}

static int begin(struct planner *planner, struct takt_err *err)
{
	struct takt_plan *plan = planner->plan;
	size_t n = planner->sched->queue.len;

	takt_plan_fini(plan);
	plan->placements = takt_calloc(n, sizeof(*plan->placements));
	plan->waits = takt_calloc(n, sizeof(*plan->waits));
	if (!plan->placements || !plan->waits) {
		takt_plan_fini(plan);
		return takt_err_set(err, -ENOMEM, "plan for %zu jobs", n);
	}
	plan->version = planner->sched->version;
	TAKT_VEC_EACH (host, &planner->sched->hosts)
		(*host)->taken = (*host)->reserved = 0;
	return 0;
}

/* A way to place a job; the better of two is chosen as the header's "Choice among nodes" says. */
struct offer {
	struct takt_sched_host *host;
	uint64_t gpu_mask;
	int64_t sum;
	uint32_t shared; /* GPUs with outside use */
	uint32_t left;	 /* free GPUs left over */
};

static bool better_offer(const struct offer *a, const struct offer *b)
{
	if (!b->host)
		return true;
	if (a->shared != b->shared)
		return a->shared < b->shared;
	if (a->sum != b->sum)
		return a->sum > b->sum;
	return a->left < b->left;
}

static struct offer offer_of(struct takt_sched_host *host, const struct takt_sched_job *job)
{
	uint64_t free_gpus = takt_sched_host_free_gpus(host, job->flags);
	uint64_t clean = free_gpus & ~host->outside;
	struct offer offer = {.host = host};

	if (takt_sched_count(clean) >= job->gpus)
		offer.gpu_mask = takt_sched_best_with(host->pair_score, host->gpu_count, clean, 0,
						      job->gpus, &offer.sum);
	else
		offer.gpu_mask = takt_sched_best_with(host->pair_score, host->gpu_count, free_gpus,
						      clean, job->gpus, &offer.sum);
	offer.shared = takt_sched_count(offer.gpu_mask & host->outside);
	offer.left = takt_sched_count(free_gpus) - job->gpus;
	return offer;
}

static bool place(struct planner *planner, const struct takt_sched_job *job)
{
	struct takt_plan *plan = planner->plan;
	struct offer best = {0};

	TAKT_VEC_EACH (host, &planner->sched->hosts) {
		struct offer offer;

		if ((*host)->removed ||
		    takt_sched_count(takt_sched_host_free_gpus(*host, job->flags)) < job->gpus)
			continue;
		offer = offer_of(*host, job);
		if (better_offer(&offer, &best))
			best = offer;
		if (job->gpus == 0)
			break;
	}
	if (!best.host)
		return false;
	best.host->taken |= best.gpu_mask;
	plan->placements[plan->placement_count++] = (struct takt_plan_placement){
		.job_id = job->id,
		.node_id = best.host->id,
		.gpu_mask = best.gpu_mask,
		.pair_score_sum = best.sum,
	};
	return true;
}

static bool ungoverned(struct planner *planner, const struct takt_sched_job *job)
{
	struct ungoverned *memo = &planner->ungoverned[kind_of(job)];

	if (!memo->known) {
		memo->why = takt_sched_ungoverned(planner->sched, job->gpus, job->flags);
		memo->known = true;
	}
	return memo->why != TAKT_WHY_NONE;
}

/* Places the job unless it is held, waits for what takt does not govern, or is behind the head,
 * which the first that finds no place becomes. */
static void consider(struct planner *planner, const struct takt_sched_entry *entry)
{
	const struct takt_sched_job *job = &entry->job;

	if (job->flags & TAKT_JOB_HELD || ungoverned(planner, job))
		return;
	if (planner->head && job->gpus > 0)
		return;
	if (!place(planner, job))
		planner->head = entry;
}

static void place_in_order(struct planner *planner)
{
	TAKT_VEC_EACH (entry, &planner->sched->queue)
		consider(planner, *entry);
}

/* What is free and would do for the head stays free for it, where it is nearest to running. */
static void reserve_for_head(struct planner *planner, const struct takt_plan_wait *wait)
{
	struct takt_sched_host *host =
		takt_sched_nearest(planner->sched, &planner->head->job, wait->why);

	host->reserved = takt_sched_host_free_gpus(host, planner->head->job.flags);
	for (size_t i = 0; i < KINDS; i++)
		planner->explained[i].known = false;
}

/* Reason and counts depend on the kind alone, but for a hold. */
static struct takt_plan_wait explain(struct planner *planner, const struct takt_sched_job *job)
{
	struct explained *memo = &planner->explained[kind_of(job)];
	struct takt_plan_wait wait;

	if (!memo->known) {
		takt_sched_explain(planner->sched, job, &memo->wait);
		memo->known = true;
	}
	wait = memo->wait;
	wait.job_id = job->id;
	wait.need = job->gpus;
	if (job->flags & TAKT_JOB_HELD) {
		wait.why = TAKT_WHY_HELD;
		wait.must_end = 0;
	}
	return wait;
}

static void add_wait(struct planner *planner, const struct takt_sched_entry *entry, bool behind)
{
	struct takt_plan_wait wait = explain(planner, &entry->job);

	if (behind && (wait.why == TAKT_WHY_ORDER || wait.why == TAKT_WHY_GPUS))
		wait.behind_job = planner->head->job.id;
	planner->plan->waits[planner->plan->wait_count++] = wait;
	if (entry == planner->head)
		reserve_for_head(planner, &wait);
}

/* Placements are in queue order too, so one walk tells those that were placed from the others. */
static void explain_waits(struct planner *planner)
{
	const struct takt_plan *plan = planner->plan;
	size_t placed = 0;
	bool behind = false;

	TAKT_VEC_EACH (entry, &planner->sched->queue) {
		if (placed < plan->placement_count &&
		    plan->placements[placed].job_id == (*entry)->job.id) {
			placed++;
			continue;
		}
		add_wait(planner, *entry, behind);
		behind = behind || *entry == planner->head;
	}
}

int takt_sched_run(struct takt_sched *sched, uint64_t now_ns, uint64_t seed, struct takt_plan *plan,
		   struct takt_err *err)
{
	struct planner planner = {.sched = sched, .plan = plan};
	int rc = begin(&planner, err);

	if (rc < 0)
		return rc;
	(void)now_ns;
	(void)seed;
	place_in_order(&planner);
	explain_waits(&planner);
	return 0;
}

void takt_plan_fini(struct takt_plan *plan)
{
	takt_free(plan->placements);
	takt_free(plan->waits);
	*plan = (struct takt_plan){0};
}
