/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Machine files: which board, how many, on which buses, near which CPUs, linked how.
 *
 *   board = "h100-sxm"             name of a board, or the path of a file beside this one; without
 * it this file has the keys of a board, too bus = [0x53, 0x64]             PCI bus of each GPU;
 * NVML counts them by domain, bus, device, and domain, device = [0, 0]        so has this file to;
 * these two may be left out: all 0 numa = [0, 1]                  NUMA node of each gpus = 2 how
 * many; may be left out. Where it is said bus and numa may be: some buses, and the same number on
 * each node module = [1, 2]                may be left out: 0, 1, 2, ... cpus = ["0-51", "52-103"]
 * CPUs of each NUMA node near = "NODE"                  PIX, PXB, PHB or NODE: between GPUs of one
 * NUMA node pix = [[0, 1]], pxb = [[2, 3]] groups that are nearer than that, and phb; may be left
 * out switch_bus, switch_links       NVSwitches, and how many links of each GPU end there; or links
 * = [[0, 2], [2, 0]]       NVLinks between each two GPUs; or neither clique = [2, 2] clique of each
 * in its fabric; may be left out: 0 mig = [[0, 9, 4, 1, 2]]        instances: GPU, id of the
 * profile, first slice of memory, slices of each compute instance; may be left out
 *
 *   [permission]                   who may change settings; each may be left out
 *   setters = "owner"              owner (of the machine's file, and root), root, anyone or nobody;
 *   anyone = ["nvmlDevice..."]     and functions for which it is otherwise, at most 24. One of an
 *   owner, root, nobody            older or newer form is named by the first form
 *   application_clocks = "open"    to everyone, until root restricts them; or "restricted"
 */
#include "twin_board_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/str.h"
#include "twin_fields.h"
#include "twin_mig.h"

enum {
	/* where no buses are said: beyond those that machines have for other things, and with 64
	 * GPUs still below 256 */
	FIRST_BUS = 0x10,
	BUS_STEP = 3,
};

static const struct {
	const char *name;
	uint8_t level;
} levels[] = {
	{"PIX", NVML_TOPOLOGY_SINGLE},
	{"PXB", NVML_TOPOLOGY_MULTIPLE},
	{"PHB", NVML_TOPOLOGY_HOSTBRIDGE},
	{"NODE", NVML_TOPOLOGY_NODE},
};

/* A file being read, and the machine that it becomes. */
struct reading {
	struct twin_toml *toml;
	struct twin_machine *machine;
	struct takt_err *err;
};

static int wrong(const struct reading *reading, const char *key, const char *text)
{
	const struct twin_toml_value *value = twin_toml_find(reading->toml, "", key);

	return twin_toml_error(reading->toml, value ? value->line : 0, "", key, reading->err, "%s",
			       text);
}

/* One number for each GPU. */
static int each_gpu(const struct reading *reading, const char *key, int64_t max, int64_t *ret)
{
	int n = twin_toml_numbers(reading->toml, "", key, TWIN_MAX_GPUS, 0, max, ret, reading->err);

	if (n >= 0 && (uint32_t)n != reading->machine->gpu_count)
		return wrong(reading, key, "needs a number for each GPU");
	return n < 0 ? n : 0;
}

/* The same, or what ret has already where the file leaves it out. */
static int maybe_each_gpu(const struct reading *reading, const char *key, int64_t max, int64_t *ret)
{
	return twin_toml_find(reading->toml, "", key) ? each_gpu(reading, key, max, ret) : 0;
}

/* How many GPUs the file says that there are, 0 if it leaves that to the list of buses. */
static int read_count(const struct reading *reading, int64_t *ret)
{
	const struct twin_toml_value *gpus = twin_toml_find(reading->toml, "", "gpus");

	*ret = 0;
	return gpus ? twin_toml_number(reading->toml, "", "gpus", gpus, 1, TWIN_MAX_GPUS, ret,
				       reading->err)
		    : 0;
}

/* Some bus for each GPU. */
static int choose_buses(int64_t count, int64_t bus[TWIN_MAX_GPUS])
{
	for (int64_t i = 0; i < count; i++)
		bus[i] = FIRST_BUS + i * BUS_STEP;
	return (int)count;
}

static int read_buses(const struct reading *reading)
{
	int64_t count, bus[TWIN_MAX_GPUS];
	int n = read_count(reading, &count);

	if (n < 0)
		return n;
	n = count && !twin_toml_find(reading->toml, "", "bus")
		    ? choose_buses(count, bus)
		    : twin_toml_numbers(reading->toml, "", "bus", TWIN_MAX_GPUS, 0, 255, bus,
					reading->err);
	if (n < 0)
		return n;
	if (count && n != count)
		return wrong(reading, "gpus", "has to be as many as bus has numbers");
	for (int i = 0; i < n; i++) {
		reading->machine->gpus[i].index = (uint32_t)i;
		reading->machine->gpus[i].pci.bus = (uint32_t)bus[i];
	}
	reading->machine->gpu_count = (uint32_t)n;
	return 0;
}

static uint64_t order_of(const struct twin_pci *pci)
{
	return (uint64_t)pci->domain << 16 | pci->bus << 8 | pci->slot;
}

static int read_places(const struct reading *reading)
{
	struct twin_gpu_desc *gpus = reading->machine->gpus;
	int64_t domain[TWIN_MAX_GPUS] = {0}, device[TWIN_MAX_GPUS] = {0};
	int rc = maybe_each_gpu(reading, "domain", UINT32_MAX, domain);

	if (rc == 0)
		rc = maybe_each_gpu(reading, "device", 31, device);
	for (uint32_t i = 0; rc == 0 && i < reading->machine->gpu_count; i++) {
		gpus[i].pci.domain = (uint32_t)domain[i];
		gpus[i].pci.slot = (uint32_t)device[i];
		if (i > 0 && order_of(&gpus[i].pci) <= order_of(&gpus[i - 1].pci))
			return wrong(
				reading, "bus",
				"has to rise, within a domain: NVML counts GPUs in that order");
	}
	return rc;
}

static int read_modules(const struct reading *reading)
{
	struct twin_gpu_desc *gpus = reading->machine->gpus;
	int64_t module[TWIN_MAX_GPUS], clique[TWIN_MAX_GPUS] = {0};
	int rc;

	for (uint32_t i = 0; i < reading->machine->gpu_count; i++)
		module[i] = i;
	rc = maybe_each_gpu(reading, "module", 255, module);
	if (rc == 0)
		rc = maybe_each_gpu(reading, "clique", UINT32_MAX, clique);
	for (uint32_t i = 0; rc == 0 && i < reading->machine->gpu_count; i++) {
		gpus[i].module = (uint32_t)module[i];
		gpus[i].clique = (uint32_t)clique[i];
	}
	return rc;
}

/* "0-51,104-155" into a mask. */
static bool parse_cpus(const char *text, uint64_t words[TWIN_CPU_WORDS])
{
	while (*text) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last >= TWIN_CPU_WORDS * 64 || (*end && *end != ','))
			return false;
		for (unsigned long cpu = first; cpu <= last; cpu++)
			words[cpu / 64] |= 1ull << cpu % 64;
		text = end + (*end == ',');
	}
	return true;
}

static const struct twin_toml_value *item_at(const struct twin_toml_value *array, uint32_t index)
{
	const struct twin_toml_value *item = array->first;

	while (item && index--)
		item = item->next;
	return item;
}

/* As many GPUs on each node, as far as that comes out even. */
static int choose_nodes(const struct twin_machine *machine, uint32_t nodes, int64_t *ret)
{
	for (uint32_t i = 0; i < machine->gpu_count; i++)
		ret[i] = i * nodes / machine->gpu_count;
	return 0;
}

static int read_nodes(const struct reading *reading)
{
	const struct twin_toml_value *cpus = twin_toml_find(reading->toml, "", "cpus");
	bool said = twin_toml_find(reading->toml, "", "numa") ||
		    !twin_toml_find(reading->toml, "", "gpus");
	int64_t numa[TWIN_MAX_GPUS];
	int rc;

	if (!cpus)
		return twin_toml_missing(reading->toml, "", "cpus", reading->err);
	rc = said ? each_gpu(reading, "numa", 63, numa)
		  : choose_nodes(reading->machine, cpus->count, numa);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < reading->machine->gpu_count; i++) {
		struct twin_gpu_desc *gpu = &reading->machine->gpus[i];
		const struct twin_toml_value *item = item_at(cpus, (uint32_t)numa[i]);

		gpu->numa = (uint32_t)numa[i];
		if (!item || item->kind != TWIN_TOML_STRING || !parse_cpus(item->text, gpu->cpus))
			return wrong(reading, "cpus",
				     "has to be [\"0-51,104-155\", ...], one for each NUMA node "
				     "from 0, CPUs up to 1023");
	}
	return 0;
}

static int read_near(const struct reading *reading, uint8_t *ret)
{
	const struct twin_toml_value *near = twin_toml_find(reading->toml, "", "near");

	if (!near)
		return twin_toml_missing(reading->toml, "", "near", reading->err);
	for (size_t i = 0; near->kind == TWIN_TOML_STRING && i < TAKT_ARRAY_LEN(levels); i++) {
		if (strcmp(near->text, levels[i].name) != 0)
			continue;
		*ret = levels[i].level;
		return 0;
	}
	return wrong(reading, "near", "has to be \"PIX\", \"PXB\", \"PHB\" or \"NODE\"");
}

static int read_group(const struct reading *reading, const char *key,
		      const struct twin_toml_value *group, uint8_t level)
{
	struct twin_machine *machine = reading->machine;

	if (group->kind != TWIN_TOML_ARRAY)
		return wrong(reading, key, "has to be groups of GPUs: [[0, 1], [2, 3]]");
	for (const struct twin_toml_value *a = group->first; a; a = a->next) {
		if (a->kind != TWIN_TOML_INTEGER || a->number < 0 ||
		    a->number >= machine->gpu_count)
			return wrong(reading, key, "names a GPU that is not there");
		for (const struct twin_toml_value *b = group->first; b != a; b = b->next) {
			machine->gpus[a->number].ancestor[b->number] = level;
			machine->gpus[b->number].ancestor[a->number] = level;
		}
	}
	return 0;
}

static int read_groups(const struct reading *reading, const char *key, uint8_t level)
{
	const struct twin_toml_value *groups = twin_toml_find(reading->toml, "", key);
	int rc = 0;

	if (!groups)
		return 0;
	if (groups->kind != TWIN_TOML_ARRAY)
		return wrong(reading, key, "has to be groups of GPUs: [[0, 1], [2, 3]]");
	for (const struct twin_toml_value *group = groups->first; rc == 0 && group;
	     group = group->next)
		rc = read_group(reading, key, group, level);
	return rc;
}

static int read_ancestors(const struct reading *reading)
{
	struct twin_machine *machine = reading->machine;
	uint8_t near = 0;
	int rc = read_near(reading, &near);

	if (rc < 0)
		return rc;
	for (uint32_t a = 0; a < machine->gpu_count; a++) {
		for (uint32_t b = 0; b < machine->gpu_count; b++) {
			bool same = machine->gpus[a].numa == machine->gpus[b].numa;
			machine->gpus[a].ancestor[b] = same ? near : NVML_TOPOLOGY_SYSTEM;
		}
		machine->gpus[a].ancestor[a] = 0;
	}
	rc = read_groups(reading, "phb", NVML_TOPOLOGY_HOSTBRIDGE);
	if (rc == 0)
		rc = read_groups(reading, "pxb", NVML_TOPOLOGY_MULTIPLE);
	return rc < 0 ? rc : read_groups(reading, "pix", NVML_TOPOLOGY_SINGLE);
}

/* False if the board has no more links. */
static bool add_links(struct twin_machine *machine, uint32_t gpu, struct twin_link link,
		      int64_t count)
{
	struct twin_gpu_desc *desc = &machine->gpus[gpu];

	if (desc->link_count + (uint64_t)count > machine->board.nvlinks)
		return false;
	while (count-- > 0)
		desc->links[desc->link_count++] = link;
	return true;
}

static int read_switches(const struct reading *reading)
{
	int64_t bus[TWIN_MAX_LINKS], links[TWIN_MAX_LINKS];
	int n = twin_toml_numbers(reading->toml, "", "switch_bus", TWIN_MAX_LINKS, 0, 255, bus,
				  reading->err);
	int m = n < 0 ? n
		      : twin_toml_numbers(reading->toml, "", "switch_links", TWIN_MAX_LINKS, 1,
					  TWIN_MAX_LINKS, links, reading->err);

	if (m < 0)
		return m;
	if (m != n)
		return wrong(reading, "switch_links", "needs as many numbers as switch_bus has");
	for (uint32_t gpu = 0; gpu < reading->machine->gpu_count; gpu++) {
		for (int i = 0; i < n; i++) {
			struct twin_link link = {.to_switch = 1, .end = (uint8_t)bus[i]};
			if (!add_links(reading->machine, gpu, link, links[i]))
				return wrong(reading, "switch_links",
					     "adds up to more than the board's nvlinks");
		}
	}
	return 0;
}

static int read_link(const struct reading *reading, const struct twin_toml_value *links, uint32_t a,
		     uint32_t b)
{
	const struct twin_toml_value *row = item_at(links, a), *column = item_at(links, b);
	const struct twin_toml_value *there, *back;
	struct twin_link link = {.end = (uint8_t)b};

	there = row && row->kind == TWIN_TOML_ARRAY ? item_at(row, b) : NULL;
	back = column && column->kind == TWIN_TOML_ARRAY ? item_at(column, a) : NULL;
	if (!there || !back || there->kind != TWIN_TOML_INTEGER || there->number < 0 ||
	    there->number != back->number || (a == b && there->number))
		return wrong(reading, "links",
			     "has to be a square of numbers, the same both ways, 0 from a GPU to "
			     "itself");
	return add_links(reading->machine, a, link, there->number)
		       ? 0
		       : wrong(reading, "links", "adds up to more than the board's nvlinks");
}

static int read_links(const struct reading *reading)
{
	const struct twin_toml_value *links = twin_toml_find(reading->toml, "", "links");
	uint32_t count = reading->machine->gpu_count;
	int rc = 0;

	if (twin_toml_find(reading->toml, "", "switch_bus"))
		return links ? wrong(reading, "links", "and switch_bus exclude each other")
			     : read_switches(reading);
	if (!links)
		return 0;
	if (links->kind != TWIN_TOML_ARRAY || links->count != count)
		return wrong(reading, "links", "needs a row for each GPU");
	for (uint32_t i = 0; rc == 0 && i < count * count; i++)
		rc = read_link(reading, links, i / count, i % count);
	return rc;
}

/* A compute instance at the first place that is free; ids count up. */
static bool cut_compute(struct twin_gpu_instance *instance, const struct twin_mig_profile *profile,
			int64_t slices, uint8_t id)
{
	for (uint32_t start = 0; start + 1 < TWIN_MIG_SLICES; start++) {
		if (slices < 1 || slices > profile->slices ||
		    !twin_compute_fits(instance, profile, (uint32_t)slices, start))
			continue;
		instance->compute[start] =
			(struct twin_compute_instance){.slices = (uint8_t)slices, .id = id};
		return true;
	}
	return false;
}

/* Does it all fit? `row` has n numbers, four or more. */
static bool cut(struct twin_machine *machine, const int64_t *row, int n)
{
	struct twin_gpu_desc *desc = &machine->gpus[row[0]];
	struct twin_gpu now = {0};
	const struct twin_mig_profile *profile = twin_mig_by_id(&machine->board, (uint32_t)row[1]);
	struct twin_gpu_instance *instance = &desc->instances[row[2]];

	memcpy(now.instances, desc->instances, sizeof(now.instances));
	if (!profile || !twin_mig_fits(&now, &machine->board, profile, (uint32_t)row[2]))
		return false;
	desc->cut = 1;
	instance->used = 1;
	instance->profile = (uint8_t)(profile - machine->board.mig);
	for (int i = 3; i < n; i++) {
		if (!cut_compute(instance, profile, row[i], (uint8_t)(i - 3)))
			return false;
	}
	return true;
}

static int read_instance(const struct reading *reading, const struct twin_toml_value *row)
{
	int64_t numbers[3 + TWIN_MIG_SLICES];
	int n = 0;

	for (const struct twin_toml_value *item = row->first; item; item = item->next) {
		if (item->kind != TWIN_TOML_INTEGER || item->number < 0 ||
		    n == TAKT_ARRAY_LEN(numbers))
			return wrong(reading, "mig", "has to be rows of numbers");
		numbers[n++] = item->number;
	}
	if (n < 3 || numbers[0] >= reading->machine->gpu_count || numbers[1] > UINT32_MAX ||
	    numbers[2] >= TWIN_MIG_SLICES || !cut(reading->machine, numbers, n))
		return twin_toml_error(
			reading->toml, row->line, "", "mig", reading->err,
			"has to be [GPU, id of a profile of the board, first slice of memory, "
			"slices of each compute instance], and all have to fit");
	return 0;
}

static int read_instances(const struct reading *reading)
{
	const struct twin_toml_value *rows = twin_toml_find(reading->toml, "", "mig");
	int rc = 0;

	if (rows && rows->kind != TWIN_TOML_ARRAY)
		return wrong(reading, "mig", "has to be rows of numbers");
	for (const struct twin_toml_value *row = rows ? rows->first : NULL; rc == 0 && row;
	     row = row->next)
		rc = read_instance(reading, row);
	return rc;
}

static const char *const permits[] = {
	[TWIN_PERMIT_OWNER] = "owner",
	[TWIN_PERMIT_ROOT] = "root",
	[TWIN_PERMIT_ANYONE] = "anyone",
	[TWIN_PERMIT_NOBODY] = "nobody",
};

static int wrong_permission(const struct reading *reading, const char *key,
			    const struct twin_toml_value *value, const char *text)
{
	return twin_toml_error(reading->toml, value->line, "permission", key, reading->err, "%s",
			       text);
}

static bool is_function(const char *name)
{
	static const char *const names[] = {
#define X(name) #name,
		NVML_FUNCTIONS(X)
#undef X
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

static int read_functions(const struct reading *reading, uint32_t permit)
{
	const struct twin_toml_value *list =
		twin_toml_find(reading->toml, "permission", permits[permit]);
	struct twin_machine *machine = reading->machine;

	if (!list)
		return 0;
	if (list->kind != TWIN_TOML_ARRAY)
		return wrong_permission(reading, permits[permit], list,
					"has to be functions: [\"nvmlDeviceSet...\", ...]");
	for (const struct twin_toml_value *item = list->first; item; item = item->next) {
		struct twin_permission *next = &machine->permissions[machine->permission_count];
		if (item->kind != TWIN_TOML_STRING || !is_function(item->text))
			return wrong_permission(reading, permits[permit], item,
						"names no function of this library");
		if (machine->permission_count++ == TWIN_PERMISSIONS)
			return wrong_permission(reading, permits[permit], item,
						": 24 functions at most may have a rule");
		next->permit = permit;
		takt_strcpy(next->function, sizeof(next->function), item->text);
	}
	return 0;
}

/* Position of a word among `count`, or negative with the error. */
static int read_word(const struct reading *reading, const char *key, const char *const *words,
		     size_t count, int otherwise, const char *text)
{
	const struct twin_toml_value *value = twin_toml_find(reading->toml, "permission", key);

	if (!value)
		return otherwise;
	for (size_t i = 0; value->kind == TWIN_TOML_STRING && i < count; i++) {
		if (strcmp(value->text, words[i]) == 0)
			return (int)i;
	}
	return wrong_permission(reading, key, value, text);
}

static int read_permissions(const struct reading *reading)
{
	static const char *const states[] = {"restricted", "open"};
	int open, setters = read_word(reading, "setters", permits, TWIN_PERMITS, TWIN_PERMIT_OWNER,
				      "has to be \"owner\", \"root\", \"anyone\" or \"nobody\"");

	if (setters < 0)
		return setters;
	open = read_word(reading, "application_clocks", states, TAKT_ARRAY_LEN(states), 0,
			 "has to be \"restricted\" or \"open\"");
	if (open < 0)
		return open;
	reading->machine->permit = (uint32_t)setters;
	reading->machine->open_apis = (uint32_t)open << NVML_RESTRICTED_API_APPLICATION_CLOCKS;
	for (uint32_t permit = 0; permit < TWIN_PERMITS; permit++) {
		int rc = read_functions(reading, permit);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_board(const struct reading *reading, const char *path)
{
	const struct twin_toml_value *board = twin_toml_find(reading->toml, "", "board");

	if (!board && !twin_toml_find(reading->toml, "", "name"))
		return twin_toml_missing(reading->toml, "", "board", reading->err);
	if (!board)
		return twin_board_keys(reading->toml, &reading->machine->board, reading->err);
	if (board->kind != TWIN_TOML_STRING)
		return wrong(reading, "board", "has to be \"name\" or \"./file.toml\"");
	return twin_board_load(board->text, path, &reading->machine->board, reading->err);
}

static int read_machine(const struct reading *reading, const char *path)
{
	static int (*const parts[])(const struct reading *) = {
		read_buses,	read_places, read_modules,   read_nodes,
		read_ancestors, read_links,  read_instances, read_permissions,
	};
	int rc = read_board(reading, path);

	for (size_t i = 0; rc == 0 && i < TAKT_ARRAY_LEN(parts); i++)
		rc = parts[i](reading);
	return rc < 0 ? rc : twin_toml_refuse_unknown(reading->toml, reading->err);
}

int twin_machine_load(const char *name, struct twin_machine *ret, struct takt_err *err)
{
	const char *text = twin_text_find(twin_machine_texts, twin_machine_text_count, name);
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	TAKT_CLEANUP(twin_tomlp) struct twin_toml *toml = NULL;
	struct twin_machine machine = {0};
	struct reading reading = {.machine = &machine, .err = err};
	int rc;

	if (!text && !twin_is_path(name))
		return takt_err_set(err, -TAKT_E_NOT_FOUND,
				    "no machine '%s'; `takt-twin list` shows all, a file's name "
				    "ends in .toml",
				    name);
	rc = text ? twin_toml_parse(name, text, &toml, err) : twin_toml_read(name, &toml, err);
	if (rc < 0)
		return rc;
	reading.toml = toml;
	rc = read_machine(&reading, text ? NULL : name);
	if (rc < 0)
		return rc;
	snprintf(machine.name, sizeof(machine.name), "%.*s", (int)strcspn(base, "."), base);
	if (!*machine.board.id)
		snprintf(machine.board.id, sizeof(machine.board.id), "%s", machine.name);
	*ret = machine;
	return 0;
}
