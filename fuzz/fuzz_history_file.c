/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a GPU's history: one of any content is opened and made whole, and what is read from
 * it are steps of the time that was asked for, each once. The checksum of a record would keep a
 * fuzzer out, so the input is also laid over the records of a whole file with right ones.
 */
#include "fuzz_file.h"

#include "base/checksum.h"
#include "telemetry/history_file.h"

enum {
	HEADER = 4096,
	SERIES = 3,
};

static const struct takt_history_level levels[TAKT_HISTORY_LEVELS] = {{10, 6}, {60, 4}, {3600, 3}};

struct seen {
	const struct takt_history_span *ask;
	int64_t last_s;
	uint32_t count;
};

static int see(void *ctx, const struct takt_history_point *point)
{
	struct seen *seen = ctx;

	fuzz_expect(point->at_s >= seen->ask->from_s && point->at_s < seen->ask->until_s);
	fuzz_expect(point->at_s % levels[seen->ask->level].step_s == 0);
	fuzz_expect(seen->count == 0 || point->at_s > seen->last_s);
	seen->last_s = point->at_s;
	fuzz_expect(++seen->count <= levels[seen->ask->level].slots);
	return 0;
}

static uint32_t count_points(int fd, uint32_t level, int64_t from_s, int64_t until_s)
{
	struct takt_history_span ask = {
		.series = SERIES, .level = level, .from_s = from_s, .until_s = until_s};
	struct seen seen = {.ask = &ask};

	fuzz_expect(takt_history_file_read(&fuzz_sys, fd, levels, &ask, see, &seen) == 0);
	return seen.count;
}

static int open_file(void)
{
	struct takt_history_config config = {.sys = &fuzz_sys, .levels = levels};
	struct takt_err err = {0};
	int fd = -1;

	fuzz_expect(takt_history_file_open(&config, "GPU-1.hist", &fd, &err) == 0);
	fuzz_expect(fuzz_file.size >= takt_history_file_size(levels));
	return fd;
}

/* A step of that time is there once, in every level, and stays when the file is opened again. */
static void try_file(int64_t step)
{
	struct takt_history_record record = {.step = step};
	int fd = open_file();

	for (uint32_t level = 0; level < TAKT_HISTORY_LEVELS; level++)
		(void)count_points(fd, level, step * 10 - 100000, step * 10 + 100000);
	record.values[SERIES] = (struct takt_history_value){1, 2, 3, 4};
	fuzz_expect(takt_history_file_add(&fuzz_sys, fd, levels, &record) == 0);
	fuzz_sys.close(&fuzz_sys, fd);
	fd = open_file();
	for (uint32_t level = 0; level < TAKT_HISTORY_LEVELS; level++) {
		int64_t at_s = step * 10 / levels[level].step_s * levels[level].step_s;

		fuzz_expect(count_points(fd, level, at_s, at_s + 1) == 1);
	}
	fuzz_sys.close(&fuzz_sys, fd);
}

static void lay_over(const uint8_t *data, size_t size)
{
	const size_t one = sizeof(struct takt_history_record);
	struct takt_history_record record;

	fuzz_sys.close(&fuzz_sys, open_file());
	for (size_t at = 0; at + one <= size && HEADER + at + one <= fuzz_file.size; at += one) {
		memcpy(&record, data + at, one);
		record.crc = takt_crc32c(&record, offsetof(struct takt_history_record, crc));
		memcpy(fuzz_file.bytes + HEADER + at, &record, one);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t step = 170000000; /* or the first record's */

	if (size >= sizeof(step))
		memcpy(&step, data, sizeof(step));
	fuzz_file_fill(data, size);
	try_file(step);
	fuzz_file_fill(data, 0);
	lay_over(data, size);
	try_file(step);
	fuzz_expect(fuzz_file.open == 0);
	return 0;
}
