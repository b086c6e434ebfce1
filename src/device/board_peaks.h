/* SPDX-License-Identifier: Apache-2.0 */
/* What boards can do at most, by their makers' data sheets: dense products, at the boost clock. */
#ifndef TAKT_DEVICE_BOARD_PEAKS_H
#define TAKT_DEVICE_BOARD_PEAKS_H

#include "device/cuda_work.h"

/* `name` as the driver says it. TFLOP/s of the type; 0 = not known. */
double takt_board_peak_tflops(const char *name, enum takt_cuda_type type);
/* GB/s (10^9 bytes) of its memory; 0 = not known. */
double takt_board_peak_gbs(const char *name);

#endif
