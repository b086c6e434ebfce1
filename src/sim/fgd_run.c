/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the published experiment, see the header. */
#include "sim/fgd_run.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "sched/cluster.h"
#include "sched/place_migrate.h"
#include "sim/sim_build.h"
#include "sim/sim_random.h"

enum {
	PPM = 1000000,
	MOVES = 3, /* for one task */
};

struct run {
	const struct takt_fgd_world *world;
	struct takt_cluster *cluster;
	struct takt_fgd_draw draw;
	uint32_t *kinds;		     /* owned: cluster's number of each kind */
	uint64_t *fragments;		     /* owned: of each node, times typical->total */
	struct takt_fgd_class_count *counts; /* owned: of each class, so far */
	uint64_t fragment;		     /* sum of fragments */
	uint64_t arrived_milli, placed_milli;
	TAKT_VEC(struct takt_migrate_task) movable;
	uint64_t *stuck; /* owned: of each kind, changes() when moving tasks did not help */
	struct takt_fgd_result result;
};

/* The column of that many arrived milli-GPU; load_count when it is none. */
static size_t column_of(const struct takt_fgd_world *world, uint64_t arrived_milli)
{
	uint64_t all = world->cluster->gpus * 1000;
	uint64_t pct = (200 * arrived_milli + all) / (2 * all);
	size_t i = 0;

	while (i < world->load_count && world->loads[i] != pct)
		i++;
	return i;
}

static void update_fragment(struct run *run, uint32_t node)
{
	uint64_t now =
		takt_fgd_fragment(run->world->typical, takt_cluster_node(run->cluster, node));

	run->fragment += now - run->fragments[node];
	run->fragments[node] = now;
}

/* More than 0, and another number after everything that could make moving tasks worth a try. */
static uint64_t changes(const struct run *run)
{
	return 1 + run->result.placed + run->result.moved;
}

/* Moves tasks so that the kind fits. -ENOENT when it cannot be done, or not yet. */
static int make_room(struct run *run, uint32_t kind, struct takt_slot *ret)
{
	uint64_t allowed = run->result.placed * run->world->migrate_percent / 100;
	struct takt_migrate_limits limits = {
		.max_cost = takt_sim_kind_milli(&run->world->work->kinds.at[kind])};
	struct takt_migrate_plan plan;
	int rc;

	if (allowed <= run->result.moved || run->stuck[kind] == changes(run))
		return -ENOENT;
	limits.max_moves =
		allowed - run->result.moved < MOVES ? allowed - run->result.moved : MOVES;
	rc = takt_migrate_for(run->cluster, run->kinds[kind], run->movable.at, run->movable.len,
			      &limits, &plan);
	if (rc == -ENOENT)
		run->stuck[kind] = changes(run);
	for (size_t i = 0; i < plan.count && rc == 0; i++) {
		struct takt_migrate_task *task = &run->movable.at[plan.moves[i].task];
		uint32_t from = task->slot.node;

		rc = takt_cluster_take(run->cluster, task->kind, &plan.moves[i].to);
		if (rc == 0)
			rc = takt_cluster_give(run->cluster, task->kind, &task->slot);
		task->slot = plan.moves[i].to;
		update_fragment(run, from);
		update_fragment(run, task->slot.node);
		run->result.moved++;
	}
	if (rc == 0)
		*ret = plan.slot;
	return rc;
}

/* A fraction is cheap to move. */
static int remember_movable(struct run *run, uint32_t kind, const struct takt_slot *slot)
{
	struct takt_migrate_task task = {
		.kind = run->kinds[kind], .slot = *slot, .cost = slot->milli};

	if (!run->world->migrate_percent || slot->milli == 0 || slot->milli >= TAKT_REQUEST_WHOLE)
		return 0;
	return takt_vec_push(&run->movable, task);
}

static int place(struct run *run, uint32_t job, const struct takt_slot *slot, struct takt_err *err)
{
	const struct takt_fgd_world *world = run->world;
	uint32_t kind = world->work->jobs.at[job].kind;
	int rc = takt_cluster_take(run->cluster, run->kinds[kind], slot);

	if (rc < 0)
		return takt_err_set(err, rc, "the policy placed '%s' where it does not fit",
				    world->work->jobs.at[job].name);
	run->placed_milli += takt_sim_kind_milli(&world->work->kinds.at[kind]);
	run->result.placed++;
	run->counts[world->classes->of_kind.at[kind]].placed++;
	update_fragment(run, slot->node);
	rc = remember_movable(run, kind, slot);
	return rc < 0 ? takt_err_set(err, rc, "no memory for a run") : 0;
}

static int offer(struct run *run, uint32_t job, struct takt_err *err)
{
	const struct takt_fgd_world *world = run->world;
	uint32_t kind = world->work->jobs.at[job].kind;
	struct takt_slot slot;
	int rc = 0;

	run->arrived_milli += takt_sim_kind_milli(&world->work->kinds.at[kind]);
	run->result.arrivals++;
	run->counts[world->classes->of_kind.at[kind]].arrived++;
	if (!takt_cluster_pick(run->cluster, run->kinds[kind], NULL, &slot, NULL))
		rc = make_room(run, kind, &slot);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return takt_err_set(err, rc, "tasks could not be moved");
	return place(run, job, &slot, err);
}

static void sample(struct run *run)
{
	const struct takt_fgd_world *world = run->world;
	size_t column = column_of(world, run->arrived_milli), classes = world->classes->classes.len;
	uint64_t idle = world->cluster->gpus * 1000 - run->placed_milli;
	uint64_t fragment = run->fragment / world->typical->total;
	struct takt_fgd_point *point;

	if (column == world->load_count)
		return;
	point = &run->result.points[column];
	point->events++;
	point->arrived_milli += run->arrived_milli;
	point->allocated_milli += run->placed_milli;
	point->placed = run->result.placed;
	point->moved = run->result.moved;
	point->fragment_milli += fragment;
	point->idle_milli += idle;
	point->fragment_ppm += idle ? fragment * PPM / idle : 0;
	memcpy(run->result.classes.at + column * classes, run->counts,
	       classes * sizeof(run->counts[0]));
}

static int build(struct run *run, const struct takt_placement *placement,
		 const struct takt_place_param *params, size_t param_count, uint64_t seed,
		 struct takt_err *err)
{
	const struct takt_fgd_world *world = run->world;
	struct takt_workload workload = {world->typical->items.at, world->typical->items.len};
	struct takt_cluster_config config = {
		.placement = placement,
		.workload = &workload,
		.params = params,
		.param_count = param_count,
	};
	struct takt_rng rng;
	int rc;

	takt_sim_stream(seed, TAKT_SIM_POLICY, &rng);
	config.seed = takt_rng_next(&rng);
	rc = takt_sim_build(world->cluster, run->draw.ranks.at, &config, &run->cluster, err);
	if (rc == 0)
		rc = takt_sim_build_kinds(run->cluster, world->work, run->kinds, err);
	return rc;
}

static int allocate(struct run *run, struct takt_err *err)
{
	const struct takt_fgd_world *world = run->world;
	size_t classes = world->classes->classes.len, cells = classes * world->load_count;

	run->result.classes.max = cells;
	run->movable.max = run->draw.arrivals.len;
	run->kinds = takt_calloc(world->work->kinds.len, sizeof(*run->kinds));
	run->fragments = takt_calloc(world->cluster->nodes.len, sizeof(*run->fragments));
	run->counts = takt_calloc(classes, sizeof(*run->counts));
	run->stuck = takt_calloc(world->work->kinds.len, sizeof(*run->stuck));
	if (!run->kinds || !run->fragments || !run->counts || !run->stuck ||
	    takt_vec_reserve(&run->result.classes, cells) < 0)
		return takt_err_set(err, -ENOMEM, "no memory for a run");
	run->result.classes.len = cells;
	memset(run->result.classes.at, 0, cells * sizeof(run->result.classes.at[0]));
	return 0;
}

static int simulate(struct run *run, struct takt_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < run->world->cluster->nodes.len; i++)
		update_fragment(run, (uint32_t)i);
	for (size_t i = 0; i < run->draw.arrivals.len && rc == 0; i++) {
		rc = offer(run, run->draw.arrivals.at[i], err);
		sample(run);
	}
	return rc;
}

static void run_fini(struct run *run)
{
	takt_cluster_free(run->cluster);
	takt_fgd_draw_fini(&run->draw);
	takt_free(run->kinds);
	takt_free(run->fragments);
	takt_free(run->counts);
	takt_free(run->stuck);
	takt_vec_fini(&run->movable);
}

int takt_fgd_run(const struct takt_fgd_world *world, const struct takt_placement *placement,
		 const struct takt_place_param *params, size_t param_count, uint64_t seed,
		 struct takt_fgd_result *ret, struct takt_err *err)
{
	struct run run = {.world = world};
	int rc = takt_fgd_draw(world->cluster, world->work, seed, world->tuning_permille, &run.draw,
			       err);

	if (rc < 0)
		return rc;
	rc = allocate(&run, err);
	if (rc == 0)
		rc = build(&run, placement, params, param_count, seed, err);
	if (rc == 0)
		rc = simulate(&run, err);
	if (rc == 0)
		*ret = run.result;
	else
		takt_fgd_result_fini(&run.result);
	run_fini(&run);
	return rc;
}

void takt_fgd_result_fini(struct takt_fgd_result *result)
{
	takt_vec_fini(&result->classes);
}

int takt_fgd_arrived(const struct takt_fgd_world *world, uint64_t seed, uint64_t *counts,
		     uint64_t *events, struct takt_err *err)
{
	size_t kinds = world->work->kinds.len;
	uint64_t *so_far = takt_calloc(kinds, sizeof(*so_far)), milli = 0;
	struct takt_fgd_draw draw;
	int rc = so_far ? takt_fgd_draw(world->cluster, world->work, seed, world->tuning_permille,
					&draw, err)
			: takt_err_set(err, -ENOMEM, "no memory for what arrived");

	if (rc < 0) {
		takt_free(so_far);
		return rc;
	}
	TAKT_VEC_EACH (job, &draw.arrivals) {
		uint32_t kind = world->work->jobs.at[*job].kind;
		size_t column;

		so_far[kind]++;
		milli += takt_sim_kind_milli(&world->work->kinds.at[kind]);
		column = column_of(world, milli);
		if (column == world->load_count)
			continue;
		events[column]++;
		for (size_t i = 0; i < kinds; i++)
			counts[column * kinds + i] += so_far[i];
	}
	takt_fgd_draw_fini(&draw);
	takt_free(so_far);
	return 0;
}
