/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event logs: whatever is read is fed to a scheduler, which may refuse any event. What is left must
 * write a snapshot that loads, gives the same snapshot again and the same plan, whose counts add
 * up.
 */
#include "codec/snapshot.h"
#include "fuzz_input.h"
#include "sched/place.h"

enum {
	TEXT_MAX = 16 * 1024 * 1024,
};
#define NOW UINT64_C(100000000000)

static int feed(void *ctx, const struct takt_sched_event *event, struct takt_err *err)
{
	(void)takt_sched_update(ctx, event, err);
	return 0;
}

static void expect_counts(const struct takt_plan_wait *wait)
{
	uint64_t sum = (uint64_t)wait->unhealthy + wait->outside + wait->running + wait->draining +
		       wait->promised + wait->free;

	fuzz_expect(sum == wait->total);
	fuzz_expect(wait->why == TAKT_WHY_GPUS || wait->must_end == 0);
	fuzz_expect(wait->why != TAKT_WHY_GPUS || wait->must_end > 0 || wait->total == 0);
}

/* Appends the plan without its version. */
static void add_plan(struct takt_sched *sched, struct takt_str *out)
{
	struct takt_plan plan = {0};

	fuzz_expect(takt_sched_run(sched, NOW, 0, &plan, NULL) == 0);
	for (size_t i = 0; i < plan.wait_count; i++)
		expect_counts(&plan.waits[i]);
	plan.version = plan.serial = 0;
	fuzz_expect(takt_plan_to_json(&plan, out, NULL) == 0);
	takt_plan_fini(&plan);
}

static void expect_rebuilt_alike(struct takt_sched *sched, const struct takt_sched_config *config)
{
	struct takt_str snapshot = TAKT_STR(TEXT_MAX);
	struct takt_str again = TAKT_STR(TEXT_MAX);
	struct takt_sched *rebuilt = NULL;

	fuzz_expect(takt_snapshot_to_json(sched, &snapshot, NULL) == 0);
	fuzz_expect(takt_snapshot_load(snapshot.s, snapshot.len, config, &rebuilt, NULL) == 0);
	fuzz_expect(takt_snapshot_to_json(rebuilt, &again, NULL) == 0);
	add_plan(sched, &snapshot);
	add_plan(rebuilt, &again);
	fuzz_expect(strcmp(snapshot.s, again.s) == 0);
	takt_sched_free(rebuilt);
	takt_str_fini(&snapshot);
	takt_str_fini(&again);
}

/* Set up in one of several ways, as the length of the input has it. */
static struct takt_sched_config config_of(size_t size)
{
	return (struct takt_sched_config){
		.backfill = (enum takt_backfill)(size % TAKT_BACKFILL_COUNT),
		.placement = size / 4 % 2 ? takt_placement_find("takt") : NULL,
		.preempt = size / 8 % 2,
		.migrate_most = size / 16 % 2 ? 4 : 0,
		.clean_at_end = size / 32 % 2,
		.flap_count = 2,
		.flap_window_ns = NOW,
		.flap_rest_ns = NOW,
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_sched_config config = config_of(size);
	struct takt_sched *sched = NULL;

	fuzz_expect(takt_sched_new(&config, &sched, NULL) == 0);
	if (takt_events_from_json((const char *)data, size, feed, sched, NULL) == 0)
		expect_rebuilt_alike(sched, &config);
	takt_sched_free(sched);
	return 0;
}
