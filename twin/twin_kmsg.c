/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt-twin kmsg: what the machine's kernel would have logged of its GPUs. Nothing writes a log
 * while nobody looks: each GPU keeps its last events, and whoever asks puts them into words.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "abi/nvml.h"
#include "base/compiler.h"
#include "twin_fault.h"

enum {
	LOOK_EVERY_NS = 10000000
};

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

static void write_line(const struct twin_map *map, uint32_t gpu, const struct twin_event *event,
		       FILE *out)
{
	const struct twin_pci *pci = &twin_map_file(map)->machine.gpus[gpu].pci;

	fprintf(out,
		"[%5" PRIu64 ".%06" PRIu64 "] NVRM: Xid (PCI:%04x:%02x:%02x): %" PRIu64
		", pid='<unknown>', name=<unknown>, %s\n",
		event->at_ns / 1000000000, event->at_ns / 1000 % 1000000, (unsigned)pci->domain,
		(unsigned)pci->bus, (unsigned)pci->slot, event->data, xid_text(event->data));
}

void twin_kmsg_start(struct twin_map *map, struct twin_kmsg *kmsg)
{
	for (uint32_t i = 0; i < twin_map_file(map)->machine.gpu_count; i++) {
		struct twin_gpu gpu;
		twin_read(map, i, &gpu);
		kmsg->seen[i] = gpu.event_count;
	}
}

/* The oldest XID of a GPU that was not written yet; *seen is then its number. */
static bool oldest(const struct twin_gpu *gpu, uint64_t *seen, struct twin_event *ret)
{
	if (gpu->event_count > *seen + TWIN_EVENTS)
		*seen = gpu->event_count - TWIN_EVENTS;
	for (; *seen < gpu->event_count; (*seen)++) {
		*ret = gpu->events[*seen % TWIN_EVENTS];
		if (ret->type == NVML_EVENT_XID_CRITICAL)
			return true;
	}
	return false;
}

/* The oldest of all GPUs. */
static bool next_line(struct twin_map *map, struct twin_kmsg *kmsg, uint32_t *ret_gpu,
		      struct twin_event *ret)
{
	bool found = false;

	for (uint32_t i = 0; i < twin_map_file(map)->machine.gpu_count; i++) {
		struct twin_event event;
		struct twin_gpu gpu;
		twin_read(map, i, &gpu);
		if (!oldest(&gpu, &kmsg->seen[i], &event) || (found && event.at_ns >= ret->at_ns))
			continue;
		found = true;
		*ret_gpu = i;
		*ret = event;
	}
	return found;
}

void twin_kmsg_write(struct twin_map *map, struct twin_kmsg *kmsg, FILE *out)
{
	struct twin_event event;
	uint32_t gpu;

	while (next_line(map, kmsg, &gpu, &event)) {
		write_line(map, gpu, &event, out);
		kmsg->seen[gpu]++;
	}
	fflush(out);
}

void twin_kmsg_follow(struct twin_map *map, struct twin_kmsg *kmsg, uint64_t until_ns, FILE *out)
{
	struct timespec nap = {.tv_nsec = LOOK_EVERY_NS};

	while (!atomic_load(&twin_map_file(map)->destroyed)) {
		bool last = twin_map_now_ns(map) > until_ns;
		twin_kmsg_write(map, kmsg, out);
		if (last)
			return;
		nanosleep(&nap, NULL);
	}
}

static int run_kmsg(int argc, char **argv, struct takt_err *err)
{
	static const struct option known[] = {
		{"machine", required_argument, NULL, 'm'}, {"follow", no_argument, NULL, 'f'}, {0}};
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	struct twin_kmsg kmsg = {0};
	const char *machine = NULL;
	bool follow = false;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'm')
			machine = optarg;
		else if (c == 'f')
			follow = true;
		else
			return twin_bad_option(&twin_verb_kmsg, argv, err);
	}
	if (optind != argc)
		return takt_err_set(err, -TAKT_E_USAGE, "takes no argument '%s'", argv[optind]);
	rc = twin_open_machine(machine, &map, err);
	if (rc < 0)
		return rc;
	twin_kmsg_follow(map, &kmsg, follow ? UINT64_MAX : 0, stdout);
	return 0;
}

const struct twin_verb twin_verb_kmsg = {
	.name = "kmsg",
	.usage = "[--follow] [--machine FILE]",
	.summary = "Show what the machine's kernel would have logged of its GPUs",
	.help = "The last XIDs of each GPU, in the kernel's words and the machine's time.\n\n"
		"  --follow  go on until the machine is destroyed\n",
	.run = run_kmsg,
};
