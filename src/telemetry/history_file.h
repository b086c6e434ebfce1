/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of one GPU's history: a header, then for each level a ring of records, in which the time
 * of a record says its place. Nothing is ever appended and nothing is looked for.
 */
#ifndef TAKT_TELEMETRY_HISTORY_FILE_H
#define TAKT_TELEMETRY_HISTORY_FILE_H

#include "telemetry/history.h"

enum {
	TAKT_HISTORY_NAME = 112, /* bytes of a file's name */
};

/* One step of one series; count 0 = it was not told. */
struct takt_history_value {
	float min, mean, max;
	uint32_t count; /* of samples */
};
/* One step of a GPU as it is in the file, in the machine's byte order. */
struct takt_history_record {
	int64_t step; /* its number since 1970, of its level */
	struct takt_history_value values[TAKT_HISTORY_SERIES];
	uint32_t zero;
	uint32_t crc; /* of all before it */
};
_Static_assert(sizeof(struct takt_history_record) ==
		       sizeof(int64_t) + TAKT_HISTORY_SERIES * 4 * sizeof(uint32_t) +
			       2 * sizeof(uint32_t),
	       "no padding: it is stored as it is");

uint64_t takt_history_file_size(const struct takt_history_level *levels);
/* "GPU-....hist" of a UUID; false when it could not be a file's name. */
bool takt_history_file_name(const char *uuid, char ret[TAKT_HISTORY_NAME]);
/*
 * Opens or makes it whole; the caller closes *ret_fd. One that is not of this format is moved aside
 * to "<name>.old". -ENOSPC also when it would take more than a sixteenth of what is free.
 */
int takt_history_file_open(const struct takt_history_config *config, const char *name, int *ret_fd,
			   struct takt_err *err);
/* A record of the finest level into all levels: added to what they have of that time. */
int takt_history_file_add(const struct takt_sys *sys, int fd,
			  const struct takt_history_level *levels,
			  const struct takt_history_record *record);
/* Hands over the points of the ask, oldest first. Stops and returns what `each` returns when
 * negative. */
int takt_history_file_read(const struct takt_sys *sys, int fd,
			   const struct takt_history_level *levels,
			   const struct takt_history_span *ask,
			   int (*each)(void *ctx, const struct takt_history_point *point),
			   void *ctx);

#endif
