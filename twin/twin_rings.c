/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a set of GPUs is linked. Collective communication goes round a ring, and a ring is as
 * fast as its narrowest part; so a set is worth the narrowest part of its best ring. Found for all
 * sets of a machine at once: for each bandwidth that occurs, from the highest down, which sets can
 * be walked round without a narrower step (Held and Karp's table, with a bit for "can be reached").
 *
 * That table doubles with each GPU. On machines of more than 16 a set counts as walked round where
 * it hangs together by steps that are wide enough and each GPU has two of them. It is what every
 * ring needs, and it is a ring where GPUs fall into groups whose members are linked alike: all
 * NVSwitches and all buses without direct links. With direct links it may promise too much.
 */
#include <errno.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/mem.h"
#include "takt_twin.h"

enum {
	TABLE_GPUS = 16, /* for which all sets are looked at */
	MAX_RATES = 32,
};

struct rings {
	uint32_t count;
	uint32_t mbps[TWIN_MAX_GPUS][TWIN_MAX_GPUS];
	uint32_t rates[MAX_RATES], rate_count; /* that occur, descending */
	uint16_t *ends; /* of each set: where a path through it may end. NULL: too many sets */
};

/* What limits the links of a GPU at this moment; all zero if nothing does. */
struct wear {
	uint32_t links_down, pcie_gen, pcie_width;
};

/* Usable part of a PCIe link, by how far the two are apart: ratios of NCCL's published constants
 * (12 GB/s in gen 3 x16, 10 between sockets); those of the levels between: GUESS. */
static uint32_t pcie_mbps(uint32_t gen, uint32_t width, uint32_t level)
{
	uint32_t all = (gen > 3 ? 750u << (gen - 3) : 750u >> (3 - gen)) * width;

	if (level <= NVML_TOPOLOGY_MULTIPLE)
		return all;
	if (level <= NVML_TOPOLOGY_HOSTBRIDGE)
		return all * 9 / 10;
	return level <= NVML_TOPOLOGY_NODE ? all * 8 / 10 : all * 6 / 10;
}

/* The worse of two, of which 0 means that nothing is amiss. */
static uint32_t worse(uint32_t a, uint32_t b, uint32_t full)
{
	a = a ? a : full;
	b = b ? b : full;
	return a < b ? a : b;
}

/* Links of a GPU that lead to another, or to the switches, and are up. */
static uint32_t links_to(const struct twin_gpu_desc *from, const struct twin_gpu_desc *to,
			 uint32_t down)
{
	uint32_t links = 0;

	for (uint32_t i = 0; i < from->link_count; i++) {
		bool leads = from->links[i].to_switch ? to->link_count > 0
						      : from->links[i].end == to->index;
		links += leads && !(down >> i & 1);
	}
	return links;
}

static uint32_t pair_mbps(const struct twin_machine *machine, const struct wear *wear, uint32_t a,
			  uint32_t b)
{
	const struct twin_gpu_desc *from = &machine->gpus[a], *to = &machine->gpus[b];
	uint32_t there = links_to(from, to, wear[a].links_down);
	uint32_t back = links_to(to, from, wear[b].links_down);
	uint32_t links = there < back ? there : back;

	if (links)
		return links * machine->board.nvlink_mbps;
	return pcie_mbps(worse(wear[a].pcie_gen, wear[b].pcie_gen, machine->board.pcie_gen),
			 worse(wear[a].pcie_width, wear[b].pcie_width, machine->board.pcie_width),
			 from->ancestor[b]);
}

static void note_rate(struct rings *rings, uint32_t mbps)
{
	uint32_t at = 0;

	while (at < rings->rate_count && rings->rates[at] > mbps)
		at++;
	if ((at < rings->rate_count && rings->rates[at] == mbps) || rings->rate_count == MAX_RATES)
		return;
	memmove(&rings->rates[at + 1], &rings->rates[at],
		(rings->rate_count++ - at) * sizeof(rings->rates[0]));
	rings->rates[at] = mbps;
}

static void measure(struct rings *rings, const struct twin_machine *machine,
		    const struct wear *wear)
{
	rings->count = machine->gpu_count;
	rings->rate_count = 0;
	for (uint32_t a = 0; a < rings->count; a++) {
		for (uint32_t b = 0; b < a; b++) {
			uint32_t mbps = pair_mbps(machine, wear, a, b);
			rings->mbps[a][b] = rings->mbps[b][a] = mbps;
			note_rate(rings, mbps);
		}
	}
}

/* GPUs that are linked to this one at `mbps` or better. */
static uint64_t near(const struct rings *rings, uint32_t gpu, uint32_t mbps)
{
	uint64_t mask = 0;

	for (uint32_t other = 0; other < rings->count; other++)
		mask |= (uint64_t)(other != gpu && rings->mbps[gpu][other] >= mbps) << other;
	return mask;
}

/* Fills `ends`: paths begin at the lowest GPU of their set and take no step under `mbps`. */
static void walk(struct rings *rings, uint32_t mbps)
{
	uint32_t nears[TABLE_GPUS];

	for (uint32_t gpu = 0; gpu < rings->count; gpu++)
		nears[gpu] = (uint32_t)near(rings, gpu, mbps);
	for (uint32_t set = 1; set < 1u << rings->count; set++) {
		uint32_t first = (uint32_t)__builtin_ctz(set), ends = 0;

		if (set == 1u << first)
			ends = set;
		for (uint32_t rest = set & ~(1u << first); rest; rest &= rest - 1) {
			uint32_t last = (uint32_t)__builtin_ctz(rest);
			if (rings->ends[set & ~(1u << last)] & nears[last])
				ends |= 1u << last;
		}
		rings->ends[set] = (uint16_t)ends;
	}
}

static bool closes(const struct rings *rings, uint32_t set, uint32_t mbps)
{
	return rings->ends[set] & near(rings, (uint32_t)__builtin_ctz(set), mbps);
}

/* Can a set be walked round; or, when it is 0, any of that size? By the table. */
static bool table_has(struct rings *rings, uint32_t set, int size, uint32_t mbps)
{
	walk(rings, mbps);
	if (set)
		return closes(rings, set, mbps);
	for (uint32_t any = 1; any < 1u << rings->count; any++) {
		if (__builtin_popcount(any) == size && closes(rings, any, mbps))
			return true;
	}
	return false;
}

/* What is left of a set when those go that have fewer than two near ones in it. */
static uint64_t well_linked(const uint64_t *nears, uint64_t set)
{
	uint64_t before;

	do {
		before = set;
		for (uint64_t rest = before; rest; rest &= rest - 1) {
			int gpu = __builtin_ctzll(rest);
			if (__builtin_popcountll(nears[gpu] & set) < 2)
				set &= ~(1ull << gpu);
		}
	} while (set != before);
	return set;
}

/* Those of a set that can be reached from its lowest. */
static uint64_t reached(const uint64_t *nears, uint64_t set)
{
	uint64_t found = set & -set, before;

	do {
		before = found;
		for (uint64_t rest = before; rest; rest &= rest - 1)
			found |= nears[__builtin_ctzll(rest)] & set;
	} while (found != before);
	return found;
}

/* The same for machines that are too large for the table. */
static bool spans(const struct rings *rings, uint64_t set, int size, uint32_t mbps)
{
	uint64_t nears[TWIN_MAX_GPUS], left = set ? set : UINT64_MAX >> (64 - rings->count);

	for (uint32_t gpu = 0; gpu < rings->count; gpu++)
		nears[gpu] = near(rings, gpu, mbps);
	if (size > 2)
		left = well_linked(nears, left);
	while (left) {
		uint64_t together = reached(nears, left);
		if (__builtin_popcountll(together) >= size)
			return true;
		left &= ~together;
	}
	return false;
}

/* The narrowest part of the best ring of a set; of set 0, of the best of all sets with that size.
 */
static uint32_t narrowest(struct rings *rings, uint64_t set, int size)
{
	for (uint32_t i = 0; i < rings->rate_count; i++) {
		uint32_t rate = rings->rates[i];
		if (rings->ends ? table_has(rings, (uint32_t)set, size, rate)
				: spans(rings, set, size, rate))
			return rate;
	}
	return 0;
}

int twin_rings_permille(struct twin_map *map, uint64_t set, uint32_t *ret, struct takt_err *err)
{
	const struct twin_machine *machine = &twin_map_file(map)->machine;
	struct wear wear[TWIN_MAX_GPUS] = {0};
	struct rings rings = {0};
	int size = __builtin_popcountll(set);
	uint32_t mbps, best;

	if (size < 2) {
		*ret = 1000;
		return 0;
	}
	if (machine->gpu_count <= TABLE_GPUS &&
	    !(rings.ends = takt_calloc((size_t)1 << machine->gpu_count, sizeof(*rings.ends))))
		return takt_err_set(err, -ENOMEM, "compare links");
	measure(&rings, machine, wear);
	best = narrowest(&rings, 0, size);
	for (uint32_t i = 0; i < machine->gpu_count; i++) {
		struct twin_gpu gpu;
		twin_read(map, i, &gpu);
		wear[i] = (struct wear){gpu.links_down, gpu.pcie_gen, gpu.pcie_width};
	}
	measure(&rings, machine, wear);
	mbps = narrowest(&rings, set, size);
	takt_free(rings.ends);
	*ret = best ? (uint32_t)((uint64_t)mbps * 1000 / best) : 1000;
	*ret = *ret ? *ret : 1;
	return 0;
}
