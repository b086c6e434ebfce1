/* SPDX-License-Identifier: Apache-2.0 */
/* Typical pods and fragments, see the header. */
#include "sim/fgd_typical.h"

#include <string.h>

#include "base/sort.h"

enum {
	PREFIX_PERCENT = 95
};

static int largest_first(const void *a, const void *b, void *ctx)
{
	const struct takt_fgd_typical_pod *x = a, *y = b;
	const struct takt_sim_names *specs = ctx;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	if (x->cpu_milli != y->cpu_milli)
		return x->cpu_milli < y->cpu_milli ? 1 : -1;
	if (x->milli != y->milli)
		return x->milli < y->milli ? 1 : -1;
	if (x->gpus != y->gpus)
		return x->gpus < y->gpus ? 1 : -1;
	return strcmp(specs->texts.at[y->models], specs->texts.at[x->models]);
}

static bool same_pod(const struct takt_fgd_typical_pod *pod, const struct takt_sim_kind *kind)
{
	return pod->cpu_milli == kind->cpu_milli && pod->gpus == kind->gpus &&
	       pod->milli == kind->milli && pod->models == kind->models;
}

/* Kinds that differ in memory only are one. */
static int collect(const struct takt_sim_work *work, struct takt_fgd_typical *typical)
{
	for (size_t i = 0; i < work->kinds.len; i++) {
		const struct takt_sim_kind *kind = &work->kinds.at[i];
		struct takt_fgd_typical_pod *found = NULL;
		int rc = 0;

		TAKT_VEC_EACH (pod, &typical->pods) {
			if (same_pod(pod, kind)) {
				found = pod;
				break;
			}
		}
		if (found)
			found->count += work->counts.at[i];
		else
			rc = takt_vec_push(&typical->pods, ((struct takt_fgd_typical_pod){
								   .cpu_milli = kind->cpu_milli,
								   .gpus = kind->gpus,
								   .milli = kind->milli,
								   .models = kind->models,
								   .model_mask = kind->model_mask,
								   .count = work->counts.at[i],
							   }));
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void cut(struct takt_fgd_typical *typical, uint64_t all)
{
	size_t n = 0;

	while (n < typical->pods.len && typical->total * 100 < all * PREFIX_PERCENT)
		typical->total += typical->pods.at[n++].count;
	typical->pods.len = n;
}

static int fill_items(struct takt_fgd_typical *typical)
{
	int rc = takt_vec_reserve(&typical->items, typical->pods.len);

	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (pod, &typical->pods)
		typical->items.at[typical->items.len++] = (struct takt_workload_item){
			.request = {.cpu_milli = pod->cpu_milli,
				    .devices = (uint16_t)pod->gpus,
				    .milli = (uint16_t)pod->milli,
				    .model_mask = pod->model_mask},
			.weight = pod->count,
		};
	return 0;
}

int takt_fgd_typical(const struct takt_sim_work *work, struct takt_fgd_typical *ret,
		     struct takt_err *err)
{
	struct takt_fgd_typical typical = {
		.pods = TAKT_VEC_INIT(TAKT_SIM_MAX_KINDS),
		.items = TAKT_VEC_INIT(TAKT_PLACE_MAX_WORKLOAD),
	};
	int rc = collect(work, &typical);

	if (rc == 0)
		rc = takt_sort(typical.pods.at, typical.pods.len, sizeof(typical.pods.at[0]),
			       largest_first, (void *)&work->specs);
	if (rc == 0) {
		cut(&typical, work->jobs.len);
		rc = fill_items(&typical);
	}
	if (rc < 0) {
		takt_fgd_typical_fini(&typical);
		return takt_err_set(err, rc, "collect typical pods");
	}
	*ret = typical;
	return 0;
}

void takt_fgd_typical_fini(struct takt_fgd_typical *typical)
{
	takt_vec_fini(&typical->pods);
	takt_vec_fini(&typical->items);
}

/* What the pod could use of the node: 0, or all on GPUs that have enough. */
static uint64_t usable_milli(const struct takt_fgd_typical_pod *pod, const struct takt_node *node)
{
	uint64_t milli = 0;
	uint32_t fit = 0;

	if (pod->gpus == 0 || node->cpu_left_milli < pod->cpu_milli ||
	    (pod->model_mask && !(pod->model_mask & node->models)))
		return 0;
	for (uint32_t i = 0; i < node->devices; i++) {
		if (node->left[i] < pod->milli)
			continue;
		milli += node->left[i];
		fit++;
	}
	return fit >= pod->gpus ? milli : 0;
}

uint64_t takt_fgd_fragment(const struct takt_fgd_typical *typical, const struct takt_node *node)
{
	uint64_t left = 0, used = 0;

	for (uint32_t i = 0; i < node->devices; i++)
		left += node->left[i];
	if (left == 0)
		return 0;
	TAKT_VEC_EACH (pod, &typical->pods)
		used += pod->count * usable_milli(pod, node);
	return left * typical->total - used;
}
