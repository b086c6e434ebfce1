/* SPDX-License-Identifier: Apache-2.0 */
/* The board of a capture: see twin_from.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/str.h"
#include "twin_board_file.h"
#include "twin_from.h"

/* "" for what is missing. */
static const char *text_of(const struct twin_from *from, const char *name)
{
	const char *text = twin_capture_text(from->gpu, name);

	return text ? text : "";
}

static bool has(const struct twin_from *from, const char *name)
{
	return twin_capture_text(from->gpu, name) != NULL;
}

static double number_of(const struct twin_from *from, const char *name, double otherwise)
{
	const char *text = text_of(from, name);
	char *end;
	double value = strtod(text, &end);

	return end != text ? value : otherwise;
}

void twin_from_note(struct twin_from *from, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("takt-twin: ", from->notes);
	vfprintf(from->notes, fmt, args);
	va_end(args);
	fputc('\n', from->notes);
}

void twin_from_source(const struct twin_from *from, bool is_like)
{
	if (is_like)
		fprintf(from->out, "\t# as %s\n", from->like.id);
	else
		fprintf(from->out, "\t# GUESS\n");
}

/* What no capture has. */
static void put_guess(const struct twin_from *from, const char *key, double like, double guess)
{
	fprintf(from->out, "%s = %.0f", key, from->has_like ? like : guess);
	twin_from_source(from, from->has_like);
}

static void put_pair(const struct twin_from *from, const char *key, uint32_t a, uint32_t b,
		     bool is_like)
{
	fprintf(from->out, "%s = [%u, %u]", key, a, b);
	twin_from_source(from, is_like);
}

static void put_number(const struct twin_from *from, const char *key, const char *name, double like,
		       double guess)
{
	if (has(from, name))
		fprintf(from->out, "%s = %.0f\n", key, number_of(from, name, guess));
	else
		put_guess(from, key, like, guess);
}

/* Between quotes, of `size - 1` characters at most. */
static void put_words(struct twin_from *from, const char *key, const char *name, const char *like,
		      size_t size)
{
	bool there = has(from, name), is_like = !there && from->has_like && *like;
	const char *text = there ? text_of(from, name) : is_like ? like : "unknown";

	if (strlen(text) >= size)
		twin_from_note(from, "%s is cut to %zu characters: '%s'", key, size - 1, text);
	fprintf(from->out, "%s = \"", key);
	for (size_t i = 0; text[i] && i < size - 1; i++)
		fputc(text[i] == '"' || text[i] == '\\' ? ' ' : text[i], from->out);
	fputc('"', from->out);
	if (there)
		fputc('\n', from->out);
	else
		twin_from_source(from, is_like);
}

static const struct {
	const char *name;
	uint32_t arch, major, minor, nvlinks, nvlink_version, nvlink_mbps;
	uint32_t step_x10; /* between SM clocks */
} architectures[] = {
	{"Volta", 5, 7, 0, 6, 2, 25781, 75},	{"Turing", 6, 7, 5, 2, 2, 25781, 150},
	{"Ampere", 7, 8, 0, 12, 3, 25000, 150}, {"Ada", 8, 8, 9, 18, 4, 26562, 150},
	{"Hopper", 9, 9, 0, 18, 4, 26562, 150}, {"Blackwell", 10, 10, 0, 18, 5, 53125, 75},
};

/* The newest, if it is none that is known. */
static size_t find_architecture(const struct twin_from *from)
{
	const char *name = text_of(from, "product_architecture");
	size_t i = 0;

	while (i + 1 < TAKT_ARRAY_LEN(architectures) &&
	       (from->has_like
			? architectures[i].arch != from->like.arch
			: strncmp(name, architectures[i].name, strlen(architectures[i].name)) != 0))
		i++;
	return i;
}

static void put_identity(struct twin_from *from)
{
	const struct twin_board *like = &from->like;
	const char *brand = text_of(from, "product_brand");
	const char *architecture = text_of(from, "product_architecture");
	size_t arch = find_architecture(from);

	put_words(from, "name", "product_name", like->name, sizeof(like->name));
	fprintf(from->out, "brand = \"%s\"\n",
		strcmp(brand, "GeForce") == 0 ? "GEFORCE"
		: strcmp(brand, "Tesla") == 0 ? "TESLA"
					      : "NVIDIA");
	if (*brand && strcmp(brand, "NVIDIA") != 0 && strcmp(brand, "GeForce") != 0 &&
	    strcmp(brand, "Tesla") != 0)
		twin_from_note(from, "brand '%s' becomes NVIDIA", brand);
	if (!from->has_like &&
	    strncmp(architecture, architectures[arch].name, strlen(architectures[arch].name)) != 0)
		twin_from_note(from, "architecture '%s' is not known and becomes %s", architecture,
			       architectures[arch].name);
	fprintf(from->out, "arch = %u\n", architectures[arch].arch);
	put_pair(from, "compute", from->has_like ? like->compute_major : architectures[arch].major,
		 from->has_like ? like->compute_minor : architectures[arch].minor, from->has_like);
	put_guess(from, "cores", like->cores, 1);
	put_guess(from, "bus_width", like->bus_width, 64);
	put_words(from, "part", "board_part_number", like->part, sizeof(like->part));
	put_words(from, "vbios", "vbios_version", like->vbios, sizeof(like->vbios));
	put_words(from, "inforom", "inforom_version/img_version", like->inforom,
		  sizeof(like->inforom));
	put_words(from, "oem", "inforom_version/oem_object", like->oem, sizeof(like->oem));
	put_words(from, "ecc", "inforom_version/ecc_object", like->ecc, sizeof(like->ecc));
}

static void put_bus(struct twin_from *from)
{
	const struct twin_board *like = &from->like;

	/* both as "233010DE" and as "0x233010DE" */
	fprintf(from->out, "pci_device = 0x%08lX\npci_subsystem = 0x%08lX\n",
		strtoul(text_of(from, "pci/pci_device_id"), NULL, 16) & UINT32_MAX,
		strtoul(text_of(from, "pci/pci_sub_system_id"), NULL, 16) & UINT32_MAX);
	put_number(from, "pcie_gen", "pci/pci_gpu_link_info/pcie_gen/max_link_gen", like->pcie_gen,
		   4);
	put_number(from, "pcie_width", "pci/pci_gpu_link_info/link_widths/max_link_width",
		   like->pcie_width, 16);
	put_number(from, "memory_mib", "fb_memory_usage/total", like->memory_mib, 8192);
	put_number(from, "reserved_mib", "fb_memory_usage/reserved", like->reserved_mib, 256);
	put_number(from, "bar1_mib", "bar1_memory_usage/total", like->bar1_mib, 256);
}

static uint32_t count_of(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

/* NVLinks, and those to a CPU. */
static void put_links(struct twin_from *from)
{
	const struct twin_board *like = &from->like;
	size_t arch = find_architecture(from);

	if (from->nvlinks_said)
		fprintf(from->out, "nvlinks = %u\n", from->nvlinks);
	else if (from->nvlinks)
		put_guess(from, "nvlinks", from->nvlinks, from->nvlinks);
	if (from->place->nvlinks_off)
		twin_from_note(from,
			       "%u NVLinks of GPU 0 are inactive there: links of a simulated "
			       "machine begin well; `takt-twin fault 0 link-down=N`",
			       count_of(from->place->nvlinks_off));
	if (from->nvlinks) {
		bool linked = from->has_like && like->nvlinks;
		fprintf(from->out, "nvlink_version = %u",
			linked ? like->nvlink_version : architectures[arch].nvlink_version);
		twin_from_source(from, linked);
		if (from->place->nvlink_mbps)
			fprintf(from->out, "nvlink_mbps = %u\n", from->place->nvlink_mbps);
		else {
			fprintf(from->out, "nvlink_mbps = %u",
				linked ? like->nvlink_mbps : architectures[arch].nvlink_mbps);
			twin_from_source(from, linked);
		}
		if (like->nvswitch_device) {
			fprintf(from->out, "nvswitch_device = 0x%08X", like->nvswitch_device);
			twin_from_source(from, true);
		}
	}
	if (from->place->c2c_links)
		fprintf(from->out, "c2c_links = %u\n", count_of(from->place->c2c_links));
	else if (strcmp(text_of(from, "c2c_mode"), "Enabled") == 0)
		fprintf(from->out, "c2c_links = 1\t# GUESS: `nvidia-smi c2c -s` counts them\n");
}

static void find_links(struct twin_from *from)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < TWIN_MAX_GPUS; i++)
		most = from->place->links[i] > most ? from->place->links[i] : most;
	from->nvlinks = count_of(from->place->nvlinks | from->place->nvlinks_off);
	from->nvlinks_said = from->nvlinks != 0;
	if (from->nvlinks_said)
		return;
	if (from->has_like || most)
		from->nvlinks = most > from->like.nvlinks ? most : from->like.nvlinks;
	else if (has(from, "fabric/state"))
		from->nvlinks = architectures[find_architecture(from)].nvlinks;
}

/* Features that can be seen by what is answered. */
static const struct {
	uint32_t feature;
	const char *name;
} seen[] = {
	{TWIN_HAS_ROW_REMAP, "remapped_rows/remapped_row_corr"},
	{TWIN_HAS_RETIRED_PAGES, "retired_pages/double_bit_retirement/retired_count"},
	{TWIN_HAS_T_LIMIT, "temperature/gpu_temp_tlimit"},
	{TWIN_HAS_POWER_AVERAGE, "gpu_power_readings/average_power_draw"},
	{TWIN_HAS_MIG, "mig_mode/current_mig"},
	{TWIN_HAS_FABRIC, "fabric/state"},
	{TWIN_HAS_SRAM_STATUS, "ecc_errors/aggregate_uncorrectable_sram_sources/sram_l2"},
	{TWIN_HAS_JPEG_OFA, "utilization/jpeg_util"},
	{TWIN_HAS_GSP, "gsp_firmware_version"},
	{TWIN_HAS_MEMORY_TEMP, "temperature/memory_temp"},
	{TWIN_HAS_MEMORY_POWER, "gpu_memory_power_readings/average_power_draw"},
	{TWIN_HAS_ECC, "ecc_mode/current_ecc"},
	{TWIN_HAS_SERIAL, "serial"},
	{TWIN_HAS_MEMORY_MAX, "temperature/gpu_temp_max_mem_threshold"},
};

/* A cut GPU does not answer for the whole of itself. */
static bool is_cut(const struct twin_from *from)
{
	return strcmp(text_of(from, "mig_mode/current_mig"), "Enabled") == 0;
}

static uint32_t features_of(const struct twin_from *from)
{
	const char *gen = "pci/pci_gpu_link_info/pcie_gen/current_link_gen";
	const char *max_gen = "pci/pci_gpu_link_info/pcie_gen/max_link_gen";
	uint32_t features = from->like.features & (TWIN_HAS_MEMORY_LOCK | TWIN_HAS_CONF_COMPUTE);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(seen); i++)
		features |= has(from, seen[i].name) ? seen[i].feature : 0;
	if (is_cut(from))
		features |= from->like.features & (TWIN_HAS_ROW_REMAP | TWIN_HAS_JPEG_OFA);
	if (from->rests ? number_of(from, gen, 1) < number_of(from, max_gen, 1)
			: from->like.features & TWIN_HAS_PCIE_REST)
		features |= TWIN_HAS_PCIE_REST;
	return features;
}

static void put_features(struct twin_from *from)
{
	uint32_t features = features_of(from);
	const char *gap = "";

	if (features & TWIN_HAS_ROW_REMAP)
		put_number(from, "remap_banks",
			   "remapped_rows/row_remapper_histogram/row_remapper_histogram_max",
			   from->like.remap_banks, 640);
	fprintf(from->out, "features = [");
	for (unsigned i = 0; twin_board_feature(i); i++) {
		if (!(features >> i & 1))
			continue;
		fprintf(from->out, "%s\"%s\"", gap, twin_board_feature(i));
		gap = ", ";
	}
	fprintf(from->out, "]\n");
	if (strcmp(text_of(from, "ecc_mode/current_ecc"), "Disabled") == 0)
		twin_from_note(from, "ECC is off there: simulated boards begin with it on");
	if (is_cut(from) && !from->has_like)
		twin_from_note(from, "MIG is on: readings that a cut GPU does not answer are taken "
				     "as not there");
}

enum list_source {
	SAID,
	LIKE,
	GUESS
};

struct lists {
	enum list_source source;
	uint32_t memory[TWIN_MAX_MEMORY_CLOCKS], sm_max[TWIN_MAX_MEMORY_CLOCKS], memory_count;
	uint32_t sm[TWIN_MAX_CLOCKS], sm_count; /* of the first memory clock, descending */
	uint32_t here;				/* SM clocks of the memory clock being read */
	bool odd; /* a later list is not the first one from some clock on down */
};

static int add_memory(struct lists *lists, uint32_t mhz, struct takt_err *err)
{
	if (lists->memory_count == TWIN_MAX_MEMORY_CLOCKS)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "the capture has more than the %d memory clocks of a board",
				    TWIN_MAX_MEMORY_CLOCKS);
	lists->memory[lists->memory_count++] = mhz;
	lists->here = 0;
	return 0;
}

static int add_sm(struct lists *lists, uint32_t mhz, struct takt_err *err)
{
	if (lists->memory_count == 0)
		return 0;
	if (lists->here++ == 0)
		lists->sm_max[lists->memory_count - 1] = mhz;
	if (lists->memory_count > 1) {
		uint32_t i = 0;
		while (i < lists->sm_count && lists->sm[i] != mhz)
			i++;
		lists->odd |= i == lists->sm_count;
		return 0;
	}
	if (lists->sm_count == TWIN_MAX_CLOCKS)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "the capture has more than the %d SM clocks of a board",
				    TWIN_MAX_CLOCKS);
	lists->sm[lists->sm_count++] = mhz;
	return 0;
}

static int read_lists(const struct twin_from *from, struct lists *ret, struct takt_err *err)
{
	int rc = 0;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t i = 0; rc == 0 && i < from->gpu->count; i++) {
		const struct twin_capture_item *item = &from->gpu->items[i];
		uint32_t mhz = (uint32_t)strtoul(item->value, NULL, 10);

		if (strcmp(item->name, "supported_clocks/supported_mem_clock/value") == 0)
			rc = add_memory(ret, mhz, err);
		else if (strcmp(item->name, "supported_clocks/supported_mem_clock/"
					    "supported_graphics_clock") == 0)
			rc = add_sm(ret, mhz, err);
	}
	return rc;
}

/* Where no list was printed, which the text of `-q` alone does not have: those of the board built
 * in if it has that highest clock, else from the highest clock down in steps that are usual. */
static int guess_lists(struct twin_from *from, struct lists *ret, struct takt_err *err)
{
	uint32_t top = (uint32_t)number_of(from, "max_clocks/sm_clock", 0);
	uint32_t memory = (uint32_t)number_of(from, "max_clocks/mem_clock", 0);
	uint32_t rest = (uint32_t)number_of(from, "clocks/mem_clock", memory);
	uint32_t low = (uint32_t)number_of(from, "clocks/sm_clock", 210);
	uint32_t step_x10 = architectures[find_architecture(from)].step_x10;
	const struct twin_board *like = &from->like;
	bool is_like = from->has_like && like->sm_mhz[like->clock_count - 1] == top &&
		       like->memory[0].mhz == memory;

	if (!top || !memory)
		return takt_err_set(
			err, -TAKT_E_CORRUPT,
			"the capture has neither supported clocks nor highest ones: make it "
			"with `nvidia-smi -q -x`, and nothing left out");
	twin_from_note(from,
		       "SM clocks are %s: the text of `nvidia-smi -q` has no list of them; `-q -x` "
		       "or another --from of `-q -d SUPPORTED_CLOCKS` has",
		       is_like ? "those of its kind" : "a GUESS");
	*ret = (struct lists){.source = is_like ? LIKE : GUESS};
	for (uint32_t i = 0; is_like && i < like->clock_count; i++)
		ret->sm[ret->sm_count++] = like->sm_mhz[like->clock_count - 1 - i];
	for (uint32_t i = 0; is_like && i < like->memory_count; i++) {
		ret->memory[ret->memory_count] = like->memory[i].mhz;
		ret->sm_max[ret->memory_count++] = like->memory[i].sm_max_mhz;
	}
	if (is_like)
		return 0;
	low = from->rests && low < top ? low : top > 210 ? 210 : top / 2;
	for (uint32_t n = 0; n < TWIN_MAX_CLOCKS && top * 10 >= low * 10 + n * step_x10; n++)
		ret->sm[ret->sm_count++] = (top * 10 - n * step_x10) / 10;
	if (ret->sm[ret->sm_count - 1] > low && ret->sm_count < TWIN_MAX_CLOCKS)
		ret->sm[ret->sm_count++] = low;
	ret->memory[0] = memory;
	ret->sm_max[0] = top;
	ret->memory_count = 1;
	if (from->rests && rest < memory) {
		ret->memory[1] = rest;
		ret->sm_max[1] = top;
		ret->memory_count = 2;
	}
	return 0;
}

static void put_list(const struct twin_from *from, const char *key, const uint32_t *values,
		     uint32_t count, enum list_source source)
{
	fprintf(from->out, "%s = [", key);
	for (uint32_t i = 0; i < count; i++)
		fprintf(from->out, "%s%u", i ? ", " : "", values[i]);
	fprintf(from->out, "]");
	if (source == SAID)
		fputc('\n', from->out);
	else
		twin_from_source(from, source == LIKE);
}

static bool is_in(uint32_t value, const uint32_t *values, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (values[i] == value)
			return true;
	}
	return false;
}

/* A clock at rest: what was read of one that rested, else that of the board built in, else the
 * lowest. */
static void put_rest(struct twin_from *from, const char *key, const char *name, uint32_t like,
		     const uint32_t *falling, uint32_t count)
{
	uint32_t now = (uint32_t)number_of(from, name, 0);

	if (from->rests && is_in(now, falling, count)) {
		fprintf(from->out, "%s = %u\n", key, now);
		return;
	}
	fprintf(from->out, "%s = %u", key, is_in(like, falling, count) ? like : falling[count - 1]);
	twin_from_source(from, is_in(like, falling, count));
}

static void put_clock_lists(struct twin_from *from, const struct lists *lists)
{
	uint32_t rising[TWIN_MAX_CLOCKS] = {0};

	for (uint32_t i = 0; i < lists->sm_count; i++)
		rising[i] = lists->sm[lists->sm_count - 1 - i];
	fprintf(from->out, "\n[clocks]\n");
	put_list(from, "memory", lists->memory, lists->memory_count, lists->source);
	put_list(from, "sm_max", lists->sm_max, lists->memory_count, lists->source);
	put_list(from, "sm", rising, lists->sm_count, lists->source);
	if (lists->odd)
		twin_from_note(from,
			       "a lower memory clock has SM clocks that the highest has not: they "
			       "are left out");
}

static int put_clocks(struct twin_from *from, struct takt_err *err)
{
	const struct twin_board *like = &from->like;
	uint32_t video = (uint32_t)number_of(from, "max_clocks/video_clock", 1000), application;
	uint32_t video_now = (uint32_t)number_of(from, "clocks/video_clock", 0);
	bool video_seen = from->rests && video_now && video_now <= video;
	struct lists lists;
	int rc = read_lists(from, &lists, err);

	if (rc == 0 && lists.sm_count < 2)
		rc = guess_lists(from, &lists, err);
	if (rc < 0)
		return rc;
	put_clock_lists(from, &lists);
	put_rest(from, "idle", "clocks/sm_clock", like->idle_mhz, lists.sm, lists.sm_count);
	application = (uint32_t)number_of(from, "default_applications_clocks/graphics_clock", 0);
	if (is_in(application, lists.sm, lists.sm_count))
		fprintf(from->out, "application = %u\n", application);
	else
		fprintf(from->out, "application = %u\t# GUESS: the highest\n", lists.sm[0]);
	put_rest(from, "idle_memory", "clocks/mem_clock", like->idle_memory_mhz, lists.memory,
		 lists.memory_count);
	fprintf(from->out, "video = [%u, %u]%s\n", video_seen ? video_now : video / 2, video,
		video_seen ? "" : "\t# first: GUESS");
	if (from->rests && text_of(from, "performance_state")[0] == 'P')
		fprintf(from->out, "idle_pstate = %ld\n",
			strtol(text_of(from, "performance_state") + 1, NULL, 10));
	else
		put_guess(from, "idle_pstate", like->idle_pstate, lists.memory_count > 1 ? 8 : 0);
	put_guess(from, "busy_pstate", like->busy_pstate, 0);
	return 0;
}

/* The model's own numbers: of the board built in, or as on boards that are known; both in
 * proportion to the default limit. */
static void put_power(struct twin_from *from)
{
	const struct twin_board *like = &from->like;
	double limit = number_of(from, "gpu_power_readings/default_power_limit", 250);
	double part = from->has_like ? limit * 1000 / like->power_default_mw : 0;
	double draw = number_of(from, "gpu_power_readings/instant_power_draw", 0);
	double memory = number_of(from, "gpu_memory_power_readings/average_power_draw", 0);
	double module = number_of(from, "module_power_readings/average_power_draw", 0);
	double beside = module - number_of(from, "gpu_power_readings/average_power_draw", draw);

	fprintf(from->out, "\n[power]\nmin = %.0f\ndefault = %.0f\nmax = %.0f\n",
		number_of(from, "gpu_power_readings/min_power_limit", 1) * 1e3, limit * 1e3,
		number_of(from, "gpu_power_readings/max_power_limit", limit) * 1e3);
	if (from->rests && draw > 0)
		fprintf(from->out, "idle = %.0f\n", draw * 1e3);
	else
		put_guess(from, "idle", part * like->idle_mw, limit * 100);
	put_guess(from, "held", part * like->held_mw, limit * 60);
	put_guess(from, "dynamic", part * like->dynamic_mw, limit * 800);
	put_guess(from, "memory", part * like->memory_mw, limit * 130);
	if (from->rests && memory > 0 && memory <= draw)
		fprintf(from->out, "memory_idle = %.0f\n", memory * 1e3);
	else
		put_guess(from, "memory_idle", part * like->memory_idle_mw, 0);
	put_guess(from, "leak_per_k", part * like->leak_mw_per_k, limit * 0.3);
	if (has(from, "module_power_readings/max_power_limit")) {
		fprintf(from->out, "module_rest = %.0f\n", beside > 0 ? beside * 1e3 : 0);
		fprintf(from->out, "module_limit = [%.0f, %.0f, %.0f]\n",
			number_of(from, "module_power_readings/min_power_limit", 0.001) * 1e3,
			number_of(from, "module_power_readings/default_power_limit", 0.001) * 1e3,
			number_of(from, "module_power_readings/max_power_limit", 0.001) * 1e3);
	}
	fprintf(from->out, "\n[voltage]\n");
	put_guess(from, "slope_permille", like->slope_permille, 800);
	put_guess(from, "floor_permille", like->floor_permille, 820);
}

static void put_fans(struct twin_from *from, double limit)
{
	const struct twin_board *like = &from->like;

	if (!has(from, "fan_speed"))
		return;
	if (from->has_like && like->fans) {
		put_guess(from, "fans", like->fans, 1);
		put_guess(from, "fan_min_percent", like->fan_min_percent, 30);
		put_guess(from, "fan_start_c", like->fan_start_c, 40);
		put_guess(from, "fan_k_per_kw", like->fan_k_per_kw, 0);
		return;
	}
	fprintf(from->out,
		"fans = 1\t# GUESS\nfan_min_percent = 30\t# GUESS\n"
		"fan_start_c = 40\t# GUESS\nfan_k_per_kw = %.0f\t# GUESS\n",
		120000 / limit);
}

static void put_thermal(struct twin_from *from)
{
	static const char *const margins[] = {
		"temperature/gpu_temp_max_tlimit_threshold",
		"temperature/gpu_temp_slow_tlimit_threshold",
		"temperature/gpu_temp_max_mem_tlimit_threshold",
		"temperature/gpu_temp_max_gpu_tlimit_threshold",
	};
	const struct twin_board *like = &from->like;
	double now = number_of(from, "temperature/gpu_temp", 30);
	double max = number_of(from, "temperature/gpu_temp_max_gpu_threshold",
			       now + number_of(from, "temperature/gpu_temp_tlimit", 55));
	double limit = number_of(from, "gpu_power_readings/default_power_limit", 250);
	double beyond = number_of(from, "temperature/memory_temp", now) - now;

	fprintf(from->out, "\n[thermal]\n");
	put_guess(from, "ambient_c", like->ambient_c, 25);
	put_guess(from, "k_per_kw", like->k_per_kw, 40000 / limit);
	put_guess(from, "tau_ms", like->tau_ms, 40000);
	fprintf(from->out, "gpu_max_c = %.0f\nslowdown_c = %.0f\nshutdown_c = %.0f\n", max,
		number_of(from, "temperature/gpu_temp_slow_threshold",
			  max - number_of(from, margins[1], -2)),
		number_of(from, "temperature/gpu_temp_max_threshold",
			  max - number_of(from, margins[0], -5)));
	if (has(from, "temperature/gpu_temp_max_mem_threshold"))
		put_number(from, "memory_max_c", "temperature/gpu_temp_max_mem_threshold",
			   like->memory_max_c, 95);
	if (has(from, "temperature/memory_temp") && from->has_like && like->memory_temp_permille)
		put_pair(from, "memory_temp", like->memory_temp_permille, like->memory_temp_plus_c,
			 true);
	else if (has(from, "temperature/memory_temp"))
		fprintf(from->out, "memory_temp = [1000, %.0f]\t# difference as in the capture\n",
			beyond > 0 ? beyond : 0);
	if (has(from, "temperature/gpu_temp_tlimit"))
		fprintf(from->out, "t_limit = [%.0f, %.0f, %.0f, %.0f]\n",
			number_of(from, margins[0], -5), number_of(from, margins[1], -2),
			number_of(from, margins[2], 0), number_of(from, margins[3], 0));
	put_fans(from, limit);
}

static void put_noise(struct twin_from *from)
{
	const struct twin_board *like = &from->like;

	fprintf(from->out, "\n[noise]\n");
	put_pair(from, "power", from->has_like ? like->noise_power_permille[0] : 2,
		 from->has_like ? like->noise_power_permille[1] : 25, from->has_like);
	put_guess(from, "temp", like->noise_temp_mc, 250);
	put_guess(from, "clock", like->noise_clock_permille, 300);
}

/* How it may be cut: no query says it, but that of `nvidia-smi mig -lgip`, which has no numbers of
 * profiles. */
static void put_mig(struct twin_from *from)
{
	const struct twin_board *like = &from->like;

	if (!has(from, "mig_mode/current_mig"))
		return;
	if (!like->mig_count) {
		twin_from_note(from,
			       "how the board may be cut (MIG) is not in a capture, and no board "
			       "of its kind is built in: write [mig] as in "
			       "twin/boards/h100-sxm.toml");
		return;
	}
	fprintf(from->out, "\n[mig]\nprofiles = [");
	twin_from_source(from, true);
	for (uint32_t i = 0; i < like->mig_count; i++) {
		const struct twin_mig_profile *p = &like->mig[i];
		fprintf(from->out, "\t[%u, %u, %u, %u, %u, %u, %u, %u, %u, %u, %u],\n", p->id,
			p->number, p->slices, p->size, p->count, p->multiprocessors, p->copies,
			p->decoders, p->jpegs, p->ofas, p->memory_mib);
	}
	fprintf(from->out, "]\n");
}

/* The board built in with that PCI device id. */
static int find_like(struct twin_from *from, struct takt_err *err)
{
	unsigned long id = strtoul(text_of(from, "pci/pci_device_id"), NULL, 16);

	for (unsigned i = 0; id && !from->has_like && i < twin_board_text_count; i++) {
		struct twin_board board;
		int rc = twin_board_load(twin_board_texts[i].name, NULL, &board, err);

		if (rc < 0)
			return rc;
		if (board.pci_device != id)
			continue;
		from->like = board;
		from->has_like = true;
	}
	return 0;
}

int twin_from_begin(struct twin_from *from, const struct twin_capture *capture, FILE *out,
		    FILE *notes, struct takt_err *err)
{
	static const struct twin_capture_place nowhere = {.numa = -1};
	int rc;

	memset(from, 0, sizeof(*from));
	if (capture->gpu_count == 0)
		return takt_err_set(
			err, -TAKT_E_CORRUPT,
			"no file describes a GPU: one has to be what `nvidia-smi -q` or "
			"`-q -x` printed");
	from->capture = capture;
	from->out = out;
	from->notes = notes;
	from->gpu = &capture->gpus[0];
	from->place = capture->place_count ? &capture->places[0] : &nowhere;
	/* with no kernel, and its clock down: the first second after the driver woke it up it is
	 * not */
	from->rests = strcmp(text_of(from, "clocks_event_reasons/clocks_event_reason_gpu_idle"),
			     "Active") == 0 &&
		      2 * number_of(from, "clocks/sm_clock", 0) <
			      number_of(from, "max_clocks/sm_clock", 0);
	rc = find_like(from, err);
	if (rc == 0)
		find_links(from);
	return rc;
}

int twin_from_board(struct twin_from *from, struct takt_err *err)
{
	int rc;

	put_identity(from);
	put_bus(from);
	put_links(from);
	put_features(from);
	rc = put_clocks(from, err);
	if (rc < 0)
		return rc;
	if (!from->rests)
		twin_from_note(from,
			       "the GPU was awake when it was asked: what it draws at rest is %s",
			       from->has_like ? from->like.id : "a GUESS");
	put_power(from);
	put_thermal(from);
	put_noise(from);
	put_mig(from);
	return 0;
}
