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
	takt_keeper_init(keeper);
	keeper->guarded = true;
	assert_int_equal(takt_keeper_recover(keeper, kit_now(kit), NULL), 0);
}

void kit_die(struct kit *kit)
{
	fake_sys_process_death(kit->world);
	takt_mandate_fini(&kit->mandate);
	takt_free(kit->actuator);
	kit->actuator = NULL;
	for (uint32_t g = 0; g < kit->machine.info.gpu_count; g++)
		kit->machine.boards[g].posted = kit->machine.boards[g].finished = false;
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
