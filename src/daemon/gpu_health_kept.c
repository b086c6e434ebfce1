/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How GPUs changed, kept in the store by UUID, so that a daemon which is started anew still tells
 * what happened before it. It begins with every GPU healthy: what still stands is found again, and
 * is a change of its own.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/gpu_health_impl.h"
#include "daemon/log.h"

static const char prefix[] = "health/";

enum {
	KEY_MAX = sizeof(prefix) + sizeof(((struct takt_gpu_facts *)0)->uuid)
};

static void push(struct takt_health_past *past, const struct takt_health_change *change)
{
	if (past->change_count < TAKT_HEALTH_MAX_CHANGES)
		past->change_count++;
	memmove(&past->changes[1], &past->changes[0],
		(past->change_count - 1) * sizeof(past->changes[0]));
	past->changes[0] = *change;
}

static void take_one(struct takt_health_past *past, const struct takt_rules_change *from,
		     const struct takt_health_clocks *clocks)
{
	struct takt_health_change to = {.at_ms = takt_health_wall_ms(clocks, from->at)};

	takt_strcpy(to.from, sizeof(to.from), takt_health_name(from->from));
	takt_strcpy(to.to, sizeof(to.to), takt_health_name(from->to));
	if (from->to != TAKT_HEALTH_HEALTHY)
		takt_strcpy(to.why, sizeof(to.why), takt_finding_name(from->why));
	push(past, &to);
}

void takt_health_take(struct takt_health_one *one, const struct takt_health_clocks *clocks)
{
	uint64_t changes = one->rules.changes;

	if (changes - one->changes_taken > TAKT_RULES_HISTORY)
		one->changes_taken = changes - TAKT_RULES_HISTORY;
	for (; one->changes_taken < changes; one->changes_taken++)
		take_one(&one->past, &one->rules.history[one->changes_taken % TAKT_RULES_HISTORY],
			 clocks);
}

void takt_health_keep(struct takt_gpu_health *health, uint32_t gpu)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_STORE_MAX_KEPT);
	const struct takt_daemon *daemon = health->daemon;
	struct takt_health_one *one = &health->gpu[gpu];
	char key[KEY_MAX];

	if (one->changes_kept == one->changes_taken)
		return;
	snprintf(key, sizeof(key), "%s%s", prefix, takt_machine_facts(daemon->machine, gpu)->uuid);
	if (takt_health_past_to_json(&one->past, &text) == 0 &&
	    takt_store_keep(daemon->store, key, takt_str_text(&text), 0, NULL) > 0)
		one->changes_kept = one->changes_taken;
}

/* That of a GPU which is not here now stays for when it is back. */
static int load_one(void *ctx, const char *key, const char *text)
{
	struct takt_gpu_health *health = ctx;
	const char *uuid = key + strlen(prefix);
	struct takt_err err;

	for (uint32_t gpu = 0; gpu < health->count; gpu++)
		if (strcmp(takt_machine_facts(health->daemon->machine, gpu)->uuid, uuid) == 0 &&
		    takt_health_past_from_json(text, strlen(text), &health->gpu[gpu].past, &err) <
			    0)
			takt_log(TAKT_LOG_WARNING, "what happened to GPU %" PRIu32 " before: %s",
				 gpu, err.msg);
	return 0;
}

int takt_health_load(struct takt_gpu_health *health, struct takt_err *err)
{
	return takt_store_each_kept(health->daemon->store, prefix, load_one, health, err);
}
