/* SPDX-License-Identifier: Apache-2.0 */
#include "rtt/rtt_peers.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/str.h"

static bool set_host(const char *host, size_t len, union takt_rtt_address *ret)
{
	char text[INET6_ADDRSTRLEN];
	bool in6 = len >= 2 && host[0] == '[' && host[len - 1] == ']';

	host += in6;
	len -= in6 ? 2 : 0;
	if (len >= sizeof(text))
		return false;
	memcpy(text, host, len);
	text[len] = '\0';
	ret->any.sa_family = in6 ? AF_INET6 : AF_INET;
	return in6 ? inet_pton(AF_INET6, text, &ret->in6.sin6_addr) == 1
		   : inet_pton(AF_INET, text, &ret->in.sin_addr) == 1;
}

int takt_rtt_address_parse(const char *text, union takt_rtt_address *ret, struct takt_err *err)
{
	const char *colon = strrchr(text, ':');
	union takt_rtt_address address;
	unsigned long long port = 0;

	memset(&address, 0, sizeof(address));
	if (!colon || takt_parse_u64(colon + 1, 1, 65535, &port) < 0 ||
	    !set_host(text, (size_t)(colon - text), &address))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.60s' must be a numeric address and a port such as "
				    "10.0.0.2:9833 or [fd00::2]:9833",
				    text);
	if (address.any.sa_family == AF_INET6)
		address.in6.sin6_port = htons((uint16_t)port);
	else
		address.in.sin_port = htons((uint16_t)port);
	*ret = address;
	return 0;
}

socklen_t takt_rtt_address_size(const union takt_rtt_address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->in6) : sizeof(address->in);
}

bool takt_rtt_same_address(const union takt_rtt_address *a, const union takt_rtt_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET6)
		return a->in6.sin6_port == b->in6.sin6_port &&
		       memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr)) == 0;
	return a->in.sin_port == b->in.sin_port && a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
}

static bool is_name(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_";

	return text[0] && text[strspn(text, allowed)] == '\0' && strlen(text) < TAKT_RTT_NAME;
}

static bool is_listed(const struct takt_rtt_peers *peers, const struct takt_rtt_listed *peer)
{
	for (uint32_t i = 0; i < peers->count; i++)
		if (strcmp(peers->peer[i].name, peer->name) == 0 ||
		    takt_rtt_same_address(&peers->peer[i].address, &peer->address))
			return true;
	return false;
}

/* "gpu2=10.0.0.2:9833" */
static int add_peer(char *word, sa_family_t family, struct takt_rtt_peers *peers,
		    struct takt_err *err)
{
	char *equals = strchr(word, '=');
	struct takt_rtt_listed peer;
	int rc;

	if (equals)
		*equals = '\0';
	if (!equals || !is_name(word))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%.60s' must be NAME=ADDRESS:PORT, the name of letters, "
				    "digits, '.', '-' and '_'",
				    word);
	takt_strcpy(peer.name, sizeof(peer.name), word);
	rc = takt_rtt_address_parse(equals + 1, &peer.address, err);
	if (rc < 0)
		return rc;
	if (!takt_strcpy(peer.text, sizeof(peer.text), equals + 1))
		return takt_err_set(err, -TAKT_E_USAGE, "'%.60s...' is too long for an address",
				    equals + 1);
	if (peer.address.any.sa_family != family)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'%s' must be an IPv%d address, as net_listen is", peer.text,
				    family == AF_INET6 ? 6 : 4);
	if (is_listed(peers, &peer))
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' or its address stands twice", word);
	if (peers->count == TAKT_RTT_MAX_PEERS)
		return takt_err_set(err, -TAKT_E_USAGE, "there may be at most %d peers",
				    TAKT_RTT_MAX_PEERS);
	peers->peer[peers->count++] = peer;
	return 0;
}

int takt_rtt_peers_parse(const char *text, sa_family_t family, struct takt_rtt_peers *ret,
			 struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str copy = TAKT_STR(64 * 1024);
	char *save = NULL;
	int rc = takt_str_addf(&copy, "%s", text);

	ret->count = 0;
	if (rc < 0)
		return takt_err_set(err, rc, "the list of peers");
	for (char *word = strtok_r(copy.s, ", ", &save); rc == 0 && word;
	     word = strtok_r(NULL, ", ", &save))
		rc = add_peer(word, family, ret, err);
	return rc;
}
