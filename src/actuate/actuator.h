/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator without its sockets: requests in, replies out, leases and keeper in between.
 *
 * A request is answered at once, or (SET, END, RESET) when the GPUs that it touches are settled;
 * finished replies are fetched with takt_actuator_reply. All times are handed in.
 */
#ifndef TAKT_ACTUATE_ACTUATOR_H
#define TAKT_ACTUATE_ACTUATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "actuate/actuate.h"
#include "actuate/keeper.h"
#include "actuate/lease.h"

enum {
	TAKT_ACTUATOR_WAITING = 256 /* requests under way, of all clients together */
};

/* A request whose reply is still to come. */
struct takt_actuator_waiting {
	uint64_t connection;		 /* 0: a free place */
	uint64_t gpus;			 /* bit g: GPU g is not settled yet */
	uint64_t lease_id, lease_number; /* SET: the lease it waits for */
	struct takt_actuate_reply reply; /* so far: version, op, seq, the first failure */
	uint32_t gpu;			 /* whose state the reply shows */
};

struct takt_actuator {
	struct takt_keeper keeper;
	struct takt_leases leases;
	/* DECLARE: what the keeper goes by, and where it is read from. */
	struct takt_baseline *baseline;
	const char *baseline_path, *declared_path;
	bool sets_nothing;
	struct takt_actuator_waiting waiting[TAKT_ACTUATOR_WAITING];
};

/* A message as it came, of `size` bytes: also where it is longer than what could be read of it,
 * which is no request. Then as below. */
bool takt_actuator_message(struct takt_actuator *actuator, uint64_t connection, const void *bytes,
			   size_t size, struct takt_boot now, struct takt_actuate_reply *ret);

/* Whether *ret holds the reply now; else it comes later. `connection` is not 0. */
bool takt_actuator_request(struct takt_actuator *actuator, uint64_t connection,
			   const struct takt_actuate_request *request, struct takt_boot now,
			   struct takt_actuate_reply *ret);

/* A finished reply and whose it is; false when there is none. */
bool takt_actuator_reply(struct takt_actuator *actuator, uint64_t *ret_connection,
			 struct takt_actuate_reply *ret);

/* Ends leases that ran out and lets the keeper work; returns when to come back at the latest. */
struct takt_boot takt_actuator_step(struct takt_actuator *actuator, struct takt_boot now);

/* Reads the baselines of `declared_path` anew and has the keeper put them in force; on failure
 * nothing has changed. */
int takt_actuator_declare(struct takt_actuator *actuator, const char *declared_path,
			  struct takt_boot now, struct takt_err *err);

/* Drops every lease. */
void takt_actuator_end_all(struct takt_actuator *actuator, struct takt_boot now);

/* The connection is gone: its replies are dropped, its leases live on until their time is over. */
void takt_actuator_forget(struct takt_actuator *actuator, uint64_t connection);

#endif
