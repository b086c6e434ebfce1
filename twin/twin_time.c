/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin time: let a machine's time pass faster or stand still, and move it on by hand. */
#include <stdio.h>

#include "twin_fault.h"

struct options {
	const char *machine;
	uint64_t speed, skip_ns;
	bool set;
};

static int parse(int argc, char **argv, struct options *options, struct takt_err *err)
{
	static const struct option known[] = {{"machine", required_argument, NULL, 'm'},
					      {"speed", required_argument, NULL, 's'},
					      {"advance", required_argument, NULL, 'a'},
					      {0}};
	int c, rc = 0;

	while (rc == 0 && (c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'm')
			options->machine = optarg;
		else if (c == 's')
			rc = twin_number("--speed", optarg, 0, TWIN_MAX_SPEED, &options->speed,
					 err);
		else if (c == 'a')
			rc = twin_fault_parse_time(optarg, &options->skip_ns, err);
		else
			rc = twin_bad_option(&twin_verb_time, argv, err);
		options->set |= c == 's' || c == 'a';
	}
	if (rc == 0 && optind != argc)
		rc = takt_err_set(err, -TAKT_E_USAGE, "takes no argument '%s'", argv[optind]);
	return rc;
}

static int run_time(int argc, char **argv, struct takt_err *err)
{
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	struct options options = {.speed = UINT64_MAX};
	const struct twin_file *file;
	int rc = parse(argc, argv, &options, err);

	if (rc == 0)
		rc = twin_open_machine(options.machine, &map, err);
	if (rc < 0)
		return rc;
	file = twin_map_file(map);
	if (options.speed == UINT64_MAX)
		options.speed = twin_clock_speed(&file->clock);
	if (options.set)
		rc = twin_map_set_time(map, options.speed, options.skip_ns);
	if (rc < 0)
		return takt_err_set(err, rc, "change the machine's time");
	printf("%.3f s since it was made, speed %llu\n",
	       (double)(twin_map_now_ns(map) - file->created_ns) / 1e9,
	       (unsigned long long)twin_clock_speed(&file->clock));
	return 0;
}

const struct twin_verb twin_verb_time = {
	.name = "time",
	.usage = "[--speed N] [--advance TIME] [--machine FILE]",
	.summary = "Show a machine's time, let it pass faster, or move it on by hand",
	.help = "  --speed N       N times as fast as the world's, 0 to 1000; 0 stands still\n"
		"  --advance TIME  jump: 90s, 200ms\n\n"
		"All that happens on a machine is in its time: energy, heat, workloads' steps, "
		"faults to\n"
		"come, how long a GPU hangs. Clients live in the world's: time stamps are of "
		"theirs, "
		"so\n"
		"who divides energy by his own time finds N times the power that is shown. How "
		"long "
		"a slow\n"
		"call takes, and how long a client waits for events, is the world's time, too.\n"
		"Of jobs on several GPUs none gets ahead by more than half a second in one jump.\n",
	.run = run_time,
};
