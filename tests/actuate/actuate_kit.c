/* SPDX-License-Identifier: Apache-2.0 */
/* The kit: what actuate_serve.c does at start, over fakes. */
#include "actuate_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void keep_line(void *ctx, const char *text)
{
	struct kit *kit = ctx;
	size_t used = strlen(kit->log);

	(void)snprintf(kit->log + used, sizeof(kit->log) - used, "%s\n", text);
}

void kit_init(struct kit *kit, uint32_t gpus)
{
	memset(kit, 0, sizeof(*kit));
	kit->world = fake_sys_new();
	fake_sys_add_dir(kit->world, "/state");
	fake_boards_init(&kit->machine, gpus);
	kit->journal.fd = -1;
}

void kit_start(struct kit *kit)
{
	const struct takt_sys *sys = fake_sys_table(kit->world);
	struct takt_keeper *keeper;

	fake_boards_open(&kit->machine);
	kit->actuator = takt_zalloc(sizeof(*kit->actuator));
	assert_non_null(kit->actuator);
	keeper = &kit->actuator->keeper;
	*keeper = (struct takt_keeper){
		.sys = sys,
		.machine = &kit->machine,
		.journal = &kit->journal,
		.mandate = &kit->mandate,
		.baseline = &kit->baseline,
		.log = {keep_line, kit},
	};
	assert_int_equal(takt_mandate_init(&kit->mandate, sys, KIT_LOCK, NULL), 0);
	assert_int_equal(takt_mandate_lock(&kit->mandate, NULL), 0);
	assert_int_equal(takt_journal_open(sys, KIT_JOURNAL, &kit->journal, NULL), 0);
	assert_int_equal(takt_mandate_begin(&kit->mandate, &kit->journal, "actuator", NULL), 0);
	kit->actuator->baseline = &kit->baseline;
	kit->actuator->declared_path = kit->declared_path;
	if (kit->declared_path)
		assert_int_equal(takt_baseline_load_declared(sys, kit->declared_path, "",
							     &kit->baseline, &keeper->declared,
							     NULL),
				 0);
	kit->actuator->baseline_path = "";
	takt_keeper_init(keeper);
	keeper->guarded = true;
	for (uint32_t i = 0; !kit->looks && i < keeper->gpu_count; i++)
		takt_keeper_assume_unlocked(keeper, i);
	assert_int_equal(takt_keeper_recover(keeper, kit_now(kit), NULL), 0);
}

void kit_die(struct kit *kit)
{
	fake_sys_process_death(kit->world);
	takt_mandate_fini(&kit->mandate);
	takt_free(kit->actuator);
	kit->actuator = NULL;
	fake_boards_let_go(&kit->machine);
}

void kit_fini(struct kit *kit)
{
	if (kit->actuator)
		kit_die(kit);
	fake_sys_free(kit->world);
}

void kit_run(struct kit *kit, unsigned ms)
{
	(void)takt_actuator_step(kit->actuator, kit_now(kit));
	for (unsigned t = 0; t < ms; t += 10) {
		fake_sys_advance(kit->world, 10 * TAKT_NS_PER_MS);
		(void)takt_actuator_step(kit->actuator, kit_now(kit));
	}
}

struct takt_boot kit_now(const struct kit *kit)
{
	return takt_boot_now(fake_sys_table(kit->world));
}

struct takt_keeper *kit_keeper(struct kit *kit)
{
	return &kit->actuator->keeper;
}
