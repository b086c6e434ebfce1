/* SPDX-License-Identifier: Apache-2.0 */
/* HTTPS whose certificate is renewed while it is served: who comes gets the new one, who is there
 * goes on, and what will not do changes nothing. The client is GnuTLS; certificates are told by
 * their serial numbers. */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/http.h"
#include "net/listen.h"

enum {
	ROUNDS = 60000, /* of at most a millisecond: far more than is needed */
};

static char dir[] = "/tmp/takt-tls-XXXXXX";
static char certificate[64], key[64];
static struct takt_tls *tls;
static struct takt_http *http;
static unsigned port;

struct client {
	int fd;
	gnutls_session_t session;
	gnutls_certificate_credentials_t trust;
};

static void write_file(const char *path, const void *bytes, size_t len, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void sign(gnutls_x509_crt_t crt, gnutls_x509_privkey_t private, unsigned char serial)
{
	time_t now = time(NULL);

	assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
	assert_int_equal(gnutls_x509_crt_set_serial(crt, &serial, 1), 0);
	assert_int_equal(gnutls_x509_crt_set_activation_time(crt, now - 3600), 0);
	assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, now + 86400), 0);
	assert_int_equal(gnutls_x509_crt_set_dn(crt, "CN=localhost", NULL), 0);
	assert_int_equal(gnutls_x509_crt_set_key(crt, private), 0);
	assert_int_equal(gnutls_x509_crt_sign2(crt, crt, private, GNUTLS_DIG_SHA256, 0), 0);
}

/* Either file's name may be NULL: the other is of a pair of its own then. */
static void write_pair(const char *certificate_path, const char *key_path, unsigned char serial)
{
	gnutls_x509_privkey_t private;
	gnutls_x509_crt_t crt;
	gnutls_datum_t text;

	gnutls_x509_privkey_init(&private);
	gnutls_x509_crt_init(&crt);
	assert_int_equal(
		gnutls_x509_privkey_generate(private, GNUTLS_PK_ECDSA,
					     GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
		0);
	sign(crt, private, serial);
	assert_int_equal(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), 0);
	if (certificate_path)
		write_file(certificate_path, text.data, text.size, 0644);
	gnutls_free(text.data);
	assert_int_equal(gnutls_x509_privkey_export2(private, GNUTLS_X509_FMT_PEM, &text), 0);
	if (key_path)
		write_file(key_path, text.data, text.size, 0600);
	gnutls_free(text.data);
	gnutls_x509_crt_deinit(crt);
	gnutls_x509_privkey_deinit(private);
}

static void say_hello(void *ctx, struct takt_http_request *request)
{
	takt_http_answer(request, 200, "text/plain", "hello", 5, NULL, NULL);
}

static void nobody(void *ctx, struct takt_http_request *request)
{
}

static int set_up(void **state)
{
	struct takt_http_config config = {.max_connections = 8,
					  .idle_s = 600,
					  .max_body = 1024,
					  .request = say_hello,
					  .gone = nobody};
	struct takt_err err = {.rc = 0};

	signal(SIGPIPE, SIG_IGN);
	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	snprintf(certificate, sizeof(certificate), "%s/tls.crt", dir);
	snprintf(key, sizeof(key), "%s/tls.key", dir);
	write_pair(certificate, key, 1);
	assert_int_equal(takt_tls_new(certificate, key, &tls, &err), 0);
	assert_int_equal(takt_net_listen_tcp("127.0.0.1:0", &config.listen_fd, &port, &err), 0);
	config.tls = tls;
	return takt_http_new(&config, &http, &err);
}

static int tear_down(void **state)
{
	takt_http_free(http);
	takt_tls_free(tls);
	(void)unlink(certificate);
	(void)unlink(key);
	return rmdir(dir);
}

/* The server does what there is to do; then a moment for what is on its way to the client. */
static void serve(const struct client *client)
{
	struct pollfd look = {client->fd, POLLIN, 0};
	int timeout_ms;

	assert_int_equal(takt_http_pump(http, &timeout_ms, NULL), 0);
	(void)poll(&look, 1, 1);
}

static struct client dial(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct client client = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

	assert_int_equal(connect(client.fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fcntl(client.fd, F_SETFL, O_NONBLOCK), 0);
	gnutls_certificate_allocate_credentials(&client.trust);
	gnutls_init(&client.session, GNUTLS_CLIENT | GNUTLS_NONBLOCK);
	gnutls_set_default_priority(client.session);
	gnutls_credentials_set(client.session, GNUTLS_CRD_CERTIFICATE, client.trust);
	gnutls_transport_set_int(client.session, client.fd);
	return client;
}

static void hang_up(struct client *client)
{
	gnutls_deinit(client->session);
	gnutls_certificate_free_credentials(client->trust);
	close(client->fd);
}

static unsigned char serial_of(const struct client *client)
{
	unsigned count = 0;
	const gnutls_datum_t *list = gnutls_certificate_get_peers(client->session, &count);
	unsigned char serial[20];
	size_t size = sizeof(serial);
	gnutls_x509_crt_t crt;

	assert_non_null(list);
	gnutls_x509_crt_init(&crt);
	assert_int_equal(gnutls_x509_crt_import(crt, &list[0], GNUTLS_X509_FMT_DER), 0);
	assert_int_equal(gnutls_x509_crt_get_serial(crt, serial, &size), 0);
	gnutls_x509_crt_deinit(crt);
	return serial[size - 1];
}

static void shake_hands(const struct client *client)
{
	int rc = GNUTLS_E_AGAIN;

	for (int i = 0; i < ROUNDS && rc == GNUTLS_E_AGAIN; i++) {
		serve(client);
		rc = gnutls_handshake(client->session);
	}
	assert_int_equal(rc, 0);
}

/* Asks, and is answered. */
static void talk(const struct client *client)
{
	static const char ask[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	char answer[1024] = "";
	ssize_t n = 0;

	assert_int_equal(gnutls_record_send(client->session, ask, strlen(ask)), strlen(ask));
	for (int i = 0; i < ROUNDS && !strstr(answer, "hello"); i++) {
		size_t len = strlen(answer);

		serve(client);
		n = gnutls_record_recv(client->session, answer + len, sizeof(answer) - 1 - len);
		if (n != GNUTLS_E_AGAIN)
			assert_true(n > 0);
	}
	assert_non_null(strstr(answer, "hello"));
}

static struct client visit(void)
{
	struct client client = dial();

	shake_hands(&client);
	talk(&client);
	return client;
}

static unsigned char seen_by_the_next(void)
{
	struct client client = visit();
	unsigned char serial = serial_of(&client);

	hang_up(&client);
	return serial;
}

static void who_comes_gets_the_new_one_and_who_is_there_goes_on(void **state)
{
	struct client old = visit();

	assert_int_equal(serial_of(&old), 1);
	for (unsigned char serial = 2; serial < 5; serial++) {
		write_pair(certificate, key, serial);
		assert_int_equal(takt_tls_read_again(tls, NULL), 0);
		takt_tls_tidy(tls);
		assert_int_equal(seen_by_the_next(), serial);
		talk(&old);
	}
	hang_up(&old);
	takt_tls_tidy(tls);
	assert_int_equal(seen_by_the_next(), 4);
}

static void a_handshake_under_way_ends_with_what_it_began_with(void **state)
{
	struct client client = dial();

	assert_int_equal(gnutls_handshake(client.session), GNUTLS_E_AGAIN);
	for (int i = 0; i < 10; i++)
		serve(&client); /* accepted, and answered as far as it goes */
	write_pair(certificate, key, 2);
	assert_int_equal(takt_tls_read_again(tls, NULL), 0);
	takt_tls_tidy(tls);
	shake_hands(&client);
	talk(&client);
	assert_int_equal(serial_of(&client), 1);
	assert_int_equal(seen_by_the_next(), 2);
	hang_up(&client);
}

static void refused(const char *name)
{
	struct takt_err err = {.rc = 0};

	assert_true(takt_tls_read_again(tls, &err) < 0);
	if (!strstr(err.msg, name))
		fail_msg("'%s' is not in: %s", name, err.msg);
	assert_int_equal(seen_by_the_next(), 1);
}

static void what_will_not_do_changes_nothing(void **state)
{
	struct client old = visit();

	write_pair(certificate, NULL, 2); /* the key is the first's */
	refused(certificate);
	assert_int_equal(truncate(certificate, 100), 0);
	refused(certificate);
	assert_int_equal(unlink(certificate), 0);
	refused(certificate);
	write_pair(certificate, key, 3);
	assert_int_equal(chmod(key, 0644), 0);
	refused(key);
	assert_int_equal(truncate(key, 0), 0);
	refused(key);
	talk(&old);
	hang_up(&old);
	write_pair(certificate, key, 4);
	assert_int_equal(takt_tls_read_again(tls, NULL), 0);
	assert_int_equal(seen_by_the_next(), 4);
}

static void without_memory_all_is_as_before(void **state)
{
	int rc = -ENOMEM;

	write_pair(certificate, key, 2);
	for (unsigned long nth = 1; rc == -ENOMEM; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_tls_read_again(tls, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(seen_by_the_next(), rc == 0 ? 2 : 1);
	}
	assert_int_equal(rc, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(who_comes_gets_the_new_one_and_who_is_there_goes_on),
		TEST(a_handshake_under_way_ends_with_what_it_began_with),
		TEST(what_will_not_do_changes_nothing),
		TEST(without_memory_all_is_as_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
