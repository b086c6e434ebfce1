/* SPDX-License-Identifier: Apache-2.0 */
/* The driver calls that change a GPU, and what their refusals mean. */
#include <inttypes.h>

#include "device/nvml_api.h"

static int lock_sm(const struct takt_nvml_api *api, struct nvml_device *device,
		   const struct takt_set_call *call)
{
	return api->lock_sm ? api->lock_sm(device, call->min_mhz, call->max_mhz)
			    : NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int unlock_sm(const struct takt_nvml_api *api, struct nvml_device *device,
		     const struct takt_set_call *call)
{
	return api->unlock_sm ? api->unlock_sm(device) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int set_power_limit(const struct takt_nvml_api *api, struct nvml_device *device,
			   const struct takt_set_call *call)
{
	return api->set_power_limit ? api->set_power_limit(device, call->limit_mw)
				    : NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int lock_mem(const struct takt_nvml_api *api, struct nvml_device *device,
		    const struct takt_set_call *call)
{
	return api->lock_mem ? api->lock_mem(device, call->min_mhz, call->max_mhz)
			     : NVML_ERROR_FUNCTION_NOT_FOUND;
}

static int unlock_mem(const struct takt_nvml_api *api, struct nvml_device *device,
		      const struct takt_set_call *call)
{
	return api->unlock_mem ? api->unlock_mem(device) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

static const struct {
	const char *what;
	int (*set)(const struct takt_nvml_api *api, struct nvml_device *device,
		   const struct takt_set_call *call);
} setters[] = {
	[TAKT_SET_LOCK_SM] = {"locking the SM clock", lock_sm},
	[TAKT_SET_UNLOCK_SM] = {"unlocking the SM clock", unlock_sm},
	[TAKT_SET_POWER_LIMIT] = {"setting the power limit", set_power_limit},
	[TAKT_SET_LOCK_MEM] = {"locking the memory clock", lock_mem},
	[TAKT_SET_UNLOCK_MEM] = {"unlocking the memory clock", unlock_mem},
	[TAKT_SET_MIG] = {"cutting into MIG instances", NULL}, /* nvml_cut.c */
};

int takt_nvml_set(struct takt_source *source, uint32_t gpu, const struct takt_set_call *call,
		  struct takt_err *err)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	int code = takt_nvml_attach(nvml, gpu);
	int rc;

	if (code == NVML_SUCCESS && call->op == TAKT_SET_MIG)
		return takt_nvml_cut(nvml, gpu, call, err);
	if (code == NVML_SUCCESS)
		code = setters[call->op].set(&nvml->api, nvml->gpus[gpu].device, call);
	if (code == NVML_SUCCESS)
		return 0;
	rc = takt_err_set(err, takt_nvml_rc(code), "%s of GPU %" PRIu32 ": %s",
			  setters[call->op].what, gpu, takt_nvml_text(code));
	if (err)
		err->vendor = code;
	return rc;
}
