/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sys.h"

enum {
	MAX_PEM = 256 * 1024
};

struct takt_tls_pair {
	struct takt_tls_pair *older; /* owned */
	gnutls_certificate_credentials_t both;
	char *certificate_pem, *key_pem; /* owned */
	unsigned holders;
};

struct takt_tls {
	const char *certificate_path, *key_path; /* borrowed */
	struct takt_tls_pair *newest;		 /* owned: in force */
};

static int read_pem(const char *path, char **ret, struct takt_err *err)
{
	size_t len;

	return takt_file_read(takt_sys_real(), AT_FDCWD, path, MAX_PEM, ret, &len, err);
}

static int check_key_file(const char *path, struct takt_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return takt_err_set(err, -errno, "read '%s'", path);
	if (st.st_mode & (S_IROTH | S_IWOTH))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "the key '%s' is open to everybody; chmod o= it", path);
	return 0;
}

enum {
	KEY_ID = 64
};

static gnutls_datum_t text_of(const char *pem)
{
	return (gnutls_datum_t){(unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem)};
}

/* 0, or what GnuTLS says. */
static int check_match(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
	unsigned char of_certificate[KEY_ID] = {0}, of_key[KEY_ID] = {0};
	size_t size = KEY_ID, key_size = KEY_ID;
	int rc = gnutls_x509_crt_get_key_id(certificate, 0, of_certificate, &size);

	if (rc >= 0)
		rc = gnutls_x509_privkey_get_key_id(key, 0, of_key, &key_size);
	if (rc < 0)
		return rc;
	return size == key_size && memcmp(of_certificate, of_key, size) == 0
		       ? 0
		       : GNUTLS_E_CERTIFICATE_KEY_MISMATCH;
}

static int join_to(struct takt_tls_pair *pair, gnutls_x509_privkey_t key)
{
	const gnutls_datum_t text = text_of(pair->certificate_pem);
	gnutls_x509_crt_t *chain;
	unsigned n = 0;
	int rc = gnutls_x509_crt_list_import2(&chain, &n, &text, GNUTLS_X509_FMT_PEM,
					      GNUTLS_X509_CRT_LIST_SORT);

	if (rc < 0)
		return rc;
	rc = n > 0 ? check_match(chain[0], key) : GNUTLS_E_NO_CERTIFICATE_FOUND;
	if (rc >= 0)
		rc = gnutls_certificate_set_x509_key(pair->both, chain, (int)n, key);
	for (unsigned i = 0; i < n; i++)
		gnutls_x509_crt_deinit(chain[i]);
	gnutls_free(chain);
	return rc;
}

/* In steps: gnutls_certificate_set_x509_key_mem of GnuTLS 3.7 loses memory with each pair that it
 * refuses. */
static int join_pair(struct takt_tls_pair *pair, const struct takt_tls *tls, struct takt_err *err)
{
	const gnutls_datum_t text = text_of(pair->key_pem);
	gnutls_x509_privkey_t key;
	int rc;

	if (gnutls_certificate_allocate_credentials(&pair->both) < 0 ||
	    gnutls_x509_privkey_init(&key) < 0)
		return takt_err_set(err, -ENOMEM, "no memory for a certificate");
	rc = gnutls_x509_privkey_import2(key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (rc >= 0)
		rc = join_to(pair, key);
	gnutls_x509_privkey_deinit(key);
	if (rc < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "certificate '%s' and key '%s': %s",
				    tls->certificate_path, tls->key_path, gnutls_strerror(rc));
	return 0;
}

static void free_pair(struct takt_tls_pair *pair)
{
	if (pair->both)
		gnutls_certificate_free_credentials(pair->both);
	if (pair->key_pem)
		explicit_bzero(pair->key_pem, strlen(pair->key_pem));
	takt_free(pair->certificate_pem);
	takt_free(pair->key_pem);
	takt_free(pair);
}

int takt_tls_read_again(struct takt_tls *tls, struct takt_err *err)
{
	struct takt_tls_pair *pair = takt_zalloc(sizeof(*pair));
	int rc;

	if (!pair)
		return takt_err_set(err, -ENOMEM, "no memory for a certificate");
	rc = check_key_file(tls->key_path, err);
	if (rc == 0)
		rc = read_pem(tls->certificate_path, &pair->certificate_pem, err);
	if (rc == 0)
		rc = read_pem(tls->key_path, &pair->key_pem, err);
	if (rc == 0)
		rc = join_pair(pair, tls, err);
	if (rc < 0) {
		free_pair(pair);
		return rc;
	}
	pair->older = tls->newest;
	tls->newest = pair;
	takt_tls_tidy(tls);
	return 0;
}

int takt_tls_new(const char *certificate_path, const char *key_path, struct takt_tls **ret,
		 struct takt_err *err)
{
	struct takt_tls *tls = takt_zalloc(sizeof(*tls));
	int rc;

	if (!tls)
		return takt_err_set(err, -ENOMEM, "no memory for a certificate");
	tls->certificate_path = certificate_path;
	tls->key_path = key_path;
	rc = takt_tls_read_again(tls, err);
	if (rc < 0)
		takt_tls_free(tls);
	else
		*ret = tls;
	return rc;
}

void takt_tls_free(struct takt_tls *tls)
{
	while (tls && tls->newest) {
		struct takt_tls_pair *pair = tls->newest;

		tls->newest = pair->older;
		free_pair(pair);
	}
	takt_free(tls);
}

void takt_tls_tidy(struct takt_tls *tls)
{
	struct takt_tls_pair **at = &tls->newest->older;

	while (*at) {
		struct takt_tls_pair *pair = *at;

		if (pair->holders > 0) {
			at = &pair->older;
		} else {
			*at = pair->older;
			free_pair(pair);
		}
	}
}

const char *takt_tls_certificate(const struct takt_tls *tls)
{
	return tls->newest->certificate_pem;
}

const char *takt_tls_key(const struct takt_tls *tls)
{
	return tls->newest->key_pem;
}

struct takt_tls_pair *takt_tls_hold(struct takt_tls *tls, void *session)
{
	struct takt_tls_pair *pair = tls->newest;

	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, pair->both) < 0)
		return NULL;
	pair->holders++;
	return pair;
}

/* Not freed here: whether the session is over before this is told or after is libmicrohttpd's. */
void takt_tls_leave(struct takt_tls_pair *pair)
{
	if (pair)
		pair->holders--;
}
