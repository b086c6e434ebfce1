/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt-twin board: check a board file, list its keys, or start one from what `nvidia-smi -q -x`
 * printed on a real board. A capture has names, limits, thresholds and clock lists; what it cannot
 * have (how power follows the clock, the heat sink) is written down as a GUESS in proportion to the
 * power limit, for whoever knows better.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "takt_twin.h"
#include "twin_board_file.h"

enum {
	MAX_CAPTURE = 8 << 20
};

/* A part of the capture's text: what stands between a tag and its end. */
struct part {
	const char *from, *to;
};

/* What stands in the first <name> inside; empty and NULL if there is none. Elements of one name are
 * never nested in these files. */
static struct part inside(struct part in, const char *name, const char **ret_after)
{
	char open[80], close[80];
	const char *from, *to;

	snprintf(open, sizeof(open), "<%s", name);
	snprintf(close, sizeof(close), "</%s>", name);
	for (from = in.from; from && from < in.to; from++) {
		from = strstr(from, open);
		if (!from || from >= in.to)
			break;
		if (from[strlen(open)] != '>' && from[strlen(open)] != ' ')
			continue;
		from = strchr(from, '>');
		to = from ? strstr(from, close) : NULL;
		if (!to || to > in.to)
			break;
		if (ret_after)
			*ret_after = to;
		return (struct part){from + 1, to};
	}
	return (struct part){NULL, NULL};
}

/* The text at a path as "clocks/sm_clock"; "" for what is missing or not known to the board. */
static void text_at(struct part gpu, const char *path, char *ret, size_t size)
{
	char name[80];

	while (*path) {
		size_t n = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)n, path);
		gpu = inside(gpu, name, NULL);
		path += n + (path[n] == '/');
	}
	snprintf(ret, size, "%.*s", gpu.from ? (int)(gpu.to - gpu.from) : 0,
		 gpu.from ? gpu.from : "");
	if (strcmp(ret, "N/A") == 0 || strncmp(ret, "Requested", 9) == 0)
		*ret = '\0';
	/* it goes between quotes */
	for (char *c = ret; *c; c++) {
		if (*c == '"' || *c == '\\' || *c == '\n')
			*c = ' ';
	}
}

static bool has(struct part gpu, const char *path)
{
	char text[96];

	text_at(gpu, path, text, sizeof(text));
	return *text != '\0';
}

static double number_at(struct part gpu, const char *path, double otherwise)
{
	char text[96], *end;
	double value;

	text_at(gpu, path, text, sizeof(text));
	value = strtod(text, &end);
	return end != text ? value : otherwise;
}

static void put_words(FILE *out, struct part gpu, const char *key, const char *path,
		      const char *otherwise)
{
	char text[64];

	text_at(gpu, path, text, sizeof(text));
	fprintf(out, "%s = \"%s\"%s\n", key, *text ? text : otherwise, *text ? "" : "\t# GUESS");
}

static void put_number(FILE *out, struct part gpu, const char *key, const char *path,
		       long otherwise)
{
	bool there = has(gpu, path);

	fprintf(out, "%s = %ld%s\n", key, there ? (long)(number_at(gpu, path, 0) + 0.5) : otherwise,
		there ? "" : "\t# GUESS");
}

static const struct {
	const char *name;
	int arch, major, minor;
} architectures[] = {
	{"Volta", 5, 7, 0}, {"Turing", 6, 7, 5}, {"Ampere", 7, 8, 0},
	{"Ada", 8, 8, 9},   {"Hopper", 9, 9, 0}, {"Blackwell", 10, 10, 0},
};

static void put_architecture(FILE *out, struct part gpu)
{
	char name[64];
	size_t i = 0;

	text_at(gpu, "product_architecture", name, sizeof(name));
	while (i + 1 < TAKT_ARRAY_LEN(architectures) &&
	       strncmp(name, architectures[i].name, strlen(architectures[i].name)) != 0)
		i++;
	fprintf(out, "arch = %d\ncompute = [%d, %d]\t# GUESS from the architecture\n",
		architectures[i].arch, architectures[i].major, architectures[i].minor);
	fprintf(out, "cores = 1\t# GUESS: not in a capture\nbus_width = 64\t# GUESS: not in a "
		     "capture\n");
}

static void put_identity(FILE *out, struct part gpu)
{
	char brand[32];

	put_words(out, gpu, "name", "product_name", "unknown");
	text_at(gpu, "product_brand", brand, sizeof(brand));
	fprintf(out, "brand = \"%s\"\n", strcmp(brand, "GeForce") == 0 ? "GEFORCE" : "NVIDIA");
	put_architecture(out, gpu);
	put_words(out, gpu, "part", "board_part_number", "unknown");
	put_words(out, gpu, "vbios", "vbios_version", "unknown");
	put_words(out, gpu, "inforom", "inforom_version/img_version", "unknown");
	put_words(out, gpu, "oem", "inforom_version/oem_object", "unknown");
	put_words(out, gpu, "ecc", "inforom_version/ecc_object", "unknown");
}

static void put_bus(FILE *out, struct part gpu)
{
	char id[32], subsystem[32];

	text_at(gpu, "pci/pci_device_id", id, sizeof(id));
	text_at(gpu, "pci/pci_sub_system_id", subsystem, sizeof(subsystem));
	fprintf(out, "pci_device = %s%s\n", strncmp(id, "0x", 2) == 0 ? "" : "0x", *id ? id : "0");
	fprintf(out, "pci_subsystem = %s%s\n", strncmp(subsystem, "0x", 2) == 0 ? "" : "0x",
		*subsystem ? subsystem : "0");
	put_number(out, gpu, "pcie_gen", "pci/pci_gpu_link_info/pcie_gen/max_link_gen", 4);
	put_number(out, gpu, "pcie_width", "pci/pci_gpu_link_info/link_widths/max_link_width", 16);
	put_number(out, gpu, "memory_mib", "fb_memory_usage/total", 8192);
	put_number(out, gpu, "reserved_mib", "fb_memory_usage/reserved", 256);
	put_number(out, gpu, "bar1_mib", "bar1_memory_usage/total", 256);
}

/* Features that can be seen by what is answered. */
static void put_features(FILE *out, struct part gpu)
{
	static const struct {
		const char *feature, *path;
	} seen[] = {
		{"row_remap", "remapped_rows/remapped_row_corr"},
		{"retired_pages", "retired_pages/double_bit_retirement/retired_count"},
		{"t_limit", "temperature/gpu_temp_tlimit"},
		{"power_average", "gpu_power_readings/average_power_draw"},
		{"mig", "mig_mode/current_mig"},
		{"fabric", "fabric/state"},
		{"sram_status", "ecc_errors/aggregate_uncorrectable_sram_sources/sram_l2"},
		{"jpeg_ofa", "utilization/jpeg_util"},
		{"gsp", "gsp_firmware_version"},
		{"memory_temp", "temperature/memory_temp"},
		{"memory_power", "gpu_memory_power_readings/average_power_draw"},
		{"ecc", "ecc_mode/current_ecc"},
		{"serial", "serial"},
		{"memory_max", "temperature/gpu_temp_max_mem_threshold"},
	};
	const char *gap = "";

	if (has(gpu, "remapped_rows/row_remapper_histogram/row_remapper_histogram_max"))
		put_number(out, gpu, "remap_banks",
			   "remapped_rows/row_remapper_histogram/row_remapper_histogram_max", 0);
	else if (has(gpu, "remapped_rows/remapped_row_corr"))
		fprintf(out, "remap_banks = 640\t# GUESS\n");
	fprintf(out, "features = [");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(seen); i++) {
		if (!has(gpu, seen[i].path))
			continue;
		fprintf(out, "%s\"%s\"", gap, seen[i].feature);
		gap = ", ";
	}
	fprintf(out, "]\n");
}

struct lists {
	uint32_t memory[TWIN_MAX_MEMORY_CLOCKS], sm_max[TWIN_MAX_MEMORY_CLOCKS], memory_count;
	uint32_t sm[TWIN_MAX_CLOCKS], sm_count; /* of the first memory clock, descending */
};

static void read_sm(struct part block, struct lists *lists)
{
	bool first = lists->memory_count == 0;
	struct part clock;

	for (unsigned n = 0; (clock = inside(block, "supported_graphics_clock", &block.from)).from;
	     n++) {
		uint32_t mhz = (uint32_t)strtoul(clock.from, NULL, 10);
		if (n == 0)
			lists->sm_max[lists->memory_count] = mhz;
		if (first && lists->sm_count < TWIN_MAX_CLOCKS)
			lists->sm[lists->sm_count++] = mhz;
	}
}

static void read_clocks(struct part gpu, struct lists *ret)
{
	struct part all = inside(gpu, "supported_clocks", NULL), block;

	memset(ret, 0, sizeof(*ret));
	while (all.from && ret->memory_count < TWIN_MAX_MEMORY_CLOCKS &&
	       (block = inside(all, "supported_mem_clock", &all.from)).from) {
		ret->memory[ret->memory_count] = (uint32_t)number_at(block, "value", 0);
		read_sm(block, ret);
		ret->memory_count++;
	}
}

static void put_list(FILE *out, const char *key, const uint32_t *values, uint32_t count)
{
	fprintf(out, "%s = [", key);
	for (uint32_t i = 0; i < count; i++)
		fprintf(out, "%s%u", i ? ", " : "", values[i]);
	fprintf(out, "]\n");
}

static int put_clocks(FILE *out, struct part gpu, struct takt_err *err)
{
	uint32_t rising[TWIN_MAX_CLOCKS];
	struct lists lists;
	long video;

	read_clocks(gpu, &lists);
	if (lists.sm_count < 2)
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "the capture has no <supported_clocks>: make it with "
				    "`nvidia-smi -q -x` and nothing left out");
	for (uint32_t i = 0; i < lists.sm_count; i++)
		rising[i] = lists.sm[lists.sm_count - 1 - i];
	fprintf(out, "\n[clocks]\n");
	put_list(out, "memory", lists.memory, lists.memory_count);
	put_list(out, "sm_max", lists.sm_max, lists.memory_count);
	put_list(out, "sm", rising, lists.sm_count);
	fprintf(out, "idle = %u\t# GUESS: the lowest\n", rising[0]);
	put_number(out, gpu, "application", "default_applications_clocks/graphics_clock",
		   (long)lists.sm[0]);
	fprintf(out, "idle_memory = %u\t# GUESS: the lowest\n",
		lists.memory[lists.memory_count - 1]);
	video = (long)number_at(gpu, "max_clocks/video_clock", 1000);
	fprintf(out, "video = [%ld, %ld]\t# first: GUESS\n", video / 2, video);
	fprintf(out, "idle_pstate = %s\t# GUESS\nbusy_pstate = 0\t# GUESS\n",
		lists.memory_count > 1 ? "8" : "0");
	return 0;
}

/* The model's own numbers, in proportion to the default limit as on boards that are known. */
static void put_model(FILE *out, struct part gpu)
{
	double limit = number_at(gpu, "gpu_power_readings/default_power_limit", 250);
	double idle = number_at(gpu, "gpu_power_readings/instant_power_draw", limit / 10);

	fprintf(out, "\n[power]\n");
	fprintf(out, "min = %.0f\n", number_at(gpu, "gpu_power_readings/min_power_limit", 1) * 1e3);
	fprintf(out, "default = %.0f\nmax = %.0f\n", limit * 1e3,
		number_at(gpu, "gpu_power_readings/max_power_limit", limit) * 1e3);
	fprintf(out, "idle = %.0f\t# as in the capture: right if it was at rest\n", idle * 1e3);
	fprintf(out, "held = %.0f\t# GUESS\ndynamic = %.0f\t# GUESS\n", limit * 60, limit * 800);
	fprintf(out, "memory = %.0f\t# GUESS\nmemory_idle = %.0f\n", limit * 130,
		number_at(gpu, "gpu_memory_power_readings/average_power_draw", 0) * 1e3);
	fprintf(out, "leak_per_k = %.0f\t# GUESS\n", limit * 0.3);
	fprintf(out, "\n[voltage]\nslope_permille = 800\t# GUESS\nfloor_permille = 820\t# GUESS\n");
}

static void put_thermal(FILE *out, struct part gpu)
{
	static const char *const margins[] = {
		"temperature/gpu_temp_max_tlimit_threshold",
		"temperature/gpu_temp_slow_tlimit_threshold",
		"temperature/gpu_temp_max_mem_tlimit_threshold",
		"temperature/gpu_temp_max_gpu_tlimit_threshold",
	};
	double now = number_at(gpu, "temperature/gpu_temp", 30);
	double max = number_at(gpu, "temperature/gpu_temp_max_gpu_threshold",
			       now + number_at(gpu, "temperature/gpu_temp_tlimit", 55));
	double limit = number_at(gpu, "gpu_power_readings/default_power_limit", 250);

	fprintf(out, "\n[thermal]\nambient_c = 25\t# GUESS\nk_per_kw = %.0f\t# GUESS\n",
		40000 / limit);
	fprintf(out, "tau_ms = 40000\t# GUESS\ngpu_max_c = %.0f\n", max);
	fprintf(out, "slowdown_c = %.0f\nshutdown_c = %.0f\n",
		number_at(gpu, "temperature/gpu_temp_slow_threshold",
			  max - number_at(gpu, margins[1], -2)),
		number_at(gpu, "temperature/gpu_temp_max_threshold",
			  max - number_at(gpu, margins[0], -5)));
	if (has(gpu, "temperature/gpu_temp_max_mem_threshold"))
		put_number(out, gpu, "memory_max_c", "temperature/gpu_temp_max_mem_threshold", 95);
	if (has(gpu, "temperature/memory_temp"))
		fprintf(out, "memory_temp = [1000, %.0f]\t# difference as in the capture\n",
			number_at(gpu, "temperature/memory_temp", now) > now
				? number_at(gpu, "temperature/memory_temp", now) - now
				: 0);
	if (has(gpu, "temperature/gpu_temp_tlimit"))
		fprintf(out, "t_limit = [%.0f, %.0f, %.0f, %.0f]\n", number_at(gpu, margins[0], -5),
			number_at(gpu, margins[1], -2), number_at(gpu, margins[2], 0),
			number_at(gpu, margins[3], 0));
	if (has(gpu, "fan_speed"))
		fprintf(out,
			"fans = 1\t# GUESS\nfan_min_percent = 30\t# GUESS\n"
			"fan_start_c = 40\t# GUESS\nfan_k_per_kw = %.0f\t# GUESS\n",
			120000 / limit);
}

static int read_capture(const char *path, char **ret, struct takt_err *err)
{
	char *text = takt_zalloc(MAX_CAPTURE + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = -1;

	while (text && fd >= 0 && used < MAX_CAPTURE &&
	       (n = read(fd, text + used, MAX_CAPTURE - used)) > 0)
		used += (size_t)n;
	n = text ? n < 0 ? -errno : 0 : -ENOMEM;
	if (fd >= 0)
		close(fd);
	if (n < 0) {
		takt_free(text);
		return takt_err_set(err, (int)n, "read '%s'", path);
	}
	*ret = text;
	return 0;
}

static int from_capture(const char *path, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	struct part gpu;
	int rc = read_capture(path, &text, err);

	if (rc < 0)
		return rc;
	gpu = inside((struct part){text, text + strlen(text)}, "gpu", NULL);
	if (!gpu.from)
		return takt_err_set(
			err, -TAKT_E_CORRUPT,
			"'%s' has no <gpu>: it has to be what `nvidia-smi -q -x` prints", path);
	printf("# Started by `takt-twin board --from` from a capture of a real board. GUESS marks "
	       "what no capture has.\n\n");
	put_identity(stdout, gpu);
	put_bus(stdout, gpu);
	put_features(stdout, gpu);
	rc = put_clocks(stdout, gpu, err);
	if (rc < 0)
		return rc;
	put_model(stdout, gpu);
	put_thermal(stdout, gpu);
	printf("\n[noise]\npower = [2, 25]\t# GUESS\ntemp = 250\t# GUESS\nclock = 300\t# GUESS\n");
	return 0;
}

static int check_board(const char *name, struct takt_err *err)
{
	struct twin_board board;
	int rc = twin_board_load(name, NULL, &board, err);

	if (rc < 0)
		return rc;
	printf("%s: %s, %u MiB, SM %u to %u MHz in %u steps, limit %u to %u W\n", board.id,
	       board.name, board.memory_mib, board.sm_mhz[0], board.sm_mhz[board.clock_count - 1],
	       board.clock_count, board.power_min_mw / 1000, board.power_max_mw / 1000);
	return 0;
}

static int run_board(int argc, char **argv, struct takt_err *err)
{
	static const struct option known[] = {
		{"from", required_argument, NULL, 'f'}, {"keys", no_argument, NULL, 'k'}, {0}};
	const char *capture = NULL;
	bool keys = false;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'f')
			capture = optarg;
		else if (c == 'k')
			keys = true;
		else
			return twin_bad_option(&twin_verb_board, argv, err);
	}
	if ((capture != NULL) + keys + (argc - optind) != 1)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say one of: a board or its file, --from CAPTURE, --keys");
	if (keys)
		twin_board_print_keys(stdout);
	if (capture)
		return from_capture(capture, err);
	return keys ? 0 : check_board(argv[optind], err);
}

const struct twin_verb twin_verb_board = {
	.name = "board",
	.usage = "BOARD|FILE.toml | --from CAPTURE.xml | --keys",
	.summary = "Check a board file, or start one from a capture of a real board",
	.help = "  --from FILE  print a board file made from what `nvidia-smi -q -x` printed\n"
		"  --keys       what a board file may contain\n\n"
		"  nvidia-smi -q -x >mine.xml; takt-twin board --from mine.xml >mine.toml\n",
	.run = run_board,
};
