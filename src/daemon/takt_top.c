/* SPDX-License-Identifier: Apache-2.0 */
/* The module takt-top: the verb `top` with the terminal view, so that no other verb loads ncurses
 * and this one nothing that others need. */
#include "cli/verb.h"
#include "daemon/takt_module.h"
#include "top/top_main.h"

int takt_module_main(int argc, char **argv)
{
	static const struct takt_cli_extra extra = {.top = takt_top_main};

	return takt_cli_run(&takt_verb_top, argc - 1, argv + 1, &extra);
}
