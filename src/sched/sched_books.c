/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's books: how long it has waited and run, what it has received, and what its tenant has.
 * They move when the job does and the event says when.
 */
#include <string.h>

#include "sched/sched_update.h"

/* Time since the last move; unknown at either end counts nothing. */
static uint64_t span(const struct takt_sched_entry *entry, uint64_t at_ns)
{
	return entry->since_ns > 0 && at_ns > entry->since_ns ? at_ns - entry->since_ns : 0;
}

uint64_t takt_sched_gpu_milli(const struct takt_sched_entry *entry)
{
	uint32_t tasks = entry->slot_count ? entry->slot_count : takt_sched_tasks(&entry->job);

	return (uint64_t)entry->task_milli * tasks;
}

void takt_sched_waits_since(struct takt_sched *sched, struct takt_sched_entry *entry,
			    uint64_t at_ns)
{
	entry->since_ns = at_ns;
	if (entry->job.tenant)
		(void)takt_tenants_want(sched->tenants, entry->job.tenant,
					(int64_t)takt_sched_gpu_milli(entry));
}

void takt_sched_waits_no_more(struct takt_sched *sched, struct takt_sched_entry *entry,
			      uint64_t at_ns)
{
	entry->waited_ns += span(entry, at_ns);
	if (entry->job.tenant)
		(void)takt_tenants_want(
			sched->tenants, entry->job.tenant,
			-(int64_t)((uint64_t)entry->task_milli * takt_sched_tasks(&entry->job)));
}

void takt_sched_runs_since(struct takt_sched *sched, struct takt_sched_entry *entry, uint64_t at_ns)
{
	entry->since_ns = at_ns;
	entry->checkpoint_ns = 0;
	if (entry->job.tenant)
		(void)takt_tenants_take(sched->tenants, entry->job.tenant,
					takt_sched_gpu_milli(entry), at_ns);
}

void takt_sched_runs_no_more(struct takt_sched *sched, struct takt_sched_entry *entry,
			     uint64_t at_ns)
{
	uint64_t ran = span(entry, at_ns);

	entry->ran_ns += ran;
	if (entry->checkpoint_ns > entry->since_ns && entry->since_ns > 0)
		entry->job.done_ns += entry->checkpoint_ns - entry->since_ns;
	entry->attained_gpu_ms += takt_order_gpu_ms(takt_sched_gpu_milli(entry), ran);
	if (entry->job.tenant)
		(void)takt_tenants_give(sched->tenants, entry->job.tenant,
					takt_sched_gpu_milli(entry), at_ns);
}

void takt_sched_order_job(const struct takt_sched *sched, const struct takt_sched_entry *entry,
			  struct takt_order_job *ret)
{
	const struct takt_sched_job *job = &entry->job;
	uint64_t least = sched->config.min_runtime_ns;

	*ret = (struct takt_order_job){
		.id = job->id,
		.submit_seq = job->submit_seq,
		.submit_ns = job->submit_ns,
		.priority = job->priority,
		.tenant_rank = takt_tenants_rank(sched->tenants, job->tenant),
		.gpu_milli = takt_sched_gpu_milli(entry),
		.since_ns = entry->since_ns,
		.attained_gpu_ms = entry->attained_gpu_ms,
		.ran_ns = entry->ran_ns,
		.waited_ns = entry->waited_ns,
		.running = takt_sched_is_placed(entry),
		.preemptible = job->flags & TAKT_JOB_PREEMPTIBLE,
		.has_checkpoint = entry->checkpoint_ns > 0,
		.checkpoint_ns = entry->checkpoint_ns,
		.min_run_ns = job->min_runtime_ns > least ? job->min_runtime_ns : least,
		.has_prediction = job->estimate_ns > 0,
		.predicted_ns = job->estimate_ns,
		.has_deadline = job->deadline_ns > 0,
		.deadline_ns = job->deadline_ns,
		.outlook = takt_sched_outlook_find(sched, job->outlook),
	};
}

uint64_t takt_sched_stretched_ns(const struct takt_sched *sched, uint64_t estimate_ns)
{
	uint64_t permille = sched->config.safety_permille;

	if (estimate_ns > UINT64_MAX / 4 / permille)
		return UINT64_MAX / 4;
	return estimate_ns / 1000 * permille + estimate_ns % 1000 * permille / 1000;
}

uint64_t takt_sched_left_ns(const struct takt_sched_entry *entry)
{
	uint64_t done = entry->job.done_ns;

	return entry->job.estimate_ns > done ? entry->job.estimate_ns - done
					     : entry->job.estimate_ns;
}

/* A prediction that has not come true is doubled until it lies ahead: later plans then keep to it
 * for as long as it has proved wrong. */
uint64_t takt_sched_predicted_end_ns(const struct takt_sched *sched,
				     const struct takt_sched_entry *entry, uint64_t now_ns)
{
	uint64_t left = takt_sched_stretched_ns(sched, takt_sched_left_ns(entry));

	if (entry->job.estimate_ns == 0 || entry->since_ns == 0)
		return UINT64_MAX;
	if (left == 0)
		left = 1;
	while (entry->since_ns + left <= now_ns && left < UINT64_MAX / 4)
		left *= 2;
	return entry->since_ns + left;
}
