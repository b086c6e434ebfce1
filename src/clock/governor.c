/* SPDX-License-Identifier: Apache-2.0 */
/* What all governors share: the list, the checks around a step, and small helpers. */
#include "clock/governor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock/range.h"

const struct takt_governor *const takt_governor_all[] = {
	&takt_governor_observe,	     &takt_governor_assured,	  &takt_governor_fixed,
	&takt_governor_performance,  &takt_governor_utilisation,  &takt_governor_ladder,
	&takt_governor_memory_bound, &takt_governor_idle_drop,	  &takt_governor_geepafs,
	&takt_governor_zeus_cost,    &takt_governor_power_budget, &takt_governor_qlearning,
	&takt_governor_slo,	     &takt_governor_forecast,	  NULL,
};

static const struct {
	const char *name, *text;
} reasons[] = {
#define X(reason, name, text) {name, text},
	TAKT_GOVERNOR_REASONS(X)
#undef X
};

const struct takt_governor *takt_governor_find(const char *name)
{
	for (size_t i = 0; takt_governor_all[i]; i++)
		if (strcmp(takt_governor_all[i]->name, name) == 0)
			return takt_governor_all[i];
	return NULL;
}

static bool is_name(const char *name)
{
	size_t len = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;

	return len > 0 && len < 32 && name[len] == '\0';
}

int takt_governor_check(const struct takt_governor *governor, struct takt_err *err)
{
	if (governor->abi != TAKT_GOVERNOR_ABI)
		return takt_err_set(err, -EINVAL, "it is made for ABI %u of governors, this is %u",
				    governor->abi, TAKT_GOVERNOR_ABI);
	if (!is_name(governor->name))
		return takt_err_set(err, -EINVAL,
				    "its name must be of a-z, 0-9 and '-' and shorter than 32");
	if (!governor->step || !governor->summary)
		return takt_err_set(err, -EINVAL, "governor '%s' has no %s", governor->name,
				    governor->step ? "summary" : "step function");
	return 0;
}

static int check_board(const struct takt_governor_board *board, struct takt_err *err)
{
	if (board->can & TAKT_ACTUATE_CLOCKS) {
		if (board->sm_count == 0 || board->sm_count > TAKT_GOVERNOR_MAX_CLOCKS)
			return takt_err_set(err, -EINVAL, "%zu settable clocks, not 1 to %d",
					    board->sm_count, TAKT_GOVERNOR_MAX_CLOCKS);
		for (size_t i = 0; i < board->sm_count; i++)
			if (board->sm_mhz[i] <= (i ? board->sm_mhz[i - 1] : 0))
				return takt_err_set(err, -EINVAL,
						    "settable clocks are not ascending at %u MHz",
						    board->sm_mhz[i]);
	}
	if ((board->can & TAKT_ACTUATE_POWER) &&
	    (board->power_min_mw == 0 || board->power_min_mw > board->power_default_mw ||
	     board->power_default_mw > board->power_max_mw))
		return takt_err_set(err, -EINVAL,
				    "power limits %u..%u mW with %u mW as default are not in order",
				    board->power_min_mw, board->power_max_mw,
				    board->power_default_mw);
	return 0;
}

bool takt_governor_takes(const struct takt_governor *governor, const char *param)
{
	size_t len = strlen(param);
	const char *at = governor->params;

	while (at && *at) {
		size_t own = strcspn(at, " ");

		if (own == len && strncmp(at, param, len) == 0)
			return true;
		at += own + strspn(at + own, " ");
	}
	return false;
}

int takt_governor_check_param(const struct takt_governor *governor,
			      const struct takt_governor_param *param, struct takt_err *err)
{
	if (!takt_governor_takes(governor, param->name))
		return takt_err_set(
			err, -TAKT_E_USAGE, "governor '%s' has no parameter '%.40s'; it takes %s",
			governor->name, param->name, governor->params ? governor->params : "none");
	return takt_governor_check_range(governor, param, err);
}

static int check_params(const struct takt_governor *governor,
			const struct takt_governor_setup *setup, struct takt_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < setup->param_count && rc == 0; i++)
		rc = takt_governor_check_param(governor, &setup->params[i], err);
	return rc;
}

int takt_governor_init(const struct takt_governor *governor, void *state,
		       const struct takt_governor_setup *setup, struct takt_err *err)
{
	char message[160] = "it gives no reason";
	int rc = check_board(&setup->board, err);

	if (rc == 0)
		rc = check_params(governor, setup, err);
	if (rc < 0)
		return rc;
	if (governor->state_bytes)
		memset(state, 0, governor->state_bytes);
	if (governor->init && governor->init(state, setup, message, sizeof(message)) < 0)
		return takt_err_set(err, -EINVAL, "governor '%s' refuses to begin: %s",
				    governor->name, message);
	return 0;
}

static uint32_t between(uint32_t low, uint32_t value, uint32_t high)
{
	return value < low ? low : value > high ? high : value;
}

static void restrict_cap(const struct takt_governor_board *board, struct takt_governor_cap *cap)
{
	struct takt_clock_range range = {cap->min_mhz, cap->max_mhz};

	cap->sets &= board->can;
	if ((cap->sets & TAKT_ACTUATE_CLOCKS) &&
	    !takt_clock_range_clamp(board->sm_mhz, board->sm_count, range, &range))
		cap->sets &= ~(uint32_t)TAKT_ACTUATE_CLOCKS;
	cap->min_mhz = cap->sets & TAKT_ACTUATE_CLOCKS ? range.min_mhz : 0;
	cap->max_mhz = cap->sets & TAKT_ACTUATE_CLOCKS ? range.max_mhz : 0;
	cap->power_mw = cap->sets & TAKT_ACTUATE_POWER
				? between(board->power_min_mw, cap->power_mw, board->power_max_mw)
				: 0;
}

void takt_governor_step(const struct takt_governor *governor, void *state,
			const struct takt_governor_setup *setup,
			const struct takt_governor_observation *seen,
			struct takt_governor_wish *ret)
{
	memset(ret, 0, sizeof(*ret));
	governor->step(state, setup, seen, ret);
	restrict_cap(&setup->board, &ret->cap);
	if ((unsigned)ret->reason >= TAKT_REASONS)
		ret->reason = TAKT_REASON_OBSERVE;
}

void takt_governor_explain(const struct takt_governor *governor, const void *state,
			   const struct takt_governor_setup *setup,
			   const struct takt_governor_wish *wish, char *text, size_t text_size)
{
	snprintf(text, text_size, "%s", takt_governor_reason_text(wish->reason));
	if (governor->explain)
		governor->explain(state, setup, text, text_size);
}

const char *takt_governor_reason_name(enum takt_governor_reason reason)
{
	return (unsigned)reason < TAKT_REASONS ? reasons[reason].name : "unknown";
}

const char *takt_governor_reason_text(enum takt_governor_reason reason)
{
	return (unsigned)reason < TAKT_REASONS ? reasons[reason].text : "for a reason unknown";
}

int64_t takt_governor_param(const struct takt_governor_setup *setup, const char *name,
			    int64_t absent)
{
	for (size_t i = 0; i < setup->param_count; i++)
		if (strcmp(setup->params[i].name, name) == 0)
			return setup->params[i].value;
	return absent;
}

uint32_t takt_governor_max_mhz(const struct takt_governor_setup *setup)
{
	return setup->board.can & TAKT_ACTUATE_CLOCKS
		       ? setup->board.sm_mhz[setup->board.sm_count - 1]
		       : 0;
}

void takt_governor_ask_mhz(const struct takt_governor_setup *setup, uint32_t mhz,
			   enum takt_governor_reason reason, struct takt_governor_wish *ret)
{
	ret->reason = reason;
	ret->cap = (struct takt_governor_cap){0};
	if (setup->board.can & TAKT_ACTUATE_CLOCKS)
		ret->cap = (struct takt_governor_cap){.sets = TAKT_ACTUATE_CLOCKS, .max_mhz = mhz};
}
