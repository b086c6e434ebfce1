/* SPDX-License-Identifier: Apache-2.0 */
/* A world, a machine, a journal and the right to set, as one process of takt has them. */
#ifndef TAKT_TESTS_ACTUATE_KIT_H
#define TAKT_TESTS_ACTUATE_KIT_H

#include "actuate/actuator.h"
#include "fake_boards.h"
#include "fake_sys.h"

#define KIT_LOCK    "/state/lock"
#define KIT_JOURNAL "/state/journal"

struct kit {
	struct fake_sys *world;
	struct takt_machine machine;
	struct takt_journal journal;
	struct takt_mandate mandate;
	struct takt_baseline baseline;
	const char *declared_path; /* read at the start, as in actuate.h; NULL: the test fills
				      baseline */
	struct takt_actuator *actuator;
	bool looks;	/* for locks of others; else a new process is told that there are none */
	char log[8192]; /* every line said */
};

/* `gpus` boards at their baseline and nobody at work. */
void kit_init(struct kit *kit, uint32_t gpus);
void kit_fini(struct kit *kit);

/* A new process takes over: lock, journal, epoch, recovery. The boards stay as they are. */
void kit_start(struct kit *kit);

/* The process is killed: all that it had in its head and its hands is gone. */
void kit_die(struct kit *kit);

/* `ms` pass, in which the process is woken every 10 ms. */
void kit_run(struct kit *kit, unsigned ms);

struct takt_boot kit_now(const struct kit *kit);
struct takt_keeper *kit_keeper(struct kit *kit);

#endif
