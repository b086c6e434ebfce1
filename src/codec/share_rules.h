/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have how much: weights, quotas and limits of tenants and users, and the file they stand
 * in. docs/administration.md has its keys and an example.
 */
#ifndef TAKT_CODEC_SHARE_RULES_H
#define TAKT_CODEC_SHARE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/policy_text.h"

enum {
	TAKT_SHARE_MAX_RULES = 1000,
	TAKT_SHARE_MAX_FILE = 256 * 1024,
};

/* What a section says of bookings: GPUs that users reserve for themselves (codec/booking.h). */
struct takt_reserve_rule {
	bool has_hours, has_approval;
	uint32_t week_milli_h;	       /* GPU hours in any seven days, in thousandths; 0 = none */
	uint64_t ahead_ms, longest_ms; /* 0 = not said */
	bool needs_approval;
};

struct takt_share_rule {
	bool of_user;
	char name[64];
	uint32_t weight;
	uint32_t quota_milli, limit_milli; /* GPUs; limit 0 = none */
	bool may_borrow;
	uint32_t max_queued; /* users; 0 = no limit */
	char tenant[64];     /* users; "" = none */
	char users[512];     /* tenants: commas between, no blanks; "" = everybody */
	struct takt_reserve_rule reserve;
	/* Tenants, of jobs that do not say it themselves. */
	bool has_max_slowdown;
	uint32_t max_slowdown_permille;	     /* 0 = no promise */
	char clock_policy[TAKT_POLICY_TEXT]; /* "" = not said */
};

struct takt_share_rules {
	uint64_t half_life_ns; /* 0 = not said */
	uint32_t count;
	struct takt_share_rule *list; /* owned */
};

/* The whole text or nothing. `name` is for messages, which name line, key and what would be
 * accepted; -TAKT_E_USAGE. *ret is overwritten on success and the caller's to
 * takt_share_rules_fini. */
int takt_share_rules_parse(const char *text, size_t len, const char *name,
			   struct takt_share_rules *ret, struct takt_err *err);
/* A file, for a daemon that reads it and for whoever checks it first. -ENOENT when there is none.
 */
int takt_share_rules_load(const char *path, struct takt_share_rules *ret, struct takt_err *err);
void takt_share_rules_fini(struct takt_share_rules *rules);

/* NULL when there is none. */
const struct takt_share_rule *takt_share_rule_tenant(const struct takt_share_rules *rules,
						     const char *name);
/* That of the name, or of the number, or of everybody; NULL when there is none. */
const struct takt_share_rule *takt_share_rule_user(const struct takt_share_rules *rules,
						   const char *user, uint32_t uid);
bool takt_share_rule_admits(const struct takt_share_rule *tenant, const char *user, uint32_t uid);

#endif
