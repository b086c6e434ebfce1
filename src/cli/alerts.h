/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When something is worth waking a person: conditions over what takt says of itself, each of which
 * has to stand for a while. Names and thresholds are those of deploy/prometheus. What is not known
 * changes nothing: a takt that does not answer resolves no alert of a GPU.
 */
#ifndef TAKT_CLI_ALERTS_H
#define TAKT_CLI_ALERTS_H

#include "codec/net_view.h"

enum takt_alert {
	TAKT_ALERT_DOWN, /* takt does not answer; of no GPU */
	TAKT_ALERT_LOST,
	TAKT_ALERT_SILENT,
	TAKT_ALERT_ASIDE,
	TAKT_ALERT_DIRTY,
	TAKT_ALERT_HEAT,
	TAKT_ALERT_BRAKE,
	TAKT_ALERT_HOT,
	TAKT_ALERT_CHANGED,
	TAKT_ALERT_IDLE,
	TAKT_ALERT_PEER_SILENT, /* from here on of a machine that takt probes */
	TAKT_ALERT_PEER_SLOW,
	TAKT_ALERT_COUNT
};

struct takt_alert_terms {
	uint64_t idle_ms; /* held and idle for so long; 0 = never */
	int32_t temp_c;	  /* hotter than this; 0 = never */
	uint64_t rtt_ns;  /* round trips longer than this; 0 = never */
	bool at_once;	  /* nothing has to stand for a while, and what says nothing without that is
			     left out */
};

struct takt_alert_standing {
	uint64_t since_ms; /* of the clock that is handed in; 0 = it does not stand */
	bool fires;
	bool told;	   /* what was told last: that it fires? */
	uint32_t failures; /* to tell it, in a row */
	uint64_t tell_ms;  /* not before */
};
struct takt_alerts {
	struct takt_alert_terms terms;
	char hostname[65];
	bool simulated;
	char uuids[TAKT_VIEW_MAX_GPUS][96];
	char peers[TAKT_NET_VIEW_MAX_PEERS][64];
	struct takt_alert_standing standing[TAKT_ALERT_COUNT][TAKT_VIEW_MAX_GPUS];
};

/* A look at a status, NULL: takt does not answer. now_ms rises and is never 0. */
void takt_alerts_look(struct takt_alerts *alerts, const struct takt_status_view *view,
		      uint64_t now_ms);

/* A look at the round trips. Peers are told apart by their places in the list: where another one
 * stands there now, what was about the last one is forgotten. */
void takt_alerts_look_at_net(struct takt_alerts *alerts, const struct takt_net_view *view,
			     uint64_t now_ms);

/* One that began or ended, was not told yet, and is not to be tried later. */
struct takt_alert_news {
	enum takt_alert alert;
	uint32_t at; /* number of the GPU, or place of the peer; 0 for those of neither */
	bool fires;
};
bool takt_alerts_news(const struct takt_alerts *alerts, struct takt_alert_news *from,
		      uint64_t now_ms);
void takt_alerts_told(struct takt_alerts *alerts, const struct takt_alert_news *news);
/* It could not be told: later, and ever later. */
void takt_alerts_untold(struct takt_alerts *alerts, const struct takt_alert_news *news,
			uint64_t now_ms);

const char *takt_alert_name(enum takt_alert alert);	/* "GpuLost" */
const char *takt_alert_severity(enum takt_alert alert); /* "critical", "warning", "info" */
bool takt_alert_of_gpu(enum takt_alert alert);
bool takt_alert_of_peer(enum takt_alert alert);
/* "GPU 3 of box1 fell off the bus or needs a reset" */
int takt_alert_summary(const struct takt_alerts *alerts, const struct takt_alert_news *news,
		       struct takt_str *out);
/* {"alert": "GpuLost", "state": "firing", ...} */
int takt_alert_json(const struct takt_alerts *alerts, const struct takt_alert_news *news,
		    struct takt_str *out);

#endif
