/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of the PCI Express link. Fewer lanes than the slot has is never right: a seat, a riser, a
 * bent pin. A lower speed at rest is: boards slow their link down to save power (RTX 4080 Super:
 * generation 1 in P8, 4 in P2; H100 stays at its highest), so it counts under load alone.
 */
#include "health/doctor.h"

static void judge_width(const struct takt_doctor_facts *facts, uint32_t i,
			struct takt_doctor_report *report)
{
	const struct takt_doctor_gpu *gpu = &facts->gpu[i];
	uint32_t most = gpu->facts.pcie_width_max, now = gpu->width_seen, slot = 0;

	for (uint32_t k = 0; k < facts->pci_count; k++)
		if (facts->gpu[i].facts.has & TAKT_FACT_PCI &&
		    takt_doctor_is(&facts->pci[k], gpu->facts.pci_bus_id))
			slot = facts->pci[k].port_max_width;
	if (now >= most)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
				"all x%u lanes", most);
	else if (slot && slot <= now)
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 1ull << i, TAKT_DO_NONE, NULL,
				"x%u of x%u lanes: the slot has no more", now, most);
	else
		takt_doctor_say(
			report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_RESEAT,
			"then the riser, the slot's share of lanes in the firmware's settings",
			"x%u of x%u lanes%s", now, most, slot ? ", and the slot has them" : "");
}

void takt_doctor_check_pcie_width(const struct takt_doctor_facts *facts,
				  struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];

		if (gpu->facts.has & TAKT_FACT_PCIE_MAX && gpu->width_seen > 0)
			judge_width(facts, i, report);
		else
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
					"the driver does not say");
	}
}

/* At full performance and work in two samples at least. */
void takt_doctor_check_pcie_generation(const struct takt_doctor_facts *facts,
				       struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		uint32_t most = gpu->facts.pcie_gen_max;
		uint64_t bit = 1ull << i;

		if (!(gpu->facts.has & TAKT_FACT_PCIE_MAX) || !(gpu->last.has & TAKT_HAS_PCIE))
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, bit, TAKT_DO_NONE, NULL,
					"the driver does not say");
		else if (gpu->last.pcie_gen >= most || gpu->gen_seen >= most)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, bit, TAKT_DO_NONE, NULL,
					"generation %u, the highest", most);
		else if (gpu->loaded >= 2)
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_RESEAT,
				"then the riser, and the slot's speed in the firmware's settings",
				"generation %u of %u under load", gpu->gen_seen, most);
		else
			takt_doctor_say(
				report, TAKT_DOCTOR_UNKNOWN, bit, TAKT_DO_NONE, NULL,
				"at rest, where links save power; run this again under load");
	}
}
