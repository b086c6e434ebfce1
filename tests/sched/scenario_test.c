/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden scenarios. A directory each: `intent` (one line, the title), `events.jsonl` (what
 * happened), maybe `config.json` (how the scheduler is set up, and what time it is), and what must
 * come out of it: `plan.json`, `scores.txt` (every set of GPUs that each placed job of whole GPUs
 * could have had, best first; not with a placement policy) and `summary.txt` (for people).
 *
 *	scenario_test [--update] DIRECTORY
 *
 * Without --update each is compared (TAP); with it the three outputs are written anew, to be
 * reviewed as a diff. The scores are worked out here, by listing all sets and sorting them as
 * sched.h states; a choice that is not the first of its list fails also under --update.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"
#include "codec/json.h"
#include "codec/shape.h"
#include "codec/snapshot.h"
#include "sched/order.h"
#include "sched/place.h"

enum {
	TEXT_MAX = 4 * 1024 * 1024,
	MAX_NODES = 16,
	MAX_JOBS = 64,
	MAX_SCENARIOS = 500,
	MAX_SETS = 100000,
	SETS_SHOWN = 100,
};

/* config.json. */
struct setup {
	char order[32];
	char placement[32];
	enum takt_backfill backfill;
	bool preempt;
	bool clean_at_end;
	uint64_t now_ns;
	uint32_t reserve_depth, safety_permille, migrate_most;
	uint64_t min_runtime_ns;
	uint32_t flap_count;
	uint64_t flap_window_ns, flap_rest_ns;
	uint64_t guard_ns;
	uint32_t hold_permille;
};
#define NUMBER(member, k)                                                                   \
	{                                                                                   \
		TAKT_FIELD_AT(struct setup, member, k), .optional = true, .max = UINT32_MAX \
	}
#define TIME(member)                                                                   \
	{                                                                              \
		TAKT_FIELD_AT(struct setup, member, TAKT_FIELD_U64), .optional = true, \
								     .max = INT64_MAX  \
	}
static const struct takt_field setup_fields[] = {
	{TAKT_FIELD_AT(struct setup, order, TAKT_FIELD_TEXT), .size = 32},
	{TAKT_FIELD_AT(struct setup, placement, TAKT_FIELD_TEXT), .size = 32},
	{TAKT_FIELD_AT(struct setup, backfill, TAKT_FIELD_ENUM), .names = takt_backfill_names},
	{TAKT_FIELD_AT(struct setup, preempt, TAKT_FIELD_BOOL)},
	{TAKT_FIELD_AT(struct setup, clean_at_end, TAKT_FIELD_BOOL)},
	TIME(now_ns),
	NUMBER(reserve_depth, TAKT_FIELD_U32),
	NUMBER(safety_permille, TAKT_FIELD_U32),
	NUMBER(migrate_most, TAKT_FIELD_U32),
	TIME(min_runtime_ns),
	NUMBER(flap_count, TAKT_FIELD_U32),
	TIME(flap_window_ns),
	TIME(flap_rest_ns),
	TIME(guard_ns),
	NUMBER(hold_permille, TAKT_FIELD_U32),
};
static const struct takt_shape setup_shape =
	TAKT_SHAPE(struct setup, "a scenario's config", setup_fields);

/* What the scenario is about, taken from the canonical snapshot. */
struct scene {
	struct setup setup;
	struct takt_sched *sched;
	struct takt_plan plan;
	uint32_t node_count;
	struct scene_node {
		uint32_t id;
		uint32_t gpu_count;
		int32_t *pair_score; /* owned */
		uint64_t taken;	     /* by the placements shown so far */
	} nodes[MAX_NODES];
	uint32_t job_count;
	struct takt_sched_job jobs[MAX_JOBS];
};

static int collect(void *ctx, const struct takt_sched_event *event)
{
	struct scene *scene = ctx;
	size_t size = event->node.gpu_count * event->node.gpu_count * sizeof(int32_t);
	struct scene_node *node = &scene->nodes[scene->node_count];

	if (event->kind == TAKT_SCHED_JOB_ADD && scene->job_count < MAX_JOBS)
		scene->jobs[scene->job_count++] = event->job;
	if (event->kind != TAKT_SCHED_NODE_ADD || scene->node_count == MAX_NODES)
		return 0;
	*node = (struct scene_node){event->node.id, event->node.gpu_count, takt_alloc(size), 0};
	if (!node->pair_score)
		return -ENOMEM;
	if (size > 0 && event->node.pair_score)
		memcpy(node->pair_score, event->node.pair_score, size);
	else if (size > 0)
		memset(node->pair_score, 0, size);
	scene->node_count++;
	return 0;
}

static void scene_fini(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->node_count; i++)
		takt_free(scene->nodes[i].pair_score);
	takt_plan_fini(&scene->plan);
	takt_sched_free(scene->sched);
}

static const struct takt_sched_job *find_job(const struct scene *scene, uint64_t id)
{
	static const struct takt_sched_job none;

	for (uint32_t i = 0; i < scene->job_count; i++)
		if (scene->jobs[i].id == id)
			return &scene->jobs[i];
	return &none;
}

/* Scores. */

struct candidate {
	const struct scene_node *node;
	uint64_t mask;
	uint32_t shared; /* GPUs with outside use */
	int64_t sum;
	int64_t rest; /* pair scores among what stays free */
	uint32_t left;
};

static int64_t sum_of(const struct scene_node *node, uint64_t mask)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < node->gpu_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (mask >> i & mask >> j & 1)
				sum += node->pair_score[i * node->gpu_count + j];
	return sum;
}

/* The words of sched.h: among nodes fewest shared, largest sum, fewest left, lowest id; inside a
 * node fewest shared, largest sum, largest rest, smallest list. The node is chosen by its best set.
 */
static int compare_candidates(const void *va, const void *vb, void *ctx)
{
	const struct candidate *a = va;
	const struct candidate *b = vb;

	if (a->shared != b->shared)
		return a->shared < b->shared ? -1 : 1;
	if (a->sum != b->sum)
		return a->sum > b->sum ? -1 : 1;
	if (a->left != b->left)
		return a->left < b->left ? -1 : 1;
	if (a->node->id != b->node->id)
		return a->node->id < b->node->id ? -1 : 1;
	if (a->rest != b->rest)
		return a->rest > b->rest ? -1 : 1;
	for (uint32_t i = 0; i < 64; i++)
		if ((a->mask ^ b->mask) >> i & 1)
			return a->mask >> i & 1 ? -1 : 1;
	return 0;
}

/* GPUs that the job may have now; those with outside use in *ret_outside. */
static uint64_t free_gpus(const struct scene *scene, const struct scene_node *node, uint32_t flags,
			  uint64_t *ret_outside)
{
	uint64_t mask = 0;

	*ret_outside = 0;
	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		enum takt_gpu_state state;
		bool outside;

		if (takt_sched_gpu(scene->sched, node->id, gpu, &state, &outside, NULL) < 0)
			return 0;
		if (state != TAKT_GPU_FREE || (outside && !(flags & TAKT_JOB_USE_OUTSIDE)))
			continue;
		mask |= UINT64_C(1) << gpu;
		*ret_outside |= (uint64_t)outside << gpu;
	}
	return mask & ~node->taken;
}

struct candidates {
	TAKT_VEC(struct candidate) list;
};

static int list_sets(const struct scene *scene, const struct scene_node *node,
		     const struct takt_sched_job *job, struct candidates *all)
{
	uint64_t outside;
	uint64_t free_mask = free_gpus(scene, node, job->flags, &outside);
	uint64_t clean = free_mask & ~outside;
	int rc = 0;

	for (uint64_t mask = free_mask; rc >= 0; mask = (mask - 1) & free_mask) {
		bool enough_clean = (uint32_t)__builtin_popcountll(clean) >= job->gpus;
		uint64_t stays = (enough_clean ? clean : free_mask) & ~mask;

		if ((uint32_t)__builtin_popcountll(mask) == job->gpus)
			rc = takt_vec_push(
				&all->list,
				(struct candidate){
					.node = node,
					.mask = mask,
					.shared = (uint32_t)__builtin_popcountll(mask & outside),
					.sum = sum_of(node, mask),
					.rest = sum_of(node, stays),
					.left = (uint32_t)__builtin_popcountll(free_mask) -
						job->gpus,
				});
		if (mask == 0)
			break;
	}
	return rc;
}

static void add_gpus(struct takt_str *out, uint64_t mask)
{
	if (mask == 0)
		takt_str_add(out, " none");
	for (; mask; mask &= mask - 1)
		takt_str_addf(out, " %d", __builtin_ctzll(mask));
}

static void add_sets(struct takt_str *out, const struct candidates *all)
{
	for (size_t i = 0; i < all->list.len && i < SETS_SHOWN; i++) {
		const struct candidate *set = &all->list.at[i];

		takt_str_addf(out, "  node %" PRIu32 " gpus", set->node->id);
		add_gpus(out, set->mask);
		takt_str_addf(out, ": sum %" PRIi64 ", rest %" PRIi64, set->sum, set->rest);
		if (set->shared)
			takt_str_addf(out, ", shared %" PRIu32, set->shared);
		takt_str_add(out, i == 0 ? "  <- chosen\n" : "\n");
	}
	if (all->list.len > SETS_SHOWN)
		takt_str_addf(out, "  and %zu more\n", all->list.len - SETS_SHOWN);
}

/* Whole GPUs on one node and nothing else, chosen by links: what scores are listed for. */
static bool is_plain(const struct scene *scene, uint64_t job_id)
{
	static const struct takt_request nothing;
	const struct takt_sched_job *job = find_job(scene, job_id);

	return !scene->setup.placement[0] && job->tasks <= 1 && !job->near_group &&
	       !job->apart_group && memcmp(&job->task, &nothing, sizeof(nothing)) == 0;
}

/* -EPROTO when the plan did not choose the first of the list. */
static int add_scores(struct scene *scene, const struct takt_plan_placement *p,
		      struct takt_str *out)
{
	const struct takt_sched_job *job = find_job(scene, p->job_id);
	struct candidates all = {.list = TAKT_VEC_INIT(MAX_SETS)};
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < scene->node_count; i++)
		rc = list_sets(scene, &scene->nodes[i], job, &all);
	if (rc >= 0)
		rc = takt_sort(all.list.at, all.list.len, sizeof(*all.list.at), compare_candidates,
			       NULL);
	if (rc >= 0 && (all.list.len == 0 || all.list.at[0].mask != p->gpu_mask ||
			all.list.at[0].node->id != p->node_id))
		rc = -EPROTO;
	takt_str_addf(out, "job %" PRIu64 ", %" PRIu32 " GPUs, %zu sets\n", p->job_id, job->gpus,
		      all.list.len);
	add_sets(out, &all);
	takt_vec_fini(&all.list);
	for (uint32_t i = 0; i < scene->node_count; i++)
		if (scene->nodes[i].id == p->node_id)
			scene->nodes[i].taken |= p->gpu_mask;
	return rc;
}

/* The summary. */

static void add_gpu_line(const struct scene *scene, const struct scene_node *node, uint32_t gpu,
			 struct takt_str *out)
{
	enum takt_gpu_state state;
	bool outside;
	uint64_t job_id;

	if (takt_sched_gpu(scene->sched, node->id, gpu, &state, &outside, &job_id) < 0)
		return;
	takt_str_addf(out, "  gpu %" PRIu32 " %s", gpu, takt_gpu_state_name(state));
	if (job_id)
		takt_str_addf(out, " (job %" PRIu64 ")", job_id);
	takt_str_add(out, outside ? ", used from outside\n" : "\n");
}

static void add_wait_line(const struct scene *scene, const struct takt_plan_wait *wait,
			  struct takt_str *out)
{
	const struct takt_sched_job *job = find_job(scene, wait->job_id);

	takt_str_addf(out, "  job %" PRIu64 " (%" PRIu32 " GPUs, priority %" PRIi32 "): %s\n    ",
		      wait->job_id, job->gpus, job->priority, takt_why_name(wait->why));
	takt_why_details(&scene->plan, wait, scene->setup.now_ns, out);
	takt_str_add(out, "\n");
}

static void add_layouts(const struct takt_plan *plan, struct takt_str *out)
{
	takt_str_add(out, plan->layout_count ? "cut\n" : "");
	for (size_t i = 0; i < plan->layout_count; i++)
		takt_str_addf(out,
			      "  node %" PRIu32 " gpu %" PRIu32 ": profile %" PRIu32
			      " from slice %" PRIu32 ", for job %" PRIu64 "%s\n",
			      plan->layouts[i].node_id, plan->layouts[i].gpu,
			      plan->layouts[i].profile, plan->layouts[i].start,
			      plan->layouts[i].for_job,
			      plan->layouts[i].first ? "; into MIG mode first" : "");
}

static void add_evictions(const struct takt_plan *plan, struct takt_str *out)
{
	takt_str_add(out, plan->eviction_count ? "evicted\n" : "");
	for (size_t i = 0; i < plan->eviction_count; i++) {
		const struct takt_plan_eviction *eviction = &plan->evictions[i];

		takt_str_addf(out, "  job %" PRIu64 " %s: %s", eviction->job_id,
			      eviction->stop ? "stopped" : "requeued",
			      takt_evict_why_names[eviction->why]);
		if (eviction->for_job)
			takt_str_addf(out, ", for job %" PRIu64, eviction->for_job);
		takt_str_addf(out, ", loses %" PRIu64 " GPU-ms\n", eviction->lost_gpu_ms);
	}
}

static void add_reservations(const struct takt_plan *plan, struct takt_str *out)
{
	takt_str_add(out, plan->reservation_count ? "next\n" : "");
	for (size_t i = 0; i < plan->reservation_count; i++) {
		const struct takt_plan_reservation *r = &plan->reservations[i];

		takt_str_addf(out, "  job %" PRIu64 " on node %" PRIu32 ", gpus", r->job_id,
			      r->node_id);
		add_gpus(out, r->gpu_mask);
		takt_str_addf(out, ", at %" PRIu64 " (%s)\n", r->start_ns,
			      takt_start_how_names[r->how]);
	}
	takt_str_add(out, plan->migration_count ? "moved\n" : "");
	for (size_t i = 0; i < plan->migration_count; i++) {
		const struct takt_plan_migration *m = &plan->migrations[i];

		takt_str_addf(out, "  job %" PRIu64 " task %" PRIu32 " from node %" PRIu32 " gpus",
			      m->job_id, m->task, m->from.node_id);
		add_gpus(out, m->from.gpu_mask);
		takt_str_addf(out, " to node %" PRIu32 " gpus", m->to.node_id);
		add_gpus(out, m->to.gpu_mask);
		takt_str_add(out, "\n");
	}
}

static void add_summary(const struct scene *scene, struct takt_str *out)
{
	for (uint32_t i = 0; i < scene->node_count; i++) {
		const struct scene_node *node = &scene->nodes[i];

		takt_str_addf(out, "node %" PRIu32 "\n", node->id);
		for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++)
			add_gpu_line(scene, node, gpu, out);
	}
	takt_str_add(out, "placed\n");
	for (size_t i = 0; i < scene->plan.placement_count; i++) {
		const struct takt_plan_placement *p = &scene->plan.placements[i];

		takt_str_addf(out, "  job %" PRIu64 " on node %" PRIu32 ", gpus", p->job_id,
			      p->node_id);
		add_gpus(out, p->gpu_mask);
		if (p->milli < 1000)
			takt_str_addf(out, ", %" PRIu32 " milli", p->milli);
		takt_str_addf(out, ", pair score %" PRIi64 "\n", p->pair_score_sum);
	}
	add_layouts(&scene->plan, out);
	add_evictions(&scene->plan, out);
	add_reservations(&scene->plan, out);
	takt_str_add(out, "waiting\n");
	for (size_t i = 0; i < scene->plan.wait_count; i++)
		add_wait_line(scene, &scene->plan.waits[i], out);
}

/* Files. */

static int read_file(const char *dir, const char *name, struct takt_str *out)
{
	char path[512];
	char bytes[4096];
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "r");
	if (!file)
		return -errno;
	while ((n = fread(bytes, 1, sizeof(bytes), file)) > 0)
		takt_str_addn(out, bytes, n);
	fclose(file);
	return out->rc;
}

static int write_file(const char *dir, const char *name, const struct takt_str *text)
{
	char path[512];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file)
		return -errno;
	ok = fputs(takt_str_text(text), file) >= 0;
	return fclose(file) == 0 && ok ? 0 : -EIO;
}

/* As comments of TAP. */
static void print_comment(const struct takt_str *text)
{
	const char *end;

	for (const char *line = takt_str_text(text); *line; line = end + (*end != '\0')) {
		end = line + strcspn(line, "\n");
		printf("#   %.*s\n", (int)(end - line), line);
	}
}

/* Compares or writes one output. */
static int settle(const char *dir, const char *name, const struct takt_str *text, bool update)
{
	struct takt_str expected = TAKT_STR(TEXT_MAX);
	int rc;

	if (update)
		return write_file(dir, name, text);
	rc = read_file(dir, name, &expected);
	if (rc >= 0 && strcmp(takt_str_text(&expected), takt_str_text(text)) != 0) {
		printf("# %s/%s is not as expected; what came out:\n", dir, name);
		print_comment(text);
		rc = -EPROTO;
	}
	takt_str_fini(&expected);
	return rc;
}

static int show(struct scene *scene, const char *dir, bool update)
{
	struct takt_str plan = TAKT_STR(TEXT_MAX);
	struct takt_str scores = TAKT_STR(TEXT_MAX);
	struct takt_str summary = TAKT_STR(TEXT_MAX);
	int rc = takt_plan_to_json(&scene->plan, &plan, NULL);
	int scored = 0;
	int settled;

	for (size_t i = 0; i < scene->plan.placement_count && scored == 0; i++)
		if (is_plain(scene, scene->plan.placements[i].job_id))
			scored = add_scores(scene, &scene->plan.placements[i], &scores);
	if (scored == -EPROTO) {
		printf("# %s: the choice is not the first of\n", dir);
		print_comment(&scores);
	}
	add_summary(scene, &summary);
	rc = rc < 0 ? rc : scored;
	rc = rc < 0 ? rc : scores.rc | summary.rc;
	settled = settle(dir, "plan.json", &plan, update);
	rc = rc < 0 ? rc : settled;
	settled = settle(dir, "scores.txt", &scores, update);
	rc = rc < 0 ? rc : settled;
	settled = settle(dir, "summary.txt", &summary, update);
	rc = rc < 0 ? rc : settled;
	takt_str_fini(&plan);
	takt_str_fini(&scores);
	takt_str_fini(&summary);
	return rc;
}

/* No file: all as on one machine, at time 0. */
static int read_setup(const char *dir, struct setup *setup, struct takt_err *err)
{
	struct takt_str text = TAKT_STR(TEXT_MAX);
	int rc = read_file(dir, "config.json", &text);

	if (rc == 0)
		rc = takt_shape_decode(&setup_shape, takt_str_text(&text), text.len, TEXT_MAX,
				       TAKT_SHAPE_STRICT, setup, err);
	takt_str_fini(&text);
	return rc == -ENOENT ? 0 : rc;
}

static int to_config(const struct setup *setup, struct takt_order_config *order_config,
		     struct takt_sched_config *ret, struct takt_err *err)
{
	order_config->guard_ns = setup->guard_ns;
	order_config->hold_permille = setup->hold_permille;
	*ret = (struct takt_sched_config){
		.order = takt_order_find(setup->order),
		.order_config = order_config,
		.placement = takt_placement_find(setup->placement),
		.backfill = setup->backfill,
		.preempt = setup->preempt,
		.clean_at_end = setup->clean_at_end,
		.reserve_depth = setup->reserve_depth,
		.safety_permille = setup->safety_permille,
		.migrate_most = setup->migrate_most,
		.min_runtime_ns = setup->min_runtime_ns,
		.flap_count = setup->flap_count,
		.flap_window_ns = setup->flap_window_ns,
		.flap_rest_ns = setup->flap_rest_ns,
	};
	if ((setup->order[0] && !ret->order) || (setup->placement[0] && !ret->placement))
		return takt_err_set(err, -EINVAL, "no order '%s', or no placement '%s'",
				    setup->order, setup->placement);
	return 0;
}

static int run_scenario(const char *dir, bool update)
{
	struct takt_order_config order_config = {0};
	struct takt_sched_config config = {0};
	struct takt_str events = TAKT_STR(TEXT_MAX);
	struct scene scene = {0};
	struct takt_err err = {0};
	int rc = read_file(dir, "events.jsonl", &events);

	if (rc >= 0)
		rc = read_setup(dir, &scene.setup, &err);
	if (rc >= 0)
		rc = to_config(&scene.setup, &order_config, &config, &err);
	if (rc >= 0)
		rc = takt_snapshot_load(takt_str_text(&events), events.len, &config, &scene.sched,
					&err);
	if (rc >= 0)
		rc = takt_sched_snapshot(scene.sched, collect, &scene);
	if (rc >= 0)
		rc = takt_sched_run(scene.sched, scene.setup.now_ns, 0, &scene.plan, &err);
	if (rc < 0)
		printf("# %s: %s\n", dir, err.msg);
	else
		rc = show(&scene, dir, update);
	scene_fini(&scene);
	takt_str_fini(&events);
	return rc;
}

static int read_intent(const char *dir, struct takt_str *ret)
{
	int rc = read_file(dir, "intent", ret);
	const char *end = strchr(takt_str_text(ret), '\n');

	if (rc < 0 || !end || end[1] != '\0' || end == ret->s)
		return -EINVAL;
	*strchr(ret->s, '\n') = '\0';
	return 0;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	TAKT_VEC(char *) list; /* each owned */
};

static int list_scenarios(const char *root, struct names *names)
{
	DIR *dir = opendir(root);
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return -errno;
	while (rc >= 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			rc = takt_vec_push(&names->list, takt_strdup(entry->d_name));
	closedir(dir);
	return rc < 0 ? rc
		      : takt_sort(names->list.at, names->list.len, sizeof(char *), by_name, NULL);
}

static bool run_and_report(const char *root, const char *name, size_t number, bool update)
{
	struct takt_str intent = TAKT_STR(1000);
	char dir[400];
	int rc;

	snprintf(dir, sizeof(dir), "%s/%s", root, name);
	rc = read_intent(dir, &intent);
	if (rc < 0)
		printf("# %s/intent must be one line\n", dir);
	else
		rc = run_scenario(dir, update);
	printf("%s %zu - %s: %s\n", rc < 0 ? "not ok" : "ok", number, name, takt_str_text(&intent));
	takt_str_fini(&intent);
	return rc >= 0;
}

int main(int argc, char **argv)
{
	bool update = argc == 3 && strcmp(argv[1], "--update") == 0;
	struct names names = {.list = TAKT_VEC_INIT(MAX_SCENARIOS)};
	size_t failed = 0;

	if (argc != 2 && !update) {
		fprintf(stderr, "usage: %s [--update] DIRECTORY\n", argv[0]);
		return EXIT_FAILURE;
	}
	takt_json_init();
	if (list_scenarios(argv[argc - 1], &names) < 0 || names.list.len == 0) {
		fprintf(stderr, "no scenarios in %s\n", argv[argc - 1]);
		return EXIT_FAILURE;
	}
	printf("1..%zu\n", names.list.len);
	for (size_t i = 0; i < names.list.len; i++) {
		failed += !run_and_report(argv[argc - 1], names.list.at[i], i + 1, update);
		takt_free(names.list.at[i]);
	}
	takt_vec_fini(&names.list);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
