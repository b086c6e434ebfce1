/* SPDX-License-Identifier: Apache-2.0 */
/* A governor's job on measured curves, epoch by epoch. */
#include "sim/clock_run.h"

#include <math.h>
#include <string.h>

#include "base/timetypes.h"
#include "clock/governor.h"
#include "sim/sim_random.h"

/* Everything in units of the reference: an epoch of it is work 1 / job->epochs, energy the same. */
struct run {
	const struct takt_clock_world *world;
	const struct takt_clock_job *job;
	uint32_t mhz[TAKT_GOVERNOR_MAX_CLOCKS];
	struct takt_governor_setup setup;
	struct takt_rng noise;
	const struct takt_clock_curve *curve;
	const struct takt_clock_setting *now; /* in force */
	double left, done;		      /* work: of this phase, and so far */
	uint64_t now_ns, gap_ns;
	double meter_j;	       /* energy that the counter has not shown yet */
	uint32_t phase_epochs; /* since the phase began */
	struct takt_clock_result result;
};

/* What went by while one setting was in force. */
struct span {
	double seconds, work, joules;
};

double takt_clock_time(const struct takt_clock_curve *curve,
		       const struct takt_clock_setting *setting)
{
	return setting->time / curve->settings[curve->count - 1].time;
}

double takt_clock_energy(const struct takt_clock_curve *curve,
			 const struct takt_clock_setting *setting)
{
	const struct takt_clock_setting *top = &curve->settings[curve->count - 1];

	return setting->time * setting->power_w / (top->time * top->power_w);
}

bool takt_clock_violates(double time, uint32_t max_slowdown_permille)
{
	return time > 1 + max_slowdown_permille / 1000.0 + 1e-9;
}

const struct takt_clock_setting *takt_clock_best(const struct takt_clock_curve *curve,
						 uint32_t max_slowdown_permille)
{
	const struct takt_clock_setting *best = &curve->settings[curve->count - 1];

	for (size_t i = 0; i < curve->count; i++) {
		const struct takt_clock_setting *one = &curve->settings[i];

		if (!takt_clock_violates(takt_clock_time(curve, one), max_slowdown_permille) &&
		    takt_clock_energy(curve, one) < takt_clock_energy(curve, best))
			best = one;
	}
	return best;
}

const struct takt_clock_setting *takt_clock_under(const struct takt_clock_curve *curve,
						  double ceiling)
{
	size_t i = curve->count - 1;

	while (i > 0 && curve->settings[i].value > ceiling)
		i--;
	return &curve->settings[i];
}

/* Standard normal as the sum of twelve uniform draws: the same on every machine. */
static double normal(struct takt_rng *rng)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += (double)(takt_rng_next(rng) >> 11) * 0x1p-53;
	return sum;
}

/* The board of the first phase: a job stays on its GPU. */
static void describe(struct run *run)
{
	const struct takt_clock_curve *curve = run->job->phases[0];
	struct takt_governor_board *board = &run->setup.board;
	double low = curve->settings[0].value, high = curve->settings[curve->count - 1].value;

	board->can = (uint32_t)curve->actuator;
	if (curve->actuator == TAKT_ACTUATE_CLOCKS) {
		for (size_t i = 0; i < curve->count; i++)
			run->mhz[i] = (uint32_t)lround(curve->settings[i].value);
		board->sm_mhz = run->mhz;
		board->sm_count = curve->count;
	} else {
		board->power_min_mw = (uint32_t)lround(low * 1000);
		board->power_default_mw = board->power_max_mw = (uint32_t)lround(high * 1000);
		board->power_step_mw =
			(uint32_t)lround((high - low) / (double)(curve->count - 1) * 1000);
	}
	run->setup.params = run->job->params;
	run->setup.param_count = run->job->param_count;
	run->setup.seed = run->job->seed;
	run->setup.job.has_promise = true;
	run->setup.job.max_slowdown_permille = run->job->max_slowdown_permille;
	run->setup.job.name = curve->workload;
}

static const struct takt_clock_setting *obey(const struct run *run,
					     const struct takt_governor_cap *cap)
{
	double ceiling = INFINITY;

	if (cap->sets & TAKT_ACTUATE_CLOCKS)
		ceiling = cap->max_mhz + 0.5;
	if (cap->sets & TAKT_ACTUATE_POWER)
		ceiling = cap->power_mw / 1000.0 + 0.0005;
	return takt_clock_under(run->curve, ceiling);
}

/* Until `seconds` or the phase's work is over. */
static struct span pass(struct run *run, double seconds)
{
	double epoch_s = (double)run->world->epoch_ns / TAKT_NS_PER_S;
	double time = takt_clock_time(run->curve, run->now), per_s;
	struct span span;

	per_s = 1 / (time * epoch_s * run->job->epochs);
	span.seconds = fmin(seconds, run->left / per_s);
	span.work = span.seconds * per_s;
	span.joules = span.seconds * run->now->power_w;
	run->left -= span.work;
	run->done += span.work;
	if (run->left < 1e-12)
		run->left = 0;
	run->now_ns += (uint64_t)(span.seconds * TAKT_NS_PER_S);
	run->meter_j += span.joules;
	run->result.time += span.work * time;
	run->result.energy += span.work * takt_clock_energy(run->curve, run->now);
	return span;
}

/* What the counter showed at its last move before now; what it shows later it keeps. */
static double read_meter(struct run *run)
{
	uint64_t late_ns = run->world->meter_ns ? run->now_ns % run->world->meter_ns : 0;
	double later = (double)late_ns / TAKT_NS_PER_S * run->now->power_w;
	double shown = fmax(run->meter_j - later, 0);

	run->meter_j -= shown;
	return shown;
}

static void observe(struct run *run, const struct span *span, double shown_j,
		    const struct takt_governor_cap *cap, struct takt_governor_observation *ret)
{
	const struct takt_clock_counters *counters = &run->now->counters;
	double energy_j = shown_j * fmax(1 + run->world->power_noise * normal(&run->noise), 0.01);
	double speed = fmax(1 + run->world->time_noise * normal(&run->noise), 0.01);

	*ret = (struct takt_governor_observation){
		.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER |
		       TAKT_OBSERVED_GPU_UTIL | counters->has,
		.now_ns = run->now_ns,
		.epoch_ns = (uint64_t)(span->seconds * TAKT_NS_PER_S),
		.gap_ns = run->gap_ns,
		.cap = *cap,
		.work = span->work * run->job->epochs * speed,
		.signal = TAKT_SIGNAL_JOB,
		.energy_mj = (uint64_t)llround(energy_j * 1000),
		.power_mw = (uint32_t)lround(energy_j / span->seconds * 1000),
		.gpu_util_permille = 1000,
		.dram_active_permille = counters->dram_permille,
		.sm_active_permille = counters->sm_permille,
		.tensor_active_permille = counters->tensor_permille,
	};
	if (run->curve->actuator == TAKT_ACTUATE_CLOCKS) {
		ret->has |= TAKT_OBSERVED_SM_CLOCK;
		ret->sm_mhz = (uint32_t)lround(run->now->value);
	}
	if (run->world->tell_remaining) {
		ret->has |= TAKT_OBSERVED_REMAINING;
		ret->remaining_ns = (uint64_t)(fmax(1 - run->done, 0) * run->job->epochs *
					       (double)run->world->epoch_ns);
	}
}

/* Counts an epoch by the truth of the table. */
static void count(struct run *run, const struct takt_governor_wish *wish, double time,
		  double energy, double work)
{
	struct takt_clock_result *result = &run->result;
	const struct takt_clock_setting *best =
		takt_clock_best(run->curve, run->job->max_slowdown_permille);

	if (wish->probe) {
		result->probe_time += time;
		result->probe_energy += energy;
	}
	result->epochs++;
	if (run->phase_epochs++ < TAKT_CLOCK_SETTLING) {
		result->settling_loss += energy - work * takt_clock_energy(run->curve, best);
		return;
	}
	result->settled_epochs++;
	if (work > 0 && takt_clock_violates(time / work, run->job->max_slowdown_permille))
		result->violating_epochs++;
}

static bool next_phase(struct run *run, size_t *phase)
{
	const struct takt_clock_job *job = run->job;
	const struct takt_clock_setting *best;

	if (*phase == job->phase_count)
		return false;
	run->curve = job->phases[(*phase)++];
	run->now = run->now ? takt_clock_under(run->curve, run->now->value)
			    : &run->curve->settings[run->curve->count - 1];
	run->left = 1.0 / (double)job->phase_count;
	run->phase_epochs = 0;
	best = takt_clock_best(run->curve, job->max_slowdown_permille);
	run->result.best_time += run->left * takt_clock_time(run->curve, best);
	run->result.best_energy += run->left * takt_clock_energy(run->curve, best);
	return true;
}

/* One wish, its delay and what is left of the loop's epoch; then what was seen of that. */
static bool epoch(struct run *run, const struct takt_governor_wish *wish,
		  struct takt_governor_observation *seen)
{
	double time = run->result.time, energy = run->result.energy, work = run->left;
	double epoch_s = (double)run->world->epoch_ns / TAKT_NS_PER_S, gap_s = 0;
	const struct takt_clock_setting *wished = obey(run, &wish->cap);
	struct span span;

	run->gap_ns = 0;
	if (wished != run->now) {
		gap_s = pass(run, (double)run->world->delay_ns / TAKT_NS_PER_S).seconds;
		run->gap_ns = (uint64_t)(gap_s * TAKT_NS_PER_S);
		run->now = wished;
		run->result.changes++;
		read_meter(run);
	}
	span = pass(run, epoch_s - gap_s);
	count(run, wish, run->result.time - time, run->result.energy - energy, work - run->left);
	if (span.seconds < epoch_s / 4) /* the job's or phase's end: too short to be measured */
		return false;
	observe(run, &span, read_meter(run), &wish->cap, seen);
	return true;
}

/* One phase at one setting. */
static void hold(const struct takt_clock_curve *curve, double setting,
		 const struct takt_clock_job *job, struct takt_clock_result *ret)
{
	const struct takt_clock_setting *at = takt_clock_under(curve, setting);
	const struct takt_clock_setting *best = takt_clock_best(curve, job->max_slowdown_permille);
	double part = 1.0 / (double)job->phase_count, time = takt_clock_time(curve, at);
	double energy = takt_clock_energy(curve, at), least = takt_clock_energy(curve, best);
	uint32_t epochs = (uint32_t)(job->epochs / job->phase_count);
	uint32_t settled = epochs > TAKT_CLOCK_SETTLING ? epochs - TAKT_CLOCK_SETTLING : 0;

	ret->time += part * time;
	ret->energy += part * energy;
	ret->best_time += part * takt_clock_time(curve, best);
	ret->best_energy += part * least;
	ret->epochs += epochs;
	ret->settled_epochs += settled;
	if (takt_clock_violates(time, job->max_slowdown_permille))
		ret->violating_epochs += settled;
	if (epochs)
		ret->settling_loss += part * (energy - least) * (epochs - settled) / epochs;
}

void takt_clock_hold(const struct takt_clock_job *job, double setting,
		     struct takt_clock_result *ret)
{
	*ret = (struct takt_clock_result){0};
	for (size_t i = 0; i < job->phase_count; i++)
		hold(job->phases[i], setting, job, ret);
}

int takt_clock_run(const struct takt_clock_world *world, const struct takt_clock_job *job,
		   struct takt_clock_result *ret, struct takt_err *err)
{
	struct run run = {.world = world, .job = job};
	struct takt_governor_observation seen = {.has = 0};
	struct takt_governor_wish wish;
	size_t phase = 0;
	int rc = 0;

	describe(&run);
	takt_sim_stream(job->seed, TAKT_SIM_NOISE, &run.noise);
	run.now_ns = takt_rng_below(&run.noise, TAKT_NS_PER_S); /* the meter's phase */
	if (!job->warm)
		rc = takt_governor_init(job->governor, job->state, &run.setup, err);
	if (rc < 0)
		return rc;
	takt_governor_step(job->governor, job->state, &run.setup, &seen, &wish);
	while (next_phase(&run, &phase))
		while (run.left > 0)
			if (epoch(&run, &wish, &seen))
				takt_governor_step(job->governor, job->state, &run.setup, &seen,
						   &wish);
	*ret = run.result;
	return 0;
}
