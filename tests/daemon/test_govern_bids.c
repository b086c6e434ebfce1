/* SPDX-License-Identifier: Apache-2.0 */
/* How often clocks are bid for that another one has outbid, by a clock of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "clock/governor.h"
#include "daemon/govern_impl.h"

static struct world {
	struct takt_daemon daemon;
	struct takt_govern govern;
	struct takt_governed one;
	struct takt_queue_job job;
	enum takt_lease_standing standing;
	unsigned bids;
} * world;

/* The linker puts these in between: meson.build here. */
const struct takt_queue_job *__wrap_takt_queue_find(const struct takt_queue *queue,
						    uint64_t job_id);
const struct takt_queue_job *__wrap_takt_queue_find(const struct takt_queue *queue, uint64_t job_id)
{
	return &world->job;
}

enum takt_lease_standing __wrap_takt_leases_standing(const struct takt_lease_keeper *leases,
						     const struct takt_queue_job *job,
						     const struct takt_governor_cap *cap,
						     uint32_t *ret_gpu, char *note, size_t size);
enum takt_lease_standing __wrap_takt_leases_standing(const struct takt_lease_keeper *leases,
						     const struct takt_queue_job *job,
						     const struct takt_governor_cap *cap,
						     uint32_t *ret_gpu, char *note, size_t size)
{
	note[0] = '\0';
	return world->standing;
}

void __wrap_takt_leases_govern(struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			       const struct takt_governor_cap *was,
			       const struct takt_governor_cap *cap);
void __wrap_takt_leases_govern(struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			       const struct takt_governor_cap *was,
			       const struct takt_governor_cap *cap)
{
	world->bids++;
}

int __wrap_takt_progress_read(int dirfd, const char *path, uid_t uid,
			      struct takt_progress_said *ret);
int __wrap_takt_progress_read(int dirfd, const char *path, uid_t uid,
			      struct takt_progress_said *ret)
{
	return -ENOENT;
}

/* How often it bids meanwhile. */
static unsigned bids_in(unsigned seconds)
{
	static struct takt_mono now = {100 * TAKT_NS_PER_S};
	unsigned before = world->bids;

	for (unsigned i = 0; i < 10 * seconds; i++) {
		now.ns += TAKT_NS_PER_S / 10;
		takt_govern_tick(&world->govern, now);
	}
	return world->bids - before;
}

static void hours_of_being_outbid_are_few_bids(void **state)
{
	world = takt_zalloc(sizeof(*world));
	assert_non_null(world);
	world->daemon.sys = takt_sys_real();
	world->daemon.config.clock_epoch_ms = 1u << 30;
	world->govern.daemon = &world->daemon;
	world->govern.jobs = TAKT_MAP_U64(1);
	world->job.phase = TAKT_PHASE_RUNNING;
	world->one.governor = &takt_governor_assured;
	world->one.job_id = 1;
	assert_int_equal(takt_map_u64_put_ptr(&world->govern.jobs, 1, &world->one), 0);
	world->standing = TAKT_STANDING_OUTBID;
	(void)bids_in(1);		    /* the first comes at once */
	assert_in_range(bids_in(30), 3, 4); /* 2, 4, 8 and 10 s apart */
	assert_in_range(bids_in(6 * 3600), 6 * 350, 6 * 360 + 1);
	world->standing = TAKT_STANDING_HOLDS;
	assert_int_equal(bids_in(60), 0);
	world->standing = TAKT_STANDING_OUTBID; /* what went well is forgotten */
	assert_in_range(bids_in(30), 4, 5);
	takt_map_fini(&world->govern.jobs);
	takt_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hours_of_being_outbid_are_few_bids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
