/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How well a set of GPUs is linked. Collective communication goes round a ring, and a ring is as
 * fast as its narrowest part; so a set is worth the narrowest part of its best ring. Found for all
 * sets of a machine at once: for each bandwidth that occurs, from the highest down, which sets can
 * be walked round without a narrower step (Held and Karp's table, with a bit for "can be reached").
 */
#include <errno.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/mem.h"
#include "takt_twin.h"

enum {
	MAX_RATES = 32
};

struct rings {
	uint32_t count;
	uint32_t mbps[TWIN_MAX_GPUS][TWIN_MAX_GPUS];
	uint32_t rates[MAX_RATES], rate_count; /* that occur, descending */
	uint16_t *ends;			       /* of each set: where a path through it may end */
};

/* Usable part of a PCIe link, by how far the two are apart: ratios of NCCL's published constants
 * (12 GB/s in gen 3 x16, 10 between sockets); those of the levels between: GUESS. */
static uint32_t pcie_mbps(const struct twin_board *board, uint32_t level)
{
	uint32_t lane_mbps = 750u << (board->pcie_gen > 3 ? board->pcie_gen - 3 : 0);
	uint32_t all = lane_mbps * board->pcie_width;

	if (level <= NVML_TOPOLOGY_MULTIPLE)
		return all;
	if (level <= NVML_TOPOLOGY_HOSTBRIDGE)
		return all * 9 / 10;
	return level <= NVML_TOPOLOGY_NODE ? all * 8 / 10 : all * 6 / 10;
}

static uint32_t pair_mbps(const struct twin_machine *machine, uint32_t a, uint32_t b)
{
	const struct twin_gpu_desc *from = &machine->gpus[a], *to = &machine->gpus[b];
	uint32_t links = 0;

	for (uint32_t i = 0; i < from->link_count; i++)
		links += from->links[i].to_switch ? to->link_count > 0
						  : from->links[i].bus == to->bus;
	return links ? links * machine->board.nvlink_mbps
		     : pcie_mbps(&machine->board, from->ancestor[b]);
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

static void measure(struct rings *rings, const struct twin_machine *machine)
{
	rings->count = machine->gpu_count;
	for (uint32_t a = 0; a < rings->count; a++) {
		for (uint32_t b = 0; b < a; b++) {
			uint32_t mbps = pair_mbps(machine, a, b);
			rings->mbps[a][b] = rings->mbps[b][a] = mbps;
			note_rate(rings, mbps);
		}
	}
}

/* GPUs that are linked to this one at `mbps` or better. */
static uint32_t near(const struct rings *rings, uint32_t gpu, uint32_t mbps)
{
	uint32_t mask = 0;

	for (uint32_t other = 0; other < rings->count; other++)
		mask |= (uint32_t)(other != gpu && rings->mbps[gpu][other] >= mbps) << other;
	return mask;
}

/* Fills `ends`: paths begin at the lowest GPU of their set and take no step under `mbps`. */
static void walk(struct rings *rings, uint32_t mbps)
{
	uint32_t nears[TWIN_MAX_GPUS];

	for (uint32_t gpu = 0; gpu < rings->count; gpu++)
		nears[gpu] = near(rings, gpu, mbps);
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

/* The narrowest part of the set's best ring, and of the best ring of all sets as large. */
static void search(struct rings *rings, uint32_t set, uint32_t *ret_mbps, uint32_t *ret_best)
{
	int size = __builtin_popcount(set);

	*ret_mbps = *ret_best = 0;
	for (uint32_t i = 0; i < rings->rate_count && !*ret_mbps; i++) {
		uint32_t rate = rings->rates[i];
		walk(rings, rate);
		for (uint32_t other = 1; other < 1u << rings->count && !*ret_best; other++) {
			if (__builtin_popcount(other) == size && closes(rings, other, rate))
				*ret_best = rate;
		}
		if (closes(rings, set, rate))
			*ret_mbps = rate;
	}
}

int twin_rings_permille(const struct twin_machine *machine, uint32_t set, uint32_t *ret,
			struct takt_err *err)
{
	struct rings rings = {0};
	uint32_t mbps, best;

	if (__builtin_popcount(set) < 2) {
		*ret = 1000;
		return 0;
	}
	rings.ends = takt_calloc((size_t)1 << machine->gpu_count, sizeof(*rings.ends));
	if (!rings.ends)
		return takt_err_set(err, -ENOMEM, "compare links");
	measure(&rings, machine);
	search(&rings, set, &mbps, &best);
	takt_free(rings.ends);
	*ret = best ? (uint32_t)((uint64_t)mbps * 1000 / best) : 1000;
	return 0;
}
