/* SPDX-License-Identifier: Apache-2.0 */
/* Who governs a job: what it says itself goes first, then its tenant's rule, then the daemon's
 * settings. Out of the box nobody does. */
#include <string.h>

#include "base/str.h"
#include "daemon/govern.h"

static int no_such_governor(const char *name, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str all = TAKT_STR(1024);

	for (size_t i = 0; takt_governor_all[i]; i++)
		takt_str_addf(&all, "%s%s", i ? ", " : "", takt_governor_all[i]->name);
	return takt_err_set(err, -TAKT_E_USAGE, "there is no governor '%s'; there are %s", name,
			    takt_str_text(&all));
}

/* Who it is where nobody has named one. */
static const char *by_promise(const struct takt_govern_terms *terms)
{
	return terms->slo_latency_us ? "slo" : terms->max_slowdown_permille ? "assured" : "observe";
}

static int check(const struct takt_govern_terms *terms, struct takt_err *err)
{
	if (terms->governor == &takt_governor_assured && !terms->max_slowdown_permille)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "governor 'assured' needs a promise: '--max-slowdown 3%%'");
	if (terms->governor == &takt_governor_slo && !terms->slo_latency_us)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "governor 'slo' needs a latency: '--slo p99=50ms'");
	return 0;
}

int takt_govern_check_rules(const struct takt_share_rules *rules, struct takt_err *err)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		const char *name = rules->list[i].clock_policy;

		if (name[0] && !takt_governor_find(name))
			return takt_err_wrap(err, no_such_governor(name, err), "[tenant %s]",
					     rules->list[i].name);
	}
	return 0;
}

/* What the rules of a job's tenant, and of those above it, say; the nearest that says it counts. */
static void take_rules(const struct takt_queue *queue, const struct takt_share_rule *rule,
		       uint32_t *max_slowdown_permille, const char **name)
{
	bool promised = false;

	for (; rule; rule = takt_queue_tenant_above(queue, rule)) {
		if (!promised && rule->has_max_slowdown)
			*max_slowdown_permille = rule->max_slowdown_permille;
		promised = promised || rule->has_max_slowdown;
		if (!(*name)[0])
			*name = rule->clock_policy;
	}
}

/* What a job that does not say it itself is promised, and who keeps that; *ret_name "" = nobody is
 * named. */
static void take_defaults(const struct takt_daemon *daemon, uid_t uid,
			  const struct takt_jobspec *spec, struct takt_govern_terms *ret,
			  const char **ret_name)
{
	const struct takt_share_rule *rule =
		daemon->queue ? takt_queue_tenant_rule(daemon->queue, uid, spec->tenant) : NULL;
	const struct takt_config *config = &daemon->config;
	uint32_t slowdown = config->max_slowdown_permille;

	take_rules(daemon->queue, rule, &slowdown, ret_name);
	if (!spec->max_slowdown_permille && !spec->slo_latency_us)
		ret->max_slowdown_permille = slowdown;
	if (!(*ret_name)[0] && config->clock_policy != TAKT_CLOCK_POLICY_AUTO)
		*ret_name = takt_config_clock_policies[config->clock_policy];
}

int takt_govern_terms(const struct takt_daemon *daemon, uid_t uid, const struct takt_jobspec *spec,
		      struct takt_govern_terms *ret, struct takt_err *err)
{
	bool promised = spec->max_slowdown_permille || spec->slo_latency_us;
	const char *name = spec->clock_policy;

	*ret = (struct takt_govern_terms){
		.max_slowdown_permille = spec->max_slowdown_permille,
		.slo_latency_us = spec->slo_latency_us,
		.slo_permille = spec->slo_permille,
	};
	if (spec->gpus == 0 || spec->clock_ask != TAKT_CLOCK_ASK_NONE)
		return 0;
	take_defaults(daemon, uid, spec, ret, &name);
	if (!name[0] || (!spec->clock_policy[0] && promised && strcmp(name, "observe") == 0))
		name = by_promise(ret);
	ret->governor = takt_governor_find(name);
	if (!ret->governor)
		return no_such_governor(name, err);
	if (ret->governor == &takt_governor_observe)
		ret->governor = NULL;
	if (!spec->clock_policy[0] && check(ret, NULL) < 0)
		ret->governor = NULL; /* a default that has nothing to hold on to */
	return check(ret, err);
}
