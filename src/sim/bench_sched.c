/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of `takt bench sched` and what is counted in them: see bench_sched.h. */
#include "sim/bench_sched.h"

#include <errno.h>
#include <string.h>

#include "base/rng.h"
#include "base/sort.h"
#include "sim/bench_world.h"

enum {
	GANG_ONE_IN = 8,
	GANG_MOST = 8,
	PERMILLE = 1000,
	MAX_TIMES = 1 << 26,
	GROW_TIMES = 1 << 16,
};

struct times {
	TAKT_VEC(uint32_t) ns;
	uint64_t sum;
	uint64_t count;
};

struct bench {
	const struct takt_bench_config *config;
	struct bench_world world;
	struct takt_rng rng;
	bool timed; /* each decision */
	uint64_t asked_milli, held_milli;
	uint64_t decisions, naive_every, naive_count, naive_ns;
	struct times placements, releases, rejections;
};

/* What arrives: one task, or a gang of equal ones. */
struct arrival {
	uint32_t kind;
	uint32_t tasks;
	uint32_t tenant;
	uint64_t milli; /* of each task */
};

static int note(struct bench *bench, struct times *times, uint64_t count, uint64_t since)
{
	uint64_t ns;

	times->count += count;
	if (!bench->timed)
		return 0;
	ns = takt_bench_now_ns() - since;
	times->sum += ns;
	return takt_vec_push(&times->ns, ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns);
}

static uint64_t start_of(const struct bench *bench)
{
	return bench->timed ? takt_bench_now_ns() : 0;
}

static struct arrival draw(struct bench *bench)
{
	const struct bench_world *world = &bench->world;
	struct bench_draw drawn = world->mix.at[takt_rng_below(&bench->rng, world->mix.len)];
	struct arrival arrival = {.kind = drawn.kind, .tasks = 1, .milli = drawn.milli};

	if (bench->config->features & TAKT_BENCH_GANG &&
	    takt_rng_below(&bench->rng, GANG_ONE_IN) == 0)
		arrival.tasks = 1 + (uint32_t)takt_rng_below(&bench->rng, GANG_MOST);
	arrival.tenant =
		1 + BENCH_TEAMS + (uint32_t)takt_rng_below(&bench->rng, BENCH_TEAMS * BENCH_USERS);
	return arrival;
}

/* The naive scan on the same question, beside what the index answers. */
static int compare(struct bench *bench, const struct arrival *arrival,
		   const struct takt_scope *scope, bool found, const struct takt_slot *slot,
		   struct takt_err *err)
{
	struct takt_slot naive = {0};
	uint64_t start = takt_bench_cpu_ns();
	bool same = takt_cluster_pick_naive(bench->world.cluster, arrival->kind, scope, &naive,
					    NULL) == found;

	bench->naive_ns += takt_bench_cpu_ns() - start;
	bench->naive_count++;
	if (same && (!found || memcmp(&naive, slot, sizeof(naive)) == 0))
		return 0;
	return takt_err_set(err, -TAKT_E_CORRUPT, "the index chose node %u, a scan of all %u",
			    slot->node, naive.node);
}

/* Places one task after the other; 1 if all stand, 0 if one did not fit. */
static int place_tasks(struct bench *bench, const struct arrival *arrival,
		       const struct takt_scope *scope)
{
	struct bench_world *world = &bench->world;
	int rc = takt_vec_reserve(&world->running, arrival->tasks);

	for (uint32_t i = 0; i < arrival->tasks && rc == 0; i++) {
		struct bench_task task = {.kind = arrival->kind, .tenant = arrival->tenant};

		if (!takt_cluster_pick(world->cluster, arrival->kind, scope, &task.slot, NULL))
			return 0;
		rc = takt_cluster_take(world->cluster, arrival->kind, &task.slot);
		if (rc == 0)
			world->running.at[world->running.len++] = task;
	}
	return rc < 0 ? rc : 1;
}

static int place_gang(struct bench *bench, const struct arrival *arrival)
{
	struct bench_world *world = &bench->world;
	struct takt_scope scope = {.domain = 0};
	size_t before = world->running.len;
	uint64_t mark;
	int rc;

	if (arrival->tasks == 1)
		return place_tasks(bench, arrival, NULL);
	if (!takt_cluster_tightest(world->cluster, arrival->kind, world->rack_level, arrival->tasks,
				   &scope.domain))
		return 0;
	mark = takt_cluster_mark(world->cluster);
	rc = place_tasks(bench, arrival, &scope);
	if (rc > 0) {
		takt_cluster_commit(world->cluster, mark);
		return rc;
	}
	takt_cluster_rollback(world->cluster, mark);
	world->running.len = before;
	return rc;
}

/* 1 placed, 0 refused. */
static int decide(struct bench *bench, const struct arrival *arrival)
{
	struct takt_tenants *tenants = bench->world.tenants;
	uint64_t milli = arrival->milli * arrival->tasks;
	struct takt_fit_counts why;
	uint32_t at;
	int rc;

	if (tenants &&
	    takt_tenants_check(tenants, arrival->tenant, milli, &at) > TAKT_QUOTA_BORROWS)
		return 0;
	rc = place_gang(bench, arrival);
	if (rc > 0 && tenants)
		takt_tenants_take(tenants, arrival->tenant, milli, 0);
	if (rc == 0 && bench->config->features & TAKT_BENCH_WHY)
		takt_cluster_explain(bench->world.cluster, arrival->kind, NULL, &why);
	return rc;
}

static int sample_naive(struct bench *bench, const struct arrival *arrival, struct takt_err *err)
{
	struct takt_slot slot = {0};
	bool found;

	if (!bench->naive_every || ++bench->decisions % bench->naive_every)
		return 0;
	found = takt_cluster_pick(bench->world.cluster, arrival->kind, NULL, &slot, NULL);
	return compare(bench, arrival, NULL, found, &slot, err);
}

static int arrive(struct bench *bench, struct takt_err *err)
{
	struct arrival arrival = draw(bench);
	uint64_t start;
	int rc = 0, noted;

	bench->asked_milli += arrival.milli * arrival.tasks;
	start = start_of(bench);
	rc = decide(bench, &arrival);
	if (rc < 0)
		return takt_err_set(err, rc, "no memory for a task");
	noted = rc ? note(bench, &bench->placements, arrival.tasks, start)
		   : note(bench, &bench->rejections, 1, start);
	if (noted < 0)
		return takt_err_set(err, noted, "no memory for a time");
	if (rc)
		bench->held_milli += arrival.milli * arrival.tasks;
	return bench->timed ? sample_naive(bench, &arrival, err) : 0;
}

static int release(struct bench *bench, struct takt_err *err)
{
	struct bench_world *world = &bench->world;
	size_t at = takt_rng_below(&bench->rng, world->running.len);
	struct bench_task task = world->running.at[at];
	uint64_t start, milli;
	int rc;

	takt_vec_remove_swap(&world->running, at);
	milli = (uint64_t)takt_cluster_request(world->cluster, task.kind)->devices *
		task.slot.milli;
	start = start_of(bench);
	rc = takt_cluster_give(world->cluster, task.kind, &task.slot);
	if (world->tenants && rc == 0)
		rc = takt_tenants_give(world->tenants, task.tenant, milli, 0);
	if (rc == 0)
		rc = note(bench, &bench->releases, 1, start);
	bench->held_milli -= milli;
	return rc < 0 ? takt_err_set(err, rc, "a task could not be given back") : 0;
}

static int fill(struct bench *bench, uint64_t milli, struct takt_err *err)
{
	uint64_t until = bench->asked_milli + milli;
	int rc = 0;

	while (rc == 0 && bench->asked_milli < until)
		rc = arrive(bench, err);
	return rc;
}

static void forget(struct bench *bench)
{
	struct times *all[] = {&bench->placements, &bench->releases, &bench->rejections};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(all); i++) {
		takt_vec_clear(&all[i]->ns);
		all[i]->sum = all[i]->count = 0;
	}
}

struct span {
	uint64_t wall_ns, cpu_ns;
};

static struct span begin(void)
{
	return (struct span){.wall_ns = takt_bench_now_ns(), .cpu_ns = takt_bench_cpu_ns()};
}

static struct span since(struct span begun)
{
	return (struct span){.wall_ns = takt_bench_now_ns() - begun.wall_ns,
			     .cpu_ns = takt_bench_cpu_ns() - begun.cpu_ns};
}

static int churn(struct bench *bench, struct span *ret, struct takt_err *err)
{
	uint64_t load = bench->world.capacity_milli / PERMILLE * bench->config->load_permille;
	struct span begun;
	int rc = 0;

	while (rc == 0 && bench->held_milli < load && bench->asked_milli < 4 * load)
		rc = arrive(bench, err);
	forget(bench);
	begun = begin();
	while (rc == 0 &&
	       bench->placements.count + bench->releases.count < bench->config->operations) {
		bool full = bench->held_milli >= load ||
			    bench->rejections.count >
				    2 * (bench->placements.count + bench->releases.count);

		rc = full && bench->world.running.len ? release(bench, err) : arrive(bench, err);
	}
	*ret = since(begun);
	return rc;
}

static int run(struct bench *bench, struct span *ret, struct takt_err *err)
{
	struct span begun = begin();
	int rc;

	takt_rng_init(&bench->rng, bench->config->seed);
	if (bench->config->churn)
		return churn(bench, ret, err);
	rc = fill(bench, bench->world.capacity_milli, err);
	*ret = since(begun);
	return rc;
}

static int by_ns(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	(void)ctx;
	return x < y ? -1 : x > y;
}

int takt_bench_percentiles(uint32_t *ns, size_t count, struct takt_bench_class *ret)
{
	size_t last = count ? count - 1 : 0;
	int rc = takt_sort(ns, count, sizeof(*ns), by_ns, NULL);

	if (rc < 0 || count == 0)
		return rc;
	ret->p50_ns = ns[last / 2];
	ret->p99_ns = ns[last - last / 100];
	ret->p999_ns = ns[last - last / 1000];
	return 0;
}

static int summarise(struct times *times, struct takt_bench_class *ret)
{
	*ret = (struct takt_bench_class){.count = times->count, .ns = times->sum};
	return takt_bench_percentiles(times->ns.at, times->ns.len, ret);
}

uint64_t takt_bench_per_s(uint64_t count, uint64_t ns)
{
	return ns ? (uint64_t)((double)count * 1e9 / (double)ns) : 0;
}

static void bench_fini(struct bench *bench)
{
	takt_bench_world_fini(&bench->world);
	takt_vec_fini(&bench->placements.ns);
	takt_vec_fini(&bench->releases.ns);
	takt_vec_fini(&bench->rejections.ns);
}

static int bench_init(const struct takt_bench_config *config, const struct bench_input *input,
		      bool timed, struct bench *ret, struct takt_err *err)
{
	struct times none = {.ns = TAKT_VEC_INIT(MAX_TIMES)};

	*ret = (struct bench){
		.config = config,
		.timed = timed,
		.placements = none,
		.releases = none,
		.rejections = none,
	};
	return takt_bench_build(config, input, &ret->world, err);
}

/* The state entered again, node by node and task by task: what a snapshot costs to take up. */
static int measure_snapshot(struct bench *bench, const struct bench_input *input,
			    struct takt_bench_result *ret, struct takt_err *err)
{
	struct bench_world *from = &bench->world, to;
	uint64_t start;
	int rc = takt_bench_build(bench->config, input, &to, err);

	if (rc < 0)
		return rc;
	start = takt_bench_cpu_ns();
	for (size_t i = 0; i < from->running.len && rc == 0; i++)
		rc = takt_cluster_take(to.cluster, from->running.at[i].kind,
				       &from->running.at[i].slot);
	ret->snapshot_ns = to.setup_ns + takt_bench_cpu_ns() - start;
	takt_bench_world_fini(&to);
	return rc < 0 ? takt_err_set(err, rc, "the state could not be entered again") : 0;
}

static void fill_in(const struct bench *bench, struct takt_bench_result *ret)
{
	struct takt_cluster_bytes bytes;

	takt_cluster_bytes(bench->world.cluster, &bytes);
	ret->nodes = takt_cluster_totals(bench->world.cluster)->nodes;
	ret->gpus = takt_cluster_totals(bench->world.cluster)->devices;
	ret->kinds = bench->world.kinds.len;
	ret->setup_ns = bench->world.setup_ns;
	ret->warm_ns = bench->world.warm_ns;
	ret->asked_milli = bench->asked_milli;
	ret->held_milli = bench->held_milli;
	ret->node_bytes = bytes.nodes;
	ret->index_bytes = bytes.index;
	ret->other_bytes = bytes.other;
}

static int first_run(const struct takt_bench_config *config, const struct bench_input *input,
		     struct takt_bench_result *ret, uint64_t *ret_decisions, struct takt_err *err)
{
	struct bench bench;
	struct span span = {0};
	int rc = bench_init(config, input, false, &bench, err);

	if (rc == 0)
		rc = run(&bench, &span, err);
	if (rc == 0) {
		fill_in(&bench, ret);
		ret->wall_ns = span.wall_ns;
		ret->cpu_ns = span.cpu_ns;
		ret->placements_per_s = takt_bench_per_s(bench.placements.count, span.cpu_ns);
		ret->ops_per_s = takt_bench_per_s(bench.placements.count + bench.releases.count,
						  span.cpu_ns);
		*ret_decisions = bench.placements.count + bench.rejections.count;
		rc = measure_snapshot(&bench, input, ret, err);
	}
	bench_fini(&bench);
	return rc;
}

static int second_run(const struct takt_bench_config *config, const struct bench_input *input,
		      uint64_t decisions, struct takt_bench_result *ret, struct takt_err *err)
{
	struct bench bench;
	struct span span;
	int rc = bench_init(config, input, true, &bench, err);

	if (config->naive_samples)
		bench.naive_every = 1 + decisions / config->naive_samples;
	if (rc == 0)
		rc = run(&bench, &span, err);
	if (rc == 0 && (summarise(&bench.placements, &ret->placements) < 0 ||
			summarise(&bench.releases, &ret->releases) < 0 ||
			summarise(&bench.rejections, &ret->rejections) < 0))
		rc = takt_err_set(err, -ENOMEM, "no memory to sort times");
	ret->naive_count = bench.naive_count;
	ret->naive_ns = bench.naive_ns;
	bench_fini(&bench);
	return rc;
}

int takt_bench_sched(const struct takt_bench_config *config, struct takt_bench_result *ret,
		     struct takt_err *err)
{
	struct takt_bench_result result = {0};
	struct bench_input input;
	uint64_t decisions = 0;
	int rc = takt_bench_read(config, &input, err);

	if (rc < 0)
		return rc;
	if (config->planner_batch)
		rc = takt_bench_planner(config, &input, &result, err);
	else
		rc = first_run(config, &input, &result, &decisions, err);
	if (rc == 0 && !config->planner_batch)
		rc = second_run(config, &input, decisions, &result, err);
	takt_bench_input_fini(&input);
	if (rc < 0)
		return rc;
	result.rejections_per_s = takt_bench_per_s(result.rejections.count, result.rejections.ns);
	result.naive_per_s = takt_bench_per_s(result.naive_count, result.naive_ns);
	if (result.naive_per_s)
		result.ratio_to_naive =
			(double)result.placements_per_s / (double)result.naive_per_s;
	*ret = result;
	return 0;
}
