/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the driver itself: does it answer, is it of one piece, has it all the GPUs. */
#include <string.h>

#include "device/pci_id.h"
#include "health/doctor.h"

/* A module that is newer than what is loaded was installed, and nobody restarted: NVML says 18.
 * https://docs.nvidia.com/deploy/nvml-api, nvmlReturn_t */
static void judge_failure(const struct takt_doctor_facts *facts, struct takt_doctor_report *report)
{
	switch (facts->open_code) {
	case TAKT_DRIVER_MISMATCH:
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_RESTART,
			"or end all that uses the GPUs and load the module anew: rmmod "
			"nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia",
			"the driver was replaced while it was loaded: its library and its kernel "
			"module (%s) are of different versions",
			facts->kernel_version[0] ? facts->kernel_version : "version not known");
		return;
	case TAKT_DRIVER_NO_PERMISSION:
	case TAKT_DRIVER_BLOCKED:
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"this user may not ask the driver: %s", facts->open_error);
		return;
	case TAKT_DRIVER_NOT_LOADED:
		if (facts->pci_count == 0) {
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
					"no NVIDIA GPU on the bus, and no kernel module for one");
			return;
		}
		break;
	default:
		break;
	}
	takt_doctor_say(report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_DRIVER,
			"see the kernel's log: dmesg | grep -iE 'nvrm|nvidia'",
			"the driver does not start: %s", facts->open_error);
}

void takt_doctor_check_driver(const struct takt_doctor_facts *facts,
			      struct takt_doctor_report *report)
{
	bool gpu_there = facts->has & TAKT_DOCTOR_BUS && facts->pci_count > 0;

	switch (facts->asked) {
	case TAKT_ASKED_YES:
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"driver %s answers for %u GPU%s",
				facts->info.driver_version[0] ? facts->info.driver_version
							      : "(no version)",
				facts->gpu_count, facts->gpu_count == 1 ? "" : "s");
		if (facts->own_library[0])
			takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
					"LD_LIBRARY_PATH is not used by root's processes, as a "
					"service is; name the library with nvml_path = %s",
					facts->own_library);
		return;
	case TAKT_ASKED_FAILED:
		judge_failure(facts, report);
		return;
	case TAKT_ASKED_HANGS:
		takt_doctor_say(report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_RESTART,
				"after a look at the kernel's log: dmesg | grep NVRM",
				"the driver hangs: %s", facts->open_error);
		return;
	case TAKT_ASKED_NO_LIB:
		takt_doctor_say(report, gpu_there ? TAKT_DOCTOR_CRITICAL : TAKT_DOCTOR_UNKNOWN, 0,
				gpu_there ? TAKT_DO_DRIVER : TAKT_DO_NONE,
				gpu_there ? "install it from the distribution" : NULL, "%s",
				facts->open_error);
		return;
	case TAKT_ASKED_NO_MODULE:
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_DRIVER,
			"modprobe nvidia; if that fails: dkms status, and whether secure boot "
			"refuses the module",
			"%u GPU%s on the bus, but the kernel module is not loaded; not asked, "
			"since that may load it",
			facts->pci_count, facts->pci_count == 1 ? "" : "s");
		return;
	case TAKT_ASKED_ASLEEP:
		takt_doctor_say(
			report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
			"a GPU is suspended to save power; not asked, since that would wake it. "
			"Run this again while a program uses it");
	}
}

/* "12.550.90.07" is NVML's: the driver's version behind the CUDA one. */
static const char *driver_part(const char *nvml_version, const char *driver_version)
{
	const char *found = strstr(nvml_version, driver_version);

	return found ? found : nvml_version;
}

/* One driver is one version: module, libnvidia-ml and libcuda. A libcuda of another version gives
 * CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803).
 * https://docs.nvidia.com/cuda/cuda-driver-api, CUresult */
void takt_doctor_check_versions(const struct takt_doctor_facts *facts,
				struct takt_doctor_report *report)
{
	const char *driver = facts->info.driver_version;
	const char *module =
		facts->has & TAKT_DOCTOR_KERNEL_MODULE ? facts->kernel_version : driver;
	bool cuda = facts->has & TAKT_DOCTOR_CUDA_LIB;

	if (facts->asked != TAKT_ASKED_YES)
		return;
	if (driver[0] == '\0') {
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"the driver does not say its version");
		return;
	}
	if (facts->info.nvml_version[0] &&
	    strcmp(driver_part(facts->info.nvml_version, driver), driver) != 0)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_RESTART, NULL,
				"module %s, but libnvidia-ml of %s", driver,
				facts->info.nvml_version);
	else if (strcmp(module, driver) != 0)
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_RESTART, NULL,
				"module %s, but the library says driver %s", module, driver);
	else if (cuda && strcmp(facts->cuda_lib_version, driver) != 0)
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_DRIVER,
			"install one version of all of the driver's packages",
			"libcuda is of %s, the driver is %s: CUDA programs end with error 803",
			facts->cuda_lib_version, driver);
	else
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"%s of one version, %s%s",
				cuda ? "module, libnvidia-ml and libcuda are" : "what is here is",
				driver, cuda ? "" : " (no libcuda found to compare)");
}

static bool driver_has(const struct takt_doctor_facts *facts, const char *id, bool *ret_lost)
{
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];

		if (!(gpu->facts.has & TAKT_FACT_PCI) ||
		    takt_pci_id_compare(gpu->facts.pci_bus_id, id) != 0)
			continue;
		*ret_lost = gpu->last.lost;
		return true;
	}
	return false;
}

/* A GPU on the bus that the driver does not list: DCGM and nvidia-smi just show one fewer
 * (dcgm-exporter issue 348); the kernel's log has "fallen off the bus" (XID 79). */
static void judge_missing(const struct takt_doctor_facts *facts, const struct takt_doctor_pci *pci,
			  struct takt_doctor_report *report)
{
	if (strcmp(pci->driver, "nvidia") == 0 && facts->in_container)
		takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
				"the machine has more GPUs than this container was given");
	else if (strcmp(pci->driver, "nvidia") == 0)
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_RESTART,
			"a GPU that goes again: power cable, seat, heat; then its maker",
			"the GPU at %s is on the bus and bound to the driver, which does not list "
			"it: it has fallen off the bus or failed to start",
			pci->id);
	else if (strcmp(pci->driver, "vfio-pci") == 0)
		takt_doctor_say(report, TAKT_DOCTOR_INFO, 0, TAKT_DO_NONE, NULL,
				"the GPU at %s is set aside for a virtual machine (vfio-pci)",
				pci->id);
	else if (strcmp(pci->driver, "nouveau") == 0)
		takt_doctor_say(
			report, TAKT_DOCTOR_CRITICAL, 0, TAKT_DO_BIND,
			"blacklist nouveau in /etc/modprobe.d, make the initial ram disk anew, "
			"restart",
			"the GPU at %s is held by nouveau, with which CUDA cannot run", pci->id);
	else
		takt_doctor_say(report, TAKT_DOCTOR_WARNING, 0, TAKT_DO_BIND,
				"modprobe nvidia; dmesg says why it refuses a board",
				"the GPU at %s is held by %s, not by the NVIDIA driver", pci->id,
				pci->driver[0] ? pci->driver : "no driver");
}

/* Those that answer no more, whatever the bus says. */
static uint64_t judge_lost(const struct takt_doctor_facts *facts, struct takt_doctor_report *report)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];

		if (gpu->facts.has && !gpu->last.lost && !gpu->silent)
			continue;
		lost |= 1ull << i;
		takt_doctor_say(report, TAKT_DOCTOR_CRITICAL, 1ull << i, TAKT_DO_RESTART,
				"a GPU that goes again: power cable, seat, heat; then its maker",
				"%s",
				gpu->last.lost ? "the driver says that the GPU is lost"
					       : "the driver hangs when it is asked about the GPU");
	}
	return lost;
}

void takt_doctor_check_presence(const struct takt_doctor_facts *facts,
				struct takt_doctor_report *report)
{
	uint64_t lost = judge_lost(facts, report);
	uint32_t seen = 0;
	bool gone = false;

	if (!(facts->has & TAKT_DOCTOR_BUS) || facts->pci_count == 0) {
		if (facts->asked == TAKT_ASKED_YES && facts->gpu_count > 0 && lost == 0)
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 0, TAKT_DO_NONE, NULL,
					facts->info.simulated
						? "simulated GPUs are not on this machine's bus"
						: "this machine shows no PCI bus to compare with");
		return;
	}
	for (uint32_t i = 0; i < facts->pci_count; i++) {
		const struct takt_doctor_pci *pci = &facts->pci[i];

		if (driver_has(facts, pci->id, &gone))
			seen++;
		else if (!pci->asleep && facts->asked == TAKT_ASKED_YES)
			judge_missing(facts, pci, report);
		else if (strcmp(pci->driver, "nouveau") == 0)
			judge_missing(facts, pci, report);
	}
	if (facts->asked == TAKT_ASKED_YES && seen == facts->pci_count && lost == 0)
		takt_doctor_say(report, TAKT_DOCTOR_PASS, 0, TAKT_DO_NONE, NULL,
				"all %u GPU%s on the bus answer%s", seen, seen == 1 ? "" : "s",
				seen == 1 ? "s" : "");
}

/* Without persistence the driver lets go of a board when the last program ends: seconds to the next
 * start, and locks and limits are forgotten. A screen keeps it loaded just as well.
 * https://docs.nvidia.com/deploy/driver-persistence */
void takt_doctor_check_persistence(const struct takt_doctor_facts *facts,
				   struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_reading *r = &facts->gpu[i].last;
		uint64_t gpu = 1ull << i;

		if (!(r->has & TAKT_HAS_PERSISTENCE))
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, gpu, TAKT_DO_NONE, NULL,
					"the driver does not say");
		else if (r->persistence)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, gpu, TAKT_DO_NONE, NULL, "on");
		else if (facts->gpu[i].held_by_takt)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, gpu, TAKT_DO_PERSISTENCE,
					"systemctl enable --now nvidia-persistenced",
					"off, and takt sets clocks: they go with the last program");
		else
			takt_doctor_say(
				report, TAKT_DOCTOR_INFO, gpu, TAKT_DO_PERSISTENCE,
				"systemctl enable --now nvidia-persistenced",
				"off: the first program waits for the board, and settings go with "
				"the last one");
	}
}
