/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The NVIDIA driver as a source: starting it, finding its GPUs, letting it go. What is asked of
 * each GPU is in nvml_facts.c, nvml_link.c, nvml_read.c, nvml_procs.c and nvml_set.c.
 */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "device/nvml_api.h"
#include "device/sysfs_pci.h"

static int refused(int code, const char *what, struct takt_err *err)
{
	int rc = takt_nvml_rc(code);

	rc = takt_err_set(err, rc == -EIO ? -TAKT_E_UNAVAILABLE : rc, "%s: %s", what,
			  takt_nvml_text(code));
	if (err)
		err->vendor = code;
	return rc;
}

static void read_versions(struct takt_nvml *nvml)
{
	const struct takt_nvml_api *api = &nvml->api;
	struct takt_source *base = &nvml->base;
	char text[NVML_BUFFER_VERSION];
	int cuda;

	if (api->driver_version && api->driver_version(text, sizeof(text)) == NVML_SUCCESS)
		takt_strcpy(base->driver_version, sizeof(base->driver_version), text);
	if (api->nvml_version && api->nvml_version(text, sizeof(text)) == NVML_SUCCESS)
		takt_strcpy(base->nvml_version, sizeof(base->nvml_version), text);
	if (api->cuda_version && api->cuda_version(&cuda) == NVML_SUCCESS)
		base->cuda_version = cuda;
}

/* Driver started; the caller shuts it down on failure. */
static int count_gpus(struct takt_nvml *nvml, struct takt_err *err)
{
	uint32_t count = 0;
	int code = nvml->api.count(&count);

	if (code != NVML_SUCCESS)
		return refused(code, "counting GPUs", err);
	if (count > TAKT_DEVICE_MAX_GPUS)
		return takt_err_set(err, -TAKT_E_LIMIT, "%u GPUs, at most %d are handled", count,
				    TAKT_DEVICE_MAX_GPUS);
	nvml->base.gpu_count = count;
	read_versions(nvml);
	return 0;
}

static int start_driver(struct takt_nvml *nvml, const struct takt_source_config *config,
			struct takt_err *err)
{
	int rc = takt_nvml_load(config->path, &nvml->api, err);
	int code;

	if (rc < 0 && !config->path && config->unused_path)
		return takt_err_set(err, rc,
				    "LD_LIBRARY_PATH is not used by root's processes; name the "
				    "library with nvml_path = %s",
				    config->unused_path);
	if (rc < 0)
		return rc;
	code = nvml->api.init();
	if (code != NVML_SUCCESS)
		return refused(code, "starting the NVIDIA driver library", err);
	rc = count_gpus(nvml, err);
	if (rc < 0)
		(void)nvml->api.shutdown();
	return rc;
}

static int open_nvml(const struct takt_source_config *config, struct takt_source **ret,
		     struct takt_err *err)
{
	struct takt_nvml *nvml = takt_zalloc(sizeof(*nvml));
	int rc;

	if (!nvml)
		return takt_err_set(err, -ENOMEM, "driver state");
	nvml->base.ops = &takt_source_nvml;
	atomic_init(&nvml->base.refs, 1);
	nvml->for_view = config->for_view;
	nvml->leaves_asleep = config->leaves_asleep;
	nvml->sysfs_root = takt_strdup(config->sysfs_root);
	rc = nvml->sysfs_root ? start_driver(nvml, config, err)
			      : takt_err_set(err, -ENOMEM, "driver state");
	if (rc < 0) {
		takt_free(nvml->sysfs_root);
		takt_free(nvml);
		return rc;
	}
	*ret = &nvml->base;
	return 0;
}

static void close_nvml(struct takt_source *source)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;

	for (uint32_t g = 0; g < source->gpu_count; g++)
		takt_nvml_end_activity(&nvml->api, &nvml->gpus[g]);
	(void)nvml->api.shutdown();
	for (uint32_t g = 0; g < source->gpu_count; g++) {
		takt_free(nvml->gpus[g].procs);
		takt_vec_fini(&nvml->gpus[g].found);
		takt_vec_fini(&nvml->gpus[g].uses);
		takt_vec_fini(&nvml->gpus[g].use_samples);
	}
	takt_free(nvml->sysfs_root);
	takt_free(nvml);
}

static void read_pci_id(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu)
{
	struct nvml_pci_info_v2 old = {0};
	struct nvml_pci_info info = {0};

	if (api->pci && api->pci(gpu->device, &info) == NVML_SUCCESS)
		snprintf(gpu->pci_bus_id, sizeof(gpu->pci_bus_id), "%.31s", info.bus_id);
	else if (api->pci_old && api->pci_old(gpu->device, &old) == NVML_SUCCESS)
		/* The 16-byte id of old drivers lacks four digits of the domain. */
		snprintf(gpu->pci_bus_id, sizeof(gpu->pci_bus_id), "0000%.15s", old.bus_id);
}

int takt_nvml_attach(struct takt_nvml *nvml, uint32_t gpu)
{
	struct takt_nvml_gpu *g = &nvml->gpus[gpu];
	int code;

	if (atomic_load(&g->attached))
		return NVML_SUCCESS;
	code = nvml->api.handle_by_index(gpu, &g->device);
	if (code != NVML_SUCCESS)
		return code;
	read_pci_id(&nvml->api, g);
	atomic_store(&g->attached, true);
	return NVML_SUCCESS;
}

static enum takt_sleep sleep_of(struct takt_source *source, uint32_t gpu)
{
	struct takt_nvml *nvml = (struct takt_nvml *)source;
	struct takt_nvml_gpu *g = &nvml->gpus[gpu];

	return nvml->leaves_asleep && atomic_load(&g->attached)
		       ? takt_sysfs_sleep(nvml->sysfs_root, g->pci_bus_id)
		       : TAKT_SLEEP_AWAKE;
}

const struct takt_source_ops takt_source_nvml = {
	.name = "nvml",
	.open = open_nvml,
	.close = close_nvml,
	.asleep = sleep_of,
	.facts = takt_nvml_facts,
	.link = takt_nvml_link,
	.sample = takt_nvml_sample,
	.mig = takt_nvml_mig_facts,
	.set = takt_nvml_set,
};
