/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and what they stand for: models, MIG profiles, link classes. Each is interned once and is
 * a small number afterwards.
 */
#include <errno.h>

#include "sched/cluster_state.h"
#include "sched/sched_state.h"

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

int takt_cluster_model_find(const struct takt_cluster *cluster, const char *name)
{
	for (size_t i = 0; i < cluster->models.len; i++)
		if (same_text(cluster->models.at[i].name, name))
			return (int)i;
	return -ENOENT;
}

size_t takt_cluster_model_count(const struct takt_cluster *cluster)
{
	return cluster->models.len;
}

const char *takt_cluster_model_name(const struct takt_cluster *cluster, uint32_t model)
{
	return model < cluster->models.len ? cluster->models.at[model].name : NULL;
}

const char *takt_cluster_model_category(const struct takt_cluster *cluster, uint32_t model)
{
	return model < cluster->models.len ? cluster->models.at[model].category : NULL;
}

int takt_cluster_mig_find(const struct takt_cluster *cluster, const char *name)
{
	for (size_t i = 0; i < cluster->profiles.len; i++)
		if (same_text(cluster->profiles.at[i], name))
			return (int)i + 1;
	return -ENOENT;
}

uint32_t takt_cluster_mig_size(const struct takt_cluster *cluster, uint32_t model, uint8_t profile)
{
	return model < cluster->models.len && profile <= cluster->profiles.len
		       ? cluster->models.at[model].mig[profile].size
		       : 0;
}

static int profile_id(struct takt_cluster *cluster, const char *name)
{
	int id = takt_cluster_mig_find(cluster, name), rc;
	char *copy;

	if (id > 0)
		return id;
	copy = takt_strdup(name);
	rc = copy ? takt_vec_push(&cluster->profiles, copy) : -ENOMEM;
	if (rc < 0) {
		takt_free(copy);
		return rc;
	}
	return (int)cluster->profiles.len;
}

static int check_profile(const struct takt_mig_profile *mig, const char *model,
			 struct takt_err *err)
{
	uint32_t size = mig->size;

	if (!mig->name || !*mig->name)
		return takt_err_set(err, -EINVAL, "model %s: a MIG profile has no name", model);
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return takt_err_set(err, -EINVAL,
				    "model %s, MIG profile %s: size %u is none of 1, 2, 4, 8",
				    model, mig->name, size);
	if (mig->slices < 1 || mig->slices > TAKT_CLUSTER_COMPUTE_SLICES)
		return takt_err_set(err, -EINVAL,
				    "model %s, MIG profile %s: %u slices are not 1 to 7", model,
				    mig->name, mig->slices);
	return 0;
}

static int add_profiles(struct takt_cluster *cluster, const struct takt_model_desc *desc,
			struct takt_cluster_model *model, struct takt_err *err)
{
	for (size_t i = 0; i < desc->mig_count; i++) {
		const struct takt_mig_profile *mig = &desc->mig[i];
		int id = check_profile(mig, desc->name, err);

		if (id < 0)
			return id;
		id = profile_id(cluster, mig->name);
		if (id < 0)
			return takt_err_set(err, id, "too many MIG profiles, or no memory for %s",
					    mig->name);
		model->mig[id] = (struct takt_cluster_profile){
			.size = mig->size,
			.slices = mig->slices,
			.max = mig->max ? mig->max : TAKT_CLUSTER_MAX_MIG,
		};
		model->has_mig = true;
	}
	return 0;
}

/* Those that were there before stay. */
static void forget_profiles(struct takt_cluster *cluster, size_t known)
{
	while (cluster->profiles.len > known)
		takt_free(cluster->profiles.at[--cluster->profiles.len]);
}

static bool same_model(const struct takt_cluster_model *model, const struct takt_model_desc *desc)
{
	bool bare = !desc->category && !desc->mem_mib && !desc->idle_mw && !desc->busy_mw &&
		    !desc->mig_count;

	return bare || (same_text(model->category, desc->category ? desc->category : "gpu") &&
			model->mem_mib == desc->mem_mib && model->idle_mw == desc->idle_mw &&
			model->busy_mw == desc->busy_mw && model->has_mig == (desc->mig_count > 0));
}

int takt_cluster_model(struct takt_cluster *cluster, const struct takt_model_desc *desc,
		       uint32_t *ret, struct takt_err *err)
{
	struct takt_cluster_model model = {
		.mem_mib = desc->mem_mib, .idle_mw = desc->idle_mw, .busy_mw = desc->busy_mw};
	size_t known = cluster->profiles.len;
	int rc;

	if (!desc->name || !*desc->name)
		return takt_err_set(err, -EINVAL, "an accelerator model has no name");
	rc = takt_cluster_model_find(cluster, desc->name);
	if (rc >= 0) {
		if (!same_model(&cluster->models.at[rc], desc))
			return takt_err_set(err, -EINVAL, "model %s was described otherwise before",
					    desc->name);
		*ret = (uint32_t)rc;
		return 0;
	}
	rc = takt_vec_reserve(&cluster->models, 1);
	if (rc < 0)
		return takt_err_set(err, rc, "model %s: at most %d models", desc->name,
				    TAKT_CLUSTER_MAX_MODELS);
	rc = add_profiles(cluster, desc, &model, err);
	if (rc < 0) {
		forget_profiles(cluster, known);
		return rc;
	}
	model.name = takt_strdup(desc->name);
	model.category = takt_strdup(desc->category ? desc->category : "gpu");
	if (!model.name || !model.category) {
		takt_free(model.name);
		takt_free(model.category);
		forget_profiles(cluster, known);
		return takt_err_set(err, -ENOMEM, "no memory for model %s", desc->name);
	}
	*ret = (uint32_t)cluster->models.len;
	cluster->models.at[cluster->models.len++] = model;
	return 0;
}

int takt_cluster_speeds(struct takt_cluster *cluster, const uint16_t *permille, size_t count,
			uint32_t *ret, struct takt_err *err)
{
	struct takt_cluster_speeds speeds = {.permille = {0}};
	int rc;

	if (count > TAKT_CLUSTER_MAX_MODELS)
		return takt_err_set(err, -EINVAL, "speeds for %zu models are more than %d", count,
				    TAKT_CLUSTER_MAX_MODELS);
	memcpy(speeds.permille, permille, count * sizeof(*permille));
	for (size_t i = 1; i < cluster->speeds.len; i++) {
		if (memcmp(&cluster->speeds.at[i], &speeds, sizeof(speeds)) == 0) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	rc = takt_vec_push(&cluster->speeds, speeds);
	if (rc < 0)
		return takt_err_set(err, rc, "at most %d different speeds, each in memory",
				    TAKT_CLUSTER_MAX_SPEEDS);
	*ret = (uint32_t)cluster->speeds.len - 1;
	return 0;
}

uint32_t takt_cluster_speed(const struct takt_cluster *cluster, uint32_t speeds, uint32_t model)
{
	if (speeds == 0)
		return TAKT_REQUEST_WHOLE;
	return speeds < cluster->speeds.len && model < TAKT_CLUSTER_MAX_MODELS
		       ? cluster->speeds.at[speeds].permille[model]
		       : 0;
}

static bool same_links(const struct takt_cluster_links *a, const struct takt_cluster_links *b)
{
	return a->devices == b->devices && a->numa_count == b->numa_count &&
	       memcmp(a->numa, b->numa, sizeof(a->numa)) == 0 &&
	       memcmp(a->pair_score, b->pair_score,
		      (size_t)a->devices * a->devices * sizeof(*a->pair_score)) == 0;
}

static int fill_numa(struct takt_cluster_links *links, const uint8_t *numa, struct takt_err *err)
{
	links->numa_count = 1;
	for (uint32_t i = 0; i < links->devices; i++) {
		uint32_t at = numa ? numa[i] : 0;

		if (at >= TAKT_REQUEST_MAX_DEVICES)
			return takt_err_set(err, -EINVAL, "device %u: NUMA node %u is not below %d",
					    i, at, TAKT_REQUEST_MAX_DEVICES);
		links->numa[at] |= UINT64_C(1) << i;
		if (at >= links->numa_count)
			links->numa_count = at + 1;
	}
	return 0;
}

static int fill_links(struct takt_cluster_links *links, uint32_t devices, const int32_t *pair_score)
{
	size_t bytes = (size_t)devices * devices * sizeof(*pair_score);
	bool small = devices <= TAKT_NODE_INLINE_DEVICES;

	links->pair_score = takt_alloc(bytes);
	links->best = small ? takt_zalloc((size_t)(devices + 1) << devices) : NULL;
	if (!links->pair_score || (small && !links->best)) {
		takt_free(links->pair_score);
		takt_free(links->best);
		return -ENOMEM;
	}
	memcpy(links->pair_score, pair_score, bytes);
	return 0;
}

int takt_cluster_link_class(struct takt_cluster *cluster, uint32_t devices,
			    const int32_t *pair_score, const uint8_t *numa, uint32_t *ret,
			    struct takt_err *err)
{
	struct takt_cluster_links links = {.devices = devices};
	int rc;

	if (devices < 1 || devices > TAKT_REQUEST_MAX_DEVICES)
		return takt_err_set(err, -EINVAL, "a link class has 1 to %d devices, not %u",
				    TAKT_REQUEST_MAX_DEVICES, devices);
	rc = fill_numa(&links, numa, err);
	if (rc < 0)
		return rc;
	links.pair_score = (int32_t *)pair_score;
	for (size_t i = 1; i < cluster->links.len; i++) {
		if (same_links(&cluster->links.at[i], &links)) {
			*ret = (uint32_t)i;
			return 0;
		}
	}
	rc = takt_vec_reserve(&cluster->links, 1);
	if (rc == 0)
		rc = fill_links(&links, devices, pair_score);
	if (rc < 0)
		return takt_err_set(err, rc, "at most %d link classes, each in memory",
				    TAKT_CLUSTER_MAX_LINK_CLASSES);
	*ret = (uint32_t)cluster->links.len;
	cluster->links.at[cluster->links.len++] = links;
	return 0;
}

static uint64_t lowest(uint64_t from, uint64_t forced, uint32_t need)
{
	uint64_t mask = forced;

	for (from &= ~forced; takt_bits(mask) < need; from &= from - 1)
		mask |= from & -from;
	return mask;
}

const int32_t *takt_cluster_pair_scores(const struct takt_cluster *cluster, uint32_t link_class)
{
	return link_class < cluster->links.len ? cluster->links.at[link_class].pair_score : NULL;
}

uint64_t takt_cluster_best_linked(struct takt_cluster *cluster, const struct takt_node *node,
				  uint64_t from, uint64_t forced, uint32_t need)
{
	struct takt_cluster_links *links = &cluster->links.at[node->link_class];
	uint8_t *kept = NULL;
	uint64_t mask;
	int64_t sum;

	if (node->link_class == 0 || takt_bits(from) == need)
		return lowest(from, forced, need);
	if (links->best && !forced)
		kept = &links->best[from * (links->devices + 1) + need];
	if (kept && *kept)
		return *kept;
	mask = takt_sched_best_with(links->pair_score, links->devices, from, forced, need, &sum);
	if (kept)
		*kept = (uint8_t)mask;
	return mask;
}

void takt_cluster_names_fini(struct takt_cluster *cluster)
{
	TAKT_VEC_EACH (model, &cluster->models) {
		takt_free(model->name);
		takt_free(model->category);
	}
	takt_vec_fini(&cluster->models);
	TAKT_VEC_EACH (name, &cluster->profiles)
		takt_free(*name);
	takt_vec_fini(&cluster->profiles);
	TAKT_VEC_EACH (links, &cluster->links) {
		takt_free(links->pair_score);
		takt_free(links->best);
	}
	takt_vec_fini(&cluster->links);
	takt_vec_fini(&cluster->speeds);
}
