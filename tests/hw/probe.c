/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests/hw/run asks of a GPU machine: read-only, through takt's own device room, and call by
 * call through the driver's library to time it. It never includes device_set.h and looks up no
 * function that sets anything beyond what the room itself looks up and never calls here.
 *
 *	probe status | topo | record SECONDS | latency CALLS | paced SECONDS | energy SECONDS | gpm
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/sys.h"
#include "device/device.h"
#include "device/nvml_api.h"

enum {
	MAX_TIMES = 100000,
};

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

static int complain(const struct takt_err *err)
{
	char text[512];

	fprintf(stderr, "probe: %s\n", takt_err_text(err, text, sizeof(text)));
	return 1;
}

static struct takt_machine *open_machine(void)
{
	struct takt_machine_config config = {.source = TAKT_SOURCE_NVML};
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	if (takt_machine_open(&config, &machine, &err) < 0)
		complain(&err);
	return machine;
}

static void print_head(const struct takt_machine_info *info)
{
	printf("driver %s, NVML %s, CUDA %d, %u GPUs%s\n", info->driver_version, info->nvml_version,
	       (int)info->cuda_version, info->gpu_count,
	       info->simulated ? ", simulated: nothing here was measured on a GPU" : "");
}

static void print_has(const char *what, uint32_t has, uint32_t of)
{
	printf("  %s: %08x of %08x\n", what, has & of, of);
}

static void print_gpu(struct takt_machine *machine, uint32_t gpu)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(machine, gpu);
	struct takt_gpu_reading r = {0};

	takt_machine_sample(machine, gpu);
	if (takt_machine_wait(machine, gpu, 0, (struct takt_mono){now_ns() + 10 * TAKT_NS_PER_S}) <
		    0 ||
	    takt_machine_reading(machine, gpu, &r) < 0) {
		printf("GPU %u did not answer\n", gpu);
		return;
	}
	printf("GPU %u %s %s\n", gpu, facts->name, facts->pci_bus_id);
	print_has("facts", facts->has, (1u << 15) - 1);
	print_has("readings", r.has, (1u << 18) - 1);
	printf("  rc %d, lost %d\n", r.last_rc, r.lost);
	printf("  SM %u MHz (max %u, %u clocks), memory %u MHz, %.1f W of %.1f W (enforced %.1f "
	       "W)\n",
	       r.sm_mhz, facts->sm_max_mhz, facts->sm_clock_count, r.mem_mhz, r.power_mw / 1e3,
	       r.power_limit_mw / 1e3, r.power_enforced_mw / 1e3);
	printf("  %d C, util %u%% / %u%%, memory used %" PRIu64 " free %" PRIu64
	       " reserved %" PRIu64 " of %" PRIu64 "\n",
	       r.temp_c, r.gpu_util_pct, r.mem_util_pct, r.mem_used_bytes, r.mem_free_bytes,
	       r.mem_reserved_bytes, facts->memory_total_bytes);
	printf("  energy %" PRIu64 " mJ, throttle %#" PRIx64
	       ", P%u, PCIe gen %u x%u, %u processes\n",
	       r.energy_mj, r.throttle, r.pstate, r.pcie_gen, r.pcie_width, r.proc_count);
}

static int do_status(void)
{
	struct takt_machine *machine = open_machine();

	if (!machine)
		return 1;
	print_head(takt_machine_info(machine));
	for (uint32_t g = 0; g < takt_machine_info(machine)->gpu_count; g++)
		print_gpu(machine, g);
	takt_machine_close(machine);
	return 0;
}

static void print_link(struct takt_gpu_link link)
{
	static const char *const kinds[] = {"?", "SYS", "NODE", "PHB", "PXB", "PIX", "BOARD"};

	if (link.nvlinks > 0)
		printf("\tNV%u/%s", link.nvlinks, kinds[link.pcie]);
	else
		printf("\t%s", kinds[link.pcie]);
}

static int do_topo(void)
{
	struct takt_machine *machine = open_machine();
	uint32_t n;

	if (!machine)
		return 1;
	n = takt_machine_info(machine)->gpu_count;
	print_head(takt_machine_info(machine));
	for (uint32_t a = 0; a < n; a++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(machine, a);

		printf("GPU%u", a);
		for (uint32_t b = 0; b < n; b++) {
			if (a == b)
				printf("\tX");
			else
				print_link(takt_machine_link(machine, a, b));
		}
		if (facts->has & TAKT_FACT_NUMA)
			printf("\tnode %d", facts->numa_node);
		printf("\tcpus");
		for (int w = 0; w < 4; w++)
			printf(" %016" PRIx64, facts->cpus[w]);
		printf("\n");
	}
	takt_machine_close(machine);
	return 0;
}

static int do_record(unsigned seconds)
{
	struct takt_record_options options = {
		.samples = seconds * 10, .interval_ms = 100, .anonymous = true};
	struct takt_machine *machine = open_machine();
	struct takt_err err = {0};
	int rc;

	if (!machine)
		return 1;
	rc = takt_machine_record(machine, &options, stdout, &err);
	takt_machine_close(machine);
	return rc < 0 ? complain(&err) : 0;
}

/* ---- call by call ---- */

static struct takt_nvml_api api;
static struct nvml_device *device;

static void say_if_simulated(void)
{
	char serial[NVML_BUFFER_SERIAL] = "";

	if (api.handle_by_index(0, &device) == NVML_SUCCESS && api.serial &&
	    api.serial(device, serial, sizeof(serial)) == NVML_SUCCESS && strstr(serial, "TWIN"))
		printf("simulated: nothing here was measured on a GPU\n");
}

static int start_driver(void)
{
	struct takt_err err = {0};
	uint64_t begin = now_ns();
	int code;

	if (takt_nvml_load(NULL, &api, &err) < 0)
		return complain(&err);
	code = api.init();
	printf("init: code %d, %.3f ms\n", code, (double)(now_ns() - begin) / 1e6);
	if (code == NVML_SUCCESS)
		say_if_simulated();
	return code != NVML_SUCCESS;
}

static int by_value(const void *a, const void *b, void *ctx)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_times(const char *name, int code, uint64_t *ns, size_t n)
{
	if (n == 0 || takt_sort(ns, n, sizeof(ns[0]), by_value, NULL) < 0)
		return;
	printf("%-28s %4d %10.2f %10.2f %10.2f %10.2f", name, code, (double)ns[0] / 1e3,
	       (double)ns[n / 2] / 1e3, (double)ns[(n - 1) * 99 / 100] / 1e3,
	       (double)ns[n - 1] / 1e3);
}

/* What this thread has run: a call that waits in the driver may cost its time or not. */
static uint64_t ran_ns(void)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (uint64_t)at.tv_sec * TAKT_NS_PER_S + (uint64_t)at.tv_nsec;
}

static int call_sm_clock(void)
{
	uint32_t mhz;
	return api.clock ? api.clock(device, NVML_CLOCK_SM, &mhz) : -1;
}
static int call_mem_clock(void)
{
	uint32_t mhz;
	return api.clock ? api.clock(device, NVML_CLOCK_MEM, &mhz) : -1;
}
static int call_power(void)
{
	uint32_t mw;
	return api.power ? api.power(device, &mw) : -1;
}
static int call_energy(void)
{
	uint64_t mj;
	return api.energy ? api.energy(device, &mj) : -1;
}
static int call_temperature(void)
{
	uint32_t c;
	return api.temperature ? api.temperature(device, NVML_TEMPERATURE_GPU, &c) : -1;
}
static int call_utilization(void)
{
	struct nvml_utilization u;
	return api.utilization ? api.utilization(device, &u) : -1;
}
static int call_memory(void)
{
	struct nvml_memory m;
	return api.memory ? api.memory(device, &m) : -1;
}
static int call_memory_v2(void)
{
	struct nvml_memory_v2 m = {.version = NVML_MEMORY_V2_WORD};
	return api.memory_v2 ? api.memory_v2(device, &m) : -1;
}
static int call_throttle(void)
{
	uint64_t reasons;
	return api.throttle ? api.throttle(device, &reasons) : -1;
}
static int call_power_limit(void)
{
	uint32_t mw;
	return api.power_limit ? api.power_limit(device, &mw) : -1;
}
static int call_power_enforced(void)
{
	uint32_t mw;
	return api.power_enforced ? api.power_enforced(device, &mw) : -1;
}
static int call_fan(void)
{
	uint32_t pct;
	return api.fan ? api.fan(device, &pct) : -1;
}
static int call_pstate(void)
{
	uint32_t pstate;
	return api.pstate ? api.pstate(device, &pstate) : -1;
}
static int call_pcie_gen(void)
{
	uint32_t gen;
	return api.pcie_gen ? api.pcie_gen(device, &gen) : -1;
}
static int call_pcie_width(void)
{
	uint32_t width;
	return api.pcie_width ? api.pcie_width(device, &width) : -1;
}
static int call_pcie_replay(void)
{
	uint32_t replays;
	return api.pcie_replay ? api.pcie_replay(device, &replays) : -1;
}
static int call_encoder(void)
{
	uint32_t pct, us;
	return api.encoder ? api.encoder(device, &pct, &us) : -1;
}
static int call_decoder(void)
{
	uint32_t pct, us;
	return api.decoder ? api.decoder(device, &pct, &us) : -1;
}
static int call_fields(void)
{
	struct nvml_field_value values[3] = {{.field_id = NVML_FI_TOTAL_ENERGY},
					     {.field_id = NVML_FI_POWER_AVERAGE},
					     {.field_id = NVML_FI_POWER_INSTANT}};
	return api.fields ? api.fields(device, 3, values) : -1;
}
/* Room for 32 bytes an entry, as nvml_procs.c explains. */
static struct nvml_process_detail procs[1024];
static int call_compute_procs(void)
{
	uint32_t count = 1024;
	return api.compute_procs ? api.compute_procs(device, &count, (void *)procs) : -1;
}
static int call_mps_procs(void)
{
	uint32_t count = 1024;
	return api.mps_procs ? api.mps_procs(device, &count, (void *)procs) : -1;
}
static int call_graphics_procs(void)
{
	uint32_t count = 1024;
	return api.graphics_procs ? api.graphics_procs(device, &count, (void *)procs) : -1;
}
static int call_persistence(void)
{
	uint32_t on;
	return api.persistence ? api.persistence(device, &on) : -1;
}
static int call_margin(void)
{
	struct nvml_margin_temperature margin = {.version = NVML_MARGIN_TEMPERATURE_WORD};
	return api.margin ? api.margin(device, &margin) : -1;
}
static int call_sram(void)
{
	struct nvml_ecc_sram_status status = {.version = NVML_ECC_SRAM_STATUS_WORD};
	return api.sram ? api.sram(device, &status) : -1;
}
static struct nvml_gpm_sample *gpm[2];
static int call_gpm_sample(void)
{
	if (!api.gpm_alloc || !api.gpm_sample ||
	    (!gpm[0] && (api.gpm_alloc(&gpm[0]) != 0 || api.gpm_alloc(&gpm[1]) != 0)))
		return -1;
	return api.gpm_sample(device, gpm[1]);
}
static int call_name(void)
{
	char text[NVML_BUFFER_NAME];
	return api.name ? api.name(device, text, sizeof(text)) : -1;
}
static int call_nvlink_state(void)
{
	uint32_t active;
	return api.nvlink_state ? api.nvlink_state(device, 0, &active) : -1;
}

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {
	{"sm clock", call_sm_clock},
	{"power", call_power},
	{"energy", call_energy},
	{"temperature", call_temperature},
	{"utilization", call_utilization},
	{"memory v2", call_memory_v2},
	{"throttle reasons", call_throttle},
	{"memory clock", call_mem_clock},
	{"memory v1", call_memory},
	{"power limit", call_power_limit},
	{"enforced power limit", call_power_enforced},
	{"fan", call_fan},
	{"performance state", call_pstate},
	{"pcie generation", call_pcie_gen},
	{"pcie width", call_pcie_width},
	{"pcie replay", call_pcie_replay},
	{"encoder", call_encoder},
	{"decoder", call_decoder},
	{"compute processes", call_compute_procs},
	{"mps processes", call_mps_procs},
	{"graphics processes", call_graphics_procs},
	{"three field values", call_fields},
	{"persistence mode", call_persistence},
	{"temperature margin", call_margin},
	{"SRAM ECC status", call_sram},
	{"GPM sample", call_gpm_sample},
	{"name", call_name},
	{"nvlink state", call_nvlink_state},
};

/* Field values that takt reads besides, one a call here. */
static const struct {
	const char *name;
	uint32_t id, scope;
} fields[] = {
	{"field memory temperature", NVML_FI_MEMORY_TEMP, 0},
	{"field average power", NVML_FI_POWER_AVERAGE, 0},
	{"field instant power", NVML_FI_POWER_INSTANT, 0},
	{"field energy", NVML_FI_TOTAL_ENERGY, 0},
	{"field ECC corrected", NVML_FI_ECC_SBE_VOL_TOTAL, 0},
	{"field ECC corrected ever", NVML_FI_ECC_SBE_AGG_TOTAL, 0},
	{"field remapped rows", NVML_FI_REMAPPED_COR, 0},
	{"field row pending", NVML_FI_REMAPPED_PENDING, 0},
	{"field retired pages", NVML_FI_RETIRED_SBE, 0},
	{"field recovery action", NVML_FI_GPU_RECOVERY_ACTION, 0},
	{"field NVLink CRC", NVML_FI_NVLINK_CRC_FLIT_TOTAL, 0},
	{"field NVLink replays", NVML_FI_NVLINK_REPLAY_TOTAL, 0},
	{"field NVLink sent", NVML_FI_NVLINK_DATA_TX, UINT32_MAX},
	{"field held by power", NVML_FI_PERF_POLICY_POWER, 0},
	{"field held by board limit", NVML_FI_PERF_POLICY_BOARD_LIMIT, 0},
	{"field held by heat", NVML_FI_REASON_SW_THERMAL_NS, 0},
};

static size_t field;
static int call_field(void)
{
	struct nvml_field_value value = {.field_id = fields[field].id,
					 .scope_id = fields[field].scope};
	int code = api.fields ? api.fields(device, 1, &value) : -1;

	return code == NVML_SUCCESS ? (int)value.ret : code;
}

static uint64_t times[MAX_TIMES];

static void time_call(const char *name, int (*call)(void), size_t n)
{
	uint64_t ran = ran_ns();
	int code = 0;

	for (size_t k = 0; k < n; k++) {
		uint64_t begin = now_ns();

		code = call();
		times[k] = now_ns() - begin;
	}
	ran = ran_ns() - ran;
	print_times(name, code, times, n);
	printf(" %10.2f\n", (double)ran / (double)n / 1e3);
}

static void time_all(size_t n)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(calls); i++)
		time_call(calls[i].name, calls[i].call, n);
	for (field = 0; field < TAKT_ARRAY_LEN(fields); field++)
		time_call(fields[field].name, call_field, n);
}

/* All of them once every 100 ms, as takt asks: what was asked for a moment ago may cost less. */
static int do_paced(unsigned seconds)
{
	uint64_t ran[TAKT_ARRAY_LEN(calls)] = {0}, begin, next = now_ns();
	unsigned rounds = 10 * seconds;

	if (start_driver() != 0 || api.handle_by_index(0, &device) != NVML_SUCCESS)
		return 1;
	for (unsigned k = 0; k < rounds; k++) {
		for (size_t i = 0; i < TAKT_ARRAY_LEN(calls); i++) {
			begin = ran_ns();
			(void)calls[i].call();
			ran[i] += ran_ns() - begin;
		}
		next += 100 * TAKT_NS_PER_MS;
		begin = now_ns();
		if (begin < next)
			usleep((useconds_t)((next - begin) / 1000));
	}
	printf("GPU 0 of the driver, each call every 100 ms for %u s\n%-28s %10s\n", seconds,
	       "call", "ran us");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(calls); i++)
		printf("%-28s %10.2f\n", calls[i].name, (double)ran[i] / rounds / 1e3);
	return api.shutdown() != NVML_SUCCESS;
}

static int do_latency(size_t n)
{
	uint32_t count = 0;

	if (start_driver() != 0 || api.count(&count) != NVML_SUCCESS)
		return 1;
	n = n < MAX_TIMES ? n : MAX_TIMES;
	for (uint32_t g = 0; g < count; g++) {
		if (api.handle_by_index(g, &device) != NVML_SUCCESS)
			continue;
		printf("GPU %u of the driver, %zu calls each; code -1: no such function\n", g, n);
		printf("%-28s %4s %10s %10s %10s %10s %10s\n", "call", "code", "min us",
		       "median us", "p99 us", "max us", "ran us");
		time_all(n);
	}
	return api.shutdown() != NVML_SUCCESS;
}

/* Times between changes of a value that is polled every millisecond or as fast as it is read. */
static void watch(const char *name, int (*read_value)(uint64_t *), unsigned seconds)
{
	uint64_t end = now_ns() + seconds * TAKT_NS_PER_S, last = 0, changed = 0;
	size_t n = 0;

	while (now_ns() < end && n < MAX_TIMES) {
		uint64_t value, at;

		if (read_value(&value) != NVML_SUCCESS) {
			printf("%s: not readable\n", name);
			return;
		}
		at = now_ns();
		if (value != last) {
			if (changed != 0)
				times[n++] = at - changed;
			changed = at;
			last = value;
		}
		usleep(1000);
	}
	printf("%zu changes of %s; time between two of them:\n", n, name);
	print_times(name, 0, times, n);
	printf("\n");
}

static int read_energy(uint64_t *ret)
{
	return api.energy ? api.energy(device, ret) : NVML_ERROR_NOT_SUPPORTED;
}

static int read_power(uint64_t *ret)
{
	uint32_t mw = 0;
	int code = api.power ? api.power(device, &mw) : NVML_ERROR_NOT_SUPPORTED;

	*ret = mw;
	return code;
}

static int do_energy(unsigned seconds)
{
	if (start_driver() != 0 || api.handle_by_index(0, &device) != NVML_SUCCESS)
		return 1;
	printf("%-28s %4s %10s %10s %10s %10s\n", "", "", "min us", "median us", "p99 us",
	       "max us");
	watch("energy counter", read_energy, seconds);
	watch("power", read_power, seconds);
	return api.shutdown() != NVML_SUCCESS;
}

/* GPM, by its public layout: the same struct in 11.8 to 13.x but for the length of its end. */
enum {
	GPM_METRICS = 333,
	GPM_SM_UTIL = 2,
	GPM_TENSOR = 5,
	GPM_DRAM = 10,
};
struct gpm_metrics_get {
	uint32_t version, count;
	void *sample1, *sample2;
	struct {
		uint32_t id, code;
		double value;
		char *short_name, *long_name, *unit;
	} metrics[GPM_METRICS];
};
_Static_assert(sizeof(struct gpm_metrics_get) == 13344, "gpm_metrics_get");

typedef int gpm_alloc_fn(void **sample);
typedef int gpm_sample_fn(struct nvml_device *device, void *sample);
typedef int gpm_metrics_fn(struct gpm_metrics_get *get);

static void *symbol(const char *name)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	return library ? dlsym(library, name) : NULL;
}

static void print_gpm(gpm_alloc_fn *alloc, gpm_sample_fn *sample, gpm_metrics_fn *metrics)
{
	static struct gpm_metrics_get get = {.version = 1, .count = 3};
	static const uint32_t ids[] = {GPM_SM_UTIL, GPM_TENSOR, GPM_DRAM};
	void *first = NULL, *second = NULL;
	int code;

	if (alloc(&first) != NVML_SUCCESS || alloc(&second) != NVML_SUCCESS) {
		printf("gpm: no memory for samples\n");
		return;
	}
	code = sample(device, first);
	printf("gpm sample 1: code %d\n", code);
	usleep(200000);
	code = sample(device, second);
	printf("gpm sample 2: code %d\n", code);
	get.sample1 = first;
	get.sample2 = second;
	for (int i = 0; i < 3; i++)
		get.metrics[i].id = ids[i];
	code = metrics(&get);
	printf("gpm metrics: code %d\n", code);
	for (int i = 0; i < 3 && code == NVML_SUCCESS; i++)
		printf("  metric %u: code %u value %.3f\n", get.metrics[i].id, get.metrics[i].code,
		       get.metrics[i].value);
}

static int do_gpm(void)
{
	nvmlGpmQueryDeviceSupport_fn *query;
	gpm_alloc_fn *alloc;
	gpm_sample_fn *sample;
	gpm_metrics_fn *metrics;
	struct nvml_gpm_support support = {.version = 1};
	int code;

	printf("effective user id %u\n", (unsigned)geteuid());
	if (start_driver() != 0 || api.handle_by_index(0, &device) != NVML_SUCCESS)
		return 1;
	*(void **)&query = symbol("nvmlGpmQueryDeviceSupport");
	*(void **)&alloc = symbol("nvmlGpmSampleAlloc");
	*(void **)&sample = symbol("nvmlGpmSampleGet");
	*(void **)&metrics = symbol("nvmlGpmMetricsGet");
	if (!query || !alloc || !sample || !metrics) {
		printf("gpm: not in this driver\n");
		return 0;
	}
	code = query(device, &support);
	printf("gpm support: code %d supported %u\n", code, support.supported);
	if (code == NVML_SUCCESS && support.supported)
		print_gpm(alloc, sample, metrics);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	unsigned number = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;

	if (strcmp(verb, "status") == 0)
		return do_status();
	if (strcmp(verb, "topo") == 0)
		return do_topo();
	if (strcmp(verb, "record") == 0)
		return do_record(number);
	if (strcmp(verb, "latency") == 0)
		return do_latency(number);
	if (strcmp(verb, "paced") == 0)
		return do_paced(number);
	if (strcmp(verb, "energy") == 0)
		return do_energy(number);
	if (strcmp(verb, "gpm") == 0)
		return do_gpm();
	fprintf(stderr, "usage: probe status | topo | record SECONDS | latency CALLS | "
			"paced SECONDS | energy SECONDS | gpm\n");
	return 64;
}
