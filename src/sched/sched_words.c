/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that other facts are told in: accelerator models, names, selectors, speeds of work. Each is
 * kept as told, for the snapshot, and told to the cluster in its own form.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "sched/sched_update.h"

static int check_text(const char *text, size_t size, const char *field, struct takt_err *err)
{
	if (!text || strnlen(text, size) == size || !*text)
		return takt_err_set(err, -EINVAL, "%s is empty or has over %zu bytes", field,
				    size - 1);
	return 0;
}

static int check_next(uint32_t id, size_t known, const char *field, struct takt_err *err)
{
	if (id != known + 1)
		return takt_err_set(err, -EINVAL, "%s %" PRIu32 " is not the next one, %zu", field,
				    id, known + 1);
	return 0;
}

static int check_model(const struct takt_sched *sched, const struct takt_sched_model *model,
		       struct takt_err *err)
{
	int rc = check_next(model->id, sched->models.len, "model.id", err);

	if (rc == 0)
		rc = check_text(model->name, sizeof(model->name), "model.name", err);
	if (rc == 0 && memchr(model->category, '\0', sizeof(model->category)) == NULL)
		rc = takt_err_set(err, -EINVAL, "model.category has no end");
	if (rc == 0 && model->profile_count > TAKT_SCHED_MAX_PROFILES)
		rc = takt_err_set(err, -EINVAL, "model.profile_count is over %d",
				  TAKT_SCHED_MAX_PROFILES);
	for (uint32_t i = 0; rc == 0 && i < model->profile_count; i++)
		rc = check_text(model->profiles[i].name, sizeof(model->profiles[i].name),
				"model.profiles.name", err);
	return rc;
}

int takt_sched_on_model(struct takt_sched *sched, const struct takt_sched_event *event,
			struct takt_err *err)
{
	const struct takt_sched_model *model = event->model;
	struct takt_mig_profile mig[TAKT_SCHED_MAX_PROFILES];
	struct takt_model_desc desc;
	uint32_t id;
	int rc = check_model(sched, model, err);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < model->profile_count; i++)
		mig[i] = (struct takt_mig_profile){
			.name = model->profiles[i].name,
			.size = (uint8_t)model->profiles[i].size,
			.slices = (uint8_t)model->profiles[i].slices,
			.max = (uint8_t)model->profiles[i].max,
			.mem_mib = model->profiles[i].mem_mib,
		};
	desc = (struct takt_model_desc){
		.name = model->name,
		.category = model->category[0] ? model->category : NULL,
		.mem_mib = model->mem_mib,
		.idle_mw = model->idle_mw,
		.busy_mw = model->busy_mw,
		.mig = mig,
		.mig_count = model->profile_count,
	};
	if (takt_cluster_model_find(sched->cluster, model->name) >= 0)
		return takt_err_set(err, -EINVAL, "model.name '%s' is there already", model->name);
	if (takt_vec_reserve(&sched->models, 1) < 0)
		return takt_err_set(err, -ENOMEM, "model '%s'", model->name);
	rc = takt_cluster_model(sched->cluster, &desc, &id, err);
	if (rc < 0)
		return rc;
	assert(id == model->id);
	return takt_vec_push(&sched->models, *model);
}

static int tell_name(struct takt_sched *sched, enum takt_sched_space space, uint32_t id,
		     const char *name, struct takt_err *err)
{
	uint32_t level;
	int rc = 0;

	if (space == TAKT_SPACE_LEVEL) {
		if (id > TAKT_SCHED_LEVELS)
			return takt_err_set(err, -EINVAL,
					    "level '%s' is one more than the %d there may be", name,
					    TAKT_SCHED_LEVELS);
		rc = takt_cluster_level(sched->cluster, name, &level, err);
		if (rc == 0 && level != id)
			rc = takt_err_set(err, -EINVAL, "level '%s' is there already", name);
	}
	if (space == TAKT_SPACE_PROFILE && takt_cluster_mig_find(sched->cluster, name) < 0)
		rc = takt_err_set(err, -EINVAL, "profile '%s' is none of a model told before",
				  name);
	return rc;
}

int takt_sched_on_name(struct takt_sched *sched, const struct takt_sched_event *event,
		       struct takt_err *err)
{
	char *copy;
	int rc;

	if ((size_t)event->space >= TAKT_SPACE_COUNT)
		return takt_err_set(err, -EINVAL, "space %d is none", (int)event->space);
	rc = check_text(event->name, TAKT_SCHED_MAX_NAME, "name", err);
	if (rc == 0)
		rc = check_next(event->name_id, sched->names[event->space].len, "name_id", err);
	if (rc < 0)
		return rc;
	copy = takt_strdup(event->name);
	if (!copy || takt_vec_reserve(&sched->names[event->space], 1) < 0)
		rc = takt_err_set(err, -ENOMEM, "name '%s'", event->name);
	if (rc == 0)
		rc = tell_name(sched, event->space, event->name_id, event->name, err);
	if (rc < 0) {
		takt_free(copy);
		return rc;
	}
	return takt_vec_push(&sched->names[event->space], copy);
}

void takt_sched_split_label(const char *name, char text[TAKT_SCHED_MAX_NAME],
			    struct takt_label *ret)
{
	char *equals;

	memcpy(text, name, strlen(name) + 1);
	equals = strchr(text, '=');
	if (equals)
		*equals = '\0';
	*ret = (struct takt_label){.key = text, .value = equals ? equals + 1 : ""};
}

const char *takt_sched_label(const struct takt_sched *sched, uint32_t id)
{
	return id >= 1 && id <= sched->names[TAKT_SPACE_LABEL].len
		       ? sched->names[TAKT_SPACE_LABEL].at[id - 1]
		       : NULL;
}

/* What a selector is made of while it is told to the cluster. */
struct terms {
	struct takt_requirement list[4 * TAKT_SCHED_MAX_TERMS];
	struct takt_label labels[4 * TAKT_SCHED_MAX_TERMS];
	char text[4 * TAKT_SCHED_MAX_TERMS][TAKT_SCHED_MAX_NAME];
	const char *any[TAKT_SCHED_MAX_TERMS];
	size_t label_count;
	size_t count;
};

static int split(const struct takt_sched *sched, struct terms *terms, uint32_t id,
		 struct takt_label **ret, struct takt_err *err)
{
	const char *name = takt_sched_label(sched, id);
	struct takt_label *label = &terms->labels[terms->label_count];

	if (!name)
		return takt_err_set(err, -EINVAL, "selector names label %" PRIu32 ", which is none",
				    id);
	takt_sched_split_label(name, terms->text[terms->label_count++], label);
	*ret = label;
	return 0;
}

static int add_terms(const struct takt_sched *sched, struct terms *terms,
		     enum takt_requirement_op op, const uint32_t *ids, uint32_t n,
		     struct takt_err *err)
{
	struct takt_label *label = NULL;
	int rc = 0;

	if (n > TAKT_SCHED_MAX_TERMS)
		return takt_err_set(err, -EINVAL, "selector has a list of over %d labels",
				    TAKT_SCHED_MAX_TERMS);
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		rc = split(sched, terms, ids[i], &label, err);
		if (rc == 0)
			terms->list[terms->count++] =
				(struct takt_requirement){.op = op,
							  .key = label->key,
							  .values = &label->value,
							  .value_count = 1};
	}
	return rc;
}

/* One of several values of one key. */
static int add_any(const struct takt_sched *sched, struct terms *terms,
		   const struct takt_sched_selector *selector, struct takt_err *err)
{
	struct takt_label *label = NULL;
	const char *key = NULL;
	int rc = 0;

	if (selector->any_count > TAKT_SCHED_MAX_TERMS)
		return takt_err_set(err, -EINVAL, "selector.any has over %d labels",
				    TAKT_SCHED_MAX_TERMS);
	for (uint32_t i = 0; rc == 0 && i < selector->any_count; i++) {
		rc = split(sched, terms, selector->any[i], &label, err);
		if (rc == 0 && key && strcmp(key, label->key) != 0)
			rc = takt_err_set(err, -EINVAL, "selector.any is of keys '%s' and '%s'",
					  key, label->key);
		if (rc < 0)
			break;
		key = label->key;
		terms->any[i] = label->value;
	}
	if (rc == 0 && key)
		terms->list[terms->count++] =
			(struct takt_requirement){.op = TAKT_REQUIREMENT_IN,
						  .key = key,
						  .values = terms->any,
						  .value_count = selector->any_count};
	return rc;
}

static int collect(const struct takt_sched *sched, const struct takt_sched_selector *selector,
		   struct terms *terms, struct takt_err *err)
{
	int rc = add_terms(sched, terms, TAKT_REQUIREMENT_IN, selector->all, selector->all_count,
			   err);

	if (rc == 0)
		rc = add_terms(sched, terms, TAKT_REQUIREMENT_NOT_IN, selector->none,
			       selector->none_count, err);
	if (rc == 0)
		rc = add_terms(sched, terms, TAKT_REQUIREMENT_TOLERATES, selector->tolerate,
			       selector->tolerate_count, err);
	return rc < 0 ? rc : add_any(sched, terms, selector, err);
}

int takt_sched_on_selector(struct takt_sched *sched, const struct takt_sched_event *event,
			   struct takt_err *err)
{
	const struct takt_sched_selector *selector = event->selector;
	TAKT_CLEANUP(freep) struct terms *terms = takt_zalloc(sizeof(*terms));
	union takt_map_value value = {0};
	uint32_t id;
	int rc;

	if (!terms || takt_vec_reserve(&sched->selectors, 1) < 0)
		return takt_err_set(err, -ENOMEM, "selector %" PRIu32, selector->id);
	if (selector->id == 0 || takt_map_u64_get(&sched->selector_by_id, selector->id))
		return takt_err_set(err, -EINVAL, "selector.id %" PRIu32 " is 0 or there already",
				    selector->id);
	rc = collect(sched, selector, terms, err);
	if (rc == 0)
		rc = takt_cluster_selector(sched->cluster, terms->list, terms->count, &id, err);
	if (rc < 0)
		return rc;
	value.u64 = id;
	rc = takt_map_u64_put(&sched->selector_by_id, selector->id, value);
	if (rc < 0)
		return takt_err_set(err, rc, "selector %" PRIu32, selector->id);
	return takt_vec_push(&sched->selectors, *selector);
}

struct takt_sched_workload *takt_sched_workload_find(const struct takt_sched *sched, uint32_t id)
{
	TAKT_VEC_EACH (workload, &sched->workloads)
		if (workload->id == id)
			return workload;
	return NULL;
}

int takt_sched_on_workload(struct takt_sched *sched, const struct takt_sched_event *event,
			   struct takt_err *err)
{
	const struct takt_sched_workload *workload = event->workload;
	struct takt_sched_workload *known = takt_sched_workload_find(sched, workload->id);

	if (workload->id == 0 || workload->count > TAKT_SCHED_MAX_MODELS)
		return takt_err_set(err, -EINVAL,
				    "workload.id is 0, or workload.permille has over %d figures",
				    TAKT_SCHED_MAX_MODELS);
	if (known && memcmp(known, workload, sizeof(*known)) != 0)
		return takt_err_set(err, -EINVAL, "workload %" PRIu32 " was told otherwise before",
				    workload->id);
	if (known)
		return 0;
	if (takt_vec_push(&sched->workloads, *workload) < 0)
		return takt_err_set(err, -ENOMEM, "workload %" PRIu32, workload->id);
	return 0;
}
