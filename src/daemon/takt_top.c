/* SPDX-License-Identifier: Apache-2.0 */
/* The program that `takt top` becomes, so that no other verb loads ncurses. */
#include "top/top_main.h"

int main(int argc, char **argv)
{
	return takt_top_main(argc, argv);
}
