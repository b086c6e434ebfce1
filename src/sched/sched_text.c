/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence that tells a person why his job waits and what would unblock it. */
#include <inttypes.h>

#include "sched/sched_text.h"

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

static void add_class(struct takt_str *text, uint32_t n, const char *what)
{
	if (n > 0)
		takt_str_addf(text, ", %" PRIu32 " %s", n, what);
}

/* "8 in all, 3 free, 4 running, 1 used by processes outside takt" */
static void add_counts(struct takt_str *text, const struct takt_plan_wait *wait)
{
	takt_str_addf(text, "%" PRIu32 " in all, %" PRIu32 " free", wait->total, wait->free);
	add_class(text, wait->running, "running");
	add_class(text, wait->draining, "being cleared after a job");
	add_class(text, wait->promised, "promised to other jobs");
	add_class(text, wait->kept, "set aside or reserved");
	add_class(text, wait->outside, "used by processes outside takt");
	add_class(text, wait->unhealthy, "out of service");
}

static void add_held(struct takt_str *text, const struct takt_plan_wait *wait)
{
	takt_str_add(text, "held: it takes its place in the queue when it is released");
}

static void add_impossible(struct takt_str *text, const struct takt_plan_wait *wait)
{
	if (wait->need == 0)
		takt_str_add(text, "waits for a machine: none is known");
	else if (wait->total == 0)
		takt_str_addf(text, "asks for %" PRIu32 " GPU%s, but no machine with GPUs is known",
			      wait->need, plural(wait->need));
	else
		takt_str_addf(text,
			      "asks for %" PRIu32 " GPU%s, but the largest machine has %" PRIu32
			      ": it runs when a larger one is added",
			      wait->need, plural(wait->need), wait->total);
}

static void add_unhealthy(struct takt_str *text, const struct takt_plan_wait *wait)
{
	uint32_t lack = wait->need + wait->unhealthy - wait->total;

	takt_str_addf(text,
		      "needs %" PRIu32 " healthy GPU%s, but %" PRIu32 " of %" PRIu32
		      " %s out of service: at least %" PRIu32 " of them must come back",
		      wait->need, plural(wait->need), wait->unhealthy, wait->total,
		      wait->unhealthy == 1 ? "is" : "are", lack);
}

static void add_outside(struct takt_str *text, const struct takt_plan_wait *wait)
{
	uint32_t usable = wait->total - wait->unhealthy - wait->outside;

	takt_str_addf(text,
		      "needs %" PRIu32 " GPU%s that nobody outside takt uses: %" PRIu32
		      " more must be left by such processes, or the job be allowed to share (",
		      wait->need, plural(wait->need), wait->need - usable);
	add_counts(text, wait);
	takt_str_add(text, ")");
}

static void add_order(struct takt_str *text, const struct takt_plan_wait *wait)
{
	takt_str_addf(text,
		      "waits its turn: job %" PRIu64
		      " is ahead of it in the queue and the free GPUs are kept for that one (",
		      wait->behind_job);
	add_counts(text, wait);
	takt_str_add(text, ")");
}

static void add_gpus(struct takt_str *text, const struct takt_plan_wait *wait)
{
	takt_str_addf(text, "waits for %" PRIu32 " more GPU%s: ", wait->must_end,
		      plural(wait->must_end));
	add_counts(text, wait);
	if (wait->behind_job != 0)
		takt_str_addf(text, "; job %" PRIu64 " is ahead of it and goes first",
			      wait->behind_job);
}

int takt_why_text(const struct takt_plan_wait *wait, struct takt_str *ret_text)
{
	static void (*const sentence[TAKT_WHY_COUNT])(struct takt_str * text,
						      const struct takt_plan_wait *wait) = {
		[TAKT_WHY_HELD] = add_held,	      [TAKT_WHY_IMPOSSIBLE] = add_impossible,
		[TAKT_WHY_UNHEALTHY] = add_unhealthy, [TAKT_WHY_OUTSIDE] = add_outside,
		[TAKT_WHY_ORDER] = add_order,	      [TAKT_WHY_GPUS] = add_gpus,
	};

	if ((size_t)wait->why >= TAKT_WHY_COUNT || takt_text_by_nodes(wait, ret_text))
		return ret_text->rc;
	if (sentence[wait->why])
		sentence[wait->why](ret_text, wait);
	return ret_text->rc;
}
