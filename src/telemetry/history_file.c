/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history_file.h. A record is written in place with one call and carries a checksum: one that
 * was torn by a power loss, as one that never was written, reads as absent. All blocks are taken
 * when the file is made, so that a disk that fills up later does not end it.
 */
#include "telemetry/history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/str.h"

enum {
	HEADER_BYTES = 4096,
	VERSION = 1,
	BYTE_ORDER_MARK = 0x01020304,
	SHARE_OF_FREE = 16,
	READ_AT_ONCE = 64, /* records */
};

struct header {
	char magic[8];
	uint32_t byte_order, version, record_bytes, level_count;
	struct takt_history_level levels[TAKT_HISTORY_LEVELS];
	uint32_t crc;
};
_Static_assert(sizeof(struct header) == 28 + TAKT_HISTORY_LEVELS * 8,
	       "no padding: it is compared as bytes, and the CRC is of bytes");

static struct header header_of(const struct takt_history_level *levels)
{
	struct header header = {
		.byte_order = BYTE_ORDER_MARK,
		.version = VERSION,
		.record_bytes = sizeof(struct takt_history_record),
		.level_count = TAKT_HISTORY_LEVELS,
	};

	memcpy(header.magic, "TAKTHIST", sizeof(header.magic));
	memcpy(header.levels, levels, sizeof(header.levels));
	header.crc = takt_crc32c(&header, offsetof(struct header, crc));
	return header;
}

uint64_t takt_history_file_size(const struct takt_history_level *levels)
{
	uint64_t records = 0;

	for (int l = 0; l < TAKT_HISTORY_LEVELS; l++)
		records += levels[l].slots;
	return HEADER_BYTES + records * sizeof(struct takt_history_record);
}

bool takt_history_file_name(const char *uuid, char ret[TAKT_HISTORY_NAME])
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";

	if (!uuid || !uuid[0] || uuid[strspn(uuid, allowed)])
		return false;
	return snprintf(ret, TAKT_HISTORY_NAME, "%s.hist", uuid) < TAKT_HISTORY_NAME;
}

static int read_whole(const struct takt_sys *sys, int fd, void *bytes, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got =
			sys->pread(sys, fd, (char *)bytes + done, n - done, (off_t)(at + done));

		if (got <= 0)
			return got < 0 ? (int)got : -EIO;
		done += (size_t)got;
	}
	return 0;
}

static int write_whole(const struct takt_sys *sys, int fd, const void *bytes, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t put = sys->pwrite(sys, fd, (const char *)bytes + done, n - done,
					  (off_t)(at + done));

		if (put <= 0)
			return put < 0 ? (int)put : -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* 1: it is one of ours; 0: an empty or half-made one, to be made; -EINVAL: something else. */
static int look(const struct takt_history_config *config, int fd)
{
	const struct takt_sys *sys = config->sys;
	struct header want = header_of(config->levels), got;
	static const struct header none;
	struct stat st;
	int rc = sys->fstat(sys, fd, &st);

	if (rc < 0)
		return rc;
	if (st.st_size == 0)
		return 0;
	if (st.st_size < (off_t)sizeof(got))
		return -EINVAL;
	rc = read_whole(sys, fd, &got, sizeof(got), 0);
	if (rc < 0)
		return rc;
	if (memcmp(&got, &none, sizeof(got)) == 0)
		return 0;
	if (memcmp(&got, &want, sizeof(got)) != 0)
		return -EINVAL;
	return (uint64_t)st.st_size == takt_history_file_size(config->levels) ? 1 : 0;
}

/* A file system that cannot set blocks aside still keeps a file with holes. */
static int take_blocks(const struct takt_sys *sys, int fd, uint64_t size)
{
	int rc = sys->fallocate(sys, fd, (off_t)size);

	return rc == -EOPNOTSUPP || rc == -EINVAL ? sys->ftruncate(sys, fd, (off_t)size) : rc;
}

static int make(const struct takt_history_config *config, int fd)
{
	const struct takt_sys *sys = config->sys;
	struct header header = header_of(config->levels);
	uint64_t size = takt_history_file_size(config->levels);
	int rc = 0;

	if (config->free_bytes && config->free_bytes(config->ctx) / SHARE_OF_FREE < size)
		rc = -ENOSPC;
	if (rc == 0)
		rc = take_blocks(sys, fd, size);
	if (rc == 0)
		rc = write_whole(sys, fd, &header, sizeof(header), 0);
	if (rc == 0)
		rc = sys->fsync(sys, fd);
	return rc;
}

static int move_aside(const struct takt_history_config *config, const char *name)
{
	char aside[TAKT_HISTORY_NAME + 8];

	snprintf(aside, sizeof(aside), "%s.old", name);
	return config->sys->renameat(config->sys, config->dirfd, name, aside);
}

static int open_name(const struct takt_history_config *config, const char *name)
{
	return config->sys->openat(config->sys, config->dirfd, name,
				   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Its descriptor, made or found; negative, with nothing left open and no half-made file. */
static int open_ready(const struct takt_history_config *config, const char *name)
{
	const struct takt_sys *sys = config->sys;
	int fd = open_name(config, name);
	int state = fd < 0 ? fd : look(config, fd);

	if (state == -EINVAL && fd >= 0) {
		(void)sys->close(sys, fd);
		state = move_aside(config, name);
		fd = state < 0 ? state : open_name(config, name);
		state = fd < 0 ? fd : 0;
	}
	if (state == 0) {
		state = make(config, fd);
		if (state < 0)
			(void)sys->unlinkat(sys, config->dirfd, name, 0);
	}
	if (state < 0 && fd >= 0)
		(void)sys->close(sys, fd);
	return state < 0 ? state : fd;
}

int takt_history_file_open(const struct takt_history_config *config, const char *name, int *ret_fd,
			   struct takt_err *err)
{
	int fd = open_ready(config, name);

	if (fd == -ENOSPC)
		return takt_err_set(
			err, fd, "the history of a GPU takes %llu KiB, '%s'",
			(unsigned long long)takt_history_file_size(config->levels) >> 10, name);
	if (fd < 0)
		return takt_err_set(err, fd, "history '%s'", name);
	*ret_fd = fd;
	return 0;
}

static uint64_t slot_at(const struct takt_history_level *levels, uint32_t level, uint64_t slot)
{
	uint64_t before = slot;

	for (uint32_t l = 0; l < level; l++)
		before += levels[l].slots;
	return HEADER_BYTES + before * sizeof(struct takt_history_record);
}

static uint32_t checksum(const struct takt_history_record *record)
{
	return takt_crc32c(record, offsetof(struct takt_history_record, crc));
}

static bool is_of(const struct takt_history_record *record, int64_t step)
{
	return record->step == step && record->crc == checksum(record);
}

static void merge_value(struct takt_history_value *into, const struct takt_history_value *more)
{
	double n = (double)into->count + more->count;

	if (more->count == 0)
		return;
	if (into->count == 0) {
		*into = *more;
		return;
	}
	into->min = more->min < into->min ? more->min : into->min;
	into->max = more->max > into->max ? more->max : into->max;
	into->mean =
		(float)(((double)into->mean * into->count + (double)more->mean * more->count) / n);
	into->count = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int add_to_level(const struct takt_sys *sys, int fd, const struct takt_history_level *levels,
			uint32_t level, int64_t at_s, const struct takt_history_record *more)
{
	struct takt_history_record record = {0};
	int64_t step = at_s / levels[level].step_s;
	uint64_t at = slot_at(levels, level, (uint64_t)step % levels[level].slots);
	int rc = read_whole(sys, fd, &record, sizeof(record), at);

	if (rc < 0)
		return rc;
	if (!is_of(&record, step))
		memset(&record, 0, sizeof(record));
	record.step = step;
	for (uint32_t s = 0; s < TAKT_HISTORY_SERIES; s++)
		merge_value(&record.values[s], &more->values[s]);
	record.crc = checksum(&record);
	return write_whole(sys, fd, &record, sizeof(record), at);
}

int takt_history_file_add(const struct takt_sys *sys, int fd,
			  const struct takt_history_level *levels,
			  const struct takt_history_record *record)
{
	int rc = 0;

	for (uint32_t level = 0; level < TAKT_HISTORY_LEVELS && rc == 0; level++)
		rc = add_to_level(sys, fd, levels, level, record->step * levels[0].step_s, record);
	return rc;
}

static int hand_over(const struct takt_history_record *records, int64_t first, int64_t n,
		     const struct takt_history_span *ask, uint32_t step_s,
		     int (*each)(void *ctx, const struct takt_history_point *point), void *ctx)
{
	int rc = 0;

	for (int64_t i = 0; i < n && rc >= 0; i++) {
		const struct takt_history_value *value = &records[i].values[ask->series];
		struct takt_history_point point = {
			.at_s = (first + i) * step_s,
			.min = (double)value->min,
			.mean = (double)value->mean,
			.max = (double)value->max,
		};

		if (is_of(&records[i], first + i) && value->count > 0)
			rc = each(ctx, &point);
	}
	return rc;
}

/* The steps of an ask: from *first up to below *end, at most as many as the ring holds. */
static void steps_of(const struct takt_history_span *ask, const struct takt_history_level *level,
		     int64_t *first, int64_t *end)
{
	int64_t step = level->step_s;
	int64_t from_s = ask->from_s > 0 ? ask->from_s : 0;

	*first = (from_s + step - 1) / step;
	*end = ask->until_s > 0 ? (ask->until_s + step - 1) / step : 0;
	if (*end - *first > level->slots)
		*first = *end - level->slots;
}

int takt_history_file_read(const struct takt_sys *sys, int fd,
			   const struct takt_history_level *levels,
			   const struct takt_history_span *ask,
			   int (*each)(void *ctx, const struct takt_history_point *point),
			   void *ctx)
{
	struct takt_history_record records[READ_AT_ONCE];
	const struct takt_history_level *level = &levels[ask->level];
	int64_t step, end;
	int rc = 0;

	steps_of(ask, level, &step, &end);
	while (step < end && rc >= 0) {
		int64_t slot = step % level->slots, n = end - step;

		n = n < READ_AT_ONCE ? n : READ_AT_ONCE;
		n = n < level->slots - slot ? n : level->slots - slot;
		rc = read_whole(sys, fd, records, (size_t)n * sizeof(records[0]),
				slot_at(levels, ask->level, (uint64_t)slot));
		if (rc == 0)
			rc = hand_over(records, step, n, ask, level->step_s, each, ctx);
		step += n;
	}
	return rc < 0 ? rc : 0;
}
