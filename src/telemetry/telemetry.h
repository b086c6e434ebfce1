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
#include "base/latency_bins.h"
#include "base/str.h"
#include "base/timetypes.h"
#include "device/device.h"
#include "device/net_ports.h"

struct takt_nccl; /* nccl_read.h */
struct takt_telemetry;

struct takt_telemetry_config {
	uint32_t rate_hz;      /* 1..100; 0 = 10 */
	uint32_t ring_seconds; /* of raw history a GPU; 0 = 120 */
	uint32_t page_ms;      /* the metrics page is rendered at most this often; 0 = 1000 */
	bool simulated;	       /* marks the page: takt_simulated 1 and label simulated="true" */
	bool dcgm_names;       /* the page has the names of dcgm-exporter, too */
	/* Of these the label with the machine's name, "Hostname" or "hostname" (NULL = none), and
	 * its value; borrowed until free. */
	const char *hostname_label, *hostname;
	bool hpc_job; /* of these each has a series a job that holds the GPU, named by hpc_job */
};

/* Borrows machine until free. */
int takt_telemetry_new(const struct takt_telemetry_config *config, struct takt_machine *machine,
		       struct takt_telemetry **ret, struct takt_err *err);
void takt_telemetry_free(struct takt_telemetry *telemetry);

/* Ask for samples that are due; returns when to tick again. */
struct takt_mono takt_telemetry_tick(struct takt_telemetry *telemetry, struct takt_mono now);
/* Samples need not wake the caller, who collects them when the next ones are due. Says whether it
 * is so: not where samples are so rare that they would be old by then. */
bool takt_telemetry_hush(struct takt_telemetry *telemetry, bool hush);
/* Take finished samples into rings and accounts; bit g set = GPU g has a new one (GPUs 0..63). */
uint64_t takt_telemetry_collect(struct takt_telemetry *telemetry, struct takt_mono now);

/* Newest reading; stale is recomputed at `now`. -EAGAIN before the first. Borrowed until the next
 * collect. */
int takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu, struct takt_mono now,
			  const struct takt_gpu_reading **ret);

/* Until the next reading of it is collected the GPU's energy counter shall be no older than this,
 * where it is dear to read (takt_machine_energy_every): somebody measures with it. */
void takt_telemetry_want_energy(struct takt_telemetry *telemetry, uint32_t gpu, uint64_t every_ns);

/* What went over all NVLinks of a GPU, between the last two times that its counters were read;
 * false: the board does not say, or has not twice. */
bool takt_telemetry_nvlink_rates(const struct takt_telemetry *telemetry, uint32_t gpu,
				 uint64_t *ret_sent_bytes_per_s,
				 uint64_t *ret_received_bytes_per_s);

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
 * least 20 periods of the counter (measured as it ticks, at least 100 ms each). Of a counter that
 * is dear to read (takt_machine_energy_every) up to a fortieth of the job's time may be missing at
 * its end. Nothing is told of a job that was not looked at for more than a twentieth of its time,
 * between a write and a resume.
 */
enum takt_account_has {
	TAKT_ACCOUNT_ENERGY = 1u << 0,
	TAKT_ACCOUNT_MEAN_SM = 1u << 1,
	TAKT_ACCOUNT_THROTTLED = 1u << 2,
	TAKT_ACCOUNT_PEAK_MEMORY = 1u << 3,
	TAKT_ACCOUNT_UTIL = 1u << 4,
	TAKT_ACCOUNT_SM_SPREAD = 1u << 5,
};
struct takt_account {
	uint32_t has;
	uint64_t energy_mj;
	char energy_why_not[64];
	uint32_t mean_sm_mhz; /* over the samples, mean of the GPUs */
	/* SM_SPREAD, of several GPUs, all measured: the highest of their means less the lowest. */
	uint32_t sm_spread_mhz;
	uint64_t
		throttled_ns; /* summed over GPUs; idle and application clocks are not throttling */
	uint64_t throttle_reasons;
	uint64_t peak_memory_bytes; /* of one GPU; of a share its own processes' */
	/* UTIL: told only when every GPU was measured and no other process was seen on them. */
	uint32_t mean_util_permille; /* over time, mean of the GPUs */
	uint64_t idle_ns;	     /* summed over GPUs: held, nothing ran on it */
	bool written;		     /* with takt_telemetry_account_write */
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
/* Job of the account at this place in the list, from 0; 0 = there are no more. */
uint64_t takt_telemetry_account_at(const struct takt_telemetry *telemetry, size_t at);
/* Appends the account so far as text, in lines. -TAKT_E_NOT_FOUND, -ENOMEM, -TAKT_E_LIMIT. */
int takt_telemetry_account_write(struct takt_telemetry *telemetry, uint64_t job_id,
				 struct takt_str *ret);
/* In place of open: goes on with what was written by an earlier process of this boot, about GPUs by
 * their UUIDs. Also -TAKT_E_CORRUPT: no such text, of another boot, or not about these GPUs. */
int takt_telemetry_account_resume(struct takt_telemetry *telemetry, uint64_t job_id,
				  uint64_t gpu_mask, const char *text, struct takt_err *err);

/* What the page says of a GPU beyond its readings; handed in by the daemon. */
enum {
	TAKT_LABEL_MAX_JOBS = 16
};
struct takt_label_job {
	uint64_t id;		 /* 0 = no more */
	const char *engine;	 /* which runs it; static */
	const char *user, *name; /* NULL = not to be shown; borrowed for the call */
};
struct takt_gpu_label {
	struct takt_label_job jobs[TAKT_LABEL_MAX_JOBS]; /* which hold it or a share of it */
	const char *state;		       /* "free", "running", ... borrowed for the call */
	const char *actuate;		       /* "clean", "leased", "changed", ... */
	const char *health;		       /* "healthy", ...; NULL = nobody says */
	uint32_t lease_min_mhz, lease_max_mhz; /* 0 = none */
	uint32_t power_cap_mw;		       /* a facility's; 0 = none */
	bool hears_xids;		       /* one that is not told has not happened */
};
void takt_telemetry_label(struct takt_telemetry *telemetry, uint32_t gpu,
			  const struct takt_gpu_label *label);
/* An XID of the GPU, told once each time that it came; counted on the page. */
void takt_telemetry_xid(struct takt_telemetry *telemetry, uint32_t gpu, uint32_t xid,
			struct takt_wall at);
/* What the page says of the network: no ports, until the caller writes them there. */
struct takt_net_ports *takt_telemetry_net(struct takt_telemetry *telemetry);
/* What the page says of round trips to other machines: nothing, until the caller writes it there.
 */
enum {
	TAKT_TRIPS_MAX_PEERS = 32,
	TAKT_TRIPS_MAX_REFUSED = 8,
};
struct takt_trips {
	uint32_t peer_count, refused_count;
	struct takt_trips_peer {
		char name[64];
		uint64_t lost;
		struct takt_latency_bins rtt;
	} peer[TAKT_TRIPS_MAX_PEERS];
	struct takt_trips_refused {
		const char *reason; /* static */
		uint64_t count;
	} refused[TAKT_TRIPS_MAX_REFUSED];
};
struct takt_trips *takt_telemetry_trips(struct takt_telemetry *telemetry);
/* What the page says of NCCL's operations on a GPU: nothing, until the caller writes it there.
 * NULL: out of memory. */
struct takt_nccl *takt_telemetry_nccl(struct takt_telemetry *telemetry, uint32_t gpu);
/* Counters and gauges of the rest of takt ("takt_jobs_waiting"): name, help, type, value. Names are
 * kept (static). */
void takt_telemetry_gauge(struct takt_telemetry *telemetry, const char *name, const char *help,
			  bool counter, double value);

/*
 * The page. While somebody asks for it regularly it is rendered between scrapes, once in page_ms,
 * so that a scrape only copies finished text; else when it is asked for: nobody pays for a page
 * that nobody reads. Reference-counted, so that it outlives later ones while it is sent; the last
 * one stays when there is no memory for the next.
 */
enum takt_page_format {
	TAKT_PAGE_PLAIN, /* Prometheus text format 0.0.4 */
	TAKT_PAGE_OPENMETRICS,
	TAKT_PAGE_FORMATS,
};
struct takt_page {
	const char *text;
	size_t len;
};
/* What the daemon says (labels, gauges) is wanted before the next takt_telemetry_page of this
 * format, which renders. */
bool takt_telemetry_page_is_old(const struct takt_telemetry *telemetry,
				enum takt_page_format format, struct takt_mono now);
/* Never NULL; unref it. */
const struct takt_page *takt_telemetry_page(struct takt_telemetry *telemetry,
					    enum takt_page_format format, struct takt_mono now);
/* Whether a page that is asked for regularly is due; then say what the daemon says and refresh. */
bool takt_telemetry_page_is_due(const struct takt_telemetry *telemetry, struct takt_mono now);
void takt_telemetry_page_refresh(struct takt_telemetry *telemetry, struct takt_mono now);
void takt_page_unref(const struct takt_page *page);

#endif
