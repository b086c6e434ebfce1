/* SPDX-License-Identifier: Apache-2.0 */
#include "twin_trouble.h"

#include "abi/nvml.h"
#include "twin_physics.h"

void twin_event_add(struct twin_gpu *gpu, uint64_t type, uint64_t data)
{
	gpu->events[gpu->event_count++ % TWIN_EVENTS] = (struct twin_event){
		.at_ns = gpu->at_ns,
		.type = type,
		.data = data,
	};
}

void twin_trouble_ecc(struct twin_gpu *gpu, const struct twin_board *board)
{
	gpu->ecc_unc_volatile++;
	gpu->ecc_unc_aggregate++;
	if (board->features & TWIN_HAS_ROW_REMAP)
		gpu->remap_pending++;
	else if (board->features & TWIN_HAS_RETIRED_PAGES)
		gpu->retired_pending++;
	twin_event_add(gpu, NVML_EVENT_DOUBLE_BIT_ECC, 0);
}

void twin_trouble_reload(struct twin_gpu *gpu, const struct twin_board *board)
{
	struct twin_gpu old = *gpu;

	twin_physics_init(gpu, board, old.at_ns);
	gpu->temp_uc = old.temp_uc;
	gpu->power_brake = old.power_brake;
	gpu->pcie_gen = old.pcie_gen;
	gpu->pcie_width = old.pcie_width;
	gpu->links_down = old.links_down;
	gpu->remapped_cor = old.remapped_cor;
	gpu->remapped_unc = old.remapped_unc + (old.remap_failed ? 0 : old.remap_pending);
	gpu->remap_failed = old.remap_failed;
	gpu->retired_pages = old.retired_pages + old.retired_pending;
	gpu->ecc_cor_aggregate = old.ecc_cor_aggregate;
	gpu->ecc_unc_aggregate = old.ecc_unc_aggregate;
	gpu->setter_calls = old.setter_calls;
	gpu->setter_refusals = old.setter_refusals;
	/* in the board's own memory up to Ampere, not kept from Hopper on */
	if (board->arch < NVML_ARCH_HOPPER)
		gpu->mig_mode = gpu->mig_pending = old.mig_pending;
	twin_physics_settle(gpu, board);
}
