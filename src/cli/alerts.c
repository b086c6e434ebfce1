/* SPDX-License-Identifier: Apache-2.0 */
/* See alerts.h. */
#include "cli/alerts.h"

#include <assert.h>
#include <string.h>

#include "base/pace.h"
#include "codec/json.h"

static_assert((int)TAKT_NET_VIEW_MAX_PEERS <= (int)TAKT_VIEW_MAX_GPUS, "places of standing");

enum known {
	NO,
	YES,
	UNKNOWN,
};

static const uint64_t minute_ms = 60000;
/* To tell what a hook or a webhook did not take. */
static const struct takt_pace tellings = {TAKT_NS_PER_S, 60 * TAKT_NS_PER_S};

struct rule {
	const char *name, *severity, *what; /* "GPU 3 of box1 ..." */
	uint64_t hold_ms;		    /* IDLE: the terms' */
	/* One of these, or neither. */
	enum known (*holds)(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu);
	enum known (*holds_of_peer)(const struct takt_alert_terms *terms,
				    const struct takt_net_peer_view *peer);
};

static enum known known(bool is)
{
	return is ? YES : NO;
}

static bool fresh(const struct takt_gpu_view *gpu)
{
	return !gpu->stale && !gpu->lost;
}

static enum known is_lost(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return known(gpu->lost);
}

static enum known is_silent(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return known(gpu->stale && !gpu->lost);
}

static enum known is_aside(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return known(strcmp(gpu->state, "quarantined") == 0 || strcmp(gpu->state, "fault") == 0);
}

static enum known is_dirty(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return known(strcmp(gpu->state, "draining") == 0);
}

static enum known held_back_by(const struct takt_gpu_view *gpu, const char *reason)
{
	if (!fresh(gpu) || !(gpu->has & TAKT_VIEW_THROTTLE))
		return UNKNOWN;
	return known(strstr(gpu->throttle_text, reason));
}

static enum known is_slowed(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return held_back_by(gpu, "thermal_slowdown");
}

static enum known is_braked(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return held_back_by(gpu, "hw_power_brake_slowdown");
}

static enum known is_hot(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	if (terms->temp_c == 0)
		return NO;
	return fresh(gpu) && (gpu->has & TAKT_VIEW_TEMP) ? known(gpu->temp_c > terms->temp_c)
							 : UNKNOWN;
}

static enum known is_changed(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	return known(strcmp(gpu->clock_state, "changed") == 0);
}

static enum known is_idle(const struct takt_alert_terms *terms, const struct takt_gpu_view *gpu)
{
	if (terms->idle_ms == 0 || gpu->job_id == 0)
		return NO;
	return fresh(gpu) && (gpu->has & TAKT_VIEW_GPU_UTIL) ? known(gpu->gpu_util_pct == 0)
							     : UNKNOWN;
}

static enum known no_answer(const struct takt_alert_terms *terms,
			    const struct takt_net_peer_view *peer)
{
	return strcmp(peer->state, "unknown") == 0 ? UNKNOWN
						   : known(strcmp(peer->state, "silent") == 0);
}

/* Each look sees the last one of many: it takes all looks of five minutes to fire. */
static enum known is_slow(const struct takt_alert_terms *terms,
			  const struct takt_net_peer_view *peer)
{
	if (terms->rtt_ns == 0)
		return NO;
	return strcmp(peer->state, "answers") == 0 && peer->last_ns
		       ? known(peer->last_ns > terms->rtt_ns)
		       : UNKNOWN;
}

static const struct rule rules[TAKT_ALERT_COUNT] = {
	[TAKT_ALERT_DOWN] = {"TaktDown", "critical", "does not answer", 2 * minute_ms, NULL},
	[TAKT_ALERT_LOST] = {"GpuLost", "critical", "fell off the bus or needs a reset", 0,
			     is_lost},
	[TAKT_ALERT_SILENT] = {"GpuNotAnswering", "critical", "does not answer", minute_ms,
			       is_silent},
	[TAKT_ALERT_ASIDE] = {"GpuSetAside", "critical", "gets no jobs: takt has set it aside",
			      minute_ms, is_aside},
	[TAKT_ALERT_DIRTY] = {"GpuStaysDirty", "warning", "has not become clean after its job",
			      15 * minute_ms, is_dirty},
	[TAKT_ALERT_HEAT] = {"GpuSlowedByHeat", "warning", "is slowed down by heat", 5 * minute_ms,
			     is_slowed},
	[TAKT_ALERT_BRAKE] = {"GpuPowerBrake", "critical", "is braked by the power supply",
			      5 * minute_ms, is_braked},
	[TAKT_ALERT_HOT] = {"GpuHot", "warning", "is hotter than was asked for", 5 * minute_ms,
			    is_hot},
	[TAKT_ALERT_CHANGED] = {"GpuNotRestored", "critical",
				"has clocks that could not be put "
				"back",
				2 * minute_ms, is_changed},
	[TAKT_ALERT_IDLE] = {"GpuHeldIdle", "info", "is held by a job and does nothing", 0,
			     is_idle},
	[TAKT_ALERT_PEER_SILENT] = {"NetPeerSilent", "warning", "answers no probes", 2 * minute_ms,
				    NULL, no_answer},
	[TAKT_ALERT_PEER_SLOW] = {"NetPeerSlow", "warning", "answers later than was asked for",
				  5 * minute_ms, NULL, is_slow},
};

static uint64_t hold_ms(const struct takt_alerts *alerts, enum takt_alert alert)
{
	if (alerts->terms.at_once)
		return alert == TAKT_ALERT_IDLE || alert == TAKT_ALERT_DIRTY ? UINT64_MAX : 0;
	return alert == TAKT_ALERT_IDLE ? alerts->terms.idle_ms : rules[alert].hold_ms;
}

static void note(struct takt_alerts *alerts, enum takt_alert alert, uint32_t gpu, enum known now,
		 uint64_t now_ms)
{
	struct takt_alert_standing *standing = &alerts->standing[alert][gpu];

	if (now == UNKNOWN)
		return;
	if (now == NO) {
		standing->since_ms = 0;
		standing->fires = false;
		return;
	}
	if (standing->since_ms == 0)
		standing->since_ms = now_ms;
	standing->fires |= now_ms - standing->since_ms >= hold_ms(alerts, alert);
}

void takt_alerts_look(struct takt_alerts *alerts, const struct takt_status_view *view,
		      uint64_t now_ms)
{
	note(alerts, TAKT_ALERT_DOWN, 0, known(!view), now_ms);
	if (!view)
		return;
	alerts->simulated = view->simulated;
	takt_strcpy(alerts->hostname, sizeof(alerts->hostname), view->hostname);
	for (uint32_t i = 0; i < view->gpu_count; i++) {
		const struct takt_gpu_view *gpu = &view->gpus[i];

		if (gpu->index >= TAKT_VIEW_MAX_GPUS)
			continue;
		takt_strcpy(alerts->uuids[gpu->index], sizeof(alerts->uuids[0]), gpu->uuid);
		for (enum takt_alert a = TAKT_ALERT_LOST; a < TAKT_ALERT_PEER_SILENT; a++)
			note(alerts, a, gpu->index, rules[a].holds(&alerts->terms, gpu), now_ms);
	}
}

static void forget_peer(struct takt_alerts *alerts, uint32_t at)
{
	for (enum takt_alert a = TAKT_ALERT_PEER_SILENT; a < TAKT_ALERT_COUNT; a++)
		alerts->standing[a][at] = (struct takt_alert_standing){0};
}

void takt_alerts_look_at_net(struct takt_alerts *alerts, const struct takt_net_view *view,
			     uint64_t now_ms)
{
	for (uint32_t i = 0; i < TAKT_NET_VIEW_MAX_PEERS; i++) {
		const struct takt_net_peer_view *peer = &view->peers[i];
		const char *name = i < view->peer_count ? peer->name : "";

		if (strcmp(alerts->peers[i], name) != 0)
			forget_peer(alerts, i);
		takt_strcpy(alerts->peers[i], sizeof(alerts->peers[0]), name);
		for (enum takt_alert a = TAKT_ALERT_PEER_SILENT; *name && a < TAKT_ALERT_COUNT; a++)
			note(alerts, a, i, rules[a].holds_of_peer(&alerts->terms, peer), now_ms);
	}
}

bool takt_alerts_news(const struct takt_alerts *alerts, struct takt_alert_news *from,
		      uint64_t now_ms)
{
	uint32_t cell = (uint32_t)from->alert * TAKT_VIEW_MAX_GPUS + from->at;

	for (; cell < TAKT_ALERT_COUNT * TAKT_VIEW_MAX_GPUS; cell++) {
		enum takt_alert alert = (enum takt_alert)(cell / TAKT_VIEW_MAX_GPUS);
		uint32_t at = cell % TAKT_VIEW_MAX_GPUS;
		const struct takt_alert_standing *standing = &alerts->standing[alert][at];

		if (standing->fires == standing->told || now_ms < standing->tell_ms)
			continue;
		*from = (struct takt_alert_news){alert, at, standing->fires};
		return true;
	}
	return false;
}

void takt_alerts_told(struct takt_alerts *alerts, const struct takt_alert_news *news)
{
	struct takt_alert_standing *standing = &alerts->standing[news->alert][news->at];

	standing->told = news->fires;
	standing->failures = 0;
}

void takt_alerts_untold(struct takt_alerts *alerts, const struct takt_alert_news *news,
			uint64_t now_ms)
{
	struct takt_alert_standing *standing = &alerts->standing[news->alert][news->at];

	standing->tell_ms = now_ms + takt_pace_ns(&tellings, standing->failures++) / TAKT_NS_PER_MS;
}

const char *takt_alert_name(enum takt_alert alert)
{
	return rules[alert].name;
}

const char *takt_alert_severity(enum takt_alert alert)
{
	return rules[alert].severity;
}

bool takt_alert_of_gpu(enum takt_alert alert)
{
	return rules[alert].holds != NULL;
}

bool takt_alert_of_peer(enum takt_alert alert)
{
	return rules[alert].holds_of_peer != NULL;
}

int takt_alert_summary(const struct takt_alerts *alerts, const struct takt_alert_news *news,
		       struct takt_str *out)
{
	const char *host = alerts->hostname[0] ? alerts->hostname : "this machine";

	if (takt_alert_of_gpu(news->alert))
		takt_str_addf(out, "GPU %u of %s ", news->at, host);
	else if (takt_alert_of_peer(news->alert))
		takt_str_addf(out, "%s, probed by %s, ", alerts->peers[news->at], host);
	else
		takt_str_addf(out, "takt on %s ", host);
	takt_str_add(out, rules[news->alert].what);
	return takt_str_addf(out, "%s%s", news->fires ? "" : ": over",
			     alerts->simulated ? " (SIMULATED)" : "");
}

static void add_text(struct takt_str *out, const char *name, const char *text)
{
	takt_json_add_name(out, name, false);
	takt_json_add_text(out, text);
}

int takt_alert_json(const struct takt_alerts *alerts, const struct takt_alert_news *news,
		    struct takt_str *out)
{
	TAKT_CLEANUP(strp) struct takt_str summary = TAKT_STR(512);

	takt_alert_summary(alerts, news, &summary);
	takt_str_add(out, "{");
	takt_json_add_name(out, "alert", true);
	takt_json_add_text(out, takt_alert_name(news->alert));
	add_text(out, "state", news->fires ? "firing" : "resolved");
	add_text(out, "severity", takt_alert_severity(news->alert));
	add_text(out, "hostname", alerts->hostname);
	if (takt_alert_of_gpu(news->alert)) {
		takt_str_addf(out, ",\"gpu\":%u", news->at);
		add_text(out, "uuid", alerts->uuids[news->at]);
	}
	if (takt_alert_of_peer(news->alert))
		add_text(out, "peer", alerts->peers[news->at]);
	add_text(out, "summary", takt_str_text(&summary));
	return takt_str_addf(out, ",\"simulated\":%s}", alerts->simulated ? "true" : "false");
}
