/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takt needs of the CUDA driver's and of cuBLAS's ABI, to open both at run time: prototypes
 * and numbers as their reference manuals have them (CUDA driver API 11 and newer, cuBLAS 11 and
 * newer). Names are those of the exported symbols. Nothing here is needed to build or run takt
 * otherwise.
 */
#ifndef TAKT_ABI_CUDA_H
#define TAKT_ABI_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NO_DEVICE = 100,
};

struct cuda_context; /* CUcontext points to it */
struct cuda_stream;
struct cuda_uuid {
	unsigned char bytes[16];
};

typedef int cuInit_fn(unsigned flags);
typedef int cuDeviceGetCount_fn(int *count);
typedef int cuDeviceGet_fn(int *device, int ordinal);
typedef int cuDeviceGetUuid_fn(struct cuda_uuid *uuid, int device);
typedef int cuDevicePrimaryCtxRetain_fn(struct cuda_context **context, int device);
typedef int cuCtxSetCurrent_fn(struct cuda_context *context);
typedef int cuCtxSynchronize_fn(void);
typedef int cuMemGetInfo_v2_fn(size_t *free_bytes, size_t *total_bytes);
typedef int cuMemAlloc_v2_fn(uint64_t *address, size_t bytes);
typedef int cuMemcpyHtoD_v2_fn(uint64_t to, const void *from, size_t bytes);
typedef int cuMemcpyDtoH_v2_fn(void *to, uint64_t from, size_t bytes);
typedef int cuMemcpyDtoDAsync_v2_fn(uint64_t to, uint64_t from, size_t bytes,
				    struct cuda_stream *stream);
typedef int cuGetErrorName_fn(int code, const char **name);

enum {
	CUBLAS_STATUS_SUCCESS = 0,
	CUBLAS_OP_N = 0,
	CUBLAS_GEMM_DEFAULT = -1,
};

/* cudaDataType_t */
enum {
	CUDA_R_32F = 0,
	CUDA_R_64F = 1,
	CUDA_R_16F = 2,
	CUDA_R_16BF = 14,
};

/* cublasComputeType_t */
enum {
	CUBLAS_COMPUTE_32F = 68,
	CUBLAS_COMPUTE_64F = 70,
	CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

struct cublas_context;

typedef int cublasCreate_v2_fn(struct cublas_context **handle);
typedef int cublasGemmEx_fn(struct cublas_context *handle, int trans_a, int trans_b, int m, int n,
			    int k, const void *alpha, const void *a, int type_a, int lda,
			    const void *b, int type_b, int ldb, const void *beta, void *c,
			    int type_c, int ldc, int compute_type, int algorithm);

#endif
