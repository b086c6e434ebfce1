/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a program of its own, with a serve that only tells what it was given. */
#include <string.h>

#include "cli/cli.h"

static int fake_serve(int argc, char **argv)
{
	return argc == 2 && strcmp(argv[1], "--sample-hz=5") == 0 ? 42 : 1;
}

int main(int argc, char **argv)
{
	static const struct takt_cli_extra extra = {.serve = fake_serve};

	return takt_cli_main(argc, argv, &extra);
}
