/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions again: the scheduler's saved inputs through the scheduler that is built in, and what it
 * plans now compared with what was planned then.
 *
 * A scheduler is rebuilt from the snapshot (codec/snapshot.h), set up as its first line says, asked
 * for a plan, and the two plans are compared as text, line by line; their versions are not, as they
 * count the events that a scheduler has lived through.
 */
#ifndef TAKT_SIM_REPLAY_H
#define TAKT_SIM_REPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum {
	TAKT_REPLAY_MAX_BYTES = 512 * 1024 * 1024
};

struct takt_replay {
	uint64_t placements, waits; /* of the plan made now */
	uint64_t differing;	    /* lines that are in one plan only */
};

/*
 * Made at the time that the first line of the snapshot says (0 if none). Lines that are in one plan
 * only go to `differences`: "- " then, "+ " now, at most a hundred. -TAKT_E_CORRUPT when one of the
 * texts is not what it should be.
 */
int takt_replay(const char *snapshot, const char *plan, struct takt_replay *ret,
		struct takt_str *differences, struct takt_err *err);

/* events.jsonl and plan.json of a directory, as the scheduler's scenarios and reports have them. */
int takt_replay_folder(const char *path, struct takt_replay *ret, struct takt_str *differences,
		       struct takt_err *err);

#endif
