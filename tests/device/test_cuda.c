/* SPDX-License-Identifier: Apache-2.0 */
/* Work through CUDA's ABI, against a fake of it: what is called, with what, and what is said when
 * it is not there or refuses. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/board_peaks.h"
#include "device/cuda_work.h"
#include "fake_cuda.h"

static const char *library;
static struct fake_cuda *fake;
static struct takt_err err;

static int find_fake(void **state)
{
	void *opened;

	library = getenv("TAKT_FAKE_CUDA");
	opened = library ? dlopen(library, RTLD_NOW) : NULL;
	fake = opened ? dlsym(opened, "fake_cuda") : NULL;
	return fake ? 0 : -1;
}

static int begin_anew(void **state)
{
	*fake = (struct fake_cuda){.devices = 2, .memory_bytes = 1ull << 40};
	return 0;
}

static struct takt_cuda_config wish(enum takt_cuda_kind kind, enum takt_cuda_type type,
				    uint32_t size)
{
	return (struct takt_cuda_config){.cuda_path = library,
					 .cublas_path = library,
					 .uuid = "",
					 .kind = kind,
					 .type = type,
					 .size = size};
}

static void each_type_is_multiplied_as_cublas_calls_it(void **state)
{
	static const struct {
		int data_type, compute_type;
		size_t bytes;
		uint64_t exponent_mask, exponent;
	} want[TAKT_CUDA_TYPES] = {
		{2, 68, 2, 0x7c00, 0x3800},
		{14, 68, 2, 0x7f80, 0x3f00},
		{0, 77, 4, 0x7f800000, 0x3f000000},
		{0, 68, 4, 0x7f800000, 0x3f000000},
		{1, 70, 8, 0x7ff0000000000000, 0x3fe0000000000000},
	};

	for (int type = 0; type < TAKT_CUDA_TYPES; type++) {
		struct takt_cuda_config config =
			wish(TAKT_CUDA_MATMUL, (enum takt_cuda_type)type, 64);
		struct takt_cuda_work *work;

		begin_anew(state);
		assert_int_equal(takt_cuda_open(&config, &work, &err), 0);
		assert_int_equal(fake->allocated_bytes, 3 * 64 * 64 * want[type].bytes);
		assert_int_equal(fake->uploaded_bytes, 2 * 64 * 64 * want[type].bytes);
		/* A half to one, so that no board is spared by zeros. */
		assert_int_equal(fake->first_element & want[type].exponent_mask,
				 want[type].exponent);
		assert_int_equal(takt_cuda_calls(work, 3, &err), 0);
		assert_int_equal(fake->calls, 3);
		assert_int_equal(fake->synchronized, 1);
		assert_int_equal(fake->data_type, want[type].data_type);
		assert_int_equal(fake->compute_type, want[type].compute_type);
		assert_int_equal(fake->size, 64);
		assert_true(fake->alpha > 0.99 && fake->alpha < 1.01 && fabs(fake->beta) < 1e-9);
		assert_int_equal((long)takt_cuda_call_size(work), 2 * 64 * 64 * 64);
		takt_free(work);
	}
}

static void copies_need_no_cublas(void **state)
{
	struct takt_cuda_config config = wish(TAKT_CUDA_STREAM, TAKT_CUDA_F16, 3);
	struct takt_cuda_work *work;

	config.cublas_path = "/nowhere/libcublas.so";
	assert_int_equal(takt_cuda_open(&config, &work, &err), 0);
	assert_int_equal(takt_cuda_calls(work, 2, &err), 0);
	assert_int_equal(fake->copied_bytes, 2 * 3 * 1048576);
	assert_int_equal((long)takt_cuda_call_size(work), 2 * 3 * 1048576);
	takt_free(work);
}

/* Of the third matrix, or of what was copied to: all of it, in pieces. */
static void what_came_out_has_a_checksum(void **state)
{
	struct takt_cuda_config config = wish(TAKT_CUDA_MATMUL, TAKT_CUDA_F16, 64);
	uint32_t first = 0, again = 0, other = 0;
	struct takt_cuda_work *work;

	assert_int_equal(takt_cuda_open(&config, &work, &err), 0);
	assert_int_equal(takt_cuda_checksum(work, &first, &err), 0);
	assert_int_equal(fake->downloaded_bytes, 64 * 64 * 2);
	assert_int_equal(fake->downloaded_from - 0x7f0000000000, 2 * 64 * 64 * 2);
	assert_int_equal(takt_cuda_checksum(work, &again, &err), 0);
	fake->result = 1;
	assert_int_equal(takt_cuda_checksum(work, &other, &err), 0);
	assert_true(first == again && first != other);
	fake->work_code = 719;
	assert_int_equal(takt_cuda_checksum(work, &other, &err), -EIO);
	assert_non_null(strstr(err.msg, "read the result"));
	takt_free(work);
	begin_anew(state);
	config = wish(TAKT_CUDA_STREAM, TAKT_CUDA_F16, 40);
	assert_int_equal(takt_cuda_open(&config, &work, &err), 0);
	assert_int_equal(takt_cuda_checksum(work, &first, &err), 0);
	assert_int_equal(fake->downloaded_bytes, 40 * 1048576);
	assert_int_equal(fake->downloaded_from - 0x7f0000000000, 40 * 1048576);
	takt_free(work);
}

static void the_gpu_is_found_by_its_uuid(void **state)
{
	struct takt_cuda_config config = wish(TAKT_CUDA_STREAM, TAKT_CUDA_F16, 1);
	struct takt_cuda_work *work;

	config.uuid = "GPU-0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b";
	assert_int_equal(takt_cuda_open(&config, &work, &err), 0);
	assert_int_equal(fake->device, 11);
	takt_free(work);
	config.uuid = "GPU-0c0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b";
	assert_int_equal(takt_cuda_open(&config, &work, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "2 GPUs, none of them 'GPU-0c0b"));
}

static void what_is_not_there_is_named(void **state)
{
	struct takt_cuda_config config = wish(TAKT_CUDA_MATMUL, TAKT_CUDA_F16, 64);
	struct takt_cuda_work *work;

	config.cuda_path = "/nowhere/libcuda.so.1";
	assert_int_equal(takt_cuda_open(&config, &work, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "no CUDA driver library"));
	config.cuda_path = library;
	config.cublas_path = "/nowhere/libcublas.so";
	assert_int_equal(takt_cuda_open(&config, &work, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "no cuBLAS"));
	config.cublas_path = library;
	fake->init_code = 100;
	assert_int_equal(takt_cuda_open(&config, &work, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "CUDA_ERROR_NO_DEVICE (100)"));
	fake->init_code = 0;
	fake->memory_bytes = 20000;
	assert_int_equal(takt_cuda_open(&config, &work, &err), -ENOMEM);
	assert_non_null(strstr(err.msg, "take memory on the GPU"));
	fake->memory_bytes = 1 << 30;
	fake->blas_code = 3;
	assert_int_equal(takt_cuda_open(&config, &work, &err), -EIO);
	assert_non_null(strstr(err.msg, "cuBLAS: status 3"));
}

static void a_failure_while_working_is_told(void **state)
{
	struct takt_cuda_config config = wish(TAKT_CUDA_MATMUL, TAKT_CUDA_F16, 64);
	struct takt_cuda_work *work;

	assert_int_equal(takt_cuda_open(&config, &work, &err), 0);
	fake->work_code = 719;
	assert_int_equal(takt_cuda_calls(work, 1, &err), -EIO);
	assert_non_null(strstr(err.msg, "unknown (719)"));
	assert_int_equal(err.vendor, 719);
	takt_free(work);
}

static void without_memory_it_says_so(void **state)
{
	struct takt_cuda_config config = wish(TAKT_CUDA_MATMUL, TAKT_CUDA_F16, 64);
	struct takt_cuda_work *work = NULL;
	unsigned long nth = 0;
	int rc = -ENOMEM;

	while (rc != 0) {
		err = (struct takt_err){0};
		takt_alloc_fail_nth(++nth, 0);
		rc = takt_cuda_open(&config, &work, &err);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(err.rc, rc);
		assert_true((rc == 0) == (err.msg[0] == '\0'));
		assert_true((rc == 0) == (work != NULL));
		assert_true(nth < 100);
	}
	assert_true(nth > 1); /* else none failed */
	assert_int_equal(takt_cuda_calls(work, 2, &err), 0);
	assert_int_equal(fake->calls, 2);
	takt_free(work);
}

static void a_board_that_is_not_listed_has_no_peak(void **state)
{
	assert_true(takt_board_peak_tflops("NVIDIA H100 80GB HBM3", TAKT_CUDA_F16) > 900);
	assert_true(takt_board_peak_gbs("NVIDIA H100 80GB HBM3") > 3000);
	assert_true(fabs(takt_board_peak_tflops("Tesla T4", TAKT_CUDA_BF16)) < 1e-9);
	assert_true(fabs(takt_board_peak_tflops("NVIDIA H100", TAKT_CUDA_F16)) < 1e-9);
	assert_true(fabs(takt_board_peak_gbs("a board of tomorrow")) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_type_is_multiplied_as_cublas_calls_it, begin_anew),
		cmocka_unit_test_setup(copies_need_no_cublas, begin_anew),
		cmocka_unit_test_setup(what_came_out_has_a_checksum, begin_anew),
		cmocka_unit_test_setup(the_gpu_is_found_by_its_uuid, begin_anew),
		cmocka_unit_test_setup(what_is_not_there_is_named, begin_anew),
		cmocka_unit_test_setup(a_failure_while_working_is_told, begin_anew),
		cmocka_unit_test_setup(without_memory_it_says_so, begin_anew),
		cmocka_unit_test(a_board_that_is_not_listed_has_no_peak),
	};

	return cmocka_run_group_tests(tests, find_fake, NULL);
}
