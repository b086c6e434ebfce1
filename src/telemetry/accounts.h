/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What jobs used, added up from the readings of their GPUs. Internal to telemetry; the meaning of
 * each figure is in telemetry.h. Knows no clock and no machine: readings are fed in.
 */
#ifndef TAKT_TELEMETRY_ACCOUNTS_H
#define TAKT_TELEMETRY_ACCOUNTS_H

#include "base/str.h"
#include "base/vec.h"
#include "telemetry/telemetry.h"

enum {
	TAKT_ACCOUNTS_MAX = 1024,
	TAKT_PERIOD_CHANGES = 16,
	TAKT_ACCOUNT_PERIODS = 20,	/* an energy difference over fewer is not told */
	TAKT_ACCOUNT_AWAY_PARTS = 20,	/* nor anything, where more than this part was not seen */
	TAKT_ACCOUNT_ENERGY_PARTS = 40, /* of a job's time its energy may be behind it */
};

/* A dear energy counter is no older than this while a job runs, and while none does. */
#define TAKT_ENERGY_JOB_NS  TAKT_NS_PER_S
#define TAKT_ENERGY_IDLE_NS (5 * TAKT_NS_PER_S)

/* How often a GPU's energy counter ticks, as seen from here. */
struct takt_energy_clock {
	uint64_t last_mj;
	struct takt_mono read_at;
	uint64_t apart_ns;   /* its readings, of late; 0 = not known */
	uint64_t earlier_ns; /* its period when it was read often last; 0 = not known */
	uint32_t changes;    /* since it is read often, the first reading not one */
	struct takt_mono changed_at[TAKT_PERIOD_CHANGES]; /* the last ones, ring by `changes` */
};
/* Mean time between the last changes; 100 ms at least, and until two were seen. */
uint64_t takt_energy_clock_period_ns(const struct takt_energy_clock *clock);

struct takt_account_gpu {
	bool energy_begun, energy_reset;
	uint64_t energy_first_mj, energy_last_mj;
	struct takt_mono energy_first_at, energy_last_at, last_at; /* 0 = none */
	uint64_t sm_sum, sm_samples;
	bool throttle_seen;
	uint64_t throttled_ns, throttle_reasons;
	uint64_t util_ns, busy_permille_ns, idle_ns;
	bool memory_seen;
	uint64_t peak_memory_bytes;
};

struct takt_account_entry {
	uint64_t job_id, gpu_mask;
	bool shared;
	bool share, own_seen; /* it has shares; own_peak_bytes is something */
	uint64_t own_peak_bytes;
	struct takt_mono opened_at;
	uint64_t away_ns; /* of the time since, while nobody fed it */
	bool written;	  /* as text, once at least */
	struct takt_account_gpu gpus[TAKT_DEVICE_MAX_GPUS]; /* those in the mask */
};

struct takt_accounts {
	TAKT_VEC(struct takt_account_entry *) list; /* entries owned */
	struct takt_energy_clock clocks[TAKT_DEVICE_MAX_GPUS];
	uint64_t stale_ns;
	struct takt_mono now; /* newest time seen */
};

void takt_accounts_init(struct takt_accounts *accounts, uint64_t stale_ns);
void takt_accounts_fini(struct takt_accounts *accounts);

/* -EEXIST, -TAKT_E_LIMIT, -ENOMEM. */
int takt_accounts_open(struct takt_accounts *accounts, uint64_t job_id, uint64_t gpu_mask,
		       struct takt_err *err);
/* Borrowed until the next open or close; NULL when there is none. */
struct takt_account_entry *takt_accounts_find(const struct takt_accounts *accounts,
					      uint64_t job_id);
void takt_accounts_close(struct takt_accounts *accounts, struct takt_account_entry *entry);

/* A new reading of a GPU, to every account that holds it. feed_one is for an entry that has just
 * been opened: the newest reading from before is where its energy begins. */
void takt_accounts_feed(struct takt_accounts *accounts, uint32_t gpu,
			const struct takt_gpu_reading *reading);
void takt_account_begin(struct takt_account_entry *entry, uint32_t gpu,
			const struct takt_gpu_reading *reading);

/* How old the GPU's energy counter may get for the accounts that hold it, as of `now`. */
uint64_t takt_accounts_energy_every_ns(const struct takt_accounts *accounts, uint32_t gpu);

/*
 * account_text.c: an account as text, from which a later process of the same boot goes on. uuids:
 * of each GPU. To: -ENOMEM, -TAKT_E_LIMIT. From: into an entry that has just been opened, for the
 * GPUs of its mask, as of accounts->now; the time since the text was written is told as away.
 * -TAKT_E_CORRUPT, the entry as it was: that is no such text, or one of another boot or of other
 * GPUs.
 */
int takt_account_to_text(const struct takt_accounts *accounts,
			 const struct takt_account_entry *entry, const char *const uuids[],
			 struct takt_str *ret);
int takt_account_from_text(const struct takt_accounts *accounts, const char *text,
			   const char *const uuids[], struct takt_account_entry *entry);

void takt_account_sum(const struct takt_accounts *accounts, const struct takt_account_entry *entry,
		      struct takt_account *ret);

#endif
