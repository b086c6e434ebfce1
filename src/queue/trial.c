/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What would become of jobs: they are told to the scheduler, looked at in a plan that nobody
 * carries out, and taken back. The next pump plans anew. Of an array its first jobs are told, by
 * which the others can be judged; what is expected of them is said in runs of the same.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/str.h"
#include "queue/queue_impl.h"

enum {
	LOOKED_AT = 256,     /* of an array */
	ALL_LOOKED_AT = 4096 /* of all arrays together, but one of each */
};

/* One job that is told. */
struct member {
	uint32_t spec, element; /* of which description, which of its jobs */
	uint32_t place;		/* among all that would be handed in */
	uint64_t gpu_mask;
	bool starts;
	const struct takt_plan_wait *wait; /* NULL = the plan has no word on it */
};

struct trial {
	struct takt_queue *queue;
	uid_t uid;
	struct takt_jobspecs *specs;
	struct member *members; /* owned, by place */
	uint32_t count, told;
};

static uint32_t looked_at(const struct takt_jobspecs *specs, uint32_t spec)
{
	uint32_t jobs = takt_queue_jobs_of(&specs->jobs[spec]), most = ALL_LOOKED_AT / specs->count;

	most = most > LOOKED_AT ? LOOKED_AT : most ? most : 1;
	return jobs < most ? jobs : most;
}

static int list_members(struct trial *trial, struct takt_err *err)
{
	uint32_t room = 0, place = 0;

	for (uint32_t i = 0; i < trial->specs->count; i++)
		room += looked_at(trial->specs, i);
	trial->members = takt_calloc(room, sizeof(*trial->members));
	if (!trial->members)
		return takt_err_set(err, -ENOMEM, "the jobs to look at");
	for (uint32_t i = 0; i < trial->specs->count; i++) {
		for (uint32_t k = 0; k < looked_at(trial->specs, i); k++)
			trial->members[trial->count++] =
				(struct member){.spec = i, .element = k, .place = place + k};
		place += takt_queue_jobs_of(&trial->specs->jobs[i]);
	}
	return 0;
}

static struct takt_queue_job as_job(const struct trial *trial, const struct member *member)
{
	struct takt_queue_job job = {.spec = trial->specs->jobs[member->spec]};
	struct takt_jobspec *spec = &job.spec;

	job.row.id = trial->queue->next_id + member->place;
	job.row.submit_seq = trial->queue->next_seq + member->place;
	job.row.uid = trial->uid;
	job.row.priority = spec->priority;
	job.row.held = spec->held ? TAKT_HOLD_OWNER : TAKT_HOLD_NONE;
	if (spec->has_array)
		spec->array_id = job.row.id - member->element;
	spec->has_array = false;
	return job;
}

static int tell_one(struct trial *trial, const struct member *member, struct takt_wall now,
		    struct takt_queue_trial *ret, struct takt_err *err)
{
	struct takt_queue_job job = as_job(trial, member);
	int rc;

	job.row.submitted = now;
	rc = takt_queue_find_tenant(trial->queue, &job, true, err);
	if (rc == 0)
		rc = takt_queue_estimate(trial->queue, &job, err);
	if (rc == 0)
		rc = takt_queue_tell(trial->queue, TAKT_SCHED_JOB_ADD, &job, err);
	ret[member->spec].estimate = job.estimate;
	return rc;
}

/* Those that come after others first. */
static void take_back(struct trial *trial)
{
	while (trial->told > 0) {
		struct takt_queue_job job = as_job(trial, &trial->members[--trial->told]);

		(void)takt_queue_tell(trial->queue, TAKT_SCHED_JOB_ENDED, &job, NULL);
	}
}

static struct member *member_of(const struct trial *trial, uint64_t job_id)
{
	uint64_t place = job_id - trial->queue->next_id;
	uint32_t low = 0, high = trial->count;

	while (job_id >= trial->queue->next_id && low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (trial->members[mid].place == place)
			return &trial->members[mid];
		if (trial->members[mid].place < place)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static void read_plan(struct trial *trial, const struct takt_plan *plan)
{
	struct member *member;

	for (size_t i = 0; i < plan->placement_count; i++) {
		member = member_of(trial, plan->placements[i].job_id);
		if (!member)
			continue;
		member->starts = true;
		member->gpu_mask |= plan->placements[i].gpu_mask;
	}
	for (size_t i = 0; i < plan->wait_count; i++) {
		member = member_of(trial, plan->waits[i].job_id);
		if (member)
			member->wait = &plan->waits[i];
	}
}

static void read_text(const struct takt_plan_wait *wait, char *ret, size_t size)
{
	struct takt_str text = TAKT_STR(size - 1);

	if (takt_why_text(wait, &text) == 0)
		takt_strcpy(ret, size, takt_str_text(&text));
	takt_str_fini(&text);
}

static struct takt_queue_start start_of(const struct trial *trial, const struct member *member)
{
	struct takt_queue_start start;

	return takt_queue_start_foretold(trial->queue, member->wait, &start)
		       ? start
		       : (struct takt_queue_start){.has_range = false};
}

static void fill_job(const struct trial *trial, const struct member *member,
		     struct takt_queue_trial *ret)
{
	const struct takt_plan_wait *wait = member->wait;

	ret->starts = member->starts;
	ret->gpu_mask = member->gpu_mask;
	if (!wait)
		return;
	ret->why = wait->why;
	ret->ahead = wait->ahead;
	ret->start = start_of(trial, member);
	read_text(wait, ret->text, sizeof(ret->text));
}

static bool is_alike(const struct trial *trial, const struct takt_queue_trial_run *run,
		     const struct member *member)
{
	const struct takt_plan_wait *wait = member->wait;

	if (run->starts || member->starts)
		return run->starts && member->starts;
	return wait ? run->why == wait->why && run->start.at.ns == start_of(trial, member).at.ns
		    : run->why == TAKT_WHY_NONE;
}

static void begin_run(const struct trial *trial, const struct member *member,
		      struct takt_queue_trial_run *ret)
{
	ret->first = trial->specs->jobs[member->spec].array_first + member->element;
	ret->starts = member->starts;
	if (!member->wait)
		return;
	ret->why = member->wait->why;
	ret->start = start_of(trial, member);
	read_text(member->wait, ret->text, sizeof(ret->text));
}

static void fill_run(const struct trial *trial, const struct member *member,
		     struct takt_queue_trial *ret)
{
	struct takt_queue_trial_run *run = ret->run_count ? &ret->runs[ret->run_count - 1] : NULL;

	if (ret->more > 0 || (run && !is_alike(trial, run, member))) {
		if (ret->more > 0 || ret->run_count == TAKT_TRIAL_RUNS) {
			ret->more++;
			return;
		}
		run = NULL;
	}
	if (!run) {
		run = &ret->runs[ret->run_count++];
		begin_run(trial, member, run);
	}
	run->last = trial->specs->jobs[member->spec].array_first + member->element;
	run->gpu_mask |= member->gpu_mask;
}

static void fill(const struct trial *trial, struct takt_queue_trial *ret)
{
	for (uint32_t i = 0; i < trial->count; i++) {
		const struct member *member = &trial->members[i];

		if (member->element == 0)
			fill_job(trial, member, &ret[member->spec]);
		if (trial->specs->jobs[member->spec].has_array)
			fill_run(trial, member, &ret[member->spec]);
	}
	for (uint32_t i = 0; i < trial->specs->count; i++)
		ret[i].more +=
			takt_queue_jobs_of(&trial->specs->jobs[i]) - looked_at(trial->specs, i);
}

static int look(struct trial *trial, struct takt_wall now, struct takt_queue_trial *ret,
		struct takt_err *err)
{
	struct takt_plan plan = {0};
	int rc = takt_sched_run(trial->queue->sched, takt_queue_sched_ns(trial->queue, now), 0,
				&plan, err);

	if (rc == 0) {
		read_plan(trial, &plan);
		fill(trial, ret);
	}
	takt_plan_fini(&plan);
	return rc;
}

int takt_queue_try(struct takt_queue *queue, uid_t uid, struct takt_jobspecs *specs,
		   struct takt_wall now, struct takt_queue_trial *ret, struct takt_err *err)
{
	struct trial trial = {.queue = queue, .uid = uid, .specs = specs};
	size_t bytes = 0;
	int rc = takt_queue_check_all(queue, specs, err);

	for (uint32_t i = 0; i < specs->count; i++)
		ret[i] = (struct takt_queue_trial){.starts = false};
	if (rc == 0)
		rc = takt_queue_check_limits_of(queue, uid, specs, &bytes, err);
	if (rc == 0)
		rc = takt_queue_resolve_names(specs, queue->next_id, err);
	if (rc == 0)
		rc = list_members(&trial, err);
	while (rc == 0 && trial.told < trial.count) {
		rc = tell_one(&trial, &trial.members[trial.told], now, ret, err);
		trial.told += rc == 0;
	}
	if (rc == 0)
		rc = look(&trial, now, ret, err);
	take_back(&trial);
	takt_free(trial.members);
	return rc;
}
