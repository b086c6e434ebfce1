/* SPDX-License-Identifier: Apache-2.0 */
/* The health of GPUs as the API shows it. */
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/gpu_health_impl.h"
#include "daemon/gpu_orders.h"
#include "rules/xid.h"

int64_t takt_health_wall_ms(const struct takt_health_clocks *clocks, struct takt_mono at)
{
	int64_t ago_ns = (int64_t)takt_mono_elapsed_ns(clocks->mono, at);

	return (clocks->wall.ns - ago_ns) / (int64_t)TAKT_NS_PER_MS;
}

static void fill_findings(const struct takt_rules_verdict *verdict,
			  const struct takt_health_clocks *clocks, bool names,
			  struct takt_health_gpu *ret)
{
	for (uint32_t i = 0; i < verdict->count && i < TAKT_HEALTH_MAX_FINDINGS; i++) {
		const struct takt_rules_finding *from = &verdict->finding[i];
		struct takt_health_finding *to = &ret->findings[ret->finding_count++];

		takt_strcpy(to->finding, sizeof(to->finding), takt_finding_name(from->kind));
		takt_strcpy(to->level, sizeof(to->level), takt_level_name(from->level));
		if (from->action != TAKT_REMEDY_NONE)
			takt_strcpy(to->action, sizeof(to->action), takt_remedy_name(from->action));
		takt_rules_text(from, names, to->text, sizeof(to->text));
		to->since_ms = takt_health_wall_ms(clocks, from->since);
		to->cause = from->cause;
	}
	for (uint32_t i = 0; i < verdict->action_count && i < TAKT_HEALTH_MAX_ACTIONS; i++)
		takt_strcpy(ret->actions[ret->action_count++], sizeof(ret->actions[0]),
			    takt_remedy_name(verdict->action[i]));
}

static void fill_xids(const struct takt_health_one *one, const struct takt_health_clocks *clocks,
		      struct takt_health_gpu *ret)
{
	for (uint32_t i = 0; i < one->seen_count; i++) {
		const struct takt_xid *known = takt_xid_find(one->seen[i].xid);
		struct takt_health_xid *to = &ret->xids[ret->xid_count++];

		to->xid = one->seen[i].xid;
		to->count = one->seen[i].count;
		to->last_ms = takt_health_wall_ms(clocks, one->seen[i].last);
		if (known && known->used)
			takt_strcpy(to->text, sizeof(to->text), known->text);
	}
}

static void fill_sxids(const struct takt_gpu_health *health,
		       const struct takt_health_clocks *clocks, struct takt_health_view *ret)
{
	for (uint32_t i = 0; i < health->switch_seen_count; i++) {
		const struct takt_health_switch_seen *from = &health->switch_seen[i];
		const struct takt_log_event *event = &from->event;
		struct takt_health_sxid *to = &ret->sxids[ret->sxid_count++];

		snprintf(to->pci, sizeof(to->pci), "%04x:%02x:%02x", event->pci.domain,
			 event->pci.bus, event->pci.device);
		to->sxid = event->code;
		to->count = from->count;
		to->last_ms = takt_health_wall_ms(clocks, from->last);
		to->fatal = event->fatal;
		to->link = event->link;
	}
}

static void fill_gpu(struct takt_gpu_health *health, uint32_t gpu,
		     const struct takt_health_clocks *clocks, bool names,
		     struct takt_health_gpu *ret)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(health->daemon->machine, gpu);
	struct takt_health_one *one = &health->gpu[gpu];
	struct takt_rules_verdict verdict;

	ret->index = gpu;
	takt_strcpy(ret->uuid, sizeof(ret->uuid), facts->uuid);
	takt_rules_verdict(&one->rules, &verdict);
	takt_strcpy(ret->state, sizeof(ret->state), takt_health_name(verdict.health));
	takt_strcpy(ret->severity, sizeof(ret->severity),
		    takt_level_name(takt_health_severity(health, gpu)));
	if (one->rules.changes)
		ret->since_ms = takt_health_wall_ms(clocks, one->rules.health_since);
	takt_orders_note(health->daemon->orders, gpu, clocks->wall, ret->note, sizeof(ret->note));
	fill_findings(&verdict, clocks, names, ret);
	takt_health_take(one, clocks);
	ret->past = one->past;
	fill_xids(one, clocks, ret);
}

int takt_api_health(void *ctx, const struct takt_peer *peer, struct takt_health_view *ret,
		    struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_gpu_health *health = daemon->health;
	const struct takt_health_clocks clocks = {takt_mono_now(daemon->sys),
						  takt_wall_now(daemon->sys)};
	struct takt_health_gpu *gpus = takt_calloc(health->count, sizeof(*gpus));

	if (!gpus && health->count)
		return takt_err_set(err, -ENOMEM, "the health of %u GPUs", health->count);
	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	takt_strcpy(ret->events_why, sizeof(ret->events_why), health->listen_why);
	if (health->listen)
		takt_gpu_listen_why(health->listen, ret->events_why);
	takt_health_log_why(health, ret->kernel_log_why, sizeof(ret->kernel_log_why));
	for (uint32_t gpu = 0; gpu < health->count; gpu++)
		fill_gpu(health, gpu, &clocks, peer->uid == 0, &gpus[gpu]);
	fill_sxids(health, &clocks, ret);
	ret->gpu_count = health->count;
	ret->gpus = gpus;
	return 0;
}
