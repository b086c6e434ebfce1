/* SPDX-License-Identifier: Apache-2.0 */
/* takt-enter-mig LIBRARY GPU: switches its MIG mode on as nvidia-smi -mig 1 does. An administrator,
 * not takt. */
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
	void *nvml = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	struct gpu *gpu = NULL;
	int (*init)(void), (*find)(uint32_t, struct gpu **), (*set)(struct gpu *, uint32_t, int *);
	int needs;

	if (!nvml)
		return 2;
	*(void **)&init = call(nvml, "nvmlInit_v2");
	*(void **)&find = call(nvml, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&set = call(nvml, "nvmlDeviceSetMigMode");
	if (init() != 0 || find((uint32_t)strtoul(argv[2], NULL, 10), &gpu) != 0)
		return 1;
	return set(gpu, 1, &needs) != 0;
}
