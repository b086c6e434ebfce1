/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a machine on the fake driver and taking samples of it, for the tests of device. */
#ifndef TAKT_TESTS_FAKE_MACHINE_H
#define TAKT_TESTS_FAKE_MACHINE_H

/* cmocka asks for these before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/sys.h"
#include "device/device.h"
#include "fake_nvml.h"

/* The driver's number of each GPU in PCI order (see fake_nvml.c). */
static const uint32_t fake_at_driver[FAKE_GPUS] = {1, 2, 0, 3};

static inline struct takt_mono in_ms(uint64_t ms)
{
	return takt_mono_add(takt_mono_now(takt_sys_real()), ms * TAKT_NS_PER_MS);
}

static inline struct takt_machine_config fake_config(void)
{
	return (struct takt_machine_config){
		.source = TAKT_SOURCE_NVML,
		.sysfs_root = "/nonexistent",
	};
}

static inline struct takt_machine *open_with(struct takt_machine_config config)
{
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};
	int rc = takt_machine_open(&config, &machine, &err);

	if (rc < 0)
		fail_msg("open: %d %s", rc, err.msg);
	return machine;
}

static inline struct takt_machine *open_fake(void)
{
	return open_with(fake_config());
}

/* A full sample of one GPU, waited for. */
static inline struct takt_gpu_reading sample_of(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_gpu_reading reading = {0};
	uint64_t before = 0;

	if (takt_machine_reading(machine, gpu, &reading) == 0)
		before = reading.seq;
	takt_machine_sample(machine, gpu);
	assert_int_equal(takt_machine_wait(machine, gpu, before, in_ms(120000)), 0);
	assert_int_equal(takt_machine_reading(machine, gpu, &reading), 0);
	return reading;
}

static inline int reset_fake(void **state)
{
	fake_reset();
	return 0;
}

#endif
