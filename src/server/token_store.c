/* SPDX-License-Identifier: Apache-2.0 */
#include "server/token_store.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/mem.h"
#include "base/timetypes.h"

enum {
	MAX_FILE = 1 << 20,
	ID_BYTES = (TAKT_TOKEN_ID - 1) / 2,
	SECRET_BYTES = (TAKT_TOKEN_SECRET - 1) / 2,
	UNKNOWN_MISSES = 600, /* a minute, of tokens that there are not */
};

static const char file_name[] = "tokens";
static const char prefix[] = "takt_";
static const int64_t day_ms = INT64_C(86400000);

/* Failures of the minute that began at since_ns. */
struct misses {
	uint64_t since_ns;
	unsigned count;
};

struct takt_token_store {
	const struct takt_sys *sys;
	int dirfd;
	struct takt_tokens_view view;
	struct misses misses[TAKT_MAX_TOKENS]; /* of each in the view */
	struct misses unknown;
};

static int check_file(struct takt_token_store *store, struct takt_err *err)
{
	struct stat st;
	int rc = store->sys->fstatat(store->sys, store->dirfd, file_name, &st);

	if (rc < 0)
		return takt_err_set(err, rc, "look at the file of tokens");
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return takt_err_set(err, -EPERM,
				    "the file 'tokens' in state_dir must be takt's own and closed "
				    "to others (chmod 600)");
	return 0;
}

static int load(struct takt_token_store *store, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	struct takt_err why;
	size_t len;
	int rc = takt_file_read(store->sys, store->dirfd, file_name, MAX_FILE, &text, &len, &why);

	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		rc = check_file(store, &why);
	if (rc == 0)
		rc = takt_tokens_view_from_json(text, len, &store->view, &why);
	return rc < 0 ? takt_err_set(err, rc, "the file 'tokens' in state_dir: %.200s", why.msg)
		      : 0;
}

int takt_token_store_open(const struct takt_sys *sys, const char *dir,
			  struct takt_token_store **ret, struct takt_err *err)
{
	struct takt_token_store *store = takt_zalloc(sizeof(*store));
	int rc;

	if (!store)
		return takt_err_set(err, -ENOMEM, "no memory for tokens");
	store->sys = sys;
	store->dirfd = sys->openat(sys, AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	rc = store->dirfd < 0 ? takt_err_set(err, store->dirfd, "open '%s'", dir)
			      : load(store, err);
	if (rc < 0) {
		takt_token_store_free(store);
		return rc;
	}
	*ret = store;
	return 0;
}

void takt_token_store_free(struct takt_token_store *store)
{
	if (!store)
		return;
	takt_tokens_view_fini(&store->view);
	if (store->dirfd >= 0)
		store->sys->close(store->sys, store->dirfd);
	takt_free(store);
}

const struct takt_tokens_view *takt_token_store_all(const struct takt_token_store *store)
{
	return &store->view;
}

static int save(struct takt_token_store *store, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(MAX_FILE);

	if (takt_tokens_view_to_json(&store->view, &json) < 0)
		return takt_err_set(err, json.rc, "the file of tokens would be too large");
	return takt_file_write_durable(store->sys, store->dirfd, file_name, json.s, json.len, 0600,
				       err);
}

static void hash(const char *secret, char ret[TAKT_TOKEN_SECRET])
{
	struct sha256_ctx ctx;
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_init(&ctx);
	sha256_update(&ctx, strlen(secret), (const uint8_t *)secret);
	sha256_digest(&ctx, sizeof(digest), digest);
	takt_hex_encode(digest, sizeof(digest), ret);
}

static struct takt_token *find(const struct takt_token_store *store, const char *id)
{
	for (uint32_t i = 0; i < store->view.count; i++)
		if (strcmp(store->view.tokens[i].id, id) == 0)
			return &store->view.tokens[i];
	return NULL;
}

/* A new id and secret, and the hash of it. */
static int draw(struct takt_token_store *store, struct takt_token *token,
		char ret_text[TAKT_TOKEN_TEXT], struct takt_err *err)
{
	uint8_t random[ID_BYTES + SECRET_BYTES];
	char secret[TAKT_TOKEN_SECRET];

	do {
		if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
			return takt_err_set(err, -EIO, "the kernel gives no random bytes");
		takt_hex_encode(random, ID_BYTES, token->id);
	} while (find(store, token->id));
	takt_hex_encode(random + ID_BYTES, SECRET_BYTES, secret);
	hash(secret, token->sha256);
	snprintf(ret_text, TAKT_TOKEN_TEXT, "%s%s_%s", prefix, token->id, secret);
	explicit_bzero(random, sizeof(random));
	explicit_bzero(secret, sizeof(secret));
	return 0;
}

static int64_t now_ms(const struct takt_token_store *store)
{
	return takt_wall_now(store->sys).ns / (int64_t)TAKT_NS_PER_MS;
}

static bool expired(const struct takt_token_store *store, const struct takt_token *token)
{
	return token->expires_ms != 0 && token->expires_ms <= now_ms(store);
}

/* Those that have expired make room. */
static void sweep(struct takt_token_store *store)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < store->view.count; i++) {
		if (expired(store, &store->view.tokens[i]))
			continue;
		store->view.tokens[kept] = store->view.tokens[i];
		store->misses[kept++] = store->misses[i];
	}
	store->view.count = kept;
}

static int check_room(const struct takt_token_store *store, uint32_t uid, struct takt_err *err)
{
	uint32_t own = 0;

	for (uint32_t i = 0; i < store->view.count; i++)
		own += store->view.tokens[i].uid == uid;
	if (own >= TAKT_TOKENS_A_USER || store->view.count >= TAKT_MAX_TOKENS)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "user %u has %u tokens, all together %u; at most %d and %d; "
				    "revoke one",
				    (unsigned)uid, (unsigned)own, (unsigned)store->view.count,
				    TAKT_TOKENS_A_USER, TAKT_MAX_TOKENS);
	return 0;
}

static int append(struct takt_token_store *store, const struct takt_token *token,
		  struct takt_err *err)
{
	struct takt_token *grown = takt_realloc(
		store->view.tokens, (store->view.count + 1) * sizeof(*store->view.tokens));
	int rc;

	if (!grown)
		return takt_err_set(err, -ENOMEM, "no memory for a token");
	store->view.tokens = grown;
	store->misses[store->view.count] = (struct misses){.count = 0};
	grown[store->view.count++] = *token;
	rc = save(store, err);
	if (rc < 0)
		store->view.count--;
	return rc;
}

int takt_token_store_add(struct takt_token_store *store, uint32_t uid,
			 const struct takt_token_request *request, char ret_text[TAKT_TOKEN_TEXT],
			 struct takt_token *ret, struct takt_err *err)
{
	struct takt_token token = {.uid = uid, .write = request->write, .made_ms = now_ms(store)};
	int rc;

	if (request->days > 0)
		token.expires_ms = token.made_ms + request->days * day_ms;
	takt_strcpy(token.note, sizeof(token.note), request->note);
	sweep(store);
	rc = check_room(store, uid, err);
	if (rc == 0)
		rc = draw(store, &token, ret_text, err);
	if (rc == 0)
		rc = append(store, &token, err);
	if (rc == 0)
		*ret = token;
	return rc;
}

int takt_token_store_revoke(struct takt_token_store *store, const char *id, struct takt_err *err)
{
	struct takt_token *token = find(store, id), revoked;
	uint32_t last = store->view.count - 1;
	int rc;

	if (!token)
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no token '%.20s'", id);
	revoked = *token;
	*token = store->view.tokens[last];
	store->view.count = last;
	rc = save(store, err);
	if (rc == 0) {
		store->misses[token - store->view.tokens] = store->misses[last];
		return 0;
	}
	store->view.tokens[last] = *token;
	*token = revoked;
	store->view.count = last + 1;
	return rc;
}

/* Whether there were as many failures as may be in a minute. */
static bool is_over(const struct takt_token_store *store, struct misses *misses, unsigned most)
{
	uint64_t now_ns = takt_mono_now(store->sys).ns;

	if (now_ns - misses->since_ns > 60 * TAKT_NS_PER_S)
		*misses = (struct misses){.since_ns = now_ns};
	return misses->count >= most;
}

/* takt_ID_SECRET; NULL when it has not that form. */
static const char *split(const char *text, char ret_id[TAKT_TOKEN_ID])
{
	size_t lead = strlen(prefix);

	if (strlen(text) != lead + TAKT_TOKEN_ID + TAKT_TOKEN_SECRET - 1 ||
	    strncmp(text, prefix, lead) != 0 || text[lead + TAKT_TOKEN_ID - 1] != '_')
		return NULL;
	memcpy(ret_id, text + lead, TAKT_TOKEN_ID - 1);
	ret_id[TAKT_TOKEN_ID - 1] = '\0';
	return text + lead + TAKT_TOKEN_ID;
}

static bool fits(const struct takt_token *token, const char *secret)
{
	char sha256[TAKT_TOKEN_SECRET];

	hash(secret, sha256);
	return memeql_sec(sha256, token->sha256, sizeof(sha256));
}

enum takt_token_verdict takt_token_store_check(struct takt_token_store *store, const char *text,
					       struct takt_token *ret)
{
	char id[TAKT_TOKEN_ID];
	const char *secret = split(text, id);
	struct takt_token *token = secret ? find(store, id) : NULL;
	struct misses *misses =
		token ? &store->misses[token - store->view.tokens] : &store->unknown;

	if (is_over(store, misses, token ? TAKT_TOKEN_MISSES : UNKNOWN_MISSES))
		return TAKT_TOKEN_TOO_OFTEN;
	if (!token || !fits(token, secret)) {
		misses->count++;
		return TAKT_TOKEN_UNKNOWN;
	}
	if (expired(store, token))
		return TAKT_TOKEN_EXPIRED;
	*ret = *token;
	return TAKT_TOKEN_GOOD;
}

bool takt_token_store_has(const struct takt_token_store *store, const char *id)
{
	const struct takt_token *token = find(store, id);

	return token && !expired(store, token);
}
