/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of jobs and what has been seen of each. */
#include "model/runtime.h"

#include <errno.h>

#include "base/mem.h"
#include "model/runtime_state.h"

enum {
	MAX_GROUPS_DEFAULT = 20000,
	MEAN_OF = 20,
	SEEN_ENOUGH = 3,
	SEEN_MOST = 1000000,
	FORGET_SHIFT = 5,
	NS_A_MS = 1000000,
};

int takt_runtime_new(const struct takt_runtime_config *config, struct takt_runtime **ret,
		     struct takt_err *err)
{
	struct takt_runtime *model = takt_zalloc(sizeof(*model));
	size_t max = config->max_groups ? config->max_groups : MAX_GROUPS_DEFAULT;

	if (!model)
		return takt_err_set(err, -ENOMEM, "run times");
	model->groups.max = max;
	model->kinds.max = max;
	model->by_key = TAKT_MAP_U64(max);
	model->kind_of = TAKT_MAP_U64(max);
	*ret = model;
	return 0;
}

void takt_runtime_free(struct takt_runtime *model)
{
	if (!model)
		return;
	TAKT_VEC_EACH (group, &model->groups)
		takt_free(*group);
	takt_vec_fini(&model->groups);
	takt_vec_fini(&model->kinds);
	takt_map_fini(&model->by_key);
	takt_map_fini(&model->kind_of);
	takt_free(model);
}

/* Doublings of the number of GPUs, rounded up. */
static uint64_t size_of(uint32_t gpus)
{
	uint64_t size = 0;

	while (size < 31 && (UINT32_C(1) << size) < gpus)
		size++;
	return size;
}

/* Mixes a number into a key (the finaliser of splitmix64). */
static uint64_t mix(uint64_t key, uint64_t value)
{
	key = (key ^ value) + UINT64_C(0x9e3779b97f4a7c15);
	key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
	return key ^ key >> 31;
}

/* Keys of the chain from all jobs to the kind; returns how many there are. */
static uint32_t keys_of(const struct takt_runtime_job *job, uint64_t *ret_keys)
{
	uint64_t size = size_of(job->gpus);

	ret_keys[0] = mix(0, 0);
	ret_keys[1] = mix(ret_keys[0], size);
	ret_keys[2] = mix(mix(1, 0), job->owner);
	ret_keys[3] = mix(ret_keys[2], size);
	ret_keys[4] = mix(ret_keys[3], job->name);
	return job->name ? RUNTIME_LEVELS : RUNTIME_LEVELS - 1;
}

/* The group of that key; made if there is room. NULL: no room. */
static int group_of(struct takt_runtime *model, uint64_t key, struct runtime_group **ret,
		    struct takt_err *err)
{
	struct runtime_group *group = takt_map_u64_ptr(&model->by_key, key);
	int rc;

	*ret = group;
	if (group || model->groups.len == model->groups.max)
		return 0;
	group = takt_zalloc(sizeof(*group));
	rc = group ? takt_vec_reserve(&model->groups, 1) : -ENOMEM;
	if (rc == 0)
		rc = takt_map_u64_put_ptr(&model->by_key, key, group);
	if (rc < 0) {
		takt_free(group);
		return takt_err_set(err, rc, "run times of a group of jobs");
	}
	*ret = group;
	return takt_vec_push(&model->groups, group);
}

static int add_kind(struct takt_runtime *model, const uint64_t *keys, uint32_t levels,
		    struct takt_err *err)
{
	struct runtime_kind kind = {0};
	int rc = takt_vec_reserve(&model->kinds, 1);

	if (rc < 0)
		return takt_err_set(err, rc, "run times of a kind of jobs");
	for (uint32_t i = 0; i < levels; i++) {
		rc = group_of(model, keys[i], &kind.groups[i], err);
		if (rc < 0)
			return rc;
	}
	rc = takt_map_u64_put(&model->kind_of, keys[levels - 1],
			      (union takt_map_value){.u64 = model->kinds.len});
	if (rc < 0)
		return takt_err_set(err, rc, "run times of a kind of jobs");
	return takt_vec_push(&model->kinds, kind);
}

int takt_runtime_kind(struct takt_runtime *model, const struct takt_runtime_job *job,
		      uint32_t *ret_kind, struct takt_err *err)
{
	uint64_t keys[RUNTIME_LEVELS];
	uint32_t levels = keys_of(job, keys);
	const union takt_map_value *known;
	int rc = 0;

	/* Beyond the limit a job is one of its owner, or one of all. */
	while (levels > 1 && model->kinds.len == model->kinds.max &&
	       !takt_map_u64_get(&model->kind_of, keys[levels - 1]))
		levels--;
	known = takt_map_u64_get(&model->kind_of, keys[levels - 1]);
	if (!known && model->kinds.len < model->kinds.max)
		rc = add_kind(model, keys, levels, err);
	if (rc < 0)
		return rc;
	known = takt_map_u64_get(&model->kind_of, keys[levels - 1]);
	*ret_kind = known ? (uint32_t)known->u64 : 0;
	return 0;
}

uint32_t takt_runtime_kinds(const struct takt_runtime *model)
{
	return (uint32_t)model->kinds.len;
}

uint64_t takt_runtime_step_ms(uint32_t step)
{
	const uint64_t first_ms = 30000;

	if (step == 0)
		return 0;
	/* 30 s, then by the square root of 2, which is 46341 / 32768. */
	return (step - 1) % 2 ? (first_ms * 46341 >> 15) << (step - 1) / 2
			      : first_ms << (step - 1) / 2;
}

uint32_t takt_runtime_step(uint64_t ran_ms)
{
	uint32_t step = 0;

	while (step + 1 < TAKT_RUNTIME_STEPS && takt_runtime_step_ms(step + 1) <= ran_ms)
		step++;
	return step;
}

/* *step is one more than the last step that was counted. */
static void count_up_to(const struct runtime_kind *kind, uint32_t *step, uint32_t last)
{
	for (; *step <= last; (*step)++)
		for (uint32_t i = 0; i < RUNTIME_LEVELS; i++)
			if (kind->groups[i]) {
				kind->groups[i]->came[*step] += RUNTIME_ONE;
				kind->groups[i]->told++;
			}
}

void takt_runtime_reached(struct takt_runtime *model, uint32_t kind, uint32_t *step,
			  uint64_t ran_ns)
{
	count_up_to(&model->kinds.at[kind], step, takt_runtime_step(ran_ns / NS_A_MS));
}

static void forget(struct runtime_group *group)
{
	for (uint32_t i = 0; i < TAKT_RUNTIME_STEPS; i++) {
		group->came[i] -= group->came[i] >> FORGET_SHIFT;
		group->ended[i] -= group->ended[i] >> FORGET_SHIFT;
	}
}

/* Moves the average of about MEAN_OF values, of `seen` ones at first, towards a new one. */
static uint64_t roll(uint64_t mean, uint64_t value, uint32_t seen)
{
	uint64_t parts = seen < MEAN_OF ? seen + 1 : MEAN_OF;

	return value > mean ? mean + (value - mean) / parts : mean - (mean - value) / parts;
}

static void learn(struct runtime_group *group, uint64_t ran_ms)
{
	group->mean_ms = roll(group->mean_ms, ran_ms, group->seen);
	if (group->seen < SEEN_MOST)
		group->seen++;
	group->told++;
}

static void learn_error(struct runtime_group *group, uint64_t ran_ms, uint64_t predicted_ms)
{
	uint64_t error_ms = ran_ms > predicted_ms ? ran_ms - predicted_ms : predicted_ms - ran_ms;

	group->error_ms = roll(group->error_ms, error_ms, group->tested);
	if (group->tested < SEEN_MOST)
		group->tested++;
}

void takt_runtime_ended(struct takt_runtime *model, uint32_t kind_id, uint32_t *step,
			uint64_t ran_ns, uint64_t predicted_ns)
{
	const struct runtime_kind *kind = &model->kinds.at[kind_id];
	uint32_t last = takt_runtime_step(ran_ns / NS_A_MS);

	count_up_to(kind, step, last);
	for (uint32_t i = 0; i < RUNTIME_LEVELS; i++) {
		struct runtime_group *group = kind->groups[i];

		if (!group)
			continue;
		group->ended[last] += RUNTIME_ONE;
		learn(group, ran_ns / NS_A_MS);
		if (predicted_ns)
			learn_error(group, ran_ns / NS_A_MS, predicted_ns / NS_A_MS);
		if (i >= RUNTIME_FORGETS)
			forget(group);
	}
}

/* The narrowest group that has seen enough; sizes of all owners together say little. */
static const struct runtime_group *telling(const struct runtime_kind *kind)
{
	for (uint32_t i = RUNTIME_LEVELS; i-- > 0;)
		if (i != RUNTIME_SIZES && kind->groups[i] && kind->groups[i]->seen >= SEEN_ENOUGH)
			return kind->groups[i];
	return NULL;
}

static const struct runtime_group *of_kind(const struct runtime_kind *kind)
{
	uint32_t level = RUNTIME_LEVELS - 1;

	while (!kind->groups[level] && level > 0)
		level--;
	return kind->groups[level];
}

bool takt_runtime_predict(const struct takt_runtime *model, uint32_t kind,
			  struct takt_runtime_prediction *ret)
{
	const struct runtime_group *group = telling(&model->kinds.at[kind]);

	if (!group)
		return false;
	*ret = (struct takt_runtime_prediction){.mean_ns = group->mean_ms * NS_A_MS,
						.error_ns = group->error_ms * NS_A_MS,
						.has_error = group->tested > 0,
						.seen = group->seen,
						.alike = group == of_kind(&model->kinds.at[kind])};
	return true;
}

uint64_t takt_runtime_told(const struct takt_runtime *model, uint32_t kind)
{
	uint64_t told = 0;

	for (uint32_t i = 0; i < RUNTIME_LEVELS; i++)
		if (model->kinds.at[kind].groups[i])
			told += model->kinds.at[kind].groups[i]->told;
	return told;
}
