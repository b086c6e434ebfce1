/* SPDX-License-Identifier: Apache-2.0 */
/* takt-lock-clocks GPU MHZ: locks its SM clock to [345, MHZ] as nvidia-smi -lgc does; 0: -rgc.
 * Somebody who is not takt. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

struct gpu;

static void *call(void *nvml, const char *name)
{
	void *at = dlsym(nvml, name);

	if (!at)
		exit(3);
	return at;
}

int main(int argc, char **argv)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	struct gpu *gpu = NULL;
	uint32_t mhz;
	int (*init)(void), (*find)(uint32_t, struct gpu **), (*reset)(struct gpu *);
	int (*lock)(struct gpu *, uint32_t, uint32_t);

	if (argc != 3 || !nvml)
		return 2;
	*(void **)&init = call(nvml, "nvmlInit_v2");
	*(void **)&find = call(nvml, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&lock = call(nvml, "nvmlDeviceSetGpuLockedClocks");
	*(void **)&reset = call(nvml, "nvmlDeviceResetGpuLockedClocks");
	mhz = (uint32_t)strtoul(argv[2], NULL, 10);
	if (init() != 0 || find((uint32_t)strtoul(argv[1], NULL, 10), &gpu) != 0)
		return 1;
	return (mhz ? lock(gpu, 345, mhz) : reset(gpu)) != 0;
}
