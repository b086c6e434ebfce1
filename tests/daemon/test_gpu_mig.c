/* SPDX-License-Identifier: Apache-2.0 */
/* How often the queue is told of a GPU's MIG instances when it cannot take them, or when a job
 * holds one that is gone, by a clock of the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "daemon/gpu_mig.h"
#include "daemon/log.h"

static struct world {
	struct takt_gpu_facts facts;
	struct takt_daemon daemon;
	uint64_t now_ns;
	int refuses_rc;
	bool holds; /* a job does */
	unsigned tellings, log_lines;
} world;

/* The linker puts these in between: meson.build here. */
const struct takt_gpu_facts *__wrap_takt_machine_facts(const struct takt_machine *machine,
						       uint32_t gpu);
const struct takt_gpu_facts *__wrap_takt_machine_facts(const struct takt_machine *machine,
						       uint32_t gpu)
{
	return &world.facts;
}

void __wrap_takt_log(enum takt_log_level level, const char *fmt, ...);
void __wrap_takt_log(enum takt_log_level level, const char *fmt, ...)
{
	world.log_lines++;
}

void __wrap_takt_machine_look_at_mig(struct takt_machine *machine, uint32_t gpu);
void __wrap_takt_machine_look_at_mig(struct takt_machine *machine, uint32_t gpu)
{
}

bool __wrap_takt_machine_seen_mig(struct takt_machine *machine, uint32_t gpu);
bool __wrap_takt_machine_seen_mig(struct takt_machine *machine, uint32_t gpu)
{
	return true;
}

bool __wrap_takt_clock_admin_cuts(const struct takt_clock_admin *admin, uint32_t gpu);
bool __wrap_takt_clock_admin_cuts(const struct takt_clock_admin *admin, uint32_t gpu)
{
	return false;
}

void __wrap_takt_queue_mig_close(struct takt_queue *queue, uint64_t gpus);
void __wrap_takt_queue_mig_close(struct takt_queue *queue, uint64_t gpus)
{
}

int __wrap_takt_queue_mig_change(struct takt_queue *queue, uint32_t gpu,
				 const struct takt_queue_instance *instances, uint32_t count,
				 bool *ret_held, struct takt_err *err);
int __wrap_takt_queue_mig_change(struct takt_queue *queue, uint32_t gpu,
				 const struct takt_queue_instance *instances, uint32_t count,
				 bool *ret_held, struct takt_err *err)
{
	world.tellings++;
	if (world.refuses_rc < 0)
		return takt_err_set(err, world.refuses_rc, "not now");
	*ret_held = world.holds;
	return 0;
}

/* How often it is told meanwhile, ten looks a second. */
static unsigned told_in(struct takt_mig *mig, unsigned seconds)
{
	unsigned before = world.tellings;

	for (unsigned i = 0; i < 10 * seconds; i++) {
		world.now_ns += TAKT_NS_PER_S / 10;
		takt_mig_tick(mig, (struct takt_boot){world.now_ns});
	}
	return world.tellings - before;
}

/* From now on there is that instance alone. */
static void cut(const char *uuid)
{
	world.facts.instance_count = 1;
	takt_strcpy(world.facts.instances[0].uuid, sizeof(world.facts.instances[0].uuid), uuid);
}

static void check_hours(int refuses_rc, bool holds)
{
	struct takt_mig *mig;

	memset(&world, 0, sizeof(world));
	world.facts = (struct takt_gpu_facts){.has = TAKT_FACT_MIG, .mig_enabled = true};
	world.daemon.sys = takt_sys_real();
	world.daemon.gpu_count = 1;
	cut("MIG-a");
	assert_int_equal(takt_mig_new(&world.daemon, &mig, NULL), 0);
	assert_int_equal(told_in(mig, 60), 0);
	world.refuses_rc = refuses_rc;
	world.holds = holds;
	cut("MIG-b");
	assert_in_range(told_in(mig, 3), 5, 6); /* 0.1, 0.2, 0.4, 0.8 and 1.6 s apart */
	assert_in_range(told_in(mig, 6 * 3600), 6 * 1800 - 1, 6 * 1800 + 1);
	assert_in_range(world.log_lines, 1, 2); /* what it is, and that a job holds it */
	world.refuses_rc = 0;
	world.holds = false;
	assert_int_equal(told_in(mig, 2), 1);
	assert_int_equal(told_in(mig, 3600), 0);
	world.refuses_rc = refuses_rc;
	world.holds = holds;
	cut("MIG-c"); /* what went well is forgotten */
	assert_in_range(told_in(mig, 3), 5, 6);
	takt_mig_free(mig);
}

static void hours_of_a_queue_that_cannot_take_instances_are_few_tries(void **state)
{
	check_hours(-ENOMEM, false);
}

static void hours_of_a_job_on_an_instance_that_is_gone_are_few_tries(void **state)
{
	check_hours(0, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hours_of_a_queue_that_cannot_take_instances_are_few_tries),
		cmocka_unit_test(hours_of_a_job_on_an_instance_that_is_gone_are_few_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
