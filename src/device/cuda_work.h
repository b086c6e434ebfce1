/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work for a real GPU, through the CUDA driver's library and cuBLAS, opened at run time: a matrix
 * product without end, or copies within its memory. A crash in there takes the process along, so it
 * is called in a process of its own (daemon/bench_gpu.c).
 */
#ifndef TAKT_DEVICE_CUDA_WORK_H
#define TAKT_DEVICE_CUDA_WORK_H

#include <stdint.h>

#include "base/err.h"

enum takt_cuda_kind {
	TAKT_CUDA_MATMUL, /* size: rows and columns of the square matrices */
	TAKT_CUDA_STREAM, /* size: MiB copied */
};

/* What is multiplied; accumulated in 32 bits, or 64 for F64. */
enum takt_cuda_type {
	TAKT_CUDA_F16,
	TAKT_CUDA_BF16,
	TAKT_CUDA_TF32,
	TAKT_CUDA_F32,
	TAKT_CUDA_F64,
	TAKT_CUDA_TYPES,
};
extern const char *const takt_cuda_type_names[TAKT_CUDA_TYPES + 1]; /* "f16", ..., NULL */

struct takt_cuda_config {
	const char *cuda_path, *cublas_path; /* NULL: libcuda.so.1, libcublas.so.13, .12, .11 */
	const char *uuid;		     /* "GPU-..."; "" = the first that CUDA shows */
	enum takt_cuda_kind kind;
	enum takt_cuda_type type; /* of MATMUL */
	uint32_t size;
};

struct takt_cuda_work;

/* -TAKT_E_UNAVAILABLE when a library is not there or shows no GPU, -ENOMEM when the GPU's memory
 * does not do. There is no close: the process ends. */
int takt_cuda_open(const struct takt_cuda_config *config, struct takt_cuda_work **ret,
		   struct takt_err *err);

/* One call: so many floating-point operations, or bytes read and written. */
double takt_cuda_call_size(const struct takt_cuda_work *work);

/* That many calls; returns when the GPU has finished. */
int takt_cuda_calls(struct takt_cuda_work *work, uint32_t count, struct takt_err *err);

/* CRC-32C of the product, or of what was copied, after at least one call. The operands are always
 * the same: on boards of one model with the same libraries so is this, or something is wrong. */
int takt_cuda_checksum(struct takt_cuda_work *work, uint32_t *ret, struct takt_err *err);

#endif
