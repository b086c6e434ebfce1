/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep within a job: each setting in turn, in an order drawn anew for each repeat, so that a
 * board that grows warmer does not favour one end of the list. The job's GPUs are set under its
 * benchmark lease, and looked at again after each run: a run that did not have what it is
 * attributed to is no measurement.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/sys.h"
#include "cli/job_options.h"
#include "cli/profiles.h"
#include "cli/tune.h"
#include "cli/units.h"

enum {
	DEFAULT_STEPS = 8,
	DEFAULT_REPEATS = 3,
	WATCHED_RUNS = 3,
	LOWEST_PERMILLE = 400, /* of the highest clock: below it every step costs, and none pays */
	MAX_FOR_MS = 24 * 3600 * 1000,
};

struct sweep {
	struct takt_cli *cli;
	struct takt_tune_work work;
	struct takt_tune_meter meter;
	struct takt_tune_result *result; /* owned */
	struct takt_clock_view *clocks;	 /* owned */
	struct takt_job_view *job;	 /* owned */
	uint64_t gpu_mask;
	char kind[16], seconds[24], self[4096];
	char *bench_argv[9]; /* borrowed from these */
};

static int read_percent(const struct takt_cli *cli, double *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "max-slowdown");
	char *end;

	*ret = 5;
	if (!text)
		return 0;
	*ret = strtod(text, &end);
	if (end == text || (strcmp(end, "") != 0 && strcmp(end, "%") != 0) || !(*ret >= 0) ||
	    *ret > 1000)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--max-slowdown' must be such as 5%%, not '%.40s'", text);
	return 0;
}

static int read_metric(struct sweep *sweep, struct takt_err *err)
{
	const char *text = takt_cli_value(sweep->cli, "metric");

	sweep->work.metric = TAKT_TUNE_AUTO;
	if (text && strcmp(text, "progress") == 0)
		sweep->work.metric = TAKT_TUNE_PROGRESS;
	else if (text && strcmp(text, "time") == 0)
		sweep->work.metric = TAKT_TUNE_TIME;
	else if (text)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--metric' must be progress or time, not '%.40s'", text);
	return 0;
}

/* Without a command: takt's own benchmark. */
static int use_bench(struct sweep *sweep, struct takt_err *err)
{
	const char *kind = takt_cli_value(sweep->cli, "bench");
	uint64_t ms = sweep->work.for_ms ? sweep->work.for_ms : 5000;
	ssize_t n = readlink("/proc/self/exe", sweep->self, sizeof(sweep->self) - 1);
	char *const argv[] = {sweep->self,	   (char *)"bench",  (char *)"gpu",
			      (char *)"--json",	   (char *)"--kind", sweep->kind,
			      (char *)"--seconds", sweep->seconds};

	if (n < 0)
		return takt_err_set(err, -errno, "find takt itself");
	takt_strcpy(sweep->kind, sizeof(sweep->kind), kind);
	snprintf(sweep->seconds, sizeof(sweep->seconds), "%llu",
		 (unsigned long long)(ms / 1000 ? ms / 1000 : 1));
	memcpy(sweep->bench_argv, argv, sizeof(argv));
	sweep->work.argv = sweep->bench_argv;
	sweep->work.metric = TAKT_TUNE_SAID;
	sweep->work.for_ms = 0;
	return 0;
}

static int read_work(struct sweep *sweep, struct takt_err *err)
{
	const struct takt_cli *cli = sweep->cli;
	int rc = read_metric(sweep, err);

	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "for", MAX_FOR_MS, 0, &sweep->work.for_ms, err);
	if (rc < 0)
		return rc;
	sweep->work.check = takt_cli_value(cli, "check");
	sweep->work.argv = cli->operands;
	return cli->operand_count ? 0 : use_bench(sweep, err);
}

static int read_numbers(struct sweep *sweep, struct takt_err *err)
{
	int64_t repeats, seed;
	int rc = takt_cli_number(sweep->cli, "repeat", 1, TAKT_TUNE_MAX_REPEATS, DEFAULT_REPEATS,
				 &repeats, err);

	if (rc == 0)
		rc = takt_cli_number(sweep->cli, "seed", 0, INT64_MAX, 1, &seed, err);
	if (rc == 0)
		rc = read_percent(sweep->cli, &sweep->result->max_slowdown_pct, err);
	if (rc < 0)
		return rc;
	sweep->result->repeats = (uint32_t)repeats;
	sweep->result->seed = (uint64_t)seed;
	return 0;
}

/* Whose request this is: "PID START". It being gone ends the sweep, and so the lease. */
static int watch_owner(struct sweep *sweep, struct takt_err *err)
{
	const char *text = getenv("TAKT_TUNE_OWNER");
	struct takt_proc_id owner = {0};
	unsigned long long start;

	sweep->work.owner_fd = -1;
	if (!text || sscanf(text, "%d %llu", &owner.pid, &start) != 2)
		return 0;
	owner.start_ticks = start;
	takt_boot_id(owner.boot_id);
	sweep->work.owner_fd = takt_proc_open(&owner);
	return sweep->work.owner_fd < 0
		       ? takt_err_set(err, -ECANCELED, "whoever began this sweep is gone")
		       : 0;
}

static int find_job(struct sweep *sweep, struct takt_err *err)
{
	uint64_t id = 0;
	int rc = takt_cli_job_id(getenv("TAKT_JOB_ID"), &id, err);

	if (rc == 0)
		rc = takt_cli_connect(sweep->cli, err);
	if (rc == 0)
		rc = takt_client_job(sweep->cli->client, id, sweep->job, err);
	if (rc == 0 &&
	    (sweep->job->gpu_list_count == 0 || sweep->job->gpu_milli || sweep->job->mig[0]))
		rc = takt_err_set(err, -TAKT_E_USAGE, "takt tune needs whole GPUs");
	for (uint32_t i = 0; rc == 0 && i < sweep->job->gpu_list_count; i++)
		sweep->gpu_mask |= 1ull << sweep->job->gpu_list[i];
	return rc;
}

static int start_meter(struct sweep *sweep, struct takt_err *err)
{
	char *uuids[TAKT_VIEW_MAX_GPUS], program[4096 + 16];
	struct takt_tune_result *result = sweep->result;
	int rc;

	for (uint32_t i = 0; i < sweep->job->gpu_list_count; i++)
		uuids[i] = sweep->job->gpu_uuid[i];
	sweep->cli->extra->helper("takt-bench", program, sizeof(program));
	rc = takt_tune_meter_start(program, uuids, sweep->job->gpu_list_count, &sweep->meter, err);
	if (rc == 0)
		rc = takt_tune_meter_listen(&sweep->meter, err);
	if (rc < 0)
		return rc;
	result->simulated = sweep->meter.simulated;
	result->gpus = sweep->job->gpu_list_count;
	takt_strcpy(result->gpu_name, sizeof(result->gpu_name), sweep->meter.gpu_name);
	return 0;
}

/* Results are compared wherever there are some: what was worked out must be the same, what was
 * printed may have times in it. */
static int choose_comparison(struct sweep *sweep, struct takt_err *err)
{
	struct takt_tune_result *result = sweep->result;
	bool bench = sweep->work.metric == TAKT_TUNE_SAID;
	bool strict = bench || takt_cli_has(sweep->cli, "same-output");
	const char *why = NULL;

	(void)err;
	if (takt_cli_has(sweep->cli, "any-output"))
		why = "--any-output";
	else if (bench && result->simulated)
		why = "the simulated driver computes nothing";
	else if (sweep->work.for_ms && !strict)
		why = "--for ends each run somewhere in its work ('--check CMD' looks at a result)";
	if (why) {
		takt_strcpy(result->not_compared, sizeof(result->not_compared), why);
		return 0;
	}
	result->compared = !bench				? "output"
			   : strcmp(sweep->kind, "stream") == 0 ? "copy"
								: "product";
	sweep->work.compare = strict ? TAKT_TUNE_COMPARE_STOP : TAKT_TUNE_COMPARE_NOTE;
	return 0;
}

static const struct takt_clock_gpu *first_gpu(const struct sweep *sweep)
{
	for (uint32_t i = 0; i < sweep->clocks->gpu_count; i++)
		if (sweep->gpu_mask >> sweep->clocks->gpu[i].index & 1)
			return &sweep->clocks->gpu[i];
	return NULL;
}

static int list_settings(struct sweep *sweep, struct takt_err *err)
{
	struct takt_tune_axes axes = {.clocks = takt_cli_value(sweep->cli, "clocks"),
				      .power_limits = takt_cli_value(sweep->cli, "power-limits")};
	const struct takt_clock_gpu *gpu;
	uint32_t low;
	int64_t steps;
	int rc = takt_cli_number(sweep->cli, "steps", 2, TAKT_TUNE_MAX_POINTS, DEFAULT_STEPS,
				 &steps, err);

	if (rc == 0)
		rc = takt_client_clocks(sweep->cli->client, sweep->clocks, err);
	if (rc < 0)
		return rc;
	gpu = first_gpu(sweep);
	if (!gpu || gpu->list_max_mhz == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "the driver lists no SM clocks for this GPU");
	axes.steps = (uint32_t)steps;
	low = gpu->list_max_mhz * LOWEST_PERMILLE / 1000;
	if (axes.clocks || low < gpu->list_min_mhz)
		low = gpu->list_min_mhz;
	return takt_tune_settings(&axes, low, gpu->list_max_mhz, sweep->result, err);
}

static bool holds(const struct sweep *sweep, const struct takt_tune_point *point)
{
	for (uint32_t i = 0; i < sweep->clocks->gpu_count; i++) {
		const struct takt_clock_gpu *gpu = &sweep->clocks->gpu[i];

		if ((sweep->gpu_mask >> gpu->index & 1) &&
		    (strcmp(gpu->clock_state, "leased") != 0 || gpu->lease_job != sweep->job->id ||
		     gpu->lease_max_mhz > point->sm_mhz))
			return false;
	}
	return true;
}

/* Kept until the GPUs were seen under load. */
static bool waits(const struct sweep *sweep)
{
	for (uint32_t i = 0; i < sweep->clocks->gpu_count; i++)
		if ((sweep->gpu_mask >> sweep->clocks->gpu[i].index & 1) &&
		    strcmp(sweep->clocks->gpu[i].clock_state, "waiting") == 0)
			return true;
	return false;
}

static int set_point(struct sweep *sweep, const struct takt_tune_point *point, struct takt_err *err)
{
	const struct takt_clock_order order = {.max_mhz = point->sm_mhz,
					       .power_limit_mw = point->power_limit_mw,
					       .benchmark = true};
	int rc;

	takt_crash_point("tune.before_set");
	rc = takt_client_clock_set(sweep->cli->client, sweep->gpu_mask, &order, sweep->clocks, err);
	takt_crash_point("tune.after_set");
	if (rc == 0 && !holds(sweep, point))
		rc = takt_err_set(err, -TAKT_E_CONFLICT, "%u MHz was not applied: %.120s",
				  point->sm_mhz, first_gpu(sweep)->note);
	return rc;
}

static int still_holds(struct sweep *sweep, const struct takt_tune_point *point,
		       struct takt_err *err)
{
	int rc = takt_client_clocks(sweep->cli->client, sweep->clocks, err);

	if (rc == 0 && !holds(sweep, point))
		rc = takt_err_set(err, -TAKT_E_CONFLICT,
				  "%u MHz did not hold while the command ran: %.120s",
				  point->sm_mhz, first_gpu(sweep)->note);
	return rc;
}

static void say_sample(const struct sweep *sweep, const struct takt_tune_point *point,
		       const struct takt_tune_sample *sample, uint32_t done, uint32_t total)
{
	char limit[32] = "", rank[48] = "";

	if (point->power_limit_mw)
		snprintf(limit, sizeof(limit), ", %u W", point->power_limit_mw / 1000);
	if (sample->ranks > 1 && strcmp(sample->unit, "query") != 0)
		snprintf(rank, sizeof(rank), " (rank %u, the slowest of %u)", sample->slowest_rank,
			 sample->ranks);
	if (!sweep->cli->json)
		fprintf(stderr, "takt tune: %u of %u: %u MHz%s: %.4g %s%s/s%s, %.0f W\n", done,
			total, point->sm_mhz, limit, sample->performance, sample->unit,
			TAKT_TUNE_PLURAL(sample->unit), rank, sample->power_w);
}

static int measure(struct sweep *sweep, struct takt_tune_point *point, struct takt_tune_sample *ret,
		   struct takt_err *err)
{
	bool set = !sweep->result->advice[0];
	int rc = set ? set_point(sweep, point, err) : 0;

	if (rc == 0)
		rc = takt_tune_run(&sweep->work, &sweep->meter, ret, err);
	if (rc == 0 && set)
		rc = still_holds(sweep, point, err);
	return rc;
}

/* Runs in which it comes out whether somebody else has locked the clock. -EPERM: he may have. */
static int run_watched(struct sweep *sweep, struct takt_tune_sample *ret, struct takt_err *err)
{
	int rc = 0;

	for (int i = 0; rc == 0 && waits(sweep) && i < WATCHED_RUNS; i++) {
		rc = takt_tune_run(&sweep->work, &sweep->meter, ret, err);
		if (rc == 0)
			rc = takt_client_clocks(sweep->cli->client, sweep->clocks, err);
	}
	if (rc == 0 && !holds(sweep, &sweep->result->points[0]))
		rc = takt_err_set(err, -EPERM, "%.158s", first_gpu(sweep)->note);
	return rc;
}

/* Files, caches and the board become warm; that run counts for nothing. Where clocks may not be set
 * it comes out here, and the rest is measured as it is. */
static int warm_up(struct sweep *sweep, struct takt_err *err)
{
	struct takt_tune_result *result = sweep->result;
	struct takt_tune_sample sample;
	int rc = measure(sweep, &result->points[0], &sample, err);

	if (rc == -TAKT_E_CONFLICT && waits(sweep))
		rc = run_watched(sweep, &sample, err);

	if (rc == -EPERM || rc == -TAKT_E_UNSUPPORTED) {
		takt_strcpy(result->advice, sizeof(result->advice), err->msg);
		result->count = 1;
		rc = measure(sweep, &result->points[0], &sample, err);
	}
	if (rc == 0)
		result->warm_up = sample.written;
	return rc;
}

static int measure_all(struct sweep *sweep, struct takt_err *err)
{
	struct takt_tune_result *result = sweep->result;
	uint32_t order[TAKT_TUNE_MAX_POINTS], total, done = 0;
	struct takt_rng rng;
	int rc = warm_up(sweep, err);

	total = result->count * result->repeats;
	takt_rng_init(&rng, result->seed);
	for (uint32_t i = 0; i < result->count; i++)
		order[i] = i;
	for (uint32_t r = 0; rc == 0 && r < result->repeats; r++) {
		takt_rng_shuffle(&rng, order, result->count, sizeof(order[0]));
		for (uint32_t i = 0; rc == 0 && i < result->count; i++) {
			struct takt_tune_point *point = &result->points[order[i]];
			struct takt_tune_sample *sample = &point->samples[point->count];

			rc = measure(sweep, point, sample, err);
			if (rc < 0)
				break;
			point->count++;
			say_sample(sweep, point, sample, ++done, total);
		}
	}
	return rc;
}

static int32_t permille(double percent)
{
	return isfinite(percent) ? (int32_t)lround(percent * 10) : 0;
}

static int save(const struct sweep *sweep, struct takt_err *err)
{
	const struct takt_tune_result *result = sweep->result;
	const char *name = takt_cli_value(sweep->cli, "save");
	const struct takt_tune_point *point;
	struct takt_profile profile = {.simulated = result->simulated};

	if (!name || result->stopped[0])
		return 0;
	if (result->recommended < 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "nothing is kept: no energy is known, so nothing is "
				    "recommended");
	point = &result->points[result->recommended];
	takt_strcpy(profile.name, sizeof(profile.name), name);
	takt_strcpy(profile.gpu_name, sizeof(profile.gpu_name), result->gpu_name);
	profile.sm_mhz = point->sm_mhz;
	profile.power_limit_mw = point->power_limit_mw;
	profile.slowdown_permille = permille(point->slowdown_pct.mean);
	profile.slowdown_error_permille = permille(point->slowdown_pct.half95);
	profile.saved_permille = permille(point->saved_pct.mean);
	profile.saved_error_permille = permille(point->saved_pct.half95);
	profile.at_ms = takt_wall_now(takt_sys_real()).ns / 1000000;
	takt_crash_point("tune.before_save");
	return takt_profiles_keep(takt_sys_real(), &profile, err);
}

/* What was measured is shown, also of a sweep that was stopped; and kept, whatever becomes of
 * files. */
static int report(struct sweep *sweep, struct takt_err *err)
{
	struct takt_tune_result *result = sweep->result;
	int saved, written;

	takt_tune_note_same(result);
	takt_tune_judge(result);
	if (result->stopped[0])
		result->recommended = -1;
	if (sweep->cli->json)
		takt_tune_json(result, &sweep->cli->out);
	else
		takt_tune_print(sweep->cli, result);
	saved = save(sweep, err);
	written = takt_tune_write_files(sweep->cli, result, saved < 0 ? NULL : err);
	return saved < 0 ? saved : written;
}

static int prepare(struct sweep *sweep, struct takt_err *err)
{
	static int (*const steps[])(struct sweep *, struct takt_err *) = {
		read_numbers, read_work,	 watch_owner,	find_job,
		start_meter,  choose_comparison, list_settings,
	};
	int rc = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(steps) && rc == 0; i++)
		rc = steps[i](sweep, err);
	return rc;
}

static int sweep_and_report(struct sweep *sweep, struct takt_err *err)
{
	struct takt_tune_result *result = sweep->result;
	struct takt_err why = {0};
	char **words;
	int rc = prepare(sweep, err), reported;

	if (rc < 0)
		return rc;
	words = takt_tune_words(sweep->cli, "takt");
	takt_words_text(words, result->command, sizeof(result->command));
	takt_job_env_free(words);
	rc = measure_all(sweep, &why);
	takt_crash_point("tune.before_report");
	if (rc < 0)
		takt_strcpy(result->stopped, sizeof(result->stopped), why.msg);
	takt_strcpy(result->deaf, sizeof(result->deaf), sweep->meter.deaf);
	reported = result->points[0].count ? report(sweep, err) : 0;
	return rc < 0 ? takt_err_set(err, rc, "%s", why.msg) : reported;
}

int takt_tune_sweep(struct takt_cli *cli, struct takt_err *err)
{
	struct sweep sweep = {
		.cli = cli,
		.result = takt_zalloc(sizeof(*sweep.result)),
		.clocks = takt_zalloc(sizeof(*sweep.clocks)),
		.job = takt_zalloc(sizeof(*sweep.job)),
		.meter = {.in_fd = -1, .out_fd = -1},
		.work.owner_fd = -1,
	};
	int rc = sweep.result && sweep.clocks && sweep.job
			 ? 0
			 : takt_err_set(err, -ENOMEM, "no memory for a sweep");

	(void)signal(SIGPIPE, SIG_IGN);
	if (rc == 0)
		rc = sweep_and_report(&sweep, err);
	takt_tune_meter_stop(&sweep.meter);
	if (sweep.work.owner_fd >= 0)
		close(sweep.work.owner_fd);
	takt_free(sweep.result);
	takt_free(sweep.clocks);
	takt_free(sweep.job);
	return rc;
}
