/* SPDX-License-Identifier: Apache-2.0 */
/* Gavel's generated jobs: drawn as its simulator draws them, and as many as the load says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/gavel_work.h"
#include "sim/queue_gavel.h"
#include "sim_kit.h"

enum {
	JOBS = 20000,
	SEED = 1000,
};

static struct takt_throughputs table;

static int read_table(void **state)
{
	(void)state;
	return kit_throughputs(&table);
}

static int drop_table(void **state)
{
	(void)state;
	takt_throughputs_fini(&table);
	return 0;
}

static uint32_t model(const char *name)
{
	uint32_t i = 0;

	while (strcmp(table.models[i], name) != 0)
		i++;
	return i;
}

static struct takt_gavel_config thirty_six_each(uint32_t load_permille)
{
	struct takt_gavel_config config = {
		.table = &table,
		.reference = model("v100"),
		.load_permille = load_permille,
		.jobs = JOBS,
	};

	config.devices[model("v100")] = 36;
	config.devices[model("p100")] = 36;
	config.devices[model("k80")] = 36;
	return config;
}

static int generate(const struct takt_gavel_config *config, struct takt_gavel_work *work,
		    struct takt_err *err)
{
	struct takt_rng arrivals, kinds;

	takt_rng_init(&arrivals, SEED);
	takt_rng_init(&kinds, SEED + 1);
	return takt_gavel_generate(config, &arrivals, &kinds, work, err);
}

static bool within(double value, double expected, double share)
{
	return value > expected * (1 - share) && value < expected * (1 + share);
}

static void jobs_are_drawn_as_published(void **state)
{
	struct takt_gavel_config config = thirty_six_each(800);
	double gpus[9] = {0}, hours = 0, longest = 0, shortest = 1e9, by_kind[83] = {0};
	struct takt_gavel_work work;

	(void)state;
	assert_int_equal(generate(&config, &work, NULL), 0);
	assert_int_equal(work.jobs.len, JOBS);
	for (size_t i = 0; i < JOBS; i++) {
		const struct takt_gavel_job *job = &work.jobs.at[i];
		double h = (double)job->duration_ns / 3.6e12;

		gpus[table.kinds.at[job->kind].gpus]++;
		by_kind[job->kind]++;
		hours += h / JOBS;
		longest = h > longest ? h : longest;
		shortest = h < shortest ? h : shortest;
		assert_int_equal(takt_gavel_run_ns(&config, job, config.reference),
				 job->duration_ns);
	}
	assert_true(within(gpus[1], 0.70 * JOBS, 0.03) && within(gpus[2], 0.10 * JOBS, 0.06));
	assert_true(within(gpus[4], 0.15 * JOBS, 0.06) && within(gpus[8], 0.05 * JOBS, 0.1));
	/* 60,360 s is the mean of the two parts; 10^1.5 and 10^4 minutes are the ends */
	assert_true(within(hours, 60360 / 3600., 0.05));
	assert_true(shortest > 0.527 && shortest < 0.54 && longest < 166.7 && longest > 160);
	for (size_t i = 0; i < table.kinds.len; i++)
		if (table.kinds.at[i].gpus == 1)
			assert_true(within(by_kind[i], 0.70 * JOBS / 26, 0.2));
	takt_gavel_fini(&work);
}

/* Served blindly, each model takes of the stream what it can: together they are busy for the load's
 * share of the time. */
static void load_is_the_share_of_time_that_blind_service_is_busy(void **state)
{
	static const char *const names[] = {"v100", "p100", "k80"};
	struct takt_gavel_config config = thirty_six_each(800);
	struct takt_gavel_work work;
	double rate, served = 0;

	(void)state;
	assert_int_equal(generate(&config, &work, NULL), 0);
	rate = JOBS / ((double)work.jobs.at[JOBS - 1].submit_ns / 1e9);
	for (size_t m = 0; m < 3; m++) {
		double device_s = 0, ran = 0;

		for (size_t i = 0; i < JOBS; i++) {
			const struct takt_gavel_job *job = &work.jobs.at[i];
			uint64_t run_ns = takt_gavel_run_ns(&config, job, model(names[m]));

			device_s += (double)run_ns / 1e9 * table.kinds.at[job->kind].gpus;
			ran += run_ns > 0;
		}
		served += 36 / (device_s / ran);
	}
	assert_true(within(rate / served, 0.8, 0.05));
	takt_gavel_fini(&work);
}

static void jobs_are_the_same_at_every_load(void **state)
{
	struct takt_gavel_config low = thirty_six_each(600), high = thirty_six_each(950);
	struct takt_gavel_work few, many;

	(void)state;
	assert_int_equal(generate(&low, &few, NULL), 0);
	assert_int_equal(generate(&high, &many, NULL), 0);
	for (size_t i = 0; i < JOBS; i++) {
		assert_int_equal(few.jobs.at[i].kind, many.jobs.at[i].kind);
		assert_int_equal(few.jobs.at[i].duration_ns, many.jobs.at[i].duration_ns);
		assert_true(few.jobs.at[i].submit_ns > many.jobs.at[i].submit_ns);
	}
	takt_gavel_fini(&few);
	takt_gavel_fini(&many);
}

static void speeds_are_relative_to_the_reference(void **state)
{
	struct takt_gavel_config config = thirty_six_each(800);
	struct takt_gavel_job job = {.duration_ns = 1000000};
	bool some_cannot = false;

	(void)state;
	for (uint32_t i = 0; i < table.kinds.len; i++) {
		const struct takt_throughput_kind *kind = &table.kinds.at[i];

		some_cannot |= takt_gavel_permille(&config, i, model("k80")) == 0;
		if (strcmp(kind->name, "ResNet-50 (batch size 64)") != 0 || kind->gpus != 1)
			continue;
		job.kind = i;
		assert_int_equal(takt_gavel_permille(&config, i, model("v100")), 1000);
		assert_int_equal(takt_gavel_permille(&config, i, model("p100")), 596);
		assert_int_equal(takt_gavel_permille(&config, i, model("k80")), 141);
		assert_true(within((double)takt_gavel_run_ns(&config, &job, model("k80")),
				   1000000 / 0.1408, 0.01));
	}
	assert_true(some_cannot); /* ResNet-50 (batch size 128) on several K80 */
}

static void wrong_settings_are_named(void **state)
{
	struct takt_gavel_config config = thirty_six_each(0);
	struct takt_gavel_work work;
	struct takt_err err;

	(void)state;
	assert_int_equal(generate(&config, &work, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "load of 0 permille"));
	config = thirty_six_each(800);
	config.jobs = 0;
	assert_int_equal(generate(&config, &work, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "0 jobs"));
	config = (struct takt_gavel_config){
		.table = &table, .reference = config.reference, .load_permille = 800, .jobs = 1};
	assert_int_equal(generate(&config, &work, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "no device"));
	config = thirty_six_each(800);
	takt_alloc_fail_nth(1, 0);
	assert_int_equal(generate(&config, &work, &err), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
}

/* On the cluster by name: jobs of 8 become gangs on nodes of 4, those that cannot run on a K80 ask
 * for the others, speeds stand where the scheduler looks for them (from model 1 on). */
static void the_queue_gets_jobs_with_speeds(void **state)
{
	struct takt_queue_gavel_config config = {.table = &table,
						 .reference = "v100",
						 .load_permille = 800,
						 .jobs = 2000,
						 .seed = 5};
	struct takt_sim_cluster cluster;
	struct takt_queue_gavel gavel;
	struct takt_queue_arrivals arrivals;
	size_t picky = 0, gangs = 0;

	(void)state;
	assert_int_equal(takt_sim_cluster_load("uniform:9x4:v100,9x4:p100,9x4:k80", &cluster, NULL),
			 0);
	assert_int_equal(takt_queue_gavel_make(&config, &cluster, &gavel, NULL), 0);
	assert_int_equal(takt_queue_gavel_arrivals(&gavel, &arrivals, NULL), 0);
	assert_int_equal(arrivals.jobs.len, 2000);
	TAKT_VEC_EACH (job, &arrivals.jobs) {
		const struct takt_sim_job *source = &gavel.work.jobs.at[job->source];
		const struct takt_sim_kind *kind = &gavel.work.kinds.at[source->kind];
		const struct takt_sched_workload *speeds = &gavel.workloads.at[job->workload - 1];
		const struct takt_throughput_kind *row = &table.kinds.at[job->workload - 1];

		assert_string_equal(source->name, row->name);
		assert_int_equal(kind->gpus * job->tasks, row->gpus);
		gangs += job->tasks == 2;
		assert_int_equal(speeds->count, 4);
		assert_int_equal(speeds->permille[1], 1000);
		if (kind->model_mask) {
			assert_int_equal(kind->model_mask, 3);
			assert_int_equal(speeds->permille[3], 0);
			picky++;
		}
	}
	assert_true(picky > 0 && gangs > 50);
	takt_queue_arrivals_fini(&arrivals);
	takt_queue_gavel_fini(&gavel);
	takt_sim_cluster_fini(&cluster);
}

static void clusters_that_the_table_does_not_know_are_refused(void **state)
{
	static const struct {
		const char *cluster, *reference, *words;
	} rows[] = {
		{"uniform:9x4:v100,9x4:h100", "v100", "no model 'h100'"},
		{"uniform:9x4", "v100", "names no model"},
		{"uniform:9x4:v100", "b200", "no model 'b200'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct takt_queue_gavel_config config = {.table = &table,
							 .reference = rows[i].reference,
							 .load_permille = 800,
							 .jobs = 1};
		struct takt_sim_cluster cluster;
		struct takt_queue_gavel gavel;
		struct takt_err err;

		assert_int_equal(takt_sim_cluster_load(rows[i].cluster, &cluster, NULL), 0);
		assert_int_equal(takt_queue_gavel_make(&config, &cluster, &gavel, &err), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i].words));
		takt_sim_cluster_fini(&cluster);
	}
}

static void no_allocation_is_taken_for_granted(void **state)
{
	struct takt_queue_gavel_config config = {
		.table = &table, .reference = "v100", .load_permille = 800, .jobs = 30, .seed = 5};
	int rc = -ENOMEM;

	(void)state;
	for (unsigned long nth = 1; rc < 0; nth++) {
		struct takt_sim_cluster cluster;
		struct takt_queue_gavel gavel;

		assert_int_equal(takt_sim_cluster_load("uniform:9x4:v100,9x4:k80", &cluster, NULL),
				 0);
		takt_alloc_fail_nth(nth, 0);
		rc = takt_queue_gavel_make(&config, &cluster, &gavel, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		if (rc == 0)
			takt_queue_gavel_fini(&gavel);
		takt_sim_cluster_fini(&cluster);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_are_drawn_as_published),
		cmocka_unit_test(load_is_the_share_of_time_that_blind_service_is_busy),
		cmocka_unit_test(jobs_are_the_same_at_every_load),
		cmocka_unit_test(speeds_are_relative_to_the_reference),
		cmocka_unit_test(wrong_settings_are_named),
		cmocka_unit_test(the_queue_gets_jobs_with_speeds),
		cmocka_unit_test(clusters_that_the_table_does_not_know_are_refused),
		cmocka_unit_test(no_allocation_is_taken_for_granted),
	};

	return cmocka_run_group_tests(tests, read_table, drop_table);
}
