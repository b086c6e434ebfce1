/* SPDX-License-Identifier: Apache-2.0 */
/* See clock_policy.h. */
#include "codec/clock_policy.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/toml.h"
#include "codec/view_tables.h"

enum {
	MAX_MHZ = 20000,
	MAX_W = 10000,
};

#define DECLARED struct takt_declared
static const struct takt_field declared_fields[] = {
	U32(DECLARED, index, .required = true), U32(DECLARED, sm_min_mhz, NONE(0)),
	U32(DECLARED, sm_max_mhz, NONE(0)),	U32(DECLARED, power_limit_mw, NONE(0)),
	U32(DECLARED, cap_power_mw, NONE(0)),	TEXT(DECLARED, mig),
};
static const struct takt_shape declared_shape =
	TAKT_SHAPE(DECLARED, "what a GPU is declared to be", declared_fields);

#define DECLARATION struct takt_declaration
static const struct takt_field declaration_fields[] = {
	{.name = "gpus",
	 .kind = TAKT_FIELD_OBJECT,
	 .offset = offsetof(DECLARATION, gpu),
	 .many = TAKT_MANY_ARRAY,
	 .required = true,
	 .counts = true,
	 .size = sizeof(DECLARED),
	 COUNT(DECLARATION, count),
	 .room = TAKT_DECLARED_MAX,
	 .shape = &declared_shape},
};
static const struct takt_shape declaration_shape =
	TAKT_SHAPE(DECLARATION, "the body", declaration_fields);

#define CAP struct takt_clock_cap
static const struct takt_field cap_fields[] = {
	{.name = "gpus",
	 .kind = TAKT_FIELD_MASK,
	 .offset = offsetof(CAP, gpu_mask),
	 .required = true},
	U32(CAP, power_limit_mw, .required = true),
	TEXT(CAP, reason),
};
static const struct takt_shape cap_shape = TAKT_SHAPE(CAP, "the body", cap_fields);

static int decode(const struct takt_shape *shape, const char *text, size_t len, void *ret,
		  struct takt_err *err)
{
	int rc = takt_shape_decode(shape, text, len, TAKT_CLOCK_POLICY_BYTES, TAKT_SHAPE_STRICT,
				   ret, err);

	if (rc != -TAKT_E_CORRUPT)
		return rc;
	if (err)
		err->rc = -TAKT_E_USAGE;
	return -TAKT_E_USAGE;
}

int takt_declaration_to_json(const struct takt_declaration *declaration, struct takt_str *out)
{
	return takt_shape_encode(&declaration_shape, declaration, out);
}

int takt_declaration_from_json(const char *text, size_t len, struct takt_declaration *ret,
			       struct takt_err *err)
{
	struct takt_declaration made = {0};
	int rc = decode(&declaration_shape, text, len, &made, err);

	if (rc == 0)
		*ret = made;
	return rc;
}

int takt_clock_cap_to_json(const struct takt_clock_cap *cap, struct takt_str *out)
{
	return takt_shape_encode(&cap_shape, cap, out);
}

int takt_clock_cap_from_json(const char *text, size_t len, struct takt_clock_cap *ret,
			     struct takt_err *err)
{
	struct takt_clock_cap made = {0};
	int rc = decode(&cap_shape, text, len, &made, err);

	if (rc == 0 && made.gpu_mask == 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "field 'gpus' must name at least one GPU");
	if (rc == 0)
		*ret = made;
	return rc;
}

/* The line at or after `from` that begins with the key; `from` where none does. */
static unsigned line_of(const char *text, unsigned from, const char *key)
{
	size_t len = strlen(key);
	const char *at = text;

	for (unsigned line = 1; at; line++) {
		const char *word = at + strspn(at, " \t");

		if (line >= from && strncmp(word, key, len) == 0 && strchr(" \t=", word[len]))
			return line;
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return from;
}

static int refuse(unsigned line, const char *key, const char *accepted, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_USAGE, "line %u: '%.40s' must be %s", line, key, accepted);
}

static bool is_whole(const cJSON *item, double max)
{
	double value = item ? item->valuedouble : 0;

	return cJSON_IsNumber(item) && value >= 1 && value <= max &&
	       value == (double)(uint32_t)value;
}

static int read_watts(const cJSON *item, unsigned line, uint32_t *ret_mw, struct takt_err *err)
{
	if (!is_whole(item, MAX_W))
		return refuse(line, item->string, "a whole number of watts from 1 to 10000", err);
	*ret_mw = (uint32_t)item->valuedouble * 1000;
	return 0;
}

static int read_range(const cJSON *item, unsigned line, struct takt_declared *ret,
		      struct takt_err *err)
{
	const cJSON *low = cJSON_GetArrayItem(item, 0), *high = cJSON_GetArrayItem(item, 1);

	if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != 2 || !is_whole(low, MAX_MHZ) ||
	    !is_whole(high, MAX_MHZ) || low->valuedouble > high->valuedouble)
		return refuse(line, item->string,
			      "two clocks in MHz, the lower one first: [210, 1410]", err);
	ret->sm_min_mhz = (uint32_t)low->valuedouble;
	ret->sm_max_mhz = (uint32_t)high->valuedouble;
	return 0;
}

static int read_name(const cJSON *item, unsigned line, char ret[96], struct takt_err *err)
{
	if (!cJSON_IsString(item) || !item->valuestring[0] || strlen(item->valuestring) >= 96)
		return refuse(line, item->string, "a text of 1 to 95 bytes", err);
	takt_strcpy(ret, 96, item->valuestring);
	return 0;
}

static int read_mig(const cJSON *item, unsigned line, char ret[TAKT_MIG_TEXT], struct takt_err *err)
{
	struct takt_mig_layout layout;

	if (!cJSON_IsString(item) || takt_mig_layout_parse(item->valuestring, &layout, NULL) < 0)
		return refuse(line, item->string,
			      "kinds of MIG instances with commas between them "
			      "(\"3g.40gb,3g.40gb\"), or \"none\"",
			      err);
	takt_strcpy(ret, TAKT_MIG_TEXT, item->valuestring);
	return 0;
}

static int read_key(const char *text, const cJSON *item, struct takt_clock_rule *rule,
		    struct takt_err *err)
{
	const char *key = item->string;
	unsigned line = line_of(text, rule->line, key);

	if (strcmp(key, "uuid") == 0)
		return read_name(item, line, rule->uuid, err);
	if (strcmp(key, "model") == 0)
		return read_name(item, line, rule->model, err);
	if (strcmp(key, "sm_mhz") == 0)
		return read_range(item, line, &rule->wish, err);
	if (strcmp(key, "power_w") == 0)
		return read_watts(item, line, &rule->wish.power_limit_mw, err);
	if (strcmp(key, "cap_w") == 0)
		return read_watts(item, line, &rule->wish.cap_power_mw, err);
	if (strcmp(key, "mig") == 0)
		return read_mig(item, line, rule->wish.mig, err);
	return takt_err_set(err, -TAKT_E_USAGE,
			    "line %u: there is no key '%.40s' here; there are uuid, model, sm_mhz, "
			    "power_w, cap_w and mig",
			    line, key);
}

static int read_rule(const char *text, const cJSON *table, struct takt_clock_policy *policy,
		     struct takt_err *err)
{
	struct takt_clock_rule rule = {.line = takt_toml_line(table)};
	const cJSON *item;
	int rc = 0;

	if (!cJSON_IsObject(table))
		return takt_err_set(err, -TAKT_E_USAGE, "'gpu' must be written as tables: [[gpu]]");
	if (policy->count == TAKT_CLOCK_POLICY_MAX)
		return takt_err_set(err, -TAKT_E_LIMIT, "line %u: more than %d entries", rule.line,
				    TAKT_CLOCK_POLICY_MAX);
	cJSON_ArrayForEach (item, table)
		if (rc == 0)
			rc = read_key(text, item, &rule, err);
	if (rc == 0 && rule.uuid[0] && rule.model[0])
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "line %u: 'uuid' and 'model' cannot both be given", rule.line);
	for (uint32_t i = 0; rc == 0 && i < policy->count; i++)
		if (strcmp(policy->rules[i].uuid, rule.uuid) == 0 &&
		    strcmp(policy->rules[i].model, rule.model) == 0)
			rc = takt_err_set(err, -TAKT_E_USAGE,
					  "line %u: these GPUs have an entry already, on line %u",
					  rule.line, policy->rules[i].line);
	if (rc == 0)
		policy->rules[policy->count++] = rule;
	return rc;
}

static int read_top(const char *text, const cJSON *top, struct takt_clock_policy *policy,
		    struct takt_err *err)
{
	const cJSON *item, *entry;
	int rc = 0;

	cJSON_ArrayForEach (item, top) {
		if (strcmp(item->string, "gpu") != 0 || !cJSON_IsArray(item))
			return takt_err_set(err, -TAKT_E_USAGE,
					    "line %u: '%.40s' is not known here; a policy has "
					    "entries [[gpu]]",
					    line_of(text, 1, item->string), item->string);
		cJSON_ArrayForEach (entry, item)
			if (rc == 0)
				rc = read_rule(text, entry, policy, err);
	}
	if (rc == 0 && policy->count == 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "line 1: there is no entry [[gpu]]");
	return rc;
}

int takt_clock_policy_parse(const char *text, size_t len, struct takt_clock_policy *ret,
			    struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_clock_policy *made = takt_zalloc(sizeof(*made));
	cJSON *top = NULL;
	int rc;

	if (!made)
		return takt_err_set(err, -ENOMEM, "no memory for the policy");
	if (strlen(text) < len)
		return takt_err_set(err, -TAKT_E_USAGE, "line 1: the file has a NUL byte");
	rc = takt_toml_parse(text, &top, err);
	if (rc == 0)
		rc = read_top(text, top, made, err);
	cJSON_Delete(top);
	if (rc == 0)
		*ret = *made;
	return rc;
}

const struct takt_clock_rule *takt_clock_policy_of(const struct takt_clock_policy *policy,
						   const struct takt_declared_bounds *gpu)
{
	const struct takt_clock_rule *by_model = NULL, *for_all = NULL;

	for (uint32_t i = 0; i < policy->count; i++) {
		const struct takt_clock_rule *rule = &policy->rules[i];

		if (rule->uuid[0] && strcmp(rule->uuid, gpu->uuid) == 0)
			return rule;
		if (rule->model[0] && strcmp(rule->model, gpu->name) == 0)
			by_model = rule;
		if (!rule->uuid[0] && !rule->model[0])
			for_all = rule;
	}
	return by_model ? by_model : for_all;
}

static int check_watts(const char *key, uint32_t mw, const struct takt_declared_bounds *gpu,
		       struct takt_err *err)
{
	if (mw == 0)
		return 0;
	if (gpu->power_max_mw == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'%s': this GPU does not say which power limits it takes", key);
	if (mw >= gpu->power_min_mw && mw <= gpu->power_max_mw)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE, "'%s' %u W: this GPU takes %u to %u W", key,
			    mw / 1000, gpu->power_min_mw / 1000, gpu->power_max_mw / 1000);
}

int takt_declared_check(const struct takt_declared *wish, const struct takt_declared_bounds *gpu,
			struct takt_err *err)
{
	struct takt_mig_layout layout;
	int rc = check_watts("power_w", wish->power_limit_mw, gpu, err);

	if (rc == 0 && wish->mig[0] && takt_mig_layout_parse(wish->mig, &layout, err) < 0)
		rc = takt_err_wrap(err, -TAKT_E_USAGE, "'mig'");
	if (rc == 0)
		rc = check_watts("cap_w", wish->cap_power_mw, gpu, err);
	if (rc < 0 || (wish->sm_max_mhz == 0 && wish->sm_min_mhz == 0))
		return rc;
	if (gpu->sm_max_mhz == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'sm_mhz': the driver lists no SM clocks for this GPU");
	if (wish->sm_min_mhz < gpu->sm_min_mhz || wish->sm_max_mhz > gpu->sm_max_mhz ||
	    wish->sm_min_mhz > wish->sm_max_mhz)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'sm_mhz' [%u, %u]: this GPU takes clocks from %u to %u MHz",
				    wish->sm_min_mhz, wish->sm_max_mhz, gpu->sm_min_mhz,
				    gpu->sm_max_mhz);
	return 0;
}
