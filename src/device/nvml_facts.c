/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static facts of one GPU, a step each. A step whose call fails leaves its bit clear; the kernel's
 * sysfs stands in where it knows the same thing, except for simulated boards.
 */
#include <inttypes.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "device/nvml_api.h"
#include "device/sysfs_pci.h"

struct subject {
	struct takt_nvml *nvml;
	const struct takt_nvml_api *api;
	struct takt_nvml_gpu *gpu;
	struct nvml_device *device;
	struct takt_gpu_facts *facts;
};

static void set_text(struct takt_gpu_facts *facts, uint32_t bit, char *field, size_t size,
		     const char *text)
{
	if (text[0] == '\0')
		return;
	takt_strcpy(field, size, text);
	facts->has |= bit;
}

static void read_pci(const struct subject *s)
{
	set_text(s->facts, TAKT_FACT_PCI, s->facts->pci_bus_id, sizeof(s->facts->pci_bus_id),
		 s->gpu->pci_bus_id);
}

static void read_name(const struct subject *s)
{
	char text[NVML_BUFFER_NAME] = "";

	if (s->api->name && s->api->name(s->device, text, sizeof(text)) == NVML_SUCCESS)
		set_text(s->facts, TAKT_FACT_NAME, s->facts->name, sizeof(s->facts->name), text);
}

static void read_uuid(const struct subject *s)
{
	char text[NVML_BUFFER_UUID] = "";

	if (s->api->uuid && s->api->uuid(s->device, text, sizeof(text)) == NVML_SUCCESS)
		set_text(s->facts, TAKT_FACT_UUID, s->facts->uuid, sizeof(s->facts->uuid), text);
}

static void read_serial(const struct subject *s)
{
	char text[NVML_BUFFER_SERIAL] = "";

	if (s->api->serial && s->api->serial(s->device, text, sizeof(text)) == NVML_SUCCESS)
		set_text(s->facts, TAKT_FACT_SERIAL, s->facts->serial, sizeof(s->facts->serial),
			 text);
}

static void read_vbios(const struct subject *s)
{
	char text[NVML_BUFFER_VBIOS] = "";

	if (s->api->vbios && s->api->vbios(s->device, text, sizeof(text)) == NVML_SUCCESS)
		set_text(s->facts, TAKT_FACT_VBIOS, s->facts->vbios, sizeof(s->facts->vbios), text);
	s->gpu->simulated = strstr(s->facts->serial, "TWIN") || strstr(s->facts->vbios, "TWIN");
}

static void read_memory_total(const struct subject *s)
{
	struct nvml_memory memory;

	if (!s->api->memory || s->api->memory(s->device, &memory) != NVML_SUCCESS)
		return;
	s->facts->memory_total_bytes = memory.total;
	s->facts->has |= TAKT_FACT_MEMORY;
}

static void read_minor(const struct subject *s)
{
	if (s->api->minor && s->api->minor(s->device, &s->facts->minor) == NVML_SUCCESS)
		s->facts->has |= TAKT_FACT_MINOR;
}

static void read_compute_cap(const struct subject *s)
{
	int major, minor;

	if (!s->api->compute_cap || s->api->compute_cap(s->device, &major, &minor) != NVML_SUCCESS)
		return;
	s->facts->compute_major = (uint32_t)major;
	s->facts->compute_minor = (uint32_t)minor;
	s->facts->has |= TAKT_FACT_COMPUTE_CAP;
}

static bool any(const unsigned long *set, size_t words)
{
	for (size_t i = 0; i < words; i++)
		if (set[i] != 0)
			return true;
	return false;
}

static bool read_driver_cpus(const struct subject *s)
{
	unsigned long set[TAKT_DEVICE_CPU_WORDS] = {0};

	if (!s->api->cpu_affinity ||
	    s->api->cpu_affinity(s->device, TAKT_DEVICE_CPU_WORDS, set) != NVML_SUCCESS ||
	    !any(set, TAKT_DEVICE_CPU_WORDS))
		return false;
	for (size_t i = 0; i < TAKT_DEVICE_CPU_WORDS; i++)
		s->facts->cpus[i] = set[i];
	return true;
}

static bool sysfs_is_about(const struct subject *s)
{
	return !s->gpu->simulated && (s->facts->has & TAKT_FACT_PCI);
}

static void read_cpus(const struct subject *s)
{
	if (read_driver_cpus(s) ||
	    (sysfs_is_about(s) && takt_sysfs_cpus(s->nvml->sysfs_root, s->facts->pci_bus_id,
						  s->facts->cpus, TAKT_DEVICE_CPU_WORDS)))
		s->facts->has |= TAKT_FACT_CPUS;
}

/* The node nearest to the GPU; a set of several says nothing that a job could be bound to.
 * (nvmlDeviceGetNumaNodeId is another thing: the node that a GPU's own memory forms.) */
static bool read_driver_numa(const struct subject *s)
{
	unsigned long set[4] = {0};
	int32_t node = -1;

	if (!s->api->memory_affinity ||
	    s->api->memory_affinity(s->device, 4, set, NVML_AFFINITY_SCOPE_NODE) != NVML_SUCCESS)
		return false;
	for (int32_t bit = 0; bit < 4 * 64; bit++) {
		if (!(set[bit / 64] >> bit % 64 & 1))
			continue;
		if (node >= 0)
			return false;
		node = bit;
	}
	if (node >= 0)
		s->facts->numa_node = node;
	return node >= 0;
}

static void read_numa(const struct subject *s)
{
	if (read_driver_numa(s) ||
	    (sysfs_is_about(s) &&
	     takt_sysfs_numa(s->nvml->sysfs_root, s->facts->pci_bus_id, &s->facts->numa_node)))
		s->facts->has |= TAKT_FACT_NUMA;
}

static void read_power_limits(const struct subject *s)
{
	uint32_t min, max, normal;

	if (!s->api->power_range || !s->api->power_default ||
	    s->api->power_range(s->device, &min, &max) != NVML_SUCCESS ||
	    s->api->power_default(s->device, &normal) != NVML_SUCCESS)
		return;
	s->facts->power_min_mw = min;
	s->facts->power_max_mw = max;
	s->facts->power_default_mw = normal;
	s->facts->has |= TAKT_FACT_POWER_LIMITS;
}

static int ascending(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Ascending, each clock once; returns how many. */
static uint32_t keep_clocks(uint32_t *mhz, uint32_t count, uint32_t *ret)
{
	uint32_t scratch[TAKT_DEVICE_MAX_CLOCKS];
	uint32_t kept = 0;

	takt_sort_with(mhz, count, sizeof(mhz[0]), scratch, ascending, NULL);
	for (uint32_t i = 0; i < count; i++)
		if (mhz[i] != 0 && (kept == 0 || ret[kept - 1] != mhz[i]))
			ret[kept++] = mhz[i];
	return kept;
}

static void read_mem_clocks(const struct subject *s)
{
	uint32_t mhz[TAKT_DEVICE_MAX_MEM_CLOCKS], count = TAKT_DEVICE_MAX_MEM_CLOCKS;
	struct takt_gpu_facts *facts = s->facts;

	if (!s->api->memory_clocks ||
	    s->api->memory_clocks(s->device, &count, mhz) != NVML_SUCCESS ||
	    count > TAKT_DEVICE_MAX_MEM_CLOCKS)
		return;
	facts->mem_clock_count = keep_clocks(mhz, count, facts->mem_clocks_mhz);
	if (facts->mem_clock_count > 0)
		facts->has |= TAKT_FACT_MEM_CLOCKS;
}

/* At the highest memory clock. */
static void read_sm_clocks(const struct subject *s)
{
	uint32_t mhz[TAKT_DEVICE_MAX_CLOCKS], count = TAKT_DEVICE_MAX_CLOCKS;
	struct takt_gpu_facts *facts = s->facts;

	if (!s->api->graphics_clocks || !(facts->has & TAKT_FACT_MEM_CLOCKS) ||
	    s->api->graphics_clocks(s->device, facts->mem_clocks_mhz[facts->mem_clock_count - 1],
				    &count, mhz) != NVML_SUCCESS ||
	    count > TAKT_DEVICE_MAX_CLOCKS)
		return;
	facts->sm_clock_count = keep_clocks(mhz, count, facts->sm_clocks_mhz);
	if (facts->sm_clock_count > 0)
		facts->has |= TAKT_FACT_SM_CLOCKS;
}

static void read_sm_max(const struct subject *s)
{
	if (s->api->max_clock &&
	    s->api->max_clock(s->device, NVML_CLOCK_SM, &s->facts->sm_max_mhz) == NVML_SUCCESS)
		s->facts->has |= TAKT_FACT_SM_MAX;
}

static void read_thresholds(const struct subject *s)
{
	const struct {
		uint32_t type, has;
		int32_t *ret;
	} thresholds[] = {
		{NVML_THRESHOLD_SLOWDOWN, TAKT_FACT_THROTTLE_TEMP, &s->facts->slowdown_temp_c},
		{NVML_THRESHOLD_GPU_MAX, TAKT_FACT_TEMP_MAX, &s->facts->temp_max_c},
		{NVML_THRESHOLD_MEM_MAX, TAKT_FACT_MEM_TEMP_MAX, &s->facts->mem_temp_max_c},
	};
	uint32_t celsius;

	for (size_t i = 0; s->api->temperature_threshold && i < TAKT_ARRAY_LEN(thresholds); i++) {
		if (s->api->temperature_threshold(s->device, thresholds[i].type, &celsius) !=
		    NVML_SUCCESS)
			continue;
		*thresholds[i].ret = (int32_t)celsius;
		s->facts->has |= thresholds[i].has;
	}
}

static void read_pcie_max(const struct subject *s)
{
	if (s->api->pcie_gen_max && s->api->pcie_width_max &&
	    s->api->pcie_gen_max(s->device, &s->facts->pcie_gen_max) == NVML_SUCCESS &&
	    s->api->pcie_width_max(s->device, &s->facts->pcie_width_max) == NVML_SUCCESS)
		s->facts->has |= TAKT_FACT_PCIE_MAX;
}

/* "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb". */
static const char *profile_in(const char *name)
{
	static const char before[] = " MIG ";
	const char *at = strstr(name, before);

	return at ? at + sizeof(before) - 1 : "";
}

static int32_t id_of(nvmlDeviceGetGpuInstanceId_fn *ask, struct nvml_device *mig)
{
	uint32_t id;

	return ask && ask(mig, &id) == NVML_SUCCESS && id <= INT32_MAX ? (int32_t)id : -1;
}

/* Only what a job could be given: known by its UUID, its kind and its size. */
static bool read_instance(const struct subject *s, struct nvml_device *mig,
			  struct takt_gpu_instance *ret)
{
	struct nvml_device_attributes attributes;
	char uuid[NVML_BUFFER_UUID] = "", name[NVML_BUFFER_NAME] = "";

	if (!s->api->uuid || s->api->uuid(mig, uuid, sizeof(uuid)) != NVML_SUCCESS ||
	    !s->api->name || s->api->name(mig, name, sizeof(name)) != NVML_SUCCESS ||
	    s->api->mig_attributes(mig, &attributes) != NVML_SUCCESS)
		return false;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), uuid);
	takt_strcpy(ret->profile, sizeof(ret->profile), profile_in(name));
	ret->slices = attributes.compute_instance_slices;
	ret->memory_bytes = attributes.memory_mib << 20;
	ret->gi = id_of(s->api->mig_gi, mig);
	ret->ci = id_of(s->api->mig_ci, mig);
	return ret->uuid[0] && ret->profile[0] && ret->slices > 0;
}

static void read_instances(const struct subject *s)
{
	struct takt_gpu_facts *facts = s->facts;
	uint32_t most = 0;

	if (!s->api->mig_max || !s->api->mig_device || !s->api->mig_attributes ||
	    s->api->mig_max(s->device, &most) != NVML_SUCCESS)
		return;
	for (uint32_t i = 0; i < most && facts->instance_count < TAKT_DEVICE_MAX_INSTANCES; i++) {
		struct nvml_device *mig = NULL;

		if (s->api->mig_device(s->device, i, &mig) == NVML_SUCCESS &&
		    read_instance(s, mig, &facts->instances[facts->instance_count]))
			facts->instance_count++;
	}
}

static void read_mig(const struct subject *s)
{
	uint32_t current, pending;

	if (!s->api->mig_mode || s->api->mig_mode(s->device, &current, &pending) != NVML_SUCCESS)
		return;
	s->facts->mig_enabled = current == NVML_FEATURE_ENABLED;
	s->facts->has |= TAKT_FACT_MIG;
	s->facts->instance_count = s->facts->kind_count = 0;
	s->facts->mig_layout[0] = '\0';
	if (s->facts->mig_enabled)
		read_instances(s);
	if (s->facts->mig_enabled)
		takt_nvml_read_layout(s->nvml, (uint32_t)(s->gpu - s->nvml->gpus), s->facts);
}

void takt_nvml_mig_facts(struct takt_source *source, uint32_t gpu, struct takt_gpu_facts *facts)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	struct subject subject = {
		.nvml = nvml, .api = &nvml->api, .gpu = &nvml->gpus[gpu], .facts = facts};

	facts->mig_layout[0] = '\0'; /* what cannot be read now is no way back */
	if (takt_nvml_attach(nvml, gpu) != NVML_SUCCESS)
		return;
	subject.device = nvml->gpus[gpu].device;
	read_mig(&subject);
}

static void read_ports(const struct subject *s)
{
	takt_nvml_read_ports(s->nvml, (uint32_t)(s->gpu - s->nvml->gpus));
}

/* vbios before what asks whether the board is simulated; names and ids first, since a hanging board
 * is to be named. */
static const struct {
	void (*read)(const struct subject *);
	bool for_view; /* asked for a view, too */
} steps[] = {
	{read_pci, true},	   {read_name, true},	       {read_uuid, true},
	{read_serial, true},	   {read_vbios, true},	       {read_minor, false},
	{read_memory_total, true}, {read_compute_cap, false},  {read_cpus, false},
	{read_numa, true},	   {read_power_limits, false}, {read_mem_clocks, false},
	{read_sm_clocks, false},   {read_sm_max, true},	       {read_thresholds, true},
	{read_pcie_max, false},	   {read_mig, false},	       {read_ports, false},
};

bool takt_nvml_facts(struct takt_source *source, uint32_t gpu, uint32_t step,
		     struct takt_gpu_facts *facts)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	struct subject subject = {
		.nvml = nvml, .api = &nvml->api, .gpu = &nvml->gpus[gpu], .facts = facts};

	if (step >= TAKT_ARRAY_LEN(steps) || takt_nvml_attach(nvml, gpu) != NVML_SUCCESS)
		return false;
	subject.device = nvml->gpus[gpu].device;
	if (steps[step].for_view || !nvml->for_view)
		steps[step].read(&subject);
	return true;
}
