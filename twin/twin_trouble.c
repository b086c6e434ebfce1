/* SPDX-License-Identifier: Apache-2.0 */
#include "twin_trouble.h"

#include <errno.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/compiler.h"
#include "twin_mig.h"
#include "twin_physics.h"

enum {
	XID_DOUBLE_BIT = 48,
	XID_ROW_REMAPPED = 63,
	XID_REMAP_FAILED = 64,
	XID_NVLINK = 74,
	XID_OFF_THE_BUS = 79,
	SECOND_NS = 1000000000,
};

void twin_event_add(struct twin_gpu *gpu, uint64_t type, uint64_t data)
{
	gpu->events[gpu->event_count++ % TWIN_EVENTS] = (struct twin_event){
		.at_ns = gpu->at_ns,
		.type = type,
		.data = data,
		.gpu_instance = NVML_NO_VALUE_U32,
		.compute_instance = NVML_NO_VALUE_U32,
	};
}

static void add_xid(struct twin_gpu *gpu, uint64_t xid)
{
	twin_event_add(gpu, NVML_EVENT_XID_CRITICAL, xid);
}

/* Errors that a program makes, or meets alone: the others on the GPU do not notice. */
static bool is_of_a_program(uint64_t xid)
{
	static const uint16_t numbers[] = {13, 31, 43, 45, 94};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(numbers); i++) {
		if (numbers[i] == xid)
			return true;
	}
	return false;
}

/* Errors after which nothing that runs on the GPU goes on. */
static bool is_of_all(uint64_t xid)
{
	static const uint16_t numbers[] = {48, 62, 79, 95, 119};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(numbers); i++) {
		if (numbers[i] == xid)
			return true;
	}
	return false;
}

/* Work that an error takes away: of the first program that runs there, or of all. */
static void fail_work(struct twin_gpu *gpu, uint64_t xid, bool all)
{
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (!twin_load_alive(&gpu->loads[i]) || gpu->loads[i].failed_xid)
			continue;
		gpu->loads[i].failed_xid = (uint32_t)xid;
		if (!all)
			return;
	}
}

/* An XID that somebody wishes for. On a GPU that is cut, one that a program makes comes from the
 * instances of the first program that runs there. */
static void wish_xid(struct twin_gpu *gpu, const struct twin_board *board, uint64_t xid)
{
	struct twin_event *event;

	add_xid(gpu, xid);
	if (is_of_a_program(xid) || is_of_all(xid))
		fail_work(gpu, xid, is_of_all(xid));
	event = &gpu->events[(gpu->event_count - 1) % TWIN_EVENTS];
	for (uint64_t i = 0; is_of_a_program(xid) && i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		const struct twin_gpu_instance *instance = &gpu->instances[load->gpu_instance];
		if (!twin_load_alive(load) || !load->in_instance)
			continue;
		event->gpu_instance = twin_mig_id(twin_mig_profile(gpu, board, load->gpu_instance),
						  load->gpu_instance);
		event->compute_instance = instance->compute[load->compute_instance].id;
		return;
	}
}

int twin_trouble_check(const struct twin_board *board, enum twin_trouble trouble, uint64_t value)
{
	switch (trouble) {
	case TWIN_TROUBLE_REMAP_FAILED:
		return board->features & TWIN_HAS_ROW_REMAP ? 0 : -ENOTSUP;
	case TWIN_TROUBLE_FAN_STUCK:
		return board->fans ? 0 : -ENOTSUP;
	case TWIN_TROUBLE_PCIE_WIDTH:
		return value < board->pcie_width && !(value & (value - 1)) ? 0 : -ERANGE;
	case TWIN_TROUBLE_PCIE_GEN:
		return value < board->pcie_gen ? 0 : -ERANGE;
	case TWIN_TROUBLE_LINK_DOWN:
		return value < board->nvlinks ? 0 : -ERANGE;
	default:
		return 0;
	}
}

/* An error that the memory could not correct: counted, and its row (or page, on older boards) is to
 * be replaced when the GPU is reset next. */
static void uncorrectable(struct twin_gpu *gpu, const struct twin_board *board)
{
	gpu->ecc_unc_volatile++;
	gpu->ecc_unc_aggregate++;
	twin_event_add(gpu, NVML_EVENT_DOUBLE_BIT_ECC, 0);
	add_xid(gpu, XID_DOUBLE_BIT);
	fail_work(gpu, XID_DOUBLE_BIT, true);
	if (board->features & TWIN_HAS_ROW_REMAP) {
		gpu->remap_pending++;
		add_xid(gpu, XID_ROW_REMAPPED);
	} else if (board->features & TWIN_HAS_RETIRED_PAGES) {
		gpu->retired_pending++;
	}
}

static void corrected(struct twin_gpu *gpu, uint64_t count)
{
	gpu->ecc_cor_volatile += count;
	gpu->ecc_cor_aggregate += count;
	twin_event_add(gpu, NVML_EVENT_SINGLE_BIT_ECC, 0);
}

/* Rows and pages that waited for a reset. */
static void replace_rows(struct twin_gpu *gpu)
{
	gpu->remapped_unc += gpu->remap_failed ? 0 : gpu->remap_pending;
	gpu->retired_pages += gpu->retired_pending;
	gpu->remap_pending = gpu->retired_pending = 0;
}

/* What the board knows after its power was gone, or its driver: what is outside of it, what is
 * broken, what its own memory keeps, and the twin's own books. */
static void start_anew(struct twin_gpu *gpu, const struct twin_board *board)
{
	struct twin_gpu old = *gpu;

	twin_physics_init(gpu, board, old.at_ns);
	gpu->temp_uc = old.temp_uc;
	gpu->ambient_uc = old.ambient_uc;
	gpu->silicon_permille = old.silicon_permille;
	gpu->airflow_permille = old.airflow_permille;
	gpu->noise_seed = old.noise_seed;
	gpu->fan_stuck = old.fan_stuck;
	gpu->faults = old.faults;
	gpu->off = old.off;
	gpu->slow_ms = old.slow_ms;
	gpu->hang_until_ns = old.hang_until_ns;
	gpu->reloads = old.reloads;
	gpu->away_until_ns = old.away_until_ns;
	gpu->plan_count = old.plan_count;
	memcpy(gpu->plan, old.plan, sizeof(gpu->plan));
	gpu->power_brake = old.power_brake;
	gpu->pcie_gen = old.pcie_gen;
	gpu->pcie_width = old.pcie_width;
	gpu->links_down = old.links_down;
	gpu->remapped_cor = old.remapped_cor;
	gpu->remapped_unc = old.remapped_unc;
	gpu->remap_pending = old.remap_pending;
	gpu->remap_failed = old.remap_failed;
	gpu->retired_pages = old.retired_pages;
	gpu->retired_pending = old.retired_pending;
	replace_rows(gpu);
	gpu->ecc_off = gpu->ecc_off_pending = old.ecc_off_pending;
	gpu->ecc_cor_aggregate = old.ecc_cor_aggregate;
	gpu->ecc_unc_aggregate = old.ecc_unc_aggregate;
	gpu->event_count = old.event_count;
	memcpy(gpu->events, old.events, sizeof(gpu->events));
	gpu->setter_calls = old.setter_calls;
	gpu->setter_refusals = old.setter_refusals;
	/* in the board's own memory up to Ampere, not kept from Hopper on */
	if (board->arch < NVML_ARCH_HOPPER)
		gpu->mig_mode = gpu->mig_pending = old.mig_pending;
}

/* The driver is loaded anew: settings, processes, instances and what counts since its load are
 * gone; rows that waited are replaced. The energy counter starts again. */
static void reload(struct twin_gpu *gpu, const struct twin_board *board, uint64_t away_s)
{
	gpu->reloads++;
	gpu->away_until_ns = gpu->at_ns + away_s * SECOND_NS;
	start_anew(gpu, board);
}

void twin_trouble_reset(struct twin_gpu *gpu, const struct twin_board *board)
{
	gpu->lock_min_mhz = gpu->lock_max_mhz = 0;
	gpu->memory_lock_min_mhz = gpu->memory_lock_max_mhz = 0;
	gpu->application_mhz = 0;
	gpu->limit_mw = board->power_default_mw;
	gpu->ecc_off = gpu->ecc_off_pending;
	gpu->ecc_cor_volatile = gpu->ecc_unc_volatile = 0;
	replace_rows(gpu);
}

/* Work on it ends as with a process that dies; the board draws nothing until somebody mends it. */
static void switch_off(struct twin_gpu *gpu)
{
	gpu->off = 1;
	gpu->faults |= TWIN_FAULT_LOST;
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (twin_load_alive(&gpu->loads[i]))
			gpu->loads[i].gone_ns = gpu->at_ns;
	}
	add_xid(gpu, XID_OFF_THE_BUS);
}

static void mend(struct twin_gpu *gpu, const struct twin_board *board)
{
	bool was_off = gpu->off;

	gpu->faults = 0;
	gpu->off = gpu->fan_stuck = gpu->power_brake = 0;
	gpu->airflow_permille = 1000;
	gpu->pcie_gen = gpu->pcie_width = 0;
	gpu->links_down = 0;
	if (was_off)
		start_anew(gpu, board);
}

/* Those that every call meets. */
static bool happen_to_calls(struct twin_gpu *gpu, enum twin_trouble trouble, uint64_t value)
{
	switch (trouble) {
	case TWIN_TROUBLE_LOST:
		gpu->faults |= TWIN_FAULT_LOST;
		add_xid(gpu, XID_OFF_THE_BUS);
		return true;
	case TWIN_TROUBLE_HANG:
		gpu->faults |= TWIN_FAULT_HANG;
		gpu->hang_until_ns = value ? gpu->at_ns + value * SECOND_NS : 0;
		return true;
	case TWIN_TROUBLE_SLOW:
		gpu->faults |= TWIN_FAULT_SLOW;
		gpu->slow_ms = (uint32_t)value;
		return true;
	case TWIN_TROUBLE_PERMISSION:
		gpu->faults |= TWIN_FAULT_PERMISSION;
		return true;
	case TWIN_TROUBLE_RESTORE_REFUSED:
		gpu->faults |= TWIN_FAULT_RESTORE_REFUSED;
		return true;
	default:
		return false;
	}
}

static bool happen_to_memory(struct twin_gpu *gpu, const struct twin_board *board,
			     enum twin_trouble trouble, uint64_t value)
{
	switch (trouble) {
	case TWIN_TROUBLE_ECC:
		uncorrectable(gpu, board);
		return true;
	case TWIN_TROUBLE_ECC_CORRECTED:
		corrected(gpu, value ? value : 1);
		return true;
	case TWIN_TROUBLE_REMAP_FAILED:
		gpu->remap_failed = 1;
		add_xid(gpu, XID_REMAP_FAILED);
		return true;
	default:
		return false;
	}
}

static bool happen_to_cooling(struct twin_gpu *gpu, enum twin_trouble trouble, uint64_t value)
{
	switch (trouble) {
	case TWIN_TROUBLE_POWER_BRAKE:
		gpu->power_brake = 1;
		return true;
	case TWIN_TROUBLE_AIR:
		gpu->airflow_permille = (uint32_t)value * 10;
		return true;
	case TWIN_TROUBLE_FAN_STUCK:
		gpu->fan_stuck = 1;
		return true;
	case TWIN_TROUBLE_OVERHEATED:
		switch_off(gpu);
		return true;
	default:
		return false;
	}
}

static void happen_to_links(struct twin_gpu *gpu, enum twin_trouble trouble, uint64_t value)
{
	if (trouble == TWIN_TROUBLE_PCIE_WIDTH)
		gpu->pcie_width = (uint32_t)value;
	if (trouble == TWIN_TROUBLE_PCIE_GEN)
		gpu->pcie_gen = (uint32_t)value;
	if (trouble == TWIN_TROUBLE_LINK_DOWN) {
		gpu->links_down |= 1u << value;
		add_xid(gpu, XID_NVLINK);
	}
}

void twin_trouble_happen(struct twin_gpu *gpu, const struct twin_board *board,
			 enum twin_trouble trouble, uint64_t value)
{
	if (happen_to_calls(gpu, trouble, value) || happen_to_memory(gpu, board, trouble, value) ||
	    happen_to_cooling(gpu, trouble, value))
		return;
	if (trouble == TWIN_TROUBLE_NONE)
		mend(gpu, board);
	else if (trouble == TWIN_TROUBLE_FORGET)
		gpu->plan_count = 0;
	else if (trouble == TWIN_TROUBLE_XID)
		wish_xid(gpu, board, value);
	else if (trouble == TWIN_TROUBLE_RELOAD)
		reload(gpu, board, value);
	else
		happen_to_links(gpu, trouble, value);
}

int twin_trouble_plan(struct twin_gpu *gpu, const struct twin_planned *planned)
{
	uint64_t at = gpu->plan_count;

	if (at >= TWIN_PLANNED)
		return -ENOSPC;
	for (; at > 0 && gpu->plan[at - 1].at_ns > planned->at_ns; at--)
		gpu->plan[at] = gpu->plan[at - 1];
	gpu->plan[at] = *planned;
	/* what is past happens as time goes on: no moment is gone through twice */
	if (gpu->plan[at].at_ns <= gpu->at_ns)
		gpu->plan[at].at_ns = gpu->at_ns + 1;
	gpu->plan_count++;
	return 0;
}

uint64_t twin_trouble_next_ns(const struct twin_gpu *gpu)
{
	return gpu->plan_count ? gpu->plan[0].at_ns : UINT64_MAX;
}

void twin_trouble_due(struct twin_gpu *gpu, const struct twin_board *board)
{
	while (twin_trouble_next_ns(gpu) <= gpu->at_ns) {
		struct twin_planned next = gpu->plan[0];

		gpu->plan_count--;
		memmove(&gpu->plan[0], &gpu->plan[1], gpu->plan_count * sizeof(gpu->plan[0]));
		twin_trouble_happen(gpu, board, next.trouble, next.value);
	}
}
