/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt's own order: most jobs done for the GPU time invested, from what is known of jobs that ran
 * before, with as few evictions as that allows.
 *
 *	value = rank x GPUs
 *
 * rank is the job's Gittins index, inverted (struct takt_order_outlook): the time that has to be
 * invested in jobs like this one, that have run for as long, for each that gets done. Where
 * nothing is known of run times all ranks would be equal; then LAS's argument is followed, that who
 * has run long will run long: rank = one hour, doubled as often as the run time so far has room
 *for. Times GPUs makes it GPU time (Smith's rule for jobs that are equally important and of
 *different width).
 *
 * Gittins' index is optimal on one machine when stopping costs nothing. Here it costs, so a running
 * job is pushed out only if
 *
 *	(value of the waiting job + loss) x evict_ratio  <  value of the running job
 *
 * with loss = what the victim did since its last checkpoint plus the cost of an eviction, in GPU
 * time. On Philly's months a ratio of 8 evicted less than one of 4 where the cluster was
 * overloaded, for mean completion times within 2 % of its (docs/research/queue-order.md).
 *
 * Where nothing is pushed out a job that is started runs to its end, so that there is no moment to
 * give up: value = mean run time of the kind x GPUs, which is QSSF but for learning while the job
 * waits. And the only way to keep short jobs from waiting behind long ones is then not to start the
 * long ones: `holds` keeps a part of the GPUs free of jobs with a large predicted GPU time. That
 * pays while there are gaps. Where the cluster is overloaded what is kept is only lost, so nobody
 *is held while all that waits asks for more than the whole cluster, nor longer than a part of what
 *it will run: nobody's completion time grows by more than that.
 */
#include "sched/order.h"

#define NS_A_S UINT64_C(1000000000)

enum {
	UNKNOWN_RANK_S = 3600,
	PATIENCE = 2, /* a job is held for its predicted run time over this */
};

__extension__ typedef unsigned __int128 wide;

/* The last step that begins at that age or before. */
static uint32_t step_at(const struct takt_order_outlook *outlook, uint64_t age_s)
{
	uint32_t low = 0;
	uint32_t high = outlook->steps;

	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (outlook->age_s[mid] <= age_s)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static uint64_t unknown_rank_s(uint64_t age_s)
{
	uint64_t rank = UNKNOWN_RANK_S;

	while (rank <= age_s / 2)
		rank *= 2;
	return rank;
}

static uint64_t rank_s(const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t age_s = takt_order_ran_ns(job, now_ns) / NS_A_S;

	return job->outlook ? job->outlook->rank_s[step_at(job->outlook, age_s)]
			    : unknown_rank_s(age_s);
}

/* What is known of the kind now is worth more than what was known when the job came. */
static uint64_t whole_ms(const struct takt_order_config *config, const struct takt_order_job *job)
{
	if (job->outlook && job->outlook->mean_s)
		return UINT64_C(1000) * job->outlook->mean_s;
	return (job->has_prediction ? job->predicted_ns : config->unknown_ns) / 1000000;
}

static uint64_t value_of(const struct takt_order_config *config, const struct takt_order_job *job,
			 uint64_t now_ns)
{
	uint64_t each_ms = config->keeps ? whole_ms(config, job) : 1000 * rank_s(job, now_ns);
	wide value = (wide)each_ms * job->gpu_milli / 1000;

	return value < INT64_MAX ? (uint64_t)value : INT64_MAX;
}

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	ret->value = (int64_t)value_of(config, job, now_ns);
}

/* The age at which the rank is another one; UINT64_MAX = never. */
static uint64_t next_age_s(const struct takt_order_job *job, uint64_t age_s)
{
	const struct takt_order_outlook *outlook = job->outlook;
	uint32_t step;
	uint64_t now_rank;

	if (!outlook)
		return 2 * unknown_rank_s(age_s);
	step = step_at(outlook, age_s);
	now_rank = outlook->rank_s[step];
	while (++step < outlook->steps)
		if (outlook->rank_s[step] != now_rank)
			return outlook->age_s[step];
	return UINT64_MAX;
}

static bool is_long(const struct takt_order_config *config, const struct takt_order_job *job)
{
	return job->has_prediction &&
	       takt_order_gpu_ms(job->gpu_milli, job->predicted_ns) > config->hold_gpu_ms;
}

/* When a job that waits has been held for long enough; UINT64_MAX = it has, or never was. */
static uint64_t held_until_ns(const struct takt_order_config *config,
			      const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t waited_ns = takt_order_waited_ns(job, now_ns);

	if (job->running || config->hold_permille == 0 || !is_long(config, job) ||
	    waited_ns >= job->predicted_ns / PATIENCE)
		return TAKT_ORDER_NEVER;
	return takt_order_later(now_ns, job->predicted_ns / PATIENCE - waited_ns);
}

static uint64_t next_change_ns(const struct takt_order_config *config,
			       const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t ran_ns = takt_order_ran_ns(job, now_ns);
	uint64_t age_s;

	if (config->keeps)
		return held_until_ns(config, job, now_ns);
	if (!job->running || job->gpu_milli == 0)
		return TAKT_ORDER_NEVER;
	age_s = next_age_s(job, ran_ns / NS_A_S);
	return age_s > UINT64_MAX / NS_A_S ? TAKT_ORDER_NEVER
					   : takt_order_later(now_ns, age_s * NS_A_S - ran_ns);
}

static bool may_evict(const struct takt_order_config *config, const struct takt_order_job *waiting,
		      const struct takt_order_job *running, uint64_t now_ns)
{
	wide cost = (wide)value_of(config, waiting, now_ns) +
		    takt_order_loss_gpu_ms(running, now_ns) +
		    takt_order_gpu_ms(running->gpu_milli, config->evict_cost_ns);

	return cost * config->evict_ratio_permille < (wide)value_of(config, running, now_ns) * 1000;
}

/* A job wider than what is left beside the kept part would never start; it is not held. */
static bool holds(const struct takt_order_config *config, const struct takt_order_job *waiting,
		  const struct takt_order_load *load, uint64_t now_ns)
{
	wide kept_milli = (wide)load->capacity_milli * config->hold_permille / 1000;
	wide most_milli = (wide)load->capacity_milli * config->hold_backlog_permille / 1000;

	if (!config->keeps || load->waiting_milli > most_milli ||
	    held_until_ns(config, waiting, now_ns) == TAKT_ORDER_NEVER)
		return false;
	return waiting->gpu_milli + kept_milli <= load->capacity_milli &&
	       load->free_milli < waiting->gpu_milli + kept_milli;
}

const struct takt_order takt_order_takt = {
	.name = "takt",
	.summary = "most jobs done for the GPU time, learned from earlier jobs (Gittins index)",
	.reads = TAKT_ORDER_SERVICE | TAKT_ORDER_PREDICTION | TAKT_ORDER_TIME | TAKT_ORDER_OUTLOOK,
	.preempts = true,
	.key = key,
	.next_change_ns = next_change_ns,
	.may_evict = may_evict,
	.holds = holds,
};
