/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of a capture: see twin_from.h. */
#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
#include "twin_from.h"
#include "twin_mig.h"

/* Text of one GPU's reading, "" for what is missing. */
static const char *text_of(const struct twin_capture_gpu *gpu, const char *name)
{
	const char *text = twin_capture_text(gpu, name);

	return text ? text : "";
}

/* All boards have to be of one kind. */
static int check_boards(const struct twin_from *from, struct takt_err *err)
{
	static const char *const same[] = {"product_name", "pci/pci_device_id",
					   "fb_memory_usage/total"};
	const struct twin_capture *capture = from->capture;

	for (uint32_t i = 1; i < capture->gpu_count; i++) {
		for (size_t k = 0; k < TAKT_ARRAY_LEN(same); k++) {
			const char *first = text_of(from->gpu, same[k]);
			const char *other = text_of(&capture->gpus[i], same[k]);
			if (strcmp(first, other) != 0)
				return takt_err_set(
					err, -TAKT_E_CORRUPT,
					"GPU %u has %s '%s', GPU 0 '%s': a simulated machine has "
					"boards "
					"of one kind; capture those of one with `nvidia-smi -i`",
					i, same[k], other, first);
		}
	}
	return 0;
}

/* What the matrix says of a GPU, NULL if it does not. */
static const struct twin_capture_place *place_of(const struct twin_from *from, uint32_t gpu)
{
	const struct twin_capture_place *place = &from->capture->places[gpu];

	return place->in_matrix ? place : NULL;
}

static int node_of(const struct twin_from *from, uint32_t gpu)
{
	const struct twin_capture_place *place = place_of(from, gpu);

	return place && place->numa >= 0 ? place->numa : 0;
}

static void put_row(const struct twin_from *from, const char *key,
		    uint32_t (*number)(const struct twin_from *from, uint32_t gpu),
		    const char *remark)
{
	fprintf(from->out, "%s = [", key);
	for (uint32_t i = 0; i < from->capture->gpu_count; i++)
		fprintf(from->out, "%s%u", i ? ", " : "", number(from, i));
	fprintf(from->out, "]%s\n", remark);
}

static uint32_t domain_of(const struct twin_from *from, uint32_t gpu)
{
	return from->capture->gpus[gpu].pci.domain;
}

static uint32_t bus_of(const struct twin_from *from, uint32_t gpu)
{
	return from->capture->gpus[gpu].pci.bus;
}

static uint32_t slot_of(const struct twin_from *from, uint32_t gpu)
{
	return from->capture->gpus[gpu].pci.slot;
}

static uint32_t module_of(const struct twin_from *from, uint32_t gpu)
{
	return (uint32_t)strtoul(text_of(&from->capture->gpus[gpu], "platformInfo/module_id"), NULL,
				 10);
}

static uint32_t clique_of(const struct twin_from *from, uint32_t gpu)
{
	return (uint32_t)strtoul(text_of(&from->capture->gpus[gpu], "fabric/cliqueId"), NULL, 10);
}

static uint32_t numa_of(const struct twin_from *from, uint32_t gpu)
{
	return (uint32_t)node_of(from, gpu);
}

static bool any(const struct twin_from *from,
		uint32_t (*number)(const struct twin_from *from, uint32_t gpu))
{
	for (uint32_t i = 0; i < from->capture->gpu_count; i++) {
		if (number(from, i))
			return true;
	}
	return false;
}

static void put_places(struct twin_from *from)
{
	if (any(from, domain_of))
		put_row(from, "domain", domain_of, "");
	put_row(from, "bus", bus_of, "");
	if (any(from, slot_of))
		put_row(from, "device", slot_of, "");
	if (any(from, module_of))
		put_row(from, "module", module_of, "");
	if (any(from, clique_of))
		put_row(from, "clique", clique_of, "");
}

/* NUMA nodes and their CPUs. */
static void put_nodes(struct twin_from *from)
{
	bool said = place_of(from, 0) && from->capture->places[0].cpus[0];
	uint32_t nodes = 0;

	put_row(from, "numa", numa_of, said ? "" : "\t# GUESS: `nvidia-smi topo -m` has them");
	for (uint32_t i = 0; i < from->capture->gpu_count; i++)
		nodes = numa_of(from, i) >= nodes ? numa_of(from, i) + 1 : nodes;
	fprintf(from->out, "cpus = [");
	for (uint32_t node = 0; node < nodes; node++) {
		const char *cpus = "";
		for (uint32_t i = 0; said && i < from->capture->gpu_count; i++) {
			const char *own = from->capture->places[i].cpus;
			if (numa_of(from, i) != node)
				continue;
			if (*cpus && strcmp(cpus, own) != 0)
				twin_from_note(
					from,
					"GPU %u is near CPUs %s, others of NUMA node %u near %s: "
					"these are taken",
					i, own, node, cpus);
			else
				cpus = own;
		}
		fprintf(from->out, "%s\"%s\"", node ? ", " : "", said ? cpus : "0-63");
	}
	fprintf(from->out, "]%s\n", said ? "" : "\t# GUESS");
}

/* 0 where it is not said: an NVLink hides it. */
static uint8_t level_between(const struct twin_from *from, uint32_t a, uint32_t b)
{
	const struct twin_capture_place *place = place_of(from, a);

	return place ? place->level[b] : 0;
}

/* GPUs that are as near to each other as `level`, in groups of two and more; a line of its own. */
static void put_groups(struct twin_from *from, const char *key, uint8_t level)
{
	uint64_t done = 0;
	const char *gap = "";

	for (uint32_t first = 0; first < from->capture->gpu_count; first++) {
		uint64_t group = 1ull << first, before = 0;
		while (group != before) {
			before = group;
			for (uint32_t a = 0; a < from->capture->gpu_count; a++) {
				for (uint32_t b = 0; b < from->capture->gpu_count; b++) {
					uint8_t between = level_between(from, a, b);
					if (a != b && before >> a & 1 && between &&
					    between <= level)
						group |= 1ull << b;
				}
			}
		}
		if (done & group || (group & (group - 1)) == 0)
			continue;
		done |= group;
		fprintf(from->out, *gap ? ", [" : "%s = [[", key);
		for (uint32_t i = 0, n = 0; i < from->capture->gpu_count; i++) {
			if (group >> i & 1)
				fprintf(from->out, "%s%u", n++ ? ", " : "", i);
		}
		fprintf(from->out, "]");
		gap = ", ";
	}
	if (*gap)
		fprintf(from->out, "]\n");
}

static void put_levels(struct twin_from *from)
{
	static const struct {
		uint8_t level;
		const char *name, *key;
	} levels[] = {
		{NVML_TOPOLOGY_NODE, "NODE", NULL},
		{NVML_TOPOLOGY_HOSTBRIDGE, "PHB", "phb"},
		{NVML_TOPOLOGY_MULTIPLE, "PXB", "pxb"},
		{NVML_TOPOLOGY_SINGLE, "PIX", "pix"},
	};
	uint8_t farthest = 0;
	bool hidden = false;
	size_t near = 0;

	for (uint32_t a = 0; a < from->capture->gpu_count; a++) {
		for (uint32_t b = 0; b < a; b++) {
			uint8_t level = level_between(from, a, b);
			if (numa_of(from, a) != numa_of(from, b))
				continue;
			hidden |= level == 0;
			farthest = level > farthest ? level : farthest;
		}
	}
	hidden |= farthest == 0;
	while (!hidden && near + 1 < TAKT_ARRAY_LEN(levels) && levels[near].level > farthest)
		near++;
	fprintf(from->out, "near = \"%s\"%s\n", levels[near].name,
		hidden ? "\t# GUESS: NVLinks hide it, or there is no `topo -m`" : "");
	for (size_t i = near + 1; i < TAKT_ARRAY_LEN(levels); i++)
		put_groups(from, levels[i].key, levels[i].level);
}

static uint32_t links_between(const struct twin_from *from, uint32_t a, uint32_t b)
{
	const struct twin_capture_place *place = place_of(from, a);

	return place ? place->links[b] : 0;
}

/* Each GPU has all its links to each other one only if switches are between. */
static void put_links(struct twin_from *from)
{
	uint32_t count = from->capture->gpu_count, links = from->nvlinks, sum = 0;

	for (uint32_t b = 0; b < count; b++)
		sum += links_between(from, 0, b);
	if (!links)
		return;
	if (count > 1 && sum && sum <= links) {
		fprintf(from->out, "links = [\n");
		for (uint32_t a = 0; a < count; a++) {
			fprintf(from->out, "\t[");
			for (uint32_t b = 0; b < count; b++)
				fprintf(from->out, "%s%u", b ? ", " : "",
					links_between(from, a, b));
			fprintf(from->out, "],\n");
		}
		fprintf(from->out, "]\n");
		return;
	}
	if (count > 1 && !sum && place_of(from, 0)) {
		twin_from_note(from,
			       "the board has %u NVLinks, and by `topo -m` none leads to another "
			       "GPU: none is linked",
			       links);
		return;
	}
	fprintf(from->out,
		"switch_bus = [5]\t# GUESS\nswitch_links = [%u]\t# GUESS: all to one switch\n",
		links);
}

/* An instance of the capture, and the compute instances in it. */
struct instance {
	uint32_t id, sms[TWIN_MIG_SLICES], count, copies, ofas;
};

/* Reads the instances of a GPU; a further compute instance of one is joined to it. */
static uint32_t read_instances(const struct twin_capture_gpu *gpu,
			       struct instance ret[TWIN_MIG_SLICES])
{
	uint32_t n = 0;
	struct instance *now = NULL;

	for (uint32_t i = 0; i < gpu->count; i++) {
		const char *name = gpu->items[i].name;
		uint32_t value = (uint32_t)strtoul(gpu->items[i].value, NULL, 10), at = 0;

		if (strcmp(name, "mig_devices/mig_device/gpu_instance_id") == 0) {
			while (at < n && ret[at].id != value)
				at++;
			if (at == TWIN_MIG_SLICES)
				return n;
			if (at == n)
				ret[n++] = (struct instance){.id = value};
			now = &ret[at];
		} else if (now && strcmp(name, "mig_devices/mig_device/device_attributes/shared/"
					       "multiprocessor_count") == 0) {
			if (now->count < TWIN_MIG_SLICES)
				now->sms[now->count++] = value;
		} else if (now && strcmp(name, "mig_devices/mig_device/device_attributes/shared/"
					       "copy_engine_count") == 0) {
			now->copies = value;
		} else if (now && strcmp(name, "mig_devices/mig_device/device_attributes/shared/"
					       "ofa_count") == 0) {
			now->ofas = value;
		}
	}
	return n;
}

/* Which profile it is of: ids number the places (twin_mig.h), engines tell profiles of one size
 * apart. */
static const struct twin_mig_profile *
find_profile(const struct twin_board *board, const struct instance *instance, uint32_t *ret_start)
{
	const struct twin_mig_profile *found = NULL;

	for (uint32_t i = 0; i < board->mig_count; i++) {
		const struct twin_mig_profile *p = &board->mig[i];
		uint32_t first = TWIN_MIG_SLICES / p->size - 1;

		if (instance->id < first || instance->id > 2 * first ||
		    p->copies != instance->copies)
			continue;
		if (found && p->ofas != instance->ofas)
			continue;
		found = p;
		*ret_start = (instance->id - first) * p->size;
	}
	return found;
}

static bool put_instance(struct twin_from *from, uint32_t gpu, const struct instance *instance,
			 const char *gap)
{
	uint32_t start = 0, smallest;
	const struct twin_mig_profile *profile = find_profile(&from->like, instance, &start);

	if (!profile) {
		twin_from_note(from,
			       "instance %u of GPU %u is not taken: no profile of the board %s is "
			       "like it",
			       instance->id, gpu,
			       from->has_like ? from->like.id : "is known, so none");
		return false;
	}
	smallest = twin_mig_by_number(&from->like, 0)
			   ? twin_mig_by_number(&from->like, 0)->multiprocessors
			   : profile->multiprocessors / profile->slices;
	fprintf(from->out, "%s[%u, %u, %u", gap, gpu, profile->id, start);
	for (uint32_t i = 0; i < instance->count; i++)
		fprintf(from->out, ", %u",
			instance->sms[i] >= profile->multiprocessors ? profile->slices
								     : instance->sms[i] / smallest);
	fprintf(from->out, "]");
	return true;
}

static void put_instances(struct twin_from *from)
{
	const char *gap = "mig = [";

	for (uint32_t gpu = 0; gpu < from->capture->gpu_count; gpu++) {
		struct instance instances[TWIN_MIG_SLICES];
		uint32_t n = read_instances(&from->capture->gpus[gpu], instances);

		for (uint32_t i = 0; i < n; i++) {
			if (put_instance(from, gpu, &instances[i], gap))
				gap = ", ";
		}
		if (!n && strcmp(text_of(&from->capture->gpus[gpu], "mig_mode/current_mig"),
				 "Enabled") == 0)
			twin_from_note(
				from,
				"MIG is on and GPU %u has no instance: it begins with MIG off",
				gpu);
	}
	if (*gap == ',')
		fprintf(from->out, "]\n");
}

int twin_from_machine(struct twin_from *from, struct takt_err *err)
{
	int rc = check_boards(from, err);

	if (rc < 0)
		return rc;
	if (from->capture->place_count > from->capture->gpu_count)
		twin_from_note(from,
			       "topo, nvlink or c2c name %u GPUs, and %u are described: the others "
			       "are left out",
			       from->capture->place_count, from->capture->gpu_count);
	if (from->capture->other_devices)
		twin_from_note(from, "%u devices of `topo -m` that are no GPUs are left out",
			       from->capture->other_devices);
	put_places(from);
	put_nodes(from);
	put_levels(from);
	put_links(from);
	put_instances(from);
	return 0;
}
