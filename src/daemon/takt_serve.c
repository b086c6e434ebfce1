/* SPDX-License-Identifier: Apache-2.0 */
/* takt-serve: what `takt serve` becomes. A program of its own, so that the daemon does not carry
 * the command line's HTTP client and all that comes with it. */
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
	return takt_serve_main(argc, argv);
}
