/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast whole plans are made: batches of 10,000 arrivals are told to a scheduler, planned and
 * taken as facts, until a cluster of 8-GPU nodes is full. CPU time of the one thread; the first
 * batch has to see every kind of request once and is given apart.
 *
 *	plan_rate NODES plain|features|why
 *
 * features: tenants in two levels with limits, one job in eight a gang of up to eight tasks that
 * requires or prefers a rack. why: the same, and every plan says why each job waits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/sched.h"

enum {
	BATCH = 10000,
	GPUS = 8,
	RACK = 2,
	TENANTS = 20,
};

struct bench {
	struct takt_sched *sched;
	struct takt_rng rng;
	struct takt_plan plan;
	bool features;
	uint64_t next_id;
};

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(int rc, const struct takt_err *err)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "plan_rate: %s\n", err->msg);
	exit(EXIT_FAILURE);
}

static void tell(struct bench *bench, const struct takt_sched_event *event)
{
	struct takt_err err = {0};

	check(takt_sched_update(bench->sched, event, &err), &err);
}

static void build(struct bench *bench, uint32_t nodes)
{
	static const char *const levels[] = {"zone", "rack", "leaf"};

	for (uint32_t i = 0; i < 3; i++)
		tell(bench, &(struct takt_sched_event){.kind = TAKT_SCHED_NAME,
						       .space = TAKT_SPACE_LEVEL,
						       .name_id = i + 1,
						       .name = levels[i]});
	for (uint32_t id = 1; id <= TENANTS; id++)
		tell(bench, &(struct takt_sched_event){
				    .kind = TAKT_SCHED_TENANT,
				    .tenant = &(struct takt_tenant){
					    .id = id,
					    .parent = id > 4 ? 1 + id % 4 : TAKT_TENANT_ROOT,
					    .weight = 1,
					    .may_borrow = true,
					    .limit_milli = id > 4 ? 600u * nodes : 0,
				    }});
	for (uint32_t i = 0; i < nodes; i++)
		tell(bench, &(struct takt_sched_event){
				    .kind = TAKT_SCHED_NODE_ADD,
				    .node = {.id = i,
					     .gpu_count = GPUS,
					     .cpu_milli = 128000,
					     .mem_mib = 1 << 20,
					     .domain = {1 + i / 2560, 1 + i / 160, 1 + i / 16}}});
}

static uint32_t draw(struct bench *bench, uint32_t n)
{
	return (uint32_t)takt_rng_below(&bench->rng, n);
}

static void add_features(struct bench *bench, struct takt_sched_job *job)
{
	job->tenant = 5 + draw(bench, TENANTS - 4);
	if (draw(bench, 8) > 0)
		return;
	job->tasks = 1 + draw(bench, 8);
	job->topology = draw(bench, 2) ? TAKT_TOPOLOGY_REQUIRED : TAKT_TOPOLOGY_PREFERRED;
	job->level = RACK;
}

static void arrive(struct bench *bench)
{
	static const uint16_t milli[] = {1000, 1000, 1000, 1000, 1000, 810,
					 810,  470,  320,  650,	 230,  550};
	static const uint32_t gpus[] = {1, 1, 1, 1, 1, 1, 1, 2, 4, 8};
	struct takt_sched_job job = {.id = bench->next_id, .submit_seq = bench->next_id};

	bench->next_id++;
	job.gpus = 1;
	job.task.milli = milli[draw(bench, 12)];
	if (job.task.milli == TAKT_REQUEST_WHOLE)
		job.gpus = gpus[draw(bench, 10)];
	job.task.cpu_milli = (int32_t)(1000 * (1 + draw(bench, 8)) * job.gpus);
	job.task.mem_mib = 4096 * (1 + draw(bench, 4));
	if (bench->features)
		add_features(bench, &job);
	tell(bench, &(struct takt_sched_event){.kind = TAKT_SCHED_JOB_ADD, .job = job, .at_ns = 1});
}

/* Placements of one batch, and the time that all of it took. */
static size_t run_batch(struct bench *bench, double *ret_s)
{
	struct takt_err err = {0};
	double start = cpu_s();

	for (int i = 0; i < BATCH; i++)
		arrive(bench);
	check(takt_sched_run(bench->sched, 2, 0, &bench->plan, &err), &err);
	check(takt_sched_commit(bench->sched, &bench->plan, 2, &err), &err);
	*ret_s = cpu_s() - start;
	return bench->plan.placement_count;
}

int main(int argc, char **argv)
{
	struct takt_sched_config config = {
		.order = &takt_order_fifo,
		.placement = takt_placement_find("fgd"),
		.backfill = TAKT_BACKFILL_GREEDY,
		.reasons = TAKT_REASONS_ASKED,
		.clean_at_end = true,
	};
	struct bench bench = {.next_id = 1};
	struct takt_err err = {0};
	double first_s = 0, later_s = 0, s;
	size_t first = 0, later = 0, n;

	if (argc != 3) {
		fprintf(stderr, "usage: %s NODES plain|features|why\n", argv[0]);
		return EXIT_FAILURE;
	}
	bench.features = strcmp(argv[2], "plain") != 0;
	if (strcmp(argv[2], "why") == 0)
		config.reasons = TAKT_REASONS_ALL;
	check(takt_sched_new(&config, &bench.sched, &err), &err);
	takt_rng_init(&bench.rng, 7);
	build(&bench, (uint32_t)strtoul(argv[1], NULL, 10));
	first = run_batch(&bench, &first_s);
	while ((n = run_batch(&bench, &s)) >= BATCH / 2) {
		later += n;
		later_s += s;
	}
	printf("first batch %zu placements, %.0f/s; later %zu placements, %.0f/s; all %.0f/s\n",
	       first, (double)first / first_s, later, (double)later / later_s,
	       (double)(first + later) / (first_s + later_s));
	takt_plan_fini(&bench.plan);
	takt_sched_free(bench.sched);
	return EXIT_SUCCESS;
}
