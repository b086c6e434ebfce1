/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How boards are set up, and what is wrong with them for longer than a sample: modes that wait for
 * a restart, memory that waits for a reset, what their links can and do. For programs that look
 * once; nothing is changed. Every value has a bit, as in device.h.
 */
#ifndef TAKT_DEVICE_GPU_BOARD_H
#define TAKT_DEVICE_GPU_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/device.h"

enum takt_board_has {
	TAKT_BOARD_ECC_MODE = 1u << 0,
	TAKT_BOARD_MIG_MODE = 1u << 1,
	TAKT_BOARD_ROWS = 1u << 2,
	TAKT_BOARD_PAGES_PENDING = 1u << 3,
	TAKT_BOARD_PAGES = 1u << 4,
	TAKT_BOARD_NVLINK = 1u << 5,
	TAKT_BOARD_FABRIC = 1u << 6,
	TAKT_BOARD_BATTERY = 1u << 7,
	TAKT_BOARD_APP_CLOCK = 1u << 8,
	TAKT_BOARD_MARGIN = 1u << 9,
	TAKT_BOARD_COMPUTE_MODE = 1u << 10,
};

/* What the driver says of peer access over PCI Express and NVLink, as NVML numbers it. */
enum takt_peer_access {
	TAKT_PEER_OK = 0,
	TAKT_PEER_CHIPSET = 1,
	TAKT_PEER_GPU = 2,	/* not with this kind of board */
	TAKT_PEER_TOPOLOGY = 3, /* no path between the two */
	TAKT_PEER_DISABLED = 4, /* by a setting of the driver's module */
	TAKT_PEER_NOT_SUPPORTED = 5,
	TAKT_PEER_UNKNOWN = 6,
};

/* NVML's numbers, as err->vendor and compute_mode have them. */
enum {
	TAKT_DRIVER_NO_PERMISSION = 4,
	TAKT_DRIVER_NOT_LOADED = 9,
	TAKT_DRIVER_BLOCKED = 17,  /* by the operating system */
	TAKT_DRIVER_MISMATCH = 18, /* library and kernel module are of different versions */

	TAKT_COMPUTE_DEFAULT = 0,
	TAKT_COMPUTE_PROHIBITED = 2,
};

struct takt_gpu_board {
	uint32_t has;	     /* enum takt_board_has */
	char pci_bus_id[32]; /* as takt_gpu_facts has it; "" = the driver did not say */
	bool ecc_on, ecc_pending_on;
	bool mig_on, mig_pending_on;
	uint32_t rows_corrected, rows_uncorrected; /* remapped */
	bool rows_pending, rows_failed;
	bool pages_pending;
	uint32_t pages;			      /* retired, for either cause */
	uint32_t nvlinks, nvlinks_up;	      /* that the board has, and that are active */
	uint32_t fabric_state, fabric_status; /* as NVML: 3 = completed; status as its codes */
	bool on_battery;
	uint32_t app_sm_mhz, app_default_sm_mhz;
	int32_t margin_c; /* degrees to where it slows down */
	uint32_t compute_mode;
	uint8_t peer[TAKT_DEVICE_MAX_GPUS]; /* enum takt_peer_access, by index in the answer */
};

struct takt_gpu_boards {
	uint32_t count;
	struct takt_gpu_board at[TAKT_DEVICE_MAX_GPUS]; /* in the driver's order */
};

/*
 * Asks the driver on a thread of its own; -ETIMEDOUT when it has not answered wholly by then: the
 * thread is left behind. err->vendor is the driver's code. Heap object of the caller's: takt_free.
 */
int takt_gpu_boards_read(const char *nvml_path, uint64_t deadline_ns, struct takt_gpu_boards **ret,
			 struct takt_err *err);

#endif
