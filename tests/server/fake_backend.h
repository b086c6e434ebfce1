/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A takt without GPUs, scheduler or processes behind the real server, for tests of the server, of
 * libtakt and of the command line. What a "job" does is said by its command:
 *
 *	echo WORDS    writes them to its log, ends with 0     exit N   ends with N
 *	kill N        ends by signal N                        binary   writes all 256 byte values,
 *ends hang          runs until signalled or cancelled       queue    waits for ever (not placed)
 *	never         is accepted only when fake_accept() is called
 */
#ifndef TAKT_TESTS_FAKE_BACKEND_H
#define TAKT_TESTS_FAKE_BACKEND_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/server.h"

enum {
	FAKE_MAX_JOBS = 64,
	FAKE_MAX_WAITERS = 64,
};

struct fake_job {
	struct takt_job_view view;
	char log_path[256];
	uint64_t ends_ns; /* 0 = does not end by itself */
};

struct fake_waiter {
	struct fake *fake;
	struct takt_pending *pending; /* NULL = free */
	uint64_t job_id;
	uint64_t until_ns;
};

struct fake {
	struct takt_server *server;
	char dir[128]; /* made by fake_start, holds takt.sock and logs */
	char socket[160];
	unsigned tcp_port, web_port;
	bool with_web; /* from the next fake_restart on: the web page's socket, and tokens */
	bool simulated;
	bool many_users;	  /* from the next fake_restart on: whoever gets at the socket */
	uint32_t max_connections; /* from the next fake_restart on; 0 = 20 */
	bool changed_clock;	  /* GPU 1 is CHANGED */
	bool mixed;		  /* GPU 1 is another model */
	struct fake_job jobs[FAKE_MAX_JOBS];
	uint64_t job_count;
	struct fake_waiter waiters[FAKE_MAX_WAITERS];
	struct takt_pending *never; /* the submit that is not accepted */
	unsigned cancelled;	    /* pendings whose client hung up */
	unsigned pages_out;	    /* metrics pages handed out and not released */
	unsigned lists_made;	    /* of live jobs */
	unsigned pasts_made;	    /* of ended ones */
	uint64_t live_version;
	bool keeps_lists; /* live_version says when they change */
	atomic_int last_signal;
	struct takt_orders_view orders;
	uint64_t last_mask;
	uint32_t last_mhz;
	struct takt_peer last_peer;
	char *last_env; /* owned: the first entry of the last submit's environment */
	pthread_t thread;
	atomic_bool stop;
};

/* A server on a socket in a new directory under /tmp; with_tcp: and on a port of 127.0.0.1. */
void fake_start(struct fake *fake, bool simulated, bool with_tcp);
/* The same directory and jobs, a new server: what a restart of the daemon looks like. */
void fake_restart(struct fake *fake);
void fake_stop_server(struct fake *fake);
void fake_stop(struct fake *fake);

/* Pumps once, waiting at most so long for something to do. */
void fake_pump(struct fake *fake, int max_ms);
/* Pumps once; for how long nothing is to be done then: 0 = something is now. */
int fake_rest_ms(struct fake *fake);
/* Pumps in a thread, for clients that block. */
void fake_run(struct fake *fake);
void fake_halt(struct fake *fake);

void fake_accept(struct fake *fake);
void fake_log(struct fake *fake, uint64_t job_id, const void *bytes, size_t len);
void fake_end(struct fake *fake, uint64_t job_id, int code, int signal);

#endif
