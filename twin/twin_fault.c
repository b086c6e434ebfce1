/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin fault: break a GPU, and mend it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "takt_twin.h"

enum {
	MAX_SECONDS = 86400,
	MAX_SLOW_MS = 60000
};

static const struct {
	const char *name;
	uint32_t bit;
} faults[] = {
	{"lost", TWIN_FAULT_LOST},
	{"hang", TWIN_FAULT_HANG},
	{"slow", TWIN_FAULT_SLOW},
	{"permission", TWIN_FAULT_PERMISSION},
	{"driver-restore-refused", TWIN_FAULT_RESTORE_REFUSED},
};

struct wish {
	uint32_t bit; /* 0: mend */
	uint64_t value;
};

/* NAME or NAME=VALUE; only hang and slow take a value, slow must have one. */
static int parse_fault(const char *text, struct wish *ret, struct takt_err *err)
{
	size_t n = strcspn(text, "=");
	const char *value = text[n] ? text + n + 1 : NULL;
	struct wish wish = {0};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(faults); i++) {
		if (strlen(faults[i].name) == n && strncmp(faults[i].name, text, n) == 0)
			wish.bit = faults[i].bit;
	}
	if (!wish.bit && strcmp(text, "none") != 0)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"no fault '%s'; there are lost, hang[=SECONDS], slow=MS, permission, "
			"driver-restore-refused and none",
			text);
	if (wish.bit == TWIN_FAULT_SLOW && !value)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "slow needs a time: slow=20 for 20 ms a call");
	if (value && wish.bit != TWIN_FAULT_SLOW && wish.bit != TWIN_FAULT_HANG)
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' takes no value", text);
	if (value &&
	    twin_number(text, value, 1, wish.bit == TWIN_FAULT_SLOW ? MAX_SLOW_MS : MAX_SECONDS,
			&wish.value, err) < 0)
		return err->rc;
	*ret = wish;
	return 0;
}

static void apply(struct twin_slot *slot, const struct wish *wish)
{
	if (wish->bit == 0) {
		atomic_store(&slot->faults, 0);
		return;
	}
	if (wish->bit == TWIN_FAULT_SLOW)
		atomic_store(&slot->slow_ms, (uint32_t)wish->value);
	if (wish->bit == TWIN_FAULT_HANG)
		atomic_store(&slot->hang_until_ns,
			     wish->value ? twin_now_ns() + wish->value * 1000000000ull : 0);
	atomic_fetch_or(&slot->faults, wish->bit);
}

static int apply_to_mask(struct twin_map *map, uint32_t mask, const struct wish *wish,
			 struct takt_err *err)
{
	if (!twin_map_writable(map))
		return takt_err_set(err, -EACCES, "this machine's file may not be written by you");
	for (uint32_t i = 0; i < twin_map_file(map)->machine.gpu_count; i++) {
		if (mask >> i & 1)
			apply(&twin_map_file(map)->slots[i], wish);
	}
	return 0;
}

static int run_fault(int argc, char **argv, struct takt_err *err)
{
	static const struct option known[] = {{"machine", required_argument, NULL, 'm'}, {0}};
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	const char *machine = NULL;
	uint32_t mask = UINT32_MAX;
	struct wish wish = {0};
	int c, rc;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c != 'm')
			return twin_bad_option(&twin_verb_fault, argv, err);
		machine = optarg;
	}
	if (argc - optind != 2)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say which GPU and which fault: fault 3 lost");
	rc = parse_fault(argv[optind + 1], &wish, err);
	if (rc == 0)
		rc = twin_open_machine(machine, &map, err);
	if (rc == 0 && strcmp(argv[optind], "all") != 0)
		rc = twin_find_gpus(&twin_map_file(map)->machine, argv[optind], &mask, err);
	return rc < 0 ? rc : apply_to_mask(map, mask, &wish, err);
}

const struct twin_verb twin_verb_fault = {
	.name = "fault",
	.usage = "GPU|all FAULT [--machine FILE]",
	.summary = "Break a GPU, or mend it with `none`",
	.help = "GPU is an index, a UUID, or several with commas. FAULT is one of\n"
		"  lost                    every call says that the GPU is lost\n"
		"  hang[=SECONDS]          calls block until mended, or until the time is over\n"
		"  slow=MS                 every call takes MS milliseconds\n"
		"  permission              setters are refused\n"
		"  driver-restore-refused  setters work; reset calls, and setting the default "
		"power\n"
		"                          limit, are refused\n"
		"  none                    all well again\n"
		"Faults add up until mended.\n",
	.run = run_fault,
};
