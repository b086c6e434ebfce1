/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workload files: a step and its phases, in their order.
 *
 *   step_ms = 100                  a step alone on the GPU at its highest clocks
 *   memory_mib = 4096              on each GPU; may be left out
 *   leak_mib = 64                  more with each step; may be left out
 *   jitter = 5                     permille: standard deviation of a step's speed; may be left out
 *   slow_chance = 2                permille of the steps of a GPU that are slow, and
 *   slow_pace = 600                permille of its speed that such a step makes; may be left out
 *
 *   [forward]                      any name; at most 8 phases
 *   kind = "compute"               compute, memory, communication or host
 *   share = 600                    permille of the step. All but communication add up to 1000;
 *                                  communication comes on top, for jobs on several GPUs only
 *   util = 1000                    permille of the time that a kernel runs; not for host
 *   memory_util = 300              permille of the board's bandwidth
 *   activity = 800                 permille of the SMs' switching
 *   tensor = 500                   permille of the time that the tensor cores work; compute phases
 *                                  only, may be left out
 *   clock_weight = 700             a in: time = 1 + a (fmax/f - 1); compute and memory only
 *   bus = 300                      permille of a host phase that is copying over PCI Express; may
 *                                  be left out
 */
#include "twin_board_file.h"

#include <string.h>

#include "base/str.h"
#include "twin_fields.h"

static const char *const kinds[] = {
	[TWIN_PHASE_COMPUTE] = "compute",
	[TWIN_PHASE_MEMORY] = "memory",
	[TWIN_PHASE_COMMUNICATION] = "communication",
	[TWIN_PHASE_HOST] = "host",
};

static int read_kind(struct twin_toml *toml, const char *section, struct twin_phase *phase,
		     struct takt_err *err)
{
	const struct twin_toml_value *kind = twin_toml_find(toml, section, "kind");

	if (!kind)
		return twin_toml_missing(toml, section, "kind", err);
	for (uint16_t i = 0; kind->kind == TWIN_TOML_STRING && i < TAKT_ARRAY_LEN(kinds); i++) {
		if (strcmp(kind->text, kinds[i]) != 0)
			continue;
		phase->kind = i;
		return 0;
	}
	return twin_toml_error(toml, kind->line, section, "kind", err,
			       "has to be \"compute\", \"memory\", \"communication\" or \"host\"");
}

static int read_phase(struct twin_toml *toml, const char *section, struct twin_phase *phase,
		      struct takt_err *err)
{
	enum {
		MAX_SHARE = 20000
	};
	int rc = read_kind(toml, section, phase, err);
	bool host = phase->kind == TWIN_PHASE_HOST;
	bool clocked = phase->kind == TWIN_PHASE_COMPUTE || phase->kind == TWIN_PHASE_MEMORY;
	const struct twin_field fields[] = {
		{section, "share", TWIN_FIELD_U16, offsetof(struct twin_phase, share), 1, MAX_SHARE,
		 0, false, ""},
		{section, "util", TWIN_FIELD_U16, offsetof(struct twin_phase, util), 1, 1000, 0,
		 false, ""},
		{section, "memory_util", TWIN_FIELD_U16, offsetof(struct twin_phase, memory_util),
		 0, 1000, 0, false, ""},
		{section, "activity", TWIN_FIELD_U16, offsetof(struct twin_phase, activity), 0,
		 1000, 0, false, ""},
		{section, "clock_weight", TWIN_FIELD_U16, offsetof(struct twin_phase, clock_weight),
		 0, 1000, 0, false, ""},
	};

	const struct twin_field more[] = {
		{section, "bus", TWIN_FIELD_U16, offsetof(struct twin_phase, bus), 0, 1000, 0, true,
		 ""},
		{section, "tensor", TWIN_FIELD_U16, offsetof(struct twin_phase, tensor), 0, 1000, 0,
		 true, ""},
	};

	if (rc == 0)
		rc = twin_fields_read(toml, fields, host ? 1 : clocked ? 5 : 4, phase, err);
	if (rc == 0 && (host || phase->kind == TWIN_PHASE_COMPUTE))
		rc = twin_fields_read(toml, &more[host ? 0 : 1], 1, phase, err);
	return rc;
}

/* One phase for each section that has not been read yet. */
static int read_phases(struct twin_toml *toml, struct twin_profile *profile, struct takt_err *err)
{
	const struct twin_toml_key *key;
	const char *last = "";

	for (unsigned i = 0; (key = twin_toml_key_at(toml, i)); i++) {
		int rc;

		if (strcmp(key->section, last) == 0)
			continue;
		last = key->section;
		if (profile->phase_count == TWIN_MAX_PHASES)
			return twin_toml_error(toml, key->value->line, last, NULL, err,
					       ": a step has at most %d phases", TWIN_MAX_PHASES);
		rc = read_phase(toml, last, &profile->phases[profile->phase_count++], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int check_shares(struct twin_toml *toml, const struct twin_profile *profile,
			struct takt_err *err)
{
	const struct twin_toml_key *key, *last = NULL;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < profile->phase_count; i++) {
		if (profile->phases[i].kind != TWIN_PHASE_COMMUNICATION)
			sum += profile->phases[i].share;
	}
	if (!profile->phase_count || sum == 1000)
		return 0;
	for (unsigned i = 0; (key = twin_toml_key_at(toml, i)); i++)
		last = strcmp(key->name, "share") == 0 ? key : last;
	return twin_toml_error(toml, last ? last->value->line : 1, last ? last->section : "",
			       "share", err,
			       ": those of all phases but communication have to add up to 1000, "
			       "not %u",
			       sum);
}

int twin_profile_from(struct twin_toml *toml, struct twin_profile *ret, struct takt_err *err)
{
	static const struct twin_field fields[] = {
		{"", "step_ms", TWIN_FIELD_U32, offsetof(struct twin_profile, step_ms), 1, 3600000,
		 0, false, ""},
		{"", "memory_mib", TWIN_FIELD_U32, offsetof(struct twin_profile, memory_mib), 0,
		 16777216, 0, true, ""},
		{"", "jitter", TWIN_FIELD_U32, offsetof(struct twin_profile, jitter), 0, 200, 0,
		 true, ""},
		{"", "slow_chance", TWIN_FIELD_U32, offsetof(struct twin_profile, slow_chance), 0,
		 1000, 0, true, ""},
		{"", "slow_pace", TWIN_FIELD_U32, offsetof(struct twin_profile, slow_pace), 1, 1000,
		 0, true, ""},
		{"", "leak_mib", TWIN_FIELD_U32, offsetof(struct twin_profile, leak_mib), 0,
		 1048576, 0, true, ""},
	};
	struct twin_profile profile = {.memory_mib = 4096, .slow_pace = 1000};
	int rc = twin_fields_read(toml, fields, TAKT_ARRAY_LEN(fields), &profile, err);

	if (rc == 0)
		rc = read_phases(toml, &profile, err);
	if (rc == 0)
		rc = twin_toml_refuse_unknown(toml, err);
	if (rc == 0)
		rc = check_shares(toml, &profile, err);
	if (rc == 0)
		*ret = profile;
	return rc;
}

static int unknown_profile(const char *name, struct takt_err *err)
{
	char names[180] = "";

	for (unsigned i = 0; i < twin_profile_text_count; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
			 twin_profile_texts[i].name);
	return takt_err_set(err, -TAKT_E_USAGE,
			    "no profile '%s'; there are%s, or a file that ends in .toml", name,
			    names);
}

int twin_profile_load(const char *name, struct twin_profile *ret, struct takt_err *err)
{
	const char *text = twin_text_find(twin_profile_texts, twin_profile_text_count, name);
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	TAKT_CLEANUP(twin_tomlp) struct twin_toml *toml = NULL;
	int rc;

	if (!text && !twin_is_path(name))
		return unknown_profile(name, err);
	rc = text ? twin_toml_parse(name, text, &toml, err) : twin_toml_read(name, &toml, err);
	if (rc == 0)
		rc = twin_profile_from(toml, ret, err);
	if (rc == 0)
		snprintf(ret->name, sizeof(ret->name), "%.*s", (int)strcspn(base, "."), base);
	return rc;
}
