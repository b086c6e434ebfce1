/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt-twin state: what is true on a simulated machine, including what no driver tells: which clock
 * lock is in force, and how often setters were called. Tests judge takt by it.
 */
#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"
#include "takt_twin.h"
#include "twin_fault.h"
#include "twin_mig.h"
#include "twin_physics.h"

#define MIB 1048576ull

static const struct {
	uint64_t bit;
	const char *name;
} reasons[] =
	{
		{NVML_REASON_GPU_IDLE, "idle"},
		{NVML_REASON_APPLICATIONS_CLOCKS, "app-clocks"},
		{NVML_REASON_SW_POWER_CAP, "power-cap"},
		{NVML_REASON_HW_SLOWDOWN, "hw-slowdown"},
		{NVML_REASON_SW_THERMAL, "sw-thermal"},
		{NVML_REASON_HW_THERMAL, "hw-thermal"},
		{NVML_REASON_HW_POWER_BRAKE, "power-brake"},
},
  fault_names[] = {
	  {TWIN_FAULT_LOST, "lost"},
	  {TWIN_FAULT_HANG, "hang"},
	  {TWIN_FAULT_SLOW, "slow"},
	  {TWIN_FAULT_PERMISSION, "permission"},
	  {TWIN_FAULT_RESTORE_REFUSED, "driver-restore-refused"},
};

static void json_names(const char *key, uint64_t reason_bits, uint32_t fault_bits)
{
	const char *gap = "";

	printf("\"%s\":[", key);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reasons); i++) {
		if (!(reason_bits & reasons[i].bit))
			continue;
		printf("%s\"%s\"", gap, reasons[i].name);
		gap = ",";
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(fault_names); i++) {
		if (!(fault_bits & fault_names[i].bit))
			continue;
		printf("%s\"%s\"", gap, fault_names[i].name);
		gap = ",";
	}
	printf("],");
}

static void json_processes(const struct twin_gpu *gpu)
{
	const char *gap = "";

	printf("\"processes\":[");
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		if (!twin_load_alive(load))
			continue;
		printf("%s{\"pid\":%d,\"profile\":\"%s\",\"memory_mib\":%llu,\"work_ms\":%llu}",
		       gap, (int)load->pid, load->profile.name,
		       (unsigned long long)(load->memory_bytes / MIB),
		       (unsigned long long)(load->work_ns / 1000000));
		gap = ",";
	}
	printf("]");
}

/* MIG devices, by whose UUIDs workloads are started in them. */
static void json_instances(const struct twin_file *file, uint32_t index, const struct twin_gpu *gpu)
{
	const struct twin_board *board = &file->machine.board;
	struct twin_mig_device mig;
	char uuid[TWIN_MIG_UUID], name[32];
	const char *gap = "";
	uint32_t at = 0;

	printf("\"mig\":%s,\"mig_devices\":[", gpu->mig_mode ? "true" : "false");
	while (twin_mig_next(gpu, board, &at, &mig)) {
		twin_mig_uuid(&file->machine.gpus[index], mig.id, mig.compute_id, uuid);
		twin_mig_name(board, mig.profile, mig.slices, name, sizeof(name));
		printf("%s{\"gpu_instance\":%u,\"compute_instance\":%u,\"profile\":\"%s\","
		       "\"uuid\":\"%s\"}",
		       gap, mig.id, mig.compute_id, name, uuid);
		gap = ",";
	}
	printf("],");
}

/* Faults that are still to come. */
static void json_planned(const struct twin_gpu *gpu)
{
	printf("\"planned\":[");
	for (uint64_t i = 0; i < gpu->plan_count; i++)
		printf("%s{\"in_ms\":%llu,\"fault\":\"%s\",\"value\":%llu}", i ? "," : "",
		       (unsigned long long)((gpu->plan[i].at_ns - gpu->at_ns) / 1000000),
		       twin_fault_name(gpu->plan[i].trouble),
		       (unsigned long long)gpu->plan[i].value);
	printf("],");
}

static void json_gpu(const struct twin_file *file, uint32_t index, const struct twin_gpu *gpu)
{
	const struct twin_board *board = &file->machine.board;

	printf("{\"index\":%u,\"uuid\":\"%s\",\"name\":\"%s\",", index,
	       file->machine.gpus[index].uuid, board->name);
	printf("\"sm_mhz\":%u,\"mem_mhz\":%u,\"locked\":%s,\"lock_min_mhz\":%u,\"lock_max_mhz\":%"
	       "u,",
	       gpu->now_mhz, gpu->now_memory_mhz, gpu->lock_max_mhz ? "true" : "false",
	       gpu->lock_min_mhz, gpu->lock_max_mhz);
	printf("\"memory_locked\":%s,\"application_mhz\":%u,",
	       gpu->memory_lock_max_mhz ? "true" : "false", gpu->application_mhz);
	printf("\"limit_mw\":%u,\"default_limit_mw\":%u,\"power_mw\":%u,\"power_average_mw\":%u,",
	       gpu->limit_mw, board->power_default_mw, gpu->now_uw / 1000,
	       twin_physics_power_reading_mw(gpu, board, true));
	printf("\"energy_mj\":%llu,\"temp_c\":%d,\"util_pct\":%u,\"memory_util_pct\":%u,",
	       (unsigned long long)(gpu->counter_nj / 1000000), (int)(gpu->temp_uc / 1000000),
	       twin_physics_util_percent(gpu), twin_physics_memory_util_percent(gpu));
	printf("\"memory_used_mib\":%llu,\"memory_total_mib\":%u,",
	       (unsigned long long)(twin_physics_memory_used(gpu) / MIB), board->memory_mib);
	printf("\"pstate\":%u,\"persistence\":%s,\"setter_calls\":%llu,\"setter_refusals\":%llu,",
	       gpu->now_pstate, gpu->persistence ? "true" : "false",
	       (unsigned long long)gpu->setter_calls, (unsigned long long)gpu->setter_refusals);
	json_instances(file, index, gpu);
	printf("\"fan_pct\":%u,\"airflow_permille\":%u,", gpu->now_fan_percent,
	       gpu->airflow_permille);
	json_names("reasons", gpu->now_reasons, 0);
	json_names("faults", 0, gpu->faults);
	json_planned(gpu);
	json_processes(gpu);
	printf("}");
}

static void json(struct twin_map *map)
{
	const struct twin_file *file = twin_map_file(map);
	struct twin_gpu gpu;

	printf("{\"simulated\":true,\"machine\":\"%s\",\"driver\":\"%s\",\"seed\":%u,\"boot_ns\":%"
	       "llu,\"now_ns\":%llu,\"speed\":%llu,\"gpus\":[",
	       file->machine.name, file->machine.driver_version, file->seed,
	       (unsigned long long)twin_now_ns(), (unsigned long long)twin_map_now_ns(map),
	       (unsigned long long)twin_clock_speed(&file->clock));
	for (uint32_t i = 0; i < file->machine.gpu_count; i++) {
		twin_read(map, i, &gpu);
		printf("%s\n", i ? "," : "");
		json_gpu(file, i, &gpu);
	}
	printf("\n]}\n");
}

static void lock_text(const struct twin_gpu *gpu, char *text, size_t size)
{
	if (gpu->lock_max_mhz)
		snprintf(text, size, "%u-%u", gpu->lock_min_mhz, gpu->lock_max_mhz);
	else
		snprintf(text, size, "%s", "none");
}

static void row(const struct twin_file *file, uint32_t index, const struct twin_gpu *gpu)
{
	char lock[32];

	lock_text(gpu, lock, sizeof(lock));
	printf("%-3u %4u %-10s %5u/%-4u %3d %3u%% %6llu %12.3f %7llu ", index, gpu->now_mhz, lock,
	       gpu->now_uw / 1000000, gpu->limit_mw / 1000, (int)(gpu->temp_uc / 1000000),
	       twin_physics_util_percent(gpu),
	       (unsigned long long)(twin_physics_memory_used(gpu) / MIB),
	       (double)(gpu->counter_nj / 1000000) / 1e3, (unsigned long long)gpu->setter_calls);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reasons); i++) {
		if (gpu->now_reasons & reasons[i].bit)
			printf(" %s", reasons[i].name);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(fault_names); i++) {
		if (gpu->faults & fault_names[i].bit)
			printf(" FAULT:%s", fault_names[i].name);
	}
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (twin_load_alive(&gpu->loads[i]))
			printf(" %s:%d", gpu->loads[i].profile.name, (int)gpu->loads[i].pid);
	}
	printf("\n");
}

static void table(struct twin_map *map)
{
	const struct twin_file *file = twin_map_file(map);
	struct twin_gpu gpu;

	printf("SIMULATED %s: %u x %s\n", file->machine.name, file->machine.gpu_count,
	       file->machine.board.name);
	printf("GPU   SM LOCK          W/LIMIT   C UTIL    MIB            J SETTERS  STATE\n");
	for (uint32_t i = 0; i < file->machine.gpu_count; i++) {
		twin_read(map, i, &gpu);
		row(file, i, &gpu);
	}
}

static int run_state(int argc, char **argv, struct takt_err *err)
{
	static const struct option known[] = {
		{"machine", required_argument, NULL, 'm'}, {"json", no_argument, NULL, 'j'}, {0}};
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	const char *machine = NULL;
	bool as_json = false;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'm')
			machine = optarg;
		else if (c == 'j')
			as_json = true;
		else
			return twin_bad_option(&twin_verb_state, argv, err);
	}
	if (optind != argc)
		return takt_err_set(err, -TAKT_E_USAGE, "takes no argument '%s'", argv[optind]);
	rc = twin_open_machine(machine, &map, err);
	if (rc < 0)
		return rc;
	if (as_json)
		json(map);
	else
		table(map);
	return 0;
}

const struct twin_verb twin_verb_state = {
	.name = "state",
	.usage = "[--json] [--machine FILE]",
	.summary = "Show what is true on a simulated machine",
	.help = "Shows what no driver tells, too: the clock locks in force and how often setters "
		"were\n"
		"called. A lost or hanging GPU is shown like any other.\n",
	.run = run_state,
};
