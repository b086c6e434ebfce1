/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of machines that takt probes, from its settings: whoever is taken has a name, an address
 * of the family that was asked for and its text, and nobody is there twice.
 */
#include "fuzz_input.h"
#include "rtt/rtt_peers.h"

static void check(const struct takt_rtt_peers *peers, uint32_t i, sa_family_t family)
{
	const struct takt_rtt_listed *peer = &peers->peer[i];
	union takt_rtt_address again;

	fuzz_expect(peer->name[0] && peer->address.any.sa_family == family);
	fuzz_expect(takt_rtt_address_parse(peer->text, &again, NULL) == 0);
	fuzz_expect(takt_rtt_same_address(&peer->address, &again));
	for (uint32_t k = 0; k < i; k++) {
		fuzz_expect(strcmp(peers->peer[k].name, peer->name) != 0);
		fuzz_expect(!takt_rtt_same_address(&peers->peer[k].address, &peer->address));
	}
}

static void read_list(const char *text, sa_family_t family)
{
	static struct takt_rtt_peers peers;

	if (takt_rtt_peers_parse(text, family, &peers, NULL) < 0)
		return;
	fuzz_expect(peers.count <= TAKT_RTT_MAX_PEERS);
	for (uint32_t i = 0; i < peers.count; i++)
		check(&peers, i, family);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);

	read_list(text, AF_INET);
	read_list(text, AF_INET6);
	free(text);
	return 0;
}
