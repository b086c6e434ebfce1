/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin board: check a board file, list its keys, or start one from what nvidia-smi printed. */
#include <stdio.h>

#include "takt_twin.h"
#include "twin_board_file.h"
#include "twin_from.h"

static int from_captures(int count, char *const *paths, struct takt_err *err)
{
	TAKT_CLEANUP(twin_capturep) struct twin_capture *capture = NULL;
	struct twin_from from;
	int rc = twin_read_captures(count, paths, &capture, err);

	if (rc == 0)
		rc = twin_from_begin(&from, capture, stdout, stderr, err);
	if (rc < 0)
		return rc;
	printf("# Started by `takt-twin board --from` from a capture of a real board. GUESS marks "
	       "what no "
	       "capture has.\n\n");
	return twin_from_board(&from, err);
}

static int check_board(const char *name, struct takt_err *err)
{
	struct twin_board board;
	int rc = twin_board_load(name, NULL, &board, err);

	if (rc < 0)
		return rc;
	printf("%s: %s, %u MiB, SM %u to %u MHz in %u steps, limit %u to %u W\n", board.id,
	       board.name, board.memory_mib, board.sm_mhz[0], board.sm_mhz[board.clock_count - 1],
	       board.clock_count, board.power_min_mw / 1000, board.power_max_mw / 1000);
	return 0;
}

static int run_board(int argc, char **argv, struct takt_err *err)
{
	static const struct option known[] = {
		{"from", no_argument, NULL, 'f'}, {"keys", no_argument, NULL, 'k'}, {0}};
	bool from = false, keys = false;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'f')
			from = true;
		else if (c == 'k')
			keys = true;
		else
			return twin_bad_option(&twin_verb_board, argv, err);
	}
	if (keys + from > 1 || (from ? optind == argc : keys + argc - optind != 1))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say one of: a board or its file, --from FILE..., --keys");
	if (keys)
		twin_board_print_keys(stdout);
	if (from)
		return from_captures(argc - optind, argv + optind, err);
	return keys ? 0 : check_board(argv[optind], err);
}

const struct twin_verb twin_verb_board = {
	.name = "board",
	.usage = "BOARD|FILE.toml | --from FILE... | --keys",
	.summary = "Check a board file, or start one from a real board",
	.help = "  --from FILE...  print a board file made from what `nvidia-smi -q -x` printed, "
		"or "
		"`-q`\n"
		"                  and, for its clocks, `-q -d SUPPORTED_CLOCKS`; of the first "
		"GPU\n"
		"  --keys          what a board file may contain\n\n"
		"What a capture has and a board has not is said on stderr.\n\n"
		"  nvidia-smi -q -x >mine.xml; takt-twin board --from mine.xml >mine.toml\n",
	.run = run_board,
};
