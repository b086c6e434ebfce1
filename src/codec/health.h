/* SPDX-License-Identifier: Apache-2.0 */
/* How the GPUs are: a state each, what was found with its evidence, what to do, what happened
 * before. JSON as in views.h; words are those of docs/doctor.md. */
#ifndef TAKT_CODEC_HEALTH_H
#define TAKT_CODEC_HEALTH_H

#include "codec/views.h"

enum {
	TAKT_HEALTH_MAX_FINDINGS = 16,
	TAKT_HEALTH_MAX_ACTIONS = 8,
	TAKT_HEALTH_MAX_CHANGES = 16,
	TAKT_HEALTH_MAX_XIDS = 16,
	TAKT_HEALTH_MAX_SXIDS = 16,
};

struct takt_health_finding {
	char finding[24]; /* "hw-thermal", "xid" */
	char level[12];	  /* "info", "warning", "critical" */
	char action[24];  /* "" = none */
	char text[200];	  /* with what was measured */
	int64_t since_ms; /* wall clock */
	int32_t cause;	  /* place in the list of what it follows from; -1 = stands by itself */
};

struct takt_health_change {
	int64_t at_ms;	       /* wall clock */
	char from[16], to[16]; /* states */
	char why[24];	       /* the first finding then; "" = none any more */
};

/* The newest changes of a GPU, as the daemon keeps them for the one after it. */
struct takt_health_past {
	uint32_t change_count;
	struct takt_health_change changes[TAKT_HEALTH_MAX_CHANGES]; /* newest first */
};
int takt_health_past_to_json(const struct takt_health_past *past, struct takt_str *out);
int takt_health_past_from_json(const char *text, size_t len, struct takt_health_past *ret,
			       struct takt_err *err);

struct takt_health_xid {
	uint32_t xid;
	uint64_t count; /* since takt was started; of one event once */
	int64_t last_ms;
	char text[80]; /* of NVIDIA's catalogue; "" = in no list */
};

struct takt_health_gpu {
	uint32_t index;
	char uuid[96];
	char state[16];	   /* "healthy", "suspect", "quarantined", "lost" */
	char severity[12]; /* of all that ails it: "none", "info", "warning", "critical" */
	int64_t since_ms;  /* 0 = since takt was started */
	char note[240];	   /* what administrators or takt said of it; "" = nothing */
	uint32_t finding_count, action_count, xid_count;
	struct takt_health_finding findings[TAKT_HEALTH_MAX_FINDINGS]; /* causes first */
	char actions[TAKT_HEALTH_MAX_ACTIONS][24];		       /* in the order to do them */
	struct takt_health_past past;			   /* this daemon's and those before it */
	struct takt_health_xid xids[TAKT_HEALTH_MAX_XIDS]; /* newest first */
};

/* Of an NVSwitch, as the kernel's log says: which GPUs it ails is not known. */
struct takt_health_sxid {
	char pci[24]; /* "0000:c5:00" */
	uint32_t sxid;
	uint64_t count; /* since takt was started */
	int64_t last_ms;
	bool fatal;   /* the driver's word; traffic through the switch has ended */
	int32_t link; /* the last time; -1 = of none */
};

struct takt_health_view {
	bool simulated;
	/* Why XIDs are not heard from the driver, and not from the kernel's log; "" = they are. */
	char events_why[160], kernel_log_why[400];
	uint32_t gpu_count;
	struct takt_health_gpu *gpus; /* owned */
	uint32_t sxid_count;
	struct takt_health_sxid sxids[TAKT_HEALTH_MAX_SXIDS]; /* newest first */
};
void takt_health_view_fini(struct takt_health_view *view);
int takt_health_view_to_json(const struct takt_health_view *view, struct takt_str *out);
int takt_health_view_from_json(const char *text, size_t len, struct takt_health_view *ret,
			       struct takt_err *err);

#endif
