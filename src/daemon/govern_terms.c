/* SPDX-License-Identifier: Apache-2.0 */
/* Who governs a job: what it says itself goes first, then its tenant's rule, then the daemon's
 * settings. Out of the box nobody does. */
#include <string.h>

#include "base/str.h"
#include "daemon/govern.h"
#include "objects/governor_objects.h"

static int choose(const struct takt_daemon *daemon, const char *policy,
		  struct takt_govern_terms *terms, struct takt_err *err)
{
	return takt_governors_choose(takt_governor_objects_all(daemon->governors), policy,
				     &terms->governor, &terms->said, err);
}

/* Who it is where nobody has named one. A budget is the machine's, and goes before what is done for
 * the sake of energy; who holds only a part of his GPUs has no share of it. */
static const char *by_promise(const struct takt_daemon *daemon, const struct takt_jobspec *spec,
			      const struct takt_govern_terms *terms)
{
	if (terms->slo_latency_us)
		return "slo";
	if (daemon->config.power_budget_w && !spec->gpu_milli && !spec->mig[0])
		return "power-budget";
	return terms->max_slowdown_permille ? "assured" : "observe";
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

/* A default, of whatever job. */
static int check_policy(const struct takt_daemon *daemon, const char *policy, struct takt_err *err)
{
	struct takt_govern_terms terms = {.governor = NULL};
	int rc = choose(daemon, policy, &terms, err);

	return rc < 0 ? rc : takt_govern_try(daemon, &terms, NULL, err);
}

int takt_govern_check_rules(const struct takt_daemon *daemon, const struct takt_share_rules *rules,
			    struct takt_err *err)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		const char *policy = rules->list[i].clock_policy;
		int rc = policy[0] ? check_policy(daemon, policy, err) : 0;

		if (rc < 0)
			return takt_err_wrap(err, rc, "[tenant %s]", rules->list[i].name);
	}
	return 0;
}

int takt_govern_check_setting(const struct takt_daemon *daemon, const struct takt_config *config,
			      struct takt_err *err)
{
	int rc = strcmp(config->clock_policy, TAKT_CLOCK_POLICY_AUTO) == 0
			 ? 0
			 : check_policy(daemon, config->clock_policy, err);

	return rc < 0 ? takt_err_wrap(err, rc, "clock_policy") : 0;
}

int takt_govern_check_job(const struct takt_daemon *daemon, uid_t uid,
			  const struct takt_jobspec *spec, struct takt_err *err)
{
	struct takt_govern_terms terms;
	int rc = takt_govern_terms(daemon, uid, spec, &terms, err);

	return rc < 0 || !terms.governor || !spec->clock_policy[0]
		       ? rc
		       : takt_govern_try(daemon, &terms, spec, err);
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
	if (!(*ret_name)[0] && strcmp(config->clock_policy, TAKT_CLOCK_POLICY_AUTO) != 0)
		*ret_name = config->clock_policy;
}

int takt_govern_terms(const struct takt_daemon *daemon, uid_t uid, const struct takt_jobspec *spec,
		      struct takt_govern_terms *ret, struct takt_err *err)
{
	bool promised = spec->max_slowdown_permille || spec->slo_latency_us;
	const char *name = spec->clock_policy;
	int rc;

	*ret = (struct takt_govern_terms){
		.max_slowdown_permille = spec->max_slowdown_permille,
		.slo_latency_us = spec->slo_latency_us,
		.slo_permille = spec->slo_permille,
	};
	if (spec->gpus == 0 || takt_jobspec_sets_gpus(spec))
		return 0;
	take_defaults(daemon, uid, spec, ret, &name);
	if (!name[0] || (!spec->clock_policy[0] && promised && strcmp(name, "observe") == 0))
		name = by_promise(daemon, spec, ret);
	rc = choose(daemon, name, ret, err);
	if (rc < 0)
		return rc;
	if (ret->governor == &takt_governor_observe)
		ret->governor = NULL;
	if (!spec->clock_policy[0] && check(ret, NULL) < 0)
		ret->governor = NULL; /* a default that has nothing to hold on to */
	return check(ret, err);
}
