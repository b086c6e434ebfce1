/* SPDX-License-Identifier: Apache-2.0 */
/* The board and the job of the governors' tests, see the header. */
#include "governor_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define EPOCH_S 2.0

const uint32_t kit_clocks[KIT_CLOCKS] = {
	210,  225,  240,  255,	270,  285,  300,  315,	330,  345,  360,  375,	390,  405,
	420,  435,  450,  465,	480,  495,  510,  525,	540,  555,  570,  585,	600,  615,
	630,  645,  660,  675,	690,  705,  720,  735,	750,  765,  780,  795,	810,  825,
	840,  855,  870,  885,	900,  915,  930,  945,	960,  975,  990,  1005, 1020, 1035,
	1050, 1065, 1080, 1095, 1110, 1125, 1140, 1155, 1170, 1185, 1200, 1215, 1230, 1245,
	1260, 1275, 1290, 1305, 1320, 1335, 1350, 1365, 1380, 1395, 1410,
};

void kit_restart(struct kit *kit)
{
	static const struct takt_governor_observation nothing = {.has = 0};

	assert_true(kit->governor->state_bytes <= KIT_STATE);
	takt_rng_init(&kit->rng, 1);
	kit->now_ns = 0;
	kit->epochs = kit->over = 0;
	kit->time = kit->energy = kit->top_time = kit->top_energy = kit->worst = 0;
	assert_int_equal(takt_governor_init(kit->governor, kit->state.bytes, &kit->setup, NULL), 0);
	kit_tell(kit, &nothing);
}

void kit_begin(struct kit *kit, const char *governor)
{
	memset(kit, 0, sizeof(*kit));
	kit->governor = takt_governor_find(governor);
	assert_non_null(kit->governor);
	kit->setup.board = (struct takt_governor_board){
		.can = TAKT_ACTUATE_CLOCKS,
		.sm_mhz = kit_clocks,
		.sm_count = KIT_CLOCKS,
	};
	kit->setup.job.has_promise = true;
	kit->setup.job.max_slowdown_permille = 50;
	kit->sensitivity = 0.5;
	kit->fixed_w = 100;
	kit->rising_w = 200;
	kit->gpu_util_permille = 1000;
	kit->dram_active_permille = 500;
	kit->hide = TAKT_OBSERVED_DRAM | TAKT_OBSERVED_BUDGET;
	kit_restart(kit);
}

void kit_tell(struct kit *kit, const struct takt_governor_observation *seen)
{
	takt_governor_step(kit->governor, kit->state.bytes, &kit->setup, seen, &kit->wish);
}

double kit_share(const struct kit *kit)
{
	if (!(kit->wish.cap.sets & TAKT_ACTUATE_CLOCKS))
		return 1;
	return (double)kit->wish.cap.max_mhz / takt_governor_max_mhz(&kit->setup);
}

double kit_power_w(const struct kit *kit)
{
	double r = kit_share(kit);

	return kit->fixed_w + kit->rising_w * r * r * r;
}

static double noisy(struct kit *kit, double value)
{
	double draw = (double)takt_rng_below(&kit->rng, 2000001) / 1000000 - 1;

	return value * (1 + kit->noise * draw);
}

static void account(struct kit *kit, double slow)
{
	kit->epochs++;
	kit->time += EPOCH_S;
	kit->energy += EPOCH_S * kit_power_w(kit);
	kit->top_time += EPOCH_S / slow;
	kit->top_energy += EPOCH_S / slow * (kit->fixed_w + kit->rising_w);
	kit->over += slow - 1 > kit->setup.job.max_slowdown_permille / 1000.0;
	kit->worst = slow - 1 > kit->worst ? slow - 1 : kit->worst;
}

void kit_epoch(struct kit *kit)
{
	double r = kit_share(kit), slow = 1 + kit->sensitivity * (1 / r - 1);
	struct takt_governor_observation seen = {
		.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER |
		       TAKT_OBSERVED_SM_CLOCK | TAKT_OBSERVED_GPU_UTIL | TAKT_OBSERVED_DRAM |
		       TAKT_OBSERVED_BUDGET,
		.epoch_ns = (uint64_t)(EPOCH_S * 1e9),
		.cap = kit->wish.cap,
		.signal = TAKT_SIGNAL_JOB,
		.work = noisy(kit, 1000 * EPOCH_S / slow),
		.energy_mj = (uint64_t)(kit_power_w(kit) * EPOCH_S * 1000),
		.power_mw = (uint32_t)(kit_power_w(kit) * 1000),
		.sm_mhz = (uint32_t)(r * takt_governor_max_mhz(&kit->setup)),
		.gpu_util_permille = kit->gpu_util_permille,
		.dram_active_permille = kit->dram_active_permille,
		.budget_mw = kit->budget_mw,
	};

	account(kit, slow);
	kit->now_ns += seen.epoch_ns;
	seen.now_ns = kit->now_ns;
	seen.has &= ~kit->hide;
	kit_tell(kit, &seen);
}

void kit_run(struct kit *kit, uint32_t epochs)
{
	for (uint32_t i = 0; i < epochs; i++)
		kit_epoch(kit);
}

double kit_slowdown(const struct kit *kit)
{
	return kit->time / kit->top_time - 1;
}

double kit_saved(const struct kit *kit)
{
	return 1 - kit->energy / kit->top_energy;
}
