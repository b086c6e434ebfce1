/* SPDX-License-Identifier: Apache-2.0 */
/* A governed board under a load, see the header. */
#include "sim/load_govern.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "base/timetypes.h"
#include "clock/governor.h"

/* twin/boards/a100-sxm4-80gb.toml */
enum {
	LOWEST_MHZ = 210,
	HIGHEST_MHZ = 1410,
	STEP_MHZ = 15,
	CLOCKS = (HIGHEST_MHZ - LOWEST_MHZ) / STEP_MHZ + 1,
};
#define IDLE_W	  60.0
#define HELD_W	  14.0
#define DYNAMIC_W 440.0
#define SLOPE	  0.75
#define FLOOR	  0.83

struct service {
	const struct takt_series *series;
	size_t begin;
	const double *ahead;
	uint32_t horizon;
	double most; /* load that keeps the board busy at its highest clock */
	uint32_t mhz[CLOCKS];
	struct takt_governor_setup setup;
	double energy_j, load, missed, mhz_sum;
	size_t steps;
};

static double power_w(double mhz, double busy)
{
	double r = mhz / HIGHEST_MHZ, v = fmax(FLOOR, 1 - SLOPE * (1 - r));

	return IDLE_W + (HELD_W + DYNAMIC_W * busy) * r * v * v;
}

/* One step at a clock; returns the busy share. */
static double serve(struct service *service, double load, double mhz)
{
	double demand_mhz = load / service->most * HIGHEST_MHZ;
	double busy = fmin(demand_mhz / mhz, 1);

	service->energy_j += power_w(mhz, busy) * service->series->step_s;
	service->load += load;
	if (demand_mhz > mhz)
		service->missed += load * (1 - mhz / demand_mhz);
	service->mhz_sum += mhz;
	service->steps++;
	return busy;
}

static void observe(const struct service *service, size_t i, double mhz, double busy,
		    const struct takt_governor_cap *cap, struct takt_governor_observation *ret)
{
	size_t next = i + service->horizon;

	*ret = (struct takt_governor_observation){
		.has = TAKT_OBSERVED_GPU_UTIL | TAKT_OBSERVED_SM_CLOCK | TAKT_OBSERVED_LOAD,
		.now_ns = (i - service->begin + 1) * service->series->step_s * TAKT_NS_PER_S,
		.epoch_ns = service->series->step_s * TAKT_NS_PER_S,
		.cap = *cap,
		.gpu_util_permille = (uint32_t)lround(busy * 1000),
		.sm_mhz = (uint32_t)lround(mhz),
		.load = service->series->value[i],
	};
	if (service->ahead && next < service->series->len && !isnan(service->ahead[next])) {
		ret->has |= TAKT_OBSERVED_LOAD_AHEAD;
		ret->load_ahead = service->ahead[next];
	}
}

static double ceiling(const struct takt_governor_cap *cap)
{
	return cap->sets & TAKT_ACTUATE_CLOCKS ? cap->max_mhz : HIGHEST_MHZ;
}

static int govern(struct service *service, const struct takt_governor *governor,
		  struct takt_err *err)
{
	TAKT_CLEANUP(freep) void *state = takt_zalloc(governor->state_bytes + 1);
	struct takt_governor_observation seen = {.has = 0};
	struct takt_governor_wish wish;
	int rc = state ? takt_governor_init(governor, state, &service->setup, err)
		       : takt_err_set(err, -ENOMEM, "no memory for a governor");

	if (rc < 0)
		return rc;
	takt_governor_step(governor, state, &service->setup, &seen, &wish);
	for (size_t i = service->begin; i < service->series->len; i++) {
		double mhz = ceiling(&wish.cap), load = service->series->value[i];

		if (isnan(load))
			continue;
		observe(service, i, mhz, serve(service, load, mhz), &wish.cap, &seen);
		takt_governor_step(governor, state, &service->setup, &seen, &wish);
	}
	return 0;
}

static int run(struct service *service, const char *governor, struct takt_load_governed *ret,
	       struct takt_err *err)
{
	int rc;

	for (size_t i = 0; i < service->begin; i++)
		service->most = fmax(service->most, service->series->value[i]);
	if (!(service->most > 0))
		return takt_err_set(err, -ENODATA, "there is no load before the time held out");
	for (uint32_t i = 0; i < CLOCKS; i++)
		service->mhz[i] = LOWEST_MHZ + i * STEP_MHZ;
	service->setup.board.can = TAKT_ACTUATE_CLOCKS;
	service->setup.board.sm_mhz = service->mhz;
	service->setup.board.sm_count = CLOCKS;
	rc = govern(service, takt_governor_find(governor), err);
	if (rc < 0)
		return rc;
	*ret = (struct takt_load_governed){
		.energy_wh = service->energy_j / 3600,
		.missed_pct = service->load > 0 ? 100 * service->missed / service->load : 0,
		.mean_mhz = service->steps ? service->mhz_sum / (double)service->steps : 0,
	};
	return 0;
}

int takt_load_govern(const struct takt_series *series, size_t begin, const double *ahead,
		     uint32_t horizon, struct takt_load_governed *ret, struct takt_err *err)
{
	struct service service = {
		.series = series, .begin = begin, .ahead = ahead, .horizon = horizon};

	return run(&service, "forecast", ret, err);
}

int takt_load_at_maximum(const struct takt_series *series, size_t begin,
			 struct takt_load_governed *ret, struct takt_err *err)
{
	struct service service = {.series = series, .begin = begin};

	return run(&service, "performance", ret, err);
}
