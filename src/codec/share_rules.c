/* SPDX-License-Identifier: Apache-2.0 */
/* The file of weights, quotas and limits, see the header. */
#include "codec/share_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/ini.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/timetext.h"

enum {
	MAX_WEIGHT = 1000000,
	MAX_GPUS = 1000000,
	MAX_QUEUED = 200000,
	MAX_SLOWDOWN = 500, /* permille */
	MAX_DAYS = 366,
};

struct reading {
	struct takt_share_rules rules;
	uint32_t room;
	uint64_t seen; /* keys of the section */
	bool half_life_seen;
};

static int refuse(const struct takt_ini_line *line, const char *accepted, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_USAGE, "%s: %s must be %s, not '%.60s'", line->where,
			    line->key, accepted, line->value);
}

static int read_number(const struct takt_ini_line *line, uint32_t min, uint32_t max, uint32_t *ret,
		       struct takt_err *err)
{
	unsigned long long number;
	char accepted[60];

	snprintf(accepted, sizeof(accepted), "a number from %u to %u", min, max);
	if (takt_parse_u64(line->value, min, max, &number) < 0)
		return refuse(line, accepted, err);
	*ret = (uint32_t)number;
	return 0;
}

/* "4", "0.5", "2.125". */
static int read_milli(const struct takt_ini_line *line, const char *accepted, uint32_t *ret_milli,
		      struct takt_err *err)
{
	const char *point = strchr(line->value, '.');
	size_t digits = point ? strlen(point + 1) : 0;
	unsigned long long whole, part = 0;
	char text[24];

	if (strlen(line->value) >= sizeof(text) || digits > 3 || (point && digits == 0))
		return refuse(line, accepted, err);
	takt_strcpy(text, sizeof(text), line->value);
	if (point)
		text[point - line->value] = '\0';
	if (takt_parse_u64(text, 0, MAX_GPUS, &whole) < 0 ||
	    (point && takt_parse_u64(point + 1, 0, 999, &part) < 0))
		return refuse(line, accepted, err);
	for (size_t i = digits; point && i < 3; i++)
		part *= 10;
	*ret_milli = (uint32_t)(whole * 1000 + part);
	return 0;
}

static int read_gpus(const struct takt_ini_line *line, uint32_t *ret_milli, struct takt_err *err)
{
	return read_milli(line, "GPUs such as 4 or 0.5, with at most three decimals", ret_milli,
			  err);
}

/* From a minute to a year. */
static int read_time_ms(const struct takt_ini_line *line, uint64_t *ret, struct takt_err *err)
{
	uint64_t ns = 0;

	if (takt_duration_parse(line->value, &ns) < 0 || ns < 60 * TAKT_NS_PER_S ||
	    ns > MAX_DAYS * UINT64_C(24) * 3600 * TAKT_NS_PER_S)
		return refuse(line, "a time such as 12h or 14d, from 1m to 366d", err);
	*ret = ns / TAKT_NS_PER_MS;
	return 0;
}

static int read_yes(const struct takt_ini_line *line, bool *ret, struct takt_err *err)
{
	if (strcmp(line->value, "yes") != 0 && strcmp(line->value, "no") != 0)
		return refuse(line, "yes or no", err);
	*ret = line->value[0] == 'y';
	return 0;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("._-/$@+", c);
}

/* A tenant's name has parts with '/' between; a user's has none. */
static bool is_name(const char *name, bool of_user)
{
	size_t len = strlen(name);

	if (len == 0 || len >= 64 || name[0] == '/' || name[len - 1] == '/' || strstr(name, "//") ||
	    (of_user && strchr(name, '/')))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(name[i]))
			return false;
	return true;
}

static int read_tenant(const struct takt_ini_line *line, char ret[64], struct takt_err *err)
{
	if (!is_name(line->value, false))
		return refuse(line, "the name of a tenant", err);
	takt_strcpy(ret, 64, line->value);
	return 0;
}

/* Names with commas between; blanks go. */
static int read_users(const struct takt_ini_line *line, char *ret, size_t size,
		      struct takt_err *err)
{
	size_t n = 0;

	for (const char *c = line->value; *c; c++) {
		if (*c == ' ' || *c == '\t')
			continue;
		if ((*c != ',' && !is_name_char(*c)) || n + 1 >= size)
			return refuse(line, "names of users with commas between", err);
		ret[n++] = *c;
	}
	ret[n] = '\0';
	return n ? 0 : refuse(line, "names of users with commas between", err);
}

#define RESERVE_KEYS "reserve_gpu_hours", "reserve_ahead", "reserve_longest", "reserve_approval"
static const char *const tenant_keys[] = {"weight",	  "quota",	"limit",
					  "borrow",	  "users",	"max_slowdown",
					  "clock_policy", RESERVE_KEYS, NULL};
static const char *const user_keys[] = {"weight",     "quota",	"limit",      "borrow",
					"max_queued", "tenant", RESERVE_KEYS, NULL};

static int not_known(const struct takt_ini_line *line, const char *const *keys,
		     struct takt_err *err)
{
	struct takt_str all = TAKT_STR(300);

	for (size_t i = 0; keys[i]; i++)
		takt_str_addf(&all, "%s%s", i ? ", " : "", keys[i]);
	takt_err_set(err, -TAKT_E_USAGE, "%s: there is no key '%.60s' in [%.80s]; there are %s",
		     line->where, line->key, line->section, takt_str_text(&all));
	takt_str_fini(&all);
	return -TAKT_E_USAGE;
}

static int read_slowdown(const struct takt_ini_line *line, struct takt_share_rule *rule,
			 struct takt_err *err)
{
	rule->has_max_slowdown = true;
	return takt_percent_parse(line->value, MAX_SLOWDOWN, &rule->max_slowdown_permille) == 0
		       ? 0
		       : refuse(line, "a percentage up to 50 such as 3%", err);
}

/* Which governors there are is for the daemon to say. */
static int read_policy(const struct takt_ini_line *line, char ret[TAKT_POLICY_TEXT],
		       struct takt_err *err)
{
	struct takt_policy_text policy;

	if (takt_policy_text_parse(line->value, &policy) < 0)
		return refuse(line, TAKT_POLICY_FORM, err);
	takt_strcpy(ret, TAKT_POLICY_TEXT, line->value);
	return 0;
}

static int set_reserve_key(struct takt_reserve_rule *rule, const struct takt_ini_line *line,
			   struct takt_err *err)
{
	if (strcmp(line->key, "reserve_gpu_hours") == 0) {
		rule->has_hours = true;
		return read_milli(line, "GPU hours such as 40 or 0.5, with at most three decimals",
				  &rule->week_milli_h, err);
	}
	if (strcmp(line->key, "reserve_ahead") == 0)
		return read_time_ms(line, &rule->ahead_ms, err);
	if (strcmp(line->key, "reserve_longest") == 0)
		return read_time_ms(line, &rule->longest_ms, err);
	rule->has_approval = true;
	return read_yes(line, &rule->needs_approval, err);
}

static int set_key(struct takt_share_rule *rule, const struct takt_ini_line *line,
		   struct takt_err *err)
{
	const char *key = line->key;

	if (strcmp(key, "weight") == 0)
		return read_number(line, 1, MAX_WEIGHT, &rule->weight, err);
	if (strcmp(key, "quota") == 0)
		return read_gpus(line, &rule->quota_milli, err);
	if (strcmp(key, "limit") == 0)
		return read_gpus(line, &rule->limit_milli, err);
	if (strcmp(key, "borrow") == 0)
		return read_yes(line, &rule->may_borrow, err);
	if (strcmp(key, "max_queued") == 0)
		return read_number(line, 1, MAX_QUEUED, &rule->max_queued, err);
	if (strcmp(key, "tenant") == 0)
		return read_tenant(line, rule->tenant, err);
	if (strcmp(key, "max_slowdown") == 0)
		return read_slowdown(line, rule, err);
	if (strcmp(key, "clock_policy") == 0)
		return read_policy(line, rule->clock_policy, err);
	if (strncmp(key, "reserve_", strlen("reserve_")) == 0)
		return set_reserve_key(&rule->reserve, line, err);
	return read_users(line, rule->users, sizeof(rule->users), err);
}

/* Its place among the keys of such a section; negative when it is none. */
static int place_of(const char *const *keys, const char *key)
{
	for (int i = 0; keys[i]; i++)
		if (strcmp(keys[i], key) == 0)
			return i;
	return -1;
}

static int take_key(struct reading *reading, const struct takt_ini_line *line, struct takt_err *err)
{
	struct takt_share_rule *rule = &reading->rules.list[reading->rules.count - 1];
	const char *const *keys = rule->of_user ? user_keys : tenant_keys;
	int place = place_of(keys, line->key);

	if (place < 0)
		return not_known(line, keys, err);
	if (reading->seen & UINT64_C(1) << place)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: %s stands twice", line->where,
				    line->key);
	reading->seen |= UINT64_C(1) << place;
	return set_key(rule, line, err);
}

static int take_global(struct reading *reading, const struct takt_ini_line *line,
		       struct takt_err *err)
{
	uint64_t ns = 0;

	if (strcmp(line->key, "half_life") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: there is no key '%.60s' before the first section; there "
				    "is half_life",
				    line->where, line->key);
	if (reading->half_life_seen)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: half_life stands twice", line->where);
	reading->half_life_seen = true;
	if (takt_duration_parse(line->value, &ns) < 0 || ns < 60 * TAKT_NS_PER_S ||
	    ns > 3650ull * 24 * 3600 * TAKT_NS_PER_S)
		return refuse(line, "a time such as 7d, from 1m to 3650d", err);
	reading->rules.half_life_ns = ns;
	return 0;
}

static const struct takt_share_rule *find(const struct takt_share_rules *rules, bool of_user,
					  const char *name)
{
	for (uint32_t i = 0; i < rules->count; i++)
		if (rules->list[i].of_user == of_user && strcmp(rules->list[i].name, name) == 0)
			return &rules->list[i];
	return NULL;
}

static int grow(struct reading *reading, struct takt_err *err)
{
	uint32_t room = reading->room ? reading->room * 2 : 16;
	struct takt_share_rule *list;

	if (reading->rules.count < reading->room)
		return 0;
	list = takt_reallocarray(reading->rules.list, room, sizeof(*list));
	if (!list)
		return takt_err_set(err, -ENOMEM, "rules of tenants");
	reading->rules.list = list;
	reading->room = room;
	return 0;
}

/* "tenant NAME" or "user NAME". */
static int take_section(struct reading *reading, const struct takt_ini_line *line,
			struct takt_err *err)
{
	bool of_user = strncmp(line->section, "user ", 5) == 0;
	bool of_tenant = strncmp(line->section, "tenant ", 7) == 0;
	const char *name = line->section + (of_user ? 5 : 7);
	struct takt_share_rule rule = {.of_user = of_user, .weight = 1, .may_borrow = true};
	int rc;

	if (of_user || of_tenant)
		name += strspn(name, " \t");
	if ((!of_user && !of_tenant) ||
	    !(is_name(name, of_user) || (of_user && !strcmp(name, "*"))))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: a section is '[tenant NAME]', '[user NAME]' or '[user "
				    "*]', not '[%.80s]'",
				    line->where, line->section);
	if (find(&reading->rules, of_user, name))
		return takt_err_set(err, -TAKT_E_USAGE, "%s: [%.80s] stands twice", line->where,
				    line->section);
	if (reading->rules.count == TAKT_SHARE_MAX_RULES)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: over %d sections", line->where,
				    TAKT_SHARE_MAX_RULES);
	rc = grow(reading, err);
	if (rc < 0)
		return rc;
	takt_strcpy(rule.name, sizeof(rule.name), name);
	reading->rules.list[reading->rules.count++] = rule;
	reading->seen = 0;
	return 0;
}

static int take_line(void *ctx, const struct takt_ini_line *line, struct takt_err *err)
{
	struct reading *reading = ctx;

	if (!line->key)
		return take_section(reading, line, err);
	return reading->rules.count ? take_key(reading, line, err)
				    : take_global(reading, line, err);
}

/* What one rule says of another: the tenant of a user is there and admits him. */
static int check_one(const struct takt_share_rules *rules, const struct takt_share_rule *rule,
		     const char *name, struct takt_err *err)
{
	const struct takt_share_rule *tenant =
		rule->tenant[0] ? find(rules, false, rule->tenant) : NULL;

	if (rule->limit_milli && rule->quota_milli > rule->limit_milli)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: the quota of %s is above its limit",
				    name, rule->name);
	if (!rule->tenant[0])
		return 0;
	if (!tenant)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: user %s counts for tenant '%s', which has no section",
				    name, rule->name, rule->tenant);
	if (strcmp(rule->name, "*") != 0 && !takt_share_rule_admits(tenant, rule->name, UINT32_MAX))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "%s: user %s counts for tenant '%s', whose users do not name "
				    "him",
				    name, rule->name, rule->tenant);
	return 0;
}

int takt_share_rules_parse(const char *text, size_t len, const char *name,
			   struct takt_share_rules *ret, struct takt_err *err)
{
	struct reading reading = {.room = 0};
	int rc = takt_ini_each(text, len, name, take_line, &reading, err);

	for (uint32_t i = 0; rc == 0 && i < reading.rules.count; i++)
		rc = check_one(&reading.rules, &reading.rules.list[i], name, err);
	if (rc < 0) {
		takt_share_rules_fini(&reading.rules);
		return rc;
	}
	*ret = reading.rules;
	return 0;
}

int takt_share_rules_load(const char *path, struct takt_share_rules *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len = 0;
	int rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, TAKT_SHARE_MAX_FILE, &text, &len,
				err);

	return rc < 0 ? rc : takt_share_rules_parse(text, len, path, ret, err);
}

void takt_share_rules_fini(struct takt_share_rules *rules)
{
	takt_free(rules->list);
	*rules = (struct takt_share_rules){0};
}

const struct takt_share_rule *takt_share_rule_tenant(const struct takt_share_rules *rules,
						     const char *name)
{
	return find(rules, false, name);
}

const struct takt_share_rule *takt_share_rule_user(const struct takt_share_rules *rules,
						   const char *user, uint32_t uid)
{
	const struct takt_share_rule *rule = user[0] ? find(rules, true, user) : NULL;
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	if (!rule)
		rule = find(rules, true, number);
	return rule ? rule : find(rules, true, "*");
}

static bool list_has(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at && len; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, len) == 0 && (at[len] == ',' || !at[len]))
			return true;
	}
	return false;
}

bool takt_share_rule_admits(const struct takt_share_rule *tenant, const char *user, uint32_t uid)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", uid);
	return !tenant->users[0] || list_has(tenant->users, user) ||
	       list_has(tenant->users, number);
}
