/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_noise.h. */
#include "twin_noise.h"

#include "abi/nvml.h"

enum {
	OF_POWER, /* what is drawn for */
	OF_TEMPERATURE,
	OF_CLOCK,
};

/* Steele, Lea and Flood's mixing function. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t bits(uint64_t seed, uint64_t cell, uint32_t what)
{
	return mix(mix(seed + what) ^ cell);
}

/* Four uniform draws of 16 bits added: near enough to a normal one, and bounded. */
int32_t twin_noise_draw(uint64_t seed, uint64_t cell, uint32_t what)
{
	uint64_t four = bits(seed, cell, what);
	int64_t sum = 0;

	for (unsigned i = 0; i < 4; i++)
		sum += (int64_t)(four >> (16 * i) & 0xffff);
	/* mean 2 * 65535, standard deviation 65536 * sqrt(4 / 12) */
	return (int32_t)((sum - 131070) * 1000 / 37837);
}

uint32_t twin_noise_permille(uint64_t seed, uint64_t number, uint32_t what)
{
	return (uint32_t)(bits(seed, number, what) % 1000);
}

static uint32_t noisy_power(const struct twin_gpu *gpu, const struct twin_board *board,
			    uint64_t cell, uint32_t true_uw)
{
	uint64_t rest_uw = board->idle_mw * 1000ull;
	uint64_t beyond_uw;
	int64_t deviation_uw, uw;

	if (rest_uw > true_uw)
		rest_uw = true_uw;
	beyond_uw = true_uw - rest_uw;
	deviation_uw = (int64_t)(rest_uw * board->noise_power_permille[0] +
				 beyond_uw * board->noise_power_permille[1]) /
		       1000;
	uw = (int64_t)true_uw +
	     deviation_uw * twin_noise_draw(gpu->noise_seed, cell, OF_POWER) / 1000;
	return uw > 0 ? (uint32_t)uw : 0;
}

static void dither(struct twin_gpu *gpu, const struct twin_board *board)
{
	uint32_t chance = twin_noise_permille(gpu->noise_seed, gpu->cells, OF_CLOCK);
	uint32_t top =
		gpu->lock_max_mhz ? gpu->lock_max_mhz : board->sm_mhz[board->clock_count - 1];
	uint32_t at = 0;

	if (!(gpu->now_reasons & (NVML_REASON_SW_POWER_CAP | NVML_REASON_SW_THERMAL)))
		return;
	while (at + 1 < board->clock_count && board->sm_mhz[at] < gpu->now_mhz)
		at++;
	if (chance < board->noise_clock_permille / 2 && at > 0)
		gpu->now_mhz = board->sm_mhz[at - 1];
	else if (chance >= 1000 - board->noise_clock_permille / 2 && at + 1 < board->clock_count &&
		 board->sm_mhz[at + 1] <= top)
		gpu->now_mhz = board->sm_mhz[at + 1];
}

void twin_noise_add(struct twin_gpu *gpu, const struct twin_board *board)
{
	if (!gpu->noise_seed || gpu->off)
		return;
	for (uint64_t cell = gpu->cells - TWIN_CELLS; cell < gpu->cells; cell++) {
		uint32_t *uw = &gpu->power_uw[cell % TWIN_CELLS];
		*uw = noisy_power(gpu, board, cell, *uw);
	}
	gpu->temp_uc += (int64_t)board->noise_temp_mc *
			twin_noise_draw(gpu->noise_seed, gpu->cells, OF_TEMPERATURE);
	dither(gpu, board);
}
