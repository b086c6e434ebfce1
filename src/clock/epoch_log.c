/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a governor as text, and made again from it; see the header. */
#include "clock/epoch_log.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

static uint64_t bits_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double from_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

int takt_epoch_log_head(const struct takt_governor *governor,
			const struct takt_governor_setup *setup, struct takt_str *out)
{
	const struct takt_governor_board *board = &setup->board;
	const struct takt_governor_job *job = &setup->job;

	if (setup->param_count > TAKT_POLICY_MAX_PARAMS || job->profile_count)
		return -EINVAL;
	takt_str_addf(out, "takt-epochs 1\ngovernor %s %u %llu\n", governor->name,
		      governor->state_version, (unsigned long long)setup->seed);
	takt_str_addf(out, "job %u %u %u %u %u %.*s\n", job->has_promise,
		      job->max_slowdown_permille, job->has_latency, job->latency_target_us,
		      job->latency_permille, TAKT_EPOCH_LOG_NAME - 1, job->name ? job->name : "-");
	takt_str_addf(out, "board %u %u %u %u %u %u %u\nclocks", board->can, board->has_base_mhz,
		      board->base_mhz, board->power_min_mw, board->power_max_mw,
		      board->power_default_mw, board->power_step_mw);
	for (size_t i = 0; i < board->sm_count; i++)
		takt_str_addf(out, " %u", board->sm_mhz[i]);
	for (size_t i = 0; i < setup->param_count; i++)
		takt_str_addf(out, "%s %s=%lld", i ? "" : "\nparams", setup->params[i].name,
			      (long long)setup->params[i].value);
	return takt_str_add(out, "\n");
}

static void put(struct takt_str *out, uint64_t value)
{
	takt_str_addf(out, " %llu", (unsigned long long)value);
}

static void put_cap(struct takt_str *out, const struct takt_governor_cap *cap)
{
	put(out, cap->sets);
	put(out, cap->min_mhz);
	put(out, cap->max_mhz);
	put(out, cap->power_mw);
}

int takt_epoch_log_step(const struct takt_governor_observation *seen,
			const struct takt_governor_wish *wish, struct takt_str *out)
{
	const uint64_t numbers[] = {
		(uint64_t)seen->signal,
		bits_of(seen->work_error),
		seen->energy_mj,
		seen->power_mw,
		seen->sm_mhz,
		seen->mem_mhz,
		seen->gpu_util_permille,
		seen->mem_util_permille,
		seen->dram_active_permille,
		seen->sm_active_permille,
		seen->tensor_active_permille,
		(uint32_t)seen->temp_c,
		seen->throttle,
		seen->remaining_ns,
		seen->latency_us,
		bits_of(seen->load),
		bits_of(seen->load_ahead),
		seen->budget_mw,
	};

	takt_str_add(out, "step");
	put(out, seen->has);
	put(out, seen->now_ns);
	put(out, seen->epoch_ns);
	put(out, seen->gap_ns);
	put_cap(out, &seen->cap);
	put(out, seen->foreign);
	put(out, seen->idle);
	put(out, bits_of(seen->work));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(numbers); i++)
		put(out, numbers[i]);
	put_cap(out, &wish->cap);
	put(out, wish->ttl_ns);
	put(out, (uint64_t)wish->reason);
	put(out, wish->probe);
	put(out, bits_of(wish->bid));
	return takt_str_add(out, "\n");
}

/* The line at hand, word by word; `bad` sticks. */
struct words {
	const char *at, *end;
	bool bad;
};

static bool take_word(struct words *words, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(words->end - words->at) < len || memcmp(words->at, word, len) != 0)
		words->bad = true;
	else
		words->at += len;
	return !words->bad;
}

static uint64_t take(struct words *words, uint64_t max)
{
	unsigned long long value = 0;
	char digits[24];
	size_t len = 0;

	if (words->at < words->end && *words->at == ' ')
		words->at++;
	while (words->at + len < words->end && words->at[len] != ' ' && len < sizeof(digits) - 1)
		len++;
	memcpy(digits, words->at, len);
	digits[len] = '\0';
	words->at += len;
	if (takt_parse_u64(digits, 0, max, &value) < 0)
		words->bad = true;
	return value;
}

static uint32_t take32(struct words *words)
{
	return (uint32_t)take(words, UINT32_MAX);
}

static bool take_flag(struct words *words)
{
	return take(words, 1);
}

/* Infinity and what is no number have all bits of the exponent. */
static double take_double(struct words *words)
{
	const uint64_t exponent = UINT64_C(0x7ff) << 52;
	uint64_t bits = take(words, UINT64_MAX);

	words->bad |= (bits & exponent) == exponent;
	return from_bits(bits);
}

/* The rest of the line as text. */
static void take_text(struct words *words, char *ret, size_t size)
{
	size_t len;

	words->at += words->at < words->end && *words->at == ' ';
	len = (size_t)(words->end - words->at);
	if (len == 0 || len >= size || memchr(words->at, '\0', len)) {
		words->bad = true;
		return;
	}
	memcpy(ret, words->at, len);
	ret[len] = '\0';
	words->at = words->end;
}

static bool over(const struct words *words)
{
	return !words->bad && words->at == words->end;
}

struct reading {
	const struct takt_governors *all;
	const char *at, *end;
	uint32_t line;
	struct takt_epoch_replay *replay;
	struct takt_err *err;
};

/* The next whole line; false when there is none. */
static bool next_line(struct reading *reading, struct words *ret)
{
	const char *end = memchr(reading->at, '\n', (size_t)(reading->end - reading->at));

	if (!end)
		return false;
	*ret = (struct words){reading->at, end, false};
	reading->at = end + 1;
	reading->line++;
	return true;
}

static int corrupt(const struct reading *reading, const char *wanted)
{
	return takt_err_set(reading->err, -TAKT_E_CORRUPT, "line %u is not %s", reading->line + 1,
			    wanted);
}

static int read_governor(struct reading *reading)
{
	struct takt_epoch_replay *replay = reading->replay;
	struct words words;
	char name[40];
	size_t len;

	if (!next_line(reading, &words) || !take_word(&words, "takt-epochs 1") || !over(&words))
		return corrupt(reading, "the head of a log of epochs, version 1");
	if (!next_line(reading, &words) || !take_word(&words, "governor "))
		return corrupt(reading, "the governor's");
	len = 0;
	while (words.at + len < words.end && words.at[len] != ' ' && len < sizeof(name) - 1)
		len++;
	memcpy(name, words.at, len);
	name[len] = '\0';
	words.at += len;
	replay->state_version = take32(&words);
	replay->setup.seed = take(&words, UINT64_MAX);
	if (!over(&words))
		return corrupt(reading, "the governor's");
	replay->governor = takt_governors_find(reading->all, name);
	return replay->governor ? 0
				: takt_err_set(reading->err, -TAKT_E_NOT_FOUND,
					       "there is no governor '%s'", name);
}

static int read_job(struct reading *reading)
{
	struct takt_governor_job *job = &reading->replay->setup.job;
	struct words words;

	if (!next_line(reading, &words) || !take_word(&words, "job"))
		return corrupt(reading, "the job's");
	job->has_promise = take_flag(&words);
	job->max_slowdown_permille = take32(&words);
	job->has_latency = take_flag(&words);
	job->latency_target_us = take32(&words);
	job->latency_permille = take32(&words);
	take_text(&words, reading->replay->name, sizeof(reading->replay->name));
	job->name = reading->replay->name;
	return over(&words) ? 0 : corrupt(reading, "the job's");
}

static int read_board(struct reading *reading)
{
	struct takt_governor_board *board = &reading->replay->setup.board;
	struct words words;

	if (!next_line(reading, &words) || !take_word(&words, "board"))
		return corrupt(reading, "the board's");
	board->can = take32(&words);
	board->has_base_mhz = take_flag(&words);
	board->base_mhz = take32(&words);
	board->power_min_mw = take32(&words);
	board->power_max_mw = take32(&words);
	board->power_default_mw = take32(&words);
	board->power_step_mw = take32(&words);
	if (!over(&words) || !next_line(reading, &words) || !take_word(&words, "clocks"))
		return corrupt(reading, "the board's");
	while (words.at < words.end && !words.bad && board->sm_count < TAKT_GOVERNOR_MAX_CLOCKS)
		reading->replay->sm_mhz[board->sm_count++] = take32(&words);
	board->sm_mhz = reading->replay->sm_mhz;
	return over(&words) ? 0 : corrupt(reading, "one of clocks");
}

/* One word of the line. */
static void take_param(struct words *words, struct takt_policy_text *said)
{
	size_t len = 0;

	words->at += words->at < words->end && *words->at == ' ';
	while (words->at + len < words->end && words->at[len] != ' ')
		len++;
	if (said->param_count == TAKT_POLICY_MAX_PARAMS ||
	    takt_policy_param_parse(words->at, len, &said->params[said->param_count]) < 0) {
		words->bad = true;
		return;
	}
	said->param_count++;
	words->at += len;
}

/* The line is there only where there are any. */
static int read_params(struct reading *reading)
{
	struct takt_epoch_replay *replay = reading->replay;
	const struct reading before = *reading;
	struct words words;

	if (!next_line(reading, &words) || !take_word(&words, "params ")) {
		*reading = before;
		return 0;
	}
	while (words.at < words.end && !words.bad)
		take_param(&words, &replay->said);
	replay->setup.param_count = takt_policy_params(&replay->said, replay->params);
	replay->setup.params = replay->params;
	return over(&words) ? 0 : corrupt(reading, "one of parameters");
}

static struct takt_governor_cap take_cap(struct words *words)
{
	struct takt_governor_cap cap;

	cap.sets = take32(words);
	cap.min_mhz = take32(words);
	cap.max_mhz = take32(words);
	cap.power_mw = take32(words);
	return cap;
}

static void take_seen(struct words *words, struct takt_governor_observation *ret)
{
	ret->has = take32(words);
	ret->now_ns = take(words, UINT64_MAX);
	ret->epoch_ns = take(words, UINT64_MAX);
	ret->gap_ns = take(words, UINT64_MAX);
	ret->cap = take_cap(words);
	ret->foreign = take_flag(words);
	ret->idle = take_flag(words);
	ret->work = take_double(words);
	ret->signal = (enum takt_governor_signal)take(words, TAKT_SIGNAL_JOB);
	ret->work_error = take_double(words);
	ret->energy_mj = take(words, UINT64_MAX);
	ret->power_mw = take32(words);
	ret->sm_mhz = take32(words);
	ret->mem_mhz = take32(words);
	ret->gpu_util_permille = take32(words);
	ret->mem_util_permille = take32(words);
	ret->dram_active_permille = take32(words);
	ret->sm_active_permille = take32(words);
	ret->tensor_active_permille = take32(words);
	ret->temp_c = (int32_t)take32(words);
	ret->throttle = take(words, UINT64_MAX);
	ret->remaining_ns = take(words, UINT64_MAX);
	ret->latency_us = take32(words);
	ret->load = take_double(words);
	ret->load_ahead = take_double(words);
	ret->budget_mw = take32(words);
}

static void take_wish(struct words *words, struct takt_governor_wish *ret)
{
	ret->cap = take_cap(words);
	ret->ttl_ns = take(words, UINT64_MAX);
	ret->reason = (enum takt_governor_reason)take(words, TAKT_REASONS - 1);
	ret->probe = take_flag(words);
	ret->bid = take_double(words);
}

static bool same_wish(const struct takt_governor_wish *a, const struct takt_governor_wish *b)
{
	return a->cap.sets == b->cap.sets && a->cap.min_mhz == b->cap.min_mhz &&
	       a->cap.max_mhz == b->cap.max_mhz && a->cap.power_mw == b->cap.power_mw &&
	       a->ttl_ns == b->ttl_ns && a->reason == b->reason && a->probe == b->probe &&
	       bits_of(a->bid) == bits_of(b->bid);
}

static int step(struct reading *reading, struct words *words,
		struct takt_governor_observation *ret_seen)
{
	struct takt_epoch_replay *replay = reading->replay;
	struct takt_governor_wish written = {.ttl_ns = 0};

	*ret_seen = (struct takt_governor_observation){.has = 0};
	take_word(words, "step");
	take_seen(words, ret_seen);
	take_wish(words, &written);
	if (!over(words)) {
		reading->line--;
		return corrupt(reading, "a step");
	}
	takt_governor_step(replay->governor, replay->state, &replay->setup, ret_seen,
			   &replay->wish);
	replay->steps++;
	replay->last_ns = ret_seen->now_ns;
	if (!same_wish(&written, &replay->wish) && replay->differing++ == 0)
		replay->first_differing = replay->steps;
	return 0;
}

static int begin(struct reading *reading)
{
	struct takt_epoch_replay *replay = reading->replay;
	int rc = read_governor(reading);

	if (rc == 0)
		rc = read_job(reading);
	if (rc == 0)
		rc = read_board(reading);
	if (rc == 0)
		rc = read_params(reading);
	if (rc < 0)
		return rc;
	replay->state = takt_zalloc(replay->governor->state_bytes + 1);
	if (!replay->state)
		return takt_err_set(reading->err, -ENOMEM, "a governor's state");
	return takt_governor_init(replay->governor, replay->state, &replay->setup, reading->err);
}

int takt_epoch_replay(const struct takt_governors *all, const char *text, size_t len,
		      void (*each)(void *ctx, const struct takt_epoch_replay *at,
				   const struct takt_governor_observation *seen),
		      void *ctx, struct takt_epoch_replay *ret, struct takt_err *err)
{
	struct reading reading = {all, text, text + len, 0, ret, err};
	struct takt_governor_observation seen;
	struct words words;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = begin(&reading);
	while (rc == 0 && ret->steps < TAKT_EPOCH_LOG_MAX_STEPS && next_line(&reading, &words)) {
		rc = step(&reading, &words, &seen);
		if (rc == 0 && each)
			each(ctx, ret, &seen);
	}
	ret->whole_bytes = (size_t)(reading.at - text);
	if (rc < 0)
		takt_epoch_replay_fini(ret);
	return rc;
}

void takt_epoch_replay_fini(struct takt_epoch_replay *replay)
{
	takt_free(replay->state);
	replay->state = NULL;
}
