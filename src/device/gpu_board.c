/* SPDX-License-Identifier: Apache-2.0 */
/* One look at every board, see the header. */
#include "device/gpu_board.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/nvml_api.h"
#include "device/worker.h"

_Static_assert((int)TAKT_DRIVER_NOT_LOADED == (int)NVML_ERROR_DRIVER_NOT_LOADED &&
		       (int)TAKT_DRIVER_NO_PERMISSION == (int)NVML_ERROR_NO_PERMISSION &&
		       (int)TAKT_DRIVER_BLOCKED == (int)NVML_ERROR_OPERATING_SYSTEM &&
		       (int)TAKT_DRIVER_MISMATCH == (int)NVML_ERROR_LIB_RM_VERSION_MISMATCH &&
		       (int)TAKT_COMPUTE_DEFAULT == (int)NVML_COMPUTEMODE_DEFAULT &&
		       (int)TAKT_COMPUTE_PROHIBITED == (int)NVML_COMPUTEMODE_PROHIBITED,
	       "the header's numbers are NVML's");

struct look {
	atomic_uint refs; /* the caller's and the thread's */
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool ended;
	struct takt_err err;
	struct takt_nvml_api api;
	char *path;			/* owned; NULL = the default */
	struct takt_gpu_boards *boards; /* owned until taken */
	struct nvml_device *device[TAKT_DEVICE_MAX_GPUS];
};

static void read_modes(const struct takt_nvml_api *api, struct nvml_device *device,
		       struct takt_gpu_board *board)
{
	uint32_t now, pending;

	if (api->ecc_mode && api->ecc_mode(device, &now, &pending) == NVML_SUCCESS) {
		board->has |= TAKT_BOARD_ECC_MODE;
		board->ecc_on = now != NVML_FEATURE_DISABLED;
		board->ecc_pending_on = pending != NVML_FEATURE_DISABLED;
	}
	if (api->mig_mode && api->mig_mode(device, &now, &pending) == NVML_SUCCESS) {
		board->has |= TAKT_BOARD_MIG_MODE;
		board->mig_on = now != NVML_FEATURE_DISABLED;
		board->mig_pending_on = pending != NVML_FEATURE_DISABLED;
	}
	if (api->compute_mode && api->compute_mode(device, &board->compute_mode) == NVML_SUCCESS)
		board->has |= TAKT_BOARD_COMPUTE_MODE;
}

/* What takt serve reads of a GPU again and again: one reader for both. */
static void read_vitals(const struct takt_nvml_api *api, struct nvml_device *device,
			struct takt_gpu_board *board)
{
	static const struct {
		uint32_t vital, board;
	} same[] = {
		{TAKT_VITAL_ROWS, TAKT_BOARD_ROWS},
		{TAKT_VITAL_PAGES, TAKT_BOARD_PAGES | TAKT_BOARD_PAGES_PENDING},
		{TAKT_VITAL_NVLINKS, TAKT_BOARD_NVLINK},
		{TAKT_VITAL_MARGIN, TAKT_BOARD_MARGIN},
	};
	struct takt_nvml_gpu gpu = {.device = device};
	struct takt_gpu_vitals vitals = {0};

	(void)takt_nvml_read_conditions(api, &gpu, &vitals);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(same); i++)
		if (vitals.has & same[i].vital)
			board->has |= same[i].board;
	board->rows_corrected = vitals.rows_corrected;
	board->rows_uncorrected = vitals.rows_uncorrected;
	board->rows_pending = vitals.row_pending;
	board->rows_failed = vitals.row_failed;
	board->pages = vitals.pages_single + vitals.pages_double;
	board->pages_pending = vitals.page_pending;
	board->nvlinks = vitals.nvlinks;
	board->nvlinks_up = vitals.nvlinks_up;
	board->margin_c = vitals.margin_c;
}

static void read_fabric(const struct takt_nvml_api *api, struct nvml_device *device,
			struct takt_gpu_board *board)
{
	struct nvml_fabric_info fabric = {0};

	if (api->fabric_info && api->fabric_info(device, &fabric) == NVML_SUCCESS) {
		board->has |= TAKT_BOARD_FABRIC;
		board->fabric_state = fabric.state;
		board->fabric_status = fabric.status;
	}
}

static void read_limits(const struct takt_nvml_api *api, struct nvml_device *device,
			struct takt_gpu_board *board)
{
	uint32_t source;

	if (api->power_source && api->power_source(device, &source) == NVML_SUCCESS) {
		board->has |= TAKT_BOARD_BATTERY;
		board->on_battery = source == 1;
	}
	if (api->app_clock && api->app_default &&
	    api->app_clock(device, NVML_CLOCK_SM, &board->app_sm_mhz) == NVML_SUCCESS &&
	    api->app_default(device, NVML_CLOCK_SM, &board->app_default_sm_mhz) == NVML_SUCCESS)
		board->has |= TAKT_BOARD_APP_CLOCK;
}

static void read_identity(const struct takt_nvml_api *api, struct nvml_device *device,
			  struct takt_gpu_board *board)
{
	struct nvml_pci_info pci = {0};
	struct nvml_pci_info_v2 old = {0};

	if (api->pci && api->pci(device, &pci) == NVML_SUCCESS)
		takt_strcpy(board->pci_bus_id, sizeof(board->pci_bus_id), pci.bus_id);
	else if (api->pci_old && api->pci_old(device, &old) == NVML_SUCCESS)
		snprintf(board->pci_bus_id, sizeof(board->pci_bus_id), "0000%.15s", old.bus_id);
}

/* Reading and writing; the worse of the two is what a program meets. */
static uint8_t peer_access(const struct look *look, uint32_t a, uint32_t b)
{
	uint32_t reads = TAKT_PEER_UNKNOWN, writes = TAKT_PEER_UNKNOWN;

	if (a == b)
		return TAKT_PEER_OK;
	if (!look->api.peer_status || !look->device[a] || !look->device[b] ||
	    look->api.peer_status(look->device[a], look->device[b], NVML_P2P_CAP_READ, &reads) !=
		    NVML_SUCCESS ||
	    look->api.peer_status(look->device[a], look->device[b], NVML_P2P_CAP_WRITE, &writes) !=
		    NVML_SUCCESS)
		return TAKT_PEER_UNKNOWN;
	return (uint8_t)(reads != TAKT_PEER_OK ? reads : writes);
}

static void read_boards(struct look *look)
{
	struct takt_gpu_boards *boards = look->boards;

	for (uint32_t i = 0; i < boards->count; i++) {
		struct nvml_device *device = NULL;

		if (look->api.handle_by_index(i, &device) != NVML_SUCCESS)
			continue;
		look->device[i] = device;
		read_identity(&look->api, device, &boards->at[i]);
		read_modes(&look->api, device, &boards->at[i]);
		read_vitals(&look->api, device, &boards->at[i]);
		read_fabric(&look->api, device, &boards->at[i]);
		read_limits(&look->api, device, &boards->at[i]);
	}
	for (uint32_t i = 0; i < boards->count; i++)
		for (uint32_t j = 0; j < boards->count; j++)
			boards->at[i].peer[j] = peer_access(look, i, j);
}

static int refused(struct look *look, int code, const char *what)
{
	(void)takt_err_set(&look->err, takt_nvml_rc(code), "%s: %s", what, takt_nvml_text(code));
	look->err.vendor = code;
	return look->err.rc;
}

static int look_at_all(struct look *look)
{
	int rc = takt_nvml_load(look->path, &look->api, &look->err);
	uint32_t count = 0;
	int code;

	if (rc < 0)
		return rc;
	code = look->api.init();
	if (code != NVML_SUCCESS)
		return refused(look, code, "start the driver's library");
	code = look->api.count(&count);
	if (code == NVML_SUCCESS) {
		look->boards->count = count < TAKT_DEVICE_MAX_GPUS ? count : TAKT_DEVICE_MAX_GPUS;
		read_boards(look);
	}
	(void)look->api.shutdown();
	return code == NVML_SUCCESS ? 0 : refused(look, code, "count the GPUs");
}

static void let_go(struct look *look)
{
	if (!look || atomic_fetch_sub(&look->refs, 1) != 1)
		return;
	pthread_cond_destroy(&look->done);
	pthread_mutex_destroy(&look->lock);
	takt_free(look->boards);
	takt_free(look->path);
	takt_free(look);
}

static void *look_main(void *opaque)
{
	struct look *look = opaque;
	int rc = look_at_all(look);

	pthread_mutex_lock(&look->lock);
	look->err.rc = rc;
	look->ended = true;
	pthread_cond_signal(&look->done);
	pthread_mutex_unlock(&look->lock);
	let_go(look);
	return NULL;
}

static struct look *look_new(const char *path)
{
	struct look *look = takt_zalloc(sizeof(*look));

	if (!look)
		return NULL;
	atomic_init(&look->refs, 1);
	pthread_mutex_init(&look->lock, NULL);
	takt_cond_init_mono(&look->done);
	look->path = takt_strdup(path);
	look->boards = takt_zalloc(sizeof(*look->boards));
	if ((path && !look->path) || !look->boards) {
		let_go(look);
		return NULL;
	}
	return look;
}

static bool wait_for(struct look *look, uint64_t deadline_ns)
{
	struct takt_mono end = takt_mono_add(takt_mono_now(takt_sys_real()), deadline_ns);
	struct timespec at = {.tv_sec = (time_t)(end.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(end.ns % TAKT_NS_PER_S)};
	bool ended;

	pthread_mutex_lock(&look->lock);
	while (!look->ended && pthread_cond_timedwait(&look->done, &look->lock, &at) != ETIMEDOUT)
		;
	ended = look->ended;
	pthread_mutex_unlock(&look->lock);
	return ended;
}

int takt_gpu_boards_read(const char *nvml_path, uint64_t deadline_ns, struct takt_gpu_boards **ret,
			 struct takt_err *err)
{
	struct look *look = look_new(nvml_path);
	pthread_t thread;
	int rc;

	if (!look)
		return takt_err_set(err, -ENOMEM, "look at the boards");
	atomic_fetch_add(&look->refs, 1);
	rc = takt_worker_thread(&thread, "takt-boards", look_main, look);
	if (rc < 0) {
		let_go(look);
		let_go(look);
		return takt_err_set(err, rc, "thread that looks at the boards");
	}
	pthread_detach(thread);
	if (!wait_for(look, deadline_ns)) {
		let_go(look);
		return takt_err_set(err, -ETIMEDOUT,
				    "the driver hangs: it has not answered within "
				    "%llu s",
				    (unsigned long long)(deadline_ns / TAKT_NS_PER_S));
	}
	rc = look->err.rc;
	if (rc < 0 && err)
		*err = look->err;
	if (rc == 0) {
		*ret = look->boards;
		look->boards = NULL;
	}
	let_go(look);
	return rc;
}
