/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/sys.h"

enum {
	MAX_PEM = 256 * 1024
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

/* What libmicrohttpd would find out later, without saying what is wrong. */
static int check_pair(const struct takt_tls *tls, const char *certificate_path,
		      const char *key_path, struct takt_err *err)
{
	const gnutls_datum_t certificate = {(unsigned char *)tls->certificate_pem,
					    (unsigned)strlen(tls->certificate_pem)};
	const gnutls_datum_t key = {(unsigned char *)tls->key_pem, (unsigned)strlen(tls->key_pem)};
	gnutls_certificate_credentials_t both;
	int rc = gnutls_certificate_allocate_credentials(&both);

	if (rc < 0)
		return takt_err_set(err, -ENOMEM, "no memory for a certificate");
	rc = gnutls_certificate_set_x509_key_mem(both, &certificate, &key, GNUTLS_X509_FMT_PEM);
	gnutls_certificate_free_credentials(both);
	if (rc < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "certificate '%s' and key '%s': %s",
				    certificate_path, key_path, gnutls_strerror(rc));
	return 0;
}

int takt_tls_load(const char *certificate_path, const char *key_path, struct takt_tls *ret,
		  struct takt_err *err)
{
	struct takt_tls tls = {.key_pem = NULL};
	int rc = check_key_file(key_path, err);

	if (rc == 0)
		rc = read_pem(certificate_path, &tls.certificate_pem, err);
	if (rc == 0)
		rc = read_pem(key_path, &tls.key_pem, err);
	if (rc == 0)
		rc = check_pair(&tls, certificate_path, key_path, err);
	if (rc < 0)
		takt_tls_fini(&tls);
	else
		*ret = tls;
	return rc;
}

void takt_tls_fini(struct takt_tls *tls)
{
	if (tls->key_pem)
		explicit_bzero(tls->key_pem, strlen(tls->key_pem));
	takt_free(tls->certificate_pem);
	takt_free(tls->key_pem);
	*tls = (struct takt_tls){.key_pem = NULL};
}
