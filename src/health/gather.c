/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's collector: decides whether the driver may be asked, and asks it. */
#include "health/gather.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/proc_stat.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/nvml_find.h"
#include "device/pci_id.h"
#include "health/rooted.h"

enum {
	SAMPLES = 5,
	INTERVAL_MS = 200,
	SAMPLE_S = 10, /* one that takes longer hangs */
	BOARDS_S = 60,
	CACHE_BYTES = 4 * 1024 * 1024, /* of the loader */
};

/* Whether asking would change something: wake a GPU, load the module. */
static enum takt_doctor_asked may_ask(const struct takt_doctor_facts *facts)
{
	uint32_t ours = 0;

	for (uint32_t i = 0; i < facts->pci_count; i++) {
		if (facts->pci[i].asleep)
			return TAKT_ASKED_ASLEEP;
		ours += strcmp(facts->pci[i].driver, "vfio-pci") != 0;
	}
	return ours && !(facts->has & TAKT_DOCTOR_KERNEL_MODULE) ? TAKT_ASKED_NO_MODULE
								 : TAKT_ASKED_YES;
}

static enum takt_doctor_asked why_not(const struct takt_err *err)
{
	if (err->rc == -ETIMEDOUT)
		return TAKT_ASKED_HANGS;
	return err->vendor == 0 && err->rc == -TAKT_E_UNAVAILABLE ? TAKT_ASKED_NO_LIB
								  : TAKT_ASKED_FAILED;
}

static void sample_all(struct takt_machine *machine, struct takt_doctor_facts *facts)
{
	uint64_t before[TAKT_DEVICE_MAX_GPUS] = {0};
	struct takt_mono deadline;
	struct takt_gpu_reading r;

	for (uint32_t i = 0; i < facts->gpu_count; i++)
		before[i] = takt_machine_reading(machine, i, &r) == 0 ? r.seq : 0;
	takt_machine_sample(machine, UINT32_MAX);
	deadline = takt_mono_add(takt_mono_now(takt_sys_real()), SAMPLE_S * TAKT_NS_PER_S);
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		struct takt_doctor_gpu *gpu = &facts->gpu[i];

		gpu->silent = gpu->silent ||
			      takt_machine_wait(machine, i, before[i], deadline) < 0 ||
			      takt_machine_reading(machine, i, &r) < 0;
		if (!gpu->silent)
			takt_doctor_see(gpu, &r);
	}
}

static void sleep_ms(uint32_t ms)
{
	struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static bool is_dead(int32_t pid)
{
	char path[64], line[1024];
	struct takt_proc_stat stat;
	struct takt_proc_id id;

	if (takt_proc_identify(pid, &id, NULL) == -ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return takt_rooted_text("", path, line, sizeof(line)) &&
	       takt_proc_stat_parse(line, &stat) == 0 && stat.state == 'Z';
}

/* Twice, since a process may end between the driver's answer and the kernel's. */
static void look_for_dead(struct takt_doctor_gpu *gpu, const struct takt_gpu_reading *before)
{
	gpu->procs_checked = true;
	for (uint32_t i = 0; i < before->proc_count; i++) {
		int32_t pid = before->procs[i].pid;

		if (!is_dead(pid))
			continue;
		for (uint32_t k = 0; k < gpu->last.proc_count; k++) {
			if (gpu->last.procs[k].pid != pid)
				continue;
			if (gpu->dead_procs++ == 0)
				gpu->dead_pid = pid;
		}
	}
}

static void watch(struct takt_machine *machine, const struct takt_gather *gather,
		  struct takt_doctor_facts *facts)
{
	uint32_t samples = gather->samples ? gather->samples : SAMPLES;
	uint32_t interval_ms = gather->interval_ms ? gather->interval_ms : INTERVAL_MS;
	struct takt_gpu_reading *first = takt_calloc(facts->gpu_count + 1, sizeof(*first));

	for (uint32_t i = 0; i < samples; i++) {
		if (i > 0)
			sleep_ms(interval_ms);
		sample_all(machine, facts);
		for (uint32_t k = 0; first && i == 0 && k < facts->gpu_count; k++)
			first[k] = facts->gpu[k].last;
	}
	for (uint32_t k = 0; first && k < facts->gpu_count; k++)
		if (first[k].has & TAKT_HAS_PROCS && facts->gpu[k].last.has & TAKT_HAS_PROCS)
			look_for_dead(&facts->gpu[k], &first[k]);
	takt_free(first);
}

/* Boards are in the driver's order, GPUs in that of the bus. */
static uint32_t place_of(const struct takt_doctor_facts *facts, const struct takt_gpu_board *board)
{
	for (uint32_t i = 0; i < facts->gpu_count; i++)
		if (board->pci_bus_id[0] && facts->gpu[i].facts.has & TAKT_FACT_PCI &&
		    takt_pci_id_compare(facts->gpu[i].facts.pci_bus_id, board->pci_bus_id) == 0)
			return i;
	return facts->gpu_count;
}

static void take_boards(const struct takt_gpu_boards *boards, struct takt_doctor_facts *facts)
{
	for (uint32_t a = 0; a < boards->count; a++) {
		uint32_t i = place_of(facts, &boards->at[a]);

		if (i == facts->gpu_count)
			continue;
		facts->gpu[i].board = boards->at[a];
		facts->gpu[i].board_known = true;
		memset(facts->gpu[i].board.peer, TAKT_PEER_UNKNOWN,
		       sizeof(facts->gpu[i].board.peer));
		for (uint32_t b = 0; b < boards->count; b++) {
			uint32_t j = place_of(facts, &boards->at[b]);

			if (j < facts->gpu_count)
				facts->gpu[i].board.peer[j] = boards->at[a].peer[b];
		}
	}
}

static void take_facts(const struct takt_machine *machine, struct takt_doctor_facts *facts)
{
	facts->info = *takt_machine_info(machine);
	facts->gpu_count = facts->info.gpu_count;
	/* The simulated driver lists all processes to everybody; where they are it does not say. */
	facts->in_container = facts->in_container && !facts->info.simulated;
	facts->hides_processes = facts->hides_processes && !facts->info.simulated;
	for (uint32_t i = 0; i < facts->gpu_count; i++) {
		facts->gpu[i].facts = *takt_machine_facts(machine, i);
		for (uint32_t j = 0; j < facts->gpu_count; j++)
			facts->nvlinks[i][j] = takt_machine_link(machine, i, j).nvlinks;
	}
}

/* Whether the loader finds the library without the caller's LD_LIBRARY_PATH: it is in the cache, or
 * where it looks anyway. */
static bool loader_finds_library(const char *root)
{
	static const char *const folders[] = {"/lib64/", "/usr/lib64/", "/lib/", "/usr/lib/"};
	char *cache = takt_alloc(CACHE_BYTES), path[64];
	size_t len = cache ? takt_rooted_bytes(root, "/etc/ld.so.cache", cache, CACHE_BYTES) : 0;
	bool found = len > 0 && memmem(cache, len, TAKT_NVML_LIBRARY, sizeof(TAKT_NVML_LIBRARY));

	takt_free(cache);
	for (size_t i = 0; !found && i < TAKT_ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), "%s%s", folders[i], TAKT_NVML_LIBRARY);
		found = takt_rooted_exists(root, path);
	}
	return found;
}

static void look_for_library(const struct takt_gather *gather, struct takt_doctor_facts *facts)
{
	if (gather->nvml_path || loader_finds_library(gather->root) ||
	    !takt_nvml_find(gather->library_path, facts->own_library, sizeof(facts->own_library)))
		facts->own_library[0] = '\0';
}

static void ask(const struct takt_gather *gather, struct takt_doctor_facts *facts)
{
	char sysfs[4096];
	struct takt_machine_config config = {.source = TAKT_SOURCE_NVML,
					     .nvml_path = gather->nvml_path,
					     .counts_errors = true,
					     .sysfs_root = sysfs};
	struct takt_machine *machine = NULL;
	struct takt_gpu_boards *boards = NULL;
	struct takt_err err = {0};

	snprintf(sysfs, sizeof(sysfs), "%s/sys", gather->root);
	err.rc = takt_machine_open(&config, &machine, &err);
	if (err.rc < 0) {
		facts->asked = why_not(&err);
		facts->open_code = err.vendor;
		takt_strcpy(facts->open_error, sizeof(facts->open_error), err.msg);
		return;
	}
	take_facts(machine, facts);
	look_for_library(gather, facts);
	watch(machine, gather, facts);
	if (takt_gpu_boards_read(gather->nvml_path, BOARDS_S * TAKT_NS_PER_S, &boards, NULL) == 0)
		take_boards(boards, facts);
	takt_free(boards);
	takt_machine_close(machine);
}

/* Simulated boards are on no bus but that of their own faces: another's says nothing of them. */
static bool is_of_this_machine(const struct takt_gather *gather,
			       const struct takt_doctor_facts *facts)
{
	if (!facts->info.simulated || gather->root[0])
		return true;
	for (uint32_t k = 0; k < facts->pci_count; k++)
		for (uint32_t i = 0; i < facts->gpu_count; i++)
			if (takt_pci_id_compare(facts->pci[k].id, facts->gpu[i].facts.pci_bus_id) ==
			    0)
				return true;
	return false;
}

void takt_doctor_gather(const struct takt_gather *gather, struct takt_doctor_facts *ret)
{
	takt_gather_bus(gather->root, ret);
	takt_gather_module(gather->root, ret);
	ret->asked = may_ask(ret);
	if (ret->asked == TAKT_ASKED_YES)
		ask(gather, ret);
	if (is_of_this_machine(gather, ret)) {
		takt_gather_host(gather->root, ret);
		takt_gather_sensors(gather->root, ret);
		takt_gather_containers(gather->root, ret);
	} else {
		ret->has &= ~(uint32_t)(TAKT_DOCTOR_BUS | TAKT_DOCTOR_KERNEL_MODULE);
		ret->pci_count = 0;
	}
	takt_gather_packages(gather, ret);
}
