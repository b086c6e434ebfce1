/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of GPUs while the store refuses to take it. The store is the test's: the linker
 * sends what gpu_orders.c asks of it, of health and of whoever waits for an answer here. */
#include "fake_machine.h"

#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_mig.h"
#include "daemon/gpu_orders.h"
#include "queue_kit.h"

static struct {
	char text[TAKT_STORE_MAX_KEPT]; /* what is on disk; "" = nothing */
	char posted[TAKT_STORE_MAX_KEPT];
	int64_t ticket;
	unsigned posts;
	uint64_t looked_at;
	int answered; /* 200, or what was wrong; 0 = nobody was */
} disk;

int64_t __wrap_takt_store_keep(struct takt_store *store, const char *key, const char *text,
			       uint64_t tag, struct takt_err *err);
int __wrap_takt_store_each_kept(struct takt_store *store, const char *prefix,
				int (*each)(void *ctx, const char *key, const char *text),
				void *ctx, struct takt_err *err);
void __wrap_takt_health_looked_at(struct takt_gpu_health *health, uint32_t gpu);
void __wrap_takt_pending_json(struct takt_pending *pending, int status, const char *json,
			      size_t len);
void __wrap_takt_pending_error(struct takt_pending *pending, const struct takt_err *err);
void __wrap_takt_pending_set_cancel(struct takt_pending *pending, void (*hung_up)(void *ctx),
				    void *ctx);

int64_t __wrap_takt_store_keep(struct takt_store *store, const char *key, const char *text,
			       uint64_t tag, struct takt_err *err)
{
	takt_strcpy(disk.posted, sizeof(disk.posted), text);
	disk.posts++;
	return ++disk.ticket;
}

int __wrap_takt_store_each_kept(struct takt_store *store, const char *prefix,
				int (*each)(void *ctx, const char *key, const char *text),
				void *ctx, struct takt_err *err)
{
	return disk.text[0] ? each(ctx, "orders", disk.text) : 0;
}

void __wrap_takt_health_looked_at(struct takt_gpu_health *health, uint32_t gpu)
{
	disk.looked_at |= UINT64_C(1) << gpu;
}

void __wrap_takt_pending_json(struct takt_pending *pending, int status, const char *json,
			      size_t len)
{
	disk.answered = status;
}

void __wrap_takt_pending_error(struct takt_pending *pending, const struct takt_err *err)
{
	disk.answered = err->rc;
}

void __wrap_takt_pending_set_cancel(struct takt_pending *pending, void (*hung_up)(void *ctx),
				    void *ctx)
{
}

/* The kernel's calls, by a clock of the test's. */
static struct takt_sys sys;
static uint64_t boot_ns;

static uint64_t injected_boot_ns(const struct takt_sys *ours)
{
	return boot_ns;
}

struct rig {
	struct kit kit;
	struct takt_daemon *daemon; /* the parts that orders use */
};

static void rig_open(struct rig *rig)
{
	struct takt_daemon *daemon = takt_zalloc(sizeof(*daemon));

	assert_non_null(daemon);
	fake_reset();
	memset(&disk, 0, sizeof(disk));
	kit_open(&rig->kit);
	sys = *takt_sys_real();
	sys.boot_ns = injected_boot_ns;
	boot_ns = TAKT_NS_PER_S;
	daemon->sys = &sys;
	daemon->manages = true;
	daemon->machine = open_fake();
	daemon->gpu_count = FAKE_GPUS;
	daemon->queue = rig->kit.queue;
	daemon->store = rig->kit.store;
	assert_int_equal(takt_mig_new(daemon, &daemon->mig, NULL), 0);
	assert_int_equal(takt_orders_new(daemon, &daemon->orders, NULL), 0);
	rig->daemon = daemon;
}

static void rig_close(struct rig *rig)
{
	takt_orders_free(rig->daemon->orders);
	takt_mig_free(rig->daemon->mig);
	takt_machine_close(rig->daemon->machine);
	takt_free(rig->daemon);
	kit_close(&rig->kit);
}

/* What was posted last is on disk now, or is not. */
static void answer(struct rig *rig, int rc)
{
	struct takt_store_completion done = {.ticket = disk.ticket, .rc = rc};

	if (rc == 0)
		takt_strcpy(disk.text, sizeof(disk.text), disk.posted);
	takt_orders_stored(rig->daemon, &done);
}

/* Turns of the daemon until something is posted, for so long at most. How much was. */
static unsigned tick_for(struct rig *rig, uint64_t seconds)
{
	unsigned before = disk.posts;

	for (uint64_t end = boot_ns + seconds * TAKT_NS_PER_S;
	     boot_ns < end && disk.posts == before; boot_ns += TAKT_NS_PER_S / 10)
		takt_orders_tick(rig->daemon->orders, takt_wall_now(rig->daemon->sys));
	return disk.posts - before;
}

/* Time enough for a write that failed to be tried again, or for one of a fault. */
static unsigned tick_later(struct rig *rig)
{
	return tick_for(rig, 11);
}

static int order(struct rig *rig, enum takt_gpu_request_kind kind, uint64_t gpus)
{
	const struct takt_peer root = {.admin = true};
	const struct takt_gpu_request request = {.kind = kind, .gpu_mask = gpus, .reason = "fan"};
	char pending;

	disk.answered = 0;
	return takt_api_order(rig->daemon, &root, &request, (struct takt_pending *)&pending, NULL);
}

static enum takt_gpu_state gpu_state(const struct rig *rig, uint32_t gpu)
{
	uint64_t job;

	takt_watch_health(rig->daemon);
	return takt_queue_gpu(rig->kit.queue, gpu, &job);
}

static bool is_on_disk(const char *word)
{
	return strstr(disk.text, word);
}

static void a_fault_that_cannot_be_written_is_written_later(void **state)
{
	struct rig rig;

	rig_open(&rig);
	takt_orders_fault(rig.daemon->orders, 1, "XID 79");
	assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_QUARANTINED);
	answer(&rig, -ENOSPC);
	assert_true(takt_orders_is_fault(rig.daemon->orders, 1));
	assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_QUARANTINED);
	assert_int_equal(tick_later(&rig), 1);
	answer(&rig, 0);
	assert_true(is_on_disk("XID 79"));
	/* Once is enough. */
	takt_orders_tick(rig.daemon->orders, takt_wall_now(rig.daemon->sys));
	assert_int_equal(disk.posts, 2);
	rig_close(&rig);
}

static void hours_of_a_full_disk_are_few_writes(void **state)
{
	struct rig rig;
	uint64_t end;

	rig_open(&rig);
	takt_orders_fault(rig.daemon->orders, 1, "XID 79");
	answer(&rig, -ENOSPC);
	assert_int_equal(tick_for(&rig, 2), 1);
	answer(&rig, -ENOSPC);
	assert_int_equal(tick_for(&rig, 3), 1);
	for (end = boot_ns + 6 * 3600 * TAKT_NS_PER_S; boot_ns < end;) {
		answer(&rig, -ENOSPC);
		assert_int_equal(tick_later(&rig), 1);
	}
	assert_in_range(disk.posts, 6 * 300, 6 * 360 + 6);
	answer(&rig, 0);
	assert_true(is_on_disk("XID 79"));
	rig_close(&rig);
}

static void a_fault_that_is_not_on_disk_can_be_resumed(void **state)
{
	struct rig rig;

	rig_open(&rig);
	takt_orders_fault(rig.daemon->orders, 1, "XID 79");
	answer(&rig, -ENOSPC);
	assert_int_equal(order(&rig, TAKT_GPU_RESUME, 1 << 1), 0);
	assert_int_equal(disk.looked_at, 0);
	answer(&rig, 0);
	assert_int_equal(disk.answered, 200);
	assert_int_equal(disk.looked_at, 1 << 1);
	assert_false(takt_orders_is_fault(rig.daemon->orders, 1));
	assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_FREE);
	takt_orders_tick(rig.daemon->orders, takt_wall_now(rig.daemon->sys));
	assert_int_equal(disk.posts, 2);
	assert_false(is_on_disk("XID 79"));
	rig_close(&rig);
}

static void a_resume_that_is_not_written_changes_nothing(void **state)
{
	struct rig rig;

	rig_open(&rig);
	takt_orders_fault(rig.daemon->orders, 1, "XID 79");
	answer(&rig, 0);
	takt_orders_fault(rig.daemon->orders, 2, "XID 62");
	answer(&rig, -ENOSPC);
	rig.daemon->watch[3].ill = true;
	assert_int_equal(order(&rig, TAKT_GPU_RESUME, 7 << 1), 0);
	answer(&rig, -ENOSPC);
	assert_int_equal(disk.answered, -ENOSPC);
	assert_int_equal(disk.looked_at, 0);
	for (uint32_t gpu = 1; gpu <= 3; gpu++)
		assert_int_equal(gpu_state(&rig, gpu), TAKT_GPU_QUARANTINED);
	/* Written, it does all of it: the fault that was not on disk does not come back. */
	assert_int_equal(order(&rig, TAKT_GPU_RESUME, 7 << 1), 0);
	answer(&rig, 0);
	assert_int_equal(disk.looked_at, 7 << 1);
	assert_int_equal(gpu_state(&rig, 1), TAKT_GPU_FREE);
	assert_int_equal(gpu_state(&rig, 2), TAKT_GPU_FREE);
	rig_close(&rig);
}

static void a_refused_resume_is_no_look_at_the_others(void **state)
{
	struct rig rig;

	rig_open(&rig);
	rig.daemon->watch[1].ill = true;
	assert_int_equal(order(&rig, TAKT_GPU_RESUME, 3 << 1), -TAKT_E_CONFLICT);
	assert_int_equal(disk.looked_at, 0);
	assert_int_equal(disk.posts, 0);
	rig_close(&rig);
}

/* Of a drain, and of what was found while it was being written. */
static void a_drain_that_is_not_written_leaves_the_fault_that_came_meanwhile(void **state)
{
	struct rig rig;

	rig_open(&rig);
	assert_int_equal(order(&rig, TAKT_GPU_DRAIN, 1 << 1), 0);
	takt_orders_fault(rig.daemon->orders, 1, "XID 79");
	assert_int_equal(disk.posts, 1);
	answer(&rig, -EIO);
	assert_int_equal(disk.answered, -EIO);
	assert_null(takt_orders_state(rig.daemon->orders, 1, takt_wall_now(rig.daemon->sys)));
	assert_true(takt_orders_is_fault(rig.daemon->orders, 1));
	assert_int_equal(tick_later(&rig), 1);
	answer(&rig, 0);
	assert_true(is_on_disk("XID 79") && !is_on_disk("drained"));

	/* A restart knows what is on disk. */
	takt_orders_free(rig.daemon->orders);
	assert_int_equal(takt_orders_new(rig.daemon, &rig.daemon->orders, NULL), 0);
	assert_true(takt_orders_is_fault(rig.daemon->orders, 1));
	rig_close(&rig);
}

static int ask(struct rig *rig, const struct takt_peer *peer,
	       const struct takt_gpu_request *request)
{
	char pending;

	disk.answered = 0;
	return takt_api_order(rig->daemon, peer, request, (struct takt_pending *)&pending, NULL);
}

static void allow_bookings(struct rig *rig)
{
	static const char text[] = "[user *]\nreserve_gpu_hours = 4\n";
	struct takt_share_rules rules;

	assert_int_equal(takt_share_rules_parse(text, strlen(text), "f", &rules, NULL), 0);
	assert_int_equal(takt_queue_set_rules(rig->daemon->queue, &rules, NULL), 0);
}

/* A preview is an answer and nothing else; a booking counts once it is on disk, and after a start.
 */
static void a_booking_counts_when_it_is_on_disk(void **state)
{
	const struct takt_peer user = {.uid = 54321}, other = {.uid = 54322};
	struct takt_gpu_request request = {
		.kind = TAKT_GPU_RESERVE, .gpu_mask = 1 << 1, .preview = true};
	const struct takt_gpu_request release = {.kind = TAKT_GPU_RELEASE, .id = 1};
	struct takt_wall now;
	struct rig rig;

	rig_open(&rig);
	allow_bookings(&rig);
	now = takt_wall_now(rig.daemon->sys);
	request.until_ms = now.ns / (int64_t)TAKT_NS_PER_MS + 3600000;
	assert_int_equal(ask(&rig, &user, &request), 0);
	assert_int_equal(disk.answered, 200);
	assert_int_equal(disk.posts, 0);
	request.preview = false;
	assert_int_equal(ask(&rig, &user, &request), 0);
	assert_null(takt_orders_state(rig.daemon->orders, 1, takt_wall_now(rig.daemon->sys)));
	answer(&rig, -ENOSPC);
	assert_int_equal(disk.answered, -ENOSPC);
	assert_null(takt_orders_state(rig.daemon->orders, 1, takt_wall_now(rig.daemon->sys)));
	assert_int_equal(ask(&rig, &user, &request), 0);
	answer(&rig, 0);
	takt_orders_free(rig.daemon->orders);
	assert_int_equal(takt_orders_new(rig.daemon, &rig.daemon->orders, NULL), 0);
	assert_string_equal(
		takt_orders_state(rig.daemon->orders, 1, takt_wall_now(rig.daemon->sys)),
		"reserved");
	assert_int_equal(ask(&rig, &other, &release), -EPERM);
	assert_int_equal(ask(&rig, &user, &release), 0);
	answer(&rig, 0);
	assert_null(takt_orders_state(rig.daemon->orders, 1, takt_wall_now(rig.daemon->sys)));
	rig_close(&rig);
}

/* For as long as what was used counts against its user, and no longer. */
static void an_old_booking_is_forgotten_after_eight_days(void **state)
{
	static const int64_t day_ms = INT64_C(86400000);
	const struct takt_peer user = {.uid = 54321};
	struct takt_gpu_request request = {.kind = TAKT_GPU_RESERVE, .gpu_mask = 1 << 1};
	struct takt_wall now;
	struct rig rig;

	rig_open(&rig);
	allow_bookings(&rig);
	now = takt_wall_now(rig.daemon->sys);
	request.until_ms = now.ns / (int64_t)TAKT_NS_PER_MS + 3600000;
	assert_int_equal(ask(&rig, &user, &request), 0);
	answer(&rig, 0);
	now.ns = (request.until_ms + 8 * day_ms - 1) * (int64_t)TAKT_NS_PER_MS;
	takt_orders_tick(rig.daemon->orders, now);
	assert_int_equal(disk.posts, 1);
	now.ns += (int64_t)TAKT_NS_PER_MS;
	takt_orders_tick(rig.daemon->orders, now);
	assert_int_equal(disk.posts, 2);
	answer(&rig, 0);
	assert_false(is_on_disk("54321"));
	rig_close(&rig);
}

#define CASE(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_fault_that_cannot_be_written_is_written_later),
		CASE(hours_of_a_full_disk_are_few_writes),
		CASE(a_fault_that_is_not_on_disk_can_be_resumed),
		CASE(a_resume_that_is_not_written_changes_nothing),
		CASE(a_refused_resume_is_no_look_at_the_others),
		CASE(a_drain_that_is_not_written_leaves_the_fault_that_came_meanwhile),
		CASE(a_booking_counts_when_it_is_on_disk),
		CASE(an_old_booking_is_forgotten_after_eight_days),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
