/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds the rules and acts on what they find, see the header. */
#include "daemon/gpu_health_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/gpu_orders.h"
#include "daemon/gpu_watch.h"
#include "daemon/log.h"

#define SAME_NS                                                                           \
	(2 * TAKT_NS_PER_S) /* told again within it: the same event, as the rules have it \
			     */

enum {
	LINES_A_LOOK = 1000,
};

/*
 * Where events come from.
 */

static void open_listen(struct takt_gpu_health *health)
{
	const struct takt_daemon *daemon = health->daemon;
	const char *uuids[TAKT_DEVICE_MAX_GPUS];
	struct takt_err err;

	if (strcmp(takt_machine_info(daemon->machine)->source, "nvml") != 0) {
		takt_strcpy(health->listen_why, sizeof(health->listen_why), "there is no driver");
		return;
	}
	for (uint32_t gpu = 0; gpu < health->count; gpu++)
		uuids[gpu] = takt_machine_facts(daemon->machine, gpu)->uuid;
	if (takt_gpu_listen_open(daemon->config.nvml_path, uuids, health->count, &health->listen,
				 &err) < 0)
		takt_strcpy(health->listen_why, sizeof(health->listen_why), err.msg);
}

/* The kernel of a machine whose GPUs are simulated knows nothing of them. */
static int open_log(struct takt_gpu_health *health, struct takt_err *err)
{
	const struct takt_daemon *daemon = health->daemon;
	const char *path = daemon->config.kernel_log;
	bool real = strcmp(takt_machine_info(daemon->machine)->source, "nvml") == 0 &&
		    !takt_machine_info(daemon->machine)->simulated;
	bool by_itself = strcmp(path, "auto") == 0;

	if (strcmp(path, "off") == 0)
		health->log_off = "kernel_log is off";
	else if (by_itself && !real)
		health->log_off = "these GPUs are not this kernel's";
	else
		return takt_kernel_log_open(by_itself ? "/dev/kmsg" : path, &health->log, err);
	return 0;
}

void takt_health_log_why(const struct takt_gpu_health *health, char *buf, size_t size)
{
	const struct takt_log_reader *reader = &health->reader;
	const struct takt_err *err = health->log ? takt_kernel_log_why(health->log) : NULL;

	buf[0] = '\0';
	if (!health->log)
		takt_strcpy(buf, size, health->log_off);
	else if (err)
		takt_err_text(err, buf, size);
	else if (reader->lines > 0 && reader->understood == 0 &&
		 takt_kernel_log_is_file(health->log))
		snprintf(buf, size,
			 "none of %" PRIu64 " new lines of '%.100s' is understood as the kernel's; "
			 "kernel_log names a file that dmesg, journalctl -k or syslog write for it",
			 reader->lines, health->daemon->config.kernel_log);
}

int takt_health_new(struct takt_daemon *daemon, struct takt_gpu_health **ret, struct takt_err *err)
{
	struct takt_gpu_health *health =
		takt_zalloc(sizeof(*health) + daemon->gpu_count * sizeof(health->gpu[0]));
	int rc;

	if (!health)
		return takt_err_set(err, -ENOMEM, "the health of GPUs");
	health->daemon = daemon;
	health->count = daemon->gpu_count;
	for (uint32_t gpu = 0; gpu < health->count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
		struct takt_health_one *one = &health->gpu[gpu];
		struct takt_rules_board board;
		const char *rest;

		takt_health_board(facts, &board);
		takt_rules_init(&one->rules, &board);
		one->has_pci = (facts->has & TAKT_FACT_PCI) &&
			       takt_log_pci_parse(facts->pci_bus_id, &rest, &one->pci);
	}
	rc = takt_health_load(health, err);
	if (rc >= 0)
		rc = open_log(health, err);
	if (rc < 0) {
		takt_free(health);
		return rc;
	}
	open_listen(health);
	*ret = health;
	return 0;
}

void takt_health_free(struct takt_gpu_health *health)
{
	if (!health)
		return;
	takt_gpu_listen_close(health->listen);
	takt_kernel_log_close(health->log);
	takt_free(health);
}

/*
 * Events.
 */

/* One event counts once, whoever tells it; the newest code goes to the front. Whether it was one.
 */
static bool count_xid(struct takt_health_one *one, uint32_t xid, struct takt_mono at)
{
	struct takt_health_seen seen = {.xid = xid};
	uint32_t i = 0;
	bool is_new;

	while (i < one->seen_count && one->seen[i].xid != xid)
		i++;
	if (i < one->seen_count)
		seen = one->seen[i];
	else if (one->seen_count < TAKT_HEALTH_MAX_XIDS)
		one->seen_count++;
	else
		i--;
	memmove(&one->seen[1], &one->seen[0], i * sizeof(seen));
	is_new = seen.count == 0 || takt_mono_elapsed_ns(at, seen.last) > SAME_NS;
	seen.count += is_new;
	seen.last = at;
	one->seen[0] = seen;
	return is_new;
}

static void take_xid(struct takt_gpu_health *health, uint32_t gpu, enum takt_incident_source source,
		     struct takt_mono at, const struct takt_log_event *log)
{
	struct takt_daemon *daemon = health->daemon;
	const struct takt_rules_event event = {
		.at = at, .kind = TAKT_RULES_XID, .source = source, .log = *log};

	if (count_xid(&health->gpu[gpu], log->code, at))
		takt_telemetry_xid(daemon->telemetry, gpu, log->code, takt_wall_now(daemon->sys));
	takt_rules_event(&health->gpu[gpu].rules, &event);
}

static void reset(struct takt_gpu_health *health, uint32_t gpu, struct takt_mono at)
{
	takt_rules_event(&health->gpu[gpu].rules,
			 &(struct takt_rules_event){.at = at, .kind = TAKT_RULES_RESET});
}

static void reset_all(struct takt_gpu_health *health, struct takt_mono at)
{
	for (uint32_t gpu = 0; gpu < health->count; gpu++)
		reset(health, gpu, at);
}

static bool is_same_sxid(const struct takt_log_event *one, const struct takt_log_event *other)
{
	return one->code == other->code && one->pci.domain == other->pci.domain &&
	       one->pci.bus == other->pci.bus && one->pci.device == other->pci.device;
}

/* Told once; which GPUs it ails their own XIDs say. The newest goes to the front. */
static void take_sxid(struct takt_gpu_health *health, const struct takt_log_event *event,
		      struct takt_mono now)
{
	struct takt_health_switch_seen *list = health->switch_seen, seen = {0};
	uint32_t i = 0;

	while (i < health->switch_seen_count && !is_same_sxid(&list[i].event, event))
		i++;
	if (i < health->switch_seen_count)
		seen = list[i];
	else if (health->switch_seen_count < TAKT_HEALTH_MAX_SXIDS)
		health->switch_seen_count++;
	else
		i--;
	memmove(&list[1], &list[0], i * sizeof(list[0]));
	if (seen.count++ == 0)
		takt_log(TAKT_LOG_WARNING, "NVSwitch %04x:%02x:%02x: SXid %" PRIu32 "%s",
			 event->pci.domain, event->pci.bus, event->pci.device, event->code,
			 event->fatal ? ", fatal" : "");
	seen.event = *event;
	seen.last = now;
	list[0] = seen;
}

static void take_log_event(struct takt_gpu_health *health, const struct takt_log_event *event,
			   struct takt_mono now)
{
	if (event->kind == TAKT_LOG_LOADED)
		reset_all(health, now);
	if (event->kind == TAKT_LOG_SWITCH)
		take_sxid(health, event, now);
	if (event->kind != TAKT_LOG_XID && event->kind != TAKT_LOG_OFF_THE_BUS)
		return;
	for (uint32_t gpu = 0; gpu < health->count; gpu++) {
		const struct takt_health_one *one = &health->gpu[gpu];

		if (one->has_pci && one->pci.domain == event->pci.domain &&
		    one->pci.bus == event->pci.bus && one->pci.device == event->pci.device)
			take_xid(health, gpu, TAKT_INCIDENT_KERNEL_LOG, now, event);
	}
}

static void read_log(struct takt_gpu_health *health, struct takt_mono now)
{
	struct takt_log_event event;
	const char *line;
	size_t len;

	for (int i = 0; health->log && i < LINES_A_LOOK; i++) {
		if (!takt_kernel_log_next(health->log, &line, &len))
			return;
		if (takt_log_read(&health->reader, line, len, &event))
			take_log_event(health, &event, now);
	}
}

static void hear(struct takt_gpu_health *health)
{
	struct takt_heard heard;

	while (health->listen && takt_gpu_listen_next(health->listen, &heard)) {
		if (heard.kind == TAKT_HEARD_LOADED)
			reset_all(health, heard.at);
		else
			take_xid(health, heard.gpu, TAKT_INCIDENT_NVML, heard.at,
				 &(struct takt_log_event){.code = heard.xid, .link = -1});
	}
}

void takt_health_looked_at(struct takt_gpu_health *health, uint32_t gpu)
{
	if (health && gpu < health->count)
		reset(health, gpu, takt_mono_now(health->daemon->sys));
}

/*
 * What follows.
 */

/* The first finding that is no mere information; NULL = none. */
static const struct takt_rules_finding *worst_of(const struct takt_rules_verdict *verdict)
{
	return verdict->count && verdict->finding[0].level > TAKT_LEVEL_INFO ? &verdict->finding[0]
									     : NULL;
}

static void put_worst(const struct takt_rules_verdict *verdict, char *buf, size_t size)
{
	const struct takt_rules_finding *worst = worst_of(verdict);
	char text[200] = "";

	if (worst)
		takt_rules_text(worst, false, text, sizeof(text));
	snprintf(buf, size, "%s%s%s%s", text, verdict->action_count ? " (" : "",
		 verdict->action_count ? takt_remedy_name(verdict->action[0]) : "",
		 verdict->action_count ? ")" : "");
}

static void tell_log(struct takt_health_one *one, uint32_t gpu,
		     const struct takt_rules_verdict *verdict, const char *worst)
{
	if (one->rules.changes == one->changes_told)
		return;
	one->changes_told = one->rules.changes;
	takt_log(verdict->health == TAKT_HEALTH_HEALTHY ? TAKT_LOG_NOTICE : TAKT_LOG_WARNING,
		 "GPU %" PRIu32 " is %s%s%s", gpu, takt_health_name(verdict->health),
		 worst_of(verdict) ? ": " : "", worst_of(verdict) ? worst : "");
}

/* Of one that the driver has lost the watch knows by itself. */
static void act(struct takt_gpu_health *health, uint32_t gpu)
{
	struct takt_daemon *daemon = health->daemon;
	struct takt_health_one *one = &health->gpu[gpu];
	struct takt_rules_verdict verdict;
	char worst[240];
	bool ill;

	takt_rules_verdict(&one->rules, &verdict);
	put_worst(&verdict, worst, sizeof(worst));
	tell_log(one, gpu, &verdict, worst);
	ill = verdict.health >= TAKT_HEALTH_QUARANTINED && !daemon->watch[gpu].lost;
	takt_watch_set_ill(daemon, gpu, ill, worst);
	if (ill && daemon->orders && takt_rules_waits_for_reset(&one->rules))
		takt_orders_fault(daemon->orders, gpu, worst);
}

/* The newest reading, if it tells the rules something; NULL: it does not. */
static const struct takt_gpu_reading *news_of(const struct takt_gpu_health *health, uint32_t gpu,
					      struct takt_mono now)
{
	const struct takt_gpu_reading *reading;

	if (takt_telemetry_latest(health->daemon->telemetry, gpu, now, &reading) < 0 ||
	    reading->asleep)
		return NULL;
	return reading->lost || (!reading->stale && reading->seq != health->gpu[gpu].seq_seen)
		       ? reading
		       : NULL;
}

/* The newest reading, for the rules; nothing is done about what they find. */
static void feed(struct takt_gpu_health *health, uint32_t gpu, struct takt_mono now)
{
	struct takt_daemon *daemon = health->daemon;
	struct takt_health_one *one = &health->gpu[gpu];
	const struct takt_gpu_reading *reading = news_of(health, gpu, now);
	struct takt_rules_sample sample;
	struct takt_lease_state lease;

	if (reading) {
		takt_leases_state(daemon->leases, gpu, &lease);
		takt_health_sample(reading, lease.max_mhz, &sample);
		one->seq_seen = reading->seq;
		takt_rules_sample(&one->rules, &sample);
	}
	takt_rules_driver(&one->rules, now, takt_machine_driver_is_gone(daemon->machine));
	takt_rules_tick(&one->rules, now, !takt_watch_asleep(daemon, gpu));
}

static void look(struct takt_gpu_health *health, uint32_t gpu, struct takt_mono now)
{
	struct takt_daemon *daemon = health->daemon;

	feed(health, gpu, now);
	act(health, gpu);
	takt_health_take(&health->gpu[gpu],
			 &(struct takt_health_clocks){now, takt_wall_now(daemon->sys)});
	takt_health_keep(health, gpu);
}

/* One that was lost and is back before the next look was lost all the same. */
static bool is_lost_or_back(const struct takt_gpu_health *health, struct takt_mono now)
{
	for (uint32_t gpu = 0; gpu < health->count; gpu++) {
		const struct takt_gpu_reading *reading = news_of(health, gpu, now);

		if (reading && reading->lost != health->gpu[gpu].rules.was_lost)
			return true;
	}
	return false;
}

void takt_health_tick(struct takt_gpu_health *health, struct takt_mono now)
{
	if (now.ns < health->next.ns && !is_lost_or_back(health, now))
		return;
	health->next = takt_mono_add(now, TAKT_NS_PER_S);
	read_log(health, now);
	hear(health);
	for (uint32_t gpu = 0; gpu < health->count; gpu++)
		look(health, gpu, now);
}

bool takt_health_befell(struct takt_gpu_health *health, uint32_t gpu, struct takt_mono since,
			struct takt_mono ended, struct takt_rules_blow *ret, bool *ret_known)
{
	struct takt_daemon *daemon = health->daemon;
	struct takt_mono now = takt_mono_now(daemon->sys);
	const struct takt_gpu_reading *reading;

	*ret_known = takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) == 0 &&
		     (reading->lost || reading->slow_at.ns >= ended.ns);
	if (!*ret_known)
		takt_machine_sample(daemon->machine, gpu);
	if (health->listen && !takt_gpu_listen_heard(health->listen, ended))
		*ret_known = false;
	read_log(health, now);
	hear(health);
	feed(health, gpu, now);
	return takt_rules_befell(&health->gpu[gpu].rules, since, ret);
}

bool takt_health_hears_xids(const struct takt_gpu_health *health)
{
	char why[160] = "", log_why[400];

	if (health->listen)
		takt_gpu_listen_why(health->listen, why);
	takt_health_log_why(health, log_why, sizeof(log_why));
	return log_why[0] == '\0' || (health->listen && why[0] == '\0');
}

enum takt_level takt_health_severity(const struct takt_gpu_health *health, uint32_t gpu)
{
	struct takt_rules_verdict verdict;

	takt_rules_verdict(&health->gpu[gpu].rules, &verdict);
	return health->daemon->watch[gpu].lost ? TAKT_LEVEL_CRITICAL : verdict.severity;
}

enum takt_level takt_health_severity_of(const struct takt_gpu_health *health, uint64_t gpu_mask)
{
	enum takt_level gravest = TAKT_LEVEL_NONE;

	for (uint32_t gpu = 0; gpu < health->count; gpu++)
		if (gpu_mask >> gpu & 1 && takt_health_severity(health, gpu) > gravest)
			gravest = takt_health_severity(health, gpu);
	return gravest;
}

const char *takt_health_state(const struct takt_gpu_health *health, uint32_t gpu)
{
	return takt_health_name(health->gpu[gpu].rules.health);
}

const char *takt_health_note(const struct takt_gpu_health *health, uint32_t gpu, char *buf,
			     size_t size)
{
	struct takt_rules_verdict verdict;
	char worst[240];

	buf[0] = '\0';
	takt_rules_verdict(&health->gpu[gpu].rules, &verdict);
	if (!worst_of(&verdict))
		return buf;
	put_worst(&verdict, worst, sizeof(worst));
	snprintf(buf, size, "%s: %s", takt_health_name(verdict.health), worst);
	return buf;
}

void takt_health_job_note(const struct takt_gpu_health *health, const struct takt_queue_job *job,
			  char *buf, size_t size)
{
	char note[256] = "";

	buf[0] = '\0';
	for (uint64_t left = job->row.gpu_mask; left && !note[0]; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		if (gpu < health->count && takt_health_note(health, gpu, note, sizeof(note))[0])
			snprintf(buf, size, "GPU %" PRIu32 " is %s", gpu, note);
	}
}
