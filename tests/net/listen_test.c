/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets: dead ones are replaced, live ones are respected, mistakes are named. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/listen.h"
#include "net/peer.h"

static char dir[] = "/tmp/takt-listen-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)unlink(path);
	return rmdir(dir);
}

static void listens_with_the_mode_asked_for(void **state)
{
	struct stat st;
	int fd;

	umask(077);
	assert_int_equal(takt_net_listen_unix(path, 0666, &fd, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
}

static void a_dead_socket_is_replaced(void **state)
{
	int fd, again;

	assert_int_equal(takt_net_listen_unix(path, 0600, &fd, NULL), 0);
	close(fd);
	assert_int_equal(takt_net_listen_unix(path, 0600, &again, NULL), 0);
	assert_int_equal(takt_net_connect_unix(path, &fd, NULL), 0);
	close(fd);
	close(again);
}

static void a_live_socket_is_named(void **state)
{
	struct takt_err err;
	char pid[32];
	int fd, again = -1;

	assert_int_equal(takt_net_listen_unix(path, 0600, &fd, NULL), 0);
	assert_int_equal(takt_net_listen_unix(path, 0600, &again, &err), -TAKT_E_BUSY);
	snprintf(pid, sizeof(pid), "already running (pid %d)", getpid());
	assert_non_null(strstr(err.msg, pid));
	assert_int_equal(again, -1);
	assert_int_equal(takt_net_connect_unix(path, &again, NULL), 0);
	close(again);
	close(fd);
}

static void other_files_are_left_alone(void **state)
{
	struct takt_err err;
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	close(fd);
	assert_int_equal(takt_net_listen_unix(path, 0600, &fd, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "is not a socket"));
	assert_int_equal(access(path, F_OK), 0);
}

static void bad_paths_are_named(void **state)
{
	char long_path[200];
	struct takt_err err;
	int fd;

	memset(long_path, 'a', sizeof(long_path));
	long_path[199] = '\0';
	assert_int_equal(takt_net_listen_unix(long_path, 0600, &fd, &err), -ENAMETOOLONG);
	assert_non_null(strstr(err.msg, "at most 107; choose a shorter directory"));
	assert_int_equal(takt_net_listen_unix("", 0600, &fd, &err), -EINVAL);
	assert_int_equal(takt_net_listen_unix("/nonexistent/s", 0600, &fd, &err), -ENOENT);
	assert_int_equal(takt_net_connect_unix("/nonexistent/s", &fd, &err), -ENOENT);
}

static void tcp_addresses(void **state)
{
	static const char *const bad[] = {
		"localhost", "localhost:", "localhost:70000", "::1:80", "nosuchhost.invalid:80",
		""};
	struct takt_err err;
	char same[40];
	unsigned port;
	int fd, again;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(bad); i++)
		assert_true(takt_net_listen_tcp(bad[i], &fd, &port, &err) < 0);
	assert_int_equal(takt_net_listen_tcp("127.0.0.1:0", &fd, &port, NULL), 0);
	assert_true(port > 0);
	snprintf(same, sizeof(same), "127.0.0.1:%u", port);
	assert_int_equal(takt_net_listen_tcp(same, &again, NULL, &err), -TAKT_E_BUSY);
	assert_non_null(strstr(err.msg, "another program has the port"));
	close(fd);
}

static void peers_are_known(void **state)
{
	int fds[2];
	uid_t uid;
	gid_t gid;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(takt_net_peer(fds[0], &uid, &gid, &pid, NULL), 0);
	assert_int_equal(uid, getuid());
	assert_int_equal(pid, getpid());
	assert_true(takt_net_peer_in_group(fds[0], getgid()));
	assert_false(takt_net_peer_in_group(fds[0], 54321));
	close(fds[0]);
	close(fds[1]);
	assert_true(takt_net_peer(-1, &uid, &gid, &pid, NULL) < 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(listens_with_the_mode_asked_for),
		CASE(a_dead_socket_is_replaced),
		CASE(a_live_socket_is_named),
		CASE(other_files_are_left_alone),
		CASE(bad_paths_are_named),
		CASE(tcp_addresses),
		CASE(peers_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
