/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a recording, one row each: where the value lives, how it is written, which bit says
 * that it is there. Reader and writer work from the same rows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "device/cpu_list.h"
#include "device/recording.h"

enum kind {
	KIND_U32,
	KIND_I32,
	KIND_U64,
	KIND_BOOL,
	KIND_TEXT,
	KIND_CPUS,
	KIND_CLOCKS,
};

struct field {
	const char *key;
	enum kind kind;
	uint32_t has; /* 0: always written unless zero */
	size_t at;
	size_t size; /* TEXT: of the buffer */
};

#define FACT(key, kind, has, member)                                     \
	{                                                                \
		key, kind, has, offsetof(struct takt_gpu_facts, member), \
			sizeof(((struct takt_gpu_facts *)0)->member)     \
	}
#define READING(key, kind, has, member)                                    \
	{                                                                  \
		key, kind, has, offsetof(struct takt_gpu_reading, member), \
			sizeof(((struct takt_gpu_reading *)0)->member)     \
	}

static const struct field fact_fields[] = {
	FACT("name", KIND_TEXT, TAKT_FACT_NAME, name),
	FACT("uuid", KIND_TEXT, TAKT_FACT_UUID, uuid),
	FACT("pci", KIND_TEXT, TAKT_FACT_PCI, pci_bus_id),
	FACT("serial", KIND_TEXT, TAKT_FACT_SERIAL, serial),
	FACT("vbios", KIND_TEXT, TAKT_FACT_VBIOS, vbios),
	FACT("minor", KIND_U32, TAKT_FACT_MINOR, minor),
	FACT("memory_bytes", KIND_U64, TAKT_FACT_MEMORY, memory_total_bytes),
	FACT("compute_major", KIND_U32, TAKT_FACT_COMPUTE_CAP, compute_major),
	FACT("compute_minor", KIND_U32, TAKT_FACT_COMPUTE_CAP, compute_minor),
	FACT("numa", KIND_I32, TAKT_FACT_NUMA, numa_node),
	FACT("cpus", KIND_CPUS, TAKT_FACT_CPUS, cpus),
	FACT("power_min_mw", KIND_U32, TAKT_FACT_POWER_LIMITS, power_min_mw),
	FACT("power_max_mw", KIND_U32, TAKT_FACT_POWER_LIMITS, power_max_mw),
	FACT("power_default_mw", KIND_U32, TAKT_FACT_POWER_LIMITS, power_default_mw),
	FACT("sm_max_mhz", KIND_U32, TAKT_FACT_SM_MAX, sm_max_mhz),
	FACT("slowdown_temp_c", KIND_I32, TAKT_FACT_THROTTLE_TEMP, slowdown_temp_c),
	FACT("temp_max_c", KIND_I32, TAKT_FACT_TEMP_MAX, temp_max_c),
	FACT("mem_temp_max_c", KIND_I32, TAKT_FACT_MEM_TEMP_MAX, mem_temp_max_c),
	FACT("pcie_gen_max", KIND_U32, TAKT_FACT_PCIE_MAX, pcie_gen_max),
	FACT("pcie_width_max", KIND_U32, TAKT_FACT_PCIE_MAX, pcie_width_max),
	FACT("mig", KIND_BOOL, TAKT_FACT_MIG, mig_enabled),
	FACT("sm_clocks_mhz", KIND_CLOCKS, TAKT_FACT_SM_CLOCKS, sm_clocks_mhz),
	FACT("mem_clocks_mhz", KIND_CLOCKS, TAKT_FACT_MEM_CLOCKS, mem_clocks_mhz),
};

static const struct field reading_fields[] = {
	READING("sm_mhz", KIND_U32, TAKT_HAS_SM_CLOCK, sm_mhz),
	READING("mem_mhz", KIND_U32, TAKT_HAS_MEM_CLOCK, mem_mhz),
	READING("power_mw", KIND_U32, TAKT_HAS_POWER, power_mw),
	READING("power_limit_mw", KIND_U32, TAKT_HAS_POWER_LIMIT, power_limit_mw),
	READING("power_enforced_mw", KIND_U32, TAKT_HAS_POWER_ENFORCED, power_enforced_mw),
	READING("temp_c", KIND_I32, TAKT_HAS_TEMP, temp_c),
	READING("gpu_util_pct", KIND_U32, TAKT_HAS_GPU_UTIL, gpu_util_pct),
	READING("mem_util_pct", KIND_U32, TAKT_HAS_MEM_UTIL, mem_util_pct),
	READING("mem_used_bytes", KIND_U64, TAKT_HAS_MEMORY, mem_used_bytes),
	READING("mem_free_bytes", KIND_U64, TAKT_HAS_MEMORY, mem_free_bytes),
	READING("mem_reserved_bytes", KIND_U64, TAKT_HAS_RESERVED, mem_reserved_bytes),
	READING("energy_mj", KIND_U64, TAKT_HAS_ENERGY, energy_mj),
	READING("throttle", KIND_U64, TAKT_HAS_THROTTLE, throttle),
	READING("fan_pct", KIND_U32, TAKT_HAS_FAN, fan_pct),
	READING("pstate", KIND_U32, TAKT_HAS_PSTATE, pstate),
	READING("pcie_gen", KIND_U32, TAKT_HAS_PCIE, pcie_gen),
	READING("pcie_width", KIND_U32, TAKT_HAS_PCIE, pcie_width),
	READING("pcie_replay", KIND_U64, TAKT_HAS_PCIE_REPLAY, pcie_replay),
	READING("persistence", KIND_BOOL, TAKT_HAS_PERSISTENCE, persistence),
	READING("enc_util_pct", KIND_U32, TAKT_HAS_ENC_DEC, enc_util_pct),
	READING("dec_util_pct", KIND_U32, TAKT_HAS_ENC_DEC, dec_util_pct),
	READING("procs_dropped", KIND_U32, 0, procs_dropped),
	READING("lost", KIND_BOOL, 0, lost),
	READING("rc", KIND_I32, 0, last_rc),
};

static bool set_number(const struct field *field, const char *value, void *at)
{
	unsigned long long u;
	long long i;

	switch (field->kind) {
	case KIND_U32:
		if (takt_parse_u64(value, 0, UINT32_MAX, &u) < 0)
			return false;
		*(uint32_t *)at = (uint32_t)u;
		return true;
	case KIND_I32:
		if (takt_parse_i64(value, INT32_MIN, INT32_MAX, &i) < 0)
			return false;
		*(int32_t *)at = (int32_t)i;
		return true;
	case KIND_U64:
		if (takt_parse_u64(value, 0, UINT64_MAX, &u) < 0)
			return false;
		*(uint64_t *)at = u;
		return true;
	default:
		if (takt_parse_u64(value, 0, 1, &u) < 0)
			return false;
		*(bool *)at = u == 1;
		return true;
	}
}

/* "210 225 240": ascending, each above zero. */
static bool set_clocks(const struct field *field, struct takt_gpu_facts *facts, const char *value)
{
	uint32_t *mhz_list = (uint32_t *)((char *)facts + field->at);
	uint32_t room = (uint32_t)(field->size / sizeof(*mhz_list)), count = 0, last = 0;

	while (*value) {
		char *end;
		unsigned long mhz = strtoul(value, &end, 10);

		if (*value < '0' || *value > '9' || mhz <= last || mhz > UINT32_MAX ||
		    count == room || (*end != ' ' && *end != '\0') ||
		    (*end == ' ' && end[1] == '\0'))
			return false;
		mhz_list[count++] = last = (uint32_t)mhz;
		value = end + (*end == ' ');
	}
	*(field->has == TAKT_FACT_SM_CLOCKS ? &facts->sm_clock_count : &facts->mem_clock_count) =
		count;
	return count > 0;
}

static bool set_value(const struct field *field, const char *value, void *object)
{
	void *at = (char *)object + field->at;

	switch (field->kind) {
	case KIND_TEXT:
		return value[0] != '\0' && strlen(value) < field->size &&
		       takt_strcpy(at, field->size, value);
	case KIND_CPUS:
		return takt_cpu_list_parse(value, at, TAKT_DEVICE_CPU_WORDS);
	case KIND_CLOCKS:
		return set_clocks(field, object, value);
	default:
		return set_number(field, value, at);
	}
}

static int set_by_key(const struct field *fields, size_t count, void *object, uint32_t *has,
		      struct takt_seen *seen, const char *key, const char *value,
		      struct takt_err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(fields[i].key, key) != 0)
			continue;
		if (seen->fields >> i & 1)
			return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is given twice", key);
		if (!set_value(&fields[i], value, object))
			return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' cannot be '%.40s'", key,
					    value);
		seen->fields |= 1ull << i;
		*has |= fields[i].has;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_CORRUPT, "unknown key '%.40s'", key);
}

/* A row that is missing while a row of the same bit is there. */
static int check(const struct field *fields, size_t count, const struct takt_seen *seen,
		 struct takt_err *err)
{
	uint32_t has = 0;

	for (size_t i = 0; i < count; i++)
		if (seen->fields >> i & 1)
			has |= fields[i].has;
	for (size_t i = 0; i < count; i++)
		if ((fields[i].has & has) && !(seen->fields >> i & 1))
			return takt_err_set(err, -TAKT_E_CORRUPT,
					    "'%s' is missing beside its fellows", fields[i].key);
	return 0;
}

int takt_fact_set(struct takt_gpu_facts *facts, struct takt_seen *seen, const char *key,
		  const char *value, struct takt_err *err)
{
	return set_by_key(fact_fields, TAKT_ARRAY_LEN(fact_fields), facts, &facts->has, seen, key,
			  value, err);
}

int takt_reading_set(struct takt_gpu_reading *reading, struct takt_seen *seen, const char *key,
		     const char *value, struct takt_err *err)
{
	return set_by_key(reading_fields, TAKT_ARRAY_LEN(reading_fields), reading, &reading->has,
			  seen, key, value, err);
}

int takt_facts_check(const struct takt_seen *seen, struct takt_err *err)
{
	return check(fact_fields, TAKT_ARRAY_LEN(fact_fields), seen, err);
}

int takt_reading_check(const struct takt_seen *seen, struct takt_err *err)
{
	return check(reading_fields, TAKT_ARRAY_LEN(reading_fields), seen, err);
}

static void add_clocks(const struct field *field, const uint32_t *mhz, struct takt_str *ret)
{
	for (size_t i = 0; i < field->size / sizeof(*mhz) && mhz[i]; i++)
		takt_str_addf(ret, "%s%" PRIu32, i > 0 ? " " : "", mhz[i]);
}

static void add_value(const struct field *field, const void *object, struct takt_str *ret)
{
	const void *at = (const char *)object + field->at;

	switch (field->kind) {
	case KIND_U32:
		takt_str_addf(ret, "%" PRIu32, *(const uint32_t *)at);
		break;
	case KIND_I32:
		takt_str_addf(ret, "%" PRId32, *(const int32_t *)at);
		break;
	case KIND_U64:
		takt_str_addf(ret, "%" PRIu64, *(const uint64_t *)at);
		break;
	case KIND_BOOL:
		takt_str_add(ret, *(const bool *)at ? "1" : "0");
		break;
	case KIND_TEXT:
		takt_str_add(ret, at);
		break;
	case KIND_CPUS:
		takt_cpu_list_format(at, TAKT_DEVICE_CPU_WORDS, ret);
		break;
	case KIND_CLOCKS:
		add_clocks(field, at, ret);
		break;
	}
}

/* Fields without a bit of their own stand for trouble: zero is not worth a word. */
static bool is_there(const struct field *field, const void *object, uint32_t has)
{
	const char *at = (const char *)object + field->at;

	if (field->has != 0)
		return (has & field->has) == field->has;
	return field->kind == KIND_BOOL ? *(const bool *)at : *(const uint32_t *)at != 0;
}

void takt_recording_add_fact_lines(const struct takt_gpu_facts *facts, uint32_t gpu,
				   struct takt_str *ret)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(fact_fields); i++) {
		if (!is_there(&fact_fields[i], facts, facts->has))
			continue;
		takt_str_addf(ret, "fact %" PRIu32 " %s ", gpu, fact_fields[i].key);
		add_value(&fact_fields[i], facts, ret);
		takt_str_add(ret, "\n");
	}
}

static void add_procs(const struct takt_gpu_reading *reading, struct takt_str *ret)
{
	if (!(reading->has & TAKT_HAS_PROCS))
		return;
	if (reading->proc_count == 0)
		takt_str_add(ret, " noprocs=1");
	for (uint32_t i = 0; i < reading->proc_count; i++) {
		const struct takt_gpu_proc *proc = &reading->procs[i];

		takt_str_addf(ret, " proc=%" PRId32 ":", proc->pid);
		if (proc->memory_known)
			takt_str_addf(ret, "%" PRIu64, proc->memory_bytes);
		else
			takt_str_add(ret, "?");
		takt_str_add(ret, proc->graphics ? ":g" : ":c");
	}
}

void takt_recording_add_sample_line(const struct takt_gpu_reading *reading, uint32_t gpu,
				    uint64_t at_us, struct takt_str *ret)
{
	takt_str_addf(ret, "sample %" PRIu32 " %" PRIu64, gpu, at_us);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reading_fields); i++) {
		if (!is_there(&reading_fields[i], reading, reading->has))
			continue;
		takt_str_addf(ret, " %s=", reading_fields[i].key);
		add_value(&reading_fields[i], reading, ret);
	}
	add_procs(reading, ret);
	takt_str_add(ret, "\n");
}
