/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assured: the least energy within a promised slowdown of the job's whole time, probing included.
 *
 *	refs			epochs at the highest setting before anything else (6)
 *	probe_permille		part of later epochs that may be held to learn and not because they
 *				are thought best (25)
 *
 * Begins at the highest setting, which earns a budget of time that the promise does not use, and
 * spends it in the rest of the first eight epochs as far down the curve as it bears: that saves
 * most, and tells most of the curve. From then on it is at the setting of least expected energy
 * among those that are hardly beyond the promise (curve_belief.h). A budget of epochs beyond it
 * grows by a little each epoch, less where less was promised, and each epoch, held or to learn,
 * takes from it how likely its setting is believed to be beyond: what one did not need another may
 * take.
 *
 * All times are relative to the highest setting's, so that it is measured again where knowing it
 * better could pay; one such epoch is spent far down instead, since a long lever tells a slope
 * better. When the job turns out to behave otherwise, all of it begins anew. At no moment may the
 * job be behind what was promised up to then, by as much as the reference may be wrong, neither as
 * believed nor by the bare measurements: the length of a job is not known.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clock/curve_belief.h"
#include "clock/governor.h"

enum {
	LEVELS = TAKT_BELIEF_LEVELS,
	SETTLING = 8, /* epochs in which to look far down */
	STRIDE = 4,   /* epochs a decision, later in a job */
};

/* Thermal and hardware slowdowns: such an epoch says nothing of a clock. */
static const uint64_t HARD_THROTTLES = 0x8 | 0x20 | 0x40 | 0x80;
static const double MIN_STEP = 0.0075; /* of x: finer settings are no levels of their own */
static const double MAX_X = 1.6;       /* below 0.38 of the highest clock nothing is saved */
static const double DEEP_X = 0.5, MIN_DEEP_X = 0.1;
static const double SURE = 3;	     /* standard deviations that count as certain */
static const double STEEPEST = 1.05; /* no program slows by more than its clock */
static const double NOISE = 0.02;    /* of an epoch's time, before it was measured */
static const double CERTAIN = 1e-4;
static const double SETTLING_RISK = 0.2;
static const double FULL_PROMISE = 0.1; /* of smaller ones less is risked, in proportion, */
static const double LEAST_BOLD = 0.3;	/* but not less than so much of it */
static const double RISK_RATE = 0.15, LEAST_RISK = 0.12, MOST_RISK = 0.3;
static const double SURE_EARLY = 2.5, SURE_LATE = 1.5; /* standard deviations of the reference */
static const double SURE_BARE = 2.5, SUREST_BARE = 3.5;
static const double WORTH = 0.01;    /* a level less likely beyond the promise needs no probe, */
static const double HOPELESS = 0.55; /* and one that much more likely gains nothing by it */
static const double DOUBT = 0.03;    /* a held level more likely beyond is looked into */
static const double FULL_RISK = 160; /* epochs */
static const double PRIOR_EPOCHS = 2, NEIGHBOURS = 0.03; /* the second of x */
static const double FAR = 4, DRIFT = 0.75, ALARM = 10;

struct assured {
	struct takt_belief belief;
	struct takt_belief_answer answer[LEVELS];
	uint32_t setting[LEVELS]; /* MHz, or mW */
	double power_mw[LEVELS];  /* sum over epochs */
	double dwell_s[LEVELS];
	double energy[LEVELS]; /* expected, of the highest setting's */
	double carried_s;      /* budget from before the job changed */
	double budget_s;       /* that the job may yet lose, as last believed */
	double epoch_s;	       /* how long the last one was */
	double risk;	       /* epochs that may yet be beyond the promise, as expected */
	double high, low;      /* how far times are off what was believed (CUSUM) */
	uint32_t epochs;       /* since the job began or changed */
	uint32_t refs, probes;
	uint32_t referred; /* epochs at the last reference */
	uint32_t chosen, asked;
	bool brief; /* the job ends before it could settle */
};

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double promise(const struct takt_governor_setup *setup)
{
	return 1 + setup->job.max_slowdown_permille / 1000.0;
}

/* How much of the boldest there is fits what was promised: the error of the reference is the same
 * whatever that is, so that it is a larger part of a smaller promise. */
static double boldness(double promised)
{
	return larger(LEAST_BOLD, smaller(1, (promised - 1) / FULL_PROMISE));
}

static bool by_clock(const struct takt_governor_setup *setup)
{
	return setup->board.can & TAKT_ACTUATE_CLOCKS;
}

static void add_level(struct assured *state, uint32_t setting)
{
	struct takt_belief *belief = &state->belief;
	double x = belief->count ? (double)state->setting[0] / setting - 1 : 0;

	if (belief->count == LEVELS || x > MAX_X ||
	    (belief->count && x < belief->level[belief->count - 1].x + MIN_STEP))
		return;
	state->setting[belief->count] = setting;
	belief->level[belief->count++] = (struct takt_belief_level){.x = x};
}

static void add_limits(struct assured *state, const struct takt_governor_board *board)
{
	uint32_t step = board->power_step_mw ? board->power_step_mw : board->power_max_mw / 50 + 1;

	for (uint32_t mw = board->power_default_mw; mw >= board->power_min_mw; mw -= step) {
		add_level(state, mw);
		if (mw < step)
			break;
	}
}

static int init(void *opaque, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct assured *state = opaque;

	(void)message;
	(void)message_size;
	if (by_clock(setup))
		for (size_t i = setup->board.sm_count; i-- > 0;)
			add_level(state, setup->board.sm_mhz[i]);
	else if (setup->board.can & TAKT_ACTUATE_POWER)
		add_limits(state, &setup->board);
	return 0;
}

static void ask(struct assured *state, const struct takt_governor_setup *setup, uint32_t level,
		enum takt_governor_reason reason, struct takt_governor_wish *ret)
{
	state->asked = level;
	ret->reason = reason;
	if (by_clock(setup))
		ret->cap = (struct takt_governor_cap){.sets = TAKT_ACTUATE_CLOCKS,
						      .max_mhz = state->setting[level]};
	else
		ret->cap = (struct takt_governor_cap){.sets = TAKT_ACTUATE_POWER,
						      .power_mw = state->setting[level]};
}

/* The level of an epoch's setting; the one that was asked for where the board says nothing else. */
static uint32_t level_of(const struct assured *state, const struct takt_governor_setup *setup,
			 const struct takt_governor_observation *seen)
{
	uint32_t held = by_clock(setup) ? seen->cap.max_mhz : seen->cap.power_mw;

	for (uint32_t i = 0; i < state->belief.count; i++)
		if (held >= state->setting[i])
			return i;
	return state->belief.count - 1;
}

/* What a level's time is hardly above: so many standard deviations more than is believed, and what
 * physics allows. */
static double time_at_most(const struct assured *state, uint32_t level, double sure)
{
	return smaller(1 + STEEPEST * state->belief.level[level].x,
		       state->answer[level].mean + sure * state->answer[level].sd);
}

/* Seconds that the job may yet lose, by what is hardly not so of the levels where it was. */
static double budget_s(const struct assured *state, double promised, double sure)
{
	double budget = state->carried_s;

	for (uint32_t i = 0; i < state->belief.count; i++)
		if (state->dwell_s[i] > 0)
			budget += state->dwell_s[i] * (promised / time_at_most(state, i, sure) - 1);
	return budget;
}

/* The same by the bare means of what was measured, whatever shapes make of them. */
static double measured_budget_s(const struct assured *state, double promised)
{
	const struct takt_belief_level *level = state->belief.level;
	double budget = state->carried_s;

	for (uint32_t i = 0; i < state->belief.count; i++)
		if (level[i].n > 0 && level[0].n > 0)
			budget +=
				state->dwell_s[i] * (promised * level[0].mean / level[i].mean - 1);
	return budget;
}

/* Whether the job may have lost more than was promised. Shapes that explain all epochs well may yet
 * be off together, by the error of the reference: that much must be left. More of it by the bare
 * measurements, which no shape holds where the prior would have them. */
static bool is_behind(const struct assured *state, double promised)
{
	double error = takt_belief_noise(&state->belief, NOISE) /
		       sqrt(larger(state->belief.level[0].n, 1));
	double sure = state->epochs < FULL_RISK ? SURE_EARLY : SURE_LATE, below_s = 0;
	double bare = SUREST_BARE - (SUREST_BARE - SURE_BARE) * boldness(promised);

	for (uint32_t i = 1; i < state->belief.count; i++)
		below_s += state->dwell_s[i];
	return budget_s(state, promised, 0) < sure * error * below_s ||
	       measured_budget_s(state, promised) < bare * error * below_s;
}

/* The job is another one: what was learned is void, what was spent is not. */
static void begin_anew(struct assured *state, double promised)
{
	state->carried_s = budget_s(state, promised, 0);
	for (uint32_t i = 0; i < state->belief.count; i++) {
		state->belief.level[i] = (struct takt_belief_level){.x = state->belief.level[i].x};
		state->power_mw[i] = state->dwell_s[i] = 0;
	}
	state->epochs = state->refs = state->probes = state->referred = 0;
	state->high = state->low = 0;
	state->chosen = 0;
}

enum verdict {
	AS_BEFORE,
	ODD, /* one epoch far off tells nothing, and would spoil what is known */
	CHANGED
};

/* Whether times at a level that is well known have become others. */
static enum verdict judge(struct assured *state, uint32_t level, double time)
{
	const struct takt_belief_level *at = &state->belief.level[level];
	double noise = takt_belief_noise(&state->belief, NOISE), off;

	if (at->n < 4)
		return AS_BEFORE;
	off = (time / at->mean - 1) / (noise * sqrt(1 + 1 / at->n));
	off = larger(smaller(off, FAR), -FAR);
	state->high = larger(state->high + off - DRIFT, 0);
	state->low = larger(state->low - off - DRIFT, 0);
	if (state->high > ALARM || state->low > ALARM)
		return CHANGED;
	return off < FAR && off > -FAR ? AS_BEFORE : ODD;
}

static void learn(struct assured *state, const struct takt_governor_setup *setup,
		  const struct takt_governor_observation *seen)
{
	double time = (double)seen->epoch_ns / seen->work;
	uint32_t level = level_of(state, setup, seen);

	enum verdict verdict = judge(state, level, time);

	if (verdict == CHANGED)
		begin_anew(state, promise(setup));
	if (verdict != ODD) {
		takt_belief_add(&state->belief, level, time);
		if (seen->has & TAKT_OBSERVED_POWER)
			state->power_mw[level] += seen->power_mw;
	}
	state->epoch_s = (double)(seen->epoch_ns + seen->gap_ns) / 1e9;
	state->dwell_s[level] += state->epoch_s;
	state->epochs++;
	state->refs += level == 0;
	state->referred = level == 0 ? state->epochs : state->referred;
}

/* Part of the power that follows the clock: P = a + b shape(r), with the voltage going down to a
 * floor. Constants from A100 and A40 sweeps, docs/clocks.md. */
static double power_shape(double x)
{
	double r = 1 / (1 + x), volt = 1 - 0.85 * (1 - r);

	volt = volt > 0.75 ? volt : 0.75;
	return r * volt * volt;
}

/* Least squares for a and b over the levels that were measured, with a mild guess of a / (a + b) as
 * one more epoch. */
static void fit_power(const struct assured *state, double *ret_a, double *ret_b)
{
	double n = 0, s = 0, ss = 0, p = 0, sp = 0, top = 0, floor = 0.35, weight = 0.5, det;

	for (uint32_t i = 0; i < state->belief.count; i++) {
		double epochs = state->belief.level[i].n, shape;

		if (!(epochs > 0))
			continue;
		shape = power_shape(state->belief.level[i].x);
		top = top > 0 ? top : state->power_mw[i] / epochs / (floor + (1 - floor) * shape);
		n += epochs;
		s += epochs * shape;
		ss += epochs * shape * shape;
		p += state->power_mw[i];
		sp += state->power_mw[i] * shape;
	}
	n += weight;
	s += weight * 0.3;
	ss += weight * 0.09;
	p += weight * top * (floor + (1 - floor) * 0.3);
	sp += weight * top * (floor + (1 - floor) * 0.3) * 0.3;
	det = n * ss - s * s;
	*ret_b = det > 1e-9 ? larger((n * sp - s * p) / det, 0) : top * (1 - floor);
	*ret_a = larger((p - *ret_b * s) / n, 0);
}

/* What was measured at and around a level, as a factor to what the fit says there: neighbours
 * share the fit's error, so that they are told apart by its slope. */
static double correction(const struct assured *state, double a, double b, uint32_t level)
{
	double measured = PRIOR_EPOCHS, modelled = PRIOR_EPOCHS;

	for (uint32_t i = 0; i < state->belief.count; i++) {
		const struct takt_belief_level *at = &state->belief.level[i];
		double far = (at->x - state->belief.level[level].x) / NEIGHBOURS;

		if (!(at->n > 0))
			continue;
		measured += state->power_mw[i] / (a + b * power_shape(at->x)) / (1 + far * far);
		modelled += at->n / (1 + far * far);
	}
	return measured / modelled;
}

/* Energy of each level for the same work, in any one unit. */
static void expect_energy(struct assured *state, const struct takt_governor_setup *setup)
{
	double a, b;

	fit_power(state, &a, &b);
	for (uint32_t i = 0; i < state->belief.count; i++) {
		double n = state->belief.level[i].n, power;

		if (by_clock(setup))
			power = (a + b * power_shape(state->belief.level[i].x)) *
				correction(state, a, b, i);
		else
			power = (state->power_mw[i] + 4 * smaller(a + b, state->setting[i])) /
				(n + 4);
		state->energy[i] = power * state->answer[i].mean;
	}
}

/* Whether the budget bears one more epoch at a level, even if it is as slow as it may be. */
static bool affords(const struct assured *state, uint32_t level, double promised)
{
	double lost_s = state->epoch_s * (1 - promised / time_at_most(state, level, SURE));

	return lost_s <= 0 || lost_s <= state->budget_s;
}

/* The deepest level that one epoch can be spent at within the budget; 0 = none is worth it. */
static uint32_t deepest(const struct assured *state, double promised)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < state->belief.count && affords(state, i, promised); i++)
		if (state->belief.level[i].x >= MIN_DEEP_X && state->belief.level[i].x <= DEEP_X)
			best = i;
	return best;
}

/* Least energy among the levels that may be chosen. */
static uint32_t choose(const struct assured *state, double promised, double risk)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < state->belief.count; i++)
		if (state->answer[i].over <= risk && affords(state, i, promised) &&
		    state->energy[i] < 0.998 * state->energy[best])
			best = i;
	return best;
}

/* Would a better knowledge let a level with less energy be chosen, or is the chosen one in doubt?
 * And once whenever the job has become twice as old: its first epochs may have been unlike the
 * others.
 */
static bool worth_a_probe(const struct assured *state)
{
	if (state->epochs >= 2 * state->referred)
		return true;
	for (uint32_t i = 1; i < state->belief.count; i++)
		if (state->answer[i].over >= WORTH && state->answer[i].over < HOPELESS &&
		    state->energy[i] < 0.99 * state->energy[state->chosen])
			return true;
	return state->chosen && state->answer[state->chosen].over > DOUBT;
}

/* No program slows down by more than its clock does, whatever noise makes believe. */
static void trust_physics(struct assured *state, double promised)
{
	for (uint32_t i = 1; i < state->belief.count; i++)
		if (1 + state->belief.level[i].x <= promised && state->answer[i].mean < promised)
			state->answer[i].over = smaller(state->answer[i].over, CERTAIN);
}

/* What may be risked until the next decision: in the settling epochs nearly anything that the
 * budget of time allows, later what the epochs so far have left of their allowance. */
static double allowance(struct assured *state, double promised)
{
	double epochs = state->epochs > 48 ? STRIDE : 1, bold = boldness(promised);
	double most = LEAST_RISK + (MOST_RISK - LEAST_RISK) * bold;

	if (state->epochs < SETTLING)
		return SETTLING_RISK;
	state->risk += epochs * RISK_RATE * bold * smaller(1, state->epochs / FULL_RISK);
	return larger(smaller(state->risk / epochs, most), CERTAIN);
}

static int64_t param(const struct takt_governor_setup *setup, const char *name)
{
	static const struct takt_governor_param absent[] = {{"refs", 6}, {"probe_permille", 25}};

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (strcmp(name, absent[i].name) == 0)
			return takt_governor_param(setup, name, absent[i].value);
	return 0;
}

/* One epoch more says little late in a job: then only each fourth counts. */
static bool is_settled(const struct assured *state)
{
	return state->epochs > 48 && state->epochs % STRIDE && state->asked == state->chosen;
}

/* The settling epochs behind the references: as far down as the budget bears, which saves most in
 * them and tells most of the curve. 0: the budget bears nothing. */
static uint32_t settle(const struct assured *state, const struct takt_governor_setup *setup)
{
	return state->epochs < SETTLING ? deepest(state, promise(setup)) : 0;
}

/* Whether the epochs so far bear one more that is held to learn. */
static bool may_probe(const struct assured *state, const struct takt_governor_setup *setup)
{
	int64_t spare = state->chosen ? 0 : 1000; /* the first one early where nothing is won yet */

	return state->epochs >= SETTLING &&
	       (state->probes + 1) * 1000 <=
		       param(setup, "probe_permille") * state->epochs + spare &&
	       worth_a_probe(state);
}

/* The level to learn from: far down, late or where nothing could be chosen yet, and only where the
 * budget has an epoch for it; else the highest, which all times are relative to. */
static uint32_t probe(struct assured *state, const struct takt_governor_setup *setup)
{
	uint32_t level = 0;

	if (state->probes == 2 || (state->chosen == 0 && state->probes < 2))
		level = deepest(state, promise(setup));
	if (state->answer[level].over > state->risk)
		level = 0;
	state->risk -= state->answer[level].over;
	state->probes++;
	return level;
}

static void believe(struct assured *state, const struct takt_governor_setup *setup)
{
	takt_belief_ask(&state->belief, takt_belief_noise(&state->belief, NOISE), promise(setup),
			state->answer);
	if (by_clock(setup))
		trust_physics(state, promise(setup));
	expect_energy(state, setup);
	state->budget_s = budget_s(state, promise(setup), SURE);
}

static void hold(struct assured *state, const struct takt_governor_setup *setup,
		 struct takt_governor_wish *ret)
{
	if (state->chosen && is_behind(state, promise(setup))) {
		ask(state, setup, 0, TAKT_REASON_BUDGET_SPENT, ret);
		return;
	}
	if (state->epochs >= SETTLING)
		state->risk -= state->answer[state->chosen].over;
	ask(state, setup, state->chosen,
	    state->epochs < SETTLING ? TAKT_REASON_SETTLING : TAKT_REASON_HOLD, ret);
}

static void decide(struct assured *state, const struct takt_governor_setup *setup,
		   struct takt_governor_wish *ret)
{
	uint32_t level;

	if (is_settled(state)) {
		hold(state, setup, ret);
		return;
	}
	believe(state, setup);
	state->chosen = choose(state, promise(setup), allowance(state, promise(setup)));
	level = settle(state, setup);
	if (state->refs < param(setup, "refs"))
		ask(state, setup, 0, TAKT_REASON_REFERENCE, ret);
	else if (level)
		ask(state, setup, level, TAKT_REASON_SETTLING, ret);
	else if ((ret->probe = may_probe(state, setup))) {
		level = probe(state, setup);
		ask(state, setup, level, level ? TAKT_REASON_PROBE : TAKT_REASON_REFERENCE, ret);
	} else
		hold(state, setup, ret);
}

/* Whether there is anything to hold back or to do; else the wish says why not. */
static bool may_govern(struct assured *state, const struct takt_governor_setup *setup,
		       const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	if (!setup->job.has_promise || state->belief.count < 2)
		ret->reason = TAKT_REASON_NO_PROMISE;
	else if (seen->foreign)
		ret->reason = TAKT_REASON_FOREIGN;
	else if (seen->idle)
		ret->reason = TAKT_REASON_IDLE;
	else
		return true;
	return false;
}

/* A job that ends before it has settled stays where it is. */
static bool is_short(const struct assured *state, const struct takt_governor_observation *seen)
{
	return state->epochs == 1 && (seen->has & TAKT_OBSERVED_REMAINING) &&
	       seen->remaining_ns < seen->epoch_ns * (SETTLING + SETTLING / 2);
}

static void step(void *opaque, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct assured *state = opaque;

	if (!may_govern(state, setup, seen, ret))
		return;
	if (seen->epoch_ns == 0 || state->brief) {
		ask(state, setup, 0, state->brief ? TAKT_REASON_SHORT_JOB : TAKT_REASON_REFERENCE,
		    ret);
		return;
	}
	if (!(seen->has & TAKT_OBSERVED_WORK) || !(seen->work > 0)) {
		ask(state, setup, 0, TAKT_REASON_NO_SIGNAL, ret);
		return;
	}
	if ((seen->has & TAKT_OBSERVED_THROTTLE) && (seen->throttle & HARD_THROTTLES)) {
		ask(state, setup, state->chosen, TAKT_REASON_THROTTLED, ret);
		return;
	}
	learn(state, setup, seen);
	state->brief = is_short(state, seen);
	decide(state, setup, ret);
}

static void explain(const void *opaque, const struct takt_governor_setup *setup, char *text,
		    size_t text_size)
{
	const struct assured *state = opaque;
	const struct takt_belief_answer *answer = &state->answer[state->chosen];
	const char *unit = by_clock(setup) ? "MHz" : "mW";

	if (state->chosen == 0 || state->epochs < SETTLING)
		return;
	snprintf(
		text, text_size,
		"%u %s: %.1f +-%.1f %% slower than at %u %s, of %.1f %% promised, for %.0f %% less "
		"energy as expected; %.1f s of the promise not used so far",
		state->setting[state->chosen], unit, 100 * (answer->mean - 1), 200 * answer->sd,
		state->setting[0], unit, setup->job.max_slowdown_permille / 10.0,
		100 * (1 - state->energy[state->chosen] / state->energy[0]),
		budget_s(state, promise(setup), 0));
}

const struct takt_governor takt_governor_assured = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "assured",
	.summary = "least energy within the promised slowdown of the job's whole time",
	.params = "refs probe_permille",
	.state_bytes = sizeof(struct assured),
	.state_version = 5,
	.init = init,
	.step = step,
	.explain = explain,
};
