/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of faults by name, and putting them into a machine: each GPU is given its part, now or
 * as a plan, in one change.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

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
	enum twin_trouble trouble;
	enum value value;
	uint64_t min, max; /* of the value */
	const char *like;  /* an example, of those that need one */
	bool machine;	   /* all GPUs or none */
};

enum {
	DAY_S = 86400
};

static const struct twin_fault_kind kinds[] = {
	{"none", TWIN_TROUBLE_NONE},
	{"forget", TWIN_TROUBLE_FORGET},
	{"lost", TWIN_TROUBLE_LOST},
	{"hang", TWIN_TROUBLE_HANG, MAY_HAVE_VALUE, 1, DAY_S},
	{"slow", TWIN_TROUBLE_SLOW, NEEDS_VALUE, 1, 60000, "20 for 20 ms a call"},
	{"permission", TWIN_TROUBLE_PERMISSION},
	{"driver-restore-refused", TWIN_TROUBLE_RESTORE_REFUSED},
	{"xid", TWIN_TROUBLE_XID, NEEDS_VALUE, 1, 999, "48"},
	{"ecc", TWIN_TROUBLE_ECC},
	{"ecc-corrected", TWIN_TROUBLE_ECC_CORRECTED, MAY_HAVE_VALUE, 1, UINT32_MAX},
	{"remap-failed", TWIN_TROUBLE_REMAP_FAILED},
	{"power-brake", TWIN_TROUBLE_POWER_BRAKE},
	{"air", TWIN_TROUBLE_AIR, NEEDS_VALUE, 1, 100, "30 for 30 % of the cooling"},
	{"fan-stuck", TWIN_TROUBLE_FAN_STUCK},
	{"overheated", TWIN_TROUBLE_OVERHEATED},
	{"pcie-width", TWIN_TROUBLE_PCIE_WIDTH, NEEDS_VALUE, 1, 16, "4"},
	{"pcie-gen", TWIN_TROUBLE_PCIE_GEN, NEEDS_VALUE, 1, 6, "3"},
	{"link-down", TWIN_TROUBLE_LINK_DOWN, NEEDS_VALUE, 0, TWIN_MAX_LINKS, "4"},
	{"driver-reload", TWIN_TROUBLE_RELOAD, MAY_HAVE_VALUE, 1, DAY_S, .machine = true},
};

static const struct twin_fault_kind *find_kind(const char *name, size_t n)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) == n && strncmp(kinds[i].name, name, n) == 0)
			return &kinds[i];
	}
	return NULL;
}

const char *twin_fault_name(uint32_t trouble)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++) {
		if (kinds[i].trouble == trouble)
			return kinds[i].name;
	}
	return "";
}

static int no_such_fault(const char *text, struct takt_err *err)
{
	char names[220] = "";

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
				    wish.kind->like);
	if (value && wish.kind->value == NO_VALUE)
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' takes no value", text);
	if (value && twin_number(text, value, wish.kind->min, wish.kind->max, &wish.value, err) < 0)
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
	ret->mask = UINT64_MAX >> (64 - machine->gpu_count);
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

/* One GPU's part of what is put into the machine. */
struct part {
	const struct twin_machine *machine;
	const struct twin_fault_wish *wishes;
	uint32_t count, gpu;
	uint64_t start_ns;
};

/* The link at the other end of a direct one: as many links between the two come before it. */
static bool far_end(const struct twin_machine *machine, uint32_t gpu, uint64_t link,
		    uint32_t *ret_gpu, uint64_t *ret_link)
{
	const struct twin_gpu_desc *near = &machine->gpus[gpu];
	uint32_t before = 0;

	if (link >= near->link_count || near->links[link].to_switch)
		return false;
	for (uint64_t i = 0; i < link; i++)
		before += !near->links[i].to_switch && near->links[i].end == near->links[link].end;
	*ret_gpu = near->links[link].end;
	for (uint32_t i = 0; i < machine->gpus[*ret_gpu].link_count; i++) {
		const struct twin_link *back = &machine->gpus[*ret_gpu].links[i];
		if (back->to_switch || back->end != gpu || before--)
			continue;
		*ret_link = i;
		return true;
	}
	return false;
}

/* Does the wish concern this GPU? A direct link goes down at both of its ends. */
static bool concerns(const struct part *part, const struct twin_fault_wish *wish,
		     uint64_t *ret_value)
{
	*ret_value = wish->value;
	if (wish->mask >> part->gpu & 1)
		return true;
	for (uint32_t i = 0; wish->kind->trouble == TWIN_TROUBLE_LINK_DOWN && i < TWIN_MAX_GPUS;
	     i++) {
		uint32_t far;
		if (wish->mask >> i & 1 &&
		    far_end(part->machine, i, wish->value, &far, ret_value) && far == part->gpu)
			return true;
	}
	return false;
}

static int put_part(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct part *part = arg;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < part->count; i++) {
		const struct twin_fault_wish *wish = &part->wishes[i];
		struct twin_planned planned = {.at_ns = part->start_ns + wish->at_ns,
					       .trouble = wish->kind->trouble};
		if (!concerns(part, wish, &planned.value))
			continue;
		if (wish->at_ns)
			rc = twin_trouble_plan(gpu, &planned);
		else
			twin_trouble_happen(gpu, board, planned.trouble, planned.value);
	}
	return rc;
}

static int check_wish(const struct twin_map *map, const struct twin_fault_wish *wish,
		      struct takt_err *err)
{
	const struct twin_board *board = twin_map_board(map);
	int rc = twin_trouble_check(board, wish->kind->trouble, wish->value);

	if (rc == -ENOTSUP)
		return takt_err_set(err, -TAKT_E_USAGE, "a %s cannot have %s", board->name,
				    wish->kind->name);
	if (rc < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "a %s cannot have %s=%" PRIu64, board->name,
				    wish->kind->name, wish->value);
	return 0;
}

/* Is there room for all of them on that GPU? */
static int check_room(struct twin_map *map, const struct part *part, struct takt_err *err)
{
	uint64_t value, wanted = 0;
	struct twin_gpu gpu;

	twin_read(map, part->gpu, &gpu);
	for (uint32_t i = 0; i < part->count; i++)
		wanted += part->wishes[i].at_ns && concerns(part, &part->wishes[i], &value);
	if (gpu.plan_count + wanted <= TWIN_PLANNED)
		return 0;
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "GPU %u: %d faults may be to come at a time, and %" PRIu64
			    " are planned already; `fault all forget` drops them",
			    part->gpu, TWIN_PLANNED, gpu.plan_count);
}

int twin_fault_apply(struct twin_map *map, const struct twin_fault_wish *wishes, uint32_t count,
		     struct takt_err *err)
{
	struct part part = {&twin_map_file(map)->machine, wishes, count, 0, twin_map_now_ns(map)};
	uint32_t gpus = part.machine->gpu_count;
	int rc = 0;

	if (!twin_map_writable(map))
		return takt_err_set(err, -EACCES, "this machine's file may not be written by you");
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = check_wish(map, &wishes[i], err);
	for (part.gpu = 0; rc == 0 && part.gpu < gpus; part.gpu++)
		rc = check_room(map, &part, err);
	if (rc < 0)
		return rc;
	/* the first GPU first: its state says whether the driver is there */
	for (part.gpu = 0; part.gpu < gpus; part.gpu++) {
		rc = twin_change(map, part.gpu, put_part, &part);
		if (rc < 0)
			return takt_err_set(err, rc, "GPU %u: change the machine's file", part.gpu);
	}
	return 0;
}
