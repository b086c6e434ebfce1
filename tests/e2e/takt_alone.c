/* SPDX-License-Identifier: Apache-2.0 */
/* takt with the verb `serve` only, for the end-to-end tests of the daemon. */
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
	return takt_serve_main(argc - 1, argv + 1);
}
