/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telemetry: samples every GPU at a steady rate, keeps rings, adds up what jobs are told at their
 * end, and renders the Prometheus page. Nothing here ever waits for the driver: the device's
 * workers do, and what has not come back in time is stale.
 *
 * The caller owns the rhythm: takt_telemetry_tick() at each due time (it asks for samples), and
 * takt_telemetry_collect() when the machine's eventfd says that samples have finished.
 * Single-threaded.
 */
#ifndef TAKT_TELEMETRY_TELEMETRY_H
#define TAKT_TELEMETRY_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/timetypes.h"
#include "device/device.h"

struct takt_telemetry;

struct takt_telemetry_config {
	uint32_t rate_hz;      /* 1..100; 0 = 10 */
	uint32_t ring_seconds; /* of raw history a GPU; 0 = 120 */
	uint32_t page_ms;      /* the metrics page is rendered at most this often; 0 = 1000 */
	bool simulated;	       /* marks the page: takt_simulated 1 and label simulated="true" */
};

/* Borrows machine until free. */
int takt_telemetry_new(const struct takt_telemetry_config *config, struct takt_machine *machine,
		       struct takt_telemetry **ret, struct takt_err *err);
void takt_telemetry_free(struct takt_telemetry *telemetry);

/* Ask for samples that are due; returns when to tick again. */
struct takt_mono takt_telemetry_tick(struct takt_telemetry *telemetry, struct takt_mono now);
/* Take finished samples into rings and accounts; bit g set = GPU g has a new one (GPUs 0..63). */
uint64_t takt_telemetry_collect(struct takt_telemetry *telemetry, struct takt_mono now);

/* Newest reading; stale is recomputed at `now`. -EAGAIN before the first. Borrowed until the next
 * collect. */
int takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu, struct takt_mono now,
			  const struct takt_gpu_reading **ret);

/* One point of the ring. */
struct takt_sample_point {
	struct takt_mono at;
	uint32_t
		has; /* enum takt_gpu_has; SM clock, power, temperature, utilisation, memory only */
	uint32_t sm_mhz, power_mw, gpu_util_pct;
	int32_t temp_c;
	uint64_t mem_used_bytes;
};
/* Newest first, at most max; returns how many. */
size_t takt_telemetry_history(struct takt_telemetry *telemetry, uint32_t gpu,
			      struct takt_sample_point *ret, size_t max);

/*
 * Account of a job over its GPUs, from start to end. Energy is the difference of the driver's
 * counter, only where that is honest: no other process was seen on the GPUs and the span holds at
 * least 20 periods of the counter (measured as it ticks, at least 100 ms each).
 */
enum takt_account_has {
	TAKT_ACCOUNT_ENERGY = 1u << 0,
	TAKT_ACCOUNT_MEAN_SM = 1u << 1,
	TAKT_ACCOUNT_THROTTLED = 1u << 2,
	TAKT_ACCOUNT_PEAK_MEMORY = 1u << 3,
	TAKT_ACCOUNT_UTIL = 1u << 4,
};
struct takt_account {
	uint32_t has;
	uint64_t energy_mj;
	char energy_why_not[64];
	uint32_t mean_sm_mhz; /* over the samples, mean of the GPUs */
	uint64_t
		throttled_ns; /* summed over GPUs; idle and application clocks are not throttling */
	uint64_t throttle_reasons;
	uint64_t peak_memory_bytes; /* of one GPU; of a share its own processes' */
	/* UTIL: told only when every GPU was measured and no other process was seen on them. */
	uint32_t mean_util_permille; /* over time, mean of the GPUs */
	uint64_t idle_ns;	     /* summed over GPUs: held, nothing ran on it */
};
/* is_job_pid decides which processes belong to the job (the caller knows its process tree). */
int takt_telemetry_account_open(struct takt_telemetry *telemetry, uint64_t job_id,
				uint64_t gpu_mask, struct takt_err *err);
/* Another process than the job's was seen on its GPUs. */
void takt_telemetry_account_shared(struct takt_telemetry *telemetry, uint64_t job_id);
/* The job has a share: what its GPUs use of their memory is not its own, which is told apart. */
void takt_telemetry_account_share(struct takt_telemetry *telemetry, uint64_t job_id);
/* What its own processes use of one GPU at this moment. */
void takt_telemetry_account_own_memory(struct takt_telemetry *telemetry, uint64_t job_id,
				       uint64_t bytes);
/* The account so far; the job goes on. */
int takt_telemetry_account_peek(struct takt_telemetry *telemetry, uint64_t job_id,
				struct takt_account *ret);
int takt_telemetry_account_close(struct takt_telemetry *telemetry, uint64_t job_id,
				 struct takt_account *ret);

/* What the page says of a GPU beyond its readings; handed in by the daemon. */
struct takt_gpu_label {
	uint64_t job_id;		       /* 0 = none */
	const char *state;		       /* "free", "running", ... borrowed for the call */
	const char *actuate;		       /* "clean", "leased", "changed", ... */
	uint32_t lease_min_mhz, lease_max_mhz; /* 0 = none */
};
void takt_telemetry_label(struct takt_telemetry *telemetry, uint32_t gpu,
			  const struct takt_gpu_label *label);
/* Counters and gauges of the rest of takt ("takt_jobs_waiting"): name, help, type, value. Names are
 * kept (static). */
void takt_telemetry_gauge(struct takt_telemetry *telemetry, const char *name, const char *help,
			  bool counter, double value);

/* The page, rendered when it is asked for and the last one is older than page_ms: nobody pays for a
 * page that nobody reads. Reference-counted, so that it outlives later ones while it is sent; the
 * last one stays when there is no memory for the next. */
struct takt_page {
	const char *text;
	size_t len;
};
/* Never NULL; unref it. */
const struct takt_page *takt_telemetry_page(struct takt_telemetry *telemetry, struct takt_mono now);
void takt_page_unref(const struct takt_page *page);

#endif
