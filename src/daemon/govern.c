/* SPDX-License-Identifier: Apache-2.0 */
/* Governors of running jobs, see the header. */
#include "daemon/govern.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/govern_impl.h"
#include "daemon/job_course.h"
#include "telemetry/progress_ranks.h"

enum {
	MAX_GOVERNED = 4096,
	SHORT_EPOCHS = 12,    /* a job that is over before that has not settled */
	LONGEST_EPOCH = 20,   /* times the usual one, for jobs that say little */
	ENERGY_PARTS = 4,     /* of an epoch its energy may be old */
	POWER_STEP_MW = 1000, /* drivers take milliwatts, people and data sheets watts */
};

static const uint64_t tick_ns = 100 * TAKT_NS_PER_MS;
/* For clocks that another one has outbid: a benchmark there may be over. */
static const struct takt_pace bids = {2 * TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};
static const uint64_t astray_patience_ns = 15 * TAKT_NS_PER_S; /* the actuator needs half of it */

int takt_govern_new(struct takt_daemon *daemon, struct takt_govern **ret, struct takt_err *err)
{
	struct takt_govern *govern = takt_zalloc(sizeof(*govern));
	int rc = govern ? 0 : takt_err_set(err, -ENOMEM, "governors");

	if (rc < 0)
		return rc;
	govern->daemon = daemon;
	govern->jobs = TAKT_MAP_U64(MAX_GOVERNED);
	govern->log_dirfd = -1;
	govern->budget.watts = daemon->config.power_budget_w;
	takt_load_read_model(govern);
	rc = takt_govern_log_open(govern, err);
	if (rc < 0)
		takt_govern_free(govern);
	else
		*ret = govern;
	return rc;
}

void takt_governed_free(struct takt_governed *one)
{
	if (!one)
		return;
	takt_govern_log_close(one);
	takt_load_end(one);
	takt_free(one->state);
	takt_free(one);
}

void takt_govern_free(struct takt_govern *govern)
{
	if (!govern)
		return;
	TAKT_MAP_EACH(entry, &govern->jobs)
	takt_governed_free(entry->value.ptr);
	takt_map_fini(&govern->jobs);
	takt_govern_log_shut(govern);
	takt_lstm_free(govern->net);
	takt_free(govern);
}

static bool has_gpu(const struct takt_queue_job *job, uint32_t gpu)
{
	return job->row.gpu_mask >> gpu & 1;
}

static bool shares(const struct takt_queue_job *job)
{
	return job->spec.mig[0] || job->row.share_milli < TAKT_REQUEST_WHOLE;
}

/* Clocks that this GPU has too. */
static void keep_common(struct takt_governed *one, const struct takt_gpu_facts *facts, bool first)
{
	size_t kept = 0;

	if (first) {
		memcpy(one->sm_mhz, facts->sm_clocks_mhz,
		       facts->sm_clock_count * sizeof(one->sm_mhz[0]));
		one->setup.board.sm_count = facts->sm_clock_count;
		return;
	}
	for (size_t i = 0; i < one->setup.board.sm_count; i++)
		for (uint32_t k = 0; k < facts->sm_clock_count; k++)
			if (facts->sm_clocks_mhz[k] == one->sm_mhz[i])
				one->sm_mhz[kept++] = one->sm_mhz[i];
	one->setup.board.sm_count = kept;
}

/* Whether this GPU takes a lower limit, and the same ones as those before it. */
static bool takes_limits(struct takt_governor_board *board, const struct takt_gpu_facts *facts,
			 bool first)
{
	if (!(facts->has & TAKT_FACT_POWER_LIMITS) || !facts->power_min_mw ||
	    facts->power_min_mw >= facts->power_default_mw)
		return false;
	if (first) {
		board->power_min_mw = facts->power_min_mw;
		board->power_default_mw = facts->power_default_mw;
		board->power_max_mw = facts->power_max_mw;
		board->power_step_mw = POWER_STEP_MW;
	}
	return board->power_min_mw == facts->power_min_mw &&
	       board->power_default_mw == facts->power_default_mw &&
	       board->power_max_mw == facts->power_max_mw;
}

/* What all GPUs of the job can be set to. */
static void describe_boards(struct takt_governed *one, const struct takt_daemon *daemon,
			    const struct takt_queue_job *job)
{
	struct takt_governor_board *board = &one->setup.board;
	bool clocks = true, limits = true;

	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		if (!has_gpu(job, gpu))
			continue;
		clocks &= (facts->has & TAKT_FACT_SM_CLOCKS) && facts->sm_clock_count > 0;
		limits = takes_limits(board, facts, one->gpu_count == 0) && limits;
		keep_common(one, facts, one->gpu_count == 0);
		one->gpu[one->gpu_count++] = gpu;
	}
	board->sm_mhz = one->sm_mhz;
	board->can = (clocks && board->sm_count > 1 ? TAKT_ACTUATE_CLOCKS : 0) |
		     (limits ? TAKT_ACTUATE_POWER : 0);
}

static void describe_job(struct takt_governed *one, const struct takt_govern_terms *terms,
			 const struct takt_queue_job *job)
{
	takt_strcpy(one->name, sizeof(one->name), job->spec.name);
	one->setup.job = (struct takt_governor_job){
		.has_promise = terms->max_slowdown_permille > 0,
		.max_slowdown_permille = terms->max_slowdown_permille,
		.has_latency = terms->slo_latency_us > 0,
		.latency_target_us = terms->slo_latency_us,
		.latency_permille = terms->slo_permille,
		.name = one->name,
	};
	one->setup.seed = job->row.id;
	one->said = terms->said;
	one->setup.param_count = takt_policy_params(&one->said, one->params);
	one->setup.params = one->params;
}

static void give_up(struct takt_governed *one, enum takt_governed_phase phase, const char *why)
{
	one->phase = phase;
	takt_strcpy(one->note, sizeof(one->note), why);
}

static void set(struct takt_govern *govern, struct takt_governed *one,
		const struct takt_queue_job *job, const struct takt_governor_cap *cap)
{
	takt_leases_govern(govern->daemon->leases, job, &one->asked, cap);
	one->asked = *cap;
}

static void ask(struct takt_govern *govern, struct takt_governed *one,
		const struct takt_queue_job *job, uint64_t now_ns)
{
	one->phase = TAKT_GOVERNED_ASKING;
	one->asked_ns = now_ns;
	if (!one->out_ns)
		one->out_ns = now_ns;
	set(govern, one, job, &one->wish.cap);
}

static bool same_cap(const struct takt_governor_cap *a, const struct takt_governor_cap *b)
{
	return a->sets == b->sets && a->min_mhz == b->min_mhz && a->max_mhz == b->max_mhz &&
	       a->power_mw == b->power_mw;
}

static void measure(struct takt_governed *one, uint64_t now_ns)
{
	one->phase = TAKT_GOVERNED_MEASURING;
	one->out_ns = 0;
	one->note[0] = '\0';
	if (!one->applied_ns)
		one->applied_ns = now_ns;
	takt_epoch_begin(&one->epoch, one->gpu_count, now_ns);
}

/* One step of the governor, kept in the log; then what it wishes for is asked. */
static void step(struct takt_govern *govern, struct takt_governed *one,
		 const struct takt_queue_job *job, const struct takt_governor_observation *seen)
{
	struct takt_governor_cap before = one->wish.cap;

	takt_governor_step(one->governor, one->state, &one->setup, seen, &one->wish);
	takt_govern_log_step(one, seen);
	takt_job_course_step(govern->daemon->courses, one->job_id, one->attempt, seen, &one->wish);
	one->ended_ns = seen->now_ns;
	if (same_cap(&before, &one->wish.cap) && one->phase == TAKT_GOVERNED_MEASURING)
		measure(one, seen->now_ns);
	else
		ask(govern, one, job, seen->now_ns);
}

/* From the beginning: its state, its log, what was saved. */
static void begin(struct takt_govern *govern, struct takt_governed *one,
		  const struct takt_queue_job *job, uint64_t now_ns)
{
	struct takt_governor_observation nothing = {.now_ns = now_ns};
	struct takt_err err;

	one->savings = (struct takt_savings){.signal = TAKT_SIGNAL_NONE};
	one->epochs = 0;
	if (takt_governor_init(one->governor, one->state, &one->setup, &err) < 0) {
		give_up(one, TAKT_GOVERNED_OVER, err.msg);
		return;
	}
	takt_govern_log_begin(govern, one);
	takt_job_course_governed(govern->daemon->courses, one->job_id, one->attempt,
				 one->governor->name);
	takt_budget_observe(govern, one, &nothing);
	step(govern, one, job, &nothing);
}

/* How long the whole run is known to be; 0 = not known, or only that it is no longer than that. */
static uint64_t expected_ns(const struct takt_queue_job *job)
{
	const struct takt_queue_estimate *estimate = &job->estimate;

	return estimate->from == TAKT_ESTIMATE_OWNER || estimate->from == TAKT_ESTIMATE_HISTORY
		       ? estimate->ns
		       : 0;
}

/* False: it says nothing now. */
static bool read_said(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		      uint64_t now_ns, struct takt_progress_said *ret)
{
	char path[TAKT_PROGRESS_PATH];

	takt_job_progress_path(job->row.id, job->row.attempt, path);
	if (takt_progress_read(daemon->jobs_dirfd, path, job->row.uid, ret) < 0)
		return false;
	takt_progress_living(ret, (struct takt_mono){now_ns});
	return true;
}

static uint32_t unit_of(const struct takt_progress_said *said)
{
	struct takt_progress_file slowest;

	return takt_progress_slowest(said, &slowest) ? takt_epoch_unit(&slowest) : 0;
}

/* What it has said already: of one that is found running after a restart. */
static uint32_t unit_so_far(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			    uint64_t now_ns)
{
	struct takt_progress_said said;

	return read_said(daemon, job, now_ns, &said) ? unit_of(&said) : 0;
}

static void start(struct takt_govern *govern, struct takt_governed *one,
		  const struct takt_queue_job *job)
{
	const struct takt_config *config = &govern->daemon->config;
	uint64_t now_ns = takt_mono_now(govern->daemon->sys).ns;
	uint64_t expected = expected_ns(job);

	one->watched_ns = now_ns;
	one->in_budget = config->power_budget_w > 0;
	takt_budget_describe(govern, one);
	takt_load_begin(govern, one);
	one->unit = unit_so_far(govern->daemon, job, now_ns);
	if (one->setup.board.can == 0)
		give_up(one, TAKT_GOVERNED_OVER,
			"the driver lists no clocks and no power limits that all its GPUs could be "
			"set to");
	else if (expected && expected < SHORT_EPOCHS * config->clock_epoch_ms * TAKT_NS_PER_MS)
		give_up(one, TAKT_GOVERNED_OVER, "it will be over before a governor has settled");
	else if (takt_govern_log_resume(govern, one))
		ask(govern, one, job, now_ns);
	else
		begin(govern, one, job, now_ns);
}

struct takt_governed *takt_governed_new(const struct takt_daemon *daemon,
					const struct takt_govern_terms *terms,
					const struct takt_queue_job *job)
{
	struct takt_governed *one = takt_zalloc(sizeof(*one));

	if (!one)
		return NULL;
	one->job_id = job->row.id;
	one->attempt = job->row.attempt;
	one->governor = terms->governor;
	one->said_permille = job->spec.max_slowdown_permille;
	takt_strcpy(one->said_policy, sizeof(one->said_policy), job->spec.clock_policy);
	one->shared = shares(job);
	one->log_fd = -1;
	one->state = takt_zalloc((terms->governor ? terms->governor->state_bytes : 0) + 1);
	if (!one->state) {
		takt_governed_free(one);
		return NULL;
	}
	describe_boards(one, daemon, job);
	describe_job(one, terms, job);
	return one;
}

static void forget(struct takt_govern *govern, uint64_t job_id)
{
	takt_governed_free(takt_map_u64_ptr(&govern->jobs, job_id));
	(void)takt_map_u64_remove(&govern->jobs, job_id);
}

/* A budget was set or lifted since, and another governor is the default of such a job. */
static bool is_others_now(const struct takt_govern *govern, struct takt_governed *one,
			  const struct takt_queue_job *job)
{
	bool in_budget = govern->daemon->config.power_budget_w > 0;
	struct takt_govern_terms terms;

	if (one->in_budget == in_budget)
		return false;
	one->in_budget = in_budget;
	return takt_govern_terms(govern->daemon, job->row.uid, &job->spec, &terms, NULL) == 0 &&
	       terms.governor != one->governor;
}

/* It is governed as its description says now. */
static bool is_governed(const struct takt_govern *govern, struct takt_governed *one,
			const struct takt_queue_job *job)
{
	return one && one->attempt == job->row.attempt &&
	       one->said_permille == job->spec.max_slowdown_permille &&
	       strcmp(one->said_policy, job->spec.clock_policy) == 0 &&
	       !is_others_now(govern, one, job);
}

/* Something else was promised: what its governor holds is let go. */
static void end_other(struct takt_govern *govern, const struct takt_queue_job *job)
{
	const struct takt_governor_cap none = {.sets = 0};
	struct takt_governed *one = takt_map_u64_ptr(&govern->jobs, job->row.id);

	if (one && one->attempt == job->row.attempt && one->phase != TAKT_GOVERNED_OVER)
		set(govern, one, job, &none);
	forget(govern, job->row.id);
}

void takt_govern_watch(struct takt_govern *govern, const struct takt_queue_job *job)
{
	struct takt_governed *one = takt_map_u64_ptr(&govern->jobs, job->row.id);
	struct takt_govern_terms terms;
	struct takt_err err;
	int rc;

	if (job->phase != TAKT_PHASE_RUNNING || job->row.gpu_mask == 0 ||
	    is_governed(govern, one, job))
		return;
	end_other(govern, job);
	rc = takt_govern_terms(govern->daemon, job->row.uid, &job->spec, &terms, &err);
	if (rc < 0)
		terms.governor = NULL;
	else if (!terms.governor)
		return;
	one = takt_governed_new(govern->daemon, &terms, job);
	if (!one)
		return; /* it runs at the default; the next change of it tries again */
	if (takt_map_u64_put_ptr(&govern->jobs, job->row.id, one) < 0)
		takt_governed_free(one);
	else if (rc < 0)
		give_up(one, TAKT_GOVERNED_OVER, err.msg); /* it was here when the job came */
	else
		start(govern, one, job);
}

static void copy_saved(const struct takt_governed *one, struct takt_job_report *ret)
{
	struct takt_saved saved;

	if (!one->governor)
		return;
	takt_strcpy(ret->governor, sizeof(ret->governor), one->governor->name);
	if (one->shared || !takt_savings_result(&one->savings, &saved))
		return;
	ret->has |= TAKT_REPORT_SAVED;
	ret->work_signal = (uint32_t)saved.signal;
	ret->governed_mj = saved.energy_mj * one->gpu_count;
	ret->highest_mj = saved.highest_mj * one->gpu_count;
	ret->highest_error_permille = saved.highest_error_permille;
	ret->slowdown_permille = saved.slowdown_permille;
	ret->slowdown_error_permille = saved.slowdown_error_permille;
}

void takt_govern_peek(const struct takt_govern *govern, uint64_t job_id,
		      struct takt_job_report *ret)
{
	const struct takt_governed *one = takt_map_u64_ptr(&govern->jobs, job_id);

	if (one)
		copy_saved(one, ret);
}

void takt_govern_over(struct takt_govern *govern, const struct takt_queue_job *job,
		      struct takt_job_report *ret_report)
{
	const struct takt_governed *one = takt_map_u64_ptr(&govern->jobs, job->row.id);

	if (!one)
		return;
	copy_saved(one, ret_report);
	if ((ret_report->has & TAKT_REPORT_SAVED) &&
	    ret_report->work_signal > TAKT_SIGNAL_UTILISATION) { /* that is no more than a guess */
		govern->governed_mj += ret_report->governed_mj;
		govern->highest_mj += ret_report->highest_mj;
	}
	forget(govern, job->row.id);
}

static void feed_progress(const struct takt_daemon *daemon, struct takt_governed *one,
			  const struct takt_queue_job *job, uint64_t now_ns)
{
	struct takt_progress_said said;

	/* Between the first words of an epoch and its end nothing is to be learned. */
	if (takt_epoch_is_told(&one->epoch) && now_ns < one->epoch.begun_ns + one->epoch_ns)
		return;
	if (!read_said(daemon, job, now_ns, &said))
		return;
	takt_epoch_progress(&one->epoch, &said);
	if (!one->unit && unit_of(&said)) {
		one->unit = unit_of(&said);
		one->better_signal = true;
	}
}

static void feed(struct takt_govern *govern, struct takt_governed *one,
		 const struct takt_queue_job *job, struct takt_mono now)
{
	struct takt_telemetry *telemetry = govern->daemon->telemetry;
	const struct takt_gpu_reading *reading;

	for (uint32_t i = 0; i < one->gpu_count; i++) {
		takt_telemetry_want_energy(telemetry, one->gpu[i], one->epoch_ns / ENERGY_PARTS);
		if (takt_telemetry_latest(telemetry, one->gpu[i], now, &reading) == 0)
			takt_epoch_sample(&one->epoch, i,
					  takt_machine_facts(govern->daemon->machine, one->gpu[i]),
					  reading);
	}
	takt_govern_look_for_counters(one, now.ns);
	feed_progress(govern->daemon, one, job, now.ns);
}

static bool epoch_is_over(const struct takt_govern *govern, const struct takt_governed *one,
			  uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - one->epoch.begun_ns;

	return passed_ns >= one->epoch_ns &&
	       (passed_ns >= LONGEST_EPOCH * one->epoch_ns || takt_budget_hurries(govern, one) ||
		takt_govern_knows_speed(one, now_ns));
}

static void add_remaining(const struct takt_govern *govern, const struct takt_queue_job *job,
			  struct takt_governor_observation *ret)
{
	uint64_t expected = expected_ns(job);
	int64_t run_ns = takt_wall_now(govern->daemon->sys).ns - job->row.started.ns;

	if (!expected || run_ns < 0)
		return;
	ret->has |= TAKT_OBSERVED_REMAINING;
	ret->remaining_ns = expected > (uint64_t)run_ns ? expected - (uint64_t)run_ns : 0;
}

/* Whether the boards ran at the clock that was wished for. If not, the note says so. */
static bool keeps_to_its_wish(struct takt_governed *one)
{
	const struct takt_governor_cap *cap = &one->wish.cap;
	uint32_t which, mhz;

	if (!(cap->sets & TAKT_ACTUATE_CLOCKS) ||
	    takt_epoch_keeps_to(&one->epoch, cap->max_mhz, one->reach_mhz, &which, &mhz))
		return true;
	(void)snprintf(one->note, sizeof(one->note),
		       "GPU %u ran at %u MHz under load for no reason, not at %u: such epochs do "
		       "not count",
		       one->gpu[which], mhz, cap->max_mhz);
	return false;
}

/* An epoch of somebody else's clock is none of the wish that it was begun for: that time is spent,
 * and nothing is learned from it. The actuator is about to say whose clock it is; where it does
 * not, the governor is told that there is somebody. */
static bool passes_over(struct takt_governed *one, bool keeps, uint64_t now_ns)
{
	if (keeps || !one->astray_ns)
		one->astray_ns = keeps ? 0 : now_ns;
	if (keeps || now_ns - one->astray_ns >= astray_patience_ns)
		return false;
	takt_epoch_begin(&one->epoch, one->gpu_count, now_ns);
	return true;
}

/* It is to draw less: that does not wait until it is known whose clock it is. Nothing else is told,
 * and the governor leaves the clock as it is. */
static void tell_share(struct takt_govern *govern, struct takt_governed *one,
		       const struct takt_queue_job *job, uint64_t now_ns)
{
	struct takt_governor_observation nothing = {.now_ns = now_ns, .cap = one->wish.cap};
	uint64_t ended_ns = one->ended_ns;

	takt_budget_observe(govern, one, &nothing);
	step(govern, one, job, &nothing);
	one->ended_ns = ended_ns; /* the time passed over is spent all the same */
}

static void end_epoch(struct takt_govern *govern, struct takt_governed *one,
		      const struct takt_queue_job *job, uint64_t now_ns)
{
	struct takt_epoch_basis basis = takt_govern_basis(one);
	struct takt_governor_observation seen;
	bool keeps = keeps_to_its_wish(one);

	if (passes_over(one, keeps, now_ns)) {
		if (takt_budget_hurries(govern, one))
			tell_share(govern, one, job, now_ns);
		return;
	}
	takt_epoch_observe(&one->epoch, &basis, now_ns, &seen);
	seen.cap = one->wish.cap;
	seen.gap_ns = one->epoch.begun_ns - one->ended_ns;
	seen.foreign = !keeps;
	add_remaining(govern, job, &seen);
	one->epochs++;
	takt_savings_add(&one->savings, &one->setup, &seen);
	takt_load_observe(govern, one, &seen);
	takt_budget_observe(govern, one, &seen);
	step(govern, one, job, &seen);
}

/* The job, or the counters of its GPUs, have begun to say how far it is: what was learned before
 * that is in other units. */
static void begin_anew(struct takt_govern *govern, struct takt_governed *one,
		       const struct takt_queue_job *job, uint64_t now_ns)
{
	one->better_signal = false;
	if (one->epochs > 0) {
		one->wish.cap = (struct takt_governor_cap){.sets = 0};
		one->phase = TAKT_GOVERNED_ASKING;
		begin(govern, one, job, now_ns);
	}
}

/* Frozen for others: its GPUs are theirs, at the clocks that they want. */
static bool stands_still(const struct takt_queue_job *job)
{
	return job->row.frozen || job->evict.step >= TAKT_EVICT_STILLING;
}

static void rest(struct takt_govern *govern, struct takt_governed *one,
		 const struct takt_queue_job *job)
{
	const struct takt_governor_cap none = {.sets = 0};

	if (one->phase != TAKT_GOVERNED_RESTING)
		set(govern, one, job, &none);
	give_up(one, TAKT_GOVERNED_RESTING, "it stands still");
}

/* Not all GPUs can be set, or it is not for us to say: the default everywhere, for good. */
static void fall_back(struct takt_govern *govern, struct takt_governed *one,
		      const struct takt_queue_job *job, const char *why, uint32_t gpu,
		      const char *note)
{
	const struct takt_governor_cap none = {.sets = 0};
	char text[sizeof(one->note)];

	set(govern, one, job, &none);
	snprintf(text, sizeof(text), "all its GPUs are at their default: %s GPU %u%s%.100s", why,
		 gpu, note[0] ? ": " : "", note);
	give_up(one, TAKT_GOVERNED_OVER, text);
}

static void act_on_standing(struct takt_govern *govern, struct takt_governed *one,
			    const struct takt_queue_job *job, struct takt_mono now)
{
	char note[160];
	uint32_t gpu = 0;
	enum takt_lease_standing standing = takt_leases_standing(
		govern->daemon->leases, job, &one->wish.cap, &gpu, note, sizeof(note));

	switch (standing) {
	case TAKT_STANDING_HOLDS:
		one->bids_lost = 0;
		if (one->phase != TAKT_GOVERNED_MEASURING)
			measure(one, now.ns);
		return;
	case TAKT_STANDING_FOREIGN:
		fall_back(govern, one, job, "somebody else sets", gpu, note);
		return;
	case TAKT_STANDING_REFUSED:
		fall_back(govern, one, job, "refused on", gpu, note);
		return;
	case TAKT_STANDING_GONE:
		fall_back(govern, one, job, "somebody else has asked otherwise for", gpu, "");
		return;
	case TAKT_STANDING_ADVICE:
		give_up(one, TAKT_GOVERNED_ADVISING, note);
		return;
	default:
		one->phase = TAKT_GOVERNED_ASKING;
		if (!one->out_ns)
			one->out_ns = now.ns;
		takt_strcpy(one->note, sizeof(one->note), note);
	}
	if (standing == TAKT_STANDING_OUTBID &&
	    now.ns - one->asked_ns > takt_pace_ns(&bids, one->bids_lost)) {
		one->bids_lost++;
		ask(govern, one, job, now.ns);
	}
}

static void tend(struct takt_govern *govern, struct takt_governed *one,
		 const struct takt_queue_job *job, struct takt_mono now)
{
	one->epoch_ns = govern->daemon->config.clock_epoch_ms * TAKT_NS_PER_MS;
	if (stands_still(job)) {
		rest(govern, one, job);
		return;
	}
	if (one->phase == TAKT_GOVERNED_RESTING) {
		one->ended_ns = now.ns;
		ask(govern, one, job, now.ns);
	}
	act_on_standing(govern, one, job, now);
	if (one->phase != TAKT_GOVERNED_MEASURING)
		return;
	feed(govern, one, job, now);
	if (one->better_signal)
		begin_anew(govern, one, job, now.ns);
	else if (epoch_is_over(govern, one, now.ns))
		end_epoch(govern, one, job, now.ns);
}

void takt_govern_tick(struct takt_govern *govern, struct takt_mono now)
{
	if (takt_mono_elapsed_ns(now, govern->ticked_at) < tick_ns)
		return;
	govern->ticked_at = now;
	takt_budget_tick(govern, now);
	TAKT_MAP_EACH(entry, &govern->jobs)
	{
		const struct takt_queue_job *job =
			takt_queue_find(govern->daemon->queue, entry->key);
		struct takt_governed *one = entry->value.ptr;

		if (job && job->phase == TAKT_PHASE_RUNNING && one->phase != TAKT_GOVERNED_OVER)
			tend(govern, one, job, now);
	}
}
