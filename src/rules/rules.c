/* SPDX-License-Identifier: Apache-2.0 */
/* Takes in samples, events and time, and keeps the state of a GPU. */
#include <string.h>

#include "base/compiler.h"
#include "base/str.h"
#include "rules/rules_impl.h"
#include "rules/xid.h"

enum {
	SLOW_MS = 10000,
	HUNG_MS = 60000,
};
/* A GPU that an event called lost and that answers for so long is not gone, and not to be trusted.
 */
#define ANSWERS_NS (60 * TAKT_NS_PER_S)
/* Within it two applications with the same fault make the GPU suspect. */
#define APPS_NS (86400 * TAKT_NS_PER_S)

static const char *const names[] = {"healthy", "suspect", "quarantined", "lost"};

const char *takt_health_name(enum takt_health health)
{
	return names[health];
}

void takt_rules_init(struct takt_rules_gpu *gpu, const struct takt_rules_board *board)
{
	*gpu = (struct takt_rules_gpu){.board = *board};
}

static void move_to(struct takt_rules_gpu *gpu, struct takt_mono at)
{
	if (at.ns <= gpu->now.ns)
		return;
	if (gpu->unasked)
		gpu->unasked_ns += at.ns - gpu->now.ns;
	gpu->now = at;
}

struct takt_mono takt_rules_awake(const struct takt_rules_gpu *gpu)
{
	return (struct takt_mono){gpu->now.ns - gpu->unasked_ns};
}

/* Long after the last of them, faults of applications say nothing of the GPU. */
static void forget_apps(struct takt_rules_gpu *gpu)
{
	if (!gpu->app_count || takt_mono_elapsed_ns(gpu->now, gpu->app_at) < APPS_NS)
		return;
	gpu->app_count = 0;
	takt_standing_see(gpu, TAKT_FINDING_XID_REPEATED, TAKT_LOOK_GOOD, 0, 2);
}

/* After each step: has the verdict changed? */
static void settle(struct takt_rules_gpu *gpu)
{
	struct takt_rules_verdict verdict;

	forget_apps(gpu);
	takt_incidents_expire(&gpu->incidents, gpu->now, false);
	takt_rules_verdict(gpu, &verdict);
	if (verdict.health == gpu->health)
		return;
	gpu->history[gpu->changes++ % TAKT_RULES_HISTORY] = (struct takt_rules_change){
		gpu->now, gpu->health, verdict.health,
		verdict.count ? verdict.finding[0].kind : TAKT_FINDING_GPU_LOST};
	gpu->health = verdict.health;
	gpu->health_since = gpu->now;
}

static void see_silence(struct takt_rules_gpu *gpu, uint64_t silent_ns)
{
	int64_t ms = (int64_t)(silent_ns / TAKT_NS_PER_MS);

	takt_standing_see(gpu, TAKT_FINDING_DRIVER_SLOW,
			  ms >= SLOW_MS ? TAKT_LOOK_BAD : TAKT_LOOK_GOOD, ms, SLOW_MS);
	takt_standing_see(gpu, TAKT_FINDING_DRIVER_HUNG,
			  ms >= HUNG_MS ? TAKT_LOOK_BAD : TAKT_LOOK_GOOD, ms, HUNG_MS);
}

/* What an event said is void once the GPU was gone and is back. One that answers all along has had
 * the event all the same, and no reading will ever say that this is over. */
static void see_lost(struct takt_rules_gpu *gpu, bool lost)
{
	bool is_back = !lost && gpu->was_lost;
	bool answers = !lost && !is_back && gpu->is_lost_by_event &&
		       takt_mono_elapsed_ns(gpu->now, gpu->lost_at) >= ANSWERS_NS;

	if (lost && !gpu->was_lost)
		takt_rules_gone(gpu, 0);
	if (is_back) {
		gpu->came_back = true;
		gpu->back_at = gpu->now;
	}
	gpu->was_lost = lost;
	gpu->is_lost_by_event = gpu->is_lost_by_event && !is_back && !answers;
	if (answers) { /* one in place of the other, so that nothing else is said of it */
		takt_standing_see(gpu, TAKT_FINDING_OFF_THE_BUS, TAKT_LOOK_BAD, 79, 0);
		gpu->standing[TAKT_FINDING_GPU_LOST].found = false;
	}
	takt_standing_see(gpu, TAKT_FINDING_GPU_LOST,
			  lost || gpu->is_lost_by_event ? TAKT_LOOK_BAD : TAKT_LOOK_GOOD,
			  gpu->is_lost_by_event ? 79 : 0, 0);
}

void takt_rules_sample(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample)
{
	struct takt_mono awake;
	uint64_t elapsed_ns;

	move_to(gpu, sample->at);
	awake = takt_rules_awake(gpu);
	elapsed_ns = gpu->sampled ? takt_mono_elapsed_ns(awake, gpu->sampled_awake) : 0;
	gpu->sampled = true;
	gpu->sampled_at = gpu->now;
	gpu->sampled_awake = awake;
	see_silence(gpu, 0);
	see_lost(gpu, sample->lost);
	if (!sample->lost)
		takt_rules_check(gpu, sample, elapsed_ns);
	settle(gpu);
}

void takt_rules_driver(struct takt_rules_gpu *gpu, struct takt_mono now, bool gone)
{
	if (gpu->standing[TAKT_FINDING_DRIVER_GONE].found == gone)
		return;
	move_to(gpu, now);
	takt_standing_see(gpu, TAKT_FINDING_DRIVER_GONE, gone ? TAKT_LOOK_BAD : TAKT_LOOK_GOOD, 0,
			  0);
	settle(gpu);
}

/* The same fault in programs of two names speaks against the GPU. */
static void note_app(struct takt_rules_gpu *gpu, const struct takt_log_event *log)
{
	if ((log->code != 13 && log->code != 31) || !log->name[0])
		return;
	forget_apps(gpu);
	gpu->app_at = gpu->now;
	for (uint32_t i = 0; i < gpu->app_count; i++)
		if (strcmp(gpu->apps[i], log->name) == 0)
			return;
	if (gpu->app_count < TAKT_RULES_APPS)
		takt_strcpy(gpu->apps[gpu->app_count++], sizeof(gpu->apps[0]), log->name);
	if (gpu->app_count >= 2)
		takt_standing_see(gpu, TAKT_FINDING_XID_REPEATED, TAKT_LOOK_BAD, gpu->app_count, 2);
}

/* XID 154: the driver asks for something else from now on. Its own reading, where there is one, is
 * newer at the next sample. */
static void note_recovery(struct takt_rules_gpu *gpu, uint32_t action)
{
	static const enum takt_finding_kind kinds[] = {
		TAKT_FINDING_RECOVERY_REBOOT, TAKT_FINDING_RECOVERY_DRAIN,
		TAKT_FINDING_RECOVERY_RESET, TAKT_FINDING_RECOVERY_P2P};
	enum takt_finding_kind asked;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++)
		gpu->standing[kinds[i]] = (struct takt_rules_standing){0};
	if (takt_recovery_finding(action, &asked))
		takt_standing_see(gpu, asked, TAKT_LOOK_BAD, action, 0);
	else
		takt_incidents_expire(&gpu->incidents, gpu->now, true);
}

/* The driver names an XID that nobody told of: it has happened all the same. */
static void note_xid(struct takt_rules_gpu *gpu, const struct takt_rules_event *event)
{
	const struct takt_log_event *log = &event->log;

	if (log->has & TAKT_LOG_CAUSED_BY) {
		struct takt_log_event before = {.code = log->caused_by, .link = -1};

		takt_incidents_add(&gpu->incidents, TAKT_INCIDENT_NVML, gpu->now, &before);
	}
	takt_incidents_add(&gpu->incidents, event->source, gpu->now, log);
	note_app(gpu, log);
}

static void reset(struct takt_rules_gpu *gpu)
{
	struct takt_rules_gpu before = *gpu;

	takt_rules_init(gpu, &before.board);
	gpu->now = before.now;
	gpu->health = before.health;
	gpu->health_since = before.health_since;
	gpu->changes = before.changes;
	gpu->was_gone = before.was_gone;
	gpu->gone_at = before.gone_at;
	gpu->gone_xid = before.gone_xid;
	gpu->widest = before.widest;
	memcpy(gpu->history, before.history, sizeof(gpu->history));
}

/* Whether XID 79 tells of a loss that is over: readings may say that a GPU is gone, and that it is
 * back, before the driver's event or the kernel's log is heard. */
static bool is_told_late(const struct takt_rules_gpu *gpu)
{
	return gpu->came_back && !gpu->was_lost &&
	       takt_mono_elapsed_ns(gpu->now, gpu->back_at) < ANSWERS_NS;
}

void takt_rules_event(struct takt_rules_gpu *gpu, const struct takt_rules_event *event)
{
	const struct takt_log_event *log = &event->log;

	move_to(gpu, event->at);
	if (event->kind == TAKT_RULES_RESET) {
		reset(gpu);
	} else if (log->code == 79 && is_told_late(gpu)) {
		gpu->gone_xid = 79;
	} else if (log->code == 79) {
		if (!gpu->is_lost_by_event)
			gpu->lost_at = gpu->now;
		takt_rules_gone(gpu, 79);
		gpu->is_lost_by_event = true;
		takt_standing_see(gpu, TAKT_FINDING_GPU_LOST, TAKT_LOOK_BAD, 79, 0);
	} else if (log->code == 154 && (log->has & TAKT_LOG_RECOVERY)) {
		note_recovery(gpu, log->recovery);
	} else {
		note_xid(gpu, event);
	}
	settle(gpu);
}

void takt_rules_tick(struct takt_rules_gpu *gpu, struct takt_mono now, bool asked)
{
	struct takt_mono since;

	gpu->unasked |= !asked; /* so it was since the call before */
	move_to(gpu, now);
	if (asked && (gpu->unasked || gpu->asked_since.ns == 0))
		gpu->asked_since = gpu->now;
	gpu->unasked = !asked;
	since = gpu->sampled && gpu->sampled_at.ns > gpu->asked_since.ns ? gpu->sampled_at
									 : gpu->asked_since;
	if (asked)
		see_silence(gpu, takt_mono_elapsed_ns(gpu->now, since));
	settle(gpu);
}

bool takt_rules_waits_for_reset(const struct takt_rules_gpu *gpu)
{
	return gpu->standing[TAKT_FINDING_OFF_THE_BUS].found ||
	       takt_incidents_stay(&gpu->incidents, gpu->has_recovery);
}
