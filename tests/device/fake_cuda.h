/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake of CUDA was told, and what it is to answer. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_cuda {
	int devices, device;
	int init_code, work_code, blas_code;
	size_t memory_bytes, allocated_bytes, uploaded_bytes, copied_bytes;
	uint64_t first_element, downloaded_from;
	size_t downloaded_bytes;
	unsigned char result; /* each byte of what is on the GPU */
	unsigned calls, synchronized;
	int data_type, compute_type, size;
	double alpha, beta;
};

#endif
