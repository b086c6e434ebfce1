/* SPDX-License-Identifier: Apache-2.0 */
/* The meter, see the header. */
#include "daemon/meter.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"
#include "device/device.h"

static const uint64_t answer_ns = 5 * TAKT_NS_PER_S;

struct takt_meter {
	struct takt_machine *machine;
	struct takt_gpu_events *events; /* NULL: deaf */
	struct takt_err deaf;
	uint32_t count;
	uint32_t gpu[TAKT_DEVICE_MAX_GPUS];
	uint64_t seen[TAKT_DEVICE_MAX_GPUS]; /* seq of the newest reading in the sums */
	struct takt_meter_mark sums;
	bool powerless; /* a reading came without power */
};

static const struct takt_gpu_facts *facts(const struct takt_meter *meter, uint32_t i)
{
	return takt_machine_facts(meter->machine, meter->gpu[i]);
}

static int find_gpu(struct takt_meter *meter, const char *uuid, struct takt_err *err)
{
	uint32_t there = takt_machine_info(meter->machine)->gpu_count;

	for (uint32_t i = 0; i < there && meter->count < TAKT_DEVICE_MAX_GPUS; i++) {
		if (uuid && strcmp(takt_machine_facts(meter->machine, i)->uuid, uuid) != 0)
			continue;
		meter->gpu[meter->count++] = i;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_NOT_FOUND,
			    uuid ? "the driver shows no GPU '%.100s'" : "there is no GPU", uuid);
}

/* Not to hear of events is no reason not to measure; whoever measures is told. */
static void listen_to_events(struct takt_meter *meter, const char *nvml_path)
{
	const char *uuids[TAKT_DEVICE_MAX_GPUS];

	for (uint32_t i = 0; i < meter->count; i++)
		uuids[i] = facts(meter, i)->uuid;
	(void)takt_gpu_events_open(nvml_path, uuids, meter->count, &meter->events, NULL,
				   &meter->deaf);
}

int takt_meter_open(const char *nvml_path, const char *const *uuids, uint32_t count,
		    struct takt_meter **ret, struct takt_err *err)
{
	const struct takt_machine_config config = {
		.source = TAKT_SOURCE_NVML, .nvml_path = nvml_path, .no_processes = true};
	struct takt_meter *meter = takt_zalloc(sizeof(*meter));
	int rc = meter ? takt_machine_open(&config, &meter->machine, err)
		       : takt_err_set(err, -ENOMEM, "the meter");

	if (rc == 0 && count == 0)
		rc = find_gpu(meter, NULL, err);
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = find_gpu(meter, uuids[i], err);
	if (rc < 0) {
		takt_meter_close(meter);
		return rc;
	}
	listen_to_events(meter, nvml_path);
	*ret = meter;
	return 0;
}

void takt_meter_close(struct takt_meter *meter)
{
	if (!meter)
		return;
	takt_gpu_events_close(meter->events);
	takt_machine_close(meter->machine);
	takt_free(meter);
}

bool takt_meter_simulated(const struct takt_meter *meter)
{
	return takt_machine_info(meter->machine)->simulated;
}

const char *takt_meter_gpu_name(const struct takt_meter *meter)
{
	return facts(meter, 0)->name;
}

const char *takt_meter_gpu_uuid(const struct takt_meter *meter)
{
	return facts(meter, 0)->uuid;
}

uint32_t takt_meter_gpu_count(const struct takt_meter *meter)
{
	return meter->count;
}

const char *takt_meter_deaf(const struct takt_meter *meter)
{
	return meter->events ? "" : meter->deaf.msg;
}

static void add(struct takt_meter *meter, const struct takt_gpu_reading *reading)
{
	if (reading->has & TAKT_HAS_POWER) {
		meter->sums.power_sum_mw += reading->power_mw;
		meter->sums.power_count++;
	} else {
		meter->powerless = true;
	}
	if (reading->has & TAKT_HAS_SM_CLOCK) {
		meter->sums.sm_sum_mhz += reading->sm_mhz;
		meter->sums.sm_count++;
	}
}

void takt_meter_turn(struct takt_meter *meter)
{
	TAKT_CLEANUP(freep) struct takt_gpu_reading *reading = takt_alloc(sizeof(*reading));

	for (uint32_t i = 0; reading && i < meter->count; i++) {
		if (takt_machine_reading(meter->machine, meter->gpu[i], reading) == 0 &&
		    reading->seq > meter->seen[i]) {
			meter->seen[i] = reading->seq;
			add(meter, reading);
		}
		takt_machine_tick(meter->machine, meter->gpu[i]);
	}
}

bool takt_meter_event(struct takt_meter *meter, struct takt_gpu_event *ret)
{
	return meter->events && takt_gpu_events_next(meter->events, ret) > 0;
}

static bool is_older(const struct takt_gpu_reading *reading, struct takt_mono than)
{
	return reading->slow_at.ns < than.ns ||
	       (reading->has & TAKT_HAS_ENERGY && reading->energy_at.ns < than.ns);
}

/* A reading that was begun after this call. */
static int read_anew(struct takt_meter *meter, uint32_t i, struct takt_gpu_reading *ret,
		     struct takt_err *err)
{
	struct takt_mono begin = takt_mono_now(takt_sys_real());
	struct takt_mono deadline = takt_mono_add(begin, answer_ns);
	int rc = 0;

	ret->seq = takt_machine_reading(meter->machine, meter->gpu[i], ret) == 0 ? ret->seq : 0;
	takt_machine_sample(meter->machine, meter->gpu[i]);
	do {
		rc = takt_machine_wait(meter->machine, meter->gpu[i], ret->seq, deadline);
		if (rc == 0)
			rc = takt_machine_reading(meter->machine, meter->gpu[i], ret);
	} while (rc == 0 && !ret->lost && is_older(ret, begin));
	if (rc == 0 && ret->lost)
		rc = -ENODEV;
	return rc < 0 ? takt_err_set(err, rc, "read GPU '%s'", facts(meter, i)->uuid) : 0;
}

int takt_meter_mark(struct takt_meter *meter, struct takt_meter_mark *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_gpu_reading *reading = takt_zalloc(sizeof(*reading));
	struct takt_meter_mark mark = meter->sums;
	int rc = reading ? 0 : takt_err_set(err, -ENOMEM, "a reading");

	mark.has_energy = true;
	for (uint32_t i = 0; rc == 0 && i < meter->count; i++) {
		rc = read_anew(meter, i, reading, err);
		mark.has_energy &= (reading->has & TAKT_HAS_ENERGY) != 0;
		mark.energy_mj += reading->energy_mj;
		mark.at_ns =
			reading->has & TAKT_HAS_ENERGY ? reading->energy_at.ns : reading->at.ns;
	}
	if (meter->powerless && meter->count > 1)
		mark.power_sum_mw = mark.power_count = 0;
	if (rc == 0)
		*ret = mark;
	return rc;
}
