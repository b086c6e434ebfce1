/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixteen threads on one machine, half of them setters, through the NVML calls alone: readings,
 * settings, lists, fields, samples, event sets, GPM, initialisation. Built by check_threads.py with
 * ThreadSanitizer, which says whether they race. Ends with 0 if all went well otherwise.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "nvml_entry.h"

enum {
	THREADS = 16,
	GPUS = 2,
};

static _Atomic uint64_t failures, set;
static unsigned rounds;

static void expect(int rc, int code, const char *what)
{
	if (rc == code)
		return;
	failures++;
	fprintf(stderr, "%s answers %d\n", what, rc);
}

#define DO(call) expect(call, NVML_SUCCESS, #call)

static void change(struct nvml_device *gpu, unsigned round)
{
	uint32_t mhz = 345 + 15 * (round % 40);

	DO(nvmlDeviceSetGpuLockedClocks(gpu, mhz, mhz));
	DO(nvmlDeviceSetPowerManagementLimit(gpu, 300000 + 1000 * (round % 100)));
	DO(nvmlDeviceSetAccountingMode(gpu, round % 2));
	DO(nvmlDeviceResetGpuLockedClocks(gpu));
	set += 4;
}

static void look(struct nvml_device *gpu, uint64_t *energy_mj)
{
	struct nvml_field_value field = {.field_id = NVML_FI_POWER_INSTANT};
	struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_WORD};
	struct nvml_process_info infos[4];
	struct nvml_sample samples[10];
	uint32_t value, type, count = 10, processes = 4;
	uint64_t now_mj;

	DO(nvmlDeviceGetClockInfo(gpu, NVML_CLOCK_SM, &value));
	DO(nvmlDeviceGetMemoryInfo_v2(gpu, &memory));
	DO(nvmlDeviceGetFieldValues(gpu, 1, &field));
	DO(nvmlDeviceGetSamples(gpu, NVML_SAMPLES_TOTAL_POWER, 0, &type, &count, samples));
	DO(nvmlDeviceGetComputeRunningProcesses_v3(gpu, &processes, infos));
	DO(nvmlDeviceGetTotalEnergyConsumption(gpu, &now_mj));
	if (now_mj < *energy_mj)
		expect(1, 0, "energy that goes back");
	*energy_mj = now_mj;
}

static void come_and_go(struct nvml_device *gpu, struct nvml_event_set *all)
{
	struct nvml_gpm_sample *sample = NULL;
	struct nvml_event_set *own = NULL;
	struct nvml_event_data data;

	DO(nvmlInit_v2());
	DO(nvmlEventSetCreate(&own));
	DO(nvmlDeviceRegisterEvents(gpu, NVML_EVENT_XID_CRITICAL, own));
	DO(nvmlDeviceRegisterEvents(gpu, NVML_EVENT_XID_CRITICAL, all));
	expect(nvmlEventSetWait_v2(own, &data, 0), NVML_ERROR_TIMEOUT, "a wait for nothing");
	expect(nvmlEventSetWait_v2(all, &data, 0), NVML_ERROR_TIMEOUT, "a shared wait");
	DO(nvmlGpmSampleAlloc(&sample));
	DO(nvmlGpmSampleGet(gpu, sample));
	DO(nvmlGpmSampleFree(sample));
	DO(nvmlEventSetFree(own));
	DO(nvmlShutdown());
}

struct worker {
	pthread_t thread;
	struct nvml_event_set *events;
	bool setter;
};

static void *work(void *arg)
{
	const struct worker *worker = arg;
	uint64_t energy_mj[GPUS] = {0};

	for (unsigned i = 0; i < rounds; i++) {
		struct nvml_device *gpu = NULL;
		DO(nvmlDeviceGetHandleByIndex_v2(i % GPUS, &gpu));
		if (worker->setter)
			change(gpu, i);
		look(gpu, &energy_mj[i % GPUS]);
		come_and_go(gpu, worker->events);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[THREADS];
	struct nvml_event_set *events = NULL;

	rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
	DO(nvmlInit_v2());
	DO(nvmlEventSetCreate(&events));
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.setter = i % 2 == 0, .events = events};
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	DO(nvmlEventSetFree(events));
	DO(nvmlShutdown());
	printf("%llu changes, %llu failures\n", (unsigned long long)set,
	       (unsigned long long)failures);
	return failures != 0;
}
