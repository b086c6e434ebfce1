/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin fault: break a GPU, now or later or by a script, and mend it. */
#include "twin_fault.h"

#include <errno.h>
#include <string.h>

struct options {
	const char *machine, *script, *log;
	uint64_t at_ns;
};

static int parse(int argc, char **argv, struct options *options, struct takt_err *err)
{
	static const struct option known[] = {
		{"machine", required_argument, NULL, 'm'},
		{"script", required_argument, NULL, 's'},
		{"log", required_argument, NULL, 'l'},
		{"at", required_argument, NULL, 'a'},
		{0},
	};
	int c, rc = 0;

	while (rc == 0 && (c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'm')
			options->machine = optarg;
		else if (c == 's')
			options->script = optarg;
		else if (c == 'l')
			options->log = optarg;
		else if (c == 'a')
			rc = twin_fault_parse_time(optarg, &options->at_ns, err);
		else
			rc = twin_bad_option(&twin_verb_fault, argv, err);
	}
	if (rc == 0 && argc - optind != (options->script ? 0 : 2))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "say which GPU and which fault: fault 3 lost; or --script FILE");
	return rc;
}

static int one(struct twin_map *map, const char *gpus, const char *fault, uint64_t at_ns,
	       uint64_t *ret_end_ns, struct takt_err *err)
{
	struct twin_fault_wish wish = {.at_ns = at_ns};
	int rc = twin_fault_parse(fault, &wish, err);

	if (rc == 0)
		rc = twin_fault_parse_gpus(map, gpus, &wish, err);
	if (rc == 0)
		rc = twin_fault_apply(map, &wish, 1, err);
	if (rc == 0)
		*ret_end_ns = twin_map_now_ns(map) + at_ns;
	return rc;
}

static int run_fault(int argc, char **argv, struct takt_err *err)
{
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	struct options options = {0};
	struct twin_kmsg kmsg;
	uint64_t end_ns = 0;
	FILE *log = NULL;
	int rc = parse(argc, argv, &options, err);

	if (rc == 0)
		rc = twin_open_machine(options.machine, &map, err);
	if (rc == 0 && options.log && !(log = fopen(options.log, "ae")))
		rc = takt_err_set(err, -errno, "append to '%s'", options.log);
	if (log)
		twin_kmsg_start(map, &kmsg);
	if (rc == 0)
		rc = options.script ? twin_script_put(map, options.script, &end_ns, err)
				    : one(map, argv[optind], argv[optind + 1], options.at_ns,
					  &end_ns, err);
	if (log && rc == 0)
		twin_kmsg_follow(map, &kmsg, end_ns, log);
	if (log)
		fclose(log);
	return rc;
}

const struct twin_verb twin_verb_fault = {
	.name = "fault",
	.usage = "GPU|all FAULT [--at TIME] | --script FILE  [--log FILE] [--machine FILE]",
	.summary = "Break a GPU, or mend it with `none`",
	.help = "GPU is an index, a UUID, or several with commas. FAULT is one of\n"
		"  lost                    every call says that the GPU is lost (XID 79)\n"
		"  hang[=SECONDS]          calls block until mended, or until the time is over\n"
		"  slow=MS                 every call takes MS milliseconds\n"
		"  permission              setters are refused\n"
		"  driver-restore-refused  setters work; reset calls, and setting the default "
		"power\n"
		"                          limit, are refused\n"
		"  xid=N                   an XID of that number\n"
		"  ecc                     an uncorrectable error; its row is to be replaced (XID "
		"48)\n"
		"  ecc-corrected[=N]       N correctable errors\n"
		"  remap-failed            a row cannot be replaced (XID 64)\n"
		"  power-brake             the clock is halved by the power supply\n"
		"  air=PERCENT             of the cooling that there was, down to 1: coolant that "
		"is "
		"gone\n"
		"  fan-stuck               a board's own fan stands still\n"
		"  overheated              it switches itself off, as at its shutdown temperature "
		"(XID 79)\n"
		"  pcie-width=N            the bus falls to fewer lanes\n"
		"  pcie-gen=N              the bus falls to an earlier generation\n"
		"  link-down=N             an NVLink goes (XID 74)\n"
		"  driver-reload[=SECONDS] `all` only: the driver is gone for that time and comes "
		"back\n"
		"                          without settings, processes and instances\n"
		"  none                    all well again; errors that were counted stay counted\n"
		"  forget                  what is still to come does not\n"
		"Faults add up until mended. Readings tell of them, and so do simulated jobs: "
		"those on a\n"
		"lost GPU fail, on a hanging one hang, on a hot or braked one slow down, and so do "
		"those\n"
		"that communicate over links or a bus that got worse.\n\n"
		"  --at TIME      so long from now, in the machine's time: 5s, 200ms\n"
		"  --script FILE  lines of TIME GPU FAULT, with # comments\n"
		"  --log FILE     stay until the last has come about, and append XIDs as the "
		"kernel\n"
		"                 logs them; `takt-twin kmsg` shows them at any time\n\n"
		"What is to come is in the machine: it comes about although nobody waits for it.\n",
	.run = run_fault,
};
