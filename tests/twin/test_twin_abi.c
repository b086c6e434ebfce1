/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every function that the library of a driver branch implements, called by a table made from the
 * same facts as the ABI: with buffers of exactly the size that its layout has (each version of it),
 * with nothing, with handles of nothing, too short, too early and too late. Nothing may be written
 * behind a buffer, nor into one by a call that is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "twin_fixture.h"

enum {
	MAX_ARGS = 6,
	ENTRIES_GIVEN = 3,
	BEHIND = 64, /* bytes behind a buffer that nobody may touch */
	BUFFER = 16384,
	TEXT_ROOM = 96,
	MARK = 0xAA,
};

enum kind {
	END, /* of the arguments */
	DEVICE,
	INSTANCE,
	COMPUTE,
	SET,
	SAMPLE,
	NUMBER,
	WORDS,
	BYTES,
	ENTRIES,
	LENGTH,
	NOTHING,
	TEXT,
	TEXT_IN,
	STRUCT_IN,
	OUT,
	COUNT,
	ARRAY,
	VERSIONED,
};

struct row {
	const char *name;
	struct {
		enum kind kind;
		uint32_t size, word; /* of one element; of a version */
	} args[MAX_ARGS];
};

#include "nvml_calls.h"

typedef int any_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* One call being made. */
struct call {
	const struct row *row;
	uint64_t args[MAX_ARGS];
	unsigned char buffers[MAX_ARGS][BUFFER];
	size_t sizes[MAX_ARGS];
};

static struct call call; /* large */
static struct nvml_gpu_instance *instance;
static struct nvml_compute_instance *compute;
static struct nvml_device *mig;	  /* the device that this is */
static struct nvml_device *meant; /* in place of a GPU, if not NULL */
static struct nvml_event_set *event_set;
static struct nvml_gpm_sample *gpm_sample;

/* Does the library of this branch export it? */
static bool exported(const char *name)
{
	static char *text;
	char line[100];
	FILE *file;

	if (!text) {
		file = fopen(getenv("TAKT_TWIN_SYMBOLS"), "re");
		assert_non_null(file);
		text = calloc(1, 65536);
		assert_non_null(text);
		text[0] = '\n';
		assert_true(fread(text + 1, 1, 65000, file) > 1000);
		fclose(file);
	}
	snprintf(line, sizeof(line), "\n%s\n", name);
	return strstr(text, line) != NULL;
}

static bool is_buffer(enum kind kind)
{
	return kind == TEXT || kind == OUT || kind == COUNT || kind == ARRAY || kind == VERSIONED;
}

static size_t buffer_size(const struct row *row, unsigned i)
{
	switch (row->args[i].kind) {
	case TEXT:
		return TEXT_ROOM;
	case ARRAY:
		return (size_t)row->args[i].size * ENTRIES_GIVEN;
	default:
		return row->args[i].size;
	}
}

/* Setters act on a GPU of their own, so that the others stay as they are. */
static uint32_t gpu_for(const char *name)
{
	static const char *const setters[] = {"Set", "Reset", "Clear", "Create", "Freeze"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(setters); i++) {
		if (strstr(name, setters[i]) && !strstr(name, "EventSetCreate"))
			return 7;
	}
	return 0;
}

static uint64_t plain_argument(const struct row *row, enum kind kind)
{
	static const struct nvml_uuid nobody = {.version = NVML_UUID_WORD, .type = 1};

	switch (kind) {
	case DEVICE:
		return (uintptr_t)(meant ? meant : twin_gpu_handle(gpu_for(row->name)));
	case INSTANCE:
		return (uintptr_t)instance;
	case COMPUTE:
		return (uintptr_t)compute;
	case SET:
		return (uintptr_t)event_set;
	case SAMPLE:
		return (uintptr_t)gpm_sample;
	case WORDS:
	case ENTRIES:
		return ENTRIES_GIVEN;
	case BYTES:
		return ENTRIES_GIVEN * sizeof(uint32_t);
	case LENGTH:
		return TEXT_ROOM;
	case TEXT_IN:
		return (uintptr_t) "GPU-none";
	case STRUCT_IN:
		return (uintptr_t)&nobody;
	default:
		return 0;
	}
}

static void prepare(const struct row *row, uint32_t number)
{
	call.row = row;
	for (unsigned i = 0; i < MAX_ARGS; i++) {
		enum kind kind = row->args[i].kind;
		call.sizes[i] = 0;
		if (!is_buffer(kind)) {
			call.args[i] = kind == NUMBER ? number : plain_argument(row, kind);
			continue;
		}
		call.sizes[i] = buffer_size(row, i);
		assert_true(call.sizes[i] + BEHIND <= BUFFER);
		call.args[i] = (uintptr_t)call.buffers[i];
		memset(call.buffers[i], MARK, call.sizes[i] + BEHIND);
		if (kind == VERSIONED) {
			memset(call.buffers[i], 0, call.sizes[i]);
			memcpy(call.buffers[i], &row->args[i].word, 4);
		}
		if (kind == COUNT)
			memcpy(call.buffers[i], &(uint32_t){ENTRIES_GIVEN}, 4);
	}
}

static int make(void)
{
	any_fn *function = (any_fn *)twin_symbol(call.row->name);
	int rc = function(call.args[0], call.args[1], call.args[2], call.args[3], call.args[4],
			  call.args[5]);

	for (unsigned i = 0; i < MAX_ARGS; i++) {
		for (size_t at = call.sizes[i]; call.sizes[i] && at < call.sizes[i] + BEHIND;
		     at++) {
			if (call.buffers[i][at] != MARK)
				fail_msg("%s (%d) writes byte %zu of argument %u, which has %zu",
					 call.row->name, rc, at, i, call.sizes[i]);
		}
	}
	return rc;
}

/* Calls `visit` for each row of a function that this branch has. */
static void each_row(void (*visit)(const struct row *row))
{
	unsigned n = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		if (!exported(rows[i].name))
			continue;
		visit(&rows[i]);
		n++;
	}
	assert_true(n > 200);
}

/* Things of every kind that a handle may stand for. */
static void make_handles(void)
{
	int activation;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceSetMigMode)(twin_gpu_handle(1), 1, &activation),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstance)(twin_gpu_handle(1), 9, &instance),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 2, &compute),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(twin_gpu_handle(1), 0, &mig),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlEventSetCreate)(&event_set), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpmSampleAlloc)(&gpm_sample), NVML_SUCCESS);
}

static bool frees(const char *name)
{
	return strcmp(name, "nvmlEventSetFree") == 0 || strcmp(name, "nvmlGpmSampleFree") == 0 ||
	       strcmp(name, "nvmlGpuInstanceDestroy") == 0 ||
	       strcmp(name, "nvmlComputeInstanceDestroy") == 0;
}

/* What allocates gives something that the test has to free again. */
static void give_back(const struct row *row)
{
	void *made;

	memcpy(&made, call.buffers[0], sizeof(made));
	if (strcmp(row->name, "nvmlEventSetCreate") == 0)
		NVML(nvmlEventSetFree)(made);
	if (strcmp(row->name, "nvmlGpmSampleAlloc") == 0)
		NVML(nvmlGpmSampleFree)(made);
}

static void end_handles(void)
{
	assert_int_equal(NVML(nvmlEventSetFree)(event_set), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpmSampleFree)(gpm_sample), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlComputeInstanceDestroy)(compute), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceDestroy)(instance), NVML_SUCCESS);
}

/* Codes that a call with arguments of the right form may have. */
static bool documented(int rc)
{
	static const int codes[] = {
		NVML_SUCCESS,
		NVML_ERROR_INVALID_ARGUMENT,
		NVML_ERROR_NOT_SUPPORTED,
		NVML_ERROR_NOT_FOUND,
		NVML_ERROR_INSUFFICIENT_SIZE,
		NVML_ERROR_TIMEOUT,
		NVML_ERROR_IN_USE,
		NVML_ERROR_INSUFFICIENT_RESOURCES,
		NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
		NVML_ERROR_DEPRECATED,
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(codes); i++) {
		if (codes[i] == rc)
			return true;
	}
	return false;
}

static void with_right_arguments(const struct row *row)
{
	static const uint32_t numbers[] = {0, 1, 2, 9, 19, 255, UINT32_MAX};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(numbers) && !frees(row->name); i++) {
		int rc;
		prepare(row, numbers[i]);
		rc = make();
		/* this machine may lack the CPUs that a GPU is near */
		if (!documented(rc) && strcmp(row->name, "nvmlDeviceSetCpuAffinity") != 0)
			fail_msg("%s answers %d to %u", row->name, rc, numbers[i]);
		if (rc == NVML_SUCCESS)
			give_back(row);
	}
}

static void nothing_is_written_behind_a_buffer(void **state)
{
	make_handles();
	each_row(with_right_arguments);
	meant = mig;
	each_row(with_right_arguments);
	meant = NULL;
	end_handles();
}

/* May be NULL: what it is for, the caller need not want. */
static bool optional(const struct row *row, unsigned i)
{
	/* the array, for who asks how long it would be; when pages were retired */
	return row->args[i].kind == ARRAY || strcmp(row->name, "nvmlSystemGetHicVersion") == 0;
}

static bool is_pointer(enum kind kind)
{
	return is_buffer(kind) || kind == TEXT_IN || kind == STRUCT_IN ||
	       (kind >= DEVICE && kind <= SAMPLE);
}

static void with_a_null(const struct row *row)
{
	for (unsigned i = 0; i < MAX_ARGS; i++) {
		int rc;
		if (!is_pointer(row->args[i].kind))
			continue;
		prepare(row, 0);
		call.args[i] = 0;
		call.sizes[i] = 0;
		rc = make();
		if (rc != NVML_ERROR_INVALID_ARGUMENT && !(optional(row, i) && documented(rc)))
			fail_msg("%s answers %d to NULL for argument %u", row->name, rc, i);
	}
}

static void null_is_refused_for_each_argument(void **state)
{
	make_handles();
	each_row(with_a_null);
	end_handles();
}

/* Handles of GPUs and instances are judged by where they point; those of sets and samples are the
 * callers' own memory, as with the real library. */
static void with_a_foreign_handle(const struct row *row)
{
	static const uint64_t nothing[64];

	for (unsigned i = 0; i < MAX_ARGS; i++) {
		enum kind kind = row->args[i].kind;
		int rc;
		if (kind != DEVICE && kind != INSTANCE && kind != COMPUTE)
			continue;
		prepare(row, 0);
		call.args[i] = (uintptr_t)nothing;
		rc = make();
		if (rc != NVML_ERROR_INVALID_ARGUMENT)
			fail_msg("%s answers %d to a handle of nothing", row->name, rc);
	}
}

static void handles_of_nothing_are_refused(void **state)
{
	make_handles();
	each_row(with_a_foreign_handle);
	end_handles();
}

static void untouched(const struct row *row, unsigned i, const unsigned char *before, int rc)
{
	if (memcmp(call.buffers[i], before, call.sizes[i]) != 0)
		fail_msg("%s answers %d and writes all the same", row->name, rc);
}

static void with_other_versions(const struct row *row)
{
	static unsigned char before[BUFFER];

	for (unsigned i = 0; i < MAX_ARGS; i++) {
		uint32_t word = row->args[i].word;
		uint32_t wrong[] = {0, word >> 24, word + 1, word ^ 0x7f000000, word & 0xffffff};
		for (size_t n = 0; word && n < TAKT_ARRAY_LEN(wrong); n++) {
			bool memory = strcmp(row->name, "nvmlDeviceGetMemoryInfo_v2") == 0;
			int rc;
			prepare(row, 0);
			memcpy(call.buffers[i], &wrong[n], 4);
			memcpy(before, call.buffers[i], sizeof(before));
			rc = make();
			untouched(row, i, before, rc);
			if (rc != NVML_ERROR_ARGUMENT_VERSION_MISMATCH &&
			    rc != NVML_ERROR_NOT_SUPPORTED &&
			    !(memory && rc == NVML_ERROR_FUNCTION_NOT_FOUND))
				fail_msg("%s answers %d to version %x", row->name, rc, wrong[n]);
		}
	}
}

static void other_versions_are_refused_and_nothing_is_written(void **state)
{
	make_handles();
	each_row(with_other_versions);
	end_handles();
}

/* A text that does not fit is not given at all, and a list says how long it would be. */
static void with_too_little_room(const struct row *row)
{
	static unsigned char before[BUFFER];
	uint32_t there;

	for (unsigned i = 0; i < MAX_ARGS; i++) {
		bool cut = strcmp(row->name, "nvmlSystemGetProcessName") == 0;
		int rc;
		prepare(row, 0);
		memcpy(before, call.buffers[i], sizeof(before));
		if (row->args[i].kind == TEXT && row->args[i + 1].kind == LENGTH && !cut) {
			call.args[i + 1] = 1;
			rc = make();
			untouched(row, i, before, rc);
			if (rc != NVML_ERROR_INSUFFICIENT_SIZE && rc != NVML_ERROR_NOT_SUPPORTED)
				fail_msg("%s answers %d to a buffer of one byte", row->name, rc);
		}
		if (row->args[i].kind != COUNT)
			continue;
		memcpy(call.buffers[i], &(uint32_t){0}, 4);
		rc = make();
		memcpy(&there, call.buffers[i], 4);
		if (rc == NVML_ERROR_INSUFFICIENT_SIZE && there == 0)
			fail_msg("%s does not say how long its list is", row->name);
	}
}

static void short_buffers_get_nothing(void **state)
{
	make_handles();
	each_row(with_too_little_room);
	end_handles();
}

/* Too early or too late, arguments that are right otherwise. */
static void outside_of_init(const struct row *row)
{
	static unsigned char before[BUFFER];
	int rc;

	if (strcmp(row->name, "nvmlSystemGetNVMLVersion") == 0)
		return; /* needs no driver */
	/* a handle is as good as any other where none is looked at */
	call.row = row;
	for (unsigned i = 0; i < MAX_ARGS; i++) {
		bool buffer = is_buffer(row->args[i].kind);
		call.sizes[i] = buffer ? buffer_size(row, i) : 0;
		call.args[i] = (uintptr_t)call.buffers[i];
		memset(call.buffers[i], MARK, sizeof(call.buffers[i]));
	}
	memset(before, MARK, sizeof(before));
	rc = make();
	for (unsigned i = 0; i < MAX_ARGS; i++)
		untouched(row, i, before, rc);
	if (rc != NVML_ERROR_UNINITIALIZED)
		fail_msg("%s answers %d outside of init and shutdown", row->name, rc);
}

static void before_init_and_after_shutdown_all_is_refused(void **state)
{
	each_row(outside_of_init);
	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlShutdown)(), NVML_SUCCESS);
	each_row(outside_of_init);
}

/* Old clients and new ones read the same of one GPU, each in its own layout. */
static void memory_is_the_same_in_each_version(struct nvml_device *gpu)
{
	struct nvml_memory_v2 new = {.version = NVML_MEMORY_V2_WORD};
	struct nvml_memory old;

	assert_int_equal(NVML(nvmlDeviceGetMemoryInfo)(gpu, &old), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetMemoryInfo_v2)(gpu, &new), NVML_SUCCESS);
	assert_int_equal(old.total, new.total);
	assert_int_equal(old.used, new.used + new.reserved);
	assert_int_equal(old.free, new.free);
}

static void the_bus_is_the_same_in_each_version(struct nvml_device *gpu)
{
	struct nvml_pci_info_v2 v1, v2;
	struct nvml_pci_info v3;

	assert_int_equal(NVML(nvmlDeviceGetPciInfo)(gpu, &v1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetPciInfo_v2)(gpu, &v2), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetPciInfo_v3)(gpu, &v3), NVML_SUCCESS);
	assert_string_equal(v1.bus_id, v3.bus_id_legacy);
	assert_string_equal(v2.bus_id, v3.bus_id_legacy);
	assert_string_equal(v3.bus_id + 4, v3.bus_id_legacy);
	assert_int_equal(v1.pci_device_id, v3.pci_device_id);
	assert_int_equal(v2.pci_subsystem_id, v3.pci_subsystem_id);
}

static void processes_are_the_same_in_each_version(struct nvml_device *gpu, pid_t pid)
{
	uint32_t n1 = 1, n2 = 1, n3 = 1;
	struct nvml_process_info_v1 v1;
	struct nvml_process_info v2, v3;

	assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses)(gpu, &n1, &v1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v2)(gpu, &n2, &v2),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &n3, &v3),
			 NVML_SUCCESS);
	assert_int_equal(n1, 1);
	assert_int_equal(v1.pid, pid);
	assert_int_equal(v1.used_memory, v3.used_memory);
	assert_int_equal(v2.pid, v3.pid);
	assert_int_equal(v2.used_memory, v3.used_memory);
	assert_int_equal(v2.gpu_instance_id, v3.gpu_instance_id);
}

static void fabrics_are_the_same_in_each_version(struct nvml_device *gpu)
{
	struct nvml_fabric_info_v2 v2 = {.version = NVML_FABRIC_INFO_V2_WORD};
	struct nvml_fabric_info_v3 v3 = {.version = NVML_FABRIC_INFO_V3_WORD};
	struct nvml_fabric_info v1;

	assert_int_equal(NVML(nvmlDeviceGetGpuFabricInfo)(gpu, &v1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetGpuFabricInfoV)(gpu, &v2), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetGpuFabricInfoV)(gpu, &v3), NVML_SUCCESS);
	assert_int_equal(v1.state, v2.state);
	assert_int_equal(v2.state, v3.state);
	assert_int_equal(v2.version, NVML_FABRIC_INFO_V2_WORD);
	assert_int_equal(v3.version, NVML_FABRIC_INFO_V3_WORD);
}

static void profiles_are_the_same_in_each_version(struct nvml_device *gpu)
{
	struct nvml_gpu_instance_profile_v2 v2 = {.version = NVML_GPU_INSTANCE_PROFILE_V2_WORD};
	struct nvml_gpu_instance_profile_v3 v3 = {.version = NVML_GPU_INSTANCE_PROFILE_V3_WORD};
	struct nvml_compute_instance_profile_v2 c2 = {
		.version = NVML_COMPUTE_INSTANCE_PROFILE_V2_WORD};
	struct nvml_compute_instance_profile_v3 c3 = {
		.version = NVML_COMPUTE_INSTANCE_PROFILE_V3_WORD};
	struct nvml_gpu_instance_profile v1;
	struct nvml_compute_instance_profile c1;

	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfo)(gpu, 2, &v1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu, 2, &v2), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu, 2, &v3), NVML_SUCCESS);
	assert_int_equal(v1.memory_mib, v2.memory_mib);
	assert_int_equal(v2.memory_mib, v3.memory_mib);
	assert_string_equal(v2.name, v3.name);
	assert_int_equal(NVML(nvmlGpuInstanceGetComputeInstanceProfileInfo)(instance, 0, 0, &c1),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceGetComputeInstanceProfileInfoV)(instance, 0, 0, &c2),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceGetComputeInstanceProfileInfoV)(instance, 0, 0, &c3),
			 NVML_SUCCESS);
	assert_int_equal(c1.multiprocessor_count, c2.multiprocessor_count);
	assert_int_equal(c2.multiprocessor_count, c3.multiprocessor_count);
	assert_string_equal(c2.name, c3.name);
}

static void instances_are_the_same_in_each_version(void)
{
	struct nvml_compute_instance_info_v1 i1;
	struct nvml_compute_instance_info i2;
	struct nvml_device_attributes_v1 v1;
	struct nvml_device_attributes v2;

	assert_int_equal(NVML(nvmlDeviceGetAttributes)(mig, &v1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetAttributes_v2)(mig, &v2), NVML_SUCCESS);
	assert_int_equal(v1.memory_mib, v2.memory_mib);
	assert_int_equal(v1.multiprocessor_count, v2.multiprocessor_count);
	assert_int_equal(NVML(nvmlComputeInstanceGetInfo)(compute, &i1), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlComputeInstanceGetInfo_v2)(compute, &i2), NVML_SUCCESS);
	assert_ptr_equal(i1.device, i2.device);
	assert_ptr_equal(i1.gpu_instance, i2.gpu_instance);
	assert_int_equal(i1.id, i2.id);
	assert_int_equal(i1.profile_id, i2.profile_id);
}

static void each_version_says_the_same(void **state)
{
	pid_t pid = twin_start_load("--mem 1000 --gpus 0", 0);
	struct nvml_device *gpu;

	make_handles();
	gpu = twin_gpu_handle(0);
	memory_is_the_same_in_each_version(gpu);
	the_bus_is_the_same_in_each_version(gpu);
	processes_are_the_same_in_each_version(gpu, pid);
	if (exported("nvmlDeviceGetGpuFabricInfoV"))
		fabrics_are_the_same_in_each_version(gpu);
	profiles_are_the_same_in_each_version(gpu);
	instances_are_the_same_in_each_version();
	end_handles();
	twin_end(pid);
}

#define ON_H100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_h100, twin_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_H100(before_init_and_after_shutdown_all_is_refused),
		ON_H100(nothing_is_written_behind_a_buffer),
		ON_H100(null_is_refused_for_each_argument),
		ON_H100(handles_of_nothing_are_refused),
		ON_H100(other_versions_are_refused_and_nothing_is_written),
		ON_H100(short_buffers_get_nothing),
		ON_H100(each_version_says_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
