/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose share a job counts against. The tenants of the rules are the scheduler's tenants, each
 * under its nearest ancestor that has rules; below them, and below nobody, every user who hands in
 * a job is one more, so that users of one tenant share it among themselves. Where there are no
 * rules and the order does not ask, there are no tenants.
 *
 * What tenants have used is kept in the store, by name, and read when the tenant is first heard of.
 * A live job keeps its tenant when rules change; what is gone from the rules has the terms of one
 * that never stood there.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

enum {
	KEY = 96,
	SAVE_AGAIN_S = 60,
};
static const char prefix[] = "usage/";

bool takt_queue_has_tenants(const struct takt_queue *queue)
{
	return queue->rules.count > 0 ||
	       queue->setup.sched.order->reads & (TAKT_ORDER_TENANT_RANK | TAKT_ORDER_TENANT_AHEAD);
}

static void name_of(const struct takt_queue *queue, uid_t uid, char ret[64])
{
	ret[0] = '\0';
	if (queue->config.hooks->user_name)
		queue->config.hooks->user_name(queue->config.hooks_ctx, uid, ret);
}

static const struct takt_share_rule *user_rule(const struct takt_queue *queue, uid_t uid)
{
	char name[64];

	name_of(queue, uid, name);
	return takt_share_rule_user(&queue->rules, name, uid);
}

/* Weight 1 and free to borrow where no rule says otherwise. */
static struct takt_tenant terms_of(const struct takt_queue *queue,
				   const struct takt_queue_tenant *tenant, uint32_t id)
{
	const struct takt_share_rule *rule =
		tenant->of_user ? user_rule(queue, tenant->uid)
				: takt_share_rule_tenant(&queue->rules, tenant->name);

	return (struct takt_tenant){
		.id = id,
		.parent = tenant->parent,
		.weight = rule ? rule->weight : 1,
		.quota_milli = rule ? rule->quota_milli : 0,
		.limit_milli = rule ? rule->limit_milli : 0,
		.may_borrow = rule ? rule->may_borrow : true,
	};
}

static int tell_terms(struct takt_queue *queue, const struct takt_queue_tenant *tenant, uint32_t id,
		      struct takt_err *err)
{
	struct takt_tenant terms = terms_of(queue, tenant, id);
	struct takt_sched_event event = {.kind = TAKT_SCHED_TENANT, .tenant = &terms};

	queue->dirty = true;
	return takt_sched_update(queue->sched, &event, err);
}

/* "lab/vision", "lab/vision:1000", ":1000". */
static void key_of(const struct takt_queue_tenant *tenant, char ret[KEY])
{
	if (tenant->of_user)
		snprintf(ret, KEY, "%s:%u", tenant->name, tenant->uid);
	else
		snprintf(ret, KEY, "%s", tenant->name);
}

struct wanted {
	const char *key;
	uint64_t usage;
	int64_t at_ns;
};

static int read_usage(void *ctx, const char *key, const char *text)
{
	struct wanted *wanted = ctx;

	if (strcmp(key, wanted->key) == 0 &&
	    sscanf(text, "%" SCNu64 " %" SCNd64, &wanted->usage, &wanted->at_ns) != 2)
		wanted->usage = 0;
	return 0;
}

/* What it had used when that was last written down. */
static void restore_usage(struct takt_queue *queue, const char *key, uint32_t id)
{
	char stored[KEY + sizeof(prefix)];
	struct wanted wanted = {.key = stored};
	struct takt_sched_event event = {.kind = TAKT_SCHED_TENANT_USAGE, .tenant_id = id};

	snprintf(stored, sizeof(stored), "%s%s", prefix, key);
	if (takt_store_each_kept(queue->config.store, stored, read_usage, &wanted, NULL) < 0 ||
	    wanted.usage == 0)
		return;
	event.usage = wanted.usage;
	event.at_ns = takt_queue_sched_ns(queue, (struct takt_wall){wanted.at_ns});
	(void)takt_sched_update(queue->sched, &event, NULL);
}

static int add(struct takt_queue *queue, const struct takt_queue_tenant *tenant, const char *key,
	       uint32_t *ret_id, struct takt_err *err)
{
	uint32_t id = (uint32_t)queue->tenants.len + 1;
	int rc = takt_map_str_put(&queue->tenant_ids, key, (union takt_map_value){.u64 = id});

	if (rc == 0)
		rc = takt_vec_push(&queue->tenants, *tenant);
	if (rc < 0) {
		takt_map_str_remove(&queue->tenant_ids, key);
		return takt_err_set(err, rc, "tenant '%s'", key);
	}
	rc = tell_terms(queue, tenant, id, err);
	if (rc < 0) {
		takt_map_str_remove(&queue->tenant_ids, key);
		queue->tenants.len--;
		return rc;
	}
	restore_usage(queue, key, id);
	*ret_id = id;
	return 0;
}

static int ensure(struct takt_queue *queue, const struct takt_queue_tenant *tenant,
		  uint32_t *ret_id, struct takt_err *err)
{
	char key[KEY];
	const union takt_map_value *known;

	key_of(tenant, key);
	known = takt_map_str_get(&queue->tenant_ids, key);
	if (!known)
		return add(queue, tenant, key, ret_id, err);
	*ret_id = (uint32_t)known->u64;
	return 0;
}

/* A tenant and those above it that have rules; the last is in *ret_id. */
static int ensure_path(struct takt_queue *queue, const char *name, uint32_t *ret_id,
		       struct takt_err *err)
{
	uint32_t parent = TAKT_TENANT_ROOT;
	size_t len = 0;
	int rc = 0;

	while (rc == 0 && name[len]) {
		struct takt_queue_tenant tenant = {.parent = parent};

		len += 1 + strcspn(name + len + 1, "/");
		snprintf(tenant.name, sizeof(tenant.name), "%.*s", (int)len, name);
		if (takt_share_rule_tenant(&queue->rules, tenant.name))
			rc = ensure(queue, &tenant, &parent, err);
	}
	*ret_id = parent;
	return rc;
}

static int no_such_tenant(const char *name, int rc, struct takt_err *err)
{
	return takt_err_set(err, rc,
			    "there is no tenant '%s'; the administrator's file of tenants says who "
			    "there is",
			    name);
}

const struct takt_share_rules *takt_queue_rules(const struct takt_queue *queue)
{
	return &queue->rules;
}

bool takt_queue_knows_tenant(const struct takt_queue *queue, const char *name)
{
	return takt_share_rule_tenant(&queue->rules, name) != NULL;
}

int takt_queue_tenant_id(struct takt_queue *queue, const char *name, uint32_t *ret,
			 struct takt_err *err)
{
	if (!takt_queue_knows_tenant(queue, name))
		return no_such_tenant(name, -TAKT_E_NOT_FOUND, err);
	return ensure_path(queue, name, ret, err);
}

/* Which tenant it is; "" = none. */
static int choose(const struct takt_queue *queue, uid_t uid, const char *asked, const char **ret,
		  struct takt_err *err)
{
	const struct takt_share_rule *user = user_rule(queue, uid);
	const char *name = asked[0] ? asked : user ? user->tenant : "";
	const struct takt_share_rule *tenant = takt_share_rule_tenant(&queue->rules, name);
	char user_name[64];

	*ret = "";
	if (!name[0])
		return 0;
	if (!tenant)
		return no_such_tenant(name, -TAKT_E_IMPOSSIBLE, err);
	name_of(queue, uid, user_name);
	if (!takt_share_rule_admits(tenant, user_name, uid))
		return takt_err_set(err, -EPERM, "tenant '%s' is not yours to use", name);
	*ret = tenant->name;
	return 0;
}

const struct takt_share_rule *takt_queue_tenant_rule(const struct takt_queue *queue, uid_t uid,
						     const char *asked)
{
	const char *name = "";

	return choose(queue, uid, asked, &name, NULL) == 0 && name[0]
		       ? takt_share_rule_tenant(&queue->rules, name)
		       : NULL;
}

const struct takt_share_rule *takt_queue_tenant_above(const struct takt_queue *queue,
						      const struct takt_share_rule *rule)
{
	const struct takt_share_rule *above = NULL;
	char name[sizeof(rule->name)];
	char *slash;

	takt_strcpy(name, sizeof(name), rule->name);
	while (!above && (slash = strrchr(name, '/'))) {
		*slash = '\0';
		above = takt_share_rule_tenant(&queue->rules, name);
	}
	return above;
}

int takt_queue_find_tenant(struct takt_queue *queue, struct takt_queue_job *job, bool strict,
			   struct takt_err *err)
{
	struct takt_queue_tenant leaf = {.of_user = true, .uid = job->row.uid};
	const char *name = "";
	int rc;

	if (!takt_queue_has_tenants(queue) && !job->spec.tenant[0])
		return 0;
	rc = choose(queue, job->row.uid, job->spec.tenant, &name, strict ? err : NULL);
	if (rc < 0 && strict)
		return rc;
	if (!takt_queue_has_tenants(queue))
		return 0;
	rc = ensure_path(queue, name, &leaf.parent, err);
	if (rc < 0)
		return rc;
	snprintf(leaf.name, sizeof(leaf.name), "%s", name);
	return ensure(queue, &leaf, &job->tenant_id, err);
}

int takt_queue_check_queued(const struct takt_queue *queue, uid_t uid, uint32_t count,
			    struct takt_err *err)
{
	const struct takt_share_rule *rule = queue->rules.count ? user_rule(queue, uid) : NULL;
	uint32_t waiting = 0;

	if (!rule || rule->max_queued == 0)
		return 0;
	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		const struct takt_queue_job *job = entry->value.ptr;

		waiting += job->row.uid == uid && job->phase <= TAKT_PHASE_WAITING;
	}
	for (const struct takt_queue_batch *batch = queue->batches; batch; batch = batch->next)
		waiting += batch->entry.uid == uid ? batch->to_come : 0;
	if (waiting + count <= rule->max_queued)
		return 0;
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "you have %u jobs waiting%s, the limit is %u (max_queued of "
			    "tenants_file)",
			    waiting, count > 1 ? " and hand in more than may wait beside them" : "",
			    rule->max_queued);
}

int takt_queue_set_rules(struct takt_queue *queue, struct takt_share_rules *rules,
			 struct takt_err *err)
{
	struct takt_sched_settings settings = queue->config.settings;
	int rc;

	settings.half_life_ns = rules->half_life_ns;
	rc = takt_queue_change_settings(queue, &settings, err);
	if (rc < 0)
		return rc;
	takt_share_rules_fini(&queue->rules);
	queue->rules = *rules;
	*rules = (struct takt_share_rules){.count = 0};
	for (uint32_t i = 0; i < queue->tenants.len; i++)
		(void)tell_terms(queue, &queue->tenants.at[i], i + 1, NULL);
	return 0;
}

static void save_one(struct takt_queue *queue, struct takt_queue_tenant *tenant, uint32_t id)
{
	char key[KEY], stored[KEY + sizeof(prefix)], text[64];
	uint64_t usage = takt_tenants_usage(takt_sched_tenants(queue->sched), id,
					    takt_queue_sched_ns(queue, queue->wall));

	if (usage == tenant->saved)
		return;
	key_of(tenant, key);
	snprintf(stored, sizeof(stored), "%s%s", prefix, key);
	snprintf(text, sizeof(text), "%" PRIu64 " %" PRId64, usage, queue->wall.ns);
	if (takt_store_keep(queue->config.store, stored, text, TICKET_USAGE, NULL) >= 0)
		tenant->saved = usage;
}

void takt_queue_save_usage(struct takt_queue *queue)
{
	for (uint32_t i = 0; i < queue->tenants.len; i++)
		save_one(queue, &queue->tenants.at[i], i + 1);
	queue->next_usage_ns =
		queue->tenants.len ? queue->now.ns + SAVE_AGAIN_S * TAKT_NS_PER_S : 0;
}

bool takt_queue_share(const struct takt_queue *queue, const struct takt_queue_job *job,
		      struct takt_queue_share *ret)
{
	const struct takt_tenants *tenants = takt_sched_tenants(queue->sched);
	uint64_t now_ns = takt_queue_sched_ns(queue, queue->wall), usage;

	if (!job->tenant_id)
		return false;
	usage = takt_tenants_usage(tenants, job->tenant_id, now_ns);
	*ret = (struct takt_queue_share){
		.place = 1,
		.used_gpu_s = usage / 1000 / 1000,
		.has_milli = takt_tenants_has_milli(tenants, job->tenant_id),
	};
	for (uint32_t i = 0; i < queue->tenants.len; i++) {
		bool user = queue->tenants.at[i].of_user;

		ret->of += user;
		ret->place += user && takt_tenants_rank(tenants, i + 1) <
					      takt_tenants_rank(tenants, job->tenant_id);
	}
	return true;
}
