/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_capture.h. Texts are copied and cut up in place. */
#include "twin_capture.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	MAX_PATH = 160,
	MAX_DEPTH = 12,
};

/* Readings that are kept: as today's XML names them, and as the text or an older XML does. */
static const struct {
	const char *name, *other;
} names[] = {
	{"product_name", "Product Name"},
	{"product_brand", "Product Brand"},
	{"product_architecture", "Product Architecture"},
	{"board_part_number", "Board Part Number"},
	{"vbios_version", "VBIOS Version"},
	{"serial", "Serial Number"},
	{"gsp_firmware_version", "GSP Firmware Version"},
	{"c2c_mode", "GPU C2C Mode"},
	{"platformInfo/module_id", "Platform Info/Module Id"},
	{"inforom_version/img_version", "Inforom Version/Image Version"},
	{"inforom_version/oem_object", "Inforom Version/OEM Object"},
	{"inforom_version/ecc_object", "Inforom Version/ECC Object"},
	{"pci/pci_device_id", "PCI/Device Id"},
	{"pci/pci_sub_system_id", "PCI/Sub System Id"},
	{"pci/pci_gpu_link_info/pcie_gen/max_link_gen", "PCI/GPU Link Info/PCIe Generation/Max"},
	{"pci/pci_gpu_link_info/pcie_gen/current_link_gen",
	 "PCI/GPU Link Info/PCIe Generation/Current"},
	{"pci/pci_gpu_link_info/link_widths/max_link_width", "PCI/GPU Link Info/Link Width/Max"},
	{"fb_memory_usage/total", "FB Memory Usage/Total"},
	{"fb_memory_usage/reserved", "FB Memory Usage/Reserved"},
	{"bar1_memory_usage/total", "BAR1 Memory Usage/Total"},
	{"fan_speed", "Fan Speed"},
	{"performance_state", "Performance State"},
	{"clocks_event_reasons/clocks_event_reason_gpu_idle", "Clocks Event Reasons/Idle"},
	{"clocks_event_reasons/clocks_event_reason_gpu_idle", "Clocks Throttle Reasons/Idle"},
	{"clocks_event_reasons/clocks_event_reason_gpu_idle",
	 "clocks_throttle_reasons/clocks_throttle_reason_gpu_idle"},
	{"utilization/jpeg_util", "Utilization/JPEG"},
	{"mig_mode/current_mig", "MIG Mode/Current"},
	{"mig_devices/mig_device/gpu_instance_id", "MIG Device/GPU Instance ID"},
	{"mig_devices/mig_device/compute_instance_id", "MIG Device/Compute Instance ID"},
	{"mig_devices/mig_device/device_attributes/shared/multiprocessor_count",
	 "MIG Device/Device Attributes/Shared/Multiprocessor count"},
	{"mig_devices/mig_device/device_attributes/shared/copy_engine_count",
	 "MIG Device/Device Attributes/Shared/Copy Engine count"},
	{"mig_devices/mig_device/device_attributes/shared/ofa_count",
	 "MIG Device/Device Attributes/Shared/OFA count"},
	{"ecc_mode/current_ecc", "ECC Mode/Current"},
	{"ecc_errors/aggregate_uncorrectable_sram_sources/sram_l2",
	 "ECC Errors/Aggregate Uncorrectable SRAM Sources/SRAM L2"},
	{"retired_pages/double_bit_retirement/retired_count", "Retired Pages/Double Bit ECC"},
	{"remapped_rows/remapped_row_corr", "Remapped Rows/Correctable Error"},
	{"remapped_rows/row_remapper_histogram/row_remapper_histogram_max",
	 "Remapped Rows/Bank Remap Availability Histogram/Max"},
	{"temperature/gpu_temp", "Temperature/GPU Current Temp"},
	{"temperature/gpu_temp_tlimit", "Temperature/GPU T.Limit Temp"},
	{"temperature/gpu_temp_max_threshold", "Temperature/GPU Shutdown Temp"},
	{"temperature/gpu_temp_slow_threshold", "Temperature/GPU Slowdown Temp"},
	{"temperature/gpu_temp_max_gpu_threshold", "Temperature/GPU Max Operating Temp"},
	{"temperature/gpu_temp_max_mem_threshold", "Temperature/Memory Max Operating Temp"},
	{"temperature/gpu_temp_max_tlimit_threshold", "Temperature/GPU Shutdown T.Limit Temp"},
	{"temperature/gpu_temp_slow_tlimit_threshold", "Temperature/GPU Slowdown T.Limit Temp"},
	{"temperature/gpu_temp_max_gpu_tlimit_threshold",
	 "Temperature/GPU Max Operating T.Limit Temp"},
	{"temperature/gpu_temp_max_mem_tlimit_threshold",
	 "Temperature/Memory Max Operating T.Limit Temp"},
	{"temperature/memory_temp", "Temperature/Memory Current Temp"},
	{"gpu_power_readings/average_power_draw", "GPU Power Readings/Average Power Draw"},
	{"gpu_power_readings/instant_power_draw", "GPU Power Readings/Instantaneous Power Draw"},
	{"gpu_power_readings/instant_power_draw", "GPU Power Readings/Power Draw"},
	{"gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw"},
	{"gpu_power_readings/instant_power_draw", "Power Readings/Power Draw"},
	{"gpu_power_readings/instant_power_draw", "power_readings/power_draw"},
	{"gpu_power_readings/default_power_limit", "GPU Power Readings/Default Power Limit"},
	{"gpu_power_readings/default_power_limit", "Power Readings/Default Power Limit"},
	{"gpu_power_readings/default_power_limit", "power_readings/default_power_limit"},
	{"gpu_power_readings/min_power_limit", "GPU Power Readings/Min Power Limit"},
	{"gpu_power_readings/min_power_limit", "Power Readings/Min Power Limit"},
	{"gpu_power_readings/min_power_limit", "power_readings/min_power_limit"},
	{"gpu_power_readings/max_power_limit", "GPU Power Readings/Max Power Limit"},
	{"gpu_power_readings/max_power_limit", "Power Readings/Max Power Limit"},
	{"gpu_power_readings/max_power_limit", "power_readings/max_power_limit"},
	{"gpu_memory_power_readings/average_power_draw",
	 "GPU Memory Power Readings/Average Power Draw"},
	{"module_power_readings/average_power_draw", "Module Power Readings/Average Power Draw"},
	{"module_power_readings/default_power_limit", "Module Power Readings/Default Power Limit"},
	{"module_power_readings/min_power_limit", "Module Power Readings/Min Power Limit"},
	{"module_power_readings/max_power_limit", "Module Power Readings/Max Power Limit"},
	{"clocks/sm_clock", "Clocks/SM"},
	{"clocks/mem_clock", "Clocks/Memory"},
	{"clocks/video_clock", "Clocks/Video"},
	{"default_applications_clocks/graphics_clock", "Default Applications Clocks/Graphics"},
	{"max_clocks/sm_clock", "Max Clocks/SM"},
	{"max_clocks/mem_clock", "Max Clocks/Memory"},
	{"max_clocks/video_clock", "Max Clocks/Video"},
	{"fabric/state", "Fabric/State"},
	{"fabric/cliqueId", "Fabric/CliqueId"},
	{"supported_clocks/supported_mem_clock/value", "Supported Clocks/Memory"},
	{"supported_clocks/supported_mem_clock/supported_graphics_clock",
	 "Supported Clocks/Memory/Graphics"},
};

/* A text being read. */
struct reading {
	struct twin_capture *capture;
	const char *file;
	struct takt_err *err;
	struct twin_capture_gpu *gpu; /* that is being described, NULL: none */
	uint32_t before;	      /* its items of earlier descriptions */
	bool any;
	char path[MAX_PATH];
	size_t depth, ends[MAX_DEPTH]; /* of the path, at each depth */
};

static const char *name_of(const char *path)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		if (strcasecmp(path, names[i].name) == 0 || strcasecmp(path, names[i].other) == 0)
			return names[i].name;
	}
	return NULL;
}

/* Cuts white space off both ends, in place. */
static char *trim(char *text)
{
	size_t n;

	while (isspace((unsigned char)*text))
		text++;
	n = strlen(text);
	while (n > 0 && isspace((unsigned char)text[n - 1]))
		text[--n] = '\0';
	return text;
}

static bool is_available(const char *value)
{
	return *value && strcmp(value, "N/A") != 0 && strncmp(value, "Requested ", 10) != 0 &&
	       strcmp(value, "[N/A]") != 0 && strncmp(value, "Unknown", 7) != 0;
}

static int add_item(struct reading *reading, const char *value)
{
	struct twin_capture_gpu *gpu = reading->gpu;
	const char *name = gpu && is_available(value) ? name_of(reading->path) : NULL;

	if (!name)
		return 0;
	for (uint32_t i = 0; i < reading->before; i++) {
		if (gpu->items[i].name == name)
			return 0;
	}
	if (gpu->count == TWIN_CAPTURE_MAX_ITEMS)
		return takt_err_set(reading->err, -TAKT_E_CORRUPT,
				    "'%s' has more than %d readings of a GPU", reading->file,
				    TWIN_CAPTURE_MAX_ITEMS);
	if (gpu->count == gpu->room) {
		uint32_t room = gpu->room ? 2 * gpu->room : 256;
		void *items = takt_reallocarray(gpu->items, room, sizeof(*gpu->items));
		if (!items)
			return takt_err_set(reading->err, -ENOMEM, "read '%s'", reading->file);
		gpu->items = items;
		gpu->room = room;
	}
	gpu->items[gpu->count++] = (struct twin_capture_item){name, value};
	return 0;
}

static uint64_t order_of(const struct twin_pci *pci)
{
	return (uint64_t)pci->domain << 16 | (pci->bus & 0xff) << 8 | (pci->slot & 0xff);
}

/* From now on the GPU at this place is described: one that is known, or a new one. */
static int begin_gpu(struct reading *reading, const char *bus_id)
{
	struct twin_capture *capture = reading->capture;
	unsigned domain, bus, slot;
	struct twin_pci pci;
	uint32_t at = 0;

	if (sscanf(bus_id, "%8x:%2x:%2x", &domain, &bus, &slot) != 3)
		return takt_err_set(reading->err, -TAKT_E_CORRUPT,
				    "'%s': '%.40s' is no place on the PCI bus of a GPU",
				    reading->file, bus_id);
	pci = (struct twin_pci){domain, bus, slot};
	while (at < capture->gpu_count && order_of(&capture->gpus[at].pci) < order_of(&pci))
		at++;
	if (at == capture->gpu_count || order_of(&capture->gpus[at].pci) != order_of(&pci)) {
		if (capture->gpu_count == TWIN_MAX_GPUS)
			return takt_err_set(reading->err, -TAKT_E_CORRUPT,
					    "'%s' has a GPU more than the %d of a machine",
					    reading->file, TWIN_MAX_GPUS);
		memmove(&capture->gpus[at + 1], &capture->gpus[at],
			(capture->gpu_count++ - at) * sizeof(capture->gpus[0]));
		capture->gpus[at] = (struct twin_capture_gpu){.pci = pci};
	}
	reading->gpu = &capture->gpus[at];
	reading->before = reading->gpu->count;
	reading->depth = 0;
	reading->path[0] = '\0';
	reading->any = true;
	return 0;
}

/* The path's last part at that depth becomes `name`. What is too deep or too long is nobody's. */
static void enter(struct reading *reading, size_t depth, const char *name)
{
	size_t from;

	if (depth >= MAX_DEPTH)
		return;
	if (depth > reading->depth)
		depth = reading->depth;
	from = depth ? reading->ends[depth - 1] : 0;
	snprintf(reading->path + from, sizeof(reading->path) - from, "%s%s", from ? "/" : "", name);
	reading->ends[depth] = strlen(reading->path);
	reading->depth = depth + 1;
}

/*
 * The XML: elements in elements, without attributes but for the GPU's place.
 */

static void decode(char *text)
{
	static const struct {
		const char *code;
		char c;
	} codes[] = {
		{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	char *out = text;

	while (*text) {
		size_t i = 0;
		while (i < TAKT_ARRAY_LEN(codes) &&
		       strncmp(text, codes[i].code, strlen(codes[i].code)) != 0)
			i++;
		*out++ = i < TAKT_ARRAY_LEN(codes) ? codes[i].c : *text;
		text += i < TAKT_ARRAY_LEN(codes) ? strlen(codes[i].code) : 1;
	}
	*out = '\0';
}

static int open_element(struct reading *reading, char *tag, size_t *depth)
{
	char *attributes = tag + strcspn(tag, " \t\r\n");
	char *id = strstr(attributes, "id=\"");

	*attributes = '\0';
	if (!reading->gpu && strcmp(tag, "gpu") == 0 && id) {
		*depth = 0;
		return begin_gpu(reading, id + 4);
	}
	enter(reading, (*depth)++, tag);
	return 0;
}

/* `text` stands before the end tag; it is the element's value if no element came between. */
static int close_element(struct reading *reading, const char *tag, char *text, bool leaf,
			 size_t *depth)
{
	int rc = 0;

	if (*depth == 0) {
		if (strcmp(tag, "gpu") == 0)
			reading->gpu = NULL;
		return 0;
	}
	if (leaf && *depth == reading->depth) {
		decode(text);
		rc = add_item(reading, trim(text));
	}
	--*depth;
	reading->depth = *depth < reading->depth ? *depth : reading->depth;
	return rc;
}

static int read_xml(struct reading *reading, char *text)
{
	size_t depth = 0;
	bool leaf = false;
	int rc = 0;

	while (rc == 0) {
		char *open = strchr(text, '<'), *close = open ? strchr(open, '>') : NULL;
		if (!close)
			break;
		*open = *close = '\0';
		if (open[1] == '/') {
			rc = close_element(reading, open + 2, text, leaf, &depth);
			leaf = false;
		} else if (open[1] != '!' && open[1] != '?' && close[-1] != '/') {
			rc = open_element(reading, open + 1, &depth);
			leaf = true;
		}
		text = close + 1;
	}
	return rc;
}

/*
 * The text: lines "    Name : value", deeper by four spaces below a name.
 */

static int read_log_line(struct reading *reading, char *line)
{
	size_t indent = strspn(line, " ");
	char *colon = strstr(line, " : "), *name;

	if (colon)
		*colon = '\0';
	name = trim(line);
	if (!*name || indent < 4)
		return 0;
	enter(reading, indent / 4 - 1, name);
	return colon ? add_item(reading, trim(colon + 3)) : 0;
}

static struct twin_capture_place *place_of(struct twin_capture *capture, unsigned long index)
{
	if (index >= TWIN_MAX_GPUS)
		return NULL;
	if (index >= capture->place_count)
		capture->place_count = (uint32_t)index + 1;
	return &capture->places[index];
}

/* "GPU12" */
static bool is_gpu(const char *word, unsigned long *ret)
{
	char *end;

	if (strncmp(word, "GPU", 3) != 0 || !isdigit((unsigned char)word[3]))
		return false;
	*ret = strtoul(word + 3, &end, 10);
	return *end == '\0' && *ret < TWIN_MAX_GPUS;
}

/* The columns of a matrix: GPUs by index, or -1 for what else there is. */
struct columns {
	unsigned count;
	int gpu[4 * TWIN_MAX_GPUS];
};

/* A head names GPU0 first and CPU affinity behind the devices. */
static bool read_head(struct reading *reading, char *line, struct columns *ret)
{
	char *rest = line, *word;
	unsigned long gpu;
	uint32_t others = 0;

	ret->count = 0;
	while ((word = strtok_r(rest, " \t", &rest)) && strcmp(word, "CPU") != 0 &&
	       ret->count < TAKT_ARRAY_LEN(ret->gpu)) {
		ret->gpu[ret->count] = is_gpu(word, &gpu) ? (int)gpu : -1;
		others += ret->gpu[ret->count++] < 0;
	}
	reading->capture->other_devices = others;
	return word != NULL;
}

static void read_cell(struct twin_capture_place *place, int column, const char *cell)
{
	static const struct {
		const char *name;
		uint8_t level;
	} levels[] = {
		{"PIX", NVML_TOPOLOGY_SINGLE},	   {"PXB", NVML_TOPOLOGY_MULTIPLE},
		{"PHB", NVML_TOPOLOGY_HOSTBRIDGE}, {"NODE", NVML_TOPOLOGY_NODE},
		{"SYS", NVML_TOPOLOGY_SYSTEM},
	};

	if (column < 0)
		return;
	if (strncmp(cell, "NV", 2) == 0)
		place->links[column] = (uint8_t)strtoul(cell + 2, NULL, 10);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(levels); i++) {
		if (strcmp(cell, levels[i].name) == 0)
			place->level[column] = levels[i].level;
	}
}

static void read_row(struct reading *reading, char *line, const struct columns *columns)
{
	char *rest = line, *word = strtok_r(rest, " \t", &rest), *end;
	struct twin_capture_place *place;
	unsigned long gpu;

	if (!word || !is_gpu(word, &gpu))
		return;
	place = place_of(reading->capture, gpu);
	place->in_matrix = true;
	for (unsigned i = 0; i < columns->count && (word = strtok_r(rest, " \t", &rest)); i++)
		read_cell(place, columns->gpu[i], word);
	word = strtok_r(rest, " \t", &rest);
	if (word && isdigit((unsigned char)*word))
		takt_strcpy(place->cpus, sizeof(place->cpus), word);
	word = word ? strtok_r(rest, " \t", &rest) : NULL;
	if (word && isdigit((unsigned char)*word))
		place->numa = (int)strtoul(word, &end, 10);
}

/* "Link 3: 26.562 GB/s" or "C2C Link 3: 44.712 GB/s", of nvlink -s and c2c -s. */
static void read_link(struct twin_capture_place *place, const char *line)
{
	bool c2c = strncmp(line, "C2C ", 4) == 0;
	unsigned link;
	int used = 0;

	if (sscanf(line + (c2c ? 4 : 0), "Link %u:%n", &link, &used) != 1 || used == 0 ||
	    link >= 64)
		return;
	line += (c2c ? 4 : 0) + used;
	if (c2c)
		place->c2c_links |= 1ull << link;
	else if (strstr(line, "inactive"))
		place->nvlinks_off |= 1ull << link;
	else if (strstr(line, "GB/s")) {
		place->nvlinks |= 1ull << link;
		place->nvlink_mbps = (uint32_t)(strtod(line, NULL) * 1000 + 0.5);
	}
}

/* Colours. */
static void strip_escapes(char *line)
{
	char *out = line;

	while (*line) {
		if (line[0] == '\033' && line[1] == '[') {
			line += 2 + strspn(line + 2, "0123456789;");
			line += *line != '\0';
			continue;
		}
		*out++ = *line++;
	}
	*out = '\0';
}

static int read_text(struct reading *reading, char *text)
{
	enum {
		NOTHING,
		LOG,
		MATRIX,
		LINKS
	} within = NOTHING;
	struct twin_capture_place *place = NULL;
	struct columns columns = {0};
	int rc = 0;

	for (char *line = text, *next; rc == 0 && line; line = next) {
		char *first;
		unsigned index;
		unsigned long gpu;
		int used = 0;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		strip_escapes(line);
		line[strcspn(line, "\r")] = '\0';
		first = line + strspn(line, " \t");
		if (strncmp(line, "GPU ", 4) == 0 && isxdigit((unsigned char)line[4]) &&
		    strchr(line, '.') && sscanf(line + 4, "%*8x:%*2x:%2x", &index) == 1) {
			within = LOG;
			rc = begin_gpu(reading, line + 4);
		} else if (sscanf(line, "GPU %u:%n", &index, &used) == 1 && used) {
			within = LINKS; /* that none follows is an answer, too */
			place = place_of(reading->capture, index);
			reading->any = true;
		} else if (strncmp(first, "GPU0", 4) == 0 && strstr(first, "CPU Affinity")) {
			within = read_head(reading, first, &columns) ? MATRIX : NOTHING;
			reading->any |= within == MATRIX;
		} else if (*line == '#') {
			within = NOTHING;
		} else if (within == LOG) {
			rc = read_log_line(reading, line);
		} else if (within == MATRIX) {
			char word[16] = "";
			if (sscanf(line, "%15s", word) == 1 && is_gpu(word, &gpu))
				read_row(reading, line, &columns);
		} else if (within == LINKS && place) {
			read_link(place, first);
		}
	}
	return rc;
}

static char *keep_copy(struct twin_capture *capture, const char *text)
{
	char *copy = takt_strdup(text);
	char **texts = takt_reallocarray(capture->texts, capture->text_count + 1, sizeof(*texts));

	if (texts)
		capture->texts = texts;
	if (texts && copy) {
		texts[capture->text_count++] = copy;
		return copy;
	}
	takt_free(copy);
	return NULL;
}

struct twin_capture *twin_capture_new(void)
{
	struct twin_capture *capture = takt_zalloc(sizeof(*capture));

	for (uint32_t i = 0; capture && i < TWIN_MAX_GPUS; i++)
		capture->places[i].numa = -1;
	return capture;
}

int twin_capture_add(struct twin_capture *capture, const char *file, const char *text,
		     struct takt_err *err)
{
	struct reading reading = {.capture = capture, .file = file, .err = err};
	char *copy = keep_copy(capture, text);
	int rc;

	if (!copy)
		return takt_err_set(err, -ENOMEM, "read '%s'", file);
	rc = strstr(copy, "<gpu id=") ? read_xml(&reading, copy) : read_text(&reading, copy);
	if (rc < 0 || reading.any)
		return rc;
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "'%s' has no GPU: it has to be what `nvidia-smi -q` or `-q -x`, `topo "
			    "-m`, `nvlink -s` or `c2c -s` printed",
			    file);
}

int twin_capture_read(struct twin_capture *capture, const char *path, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = takt_zalloc(TWIN_CAPTURE_MAX_BYTES + 2);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n = -1;

	while (text && fd >= 0 && used <= TWIN_CAPTURE_MAX_BYTES &&
	       (n = read(fd, text + used, TWIN_CAPTURE_MAX_BYTES + 1 - used)) > 0)
		used += (size_t)n;
	n = text ? n < 0 ? -errno : 0 : -ENOMEM;
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return takt_err_set(err, (int)n, "read '%s'", path);
	if (used > TWIN_CAPTURE_MAX_BYTES)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is longer than %d MiB", path,
				    TWIN_CAPTURE_MAX_BYTES >> 20);
	return twin_capture_add(capture, path, text, err);
}

void twin_capture_free(struct twin_capture *capture)
{
	if (!capture)
		return;
	for (uint32_t i = 0; i < capture->gpu_count; i++)
		takt_free(capture->gpus[i].items);
	for (uint32_t i = 0; i < capture->text_count; i++)
		takt_free(capture->texts[i]);
	takt_free(capture->texts);
	takt_free(capture);
}

const char *twin_capture_text(const struct twin_capture_gpu *gpu, const char *name)
{
	for (uint32_t i = 0; i < gpu->count; i++) {
		if (strcmp(gpu->items[i].name, name) == 0)
			return gpu->items[i].value;
	}
	return NULL;
}
