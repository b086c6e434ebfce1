/* SPDX-License-Identifier: Apache-2.0 */
/* Names of queue policies, see the header. */
#include "sim/queue_policy.h"

#include <stdio.h>
#include <string.h>

#include "base/timetypes.h"
#include "objects/object_file.h"
#include "sched/compare/compare_order.h"

enum {
	GUARD_S = 14 * 86400,
	HOLD_PERMILLE = 80,
	KEEP_DEPTH = 32,
};

struct preset {
	const char *name;
	const struct takt_order *order;
	enum takt_backfill backfill;
	bool preempt, perfect;
	const char *summary;
	struct takt_order_config config;
	uint32_t keep_depth; /* without preemption: conservative, so many reservations; 0 = EASY */
};

static const struct preset presets[] = {
	{"fifo", &takt_order_fifo, TAKT_BACKFILL_NONE, false, false, "first come, first served"},
	{"easy", &takt_order_fifo, TAKT_BACKFILL_EASY, false, false,
	 "fifo, and who does not delay the first that waits may overtake (EASY)"},
	{"conservative", &takt_order_fifo, TAKT_BACKFILL_CONSERVATIVE, false, false,
	 "fifo, and who delays none of the first that wait may overtake"},
	{"las", &takt_order_las, TAKT_BACKFILL_GREEDY, true, false,
	 "least attained GPU time first, in queues; whatever fits runs (Tiresias 2D-LAS)"},
	{"takt",
	 &takt_order_takt,
	 TAKT_BACKFILL_GREEDY,
	 true,
	 false,
	 "most jobs done for the GPU time, learned from earlier jobs (Gittins index)",
	 {.guard_ns = GUARD_S * TAKT_NS_PER_S, .hold_permille = HOLD_PERMILLE},
	 KEEP_DEPTH},
	{"srpt", &takt_compare_srpt, TAKT_BACKFILL_GREEDY, true, true,
	 "shortest remaining GPU time first, knowing all run times beforehand: no real policy"},
};

static bool is_preset(const struct takt_order *order)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(presets); i++)
		if (strcmp(presets[i].name, order->name) == 0)
			return true;
	return false;
}

void takt_queue_policies_text(struct takt_str *out)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(presets); i++)
		takt_str_addf(out, "  %-16s %s\n", presets[i].name, presets[i].summary);
	for (size_t i = 0; takt_order_all[i]; i++)
		if (!is_preset(takt_order_all[i]))
			takt_str_addf(out, "  %-16s %s\n", takt_order_all[i]->name,
				      takt_order_all[i]->summary);
}

static int unknown(const char *name, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str all = TAKT_STR(4096);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(presets); i++)
		takt_str_addf(&all, "%s%s", i ? ", " : "", presets[i].name);
	for (size_t i = 0; takt_order_all[i]; i++)
		if (!is_preset(takt_order_all[i]))
			takt_str_addf(&all, ", %s", takt_order_all[i]->name);
	return takt_err_set(err, -TAKT_E_USAGE, "there is no queue policy '%.40s'; there are %s",
			    name, takt_str_text(&all));
}

static int open_object(const char *path, struct takt_queue_policy *policy, struct takt_err *err)
{
	int rc = takt_policy_object_open(path, &policy->object, err);

	if (rc < 0)
		return rc;
	policy->order = takt_policy_object_order(policy->object);
	policy->config.own = takt_policy_object_order_own(policy->object);
	if (!policy->order)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "'%s' has no queue policy", path);
	policy->backfill = TAKT_BACKFILL_EASY;
	policy->preempt = policy->order->preempts;
	return 0;
}

static int find(const char *name, struct takt_queue_policy *policy, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(presets); i++) {
		if (strcmp(presets[i].name, name) != 0)
			continue;
		policy->order = presets[i].order;
		policy->backfill = presets[i].backfill;
		policy->preempt = presets[i].preempt;
		policy->perfect = presets[i].perfect;
		policy->config = presets[i].config;
		policy->reserve_depth = presets[i].keep_depth;
		return 0;
	}
	if (takt_object_file_is(name))
		return open_object(name, policy, err);
	policy->order = takt_order_find(name);
	if (!policy->order)
		return unknown(name, err);
	policy->backfill = TAKT_BACKFILL_EASY;
	policy->preempt = policy->order->preempts;
	return 0;
}

static int modify(const char *word, struct takt_queue_policy *policy, struct takt_err *err)
{
	for (int i = 0; takt_backfill_names[i]; i++) {
		if (strcmp(takt_backfill_names[i], word) != 0)
			continue;
		policy->backfill = (enum takt_backfill)i;
		return 0;
	}
	if (strcmp(word, "preempt") != 0 && strcmp(word, "keep") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'+%.30s' of queue policy '%s' is none of +none, +easy, "
				    "+conservative, +preempt, +keep",
				    word, policy->name);
	policy->preempt = word[0] == 'p';
	/* Where nothing is pushed out, whatever fits would starve the wide ones. */
	if (!policy->preempt && policy->backfill == TAKT_BACKFILL_GREEDY)
		policy->backfill =
			policy->reserve_depth ? TAKT_BACKFILL_CONSERVATIVE : TAKT_BACKFILL_EASY;
	return 0;
}

/* The name is that of the order, or of the preset, with what was put behind it. */
static void name_policy(struct takt_queue_policy *policy, const char *base, const char *words)
{
	snprintf(policy->name, sizeof(policy->name), "%.31s%s%.31s",
		 policy->object ? policy->order->name : base, words ? "+" : "", words ? words : "");
}

static int parse(char *text, struct takt_queue_policy *policy, struct takt_err *err)
{
	char *plus = strrchr(text, '/'), *word;
	int rc;

	plus = strchr(plus ? plus : text, '+');
	if (plus)
		*plus++ = '\0';
	rc = find(text, policy, err);
	if (rc == 0)
		name_policy(policy, text, plus);
	while (rc == 0 && plus) {
		word = plus;
		plus = strchr(word, '+');
		if (plus)
			*plus++ = '\0';
		rc = modify(word, policy, err);
	}
	return rc < 0 ? rc : takt_order_config_check(&policy->config, err);
}

static int check_twice(const struct takt_queue_policies *policies,
		       const struct takt_queue_policy *policy, struct takt_err *err)
{
	TAKT_VEC_EACH (known, &policies->at)
		if (strcmp(known->name, policy->name) == 0)
			return takt_err_set(err, -TAKT_E_USAGE, "queue policy '%s' is there twice",
					    policy->name);
	return 0;
}

static int add_one(struct takt_queue_policies *policies, const char *text, size_t len,
		   struct takt_err *err)
{
	struct takt_queue_policy policy = {.object = NULL};
	char name[TAKT_SIM_POLICY_PATH];
	int rc;

	if (len == 0 || len >= sizeof(name))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "a list of queue policies reads fifo,easy; '%.40s' begins with "
				    "none",
				    text);
	memcpy(name, text, len);
	name[len] = '\0';
	rc = parse(name, &policy, err);
	if (rc == 0)
		rc = check_twice(policies, &policy, err);
	if (rc == 0 && takt_vec_push(&policies->at, policy) < 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "more than %d queue policies",
				  TAKT_SIM_MAX_POLICIES);
	if (rc < 0)
		takt_policy_object_close(policy.object);
	return rc;
}

int takt_queue_policies(const char *list, struct takt_queue_policies *ret, struct takt_err *err)
{
	struct takt_queue_policies policies = {.at = TAKT_VEC_INIT(TAKT_SIM_MAX_POLICIES)};
	int rc = 0;

	do {
		size_t len = strcspn(list, ",");

		rc = add_one(&policies, list, len, err);
		list += len;
	} while (rc == 0 && *list++ == ',');
	if (rc < 0)
		takt_queue_policies_fini(&policies);
	else
		*ret = policies;
	return rc;
}

void takt_queue_policies_fini(struct takt_queue_policies *policies)
{
	TAKT_VEC_EACH (policy, &policies->at)
		takt_policy_object_close(policy->object);
	takt_vec_fini(&policies->at);
}
