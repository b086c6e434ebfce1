/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What load is told to governors that look ahead: `forecast` and `slo`. The job's queries a second
 * as it reports them; of one that reports none, for `forecast` alone, what keeps its GPUs busy, in
 * MHz of work, which stays the same when the clock changes. model/load_ahead.h keeps the series and
 * says what it will be, if any forecaster can; that is part of what the governor observes and so in
 * its log.
 *
 * The log is also where the series begins anew after a restart. What the GPUs did before the job
 * came is not told: it was the load of others.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/timetext.h"
#include "daemon/govern_impl.h"
#include "daemon/log.h"

void takt_load_read_model(struct takt_govern *govern)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	const char *path = govern->daemon->config.forecast_model;
	struct takt_err err = {.rc = 0};
	size_t len = 0;

	if (!path[0])
		return;
	if (takt_file_read(govern->daemon->sys, AT_FDCWD, path, TAKT_LSTM_MAX_FILE, &text, &len,
			   &err) == 0 &&
	    takt_lstm_parse(text, len, &govern->net, &err) == 0)
		return;
	snprintf(govern->net_note, sizeof(govern->net_note),
		 "forecast_model: loads are forecast without it: %.120s", err.msg);
	takt_log(TAKT_LOG_WARNING, "%s", govern->net_note);
}

const char *takt_govern_model_note(const struct takt_govern *govern)
{
	return govern->net_note;
}

static bool looks_ahead(const struct takt_governed *one)
{
	return one->governor == &takt_governor_forecast || one->governor == &takt_governor_slo;
}

/* Not shorter than an epoch, of which no more than its mean is known. */
static struct takt_load_ahead_config config_of(const struct takt_govern *govern)
{
	const struct takt_config *config = &govern->daemon->config;
	uint32_t shortest_ms = config->clock_epoch_ms > config->forecast_step_ms
				       ? config->clock_epoch_ms
				       : config->forecast_step_ms;
	uint32_t step_s = (shortest_ms + 999) / 1000;
	uint32_t horizon = (config->forecast_ahead_ms / 1000 + step_s - 1) / step_s;
	int64_t wall_s = takt_wall_now(govern->daemon->sys).ns / (int64_t)TAKT_NS_PER_S;
	uint64_t mono_s = takt_mono_now(govern->daemon->sys).ns / TAKT_NS_PER_S;

	return (struct takt_load_ahead_config){
		.step_s = step_s,
		.horizon =
			horizon < TAKT_FORECAST_MAX_HORIZON ? horizon : TAKT_FORECAST_MAX_HORIZON,
		.season = config->forecast_season_ms / 1000 / step_s,
		.zero_s = wall_s - (int64_t)mono_s,
		.lstm = govern->net,
	};
}

static void set_up(const struct takt_govern *govern, struct takt_job_load *load)
{
	struct takt_load_ahead_config config = config_of(govern);

	if (config.season > TAKT_FORECAST_MAX_SEASON)
		config.season = 0; /* more steps than any series has */
	takt_load_ahead_free(load->ahead);
	*load = (struct takt_job_load){.config = config};
	if (takt_load_ahead_new(&config, &load->ahead, NULL) < 0)
		load->ahead = NULL; /* nothing is foreseen then */
}

void takt_load_begin(const struct takt_govern *govern, struct takt_governed *one)
{
	if (looks_ahead(one))
		set_up(govern, &one->load);
}

void takt_load_end(struct takt_governed *one)
{
	takt_load_ahead_free(one->load.ahead);
	one->load.ahead = NULL;
}

/* The configuration was read again. */
static bool has_changed(const struct takt_govern *govern, const struct takt_job_load *load)
{
	struct takt_load_ahead_config config = config_of(govern);

	return config.step_s != load->config.step_s || config.horizon != load->config.horizon ||
	       (config.season != load->config.season && config.season <= TAKT_FORECAST_MAX_SEASON);
}

static double work_of(const struct takt_governor_observation *seen)
{
	return seen->gpu_util_permille / 1000.0 * seen->sm_mhz;
}

static bool knows_work(const struct takt_governor_observation *seen)
{
	const uint32_t needed = TAKT_OBSERVED_GPU_UTIL | TAKT_OBSERVED_SM_CLOCK;

	return (seen->has & needed) == needed;
}

/* Work after queries, or the other way round, is a series of its own. */
static void add(struct takt_job_load *load, enum takt_load_kind kind,
		const struct takt_governor_observation *seen)
{
	if (load->kind != kind && load->kind != TAKT_LOAD_UNKNOWN)
		takt_load_ahead_reset(load->ahead);
	load->kind = kind;
	if (seen->epoch_ns && seen->now_ns >= seen->epoch_ns)
		takt_load_ahead_add(load->ahead, seen->now_ns - seen->epoch_ns, seen->now_ns,
				    seen->load);
}

/* A log has all bits of the numbers, so what was made of work is known by them; nothing is nothing
 * in either unit. */
static enum takt_load_kind kind_told(const struct takt_governed *one,
				     const struct takt_governor_observation *seen)
{
	double more = seen->load - work_of(seen);

	if (!(seen->load > 0))
		return one->load.kind;
	return one->governor == &takt_governor_forecast && knows_work(seen) && !(more > 0) &&
			       !(more < 0)
		       ? TAKT_LOAD_WORK
		       : TAKT_LOAD_QUERIES;
}

void takt_load_retell(struct takt_governed *one, const struct takt_governor_observation *seen)
{
	if (one->load.ahead && (seen->has & TAKT_OBSERVED_LOAD))
		add(&one->load, kind_told(one, seen), seen);
}

/* What stands for the load of this epoch; UNKNOWN: nothing. Who has told of queries and is silent
 * has not changed what his load is: that is a gap. */
static enum takt_load_kind find_load(const struct takt_governed *one,
				     struct takt_governor_observation *seen)
{
	if (seen->has & TAKT_OBSERVED_LOAD)
		return TAKT_LOAD_QUERIES;
	if (one->governor != &takt_governor_forecast || one->load.kind == TAKT_LOAD_QUERIES ||
	    !knows_work(seen))
		return TAKT_LOAD_UNKNOWN;
	seen->has |= TAKT_OBSERVED_LOAD;
	seen->load = work_of(seen);
	return TAKT_LOAD_WORK;
}

void takt_load_observe(const struct takt_govern *govern, struct takt_governed *one,
		       struct takt_governor_observation *seen)
{
	struct takt_job_load *load = &one->load;
	enum takt_load_kind kind;

	if (!load->ahead)
		return;
	if (has_changed(govern, load)) {
		set_up(govern, load);
		if (!load->ahead)
			return;
	}
	kind = find_load(one, seen);
	if (kind != TAKT_LOAD_UNKNOWN)
		add(load, kind, seen);
	takt_load_ahead_pass(load->ahead, seen->now_ns);
	if (takt_load_ahead_say(load->ahead, seen->now_ns, &seen->load_ahead))
		seen->has |= TAKT_OBSERVED_LOAD_AHEAD;
}

void takt_load_text(const struct takt_governed *one, char *ret, size_t size)
{
	const struct takt_job_load *load = &one->load;
	const char *unit = load->kind == TAKT_LOAD_WORK ? "MHz of work" : "queries/s";
	char step[TAKT_DURATION_EXACT], ahead[TAKT_DURATION_EXACT];
	struct takt_load_ahead_word word;

	ret[0] = '\0';
	if (!load->ahead)
		return;
	takt_load_ahead_look(load->ahead, &word);
	takt_duration_exact(load->config.step_s * TAKT_NS_PER_S, step);
	takt_duration_exact((uint64_t)load->config.step_s * load->config.horizon * TAKT_NS_PER_S,
			    ahead);
	if (word.chosen)
		snprintf(ret, size,
			 "load %s ahead by %s: off by %.3g +- %.2g %s less than the load of now",
			 ahead, word.chosen, word.better, word.error, unit);
	else if (word.tried)
		snprintf(ret, size,
			 "no forecaster knows its load %s ahead better than by chance: the load of "
			 "now counts",
			 ahead);
	else
		snprintf(ret, size,
			 "its load is not known long enough to be foreseen: %zu of %zu steps of %s",
			 word.steps, word.needed, step);
}
