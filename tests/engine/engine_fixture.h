/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tests of the local engine share, on top of the launch fixture: an engine whose jobs are
 * shell lines, its events noted in the order in which they came, and pumping with a limit.
 */
#ifndef TAKT_TESTS_ENGINE_FIXTURE_H
#define TAKT_TESTS_ENGINE_FIXTURE_H

#include "engine/local/local_engine.h"
#include "launch_fixture.h"

enum {
	EF_MAX_EVENTS = 4096,
	EF_MAX_JOBS = 64,
};

struct engine_fixture {
	struct fixture *launch; /* owned */
	struct takt_engine *engine;
	struct takt_engine_event events[EF_MAX_EVENTS];
	size_t event_count;
	const char *lines[EF_MAX_JOBS]; /* by job id: the shell line; borrowed; NULL = "true" */
	uint32_t grace_ms;		/* of every job; 2000 */
	int describe_rc;		/* negative: describe fails with it */
	uint32_t patience_ms;
	uint32_t stage_lease_ms;
	const char *prefetch; /* shell line of whatever is staged; NULL = none */
	uint64_t next_action;
};

int ef_up(void **state);
int ef_down(void **state);
void ef_engine_new(struct engine_fixture *ef);
void ef_engine_free(struct engine_fixture *ef);

/* The id of the action. */
uint64_t ef_start(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt);
uint64_t ef_start_staged(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt);
uint64_t ef_stage(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt);
uint64_t ef_stop(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt);
uint64_t ef_signal(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt, int sig);
void ef_recover(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt);
void ef_recover_staged(struct engine_fixture *ef, uint64_t job_id, uint32_t attempt);

void ef_pump(struct engine_fixture *ef); /* once */
void ef_pump_ms(struct engine_fixture *ef, int ms);
/* Pump until an event of this kind (and, for OUTCOME, of this action; else of this job) is there,
 * at most 10 s: that event. */
const struct takt_engine_event *ef_wait(struct engine_fixture *ef, enum takt_engine_event_kind kind,
					uint64_t id);
/* How many there are by now. */
size_t ef_count(const struct engine_fixture *ef, enum takt_engine_event_kind kind, uint64_t id);

#endif
