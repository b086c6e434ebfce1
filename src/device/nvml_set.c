/* SPDX-License-Identifier: Apache-2.0 */
/* The driver calls that change a GPU, and what their refusals mean. */
#include <inttypes.h>

#include "device/nvml_api.h"

static int result(uint32_t gpu, const char *what, int code, struct takt_err *err)
{
	int rc;

	if (code == NVML_SUCCESS)
		return 0;
	rc = takt_err_set(err, takt_nvml_rc(code), "%s of GPU %" PRIu32 ": %s", what, gpu,
			  takt_nvml_text(code));
	if (err)
		err->vendor = code;
	return rc;
}

int takt_nvml_lock_sm(struct takt_source *source, uint32_t gpu, uint32_t min_mhz, uint32_t max_mhz,
		      struct takt_err *err)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	int code = takt_nvml_attach(nvml, gpu);

	if (code == NVML_SUCCESS)
		code = nvml->api.lock_sm
			       ? nvml->api.lock_sm(nvml->gpus[gpu].device, min_mhz, max_mhz)
			       : NVML_ERROR_FUNCTION_NOT_FOUND;
	return result(gpu, "locking the SM clock", code, err);
}

int takt_nvml_unlock_sm(struct takt_source *source, uint32_t gpu, struct takt_err *err)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	int code = takt_nvml_attach(nvml, gpu);

	if (code == NVML_SUCCESS)
		code = nvml->api.unlock_sm ? nvml->api.unlock_sm(nvml->gpus[gpu].device)
					   : NVML_ERROR_FUNCTION_NOT_FOUND;
	return result(gpu, "unlocking the SM clock", code, err);
}

int takt_nvml_set_power_limit(struct takt_source *source, uint32_t gpu, uint32_t limit_mw,
			      struct takt_err *err)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	int code = takt_nvml_attach(nvml, gpu);

	if (code == NVML_SUCCESS)
		code = nvml->api.set_power_limit
			       ? nvml->api.set_power_limit(nvml->gpus[gpu].device, limit_mw)
			       : NVML_ERROR_FUNCTION_NOT_FOUND;
	return result(gpu, "setting the power limit", code, err);
}
