/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. The operands are random numbers between a half and one: zeros would draw less. */
#include "device/cuda_work.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "base/checksum.h"
#include "base/mem.h"
#include "base/rng.h"

enum {
	PATTERN_BYTES = 16 * 1024 * 1024,
	MIB = 1024 * 1024,
	UUID_TEXT = 41, /* "GPU-" and 36 */
};

const char *const takt_cuda_type_names[TAKT_CUDA_TYPES + 1] = {"f16", "bf16", "tf32",
							       "f32", "f64",  NULL};

/* Elements: what they take, how a random one is made, and what cuBLAS calls them. */
static const struct {
	uint32_t bytes;
	uint64_t keep, set; /* bits of a random number; the exponent of a half to one */
	int data_type, compute_type;
} types[TAKT_CUDA_TYPES] = {
	[TAKT_CUDA_F16] = {2, 0x83ff83ff83ff83ff, 0x3800380038003800, CUDA_R_16F,
			   CUBLAS_COMPUTE_32F},
	[TAKT_CUDA_BF16] = {2, 0x807f807f807f807f, 0x3f003f003f003f00, CUDA_R_16BF,
			    CUBLAS_COMPUTE_32F},
	[TAKT_CUDA_TF32] = {4, 0x807fffff807fffff, 0x3f0000003f000000, CUDA_R_32F,
			    CUBLAS_COMPUTE_32F_FAST_TF32},
	[TAKT_CUDA_F32] = {4, 0x807fffff807fffff, 0x3f0000003f000000, CUDA_R_32F,
			   CUBLAS_COMPUTE_32F},
	[TAKT_CUDA_F64] = {8, 0x800fffffffffffff, 0x3fe0000000000000, CUDA_R_64F,
			   CUBLAS_COMPUTE_64F},
};

struct api {
	cuInit_fn *init;
	cuDeviceGetCount_fn *count;
	cuDeviceGet_fn *get;
	cuDeviceGetUuid_fn *uuid;
	cuDevicePrimaryCtxRetain_fn *retain;
	cuCtxSetCurrent_fn *set_current;
	cuCtxSynchronize_fn *synchronize;
	cuMemGetInfo_v2_fn *memory;
	cuMemAlloc_v2_fn *alloc;
	cuMemcpyHtoD_v2_fn *upload;
	cuMemcpyDtoH_v2_fn *download;
	cuMemcpyDtoDAsync_v2_fn *copy;
	cuGetErrorName_fn *error_name;
	cublasCreate_v2_fn *blas_new;
	cublasGemmEx_fn *gemm;
};

struct symbol {
	size_t at;
	const char *name;
};
#define ROW(member, symbol)                          \
	{                                            \
		offsetof(struct api, member), symbol \
	}
static const struct symbol cuda_symbols[] = {
	ROW(init, "cuInit"),
	ROW(count, "cuDeviceGetCount"),
	ROW(get, "cuDeviceGet"),
	ROW(uuid, "cuDeviceGetUuid"),
	ROW(retain, "cuDevicePrimaryCtxRetain"),
	ROW(set_current, "cuCtxSetCurrent"),
	ROW(synchronize, "cuCtxSynchronize"),
	ROW(memory, "cuMemGetInfo_v2"),
	ROW(alloc, "cuMemAlloc_v2"),
	ROW(upload, "cuMemcpyHtoD_v2"),
	ROW(download, "cuMemcpyDtoH_v2"),
	ROW(copy, "cuMemcpyDtoDAsync_v2"),
	ROW(error_name, "cuGetErrorName"),
};
static const struct symbol cublas_symbols[] = {
	ROW(blas_new, "cublasCreate_v2"),
	ROW(gemm, "cublasGemmEx"),
};

struct takt_cuda_work {
	struct api api;
	struct takt_cuda_config config;
	struct cublas_context *blas;
	uint64_t from, to, result; /* device addresses; result of MATMUL alone */
	size_t bytes;		   /* of each */
};

static int look_up(void *library, const struct symbol *symbols, size_t count, struct api *api,
		   struct takt_err *err)
{
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(library, symbols[i].name);

		if (!found)
			return takt_err_set(err, -TAKT_E_UNAVAILABLE,
					    "the CUDA library has no function '%s'",
					    symbols[i].name);
		memcpy((char *)api + symbols[i].at, &found, sizeof(found));
	}
	return 0;
}

static int load_cuda(const char *path, struct api *api, struct takt_err *err)
{
	void *library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (!library)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "no CUDA driver library: %.150s",
				    dlerror());
	return look_up(library, cuda_symbols, TAKT_ARRAY_LEN(cuda_symbols), api, err);
}

static int load_cublas(const char *path, struct api *api, struct takt_err *err)
{
	const char *const names[] = {path ? path : "libcublas.so.13", "libcublas.so.12",
				     "libcublas.so.11"};
	void *library = NULL;

	for (size_t i = 0; !library && i < (path ? 1 : TAKT_ARRAY_LEN(names)); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
	if (!library)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "no cuBLAS (libcublas.so.11 to .13), which the matrix product "
				    "needs; '--kind stream' does not: %.100s",
				    dlerror());
	return look_up(library, cublas_symbols, TAKT_ARRAY_LEN(cublas_symbols), api, err);
}

static int refused(const struct api *api, int code, const char *what, struct takt_err *err)
{
	const char *name = NULL;
	int rc = code == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM
		 : code == CUDA_ERROR_NO_DEVICE	  ? -TAKT_E_UNAVAILABLE
						  : -EIO;

	if (api->error_name(code, &name) != CUDA_SUCCESS || !name)
		name = "unknown";
	takt_err_set(err, rc, "%s: CUDA says %s (%d)", what, name, code);
	if (err)
		err->vendor = code;
	return rc;
}

static void uuid_text(const struct cuda_uuid *uuid, char ret[UUID_TEXT])
{
	size_t used = (size_t)snprintf(ret, UUID_TEXT, "GPU-");

	for (size_t i = 0; i < sizeof(uuid->bytes); i++)
		used += (size_t)snprintf(ret + used, UUID_TEXT - used, "%s%02x",
					 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					 uuid->bytes[i]);
}

static int find_device(const struct api *api, const char *wanted, int *ret, struct takt_err *err)
{
	struct cuda_uuid uuid;
	char text[UUID_TEXT];
	int count = 0, code = api->count(&count);

	if (code != CUDA_SUCCESS)
		return refused(api, code, "count the GPUs", err);
	for (int i = 0; i < count; i++) {
		if (api->get(ret, i) != CUDA_SUCCESS || api->uuid(&uuid, *ret) != CUDA_SUCCESS)
			continue;
		uuid_text(&uuid, text);
		if (!wanted[0] || strcmp(text, wanted) == 0)
			return 0;
	}
	return takt_err_set(err, -TAKT_E_UNAVAILABLE, "CUDA shows %d GPUs, none of them '%.50s'",
			    count, wanted);
}

static int begin(const struct api *api, const char *uuid, struct takt_err *err)
{
	struct cuda_context *context = NULL;
	int device, code = api->init(0), rc;

	if (code != CUDA_SUCCESS)
		return refused(api, code, "start CUDA", err);
	rc = find_device(api, uuid, &device, err);
	if (rc < 0)
		return rc;
	code = api->retain(&context, device);
	if (code == CUDA_SUCCESS)
		code = api->set_current(context);
	return code == CUDA_SUCCESS ? 0 : refused(api, code, "begin on the GPU", err);
}

/* In pieces: host memory of the whole size would be in nobody's interest. */
static int fill(const struct takt_cuda_work *work, uint64_t address, const void *pattern,
		struct takt_err *err)
{
	for (size_t at = 0; at < work->bytes; at += PATTERN_BYTES) {
		size_t left = work->bytes - at;
		int code = work->api.upload(address + at, pattern,
					    left < PATTERN_BYTES ? left : PATTERN_BYTES);

		if (code != CUDA_SUCCESS)
			return refused(&work->api, code, "fill the GPU's memory", err);
	}
	return 0;
}

static int fill_all(const struct takt_cuda_work *work, struct takt_err *err)
{
	TAKT_CLEANUP(freep) uint64_t *pattern = takt_alloc(PATTERN_BYTES);
	struct takt_rng rng;
	int rc;

	if (!pattern)
		return takt_err_set(err, -ENOMEM, "numbers to work on");
	takt_rng_init(&rng, 1);
	takt_rng_fill(&rng, pattern, PATTERN_BYTES);
	for (size_t i = 0; i < PATTERN_BYTES / sizeof(*pattern); i++)
		pattern[i] =
			(pattern[i] & types[work->config.type].keep) | types[work->config.type].set;
	rc = fill(work, work->from, pattern, err);
	/* What is copied to is the copies' alone to fill. */
	return rc < 0 || work->config.kind == TAKT_CUDA_STREAM ? rc
							       : fill(work, work->to, pattern, err);
}

static int take_memory(struct takt_cuda_work *work, struct takt_err *err)
{
	uint64_t *const parts[] = {&work->from, &work->to, &work->result};
	bool matmul = work->config.kind == TAKT_CUDA_MATMUL;
	uint32_t size = work->config.size;

	work->bytes =
		matmul ? (size_t)size * size * types[work->config.type].bytes : (size_t)size * MIB;
	for (size_t i = 0; i < (matmul ? 3 : 2); i++) {
		int code = work->api.alloc(parts[i], work->bytes);

		if (code != CUDA_SUCCESS)
			return refused(&work->api, code, "take memory on the GPU", err);
	}
	return fill_all(work, err);
}

static int open_into(struct takt_cuda_work *work, struct takt_err *err)
{
	const struct takt_cuda_config *config = &work->config;
	int status, rc = load_cuda(config->cuda_path, &work->api, err);

	if (rc == 0 && config->kind == TAKT_CUDA_MATMUL)
		rc = load_cublas(config->cublas_path, &work->api, err);
	if (rc == 0)
		rc = begin(&work->api, config->uuid, err);
	if (rc == 0)
		rc = take_memory(work, err);
	if (rc < 0 || config->kind != TAKT_CUDA_MATMUL)
		return rc;
	status = work->api.blas_new(&work->blas);
	return status == CUBLAS_STATUS_SUCCESS
		       ? 0
		       : takt_err_set(err, -EIO, "start cuBLAS: status %d", status);
}

int takt_cuda_open(const struct takt_cuda_config *config, struct takt_cuda_work **ret,
		   struct takt_err *err)
{
	struct takt_cuda_work *work = takt_zalloc(sizeof(*work));
	int rc;

	if (!work)
		return takt_err_set(err, -ENOMEM, "work for the GPU");
	work->config = *config;
	rc = open_into(work, err);
	if (rc < 0)
		takt_free(work);
	else
		*ret = work;
	return rc;
}

double takt_cuda_call_size(const struct takt_cuda_work *work)
{
	double size = work->config.size;

	return work->config.kind == TAKT_CUDA_MATMUL ? 2 * size * size * size
						     : 2.0 * (double)work->bytes;
}

static int multiply(struct takt_cuda_work *work)
{
	static const float one = 1, zero = 0;
	static const double one_64 = 1, zero_64 = 0;
	bool wide = work->config.type == TAKT_CUDA_F64;
	int n = (int)work->config.size, type = types[work->config.type].data_type;

	return work->api.gemm(
		work->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, wide ? (const void *)&one_64 : &one,
		(const void *)(uintptr_t)work->from, type, n, (const void *)(uintptr_t)work->to,
		type, n, wide ? (const void *)&zero_64 : &zero, (void *)(uintptr_t)work->result,
		type, n, types[work->config.type].compute_type, CUBLAS_GEMM_DEFAULT);
}

int takt_cuda_calls(struct takt_cuda_work *work, uint32_t count, struct takt_err *err)
{
	int code = CUDA_SUCCESS, status = CUBLAS_STATUS_SUCCESS;

	for (uint32_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
		if (work->config.kind == TAKT_CUDA_STREAM)
			code = work->api.copy(work->to, work->from, work->bytes, NULL);
		else if ((status = multiply(work)) != CUBLAS_STATUS_SUCCESS)
			return takt_err_set(err, -EIO, "cuBLAS refuses the product: status %d",
					    status);
	}
	if (code == CUDA_SUCCESS)
		code = work->api.synchronize();
	return code == CUDA_SUCCESS ? 0 : refused(&work->api, code, "work on the GPU", err);
}

int takt_cuda_checksum(struct takt_cuda_work *work, uint32_t *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *piece = takt_alloc(PATTERN_BYTES);
	uint64_t from = work->config.kind == TAKT_CUDA_MATMUL ? work->result : work->to;
	uint32_t crc = takt_crc32c("", 0);

	if (!piece)
		return takt_err_set(err, -ENOMEM, "the result");
	for (size_t at = 0; at < work->bytes; at += PATTERN_BYTES) {
		size_t n = work->bytes - at < PATTERN_BYTES ? work->bytes - at : PATTERN_BYTES;
		int code = work->api.download(piece, from + at, n);

		if (code != CUDA_SUCCESS)
			return refused(&work->api, code, "read the result", err);
		crc = takt_crc32c_more(crc, piece, n);
	}
	*ret = crc;
	return 0;
}
