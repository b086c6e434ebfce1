/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of how GPUs reach each other: NVLinks, NVSwitches, peer access, bridges in between. */
#include <string.h>

#include "health/doctor.h"

enum {
	FABRIC_NOT_SUPPORTED = 0, /* nvmlGpuFabricState_t */
	FABRIC_COMPLETED = 3,
};

/* Links of the modules that always have all of theirs connected: P100 4, V100 6, A100 12, H100 and
 * later 18. Boards in slots (with "PCIe", "NVL" or no such word) may lack their bridge.
 * https://www.nvidia.com/en-us/data-center/nvlink */
static bool is_module(const struct takt_doctor_gpu *gpu)
{
	static const char *const words[] = {"SXM", "HBM3", "H200", "B200", "B300"};

	if (!(gpu->facts.has & TAKT_FACT_NAME) || strstr(gpu->facts.name, "NVL") ||
	    strstr(gpu->facts.name, "PCIe"))
		return false;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(words); i++)
		if (strstr(gpu->facts.name, words[i]))
			return true;
	return false;
}

/* The most that a GPU of the same name has active here. */
static uint32_t best_of_kind(const struct takt_doctor_facts *facts, uint32_t gpu)
{
	uint32_t best = 0;

	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;

		if (strcmp(facts->gpu[i].facts.name, facts->gpu[gpu].facts.name) == 0 &&
		    board->has & TAKT_BOARD_NVLINK && board->nvlinks_up > best)
			best = board->nvlinks_up;
	}
	return best;
}

static void judge_nvlink(const struct takt_doctor_facts *facts, uint32_t i,
			 struct takt_doctor_report *report)
{
	const struct takt_gpu_board *board = &facts->gpu[i].board;
	uint32_t best = best_of_kind(facts, i);
	uint64_t bit = 1ull << i;

	if (board->nvlinks_up == board->nvlinks)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, bit, TAKT_DO_NONE, NULL,
				"all %u NVLinks are active", board->nvlinks);
	else if (facts->gpu_count > 1 && is_module(&facts->gpu[i]))
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, bit, TAKT_DO_RESET,
			"links that stay down: the GPU's or the switch's seat; then its maker",
			"%u of %u NVLinks are active", board->nvlinks_up, board->nvlinks);
	else if (board->nvlinks_up < best)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, bit, TAKT_DO_RESEAT,
				"the NVLink bridge between the boards",
				"%u of %u NVLinks are active; others of its kind here have %u",
				board->nvlinks_up, board->nvlinks, best);
	else
		takt_doctor_say(report, TAKT_DOCTOR_INFO, bit, TAKT_DO_NONE, NULL,
				"%u of %u NVLinks are active, as on all of its kind here: "
				"%s",
				board->nvlinks_up, board->nvlinks,
				board->nvlinks_up ? "the others lead nowhere"
						  : "no bridge between boards");
}

void takt_doctor_check_nvlink(const struct takt_doctor_facts *facts,
			      struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		if (facts->gpu[i].board.has & TAKT_BOARD_NVLINK)
			judge_nvlink(facts, i, report);
	}
}

static void judge_member(const struct takt_gpu_board *board, uint64_t bit,
			 struct takt_doctor_report *report)
{
	if (board->fabric_state == FABRIC_COMPLETED && board->fabric_status == 0)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, bit, TAKT_DO_NONE, NULL,
				"is a member of the fabric");
	else
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, bit, TAKT_DO_FABRIC,
			"systemctl enable --now nvidia-fabricmanager, of exactly the driver's "
			"version",
			"has not joined the fabric of NVSwitches (state %u, status %u): CUDA "
			"programs end with error 802",
			board->fabric_state, board->fabric_status);
}

/* From Hopper on a GPU says itself whether it has joined. Before, on a machine with NVSwitches, the
 * fabric manager has to run. https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide */
void takt_doctor_check_fabric(const struct takt_doctor_facts *facts,
			      struct takt_doctor_report *report)
{
	bool said = false;

	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;

		if (!(board->has & TAKT_BOARD_FABRIC) ||
		    board->fabric_state == FABRIC_NOT_SUPPORTED)
			continue;
		said = true;
		judge_member(board, 1ull << i, report);
	}
	if (said || !(facts->has & TAKT_DOCTOR_BUS) || facts->nvswitches == 0 ||
	    facts->gpu_count == 0)
		return;
	if (!(facts->has & TAKT_DOCTOR_PROCESSES) || facts->hides_processes)
		takt_doctor_say(
			report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
			"there are NVSwitches, but other people's processes cannot be seen here");
	else if (facts->fabric_manager)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%u NVSwitches, and the fabric manager runs", facts->nvswitches);
	else
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_FABRIC,
			"systemctl enable --now nvidia-fabricmanager, of exactly the driver's "
			"version",
			"%u NVSwitches, but the fabric manager does not run: CUDA programs end "
			"with error 802",
			facts->nvswitches);
}

/* Packages are upgraded one by one, and a fabric manager of another version than the driver does
 * not start: one that runs ends with its next start. */
void takt_doctor_check_manager(const struct takt_doctor_facts *facts,
			       struct takt_doctor_report *report)
{
	const char *driver = facts->info.driver_version;
	const char *manager = facts->fabric_manager_version;

	if (driver[0] == '\0' || manager[0] == '\0')
		return;
	if (strcmp(driver, manager) == 0)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"is of the driver's version, %s", driver);
	else
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_MANAGER,
				"the package nvidia-fabricmanager of exactly the driver's version; "
				"after an upgrade of both: restart the machine",
				"the fabric manager is of %s, the driver is %s: it does not start "
				"with this one",
				manager, driver);
}

struct peers {
	uint64_t fine, cannot, disabled, linked_without, unknown;
};

static void look_at_pair(const struct takt_doctor_facts *facts, uint32_t i, uint32_t j,
			 struct peers *ret)
{
	uint64_t both = 1ull << i | 1ull << j;
	uint8_t status = facts->gpu[i].board.peer[j];

	if (!facts->gpu[i].board_known || status == TAKT_PEER_UNKNOWN)
		ret->unknown |= both;
	else if (status == TAKT_PEER_OK)
		ret->fine |= both;
	else if (facts->nvlinks[i][j])
		ret->linked_without |= both;
	else if (status == TAKT_PEER_DISABLED)
		ret->disabled |= both;
	else
		ret->cannot |= both;
}

/* That boards of some kinds, and those on two host bridges of some machines, have none is their
 * nature; that linked ones have none, or that it was switched off, is not.
 * https://docs.nvidia.com/deploy/nvml-api, nvmlDeviceGetP2PStatus */
void takt_doctor_check_peer_access(const struct takt_doctor_facts *facts,
				   struct takt_doctor_report *report)
{
	struct peers peers = {0};

	TAKT_EACH_GPU (i, facts) {
		TAKT_EACH_GPU (j, facts) {
			bool cut =
				facts->gpu[i].facts.mig_enabled || facts->gpu[j].facts.mig_enabled;

			if (i != j && !cut)
				look_at_pair(facts, i, j, &peers);
		}
	}
	if (peers.linked_without)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, peers.linked_without, TAKT_DO_HOST,
				"dmesg | grep -i nvlink; nvidia-smi topo -p2p r",
				"linked by NVLink, but the driver gives them no peer access");
	if (peers.disabled)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, peers.disabled, TAKT_DO_HOST,
				"options of the module in /etc/modprobe.d",
				"peer access was switched off by a setting of the driver's module");
	if (peers.cannot)
		takt_doctor_say(
			report, TAKT_DOCTOR_INFO, peers.cannot, TAKT_DO_NONE, NULL,
			"no peer access between some of them (boards or the machine cannot): "
			"copies go through the host's memory");
	if (peers.unknown)
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, peers.unknown, TAKT_DO_NONE, NULL,
				"the driver does not say");
	if (peers.fine && !(peers.linked_without | peers.disabled | peers.cannot | peers.unknown))
		takt_doctor_say(report, TAKT_DOCTOR_PASS, peers.fine, TAKT_DO_NONE, NULL,
				"all can read each other's memory");
}

static const struct takt_doctor_pci *bus_of(const struct takt_doctor_facts *facts, uint32_t gpu)
{
	const struct takt_gpu_facts *f = &facts->gpu[gpu].facts;

	for (uint32_t k = 0; f->has & TAKT_FACT_PCI && k < facts->pci_count; k++)
		if (takt_doctor_is(&facts->pci[k], f->pci_bus_id))
			return &facts->pci[k];
	return NULL;
}

/* Whether traffic of this GPU's peers takes the switch that redirects it. */
static bool shares_switch(const struct takt_doctor_facts *facts, uint32_t gpu)
{
	const struct takt_doctor_pci *own = bus_of(facts, gpu);

	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_pci *other = i == gpu ? NULL : bus_of(facts, i);

		if (other && own && own->switch_id[0] && !facts->nvlinks[gpu][i] &&
		    strcmp(own->switch_id, other->switch_id) == 0)
			return true;
	}
	return false;
}

/* Access Control Services send what goes from GPU to GPU below one switch up to the host bridge and
 * back. https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html */
void takt_doctor_check_acs(const struct takt_doctor_facts *facts, struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_pci *pci = bus_of(facts, i);

		if (!pci || !shares_switch(facts, i))
			continue;
		if (!pci->acs_known)
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
					"only root may read how the bridges are set");
		else if (pci->acs_redirects)
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_HOST,
				"switch ACS off in the firmware's settings, or with setpci on the "
				"switch's ports, unless virtual machines need it",
				"the switch above it sends peers' traffic up to the host (ACS)");
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"the switch above it lets peers' traffic through");
	}
}
