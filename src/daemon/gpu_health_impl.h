/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of health share. */
#ifndef TAKT_DAEMON_GPU_HEALTH_IMPL_H
#define TAKT_DAEMON_GPU_HEALTH_IMPL_H

#include "daemon/gpu_health.h"
#include "daemon/kernel_log_file.h"
#include "device/gpu_listen.h"
#include "rules/rules.h"

struct takt_health_seen {
	uint32_t xid;
	uint64_t count;
	struct takt_mono last;
};

/* Of an NVSwitch. */
struct takt_health_switch_seen {
	struct takt_log_event event; /* the newest */
	uint64_t count;
	struct takt_mono last;
};

struct takt_health_one {
	struct takt_rules_gpu rules;
	uint64_t seq_seen; /* of the newest sample handed over */
	/* Of the rules' changes: told to the log, taken into the past, kept in the store. */
	uint64_t changes_told, changes_taken, changes_kept;
	struct takt_health_past past;
	bool has_pci;
	struct takt_log_pci pci;
	uint32_t seen_count;
	struct takt_health_seen seen[TAKT_HEALTH_MAX_XIDS]; /* newest first */
};

struct takt_gpu_health {
	struct takt_daemon *daemon;
	struct takt_mono next;
	struct takt_gpu_listen *listen; /* NULL = none */
	struct takt_kernel_log *log;	/* NULL = none */
	struct takt_log_reader reader;
	char listen_why[160]; /* why there is none */
	const char *log_off;  /* the same */
	uint32_t switch_seen_count;
	struct takt_health_switch_seen switch_seen[TAKT_HEALTH_MAX_SXIDS]; /* newest first */
	uint32_t count;
	struct takt_health_one gpu[];
};

/* The clocks of the wall and of the machine at one moment. */
struct takt_health_clocks {
	struct takt_mono mono;
	struct takt_wall wall;
};
int64_t takt_health_wall_ms(const struct takt_health_clocks *clocks, struct takt_mono at);

/* Why nothing that the kernel's log says of GPUs is understood; "" = it is, or there was nothing
 * yet. */
void takt_health_log_why(const struct takt_gpu_health *health, char *buf, size_t size);

/* gpu_health_kept.c: what happened outlives the daemon. */
int takt_health_load(struct takt_gpu_health *health, struct takt_err *err);
/* The changes since the last call, at the wall clock's time of now. */
void takt_health_take(struct takt_health_one *one, const struct takt_health_clocks *clocks);
/* Writes down what is not yet; tried again with the next call where the store has no room. */
void takt_health_keep(struct takt_gpu_health *health, uint32_t gpu);

/* gpu_health_read.c */
void takt_health_board(const struct takt_gpu_facts *facts, struct takt_rules_board *ret);
/* ceiling_mhz: what takt has set; 0 = nothing. */
void takt_health_sample(const struct takt_gpu_reading *reading, uint32_t ceiling_mhz,
			struct takt_rules_sample *ret);

#endif
