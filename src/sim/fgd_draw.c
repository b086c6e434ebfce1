/* SPDX-License-Identifier: Apache-2.0 */
/* The draws of a seed, see the header. */
#include "sim/fgd_draw.h"

#include <string.h>

#include "base/sort.h"
#include "sim/sim_random.h"

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct takt_sim_work *work = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return strcmp(work->jobs.at[x].name, work->jobs.at[y].name);
}

static uint64_t milli_of(const struct takt_sim_work *work, uint32_t job)
{
	return takt_sim_kind_milli(&work->kinds.at[work->jobs.at[job].kind]);
}

static int shuffle_pods(const struct takt_sim_work *work, uint64_t seed, struct takt_fgd_draw *draw)
{
	struct takt_rng rng;
	int rc = takt_vec_reserve(&draw->arrivals, work->jobs.len);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < work->jobs.len; i++)
		draw->arrivals.at[draw->arrivals.len++] = (uint32_t)i;
	rc = takt_sort(draw->arrivals.at, draw->arrivals.len, sizeof(draw->arrivals.at[0]), by_name,
		       (void *)work);
	takt_sim_stream(seed, TAKT_SIM_SHUFFLE, &rng);
	takt_rng_shuffle(&rng, draw->arrivals.at, draw->arrivals.len, sizeof(draw->arrivals.at[0]));
	return rc;
}

static int append_copies(const struct takt_sim_work *work, struct takt_rng *rng, uint64_t total,
			 uint64_t limit, struct takt_fgd_draw *draw)
{
	for (;;) {
		uint32_t job = (uint32_t)takt_rng_below(rng, work->jobs.len);
		int rc;

		if (total + work->kinds.at[work->jobs.at[job].kind].milli > limit)
			return 0;
		rc = takt_vec_push(&draw->arrivals, job);
		if (rc < 0)
			return rc;
		total += milli_of(work, job);
	}
}

static void take_out(const struct takt_sim_work *work, struct takt_rng *rng, uint64_t total,
		     uint64_t limit, struct takt_fgd_draw *draw)
{
	while (total > limit) {
		size_t at = takt_rng_below(rng, draw->arrivals.len);

		total -= milli_of(work, draw->arrivals.at[at]);
		takt_vec_remove(&draw->arrivals, at);
	}
}

static int tune(const struct takt_sim_cluster *cluster, const struct takt_sim_work *work,
		uint64_t seed, uint32_t tuning_permille, struct takt_fgd_draw *draw)
{
	uint64_t total = 0, limit = cluster->gpus * tuning_permille;
	struct takt_rng rng;

	for (size_t i = 0; i < work->jobs.len; i++)
		total += milli_of(work, (uint32_t)i);
	takt_sim_stream(seed, TAKT_SIM_INFLATE, &rng);
	if (total < limit && total > 0)
		return append_copies(work, &rng, total, limit, draw);
	take_out(work, &rng, total, limit, draw);
	return 0;
}

static int rank_nodes(const struct takt_sim_cluster *cluster, uint64_t seed,
		      struct takt_fgd_draw *draw)
{
	struct takt_rng rng;
	int rc = takt_vec_reserve(&draw->ranks, cluster->nodes.len);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < cluster->nodes.len; i++)
		draw->ranks.at[draw->ranks.len++] = (uint32_t)i;
	takt_sim_stream(seed, TAKT_SIM_RANK, &rng);
	takt_rng_shuffle(&rng, draw->ranks.at, draw->ranks.len, sizeof(draw->ranks.at[0]));
	return 0;
}

int takt_fgd_draw(const struct takt_sim_cluster *cluster, const struct takt_sim_work *work,
		  uint64_t seed, uint32_t tuning_permille, struct takt_fgd_draw *ret,
		  struct takt_err *err)
{
	struct takt_fgd_draw draw = {
		.arrivals = TAKT_VEC_INIT(TAKT_FGD_MAX_ARRIVALS),
		.ranks = TAKT_VEC_INIT(TAKT_SIM_MAX_NODES),
	};
	int rc = shuffle_pods(work, seed, &draw);

	if (rc == 0)
		rc = tune(cluster, work, seed, tuning_permille, &draw);
	if (rc == 0)
		rc = rank_nodes(cluster, seed, &draw);
	if (rc < 0) {
		takt_fgd_draw_fini(&draw);
		return takt_err_set(err, rc, "draw the arrivals of seed %llu",
				    (unsigned long long)seed);
	}
	*ret = draw;
	return 0;
}

void takt_fgd_draw_fini(struct takt_fgd_draw *draw)
{
	takt_vec_fini(&draw->arrivals);
	takt_vec_fini(&draw->ranks);
}
