/* SPDX-License-Identifier: Apache-2.0 */
/* The engines for video and pictures, which no workload of the twin uses. */
#include <string.h>

#include "nvml_entry.h"

static int unused_engine(struct nvml_device *device, uint32_t *percent, uint32_t *period_us,
			 uint32_t feature)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_uncut(device, period_us ? percent : NULL, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (feature && !(call.board->features & feature))
		return NVML_ERROR_NOT_SUPPORTED;
	*percent = 0;
	*period_us = (uint32_t)(TWIN_CELL_NS / 1000);
	return NVML_SUCCESS;
}

int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent,
				    uint32_t *period_us)
{
	return unused_engine(device, percent, period_us, 0);
}

int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent,
				    uint32_t *period_us)
{
	return unused_engine(device, percent, period_us, 0);
}

int nvmlDeviceGetJpgUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
	return unused_engine(device, percent, period_us, TWIN_HAS_JPEG_OFA);
}

int nvmlDeviceGetOfaUtilization(struct nvml_device *device, uint32_t *percent, uint32_t *period_us)
{
	return unused_engine(device, percent, period_us, TWIN_HAS_JPEG_OFA);
}

int nvmlDeviceGetEncoderStats(struct nvml_device *device, uint32_t *sessions, uint32_t *fps,
			      uint32_t *latency_us)
{
	struct twin_call call;
	int rc = twin_enter_out(device, fps && latency_us ? sessions : NULL, &call);

	if (rc == NVML_SUCCESS)
		*sessions = *fps = *latency_us = 0;
	return rc;
}

int nvmlDeviceGetFBCStats(struct nvml_device *device, struct nvml_fbc_stats *stats)
{
	struct twin_call call;
	int rc = twin_enter_out(device, stats, &call);

	if (rc == NVML_SUCCESS)
		memset(stats, 0, sizeof(*stats));
	return rc;
}

enum {
	CODEC_AV1 = 2
};

/* In percent of what the board can encode. Boards that can be cut have no encoder; AV1 came with
 * Ada. */
int nvmlDeviceGetEncoderCapacity(struct nvml_device *device, uint32_t codec, uint32_t *capacity)
{
	struct twin_call call;
	int rc = twin_enter_out(device, capacity, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (codec > CODEC_AV1)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (call.board->mig_count || (codec == CODEC_AV1 && call.board->arch < NVML_ARCH_ADA))
		return NVML_ERROR_NOT_SUPPORTED;
	*capacity = 100;
	return NVML_SUCCESS;
}

static int no_sessions(struct nvml_device *device, uint32_t *count)
{
	struct twin_call call;
	int rc = twin_enter_out(device, count, &call);

	if (rc == NVML_SUCCESS)
		*count = 0;
	return rc;
}

int nvmlDeviceGetEncoderSessions(struct nvml_device *device, uint32_t *count,
				 struct nvml_encoder_session *sessions)
{
	return no_sessions(device, count);
}

int nvmlDeviceGetFBCSessions(struct nvml_device *device, uint32_t *count,
			     struct nvml_fbc_session *sessions)
{
	return no_sessions(device, count);
}
