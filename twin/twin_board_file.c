/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a board file, and the rules that hold between them. */
#include "twin_board_file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/str.h"
#include "twin_fields.h"

#define NUMBER(section, key, member, min, max, doc)                                             \
	{                                                                                       \
		section, key, TWIN_FIELD_U32, offsetof(struct twin_board, member), min, max, 0, \
			false, doc                                                              \
	}
#define MAYBE(section, key, member, min, max, doc)                                              \
	{                                                                                       \
		section, key, TWIN_FIELD_U32, offsetof(struct twin_board, member), min, max, 0, \
			true, doc                                                               \
	}
#define PAIR(section, key, member, min, max, doc)                                               \
	{                                                                                       \
		section, key, TWIN_FIELD_U32, offsetof(struct twin_board, member), min, max, 2, \
			false, doc                                                              \
	}
#define WORDS(key, member, doc)                                                    \
	{                                                                          \
		"", key, TWIN_FIELD_TEXT, offsetof(struct twin_board, member), 0,  \
			sizeof(((struct twin_board *)NULL)->member), 0, false, doc \
	}

enum {
	MAX_MHZ = 20000,
	MAX_MW = 5000000
};

/* clang-format off */
static const struct twin_field fields[] = {
	WORDS("name", name, "as NVML reports it"),
	WORDS("part", part, "board part number"),
	WORDS("vbios", vbios, "VBIOS version"),
	WORDS("inforom", inforom, "version of the inforom image"),
	WORDS("oem", oem, "version of the inforom's OEM object"),
	WORDS("ecc", ecc, "version of the inforom's ECC object"),
	NUMBER("", "arch", arch, 2, 99, "NVML's number: Volta 5, Turing 6, Ampere 7, Ada 8, ..."),
	PAIR("", "compute", compute_major, 0, 99, "CUDA compute capability"),
	NUMBER("", "cores", cores, 1, 1000000, "CUDA cores"),
	NUMBER("", "bus_width", bus_width, 1, 65536, "memory bus in bits"),
	NUMBER("", "pci_device", pci_device, 0, UINT32_MAX, "device and vendor, as 0x233010DE"),
	NUMBER("", "pci_subsystem", pci_subsystem, 0, UINT32_MAX, "subsystem and its vendor"),
	NUMBER("", "pcie_gen", pcie_gen, 1, 7, "highest PCIe generation"),
	NUMBER("", "pcie_width", pcie_width, 1, 32, "PCIe lanes"),
	NUMBER("", "memory_mib", memory_mib, 64, 16777216, "all memory"),
	NUMBER("", "reserved_mib", reserved_mib, 0, 16777216, "what the driver keeps of it"),
	NUMBER("", "bar1_mib", bar1_mib, 1, 16777216, "BAR1"),
	MAYBE("", "remap_banks", remap_banks, 0, 1000000, "banks with rows to spare (row_remap)"),
	MAYBE("", "nvlinks", nvlinks, 0, TWIN_MAX_LINKS, "NVLinks"),
	MAYBE("", "nvlink_version", nvlink_version, 0, 99, "as NVML reports it"),
	MAYBE("", "nvlink_mbps", nvlink_mbps, 0, 1000000, "MB/s of one link, one way"),
	MAYBE("", "c2c_links", c2c_links, 0, 64, "links to a CPU on the same module"),
	MAYBE("", "nvswitch_device", nvswitch_device, 0, UINT32_MAX, "PCI id of its NVSwitch"),
	NUMBER("clocks", "idle", idle_mhz, 1, MAX_MHZ, "SM MHz at rest"),
	NUMBER("clocks", "application", application_mhz, 1, MAX_MHZ, "default application clock"),
	NUMBER("clocks", "idle_memory", idle_memory_mhz, 1, MAX_MHZ, "memory MHz at rest"),
	MAYBE("clocks", "busy_memory", busy_memory_mhz, 1, MAX_MHZ, "when computing, if not the first"),
	PAIR("clocks", "video", video_idle_mhz, 1, MAX_MHZ, "video clock at rest and at most"),
	NUMBER("clocks", "idle_pstate", idle_pstate, 0, 15, "P-state at rest"),
	NUMBER("clocks", "busy_pstate", busy_pstate, 0, 15, "P-state when computing"),
	NUMBER("power", "min", power_min_mw, 1, MAX_MW, "lowest limit, mW"),
	NUMBER("power", "default", power_default_mw, 1, MAX_MW, "default limit, mW"),
	NUMBER("power", "max", power_max_mw, 1, MAX_MW, "highest limit, mW"),
	NUMBER("power", "idle", idle_mw, 1, MAX_MW, "at rest and 30 C, mW"),
	NUMBER("power", "held", held_mw, 0, MAX_MW, "more when held at the highest clock, mW"),
	NUMBER("power", "dynamic", dynamic_mw, 0, MAX_MW, "more with every SM switching, mW"),
	NUMBER("power", "memory", memory_mw, 0, MAX_MW, "more at full bandwidth, mW"),
	NUMBER("power", "memory_idle", memory_idle_mw, 0, MAX_MW, "the memory's part of idle, mW"),
	MAYBE("power", "memory_busy", memory_busy_mw, 0, MAX_MW, "the memory's part when kernels run"),
	NUMBER("power", "leak_per_k", leak_mw_per_k, 0, 100000, "leakage for each K over 30 C, mW"),
	MAYBE("power", "module_rest", module_rest_mw, 0, MAX_MW, "what a CPU and the rest of a module draw"),
	{"power", "module_limit", TWIN_FIELD_U32, offsetof(struct twin_board, module_limit_mw), 1, MAX_MW, 3,
	 true, "lowest, default and highest limit of the module, mW; none: it is no such module"},
	NUMBER("voltage", "slope_permille", slope_permille, 0, 3000, "s in V = 1 - s (1 - f/fmax)"),
	NUMBER("voltage", "floor_permille", floor_permille, 1, 1000, "V never below this"),
	NUMBER("thermal", "ambient_c", ambient_c, 0, 80, "air at the board"),
	NUMBER("thermal", "k_per_kw", k_per_kw, 1, 5000, "K of warming for each kW, fans at full"),
	NUMBER("thermal", "tau_ms", tau_ms, 1000, 3600000, "time constant"),
	NUMBER("thermal", "gpu_max_c", gpu_max_c, 30, 150, "highest operating temperature"),
	NUMBER("thermal", "slowdown_c", slowdown_c, 30, 150, "the hardware slows down"),
	NUMBER("thermal", "shutdown_c", shutdown_c, 30, 150, "the board switches off"),
	MAYBE("thermal", "memory_max_c", memory_max_c, 30, 150, "memory's threshold (memory_max)"),
	MAYBE("thermal", "fans", fans, 0, 4, "fans of its own"),
	MAYBE("thermal", "fan_min_percent", fan_min_percent, 0, 100, "below fan_start_c"),
	MAYBE("thermal", "fan_start_c", fan_start_c, 0, 150, "fans speed up from here to gpu_max_c"),
	MAYBE("thermal", "fan_k_per_kw", fan_k_per_kw, 1, 5000, "k_per_kw at fan_min_percent"),
	{"noise", "power", TWIN_FIELD_U32, offsetof(struct twin_board, noise_power_permille), 0, 200, 2,
	 true, "standard deviations in permille: of power at rest, of what is beyond"},
	MAYBE("noise", "temp", noise_temp_mc, 0, 5000, "of the temperature, thousandths of a degree"),
	MAYBE("noise", "clock", noise_clock_permille, 0, 1000, "permille of readings of a held-down "
	      "clock that are a step aside"),
	{"thermal", "memory_temp", TWIN_FIELD_U32, offsetof(struct twin_board, memory_temp_permille),
	 0, 5000, 2, true, "permille of the GPU's temperature, plus degrees (memory_temp)"},
	{"thermal", "t_limit", TWIN_FIELD_I32, offsetof(struct twin_board, t_limit_c),
	 -100, 100, 4, true, "margins of shutdown, slowdown, memory, GPU (t_limit)"},
};
/* clang-format on */

_Static_assert(offsetof(struct twin_board, compute_minor) ==
			       offsetof(struct twin_board, compute_major) + 4 &&
		       offsetof(struct twin_board, video_max_mhz) ==
			       offsetof(struct twin_board, video_idle_mhz) + 4 &&
		       offsetof(struct twin_board, memory_temp_plus_c) ==
			       offsetof(struct twin_board, memory_temp_permille) + 4,
	       "pairs are written as arrays of two");

static const struct {
	const char *name, *doc;
} features[] = {
	{"row_remap", "remaps rows of memory"},
	{"retired_pages", "retires pages of memory"},
	{"t_limit", "reports its temperature limits as margins"},
	{"power_average", "power is the mean of a second"},
	{"mig", "can be divided into instances"},
	{"memory_lock", "its memory clock can be locked"},
	{"fabric", "is member of a fabric of NVSwitches"},
	{"sram_status", "counts ECC errors of SRAM by kind"},
	{"jpeg_ofa", "has JPEG and optical flow engines"},
	{"conf_compute", "confidential computing"},
	{"gsp", "runs GSP firmware"},
	{"memory_temp", "has a sensor in its memory"},
	{"memory_power", "measures its memory's power"},
	{"ecc", "ECC is on"},
	{"serial", "has a serial number"},
	{"memory_max", "has a threshold of its memory's temperature"},
	{"pcie_rest", "its bus falls back to generation 1 at rest"},
};

static const struct {
	const char *name;
	uint32_t brand;
} brands[] = {
	{"TESLA", NVML_BRAND_TESLA},
	{"NVIDIA", NVML_BRAND_NVIDIA},
	{"GEFORCE", NVML_BRAND_GEFORCE},
};

const char *twin_text_find(const struct twin_text *texts, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(texts[i].name, name) == 0)
			return texts[i].text;
	}
	return NULL;
}

bool twin_is_path(const char *name)
{
	size_t n = strlen(name);

	return strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".toml") == 0);
}

const char *twin_board_feature(unsigned n)
{
	return n < TAKT_ARRAY_LEN(features) ? features[n].name : NULL;
}

void twin_board_print_keys(FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < TAKT_ARRAY_LEN(fields); i++) {
		if (strcmp(section, fields[i].section) != 0)
			fprintf(out, "[%s]\n", fields[i].section);
		section = fields[i].section;
		fprintf(out, "%-16s %s%s\n", fields[i].key, fields[i].doc,
			fields[i].optional ? "; may be left out" : "");
		if (strcmp(fields[i].key, "cores") == 0)
			fprintf(out, "%-16s TESLA, NVIDIA or GEFORCE\n", "brand");
	}
	fprintf(out, "[clocks], too\n%-16s memory clocks, highest first\n", "memory");
	fprintf(out, "%-16s highest SM clock for each of them\n", "sm_max");
	fprintf(out, "%-16s lowest SM clock, and\n", "sm_min");
	fprintf(out, "%-16s tenths of MHz from each to the next; or instead of both\n",
		"sm_step_x10");
	fprintf(out, "%-16s all SM clocks, lowest first\n", "sm");
	fprintf(out, "[mig]\n%-16s ways to cut it; may be left out\n", "profiles");
	fprintf(out, "features = [...], any of\n");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(features); i++)
		fprintf(out, "  %-14s %s\n", features[i].name, features[i].doc);
}

static int read_brand(struct twin_toml *toml, struct twin_board *board, struct takt_err *err)
{
	const struct twin_toml_value *value = twin_toml_find(toml, "", "brand");

	if (!value)
		return twin_toml_missing(toml, "", "brand", err);
	for (size_t i = 0; value->kind == TWIN_TOML_STRING && i < TAKT_ARRAY_LEN(brands); i++) {
		if (strcmp(value->text, brands[i].name) != 0)
			continue;
		board->brand = brands[i].brand;
		return 0;
	}
	return twin_toml_error(toml, value->line, "", "brand", err,
			       "has to be \"TESLA\", \"NVIDIA\" or \"GEFORCE\"");
}

static int read_feature(const struct twin_toml *toml, const struct twin_toml_value *value,
			struct twin_board *board, struct takt_err *err)
{
	char known[200] = "";

	for (size_t i = 0; i < TAKT_ARRAY_LEN(features); i++) {
		if (value->kind == TWIN_TOML_STRING && strcmp(value->text, features[i].name) == 0) {
			board->features |= 1u << i;
			return 0;
		}
		snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s",
			 features[i].name);
	}
	return twin_toml_error(toml, value->line, "", "features", err, "may have%s", known);
}

static int read_features(struct twin_toml *toml, struct twin_board *board, struct takt_err *err)
{
	const struct twin_toml_value *list = twin_toml_find(toml, "", "features");

	if (!list)
		return twin_toml_missing(toml, "", "features", err);
	if (list->kind != TWIN_TOML_ARRAY)
		return twin_toml_error(toml, list->line, "", "features", err,
				       "has to be [\"name\", ...]");
	for (const struct twin_toml_value *item = list->first; item; item = item->next) {
		int rc = read_feature(toml, item, board, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* All SM clocks one by one. */
static int read_sm_list(struct twin_toml *toml, struct twin_board *board, struct takt_err *err)
{
	int64_t mhz[TWIN_MAX_CLOCKS];
	int n = twin_toml_numbers(toml, "clocks", "sm", TWIN_MAX_CLOCKS, 1, MAX_MHZ, mhz, err);

	for (int i = 0; i < n; i++) {
		if (i > 0 && mhz[i] <= mhz[i - 1])
			return twin_toml_error(toml, twin_toml_find(toml, "clocks", "sm")->line,
					       "clocks", "sm", err,
					       "has to rise from each clock to the next");
		board->sm_mhz[i] = (uint16_t)mhz[i];
	}
	board->clock_count = n < 0 ? 0 : (uint32_t)n;
	return n;
}

static int read_sm_steps(struct twin_toml *toml, struct twin_board *board, struct takt_err *err)
{
	uint32_t top = board->memory[0].sm_max_mhz;
	struct {
		uint32_t min, step_x10;
	} sm;
	static const struct twin_field steps[] = {
		{"clocks", "sm_min", TWIN_FIELD_U32, 0, 1, MAX_MHZ, 0, false, ""},
		{"clocks", "sm_step_x10", TWIN_FIELD_U32, 4, 10, 10000, 0, false, ""},
	};
	int rc = twin_fields_read(toml, steps, 2, &sm, err);

	if (rc < 0)
		return rc;
	if (sm.min >= top || (top - sm.min) * 10 / sm.step_x10 >= TWIN_MAX_CLOCKS)
		return twin_toml_error(toml, twin_toml_find(toml, "clocks", "sm_min")->line,
				       "clocks", "sm_min", err,
				       "and sm_step_x10 have to give 2 to %d clocks up to sm_max",
				       TWIN_MAX_CLOCKS);
	while (sm.min + board->clock_count * sm.step_x10 / 10 <= top) {
		uint32_t mhz = sm.min + board->clock_count * sm.step_x10 / 10;
		board->sm_mhz[board->clock_count++] = (uint16_t)mhz;
	}
	return 0;
}

static int read_memory_clocks(struct twin_toml *toml, struct twin_board *board,
			      struct takt_err *err)
{
	int64_t mhz[TWIN_MAX_MEMORY_CLOCKS], sm[TWIN_MAX_MEMORY_CLOCKS];
	int n = twin_toml_numbers(toml, "clocks", "memory", TWIN_MAX_MEMORY_CLOCKS, 1, MAX_MHZ, mhz,
				  err);
	int m = n < 0 ? n
		      : twin_toml_numbers(toml, "clocks", "sm_max", TWIN_MAX_MEMORY_CLOCKS, 1,
					  MAX_MHZ, sm, err);

	if (m < 0)
		return m;
	for (int i = 0; i < n; i++) {
		if (m != n || (i > 0 && (mhz[i] >= mhz[i - 1] || sm[i] > sm[i - 1])))
			return twin_toml_error(toml, twin_toml_find(toml, "clocks", "memory")->line,
					       "clocks", "memory", err,
					       "has to fall, with one sm_max for each that never "
					       "rises");
		board->memory[i] = (struct twin_memory_clock){(uint32_t)mhz[i], (uint32_t)sm[i]};
	}
	board->memory_count = (uint32_t)n;
	return 0;
}

static bool has_memory_clock(const struct twin_board *board, uint32_t mhz)
{
	for (uint32_t i = 0; i < board->memory_count; i++) {
		if (board->memory[i].mhz == mhz)
			return true;
	}
	return false;
}

static bool has_sm_clock(const struct twin_board *board, uint32_t mhz)
{
	for (uint32_t i = 0; i < board->clock_count; i++) {
		if (board->sm_mhz[i] == mhz)
			return true;
	}
	return false;
}

static int read_clocks(struct twin_toml *toml, struct twin_board *board, struct takt_err *err)
{
	int rc = read_memory_clocks(toml, board, err);

	if (rc < 0)
		return rc;
	rc = twin_toml_find(toml, "clocks", "sm") ? read_sm_list(toml, board, err)
						  : read_sm_steps(toml, board, err);
	return rc < 0 ? rc : 0;
}

enum {
	MIG_FIELDS = sizeof(struct twin_mig_profile) / sizeof(uint32_t)
};

/* Rows in the order of struct twin_mig_profile. A board that cannot be cut has none. */
static int read_mig(struct twin_toml *toml, struct twin_board *board, struct takt_err *err)
{
	const struct twin_toml_value *rows = twin_toml_find(toml, "mig", "profiles");

	if (!rows)
		return 0;
	if (rows->kind != TWIN_TOML_ARRAY || rows->count > TWIN_MIG_PROFILES)
		return twin_toml_error(toml, rows->line, "mig", "profiles", err,
				       "has to be [ ... ] with at most %d rows", TWIN_MIG_PROFILES);
	for (const struct twin_toml_value *row = rows->first; row; row = row->next) {
		const struct twin_field field = {"mig",	   "profiles",	    .type = TWIN_FIELD_U32,
						 .min = 0, .max = 16777216, .count = MIG_FIELDS};
		int rc = twin_field_put(toml, &field, row, &board->mig[board->mig_count++], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What has to hold between keys; the error names the one that is to be looked at. */
struct rule {
	bool right;
	const char *section, *key, *text;
};

static int hold(struct twin_toml *toml, const struct rule *rules, size_t count,
		struct takt_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct twin_toml_value *value =
			twin_toml_find(toml, rules[i].section, rules[i].key);

		if (rules[i].right)
			continue;
		return twin_toml_error(toml, value ? value->line : 1, rules[i].section,
				       rules[i].key, err, "%s", rules[i].text);
	}
	return 0;
}

static int check_clocks(struct twin_toml *toml, const struct twin_board *board,
			struct takt_err *err)
{
	const struct rule rules[] = {
		{board->clock_count >= 2, "clocks", "sm_max", "there have to be two SM clocks"},
		{board->memory[0].sm_max_mhz == board->sm_mhz[board->clock_count - 1], "clocks",
		 "sm_max", ": the first has to be the highest SM clock"},
		{has_sm_clock(board, board->idle_mhz), "clocks", "idle", "has to be an SM clock"},
		{board->idle_mhz < board->memory[0].sm_max_mhz, "clocks", "idle",
		 "has to be below the highest SM clock"},
		{has_sm_clock(board, board->application_mhz), "clocks", "application",
		 "has to be an SM clock"},
		{has_memory_clock(board, board->idle_memory_mhz), "clocks", "idle_memory",
		 "has to be one of clocks.memory"},
		{!board->busy_memory_mhz || has_memory_clock(board, board->busy_memory_mhz),
		 "clocks", "busy_memory", "has to be one of clocks.memory"},
		{board->video_idle_mhz <= board->video_max_mhz, "clocks", "video", "has to rise"},
		{board->busy_pstate <= board->idle_pstate, "clocks", "busy_pstate",
		 "has to be at most idle_pstate: P0 is the fastest"},
	};

	return hold(toml, rules, TAKT_ARRAY_LEN(rules), err);
}

static int check_power(struct twin_toml *toml, const struct twin_board *board, struct takt_err *err)
{
	const struct rule rules[] = {
		{board->power_min_mw <= board->power_default_mw &&
			 board->power_default_mw <= board->power_max_mw,
		 "power", "default", "has to lie between power.min and power.max"},
		{board->idle_mw < board->power_max_mw, "power", "idle",
		 "has to be less than power.max"},
		{board->memory_idle_mw <= board->idle_mw, "power", "memory_idle",
		 "is a part of power.idle"},
		{board->ambient_c < board->gpu_max_c && board->gpu_max_c <= board->slowdown_c &&
			 board->slowdown_c <= board->shutdown_c,
		 "thermal", "gpu_max_c",
		 ": ambient_c < gpu_max_c <= slowdown_c <= shutdown_c has to hold"},
		{board->ambient_c + (uint64_t)board->idle_mw * board->k_per_kw / 1000000 <
			 board->gpu_max_c,
		 "thermal", "k_per_kw", "warms it above gpu_max_c at rest already"},
		{!board->fans ||
			 (board->fan_start_c < board->gpu_max_c && board->fan_min_percent < 100 &&
			  board->fan_k_per_kw >= board->k_per_kw),
		 "thermal", "fans",
		 "needs fan_start_c < gpu_max_c, fan_min_percent < 100 and fan_k_per_kw >= "
		 "k_per_kw"},
	};

	return hold(toml, rules, TAKT_ARRAY_LEN(rules), err);
}

static int check_features(struct twin_toml *toml, const struct twin_board *board,
			  struct takt_err *err)
{
	bool mig_fits = true;

	for (uint32_t i = 0; i < board->mig_count; i++) {
		const struct twin_mig_profile *mig = &board->mig[i];
		mig_fits &= mig->slices >= 1 && mig->slices < TWIN_MIG_SLICES && mig->size >= 1 &&
			    mig->size <= TWIN_MIG_SLICES && mig->count >= 1 &&
			    mig->memory_mib <= board->memory_mib;
	}
	const struct rule rules[] = {
		{board->reserved_mib < board->memory_mib, "", "reserved_mib",
		 "has to be less than memory_mib"},
		{!(board->features & TWIN_HAS_MEMORY_MAX) || board->memory_max_c, "", "features",
		 ": memory_max needs thermal.memory_max_c"},
		{!(board->features & TWIN_HAS_ROW_REMAP) || board->remap_banks, "", "features",
		 ": row_remap needs remap_banks"},
		{board->features & TWIN_HAS_MIG || !board->mig_count, "", "features",
		 ": mig is needed with profiles in [mig]"},
		{!board->nvlinks || (board->nvlink_version && board->nvlink_mbps), "", "nvlinks",
		 "needs nvlink_version and nvlink_mbps, too"},
		{mig_fits, "mig", "profiles",
		 "have 1 to 7 slices of computing, 1 to 8 of memory, a count above 0 and no more "
		 "memory than the board"},
	};

	return hold(toml, rules, TAKT_ARRAY_LEN(rules), err);
}

static int check(struct twin_toml *toml, const struct twin_board *board, struct takt_err *err)
{
	int rc = check_clocks(toml, board, err);

	if (rc == 0)
		rc = check_power(toml, board, err);
	return rc == 0 ? check_features(toml, board, err) : rc;
}

int twin_board_keys(struct twin_toml *toml, struct twin_board *ret, struct takt_err *err)
{
	struct twin_board board = {0};
	int rc = twin_fields_read(toml, fields, TAKT_ARRAY_LEN(fields), &board, err);

	if (rc == 0)
		rc = read_brand(toml, &board, err);
	if (rc == 0)
		rc = read_features(toml, &board, err);
	if (rc == 0)
		rc = read_clocks(toml, &board, err);
	if (rc == 0)
		rc = read_mig(toml, &board, err);
	if (rc == 0)
		rc = check(toml, &board, err);
	if (rc == 0)
		*ret = board;
	return rc;
}

int twin_board_from(struct twin_toml *toml, struct twin_board *ret, struct takt_err *err)
{
	struct twin_board board;
	int rc = twin_board_keys(toml, &board, err);

	if (rc == 0)
		rc = twin_toml_refuse_unknown(toml, err);
	if (rc == 0)
		*ret = board;
	return rc;
}

static int open_board(const char *name, const char *beside, struct twin_toml **ret,
		      struct takt_err *err)
{
	const char *text = twin_text_find(twin_board_texts, twin_board_text_count, name);
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	char path[PATH_MAX];

	if (text)
		return twin_toml_parse(name, text, ret, err);
	if (!twin_is_path(name))
		return takt_err_set(err, -TAKT_E_NOT_FOUND,
				    "no board '%s'; `takt-twin list` shows all, a file's name "
				    "ends in .toml",
				    name);
	snprintf(path, sizeof(path), "%.*s%s",
		 *name != '/' && slash ? (int)(slash - beside) + 1 : 0, beside ? beside : "", name);
	return twin_toml_read(path, ret, err);
}

int twin_board_load(const char *name, const char *beside, struct twin_board *ret,
		    struct takt_err *err)
{
	TAKT_CLEANUP(twin_tomlp) struct twin_toml *toml = NULL;
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	int rc = open_board(name, beside, &toml, err);

	if (rc == 0)
		rc = twin_board_from(toml, ret, err);
	if (rc == 0)
		snprintf(ret->id, sizeof(ret->id), "%.*s", (int)strcspn(base, "."), base);
	return rc;
}
