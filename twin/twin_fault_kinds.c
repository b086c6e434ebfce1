/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of faults. Some are words beside the GPU's state that every call looks at; some change
 * the state, so that readings, the model and events show them. XIDs are told to those who wait for
 * events, and as the kernel would log them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "abi/nvml.h"
#include "base/str.h"
#include "twin_fault.h"
#include "twin_trouble.h"

enum value {
	NO_VALUE,
	MAY_HAVE_VALUE,
	NEEDS_VALUE
};

struct twin_fault_kind {
	const char *name;
	uint32_t bit; /* enum twin_fault */
	enum value value;
	uint64_t max;		/* of the value */
	twin_change_fn *change; /* gets the value */
	uint32_t xid;		/* that comes with it; 0 = none */
	bool machine;		/* all GPUs or none */
};

static int mend(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	gpu->power_brake = 0;
	gpu->airflow_permille = 1000;
	gpu->pcie_gen = gpu->pcie_width = 0;
	gpu->links_down = 0;
	return 0;
}

static int brake(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	gpu->power_brake = 1;
	return 0;
}

/* Percent of the cooling that there was: a fan that stands still, a blocked filter. */
static int block_air(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	gpu->airflow_permille = (uint32_t) * (const uint64_t *)arg * 10;
	return 0;
}

static int narrow(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint64_t width = *(const uint64_t *)arg;

	if (width >= board->pcie_width || (width & (width - 1)))
		return -ERANGE;
	gpu->pcie_width = (uint32_t)width;
	return 0;
}

static int slow_bus(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint64_t gen = *(const uint64_t *)arg;

	if (gen >= board->pcie_gen)
		return -ERANGE;
	gpu->pcie_gen = (uint32_t)gen;
	return 0;
}

static int cut_link(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint64_t link = *(const uint64_t *)arg;

	if (link >= board->nvlinks)
		return -ERANGE;
	gpu->links_down |= 1u << link;
	return 0;
}

static int correctable(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	uint64_t count = *(const uint64_t *)arg ? *(const uint64_t *)arg : 1;

	gpu->ecc_cor_volatile += count;
	gpu->ecc_cor_aggregate += count;
	twin_event_add(gpu, NVML_EVENT_SINGLE_BIT_ECC, 0);
	return 0;
}

static int uncorrectable(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	twin_trouble_ecc(gpu, board);
	return 0;
}

static int fail_remap(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	if (!(board->features & TWIN_HAS_ROW_REMAP))
		return -ENOTSUP;
	gpu->remap_failed = 1;
	return 0;
}

static int reload(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	twin_trouble_reload(gpu, board);
	return 0;
}

static int add_xid(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	twin_event_add(gpu, NVML_EVENT_XID_CRITICAL, *(const uint64_t *)arg);
	return 0;
}

enum {
	DAY_S = 86400,
	ROW_REMAPPED = 63, /* XIDs */
	OWN_VALUE = 1000   /* the one that the fault's value says */
};

static const struct twin_fault_kind kinds[] = {
	{"none", .change = mend},
	{"lost", .bit = TWIN_FAULT_LOST, .xid = 79},
	{"hang", .bit = TWIN_FAULT_HANG, MAY_HAVE_VALUE, DAY_S},
	{"slow", .bit = TWIN_FAULT_SLOW, NEEDS_VALUE, 60000},
	{"permission", .bit = TWIN_FAULT_PERMISSION},
	{"driver-restore-refused", .bit = TWIN_FAULT_RESTORE_REFUSED},
	{"xid", .value = NEEDS_VALUE, .max = 999, .xid = OWN_VALUE},
	{"ecc", .change = uncorrectable, .xid = 48},
	{"ecc-corrected", .value = MAY_HAVE_VALUE, .max = UINT32_MAX, .change = correctable},
	{"remap-failed", .change = fail_remap, .xid = 64},
	{"power-brake", .change = brake},
	{"air", .value = NEEDS_VALUE, .max = 100, .change = block_air},
	{"pcie-width", .value = NEEDS_VALUE, .max = 16, .change = narrow},
	{"pcie-gen", .value = NEEDS_VALUE, .max = 6, .change = slow_bus},
	{"link-down", .value = NEEDS_VALUE, .max = TWIN_MAX_LINKS, .change = cut_link, .xid = 74},
	{"driver-reload", .value = MAY_HAVE_VALUE, .max = DAY_S, .change = reload, .machine = true},
};

static const struct twin_fault_kind *find_kind(const char *name, size_t n)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == n && strncmp(kinds[i].name, name, n) == 0)
			return &kinds[i];
	}
	return NULL;
}

static int no_such_fault(const char *text, struct takt_err *err)
{
	char names[200] = "";

	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, " %s%s", kinds[i].name,
			 kinds[i].value == NEEDS_VALUE ? "=N" : "");
	}
	return takt_err_set(err, -TAKT_E_USAGE, "no fault '%s'; there are%s", text, names);
}

int twin_fault_parse(const char *text, struct twin_fault_wish *ret, struct takt_err *err)
{
	size_t n = strcspn(text, "=");
	const char *value = text[n] ? text + n + 1 : NULL;
	struct twin_fault_wish wish = {.kind = find_kind(text, n)};

	if (!wish.kind)
		return no_such_fault(text, err);
	if (!value && wish.kind->value == NEEDS_VALUE)
		return takt_err_set(err, -TAKT_E_USAGE, "%s needs a value, like %s=%s", text, text,
				    wish.kind->bit == TWIN_FAULT_SLOW ? "20 for 20 ms a call"
								      : "4");
	if (value && wish.kind->value == NO_VALUE)
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' takes no value", text);
	if (value && twin_number(text, value, wish.kind->change == cut_link ? 0 : 1, wish.kind->max,
				 &wish.value, err) < 0)
		return err->rc;
	ret->kind = wish.kind;
	ret->value = wish.value;
	return 0;
}

int twin_fault_parse_gpus(const struct twin_map *map, const char *text, struct twin_fault_wish *ret,
			  struct takt_err *err)
{
	const struct twin_machine *machine = &twin_map_file(map)->machine;

	if (ret->kind->machine && strcmp(text, "all") != 0)
		return takt_err_set(err, -TAKT_E_USAGE, "%s is for all GPUs, not for '%s'",
				    ret->kind->name, text);
	if (strcmp(text, "all") != 0)
		return twin_find_gpus(machine, text, &ret->mask, err);
	ret->mask = (1u << machine->gpu_count) - 1;
	return 0;
}

int twin_fault_parse_time(const char *text, uint64_t *ret_ns, struct takt_err *err)
{
	char number[24];
	size_t n = strspn(text, "0123456789");
	bool ms = strcmp(text + n, "ms") == 0;
	unsigned long long value;

	snprintf(number, sizeof(number), "%.*s", (int)(n < sizeof(number) ? n : 0), text);
	if ((!ms && strcmp(text + n, "s") != 0) ||
	    takt_parse_u64(number, 0, ms ? DAY_S * 1000ull : DAY_S, &value) < 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "a time is a whole number of s or ms up to a day, like 5s, "
				    "not '%s'",
				    text);
	*ret_ns = value * (ms ? 1000000ull : 1000000000ull);
	return 0;
}

/* Words as real kernels log them; of other XIDs the number says it. */
static const char *xid_text(uint64_t xid)
{
	static const struct {
		uint64_t xid;
		const char *text;
	} table[] = {
		{13, "Graphics Exception"},
		{31, "MMU Fault"},
		{43, "GPU stopped processing"},
		{48, "DBE (Double Bit Error) ECC Error"},
		{63, "Row Remapper: New row marked for remapping, reset gpu to activate."},
		{64, "Row Remapper: Error: Unable to remap row."},
		{74, "NVLink: fatal error detected"},
		{79, "GPU has fallen off the bus."},
		{94, "Contained: CE User Channel"},
		{95, "Uncontained: ECC error"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(table); i++) {
		if (table[i].xid == xid)
			return table[i].text;
	}
	return "simulated";
}

/* To those who wait for events, and to the log. */
static int tell_xid(struct twin_map *map, uint32_t gpu, uint64_t xid, FILE *log)
{
	uint64_t now_us = twin_now_ns() / 1000;
	int rc = twin_change(map, gpu, add_xid, &xid);

	if (log)
		fprintf(log,
			"[%5" PRIu64 ".%06" PRIu64 "] NVRM: Xid (PCI:0000:%02x:00): %" PRIu64
			", pid='<unknown>', name=<unknown>, %s\n",
			now_us / 1000000, now_us % 1000000,
			(unsigned)twin_map_file(map)->machine.gpus[gpu].bus, xid, xid_text(xid));
	return rc;
}

static void set_bits(struct twin_slot *slot, const struct twin_fault_wish *wish)
{
	uint32_t bit = wish->kind->bit;

	if (wish->kind->change == mend)
		atomic_store(&slot->faults, 0);
	if (bit == TWIN_FAULT_SLOW)
		atomic_store(&slot->slow_ms, (uint32_t)wish->value);
	if (bit == TWIN_FAULT_HANG)
		atomic_store(&slot->hang_until_ns,
			     wish->value ? twin_now_ns() + wish->value * 1000000000ull : 0);
	atomic_fetch_or(&slot->faults, bit);
}

static int apply_to_gpu(struct twin_map *map, uint32_t gpu, const struct twin_fault_wish *wish,
			FILE *log)
{
	uint64_t value = wish->value;
	bool remaps = twin_map_board(map)->features & TWIN_HAS_ROW_REMAP;
	int rc = wish->kind->change ? twin_change(map, gpu, wish->kind->change, &value) : 0;

	if (rc < 0)
		return rc;
	set_bits(&twin_map_file(map)->slots[gpu], wish);
	if (wish->kind->xid)
		rc = tell_xid(map, gpu, wish->kind->xid == OWN_VALUE ? value : wish->kind->xid,
			      log);
	if (rc == 0 && wish->kind->change == uncorrectable && remaps)
		rc = tell_xid(map, gpu, ROW_REMAPPED, log);
	return rc;
}

/* The driver goes before its GPUs forget, so that nobody who had it open reads what comes after. */
static void take_driver_away(struct twin_file *file, uint64_t seconds)
{
	atomic_store(&file->driver_away_until_ns, twin_now_ns() + seconds * 1000000000ull);
	atomic_fetch_add(&file->driver_load, 1);
}

int twin_fault_apply(struct twin_map *map, const struct twin_fault_wish *wish, FILE *log,
		     struct takt_err *err)
{
	if (!twin_map_writable(map))
		return takt_err_set(err, -EACCES, "this machine's file may not be written by you");
	if (wish->kind->machine)
		take_driver_away(twin_map_file(map), wish->value);
	for (uint32_t i = 0; i < twin_map_file(map)->machine.gpu_count; i++) {
		int rc = wish->mask >> i & 1 ? apply_to_gpu(map, i, wish, log) : 0;
		if (rc == -ERANGE || rc == -ENOTSUP)
			return takt_err_set(
				err, -TAKT_E_USAGE, "GPU %u, a %s, cannot have %s=%" PRIu64, i,
				twin_map_board(map)->name, wish->kind->name, wish->value);
		if (rc < 0)
			return takt_err_set(err, rc, "GPU %u: change the machine's file", i);
	}
	if (log)
		fflush(log);
	return 0;
}
