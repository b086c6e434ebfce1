/* SPDX-License-Identifier: Apache-2.0 */
/* The model of twin_physics.h: what holds at a moment (settle), and how time passes (advance). */
#include "twin_physics.h"

#include <string.h>

#include "abi/nvml.h"
#include "twin_counters.h"
#include "twin_rows.h"
#include "twin_trouble.h"
#include "twin_work.h"

enum {
	ONE = 1 << 16, /* fixed point of ratios */
	LEAK_FROM_UC = 30000000,
	/* eight idle H100 of one machine: 29 to 32 C, 66.7 to 71.4 W; the spread of power is GUESS
	 */
	MAX_WARMER_UC = 3000000,
	MAX_APART = 15,
};

/* r * v(r)^2: the part of dynamic power that a clock costs. */
static uint64_t clock_cost(const struct twin_board *board, uint32_t sm_mhz)
{
	uint32_t max = board->sm_mhz[board->clock_count - 1];
	uint64_t r = (uint64_t)sm_mhz * ONE / max;
	uint64_t floor = (uint64_t)board->floor_permille * ONE / 1000;
	uint64_t drop = board->slope_permille * (ONE - (r < ONE ? r : ONE)) / 1000;
	uint64_t v = drop < ONE ? ONE - drop : 0;

	if (v < floor)
		v = floor;
	return r * v / ONE * v / ONE;
}

uint32_t twin_physics_clock_of(const struct twin_board *board, uint32_t permille)
{
	uint64_t full = clock_cost(board, board->sm_mhz[board->clock_count - 1]);
	uint32_t at = board->clock_count - 1;

	while (at > 0 && clock_cost(board, board->sm_mhz[at]) * 1000 > permille * full)
		at--;
	return board->sm_mhz[at];
}

const struct twin_phase *twin_physics_phase(const struct twin_gpu *gpu,
					    const struct twin_load *load)
{
	if (!twin_load_alive(load) || load->failed_xid || load->lease_until_ns <= gpu->at_ns ||
	    gpu->off)
		return NULL;
	return twin_work_phase(load);
}

/* Sums over the loads that compute now, in permille of the GPU. */
struct demand {
	uint32_t util, memory, activity;
};

/* Do both run in the same compute instance, or both on a whole GPU? */
static bool shares_with(const struct twin_load *a, const struct twin_load *b)
{
	return a->in_instance == b->in_instance && a->gpu_instance == b->gpu_instance &&
	       a->compute_instance == b->compute_instance;
}

uint32_t twin_physics_part(const struct twin_gpu *gpu, const struct twin_load *load)
{
	uint32_t wish = 0;

	if (!load->in_instance)
		return 1000;
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_phase *phase = twin_physics_phase(gpu, &gpu->loads[i]);
		if (phase && shares_with(load, &gpu->loads[i]))
			wish += phase->util;
	}
	return wish > 1000 ? load->part_permille * 1000 / wish : load->part_permille;
}

static struct demand demand_of(const struct twin_gpu *gpu)
{
	struct demand sum = {0};

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		const struct twin_phase *phase = twin_physics_phase(gpu, load);
		uint32_t part = twin_physics_part(gpu, load);
		if (!phase)
			continue;
		sum.util += phase->util * part / 1000;
		sum.memory += phase->memory_util * part / 1000;
		sum.activity += phase->activity * part / 1000;
	}
	return sum;
}

/* Permille of its wish that each load gets: all of it unless they ask for more than one GPU. */
static uint32_t share_of(struct demand demand)
{
	return demand.util > 1000 ? 1000000 / demand.util : 1000;
}

static uint32_t top_mhz(const struct twin_board *board)
{
	return board->sm_mhz[board->clock_count - 1];
}

/* How much longer a copy over PCI Express takes than on the board's best bus. A generation has
 * twice the speed of the one before it. */
static uint32_t bus_stretch(const struct twin_gpu *gpu, const struct twin_board *board)
{
	uint32_t gen = gpu->pcie_gen ? gpu->pcie_gen : board->pcie_gen;
	uint32_t width = gpu->pcie_width ? gpu->pcie_width : board->pcie_width;

	return (1000u << (board->pcie_gen - gen)) * board->pcie_width / width;
}

/* What each load meets at that SM clock: the rest is the present memory clock and the others. */
static struct twin_pace pace_at(const struct twin_gpu *gpu, const struct twin_board *board,
				uint32_t sm_mhz, struct demand demand)
{
	struct twin_pace pace = {
		.mhz = sm_mhz < top_mhz(board) ? sm_mhz : top_mhz(board),
		.max_mhz = top_mhz(board),
		.share_permille = share_of(demand),
		.memory_stretch_permille = 1000,
		.bus_stretch_permille = bus_stretch(gpu, board),
	};
	uint64_t wish = (uint64_t)demand.memory * pace.share_permille / 1000;
	uint64_t there = 1000ull * gpu->now_memory_mhz / board->memory[0].mhz;

	if (wish > there)
		pace.memory_stretch_permille = (uint32_t)(wish * 1000 / there);
	return pace;
}

static uint64_t speed_of(const struct twin_gpu *gpu, const struct twin_load *load,
			 struct twin_pace pace)
{
	pace.part_permille = twin_physics_part(gpu, load);
	return twin_work_speed(load, &pace);
}

/* Bandwidth in use, in permille of the board's. */
static uint64_t bandwidth(const struct twin_gpu *gpu, const struct twin_pace *pace)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		const struct twin_phase *phase = twin_physics_phase(gpu, load);
		if (phase)
			sum += phase->memory_util * (speed_of(gpu, load, *pace) / 1000) / 1000;
	}
	return sum / 1000 < 1000 ? sum / 1000 : 1000;
}

/* What measured workloads add to what the board draws with none, so that one alone draws what was
 * measured. */
static uint64_t measured_uw(const struct twin_gpu *gpu, const struct twin_pace *pace,
			    uint64_t without_uw)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		uint64_t uw;
		if (!twin_rows_are(&load->profile) || !twin_physics_phase(gpu, load))
			continue;
		uw = twin_rows_power_uw(&load->profile, pace->mhz);
		if (uw > without_uw)
			sum += (uw - without_uw) / 1000 * pace->share_permille *
			       twin_physics_part(gpu, load) / 1000;
	}
	return sum;
}

static uint64_t power_at(const struct twin_gpu *gpu, const struct twin_board *board,
			 uint32_t sm_mhz, struct demand demand)
{
	struct twin_pace pace = pace_at(gpu, board, sm_mhz, demand);
	uint64_t cost = clock_cost(board, sm_mhz);
	uint64_t rest = clock_cost(board, board->idle_mhz);
	uint64_t dynamic_mw = (uint64_t)board->dynamic_mw * gpu->silicon_permille / 1000;
	int64_t uw = (int64_t)board->idle_mw * 1000;

	uw += (int64_t)(board->held_mw * 1000ull * (cost > rest ? cost - rest : 0) / ONE);
	uw += (int64_t)board->leak_mw_per_k * (gpu->temp_uc - LEAK_FROM_UC) / 1000;
	uw = uw > 0 ? uw : 0;
	uw += (int64_t)measured_uw(gpu, &pace, (uint64_t)uw);
	uw += (int64_t)(dynamic_mw * cost * demand.activity / ONE * pace.share_permille / 1000);
	uw += (int64_t)(board->memory_mw * bandwidth(gpu, &pace));
	return (uint64_t)uw;
}

uint32_t twin_physics_power_uw(const struct twin_gpu *gpu, const struct twin_board *board,
			       uint32_t sm_mhz)
{
	return (uint32_t)power_at(gpu, board, sm_mhz, demand_of(gpu));
}

/* Highest supported clock not above `mhz`; the lowest if all are above. */
static uint32_t clock_floor(const struct twin_board *board, uint32_t mhz)
{
	uint32_t low = 0, high = board->clock_count;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;
		if (board->sm_mhz[middle] <= mhz)
			low = middle;
		else
			high = middle;
	}
	return board->sm_mhz[low];
}

/* What a limit has to be to let the GPU have a clock: its power, with peaks that were measured. */
static uint64_t needed_at(const struct twin_gpu *gpu, const struct twin_board *board,
			  uint32_t sm_mhz, struct demand demand)
{
	uint64_t uw = power_at(gpu, board, sm_mhz, demand);

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		if (twin_rows_are(&load->profile) && twin_physics_phase(gpu, load))
			uw += twin_rows_peaks_uw(&load->profile, sm_mhz);
	}
	return uw;
}

/* Highest supported clock not above `mhz` that keeps power under `limit_uw`. */
static uint32_t clock_under(const struct twin_gpu *gpu, const struct twin_board *board,
			    uint32_t mhz, uint64_t limit_uw, struct demand demand)
{
	uint32_t low = 0, high = board->clock_count;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;
		if (board->sm_mhz[middle] <= mhz &&
		    needed_at(gpu, board, board->sm_mhz[middle], demand) <= limit_uw)
			low = middle;
		else
			high = middle;
	}
	return board->sm_mhz[low];
}

/* The memory clock that settings ask for, as an index of the board's list: the board's for work,
 * the one of rest otherwise, unless a lock says more or less. */
static uint32_t wanted_memory(const struct twin_gpu *gpu, const struct twin_board *board, bool busy)
{
	uint32_t work_mhz = board->busy_memory_mhz ? board->busy_memory_mhz : board->memory[0].mhz;
	uint32_t top = busy ? work_mhz : board->idle_memory_mhz;
	uint32_t i = 0;

	if (gpu->memory_lock_max_mhz) {
		top = top < gpu->memory_lock_min_mhz ? gpu->memory_lock_min_mhz : top;
		top = top > gpu->memory_lock_max_mhz ? gpu->memory_lock_max_mhz : top;
	}
	while (i + 1 < board->memory_count && board->memory[i].mhz > top)
		i++;
	return i;
}

/* The clock that settings ask for, before power and temperature have their say. */
static uint32_t wanted_clock(const struct twin_gpu *gpu, const struct twin_board *board,
			     uint32_t top, bool busy)
{
	uint32_t rest = board->idle_mhz;

	if (gpu->lock_max_mhz) {
		top = gpu->lock_max_mhz < top ? gpu->lock_max_mhz : top;
		rest = rest < gpu->lock_min_mhz ? gpu->lock_min_mhz : rest;
	} else if (gpu->application_mhz) {
		top = gpu->application_mhz < top ? gpu->application_mhz : top;
	}
	return busy || rest > top ? top : rest;
}

/* By themselves they follow the temperature, from fan_start_c up to all they have at gpu_max_c. */
uint32_t twin_physics_fan_target(const struct twin_gpu *gpu, const struct twin_board *board)
{
	int64_t from_uc = board->fan_start_c * 1000000ll;
	int64_t span_uc = board->gpu_max_c * 1000000ll - from_uc;
	int64_t above_uc = gpu->temp_uc - from_uc;

	if (gpu->fan_set_percent)
		return gpu->fan_set_percent;
	if (board->fans == 0 || above_uc < 0)
		return board->fans ? board->fan_min_percent : 0;
	if (above_uc >= span_uc)
		return 100;
	return board->fan_min_percent +
	       (uint32_t)((100 - board->fan_min_percent) * above_uc / span_uc);
}

static uint32_t fan_percent(const struct twin_gpu *gpu, const struct twin_board *board)
{
	return gpu->fan_stuck ? 0 : twin_physics_fan_target(gpu, board);
}

/* Warming for each kW with the fans at that speed and the air that there is. A fan that stands
 * cools half as well as one at its least: GUESS. */
static int64_t resistance(const struct twin_gpu *gpu, const struct twin_board *board,
			  uint32_t percent)
{
	int64_t k_per_kw = board->k_per_kw;

	if (gpu->fan_stuck)
		k_per_kw = board->fan_k_per_kw * 2ll;
	else if (board->fans)
		k_per_kw += ((int64_t)board->fan_k_per_kw - k_per_kw) * (100 - (int64_t)percent) /
			    (100 - (int64_t)board->fan_min_percent);
	return k_per_kw * 1000 / gpu->airflow_permille;
}

/* Steady power that holds the board at its maximum operating temperature. */
static uint64_t holding_power_uw(const struct twin_gpu *gpu, const struct twin_board *board)
{
	int64_t room_uc = board->gpu_max_c * 1000000ll - gpu->ambient_uc;

	return room_uc > 0 ? (uint64_t)room_uc * 1000 / (uint64_t)resistance(gpu, board, 100) : 0;
}

/* Signals of the hardware: each halves the clock. */
static void slow_down(struct twin_gpu *gpu, const struct twin_board *board)
{
	if (gpu->temp_uc >= (int64_t)board->slowdown_c * 1000000) {
		gpu->now_mhz = clock_floor(board, gpu->now_mhz / 2);
		gpu->now_reasons |= NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_THERMAL;
	}
	if (gpu->power_brake) {
		gpu->now_mhz = clock_floor(board, gpu->now_mhz / 2);
		gpu->now_reasons |= NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_POWER_BRAKE;
	}
}

static void throttle(struct twin_gpu *gpu, const struct twin_board *board, struct demand demand)
{
	uint64_t limit_uw = gpu->limit_mw * 1000ull;
	uint32_t mhz = clock_under(gpu, board, gpu->now_mhz, limit_uw, demand);

	if (mhz < gpu->now_mhz)
		gpu->now_reasons |= NVML_REASON_SW_POWER_CAP;
	if (gpu->temp_uc >= (int64_t)board->gpu_max_c * 1000000) {
		uint32_t cool = clock_under(gpu, board, mhz, holding_power_uw(gpu, board), demand);
		if (cool < mhz)
			gpu->now_reasons |= NVML_REASON_SW_THERMAL;
		mhz = cool;
	}
	gpu->now_mhz = mhz;
	slow_down(gpu, board);
}

/* Is a program at work on it? Between two of its kernels, too: the clock stays up. */
static bool is_busy(const struct twin_gpu *gpu)
{
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (twin_physics_phase(gpu, &gpu->loads[i]))
			return true;
	}
	return false;
}

static void settle_reasons(struct twin_gpu *gpu, const struct twin_board *board, bool busy)
{
	gpu->now_reasons = 0;
	if (!busy)
		gpu->now_reasons |= NVML_REASON_GPU_IDLE;
	else if (gpu->application_mhz && !gpu->lock_max_mhz &&
		 gpu->application_mhz < top_mhz(board))
		gpu->now_reasons |= NVML_REASON_APPLICATIONS_CLOCKS;
}

static void settle_load(struct twin_gpu *gpu, const struct twin_board *board, struct demand demand)
{
	struct twin_pace pace = pace_at(gpu, board, gpu->now_mhz, demand);
	uint64_t used = bandwidth(gpu, &pace) * board->memory[0].mhz / gpu->now_memory_mhz;

	gpu->now_share = pace.share_permille;
	gpu->now_util = demand.util < 1000 ? demand.util : 1000;
	gpu->now_memory_util = (uint32_t)(used < 1000 ? used : 1000);
	gpu->now_uw = (uint32_t)power_at(gpu, board, gpu->now_mhz, demand);
}

/* A board that switched itself off. Clocks are numbers that nothing is divided by. */
static void settle_off(struct twin_gpu *gpu, const struct twin_board *board)
{
	gpu->now_mhz = board->sm_mhz[0];
	gpu->now_memory_mhz = board->memory[board->memory_count - 1].mhz;
	gpu->now_share = 1000;
	gpu->now_uw = gpu->now_util = gpu->now_memory_util = gpu->now_fan_percent = 0;
	gpu->now_pstate = board->idle_pstate;
	gpu->now_reasons = 0;
}

void twin_physics_settle(struct twin_gpu *gpu, const struct twin_board *board)
{
	struct demand demand = demand_of(gpu);
	bool busy = is_busy(gpu);
	uint32_t memory = wanted_memory(gpu, board, busy);

	if (gpu->off) {
		settle_off(gpu, board);
		return;
	}
	gpu->now_memory_mhz = board->memory[memory].mhz;
	gpu->now_mhz = wanted_clock(gpu, board, board->memory[memory].sm_max_mhz, busy);
	gpu->now_pstate = busy || gpu->lock_min_mhz > board->idle_mhz ? board->busy_pstate
								      : board->idle_pstate;
	gpu->now_fan_percent = fan_percent(gpu, board);
	settle_reasons(gpu, board, busy);
	if (busy)
		throttle(gpu, board, demand);
	settle_load(gpu, board, demand);
}

/* Temperature at rest. With fans that follow it, found by going there in steps. */
static void rest(struct twin_gpu *gpu, const struct twin_board *board)
{
	gpu->temp_uc = gpu->ambient_uc;
	for (unsigned i = 0; i < 20; i++)
		gpu->temp_uc =
			gpu->ambient_uc +
			(int64_t)board->idle_mw * resistance(gpu, board, fan_percent(gpu, board));
	twin_physics_settle(gpu, board);
	for (unsigned i = 0; i < TWIN_CELLS; i++) {
		gpu->power_uw[i] = gpu->now_uw;
		gpu->sm_mhz[i] = (uint16_t)gpu->now_mhz;
		gpu->memory_mhz[i] = (uint16_t)gpu->now_memory_mhz;
	}
	/* the cell that it begins in is a whole one, as if it had been there before */
	gpu->cell_uw_ns = gpu->now_uw * (gpu->at_ns % TWIN_CELL_NS);
}

void twin_physics_init(struct twin_gpu *gpu, const struct twin_board *board, uint64_t now_ns)
{
	memset(gpu, 0, sizeof(*gpu));
	gpu->at_ns = now_ns;
	gpu->limit_mw = board->power_default_mw;
	gpu->persistence = NVML_FEATURE_ENABLED;
	gpu->ambient_uc = board->ambient_c * 1000000ll;
	gpu->silicon_permille = gpu->airflow_permille = 1000;
	gpu->cells = TWIN_CELLS;
	rest(gpu, board);
}

void twin_physics_vary(struct twin_gpu *gpu, const struct twin_board *board, uint64_t draw)
{
	gpu->ambient_uc += (int64_t)(draw % 1000) * (MAX_WARMER_UC / 1000);
	gpu->silicon_permille = 1000 - MAX_APART + (uint32_t)(draw / 1000 % (2 * MAX_APART + 1));
	rest(gpu, board);
}

uint64_t twin_physics_speed(const struct twin_gpu *gpu, const struct twin_board *board,
			    const struct twin_load *load)
{
	struct twin_pace pace = pace_at(gpu, board, gpu->now_mhz, demand_of(gpu));

	return twin_physics_phase(gpu, load) ? speed_of(gpu, load, pace) : 0;
}

/* Progress of all loads in `times` stretches of `ns`. */
static void work(struct twin_gpu *gpu, const struct twin_board *board, uint64_t ns, uint64_t times)
{
	struct twin_pace pace = pace_at(gpu, board, gpu->now_mhz, demand_of(gpu));

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		struct twin_load *load = &gpu->loads[i];
		if (twin_physics_phase(gpu, load))
			twin_work_advance(load, speed_of(gpu, load, pace), ns, times);
	}
}

static void book_throttled(struct twin_gpu *gpu, uint64_t ns)
{
	if (gpu->now_reasons & NVML_REASON_SW_POWER_CAP)
		gpu->power_cap_ns += ns;
	if (gpu->now_reasons & NVML_REASON_SW_THERMAL)
		gpu->sw_thermal_ns += ns;
	if (gpu->now_reasons & NVML_REASON_HW_THERMAL)
		gpu->hw_thermal_ns += ns;
	if (gpu->now_reasons & NVML_REASON_HW_POWER_BRAKE)
		gpu->power_brake_ns += ns;
}

/* Part of a cell, without an event inside. */
static void pass(struct twin_gpu *gpu, const struct twin_board *board, uint64_t ns)
{
	gpu->cell_uw_ns += gpu->now_uw * ns;
	gpu->cell_util_ns += gpu->now_util * ns;
	gpu->cell_memory_ns += gpu->now_memory_util * ns;
	book_throttled(gpu, ns);
	twin_counters_book(gpu, ns);
	work(gpu, board, ns, 1);
	gpu->at_ns += ns;
}

static void record_cell(struct twin_gpu *gpu, uint32_t power_uw, uint16_t util, uint16_t memory)
{
	unsigned at = (unsigned)(gpu->cells++ % TWIN_CELLS);

	gpu->power_uw[at] = power_uw;
	gpu->util[at] = util;
	gpu->memory_util[at] = memory;
	gpu->sm_mhz[at] = (uint16_t)gpu->now_mhz;
	gpu->memory_mhz[at] = (uint16_t)gpu->now_memory_mhz;
}

/* Change of temperature over one cell at that power, in millionths of a degree. What is warmed
 * stays the same: where less is carried away, all goes more slowly by as much. */
static int64_t warming(const struct twin_gpu *gpu, const struct twin_board *board,
		       uint32_t power_uw)
{
	int64_t k_per_kw = resistance(gpu, board, fan_percent(gpu, board));
	int64_t target = gpu->ambient_uc + (int64_t)power_uw / 1000 * k_per_kw;
	int64_t tau_ms = (int64_t)board->tau_ms * k_per_kw / board->k_per_kw;

	return (target - gpu->temp_uc) * 100 / (tau_ms > 100 ? tau_ms : 100);
}

static void end_cell(struct twin_gpu *gpu, const struct twin_board *board)
{
	uint32_t power_uw = (uint32_t)(gpu->cell_uw_ns / TWIN_CELL_NS);

	gpu->counter_nj = gpu->energy_nj;
	gpu->energy_nj += gpu->cell_uw_ns / 1000000;
	record_cell(gpu, power_uw, (uint16_t)(gpu->cell_util_ns / TWIN_CELL_NS),
		    (uint16_t)(gpu->cell_memory_ns / TWIN_CELL_NS));
	gpu->temp_uc += warming(gpu, board, power_uw);
	if (!gpu->off && gpu->temp_uc >= (int64_t)board->shutdown_c * 1000000)
		twin_trouble_happen(gpu, board, TWIN_TROUBLE_OVERHEATED, 0);
	gpu->cell_uw_ns = gpu->cell_util_ns = gpu->cell_memory_ns = 0;
	twin_physics_settle(gpu, board);
}

/* Memory of ended processes is back after a while, and with it their place in the list. */
static void forget_gone(struct twin_gpu *gpu)
{
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		struct twin_load *load = &gpu->loads[i];
		if (!load->gone_ns || load->gone_ns + TWIN_MEMORY_LAG_NS > gpu->at_ns)
			continue;
		twin_account_end(gpu, load);
		memset(load, 0, sizeof(*load));
	}
	while (gpu->load_count && gpu->loads[gpu->load_count - 1].pid == 0)
		gpu->load_count--;
}

/* The next moment at which something changes by itself, other than a cell's end. */
static uint64_t next_event(const struct twin_gpu *gpu, const struct twin_board *board)
{
	struct twin_pace pace = pace_at(gpu, board, gpu->now_mhz, demand_of(gpu));
	uint64_t next = twin_trouble_next_ns(gpu);

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		uint64_t at =
			load->gone_ns ? load->gone_ns + TWIN_MEMORY_LAG_NS : load->lease_until_ns;
		if (load->pid && at > gpu->at_ns && at < next)
			next = at;
		if (!twin_physics_phase(gpu, load))
			continue;
		at = twin_work_until_ns(load, speed_of(gpu, load, pace));
		if (at != UINT64_MAX && gpu->at_ns + at < next)
			next = gpu->at_ns + at;
	}
	return next;
}

/* Whole cells that will be alike: nothing is due before `until_ns` and the temperature stands. */
static void pass_alike(struct twin_gpu *gpu, const struct twin_board *board, uint64_t until_ns)
{
	uint64_t times = (until_ns - gpu->at_ns) / TWIN_CELL_NS;
	uint64_t cell_nj = gpu->now_uw * (TWIN_CELL_NS / 1000000);

	if (times == 0 || warming(gpu, board, gpu->now_uw) != 0)
		return;
	gpu->energy_nj += cell_nj * times;
	gpu->counter_nj = gpu->energy_nj - cell_nj;
	book_throttled(gpu, times * TWIN_CELL_NS);
	twin_counters_book(gpu, times * TWIN_CELL_NS);
	work(gpu, board, TWIN_CELL_NS, times);
	for (uint64_t i = times > TWIN_CELLS ? times - TWIN_CELLS : 0; i < times; i++)
		record_cell(gpu, gpu->now_uw, (uint16_t)gpu->now_util,
			    (uint16_t)gpu->now_memory_util);
	if (times > TWIN_CELLS)
		gpu->cells += times - TWIN_CELLS;
	gpu->at_ns += times * TWIN_CELL_NS;
}

void twin_physics_advance(struct twin_gpu *gpu, const struct twin_board *board, uint64_t now_ns)
{
	while (gpu->at_ns < now_ns) {
		uint64_t event = next_event(gpu, board);
		uint64_t stop = event < now_ns ? event : now_ns;
		uint64_t in_cell = gpu->at_ns % TWIN_CELL_NS, from;

		if (in_cell == 0)
			pass_alike(gpu, board, stop);
		else if (stop - gpu->at_ns > TWIN_CELL_NS - in_cell)
			stop = gpu->at_ns + TWIN_CELL_NS - in_cell;
		if (in_cell == 0 && stop - gpu->at_ns > TWIN_CELL_NS)
			stop = gpu->at_ns + TWIN_CELL_NS;
		from = gpu->at_ns;
		pass(gpu, board, stop - from);
		if (gpu->at_ns > from && gpu->at_ns % TWIN_CELL_NS == 0)
			end_cell(gpu, board);
		if (gpu->at_ns >= event) {
			twin_trouble_due(gpu, board);
			forget_gone(gpu);
			twin_physics_settle(gpu, board);
		}
	}
}

static uint32_t percent_of_cells(const uint16_t permille[TWIN_CELLS])
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < TWIN_CELLS; i++)
		sum += permille[i];
	return (sum / TWIN_CELLS + 5) / 10;
}

uint32_t twin_physics_power_reading_mw(const struct twin_gpu *gpu, const struct twin_board *board,
				       bool average)
{
	uint64_t sum_uw = 0;

	if (!average || !(board->features & TWIN_HAS_POWER_AVERAGE))
		return gpu->power_uw[(gpu->cells - 1) % TWIN_CELLS] / 1000;
	for (unsigned i = 0; i < TWIN_CELLS; i++)
		sum_uw += gpu->power_uw[i];
	return (uint32_t)(sum_uw / TWIN_CELLS / 1000);
}

uint32_t twin_physics_util_percent(const struct twin_gpu *gpu)
{
	return percent_of_cells(gpu->util);
}

uint32_t twin_physics_memory_util_percent(const struct twin_gpu *gpu)
{
	return percent_of_cells(gpu->memory_util);
}

uint64_t twin_physics_memory_used(const struct twin_gpu *gpu)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++)
		bytes += gpu->loads[i].pid ? gpu->loads[i].memory_bytes : 0;
	return bytes;
}
