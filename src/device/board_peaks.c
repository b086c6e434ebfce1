/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue. From NVIDIA's data sheets of each board, without sparsity; tensor cores where the
 * type has them. A board that is not here, or a figure that its data sheet leaves out, has no peak:
 * a share of a guess would be no share.
 */
#include "device/board_peaks.h"

#include <string.h>

#include "base/compiler.h"

static const struct {
	const char *name;
	double tflops[TAKT_CUDA_TYPES]; /* f16, bf16, tf32, f32, f64 */
	double gbs;
} boards[] = {
	{"NVIDIA H200", {989.5, 989.5, 494.7, 67, 67}, 4800},
	{"NVIDIA H100 80GB HBM3", {989.5, 989.5, 494.7, 67, 67}, 3350},
	{"NVIDIA H100 PCIe", {756.5, 756.5, 378, 51, 51}, 2000},
	{"NVIDIA A100-SXM4-80GB", {312, 312, 156, 19.5, 19.5}, 2039},
	{"NVIDIA A100-SXM4-40GB", {312, 312, 156, 19.5, 19.5}, 1555},
	{"NVIDIA A100 80GB PCIe", {312, 312, 156, 19.5, 19.5}, 1935},
	{"NVIDIA A100-PCIE-40GB", {312, 312, 156, 19.5, 19.5}, 1555},
	{"NVIDIA A10", {125, 125, 62.5, 31.2, 0}, 600},
	{"NVIDIA L40S", {362, 362, 183, 91.6, 0}, 864},
	{"NVIDIA L4", {121, 121, 60, 30.3, 0}, 300},
	{"Tesla T4", {65, 0, 0, 8.1, 0}, 320},
	{"Tesla V100-SXM2-16GB", {125, 0, 0, 15.7, 7.8}, 900},
	{"Tesla V100-SXM2-32GB", {125, 0, 0, 15.7, 7.8}, 900},
};

double takt_board_peak_tflops(const char *name, enum takt_cuda_type type)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(boards); i++)
		if (strcmp(boards[i].name, name) == 0)
			return boards[i].tflops[type];
	return 0;
}

double takt_board_peak_gbs(const char *name)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(boards); i++)
		if (strcmp(boards[i].name, name) == 0)
			return boards[i].gbs;
	return 0;
}
