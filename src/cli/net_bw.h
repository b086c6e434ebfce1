/* SPDX-License-Identifier: Apache-2.0 */
/* takt net bw: a load over TCP by hand, so long and so large as both sides allow, and only while no
 * job with ranks on several GPUs runs on either. */
#ifndef TAKT_CLI_NET_BW_H
#define TAKT_CLI_NET_BW_H

#include "cli/verb.h"

int takt_net_bw(struct takt_cli *cli, struct takt_err *err);

#endif
