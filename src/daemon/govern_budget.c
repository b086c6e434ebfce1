/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's power budget among the jobs that the governor power-budget governs. Every two
 * seconds what other GPUs draw is set aside, what those jobs' governors have measured is collected,
 * and the rest is shared out (clock/power_plan.h). A job is told its share at the end of its epoch:
 * as part of what it observes, so that its log has it.
 *
 * What is set aside of a GPU without a share: where a job or a program from outside is on it, the
 * limit in force, since nothing else keeps it from drawing that; where nobody is, what it draws. A
 * job that holds only a part of its GPU has no share: what the board draws is not its own doing.
 *
 * A share grows only by what others have let go of: until a smaller one is in force the larger one
 * before it counts. A share of which nothing is in force keeps no board from drawing what its limit
 * lets it: such a job has one, to ask by, but its boards count with their limits until it holds.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "clock/power_plan.h"
#include "daemon/govern_impl.h"
#include "daemon/log.h"

static const uint64_t share_ns = 2 * TAKT_NS_PER_S;
/* That a setting may take to be in force where much is going on. */
static const uint64_t answer_ns = 3 * TAKT_NS_PER_S;

enum {
	WATT = 1000,
	DRAWN_STEP = 5 * WATT, /* what an idle board draws wavers */
	STEADY = 50,	       /* of a share: so small a change is none */
};

/* Whether it is governed by its share now; else its GPUs are set aside. */
static bool has_share(const struct takt_governed *one)
{
	return one->governor == &takt_governor_power_budget && !one->shared &&
	       one->share.most_mw > 0 && one->phase != TAKT_GOVERNED_OVER &&
	       one->phase != TAKT_GOVERNED_ADVISING && one->phase != TAKT_GOVERNED_RESTING;
}

/* Whether that share is kept: a setting within it holds, or is about to. One that asks for nothing
 * (its governor knew of no budget, or somebody else has set the clock) is no setting. */
static bool is_kept(const struct takt_governed *one, struct takt_mono now)
{
	if (!one->asked_ns)
		return true; /* it has just come, and asks next */
	return one->share.told_mw && one->wish.cap.sets &&
	       (!one->out_ns ||
		takt_mono_elapsed_ns(now, (struct takt_mono){one->out_ns}) < answer_ns);
}

/* The limit in force, or what stands without anybody's; 0 = not known. */
static uint32_t limit_of(const struct takt_gpu_facts *facts, const struct takt_gpu_reading *reading)
{
	if (reading && (reading->has & TAKT_HAS_POWER_ENFORCED))
		return reading->power_enforced_mw;
	if (reading && (reading->has & TAKT_HAS_POWER_LIMIT))
		return reading->power_limit_mw;
	return facts->has & TAKT_FACT_POWER_LIMITS ? facts->power_default_mw : 0;
}

static const struct takt_gpu_reading *latest(const struct takt_daemon *daemon, uint32_t gpu,
					     struct takt_mono now)
{
	const struct takt_gpu_reading *reading;

	return takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) == 0 && !reading->stale
		       ? reading
		       : NULL;
}

/* The most that a board may draw whoever runs on it: without us, by a facility's cap, as declared.
 * takt's own limit of now is no measure: it is what is to be found. */
static uint32_t most_of(const struct takt_daemon *daemon, uint32_t gpu, struct takt_mono now)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	const struct takt_gpu_reading *reading = latest(daemon, gpu, now);
	uint32_t most = facts->has & TAKT_FACT_POWER_LIMITS ? facts->power_default_mw
							    : limit_of(facts, reading);
	struct takt_lease_state state;

	takt_leases_state(daemon->leases, gpu, &state);
	if (state.cap_power_mw && state.cap_power_mw < most)
		most = state.cap_power_mw;
	return state.base_power_mw && state.base_power_mw < most ? state.base_power_mw : most;
}

void takt_budget_describe(const struct takt_govern *govern, struct takt_governed *one)
{
	struct takt_mono now = takt_mono_now(govern->daemon->sys);
	uint32_t least = 0, most = UINT32_MAX;

	for (uint32_t i = 0; i < one->gpu_count; i++) {
		const struct takt_gpu_facts *facts =
			takt_machine_facts(govern->daemon->machine, one->gpu[i]);
		uint32_t its_most = most_of(govern->daemon, one->gpu[i], now);

		if ((facts->has & TAKT_FACT_POWER_LIMITS) && facts->power_min_mw > least)
			least = facts->power_min_mw;
		most = its_most < most ? its_most : most;
	}
	one->share.most_mw = one->gpu_count ? most : 0;
	one->share.least_mw = least < most ? least : most;
}

static bool is_anybodys(const struct takt_daemon *daemon, uint32_t gpu)
{
	uint64_t job;
	enum takt_gpu_state state = takt_queue_gpu(daemon->queue, gpu, &job);

	return daemon->watch[gpu].outside || job ||
	       (state != TAKT_GPU_FREE && state != TAKT_GPU_QUARANTINED);
}

static void set_aside(const struct takt_daemon *daemon, uint32_t gpu, struct takt_mono now,
		      struct takt_budget_gpu *ret)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	const struct takt_gpu_reading *reading = latest(daemon, gpu, now);
	uint32_t limit_mw = limit_of(facts, reading);

	if (takt_watch_asleep(daemon, gpu))
		*ret = (struct takt_budget_gpu){TAKT_BUDGET_DRAWN, 0};
	else if (!is_anybodys(daemon, gpu) && reading && (reading->has & TAKT_HAS_POWER))
		*ret = (struct takt_budget_gpu){TAKT_BUDGET_DRAWN,
						(reading->power_mw + DRAWN_STEP - 1) / DRAWN_STEP *
							DRAWN_STEP};
	else if (limit_mw)
		*ret = (struct takt_budget_gpu){TAKT_BUDGET_LIMIT, limit_mw};
	else if (reading && (reading->has & TAKT_HAS_POWER))
		*ret = (struct takt_budget_gpu){TAKT_BUDGET_DRAWN, reading->power_mw};
	else
		*ret = (struct takt_budget_gpu){TAKT_BUDGET_UNKNOWN, 0};
}

/* As at the last sharing out. */
static bool counts(const struct takt_govern *govern, const struct takt_governed *one)
{
	return one->gpu_count && govern->budget.gpu[one->gpu[0]].how == TAKT_BUDGET_SHARE;
}

/* What its boards count with while its share does not. */
static uint64_t aside_of(const struct takt_govern *govern, const struct takt_governed *one)
{
	uint64_t sum_mw = 0;

	for (uint32_t i = 0; i < one->gpu_count; i++)
		sum_mw += govern->budget.gpu[one->gpu[i]].mw;
	return sum_mw;
}

/* What is left for those whose shares count. */
static void set_all_aside(struct takt_govern *govern, struct takt_mono now)
{
	struct takt_budget *budget = &govern->budget;
	uint64_t aside_mw = 0, all_mw = (uint64_t)budget->watts * WATT;

	memset(budget->gpu, 0, sizeof(budget->gpu));
	TAKT_MAP_EACH(entry, &govern->jobs)
	{
		const struct takt_governed *one = entry->value.ptr;

		for (uint32_t i = 0; has_share(one) && is_kept(one, now) && i < one->gpu_count; i++)
			budget->gpu[one->gpu[i]].how = TAKT_BUDGET_SHARE;
	}
	for (uint32_t gpu = 0; gpu < govern->daemon->gpu_count; gpu++) {
		if (budget->gpu[gpu].how == TAKT_BUDGET_SHARE)
			continue;
		set_aside(govern->daemon, gpu, now, &budget->gpu[gpu]);
		aside_mw += budget->gpu[gpu].mw;
	}
	budget->aside_mw = aside_mw;
	budget->left_mw = aside_mw < all_mw ? all_mw - aside_mw : 0;
}

static void collect(const struct takt_governed *one, struct takt_power_job *ret)
{
	*ret = (struct takt_power_job){
		.boards = one->gpu_count,
		.least_mw = one->share.least_mw,
		.most_mw = one->share.most_mw,
		.has_promise = one->setup.job.has_promise,
		.max_slowdown_permille = one->setup.job.max_slowdown_permille,
		.complete = takt_power_budget_complete(one->state),
	};
	ret->count = takt_power_budget_curve(one->state, ret->measured);
}

/* Those whose shares count, or everybody who has one. */
static size_t list(const struct takt_govern *govern, bool all,
		   struct takt_governed *ret[TAKT_DEVICE_MAX_GPUS])
{
	size_t n = 0;

	TAKT_MAP_EACH(entry, &govern->jobs)
	{
		struct takt_governed *one = entry->value.ptr;

		if (has_share(one) && (all || counts(govern, one)) && n < TAKT_DEVICE_MAX_GPUS)
			ret[n++] = one;
	}
	return n;
}

static void note(struct takt_govern *govern, const char *text)
{
	struct takt_budget *budget = &govern->budget;

	if (text[0] && strcmp(text, budget->note) != 0)
		takt_log(TAKT_LOG_WARNING, "%s", text);
	takt_strcpy(budget->note, sizeof(budget->note), text);
}

/* The lowest limits of all boards that say theirs. */
static uint64_t least_of_all(const struct takt_daemon *daemon)
{
	uint64_t sum = 0;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		sum += facts->has & TAKT_FACT_POWER_LIMITS ? facts->power_min_mw : 0;
	}
	return sum / WATT;
}

static void say(struct takt_govern *govern, bool is_short)
{
	const struct takt_budget *budget = &govern->budget;
	unsigned long long least_w = least_of_all(govern->daemon);
	char text[sizeof(budget->note)] = "";
	uint32_t unknown = 0;

	while (unknown < govern->daemon->gpu_count &&
	       budget->gpu[unknown].how != TAKT_BUDGET_UNKNOWN)
		unknown++;
	if (budget->watts < least_w)
		snprintf(
			text, sizeof(text),
			"power_budget_w is %u, and the lowest limits of all GPUs are %llu W: it is "
			"not kept while all are busy",
			budget->watts, least_w);
	else if (is_short || budget->aside_mw > (uint64_t)budget->watts * WATT)
		snprintf(
			text, sizeof(text),
			"the power budget of %u W is not kept: GPUs without a share of it may draw "
			"%llu W (takt clock)",
			budget->watts, (unsigned long long)(budget->aside_mw / WATT));
	else if (unknown < govern->daemon->gpu_count)
		snprintf(text, sizeof(text),
			 "the power budget goes without GPU %u: neither its power nor its limit is "
			 "known",
			 unknown);
	note(govern, text);
}

/* Shares for those whose own count; or, with those, for the others, as if theirs counted too.
 * Without memory all stay as they are until the next time. */
static void plan(struct takt_govern *govern, uint64_t left_mw, bool others, bool *ret_short)
{
	struct takt_governed *with[TAKT_DEVICE_MAX_GPUS];
	TAKT_CLEANUP(freep) struct takt_power_job *jobs = NULL;
	size_t count = list(govern, others, with);

	jobs = takt_calloc(count + 1, sizeof(*jobs));
	if (!jobs)
		return;
	for (size_t i = 0; i < count; i++)
		collect(with[i], &jobs[i]);
	if (takt_power_plan(left_mw, jobs, count, ret_short, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (counts(govern, with[i]) == others)
			continue;
		with[i]->share.target_mw = jobs[i].share_mw;
		with[i]->share.breaks_promise = jobs[i].breaks_promise;
	}
}

/* A cap may have been set or lifted since, or be known only now. */
static void describe_all(const struct takt_govern *govern)
{
	TAKT_MAP_EACH(entry, &govern->jobs)
	takt_budget_describe(govern, entry->value.ptr);
}

static void share_out(struct takt_govern *govern, struct takt_mono now)
{
	const struct takt_budget *budget = &govern->budget;
	uint64_t aside_mw, all_mw = (uint64_t)budget->watts * WATT;
	bool is_short = false, others = false, ignored;

	describe_all(govern);
	set_all_aside(govern, now);
	aside_mw = budget->aside_mw;
	TAKT_MAP_EACH(entry, &govern->jobs)
	{
		const struct takt_governed *one = entry->value.ptr;

		if (!has_share(one) || counts(govern, one))
			continue;
		others = true;
		aside_mw -= aside_of(govern, one);
	}
	plan(govern, budget->left_mw, false, &is_short);
	if (others)
		plan(govern, aside_mw < all_mw ? all_mw - aside_mw : 0, true, &ignored);
	say(govern, is_short);
}

static int watch_again(void *ctx, const struct takt_queue_job *job)
{
	takt_govern_watch(ctx, job);
	return 0;
}

/* What it was told of one budget is nothing of the next. */
static void forget_share(struct takt_power_share *share)
{
	share->target_mw = share->told_mw = share->was_mw = 0;
	share->breaks_promise = false;
}

/* With a budget other jobs are governed, and by others, than without. */
static void begin_or_end(struct takt_govern *govern)
{
	bool had = govern->budget.watts > 0;

	govern->budget.watts = govern->daemon->config.power_budget_w;
	if (had != (govern->budget.watts > 0))
		(void)takt_queue_each(govern->daemon->queue, 0, watch_again, govern);
	if (govern->budget.watts)
		return;
	govern->budget = (struct takt_budget){.watts = 0};
	TAKT_MAP_EACH(entry, &govern->jobs)
	forget_share(&((struct takt_governed *)entry->value.ptr)->share);
}

void takt_budget_tick(struct takt_govern *govern, struct takt_mono now)
{
	struct takt_budget *budget = &govern->budget;

	if (budget->watts == govern->daemon->config.power_budget_w &&
	    takt_mono_elapsed_ns(now, budget->shared_at) < share_ns)
		return;
	begin_or_end(govern);
	budget->shared_at = now;
	if (!budget->watts)
		return;
	if (govern->daemon->manages)
		share_out(govern, now);
	else
		note(govern, "power_budget_w is of no effect: takt only observes here");
}

/* Of each of its boards, as long as what it was told before may still be in force. */
static uint32_t may_draw(const struct takt_governed *one)
{
	uint32_t was_mw = one->phase == TAKT_GOVERNED_MEASURING ? 0 : one->share.was_mw;

	return was_mw > one->share.told_mw ? was_mw : one->share.told_mw;
}

/* Of each of its boards, what others leave. A board of theirs that counts with its limit takes what
 * its job was told where that is more: it may be in force any time. */
static uint64_t room_for(const struct takt_govern *govern, const struct takt_governed *one)
{
	const struct takt_budget *budget = &govern->budget;
	uint64_t all_mw = (uint64_t)budget->watts * WATT;
	uint64_t taken_mw = budget->aside_mw - aside_of(govern, one);

	TAKT_MAP_EACH(entry, &govern->jobs)
	{
		const struct takt_governed *other = entry->value.ptr;

		for (uint32_t i = 0; other != one && has_share(other) && i < other->gpu_count;
		     i++) {
			uint32_t aside_mw = budget->gpu[other->gpu[i]].mw;

			if (may_draw(other) > aside_mw)
				taken_mw += may_draw(other) - aside_mw;
		}
	}
	return taken_mw < all_mw ? (all_mw - taken_mw) / one->gpu_count : 0;
}

/* So near its share of now that it stays at what it was told. */
static bool is_near(const struct takt_power_share *share)
{
	uint32_t apart_mw = share->told_mw > share->target_mw ? share->told_mw - share->target_mw
							      : share->target_mw - share->told_mw;

	return apart_mw <= share->told_mw / STEADY;
}

/* What it was told stays if it is nearly right and there is room for it. */
static uint32_t grant(const struct takt_govern *govern, const struct takt_governed *one)
{
	const struct takt_power_share *share = &one->share;
	uint64_t room_mw = room_for(govern, one);
	uint32_t mw =
		share->target_mw < room_mw ? share->target_mw : (uint32_t)(room_mw / WATT * WATT);

	if (share->told_mw && share->told_mw <= room_mw && is_near(share))
		return share->told_mw;
	return mw > share->least_mw ? mw : share->least_mw;
}

void takt_budget_observe(struct takt_govern *govern, struct takt_governed *one,
			 struct takt_governor_observation *seen)
{
	struct takt_power_share *share = &one->share;

	if (!govern->budget.watts || !has_share(one))
		return;
	if (!share->target_mw)
		share_out(govern, (struct takt_mono){seen->now_ns});
	share->was_mw = one->phase == TAKT_GOVERNED_MEASURING || share->told_mw > share->was_mw
				? share->told_mw
				: share->was_mw;
	share->told_mw = grant(govern, one);
	seen->has |= TAKT_OBSERVED_BUDGET;
	seen->budget_mw = share->told_mw;
}

bool takt_budget_hurries(const struct takt_govern *govern, const struct takt_governed *one)
{
	const struct takt_power_share *share = &one->share;

	return govern->budget.watts && has_share(one) && share->target_mw &&
	       (!share->told_mw || (share->told_mw > share->target_mw && !is_near(share)));
}

const char *takt_govern_budget_note(const struct takt_govern *govern)
{
	return govern->budget.note;
}

void takt_budget_job_note(const struct takt_govern *govern, const struct takt_governed *one,
			  char *ret, size_t size)
{
	ret[0] = '\0';
	if (!govern->budget.watts || one->governor != &takt_governor_power_budget)
		return;
	if (one->shared)
		takt_strcpy(ret, size,
			    "it has no share of the power budget: others use its GPUs too");
	else if (!one->share.most_mw)
		takt_strcpy(ret, size,
			    "it has no share of the power budget: its GPUs say no power limit");
	else if (has_share(one) && !counts(govern, one))
		takt_strcpy(ret, size,
			    "its share of the power budget is not in force: its GPUs count with "
			    "their power limit");
	else if (one->share.breaks_promise)
		snprintf(ret, size,
			 "the power budget of %u W is too small for what was promised to all: it "
			 "may take longer",
			 govern->budget.watts);
}

/* "job 7", or why that much is set aside. */
static void fill_gpu(const struct takt_govern *govern, uint32_t gpu, struct takt_clock_gpu *ret)
{
	const struct takt_budget_gpu *seen = &govern->budget.gpu[gpu];

	ret->budget_mw = seen->mw;
	if (seen->how == TAKT_BUDGET_LIMIT)
		takt_strcpy(ret->budget_for, sizeof(ret->budget_for), "limit");
	else if (seen->how == TAKT_BUDGET_DRAWN)
		takt_strcpy(ret->budget_for, sizeof(ret->budget_for), "drawn");
	else if (seen->how == TAKT_BUDGET_UNKNOWN)
		takt_strcpy(ret->budget_for, sizeof(ret->budget_for), "unknown");
}

static void fill_shares(const struct takt_governed *one, struct takt_clock_view *ret)
{
	for (uint32_t i = 0; i < one->gpu_count; i++) {
		struct takt_clock_gpu *gpu = &ret->gpu[one->gpu[i]];

		gpu->budget_mw = one->share.told_mw;
		snprintf(gpu->budget_for, sizeof(gpu->budget_for), "job %llu",
			 (unsigned long long)one->job_id);
	}
}

void takt_govern_fill_budget(const struct takt_govern *govern, struct takt_clock_view *ret)
{
	bool all = true;

	ret->budget = (struct takt_budget_view){.watts = govern->budget.watts};
	if (!govern->budget.watts)
		return;
	takt_strcpy(ret->budget.note, sizeof(ret->budget.note), govern->budget.note);
	for (uint32_t gpu = 0; gpu < ret->gpu_count; gpu++) {
		fill_gpu(govern, gpu, &ret->gpu[gpu]);
		all = all && ret->gpu[gpu].has_draw;
		ret->budget.drawn_mw += ret->gpu[gpu].draw_mw;
	}
	ret->budget.has_drawn = all && ret->gpu_count;
	TAKT_MAP_EACH(entry, &govern->jobs)
	if (has_share(entry->value.ptr) && counts(govern, entry->value.ptr))
		fill_shares(entry->value.ptr, ret);
}
