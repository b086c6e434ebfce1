/* SPDX-License-Identifier: Apache-2.0 */
/* Placement with real times, see the header. */
#include "sim/timed_run.h"

#include <errno.h>
#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/timetypes.h"
#include "sched/cluster.h"
#include "sim/sim_build.h"
#include "sim/sim_random.h"
#include "sim/sim_stats.h"
#include "sim/trace.h"

/* No pod. */
#define NONE UINT32_MAX

/* One pod of one copy. */
struct pod {
	uint64_t at_ns;	  /* since the span's begin */
	uint64_t stay_ns; /* once placed */
	uint32_t kind;
	uint32_t next; /* of those that wait and ask for the same */
	bool early;    /* the rest of a pod that was there before: not counted */
};

struct running {
	struct takt_heap_node node;
	uint64_t end_ns;
	uint32_t seq; /* of placing */
	uint32_t kind;
	struct takt_slot slot;
};

/* Those of one kind that wait, first come first. */
struct line {
	uint32_t first, last;
};

struct run {
	const struct takt_timed_world *world;
	struct takt_cluster *cluster;
	uint32_t *kinds; /* owned: cluster's number of each kind */
	TAKT_VEC(struct pod) pods;
	struct line *lines; /* owned, by kind */
	uint32_t *waiting;  /* owned: kinds that have somebody waiting, in no order */
	size_t waiting_count;
	struct takt_heap heap;
	uint32_t seq;
	uint64_t now_ns, asked_milli, held_milli;
	int64_t *waits; /* owned, of counted pods */
	size_t wait_count;
	uint64_t wait_ms;
	struct takt_timed_result result;
};

static int by_end(const struct takt_heap_node *a, const struct takt_heap_node *b)
{
	const struct running *x = TAKT_CONTAINER_OF(a, struct running, node);
	const struct running *y = TAKT_CONTAINER_OF(b, struct running, node);

	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

int takt_timed_prepare(struct takt_timed_world *world, struct takt_err *err)
{
	const uint32_t need = 1u << TAKT_TRACE_JOB_SUBMIT | 1u << TAKT_TRACE_JOB_DURATION;
	int64_t first = INT64_MAX, last = 0;

	for (size_t i = 0; i < world->work->jobs.len; i++) {
		const struct takt_sim_job *job = &world->work->jobs.at[i];

		if ((job->has & need) != need)
			return takt_err_set(err, -TAKT_E_CORRUPT,
					    "job %zu ('%.40s') has no times: the timed protocol "
					    "needs submit_s (creation_time) and duration_s or "
					    "end_s (deletion_time)",
					    i + 1, job->name);
		if (job->submit_ns < first)
			first = job->submit_ns;
		if (job->submit_ns + job->duration_ns > last)
			last = job->submit_ns + job->duration_ns;
	}
	world->first_ns = first;
	world->span_ns = last > first ? (uint64_t)(last - first) : 1;
	return 0;
}

static uint64_t milli_of(const struct run *run, uint32_t kind)
{
	return takt_sim_kind_milli(&run->world->work->kinds.at[kind]);
}

/* How many copies ask on average for that load. */
static uint64_t copies_for(const struct takt_timed_world *world, uint32_t load_pct)
{
	uint64_t milli_s = 0, room;

	TAKT_VEC_EACH (job, &world->work->jobs)
		milli_s += takt_sim_kind_milli(&world->work->kinds.at[job->kind]) *
			   ((uint64_t)job->duration_ns / TAKT_NS_PER_S);
	room = world->cluster->gpus * 10 * load_pct * (world->span_ns / TAKT_NS_PER_S);
	return milli_s ? (room + milli_s / 2) / milli_s : 1;
}

static int add_pod(struct run *run, struct pod pod)
{
	return takt_vec_push(&run->pods, pod);
}

/* One copy, rotated: what goes beyond the end comes in at the beginning. */
static int add_copy(struct run *run, uint64_t shift_ns)
{
	uint64_t span = run->world->span_ns;

	TAKT_VEC_EACH (job, &run->world->work->jobs) {
		uint64_t at = ((uint64_t)(job->submit_ns - run->world->first_ns) + shift_ns) % span;
		uint64_t stay = (uint64_t)job->duration_ns;
		struct pod pod = {.at_ns = at, .stay_ns = stay, .kind = job->kind, .next = NONE};
		int rc = add_pod(run, pod);

		if (rc == 0 && shift_ns && at + stay > span) {
			pod.at_ns = 0;
			pod.stay_ns = at + stay - span;
			pod.early = true;
			rc = add_pod(run, pod);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int by_arrival(const void *a, const void *b, void *ctx)
{
	const struct pod *x = a, *y = b;

	(void)ctx;
	return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

static int make_pods(struct run *run, uint32_t load_pct, uint64_t seed, struct takt_err *err)
{
	struct takt_rng rng;
	int rc = 0;

	run->result.copies = load_pct ? copies_for(run->world, load_pct) : 1;
	takt_sim_stream(seed, TAKT_SIM_SHIFTS, &rng);
	for (uint64_t i = 0; i < run->result.copies && rc == 0; i++)
		rc = add_copy(run,
			      load_pct ? 1 + takt_rng_below(&rng, run->world->span_ns - 1) : 0);
	/* Those that are there from the beginning come in no order of the trace. */
	takt_rng_shuffle(&rng, run->pods.at, load_pct ? run->pods.len : 0, sizeof(run->pods.at[0]));
	if (rc == 0)
		rc = takt_sort(run->pods.at, run->pods.len, sizeof(run->pods.at[0]), by_arrival,
			       NULL);
	return rc < 0 ? takt_err_set(err, rc, "no memory for %llu copies of the trace",
				     (unsigned long long)run->result.copies)
		      : 0;
}

/* Only the span counts. */
static void advance(struct run *run, uint64_t now_ns)
{
	uint64_t span = run->world->span_ns, from = run->now_ns < span ? run->now_ns : span;
	uint64_t to = now_ns < span ? now_ns : span;
	uint64_t ms = to / TAKT_NS_PER_MS - from / TAKT_NS_PER_MS;

	run->result.asked += run->asked_milli * ms;
	run->result.allocated += run->held_milli * ms;
	run->now_ns = now_ns;
}

static void book_wait(struct run *run, const struct pod *pod)
{
	uint64_t wait = run->now_ns - pod->at_ns;
	struct takt_timed_class *class =
		&run->result.classes.at[run->world->classes->of_kind.at[pod->kind]];

	if (pod->early)
		return;
	run->waits[run->wait_count++] = (int64_t)wait;
	run->wait_ms += wait / TAKT_NS_PER_MS;
	class->jobs++;
	class->waited += wait > 0;
	class->wait_ms += wait / TAKT_NS_PER_MS;
	run->result.waited += wait > 0;
}

/* 1 if it was placed, 0 if it does not fit. */
static int try_place(struct run *run, const struct pod *pod, struct takt_err *err)
{
	struct takt_slot slot;
	struct running *running;
	int rc;

	if (!takt_cluster_pick(run->cluster, run->kinds[pod->kind], NULL, &slot, NULL))
		return 0;
	running = takt_zalloc(sizeof(*running));
	if (!running)
		return takt_err_set(err, -ENOMEM, "no memory for a pod");
	*running = (struct running){.end_ns = run->now_ns + pod->stay_ns,
				    .seq = run->seq++,
				    .kind = pod->kind,
				    .slot = slot};
	rc = takt_cluster_take(run->cluster, run->kinds[pod->kind], &slot);
	if (rc == 0)
		rc = takt_heap_push(&run->heap, &running->node);
	if (rc < 0) {
		takt_free(running);
		return takt_err_set(err, rc, "place a pod");
	}
	run->held_milli += milli_of(run, pod->kind);
	book_wait(run, pod);
	return 1;
}

static void enqueue(struct run *run, uint32_t index)
{
	struct pod *pod = &run->pods.at[index];
	struct line *line = &run->lines[pod->kind];

	if (line->first == NONE) {
		line->first = index;
		run->waiting[run->waiting_count++] = pod->kind;
	} else {
		run->pods.at[line->last].next = index;
	}
	line->last = index;
}

static void dequeue(struct run *run, size_t at)
{
	struct line *line = &run->lines[run->waiting[at]];

	line->first = run->pods.at[line->first].next;
	if (line->first == NONE)
		run->waiting[at] = run->waiting[--run->waiting_count];
}

/* Of the kinds not yet tried in vain (those from `tried` on) the one whose first pod came first. */
static size_t earliest(const struct run *run, size_t tried)
{
	size_t best = tried;

	for (size_t i = tried + 1; i < run->waiting_count; i++)
		if (run->lines[run->waiting[i]].first < run->lines[run->waiting[best]].first)
			best = i;
	return best;
}

/* Pods that wait, by arrival. A kind that does not fit is put aside until the next release. */
static int serve(struct run *run, struct takt_err *err)
{
	size_t tried = 0;

	while (tried < run->waiting_count) {
		size_t at = earliest(run, tried);
		uint32_t kind = run->waiting[at];
		int rc = try_place(run, &run->pods.at[run->lines[kind].first], err);

		if (rc < 0)
			return rc;
		if (rc == 1) {
			dequeue(run, at);
			continue;
		}
		run->waiting[at] = run->waiting[tried];
		run->waiting[tried++] = kind;
	}
	return 0;
}

static int arrive(struct run *run, uint32_t index, struct takt_err *err)
{
	const struct pod *pod = &run->pods.at[index];
	int rc = 0;

	run->asked_milli += milli_of(run, pod->kind);
	run->result.jobs += !pod->early;
	/* Who asks for the same as somebody who waits does not fit either. */
	if (run->lines[pod->kind].first == NONE)
		rc = try_place(run, pod, err);
	if (rc == 0)
		enqueue(run, index);
	return rc < 0 ? rc : 0;
}

static int leave(struct run *run, struct running *running, struct takt_err *err)
{
	int rc = takt_cluster_give(run->cluster, run->kinds[running->kind], &running->slot);

	run->held_milli -= milli_of(run, running->kind);
	run->asked_milli -= milli_of(run, running->kind);
	takt_free(running);
	return rc < 0 ? takt_err_set(err, rc, "give back what a pod held") : 0;
}

static struct running *first_to_end(const struct run *run)
{
	struct takt_heap_node *node = takt_heap_first(&run->heap);

	return node ? TAKT_CONTAINER_OF(node, struct running, node) : NULL;
}

/* All that leave at one instant, then who waits. */
static int step_ends(struct run *run, struct takt_err *err)
{
	struct running *running = first_to_end(run);
	uint64_t at = running->end_ns;
	int rc = 0;

	advance(run, at);
	while (rc == 0 && running && running->end_ns == at) {
		takt_heap_pop(&run->heap);
		rc = leave(run, running, err);
		running = first_to_end(run);
	}
	return rc < 0 ? rc : serve(run, err);
}

/* Until all have come and nobody waits: what is left then only leaves. */
static int simulate(struct run *run, struct takt_err *err)
{
	size_t next = 0;
	int rc = 0;

	while (rc == 0 && (next < run->pods.len || run->waiting_count)) {
		const struct running *running = first_to_end(run);

		if (next < run->pods.len &&
		    (!running || run->pods.at[next].at_ns < running->end_ns)) {
			advance(run, run->pods.at[next].at_ns);
			rc = arrive(run, (uint32_t)next++, err);
		} else if (running) {
			rc = step_ends(run, err);
		} else {
			break;
		}
	}
	/* In an empty cluster nobody who could ever run waits. */
	for (size_t i = 0; i < run->waiting_count; i++)
		for (uint32_t at = run->lines[run->waiting[i]].first; at != NONE;
		     at = run->pods.at[at].next)
			run->result.impossible += !run->pods.at[at].early;
	return rc;
}

static int drain(struct run *run, struct takt_err *err)
{
	int rc = 0;

	while (rc == 0 && first_to_end(run) && run->now_ns < run->world->span_ns)
		rc = step_ends(run, err);
	return rc;
}

static int build(struct run *run, const struct takt_cluster_config *config, uint64_t seed,
		 struct takt_err *err)
{
	struct takt_rng rng;
	uint32_t *ranks = takt_calloc(run->world->cluster->nodes.len, sizeof(*ranks));
	int rc;

	if (!ranks)
		return takt_err_set(err, -ENOMEM, "no memory for a run");
	for (size_t i = 0; i < run->world->cluster->nodes.len; i++)
		ranks[i] = (uint32_t)i;
	takt_sim_stream(seed, TAKT_SIM_RANK, &rng);
	takt_rng_shuffle(&rng, ranks, run->world->cluster->nodes.len, sizeof(*ranks));
	rc = takt_sim_build(run->world->cluster, ranks, config, &run->cluster, err);
	takt_free(ranks);
	return rc < 0 ? rc : takt_sim_build_kinds(run->cluster, run->world->work, run->kinds, err);
}

static int allocate(struct run *run, struct takt_err *err)
{
	size_t kinds = run->world->work->kinds.len;
	size_t classes = run->world->classes->classes.len;

	run->result.classes.max = classes;
	run->kinds = takt_calloc(kinds, sizeof(*run->kinds));
	run->lines = takt_calloc(kinds, sizeof(*run->lines));
	run->waiting = takt_calloc(kinds, sizeof(*run->waiting));
	run->waits = takt_calloc(run->pods.len, sizeof(*run->waits));
	if (!run->kinds || !run->lines || !run->waiting || !run->waits ||
	    takt_vec_reserve(&run->result.classes, classes) < 0)
		return takt_err_set(err, -ENOMEM, "no memory for a run");
	run->result.classes.len = classes;
	memset(run->result.classes.at, 0, classes * sizeof(run->result.classes.at[0]));
	for (size_t i = 0; i < kinds; i++)
		run->lines[i].first = NONE;
	run->heap.nodes.max = run->pods.len;
	return 0;
}

static int ascending(const void *a, const void *b, void *ctx)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	(void)ctx;
	return (x > y) - (x < y);
}

static int sum_up(struct run *run, struct takt_err *err)
{
	size_t n = run->wait_count;
	int rc = takt_sort(run->waits, n, sizeof(*run->waits), ascending, NULL);

	if (rc < 0 || n == 0)
		return rc < 0 ? takt_err_set(err, rc, "no memory for waits") : 0;
	run->result.wait_mean_ns = run->wait_ms * TAKT_NS_PER_MS / n;
	run->result.wait_p99_ns = (uint64_t)takt_sim_percentile(run->waits, n, 990);
	run->result.wait_max_ns = (uint64_t)run->waits[n - 1];
	return 0;
}

static void run_fini(struct run *run)
{
	struct takt_heap_node *node;

	while ((node = takt_heap_pop(&run->heap)))
		takt_free(TAKT_CONTAINER_OF(node, struct running, node));
	takt_heap_fini(&run->heap);
	takt_cluster_free(run->cluster);
	takt_vec_fini(&run->pods);
	takt_free(run->kinds);
	takt_free(run->lines);
	takt_free(run->waiting);
	takt_free(run->waits);
}

int takt_timed_run(const struct takt_timed_world *world, const struct takt_placement *placement,
		   const struct takt_place_param *params, size_t param_count, uint32_t load_pct,
		   uint64_t seed, struct takt_timed_result *ret, struct takt_err *err)
{
	struct takt_workload workload = {world->typical->items.at, world->typical->items.len};
	struct takt_cluster_config config = {.placement = placement,
					     .workload = &workload,
					     .params = params,
					     .param_count = param_count,
					     .seed = seed};
	struct run run = {.world = world,
			  .pods = TAKT_VEC_INIT(TAKT_TIMED_MAX_JOBS),
			  .heap = TAKT_HEAP(0, by_end)};
	int rc = make_pods(&run, load_pct, seed, err);

	rc = rc < 0 ? rc : allocate(&run, err);
	rc = rc < 0 ? rc : build(&run, &config, seed, err);
	rc = rc < 0 ? rc : simulate(&run, err);
	rc = rc < 0 ? rc : drain(&run, err);
	rc = rc < 0 ? rc : sum_up(&run, err);
	if (rc == 0)
		*ret = run.result;
	else
		takt_timed_result_fini(&run.result);
	run_fini(&run);
	return rc;
}

void takt_timed_result_fini(struct takt_timed_result *result)
{
	takt_vec_fini(&result->classes);
}
