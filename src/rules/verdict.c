/* SPDX-License-Identifier: Apache-2.0 */
/* From what stands to a verdict: what is the cause of what, how grave all of it is, what to do. */
#include <inttypes.h>
#include <stdio.h>

#include "rules/rules.h"
#include "rules/xid.h"

static bool is_xid(const struct takt_rules_finding *finding, uint32_t code)
{
	return finding->kind == TAKT_FINDING_XID &&
	       takt_incident_cause(finding->incident)->code == code;
}

static bool explains(const struct takt_rules_finding *cause,
		     const struct takt_rules_finding *effect)
{
	if (effect->level > cause->level)
		return false;
	if (takt_finding_explains(cause->kind, effect->kind))
		return true;
	if (cause->kind == TAKT_FINDING_ROW_PENDING)
		return is_xid(effect, 63); /* it announces the row */
	return cause->kind == TAKT_FINDING_XID &&
	       takt_xid_explains(takt_incident_cause(cause->incident)->code, effect->kind);
}

/* Which of two is named first; indexes follow the kinds' order, so equals stay as they are. */
static bool is_before(const struct takt_rules_finding *a, const struct takt_rules_finding *b)
{
	const struct takt_incident_xid *x, *y;

	if (a->level != b->level)
		return a->level > b->level;
	if (a->kind != b->kind || a->kind != TAKT_FINDING_XID)
		return a->kind < b->kind;
	x = takt_incident_cause(a->incident);
	y = takt_incident_cause(b->incident);
	return x->order != y->order ? x->order < y->order : x->first.ns < y->first.ns;
}

/* Keeps the list in order. */
static void insert(struct takt_rules_verdict *verdict, const struct takt_rules_finding *finding)
{
	uint32_t at = verdict->count++;

	for (; at > 0 && is_before(finding, &verdict->finding[at - 1]); at--)
		verdict->finding[at] = verdict->finding[at - 1];
	verdict->finding[at] = *finding;
}

static void add_standing(const struct takt_rules_gpu *gpu, struct takt_rules_verdict *verdict)
{
	for (unsigned kind = 0; kind < TAKT_FINDING_KINDS; kind++) {
		const struct takt_rules_standing *standing = &gpu->standing[kind];
		const struct takt_finding_rule *rule = takt_finding_rule(kind);

		if (standing->found)
			insert(verdict, &(struct takt_rules_finding){.kind = kind,
								     .level = rule->level,
								     .action = rule->action,
								     .since = standing->found_at,
								     .evidence = standing->evidence,
								     .cause = -1});
	}
}

static void add_incidents(const struct takt_rules_gpu *gpu, struct takt_rules_verdict *verdict)
{
	for (uint32_t i = 0; i < TAKT_INCIDENTS; i++) {
		const struct takt_incident *incident = &gpu->incidents.incident[i];
		const struct takt_incident_xid *cause;

		if (!incident->xid_count)
			continue;
		cause = takt_incident_cause(incident);
		insert(verdict, &(struct takt_rules_finding){
					.kind = TAKT_FINDING_XID,
					.level = cause->level,
					.action = cause->action,
					.since = incident->first,
					.evidence = {cause->last, cause->code, cause->count},
					.incident = incident,
					.cause = -1});
	}
}

/* What follows from something else goes behind all that does not. */
static void find_causes(struct takt_rules_verdict *verdict)
{
	struct takt_rules_verdict sorted = {.count = 0};
	int32_t cause[TAKT_RULES_FINDINGS], place[TAKT_RULES_FINDINGS];

	for (uint32_t i = 0; i < verdict->count; i++) {
		cause[i] = -1;
		for (uint32_t j = 0; j < verdict->count && cause[i] < 0; j++)
			if (j != i && explains(&verdict->finding[j], &verdict->finding[i]))
				cause[i] = (int32_t)j;
	}
	for (int follows = 0; follows < 2; follows++)
		for (uint32_t i = 0; i < verdict->count; i++)
			if ((cause[i] >= 0) == follows) {
				place[i] = (int32_t)sorted.count;
				sorted.finding[sorted.count++] = verdict->finding[i];
			}
	for (uint32_t i = 0; i < verdict->count; i++)
		sorted.finding[place[i]].cause = cause[i] < 0 ? -1 : place[cause[i]];
	verdict->count = sorted.count;
	for (uint32_t i = 0; i < sorted.count; i++)
		verdict->finding[i] = sorted.finding[i];
}

static enum takt_health health_of(const struct takt_rules_verdict *verdict)
{
	if (verdict->count == 0)
		return TAKT_HEALTH_HEALTHY;
	if (verdict->finding[0].kind == TAKT_FINDING_GPU_LOST ||
	    verdict->finding[0].kind == TAKT_FINDING_DRIVER_GONE)
		return TAKT_HEALTH_LOST;
	return verdict->finding[0].level == TAKT_LEVEL_CRITICAL	 ? TAKT_HEALTH_QUARANTINED
	       : verdict->finding[0].level == TAKT_LEVEL_WARNING ? TAKT_HEALTH_SUSPECT
								 : TAKT_HEALTH_HEALTHY;
}

/* What the driver itself asks for; NONE = nothing. */
static enum takt_remedy asked_for(const struct takt_rules_verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->count; i++) {
		enum takt_finding_kind kind = verdict->finding[i].kind;

		if (kind == TAKT_FINDING_RECOVERY_REBOOT || kind == TAKT_FINDING_RECOVERY_DRAIN ||
		    kind == TAKT_FINDING_RECOVERY_RESET || kind == TAKT_FINDING_RECOVERY_P2P)
			return verdict->finding[i].action;
	}
	return TAKT_REMEDY_NONE;
}

static bool is_reset(enum takt_remedy action)
{
	return action == TAKT_REMEDY_RESET_GPU || action == TAKT_REMEDY_REBOOT ||
	       action == TAKT_REMEDY_DRAIN_RESET || action == TAKT_REMEDY_DRAIN_P2P;
}

static void add_action(struct takt_rules_verdict *verdict, enum takt_remedy action)
{
	for (uint32_t i = 0; i < verdict->action_count; i++)
		if (verdict->action[i] == action)
			return;
	if (action != TAKT_REMEDY_NONE)
		verdict->action[verdict->action_count++] = action;
}

/* Of what stands by itself; how to reset is the driver's to say, if it says so, but for a GPU that
 * is gone. */
static void list_actions(struct takt_rules_verdict *verdict)
{
	enum takt_remedy asked = asked_for(verdict);

	for (uint32_t i = 0; i < verdict->count; i++) {
		const struct takt_rules_finding *finding = &verdict->finding[i];
		bool overruled = asked != TAKT_REMEDY_NONE && is_reset(finding->action) &&
				 finding->kind != TAKT_FINDING_GPU_LOST;

		if (finding->cause < 0)
			add_action(verdict, overruled ? asked : finding->action);
	}
}

void takt_rules_verdict(const struct takt_rules_gpu *gpu, struct takt_rules_verdict *ret)
{
	ret->count = 0;
	ret->action_count = 0;
	add_standing(gpu, ret);
	add_incidents(gpu, ret);
	find_causes(ret);
	list_actions(ret);
	ret->health = health_of(ret);
	ret->severity = ret->count ? ret->finding[0].level : TAKT_LEVEL_NONE;
	ret->since = gpu->health_since;
}
