/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: which job holds how much of which GPU. Several hold shares of one.
 *
 * Whole GPUs drain with the scheduler: it gives them to nobody until they are clean. A share does
 * not, since its GPU goes on with others; so when a job leaves one, a stand-in takes its place with
 * the scheduler, a job that is placed and does nothing, and goes when the driver lists no process
 * of the job that has left. Nothing of a GPU is ever free before it is known to be.
 */
#include <errno.h>

#include "queue/queue_impl.h"

static const uint64_t first_stand_in = 1ull
				       << 52; /* no job has such an id; JSON keeps it exactly */

const struct takt_queue_holding *takt_queue_holdings(const struct takt_queue *queue,
						     size_t *ret_count)
{
	*ret_count = queue->ledger.len;
	return queue->ledger.at;
}

const char *takt_queue_instance_uuid(const struct takt_queue *queue, int32_t instance)
{
	return queue->mig.instances[instance].uuid;
}

int takt_ledger_reserve(struct takt_queue *queue, const struct takt_queue_job *job)
{
	return takt_vec_reserve(&queue->ledger, job->spec.gpus);
}

static void add(struct takt_queue *queue, const struct takt_queue_job *job, uint32_t gpu,
		int32_t instance)
{
	(void)takt_vec_push(&queue->ledger, ((struct takt_queue_holding){
						    .job_id = job->row.id,
						    .attempt = job->row.attempt,
						    .gpu = gpu,
						    .milli = job->row.share_milli,
						    .mem_mib = job->row.mem_held_mib,
						    .instance = instance,
					    }));
}

void takt_ledger_take(struct takt_queue *queue, const struct takt_queue_job *job)
{
	int32_t instances[TAKT_QUEUE_MAX_INSTANCES];
	uint32_t count = 0;

	(void)takt_queue_mig_held(queue, job, instances, &count);
	for (uint32_t i = 0; i < count; i++)
		add(queue, job, queue->mig.instances[instances[i]].gpu, instances[i]);
	for (uint64_t left = count ? 0 : job->row.gpu_mask; left; left &= left - 1)
		add(queue, job, (uint32_t)__builtin_ctzll(left), -1);
}

void takt_ledger_name(struct takt_queue *queue, const struct takt_queue_job *job)
{
	TAKT_VEC_EACH (holding, &queue->ledger)
		if (holding->job_id == job->row.id && !holding->left)
			holding->attempt = job->row.attempt;
}

static struct takt_sched_slot slot_of(const struct takt_queue *queue,
				      const struct takt_queue_holding *holding)
{
	if (holding->instance >= 0)
		return takt_queue_mig_slot(queue, holding->instance);
	return (struct takt_sched_slot){.node_id = TAKT_QUEUE_NODE,
					.milli = (uint16_t)holding->milli,
					.gpu_mask = 1ull << holding->gpu};
}

static struct takt_request request_of(const struct takt_queue *queue,
				      const struct takt_queue_holding *holding)
{
	if (holding->instance >= 0)
		return (struct takt_request){
			.mig_profile = takt_queue_mig_profile(
				queue, queue->mig.instances[holding->instance].profile)};
	return (struct takt_request){.milli = (uint16_t)holding->milli,
				     .dev_mem_mib = holding->mem_mib};
}

static int keep(struct takt_queue *queue, struct takt_queue_holding *holding)
{
	uint64_t id = first_stand_in + queue->stand_ins;
	struct takt_sched_slot slot = slot_of(queue, holding);
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_ADD,
		.job_id = id,
		.job = {.id = id,
			.submit_seq = id,
			.gpus = 1,
			.task = request_of(queue, holding),
			.flags = TAKT_JOB_CLEAN_END},
		.slots = &slot,
		.slot_count = 1,
	};
	int rc = takt_sched_update(queue->sched, &event, NULL);

	if (rc < 0)
		return rc;
	queue->stand_ins++;
	event.kind = TAKT_SCHED_JOB_PLACED;
	rc = takt_sched_update(queue->sched, &event, NULL);
	if (rc == 0) {
		holding->stand_in = id;
		return 0;
	}
	event.kind = TAKT_SCHED_JOB_ENDED;
	(void)takt_sched_update(queue->sched, &event, NULL);
	return rc;
}

static bool is_whole(const struct takt_queue_holding *holding)
{
	return holding->milli == TAKT_REQUEST_WHOLE;
}

int takt_ledger_keep(struct takt_queue *queue)
{
	int rc = 0;

	TAKT_VEC_EACH (holding, &queue->ledger)
		if (rc == 0 && holding->left && !is_whole(holding) && !holding->stand_in)
			rc = keep(queue, holding);
	return rc;
}

void takt_ledger_leave(struct takt_queue *queue, uint64_t job_id)
{
	TAKT_VEC_EACH (holding, &queue->ledger)
		if (holding->job_id == job_id)
			holding->left = true;
	(void)takt_ledger_keep(queue); /* again before the next plan */
}

static void end_stand_in(struct takt_queue *queue, uint64_t id)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ENDED, .job_id = id};

	if (id)
		(void)takt_sched_update(queue->sched, &event, NULL);
}

int takt_ledger_tell_drained(struct takt_queue *queue, uint32_t gpu, struct takt_err *err)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_GPU_DRAINED, .node_id = TAKT_QUEUE_NODE, .gpu = gpu};

	return takt_sched_update(queue->sched, &event, err);
}

static bool is_held(const struct takt_queue *queue, uint32_t gpu)
{
	TAKT_VEC_EACH (holding, &queue->ledger)
		if (holding->gpu == gpu)
			return true;
	return false;
}

/* Where one stood still for another each has held the GPU whole: it drains with the last. */
static int strike(struct takt_queue *queue, size_t at, struct takt_err *err)
{
	struct takt_queue_holding was = queue->ledger.at[at];

	queue->dirty = true;
	takt_vec_remove(&queue->ledger, at);
	if (!is_whole(&was)) {
		end_stand_in(queue, was.stand_in);
		takt_queue_mig_left(queue, was.instance);
		return 0;
	}
	if (takt_queue_still_has(queue, was.gpu) || is_held(queue, was.gpu))
		return 0;
	return takt_ledger_tell_drained(queue, was.gpu, err);
}

void takt_ledger_unused(struct takt_queue *queue, const struct takt_queue_job *job)
{
	for (size_t i = queue->ledger.len; i-- > 0;) {
		const struct takt_queue_holding *holding = &queue->ledger.at[i];

		if (holding->job_id == job->row.id && holding->attempt == job->row.attempt &&
		    holding->left && !is_whole(holding))
			(void)strike(queue, i, NULL);
	}
}

int takt_queue_gpu_clean(struct takt_queue *queue, uint32_t gpu, struct takt_err *err)
{
	bool any = false;
	int rc = 0;

	for (size_t i = queue->ledger.len; i-- > 0;) {
		if (queue->ledger.at[i].gpu != gpu || !queue->ledger.at[i].left)
			continue;
		any = true;
		rc = strike(queue, i, err);
	}
	return any ? rc
		   : takt_ledger_tell_drained(queue, gpu, err); /* refuses what does not drain */
}

int takt_queue_holding_gone(struct takt_queue *queue, const struct takt_queue_holding *holding,
			    struct takt_err *err)
{
	for (size_t i = queue->ledger.len; i-- > 0;) {
		const struct takt_queue_holding *known = &queue->ledger.at[i];

		if (known->left && known->gpu == holding->gpu && known->job_id == holding->job_id &&
		    known->attempt == holding->attempt)
			return strike(queue, i, err);
	}
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "job %llu has left nothing on GPU %u",
			    (unsigned long long)holding->job_id, holding->gpu);
}

int takt_queue_gpu_left(struct takt_queue *queue, uint32_t gpu, uint64_t job_id, uint32_t attempt,
			struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_GPU_DRAINING,
					 .node_id = TAKT_QUEUE_NODE,
					 .gpu = gpu,
					 .job_id = job_id};
	struct takt_queue_holding holding = {.job_id = job_id,
					     .attempt = attempt,
					     .gpu = gpu,
					     .milli = TAKT_REQUEST_WHOLE,
					     .instance = -1,
					     .left = true};
	int rc = takt_vec_reserve(&queue->ledger, 1);

	if (rc < 0)
		return takt_err_set(err, rc, "what job %llu has left", (unsigned long long)job_id);
	rc = takt_sched_update(queue->sched, &event, err);
	if (rc == 0)
		(void)takt_vec_push(&queue->ledger, holding);
	queue->dirty = true;
	return rc;
}

/* Of a GPU with shares: a job that is there, or else one that has left. */
static const struct takt_queue_holding *share_on(const struct takt_queue *queue, uint32_t gpu)
{
	const struct takt_queue_holding *found = NULL;

	for (size_t i = 0; i < queue->ledger.len; i++) {
		const struct takt_queue_holding *holding = &queue->ledger.at[i];

		if (holding->gpu == gpu && !is_whole(holding) &&
		    (!found || (found->left && !holding->left)))
			found = holding;
	}
	return found;
}

enum takt_gpu_state takt_queue_gpu(const struct takt_queue *queue, uint32_t gpu,
				   uint64_t *ret_job_id)
{
	const struct takt_queue_holding *share = share_on(queue, gpu);
	enum takt_gpu_state state = TAKT_GPU_LOST;
	bool outside;

	*ret_job_id = 0;
	(void)takt_sched_gpu(queue->sched, TAKT_QUEUE_NODE, gpu, &state, &outside, ret_job_id);
	if (!share)
		return state;
	*ret_job_id = share->job_id;
	return state == TAKT_GPU_RUNNING && share->left ? TAKT_GPU_DRAINING : state;
}

bool takt_queue_gpu_contested(const struct takt_queue *queue, uint32_t gpu)
{
	return queue->contested_gpus >> gpu & 1;
}

uint64_t takt_queue_placeless(const struct takt_queue *queue, uint64_t *ret_gpus)
{
	uint64_t first = 0;

	*ret_gpus = 0;
	if (!queue->contested_gpus)
		return 0;
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		const struct takt_queue_job *job = entry->value.ptr;

		if (!job->placeless || (first && first < job->row.id))
			continue;
		first = job->row.id;
		*ret_gpus = job->row.gpu_mask;
	}
	return first;
}
