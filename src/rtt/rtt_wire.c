/* SPDX-License-Identifier: Apache-2.0 */
#include "rtt/rtt_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>

enum {
	SIGNED_BYTES = 40,
	AT_VERSION = 4,
	AT_KIND = 5,
	AT_SESSION = 8,
	AT_SEQ = 16,
	AT_COOKIE = 24,
	AT_TOKEN = 32,
};
_Static_assert((int)TAKT_RTT_MAC == (int)SHA256_DIGEST_SIZE &&
		       (int)TAKT_RTT_MAC == (int)TAKT_RTT_BYTES - (int)SIGNED_BYTES,
	       "all of it is sent");

static const uint8_t magic[4] = {'t', 'a', 'k', 't'};

static void put_u64(uint8_t *to, uint64_t value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		to[i] = (uint8_t)value;
}

static uint64_t get_u64(const uint8_t *from)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | from[i];
	return value;
}

void takt_rtt_sign(const struct takt_rtt_key *key, const uint8_t *bytes, size_t len,
		   uint8_t ret[TAKT_RTT_MAC])
{
	struct hmac_sha256_ctx hmac;

	hmac_sha256_set_key(&hmac, key->len, key->bytes);
	hmac_sha256_update(&hmac, len, bytes);
	hmac_sha256_digest(&hmac, TAKT_RTT_MAC, ret);
}

bool takt_rtt_is_signed(const struct takt_rtt_key *key, const uint8_t *bytes, size_t len,
			const uint8_t mac[TAKT_RTT_MAC])
{
	uint8_t own[TAKT_RTT_MAC];

	takt_rtt_sign(key, bytes, len, own);
	return memeql_sec(own, mac, TAKT_RTT_MAC);
}

void takt_rtt_pack(const struct takt_rtt_datagram *datagram, const struct takt_rtt_key *key,
		   uint8_t ret[TAKT_RTT_BYTES])
{
	memset(ret, 0, TAKT_RTT_BYTES);
	memcpy(ret, magic, sizeof(magic));
	ret[AT_VERSION] = TAKT_RTT_VERSION;
	ret[AT_KIND] = (uint8_t)datagram->kind;
	put_u64(ret + AT_SESSION, datagram->session);
	put_u64(ret + AT_SEQ, datagram->seq);
	put_u64(ret + AT_COOKIE, datagram->cookie);
	put_u64(ret + AT_TOKEN, datagram->token);
	takt_rtt_sign(key, ret, SIGNED_BYTES, ret + SIGNED_BYTES);
}

static int is_one(const uint8_t *bytes, size_t len)
{
	return len == TAKT_RTT_BYTES && memcmp(bytes, magic, sizeof(magic)) == 0 &&
	       bytes[AT_VERSION] == TAKT_RTT_VERSION && bytes[AT_KIND] >= TAKT_RTT_ASK &&
	       bytes[AT_KIND] <= TAKT_RTT_CHALLENGE && bytes[6] == 0 && bytes[7] == 0;
}

int takt_rtt_unpack(const uint8_t *bytes, size_t len, const struct takt_rtt_key *key,
		    struct takt_rtt_datagram *ret)
{
	if (!is_one(bytes, len))
		return -TAKT_E_CORRUPT;
	if (!takt_rtt_is_signed(key, bytes, SIGNED_BYTES, bytes + SIGNED_BYTES))
		return -EPERM;
	*ret = (struct takt_rtt_datagram){
		.kind = (enum takt_rtt_kind)bytes[AT_KIND],
		.session = get_u64(bytes + AT_SESSION),
		.seq = get_u64(bytes + AT_SEQ),
		.cookie = get_u64(bytes + AT_COOKIE),
		.token = get_u64(bytes + AT_TOKEN),
	};
	return 0;
}

uint64_t takt_rtt_mix(const struct takt_rtt_key *key, uint64_t a, uint64_t b, uint64_t c)
{
	uint8_t text[24], mac[TAKT_RTT_MAC];
	uint64_t value;

	put_u64(text, a);
	put_u64(text + 8, b);
	put_u64(text + 16, c);
	takt_rtt_sign(key, text, sizeof(text), mac);
	value = get_u64(mac);
	return value ? value : 1;
}

/* Who may read it, has it: then it is no secret among those who may not. */
static int check_file(int fd, const char *path, struct takt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return takt_err_set(err, -errno, "look at '%s'", path);
	if (!S_ISREG(st.st_mode))
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' is not a file", path);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return takt_err_set(err, -EPERM, "'%s' belongs to another user (uid %u)", path,
				    st.st_uid);
	if (st.st_mode & 077)
		return takt_err_set(err, -EPERM, "'%s' can be read by others; chmod 600 it", path);
	return 0;
}

static int read_key(int fd, const char *path, struct takt_rtt_key *ret, struct takt_err *err)
{
	uint8_t bytes[TAKT_RTT_KEY_MOST + 2];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	if (n < 0)
		return takt_err_set(err, -errno, "read '%s'", path);
	if (n > 0 && bytes[n - 1] == '\n')
		n--;
	if (n < TAKT_RTT_KEY_LEAST || n > TAKT_RTT_KEY_MOST)
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' must have from %d to %d bytes", path,
				    TAKT_RTT_KEY_LEAST, TAKT_RTT_KEY_MOST);
	ret->len = (size_t)n;
	memcpy(ret->bytes, bytes, (size_t)n);
	return 0;
}

int takt_rtt_key_read(const char *path, struct takt_rtt_key *ret, struct takt_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;

	if (fd < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	rc = check_file(fd, path, err);
	if (rc == 0)
		rc = read_key(fd, path, ret, err);
	close(fd);
	return rc;
}
