/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a GPU's memory, and of modes that wait for a reset. */
#include "health/doctor.h"

enum {
	HELD_MIB = 256,	 /* what a driver keeps for itself is less, beyond what it calls reserved */
	PAGES_MOST = 63, /* DCGM: dcgm_gpu_hardware_limits.h, hard limit */
	PAGES_MANY = 15, /* the same, soft limit */
};

void takt_doctor_check_ecc_mode(const struct takt_doctor_facts *facts,
				struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;

		if (!(board->has & TAKT_BOARD_ECC_MODE))
			continue;
		if (board->ecc_on != board->ecc_pending_on)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_RESET, NULL,
					"ECC is %s and will be %s after a reset",
					board->ecc_on ? "on" : "off",
					board->ecc_pending_on ? "on" : "off");
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"ECC is %s, nothing pends", board->ecc_on ? "on" : "off");
	}
}

/* Uncorrected errors since the driver was loaded: drain and reset.
 * https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt */
void takt_doctor_check_ecc_errors(const struct takt_doctor_facts *facts,
				  struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_reading *r = &facts->gpu[i].last;

		if (!(r->has & TAKT_HAS_ECC))
			continue;
		if (r->ecc_uncorrected)
			takt_doctor_say(
				report, TAKT_DOCTOR_CRITICAL, 1ull << i, TAKT_DO_RESET, NULL,
				"%llu uncorrected memory error%s since the driver was loaded: "
				"results of that time may be wrong",
				(unsigned long long)r->ecc_uncorrected,
				r->ecc_uncorrected == 1 ? "" : "s");
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"no uncorrected memory error since the driver was loaded");
	}
}

/* Pending: a reset at convenience, programs may go on. Failed: the board is one to be returned.
 * https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, row remapping */
void takt_doctor_check_row_remap(const struct takt_doctor_facts *facts,
				 struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;
		uint64_t gpu = 1ull << i;

		if (!(board->has & TAKT_BOARD_ROWS))
			continue;
		if (board->rows_failed)
			takt_doctor_say(
				report, TAKT_DOCTOR_CRITICAL, gpu, TAKT_DO_REPLACE,
				"its maker's rules for row remapping say when",
				"a row of memory could not be replaced: no spare one is left in "
				"its bank");
		if (board->rows_pending)
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, gpu, TAKT_DO_RESET, NULL,
				"rows of memory are to be replaced at the next reset (%u were, "
				"for uncorrected errors)",
				board->rows_uncorrected);
		if (!board->rows_failed && !board->rows_pending)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, gpu, TAKT_DO_NONE, NULL,
					"no row of memory waits to be replaced");
	}
}

/* Boards before Ampere. https://docs.nvidia.com/deploy/dynamic-page-retirement */
void takt_doctor_check_retired_pages(const struct takt_doctor_facts *facts,
				     struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;
		uint32_t pages = board->has & TAKT_BOARD_PAGES ? board->pages : 0;
		uint64_t gpu = 1ull << i;

		if (!(board->has & (TAKT_BOARD_PAGES | TAKT_BOARD_PAGES_PENDING)))
			continue;
		if (pages >= PAGES_MOST)
			takt_doctor_say(
				report, TAKT_DOCTOR_CRITICAL, gpu, TAKT_DO_REPLACE, NULL,
				"%u pages of memory retired; from %d on a board is given up", pages,
				PAGES_MOST);
		else if (pages >= PAGES_MANY)
			takt_doctor_say(report, TAKT_DOCTOR_INFO, gpu, TAKT_DO_NONE, NULL,
					"%u pages of memory retired; a board is given up at %d",
					pages, PAGES_MOST);
		if (board->has & TAKT_BOARD_PAGES_PENDING && board->pages_pending)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, gpu, TAKT_DO_RESET, NULL,
					"a page of memory is to be retired at the next reset");
		else if (pages < PAGES_MANY)
			takt_doctor_say(report, TAKT_DOCTOR_PASS, gpu, TAKT_DO_NONE, NULL,
					"no page of memory waits to be retired");
	}
}

void takt_doctor_check_mig_mode(const struct takt_doctor_facts *facts,
				struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;

		if (!(board->has & TAKT_BOARD_MIG_MODE))
			continue;
		if (board->mig_on != board->mig_pending_on)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_RESET, NULL,
					"MIG is %s and will be %s after a reset",
					board->mig_on ? "on" : "off",
					board->mig_pending_on ? "on" : "off");
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"MIG is %s, nothing pends", board->mig_on ? "on" : "off");
	}
}

/*
 * Memory that no listed process accounts for, in every sample. Only where the driver tells what it
 * reserved for itself (older ones count that as used), not with MIG (whose instances hold some) and
 * not in a container (which does not see the others' processes).
 */
void takt_doctor_check_memory_held(const struct takt_doctor_facts *facts,
				   struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];
		bool known =
			(gpu->last.has & (TAKT_HAS_PROCS | TAKT_HAS_MEMORY | TAKT_HAS_RESERVED)) ==
			(TAKT_HAS_PROCS | TAKT_HAS_MEMORY | TAKT_HAS_RESERVED);
		uint64_t mib = gpu->least_held_bytes >> 20;

		if (gpu->facts.has & TAKT_FACT_MIG && gpu->facts.mig_enabled)
			continue;
		if (!known || facts->hides_processes)
			takt_doctor_say(
				report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
				facts->hides_processes
					? "a container does not see other people's processes"
					: "the driver does not tell used memory from reserved, or "
					  "lists no processes");
		else if (gpu->no_procs == gpu->samples && mib >= HELD_MIB)
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_PROCESS,
				"fuser -v /dev/nvidia* shows who has the GPUs open; a reset frees "
				"it when it is nobody",
				"%llu MiB in use, but the driver lists no process",
				(unsigned long long)mib);
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"no memory in use that no process accounts for");
	}
}

/* The driver's PIDs are the machine's: in a container they are nobody's here, or another's. */
static bool pids_mean_nothing(const struct takt_doctor_facts *facts,
			      const struct takt_doctor_gpu *gpu)
{
	return facts->hides_processes ? gpu->last.proc_count > 0
				      : facts->other_namespace && gpu->dead_procs > 0;
}

void takt_doctor_check_dead_process(const struct takt_doctor_facts *facts,
				    struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_doctor_gpu *gpu = &facts->gpu[i];

		if (!gpu->procs_checked)
			continue;
		if (pids_mean_nothing(facts, gpu))
			takt_doctor_say(report, TAKT_DOCTOR_UNKNOWN, 1ull << i, TAKT_DO_NONE, NULL,
					"processes of the driver are not in this PID namespace; "
					"takt doctor outside of the container can tell");
		else if (gpu->dead_procs)
			takt_doctor_say(
				report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_PROCESS,
				"end its parent, or those that share its GPU memory; else reset "
				"the GPU",
				"%u process%s (first %d) with a context on the GPU %s dead",
				gpu->dead_procs, gpu->dead_procs == 1 ? "" : "es", gpu->dead_pid,
				gpu->dead_procs == 1 ? "is" : "are");
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"every process that the driver lists is alive");
	}
}

/* EXCLUSIVE_PROCESS is what MPS wants and often leaves behind; the second program then fails with
 * "all CUDA-capable devices are busy". https://docs.nvidia.com/deploy/mps */
void takt_doctor_check_compute_mode(const struct takt_doctor_facts *facts,
				    struct takt_doctor_report *report)
{
	TAKT_EACH_GPU (i, facts) {
		const struct takt_gpu_board *board = &facts->gpu[i].board;

		if (!(board->has & TAKT_BOARD_COMPUTE_MODE))
			continue;
		if (board->compute_mode == TAKT_COMPUTE_PROHIBITED)
			takt_doctor_say(report, TAKT_DOCTOR_WARNING, 1ull << i, TAKT_DO_HOST,
					"nvidia-smi -c DEFAULT",
					"compute mode PROHIBITED: no CUDA program "
					"can use it");
		else if (board->compute_mode != TAKT_COMPUTE_DEFAULT)
			takt_doctor_say(
				report, TAKT_DOCTOR_INFO, 1ull << i, TAKT_DO_NONE, NULL,
				"compute mode EXCLUSIVE: one process at a time (MPS wants it so)");
		else
			takt_doctor_say(report, TAKT_DOCTOR_PASS, 1ull << i, TAKT_DO_NONE, NULL,
					"open to all programs");
	}
}
