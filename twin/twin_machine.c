/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin machine: check a machine file, or start one from what nvidia-smi printed on a real one.
 */
#include <errno.h>
#include <stdio.h>

#include "takt_twin.h"
#include "twin_board_file.h"
#include "twin_from.h"

int twin_read_captures(int count, char *const *paths, struct twin_capture **ret,
		       struct takt_err *err)
{
	struct twin_capture *capture = twin_capture_new();
	int rc = capture ? 0 : takt_err_set(err, -ENOMEM, "read captures");

	for (int i = 0; rc == 0 && i < count; i++)
		rc = twin_capture_read(capture, paths[i], err);
	if (rc == 0)
		*ret = capture;
	else
		twin_capture_free(capture);
	return rc;
}

static int from_captures(int count, char *const *paths, struct takt_err *err)
{
	TAKT_CLEANUP(twin_capturep) struct twin_capture *capture = NULL;
	struct twin_from from;
	int rc = twin_read_captures(count, paths, &capture, err);

	if (rc == 0)
		rc = twin_from_begin(&from, capture, stdout, stderr, err);
	if (rc < 0)
		return rc;
	printf("# Started by `takt-twin machine --from` from a capture of a real machine. GUESS "
	       "marks what "
	       "no file of it\n# had. UUIDs, serial numbers and what was set (modes, limits, "
	       "locks) are "
	       "not a machine's: they begin anew.\n\n");
	rc = twin_from_machine(&from, err);
	if (rc < 0)
		return rc;
	printf("\n# its board\n");
	return twin_from_board(&from, err);
}

static int check_machine(const char *name, struct takt_err *err)
{
	struct twin_machine machine;
	int rc = twin_machine_load(name, &machine, err);

	if (rc == 0)
		printf("%s: %u x %s\n", machine.name, machine.gpu_count, machine.board.name);
	return rc;
}

static int run_machine(int argc, char **argv, struct takt_err *err)
{
	static const struct option known[] = {{"from", no_argument, NULL, 'f'}, {0}};
	bool from = false;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c != 'f')
			return twin_bad_option(&twin_verb_machine, argv, err);
		from = true;
	}
	if (from ? optind == argc : optind != argc - 1)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say one of: a machine or its file, --from FILE...");
	return from ? from_captures(argc - optind, argv + optind, err)
		    : check_machine(argv[optind], err);
}

const struct twin_verb twin_verb_machine = {
	.name = "machine",
	.usage = "MACHINE|FILE.toml | --from FILE...",
	.summary = "Check a machine file, or start one from a real machine",
	.help = "  --from FILE...  print a machine file with its board, made from what nvidia-smi "
		"printed:\n"
		"                  of `-q -x` or `-q`, and, if there, of `-q -d SUPPORTED_CLOCKS`, "
		"`topo "
		"-m`,\n"
		"                  `nvlink -s`, `c2c -s`; one file or several\n\n"
		"What such a file has and a simulated machine has not is said on stderr.\n\n"
		"  nvidia-smi -q -x >q.xml; nvidia-smi topo -m >topo.txt; nvidia-smi nvlink -s "
		">links.txt\n"
		"  takt-twin machine --from q.xml topo.txt links.txt >mine.toml\n"
		"  export TAKT_TWIN=$(takt-twin create ./mine.toml)\n",
	.run = run_machine,
};
