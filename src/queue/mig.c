/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG instances. The scheduler is told which there are, also when that changes, and a job gets some
 * of them, known by their UUIDs ever after.
 *
 * Where an instance lies on its GPU nobody needs to know; the scheduler tells instances of a GPU
 * apart by a place, so each gets one of its own, the largest first.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

enum {
	MODEL = 1 /* the one that a machine with MIG has */
};

static uint8_t profile_id(const struct takt_sched_model *model, const char *name)
{
	for (uint32_t i = 0; i < model->profile_count; i++)
		if (strcmp(model->profiles[i].name, name) == 0)
			return (uint8_t)(i + 1);
	return 0;
}

static int add_profile(struct takt_sched_model *model, const struct takt_queue_instance *instance,
		       struct takt_err *err)
{
	struct takt_sched_profile *profile = &model->profiles[model->profile_count];

	if (profile_id(model, instance->profile))
		return 0;
	if (model->profile_count == TAKT_SCHED_MAX_PROFILES)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "MIG instances of more than %d kinds on one machine",
				    TAKT_SCHED_MAX_PROFILES);
	takt_strcpy(profile->name, sizeof(profile->name), instance->profile);
	profile->size = 1;
	profile->slices = instance->slices;
	profile->mem_mib = instance->mem_mib;
	model->profile_count++;
	return 0;
}

static int32_t find_uuid(const struct takt_queue_mig *mig, const char *uuid, size_t len)
{
	for (uint32_t i = 0; i < mig->count; i++)
		if (strlen(mig->instances[i].uuid) == len &&
		    memcmp(mig->instances[i].uuid, uuid, len) == 0)
			return (int32_t)i;
	return -1;
}

/* How many instances of the GPU come before it: larger ones, and equal ones that are listed first.
 */
static uint32_t place_of(const struct takt_queue_mig *mig, uint32_t at)
{
	const struct takt_queue_instance *one = &mig->instances[at];
	uint32_t place = 0;

	for (uint32_t i = 0; i < mig->count; i++) {
		const struct takt_queue_instance *other = &mig->instances[i];

		if (other->gpu == one->gpu &&
		    (other->slices > one->slices || (other->slices == one->slices && i < at)))
			place++;
	}
	return place;
}

static int tell_model(struct takt_queue *queue, struct takt_err *err)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_MODEL, .model = &queue->mig.model};
	int rc = takt_sched_update(queue->sched, &event, err);

	for (uint32_t i = 0; rc == 0 && i < queue->mig.model.profile_count; i++) {
		event = (struct takt_sched_event){.kind = TAKT_SCHED_NAME,
						  .space = TAKT_SPACE_PROFILE,
						  .name_id = i + 1,
						  .name = queue->mig.model.profiles[i].name};
		rc = takt_sched_update(queue->sched, &event, err);
	}
	return rc;
}

static int copy_instances(struct takt_queue *queue, struct takt_err *err)
{
	struct takt_queue_mig *mig = &queue->mig;
	uint32_t count = queue->config.instance_count;

	mig->instances = takt_calloc(count + 1, sizeof(*mig->instances));
	if (!mig->instances)
		return takt_err_set(err, -ENOMEM, "MIG instances");
	if (count > 0)
		memcpy(mig->instances, queue->config.instances, count * sizeof(*mig->instances));
	mig->count = count;
	return 0;
}

int takt_queue_mig_init(struct takt_queue *queue, struct takt_err *err)
{
	struct takt_queue_mig *mig = &queue->mig;
	int rc;

	if (!queue->config.mig_gpus)
		return 0;
	mig->model = (struct takt_sched_model){.id = MODEL, .mem_mib = queue->config.gpu_mem_mib};
	takt_strcpy(mig->model.name, sizeof(mig->model.name), "GPU");
	rc = copy_instances(queue, err);
	for (uint32_t i = 0; rc == 0 && i < mig->count; i++)
		rc = add_profile(&mig->model, &mig->instances[i], err);
	for (uint32_t i = 0; rc == 0 && i < queue->config.kind_count; i++)
		(void)add_profile(&mig->model, &queue->config.kinds[i], NULL);
	for (uint32_t i = 0; rc == 0 && i < mig->count; i++) {
		uint32_t place = place_of(mig, i);

		if (place >= TAKT_SCHED_MIG_SLICES)
			return takt_err_set(err, -TAKT_E_LIMIT, "GPU %u has over %d MIG instances",
					    mig->instances[i].gpu, TAKT_SCHED_MIG_SLICES);
		mig->instances[i].place = place;
		mig->layout[mig->instances[i].gpu * TAKT_SCHED_MIG_SLICES + place] =
			profile_id(&mig->model, mig->instances[i].profile);
	}
	return rc < 0 ? rc : tell_model(queue, err);
}

static bool is_held(const struct takt_queue *queue, uint32_t instance)
{
	TAKT_VEC_EACH (holding, &queue->ledger)
		if (holding->instance == (int32_t)instance)
			return true;
	return false;
}

static bool is_among(const struct takt_queue_instance *one,
		     const struct takt_queue_instance *instances, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(instances[i].uuid, one->uuid) == 0 &&
		    strcmp(instances[i].profile, one->profile) == 0)
			return true;
	return false;
}

/* The lowest place from which its computing fits beside the others of the GPU; false: none. */
static bool find_room(const uint8_t layout[TAKT_SCHED_MIG_SLICES],
		      const struct takt_queue_instance *one, uint32_t *ret)
{
	for (uint32_t place = 0; place + one->slices < TAKT_SCHED_MIG_SLICES; place++)
		if (layout[place] == 0) {
			*ret = place;
			return true;
		}
	return false;
}

/* A gap in the list, or its end, which has room. */
static void put_instance(struct takt_queue_mig *mig, const struct takt_queue_instance *one)
{
	uint32_t at = 0;

	while (at < mig->count && mig->instances[at].uuid[0])
		at++;
	mig->instances[at] = *one;
	mig->count += at == mig->count;
}

/* Those that stay, by what the scheduler calls them; the rest is struck from the list. */
static bool keep_instances(struct takt_queue *queue, uint32_t gpu,
			   const struct takt_queue_instance *instances, uint32_t count,
			   uint8_t layout[TAKT_SCHED_MIG_SLICES])
{
	struct takt_queue_mig *mig = &queue->mig;
	bool held = false;

	for (uint32_t i = 0; i < mig->count; i++) {
		struct takt_queue_instance *known = &mig->instances[i];
		bool there;

		if (known->gpu != gpu || !known->uuid[0])
			continue;
		there = is_among(known, instances, count);
		known->gone = !there;
		held = held || (!there && is_held(queue, i));
		if (there || is_held(queue, i))
			layout[known->place] = profile_id(&mig->model, known->profile);
		else
			known->uuid[0] = '\0';
	}
	return held;
}

/* The largest of those that are new first, as at the start. */
static int add_instances(struct takt_queue *queue, uint32_t gpu,
			 const struct takt_queue_instance *instances, uint32_t count,
			 uint8_t layout[TAKT_SCHED_MIG_SLICES], struct takt_err *err)
{
	struct takt_queue_mig *mig = &queue->mig;
	int rc = 0;

	for (uint32_t slices = TAKT_SCHED_MIG_SLICES; slices > 0; slices--)
		for (uint32_t i = 0; i < count; i++) {
			struct takt_queue_instance one = instances[i];
			uint8_t profile = profile_id(&mig->model, one.profile);

			if (one.slices != slices || find_uuid(mig, one.uuid, strlen(one.uuid)) >= 0)
				continue;
			one.gpu = gpu;
			if (!profile || !find_room(layout, &one, &one.place)) {
				rc = takt_err_set(err, -TAKT_E_LIMIT,
						  "MIG instance %s of GPU %u is not given to jobs "
						  "before takt starts again",
						  one.profile, gpu);
				continue;
			}
			layout[one.place] = profile;
			put_instance(mig, &one);
		}
	return rc;
}

static int tell_layout(struct takt_queue *queue, uint32_t gpu, struct takt_err *err)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_GPU_LAYOUT,
		.node_id = TAKT_QUEUE_NODE,
		.gpu = gpu,
		.layout = &queue->mig.layout[gpu * TAKT_SCHED_MIG_SLICES],
	};

	queue->version++;
	queue->dirty = true;
	return takt_sched_update(queue->sched, &event, err);
}

void takt_queue_mig_left(struct takt_queue *queue, int32_t at)
{
	struct takt_queue_instance *one = at < 0 ? NULL : &queue->mig.instances[at];

	if (!one || !one->gone || is_held(queue, (uint32_t)at))
		return;
	one->uuid[0] = '\0';
	queue->mig.layout[one->gpu * TAKT_SCHED_MIG_SLICES + one->place] = 0;
	(void)tell_layout(queue, one->gpu, NULL);
}

bool takt_queue_mig_is_gone(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	TAKT_VEC_EACH (holding, &queue->ledger)
		if (holding->job_id == job->row.id && !holding->left && holding->instance >= 0 &&
		    queue->mig.instances[holding->instance].gone)
			return true;
	return false;
}

void takt_queue_mig_close(struct takt_queue *queue, uint64_t gpus)
{
	if (queue->closed_gpus == gpus)
		return;
	queue->closed_gpus = gpus;
	queue->dirty = true;
}

int takt_queue_mig_change(struct takt_queue *queue, uint32_t gpu,
			  const struct takt_queue_instance *instances, uint32_t count,
			  bool *ret_held, struct takt_err *err)
{
	struct takt_queue_mig *mig = &queue->mig;
	uint8_t layout[TAKT_SCHED_MIG_SLICES] = {0};
	struct takt_queue_instance *grown;
	int rc, told;

	*ret_held = false;
	if (gpu >= queue->config.gpu_count || !(queue->config.mig_gpus >> gpu & 1))
		return takt_err_set(err, -EINVAL, "GPU %u was not in MIG mode at the start", gpu);
	grown = takt_reallocarray(mig->instances, mig->count + count + 1, sizeof(*grown));
	if (!grown)
		return takt_err_set(err, -ENOMEM, "MIG instances");
	mig->instances = grown;
	*ret_held = keep_instances(queue, gpu, instances, count, layout);
	rc = add_instances(queue, gpu, instances, count, layout, err);
	memcpy(&mig->layout[gpu * TAKT_SCHED_MIG_SLICES], layout, sizeof(layout));
	told = tell_layout(queue, gpu, err);
	return told < 0 ? told : rc;
}

void takt_queue_mig_fini(struct takt_queue *queue)
{
	takt_free(queue->mig.instances);
}

void takt_queue_mig_node(const struct takt_queue *queue, struct takt_sched_node *node)
{
	if (!queue->config.mig_gpus)
		return;
	node->model = MODEL;
	node->mig_cut = queue->config.mig_gpus;
	node->mig_layout = queue->mig.layout;
}

uint8_t takt_queue_mig_profile(const struct takt_queue *queue, const char *name)
{
	return profile_id(&queue->mig.model, name);
}

static void list_profiles(const struct takt_queue_mig *mig, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < mig->model.profile_count && used < size; i++) {
		uint32_t count = 0;
		int n;

		for (uint32_t k = 0; k < mig->count; k++)
			count +=
				mig->instances[k].uuid[0] &&
				strcmp(mig->instances[k].profile, mig->model.profiles[i].name) == 0;
		if (count == 0)
			continue;
		n = snprintf(buf + used, size - used, "%s%u of %s", used ? ", " : "", count,
			     mig->model.profiles[i].name);
		used += n > 0 ? (size_t)n : 0;
	}
}

int takt_queue_mig_possible(const struct takt_queue *queue, const struct takt_jobspec *spec,
			    struct takt_err *err)
{
	const struct takt_queue_mig *mig = &queue->mig;
	uint32_t count = 0;
	char there[200];

	for (uint32_t i = 0; i < mig->count; i++)
		count += mig->instances[i].uuid[0] &&
			 strcmp(mig->instances[i].profile, spec->mig) == 0 &&
			 (!spec->gpu_indices || spec->gpu_indices >> mig->instances[i].gpu & 1);
	if (spec->gpus <= count)
		return 0;
	list_profiles(mig, there, sizeof(there));
	return takt_err_set(
		err, -TAKT_E_IMPOSSIBLE, "asks for %u MIG instance%s of %s%s; this machine has %s",
		spec->gpus, spec->gpus == 1 ? "" : "s", spec->mig,
		spec->gpu_indices ? " on the GPUs that it names" : "", there[0] ? there : "none");
}

static int32_t find_place(const struct takt_queue_mig *mig,
			  const struct takt_plan_placement *placement)
{
	for (uint32_t i = 0; i < mig->count; i++)
		if (mig->instances[i].uuid[0] &&
		    placement->gpu_mask == 1ull << mig->instances[i].gpu &&
		    placement->mig_start == mig->instances[i].place)
			return (int32_t)i;
	return -1;
}

int takt_queue_mig_place(const struct takt_queue *queue, struct takt_queue_job *job,
			 const struct takt_plan_placement *placements, uint32_t count)
{
	struct takt_str text = TAKT_STR(64 * 1024);
	int rc = 0;

	for (uint32_t i = 0; i < count; i++) {
		int32_t at = find_place(&queue->mig, &placements[i]);

		rc = at < 0 ? -EINVAL : rc;
		if (at >= 0)
			takt_str_addf(&text, "%s%s", i ? "," : "", queue->mig.instances[at].uuid);
	}
	takt_free(job->row.mig);
	job->row.mig = rc < 0 ? NULL : takt_str_take(&text);
	takt_str_fini(&text);
	return rc < 0 ? rc : job->row.mig ? 0 : -ENOMEM;
}

int takt_queue_mig_held(const struct takt_queue *queue, const struct takt_queue_job *job,
			int32_t ret_instances[TAKT_QUEUE_MAX_INSTANCES], uint32_t *ret_count)
{
	const char *uuid = job->row.mig ? job->row.mig : "";

	for (*ret_count = 0; *uuid; ++*ret_count) {
		size_t len = strcspn(uuid, ",");
		int32_t at = find_uuid(&queue->mig, uuid, len);

		if (at < 0 || *ret_count == TAKT_QUEUE_MAX_INSTANCES)
			return -EINVAL;
		ret_instances[*ret_count] = at;
		uuid += len + (uuid[len] == ',');
	}
	return 0;
}

struct takt_sched_slot takt_queue_mig_slot(const struct takt_queue *queue, int32_t instance)
{
	const struct takt_queue_instance *at = &queue->mig.instances[instance];

	return (struct takt_sched_slot){.node_id = TAKT_QUEUE_NODE,
					.mig_start = (uint8_t)at->place,
					.gpu_mask = 1ull << at->gpu};
}
