/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of machines: what `takt record` writes and a replayed machine answers from. Internal
 * to device.
 *
 * The format is text, one item a line, fields separated by one space, at most 16 KiB a line and
 * 64 MiB a file:
 *
 *	takt-recording 1                        first line: the format and its version
 *	info KEY VALUE                          driver, nvml (text), cuda (number), simulated (0, 1)
 *	gpus N                                  before any line that names a GPU; GPUs are 0 .. N-1
 *	fact GPU KEY VALUE                      a static fact; the keys are in recording_fields.c
 *	link GPU GPU PCIE NVLINKS               each pair at most once; PCIE 0 (unknown) to 6
 *(board) sample GPU AT_US KEY=VALUE...           microseconds since the recording began, rising
 *
 * What a machine did not say is not there: an absent key is an absent reading. Of values that the
 * driver gives together (the three power limits, PCIe generation and width) there are all or none.
 * Processes are proc=PID:BYTES:KIND, with ? for unknown bytes and kind c (compute) or g (graphics
 * only), without what they use of the GPU; noprocs=1 says that the list was read and was empty.
 * lost=1 and rc=-N say what went wrong.
 *
 * The reader is strict: whatever it does not know is an error with the line's number.
 */
#ifndef TAKT_DEVICE_RECORDING_H
#define TAKT_DEVICE_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "device/device.h"

enum {
	TAKT_RECORDING_MAX_LINE = 16 * 1024,
	TAKT_RECORDING_MAX_BYTES = 64 * 1024 * 1024,
	TAKT_RECORDING_MAX_SAMPLES = 1 << 20, /* of one GPU */
};

struct takt_recorded_sample {
	uint64_t at_us;
	size_t line; /* offset of its fields in the text */
};

struct takt_recording {
	struct takt_machine_info info;
	uint32_t gpu_count;
	struct takt_gpu_facts *facts; /* owned, gpu_count */
	struct takt_gpu_link *links;  /* owned, gpu_count squared */
	struct takt_recorded_samples {
		TAKT_VEC(struct takt_recorded_sample) list;
	} * samples; /* owned, gpu_count */
	char *text;  /* owned; lines end in NUL */
};

/* Parses len bytes; `name` is for messages. */
int takt_recording_parse(const char *name, const char *text, size_t len,
			 struct takt_recording **ret, struct takt_err *err);
int takt_recording_read(const char *path, struct takt_recording **ret, struct takt_err *err);
void takt_recording_free(struct takt_recording *recording);

/* Sample i of a GPU: everything but at, slow_at, seq and stale. */
void takt_recording_sample(const struct takt_recording *recording, uint32_t gpu, size_t i,
			   struct takt_gpu_reading *ret);

/* Writers of single lines, newline included. */
void takt_recording_add_fact_lines(const struct takt_gpu_facts *facts, uint32_t gpu,
				   struct takt_str *ret);
void takt_recording_add_sample_line(const struct takt_gpu_reading *reading, uint32_t gpu,
				    uint64_t at_us, struct takt_str *ret);

/* One value by its key, from recording_fields.c. set: 0, -EINVAL with a message when the key is
 * unknown, was seen before or the value is not as it should be. */
struct takt_seen {
	uint64_t fields;
};
int takt_fact_set(struct takt_gpu_facts *facts, struct takt_seen *seen, const char *key,
		  const char *value, struct takt_err *err);
int takt_reading_set(struct takt_gpu_reading *reading, struct takt_seen *seen, const char *key,
		     const char *value, struct takt_err *err);
/* Whether values that belong together are all there. */
int takt_facts_check(const struct takt_seen *seen, struct takt_err *err);
int takt_reading_check(const struct takt_seen *seen, struct takt_err *err);

#endif
