/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake of libcuda.so.1 and libcublas.so, for tests alone: no GPU, no arithmetic. Its prototypes
 * are written out as the manuals of CUDA 12 have them, and not taken from abi/cuda.h, so that a
 * mistake there shows; it keeps what it was called with.
 */
#include "fake_cuda.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
struct CUctx_st;
struct CUstream_st;
struct cublasContext;
struct CUuuid_st {
	char bytes[16];
};

typedef int cublasStatus_t, cublasOperation_t, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t;

#define FAKE __attribute__((visibility("default")))

FAKE struct fake_cuda fake_cuda = {.devices = 2, .memory_bytes = 1ull << 40};

CUresult cuInit(unsigned int Flags);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetUuid(struct CUuuid_st *uuid, CUdevice dev);
CUresult cuDevicePrimaryCtxRetain(struct CUctx_st **pctx, CUdevice dev);
CUresult cuCtxSetCurrent(struct CUctx_st *ctx);
CUresult cuCtxSynchronize(void);
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount);
CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
			      struct CUstream_st *hStream);
CUresult cuGetErrorName(CUresult error, const char **pStr);
cublasStatus_t cublasCreate_v2(struct cublasContext **handle);
cublasStatus_t cublasGemmEx(struct cublasContext *handle, cublasOperation_t transa,
			    cublasOperation_t transb, int m, int n, int k, const void *alpha,
			    const void *A, cudaDataType Atype, int lda, const void *B,
			    cudaDataType Btype, int ldb, const void *beta, void *C,
			    cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
			    cublasGemmAlgo_t algo);

FAKE CUresult cuInit(unsigned int Flags)
{
	return Flags == 0 ? fake_cuda.init_code : 1;
}

FAKE CUresult cuDeviceGetCount(int *count)
{
	*count = fake_cuda.devices;
	return 0;
}

FAKE CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = 10 + ordinal;
	return 0;
}

FAKE CUresult cuDeviceGetUuid(struct CUuuid_st *uuid, CUdevice dev)
{
	memset(uuid->bytes, dev, sizeof(uuid->bytes));
	return 0;
}

FAKE CUresult cuDevicePrimaryCtxRetain(struct CUctx_st **pctx, CUdevice dev)
{
	fake_cuda.device = dev;
	*pctx = (struct CUctx_st *)&fake_cuda;
	return 0;
}

FAKE CUresult cuCtxSetCurrent(struct CUctx_st *ctx)
{
	return ctx == (struct CUctx_st *)&fake_cuda ? 0 : 201;
}

FAKE CUresult cuCtxSynchronize(void)
{
	fake_cuda.synchronized++;
	return fake_cuda.work_code;
}

FAKE CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	*free = *total = fake_cuda.memory_bytes;
	return 0;
}

FAKE CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	if (fake_cuda.allocated_bytes + bytesize > fake_cuda.memory_bytes)
		return 2;
	*dptr = 0x7f0000000000 + fake_cuda.allocated_bytes;
	fake_cuda.allocated_bytes += bytesize;
	return 0;
}

FAKE CUresult cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	fake_cuda.uploaded_bytes += ByteCount;
	memcpy(&fake_cuda.first_element, srcHost, sizeof(fake_cuda.first_element));
	return dstDevice >= 0x7f0000000000 ? 0 : 1;
}

FAKE CUresult cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	if (fake_cuda.downloaded_bytes == 0)
		fake_cuda.downloaded_from = srcDevice;
	fake_cuda.downloaded_bytes += ByteCount;
	memset(dstHost, fake_cuda.result, ByteCount);
	return fake_cuda.work_code;
}

FAKE CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
				   struct CUstream_st *hStream)
{
	fake_cuda.calls++;
	fake_cuda.copied_bytes += ByteCount;
	return dstDevice != srcDevice && !hStream ? 0 : 1;
}

FAKE CUresult cuGetErrorName(CUresult error, const char **pStr)
{
	*pStr = error == 2     ? "CUDA_ERROR_OUT_OF_MEMORY"
		: error == 100 ? "CUDA_ERROR_NO_DEVICE"
			       : NULL;
	return *pStr ? 0 : 1;
}

FAKE cublasStatus_t cublasCreate_v2(struct cublasContext **handle)
{
	*handle = (struct cublasContext *)&fake_cuda.calls;
	return fake_cuda.blas_code;
}

FAKE cublasStatus_t cublasGemmEx(struct cublasContext *handle, cublasOperation_t transa,
				 cublasOperation_t transb, int m, int n, int k, const void *alpha,
				 const void *A, cudaDataType Atype, int lda, const void *B,
				 cudaDataType Btype, int ldb, const void *beta, void *C,
				 cudaDataType Ctype, int ldc, cublasComputeType_t computeType,
				 cublasGemmAlgo_t algo)
{
	bool wide = computeType == 70;

	fake_cuda.calls++;
	fake_cuda.data_type = Atype;
	fake_cuda.compute_type = computeType;
	fake_cuda.size = m;
	fake_cuda.alpha = wide ? *(const double *)alpha : *(const float *)alpha;
	fake_cuda.beta = wide ? *(const double *)beta : *(const float *)beta;
	return handle == (struct cublasContext *)&fake_cuda.calls && transa == 0 && transb == 0 &&
			       n == m && k == m && lda == m && ldb == m && ldc == m &&
			       Btype == Atype && Ctype == Atype && algo == -1 && A != B && B != C
		       ? 0
		       : 7;
}
