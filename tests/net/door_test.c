/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting: who came, and what happens when there is no descriptor for him. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/door.h"
#include "net/listen.h"
#include "net/seats.h"

static const uint64_t ms = 1000000;

static char dir[] = "/tmp/takt-door-XXXXXX";
static char path[64];
static struct takt_door door;
static int epoll_fd;

static int set_up(void **state)
{
	int fd = -1;

	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(takt_net_listen_unix(path, 0600, &fd, NULL), 0);
	return takt_door_init(&door, fd, epoll_fd, &door, NULL);
}

static int tear_down(void **state)
{
	takt_door_fini(&door);
	close(door.listen_fd);
	close(epoll_fd);
	(void)unlink(path);
	return rmdir(dir);
}

static int dial(void)
{
	int fd = -1;

	assert_int_equal(takt_net_connect_unix(path, &fd, NULL), 0);
	return fd;
}

static bool readable(void)
{
	struct pollfd look = {.fd = epoll_fd, .events = POLLIN};

	return poll(&look, 1, 0) == 1;
}

static void guests_are_known(void **state)
{
	struct takt_guest guest;
	int fd = dial();

	assert_true(readable());
	assert_true(takt_door_accept(&door, 0, &guest));
	assert_int_equal(guest.uid, getuid());
	assert_false(guest.scarce);
	assert_true(fcntl(guest.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(guest.fd, F_GETFD) & FD_CLOEXEC);
	assert_false(readable());
	assert_false(takt_door_accept(&door, 0, &guest));
	assert_int_equal(takt_door_timeout_ms(&door, 0), -1);
	close(guest.fd);
	close(fd);
}

static void set_limit(rlim_t limit)
{
	struct rlimit now;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	now.rlim_cur = limit;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

static void without_descriptors_one_comes_in_and_the_door_shuts(void **state)
{
	struct takt_guest guest, other;
	struct rlimit limit;
	int a = dial(), b = dial(), top = dup(a);

	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	set_limit((rlim_t)top);
	assert_true(takt_door_accept(&door, 0, &guest));
	assert_true(guest.scarce);
	assert_false(takt_door_accept(&door, 0, &other));
	assert_false(readable()); /* though b waits: a loop would spin on it */
	assert_in_range(takt_door_timeout_ms(&door, 1), 1, 100);
	takt_door_look(&door, 99 * ms);
	assert_false(readable());
	takt_door_look(&door, 100 * ms);
	assert_true(readable());
	/* Nothing is kept any more: he waits until there is one. */
	assert_false(takt_door_accept(&door, 100 * ms, &other));
	set_limit(limit.rlim_cur);
	takt_door_look(&door, 300 * ms);
	assert_true(takt_door_accept(&door, 300 * ms, &other));
	assert_false(other.scarce);
	assert_true(door.reserve_fd >= 0);
	close(other.fd);
	close(guest.fd);
	close(a);
	close(b);
}

/* A loop that has nothing else to do, for so long. How often it went round. */
static unsigned wait_for_descriptors(uint64_t *now_ns, uint64_t ns)
{
	struct takt_guest guest;
	unsigned turns = 0;

	for (uint64_t end = *now_ns + ns; *now_ns < end; turns++) {
		takt_door_look(&door, *now_ns);
		assert_false(takt_door_accept(&door, *now_ns, &guest));
		*now_ns += (uint64_t)takt_door_timeout_ms(&door, *now_ns) * ms;
	}
	return turns;
}

static void hours_without_descriptors_are_few_tries(void **state)
{
	struct takt_guest guest, other;
	struct rlimit limit;
	int a = dial(), b = dial(), top = dup(a);
	uint64_t now_ns = 0;

	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	set_limit((rlim_t)top);
	assert_true(takt_door_accept(&door, 0, &guest));
	assert_in_range(wait_for_descriptors(&now_ns, 1000 * ms), 4, 6);
	assert_in_range(wait_for_descriptors(&now_ns, 6 * 3600 * 1000 * ms), 100, 6 * 3600);
	set_limit(limit.rlim_cur);
	takt_door_look(&door, now_ns);
	assert_true(takt_door_accept(&door, now_ns, &other));
	/* He is in, and the next time begins with a short pause. */
	assert_int_equal(door.shuts, 0);
	close(other.fd);
	close(guest.fd);
	close(a);
	close(b);
}

static void who_is_turned_away_can_read_why(void **state)
{
	struct takt_guest guest;
	char text[600] = "";
	int fd = dial();

	assert_true(takt_door_accept(&door, 0, &guest));
	takt_door_turn_away(&door, &guest, "go away", 0);
	/* He may ask only now; that is no error to him. */
	assert_int_equal(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "HTTP/1.1 503 "));
	assert_non_null(strstr(text, "\r\n\r\n{\"error\":{\"name\":\"UNAVAILABLE\","
				     "\"message\":\"go away\"}}\n"));
	assert_non_null(strstr(text, "Content-Length: 53\r\n"));
	assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), 0);
	close(fd);
}

static void who_is_turned_away_does_not_stay(void **state)
{
	int fds[TAKT_FAREWELL_SLOTS + 1];
	struct takt_guest guest;

	for (int i = 0; i <= TAKT_FAREWELL_SLOTS; i++) {
		fds[i] = dial();
		assert_true(takt_door_accept(&door, 0, &guest));
		takt_door_turn_away(&door, &guest, "go away", 0);
	}
	/* The oldest makes room, the others have a second. */
	assert_int_equal(send(fds[0], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(send(fds[1], "x", 1, MSG_NOSIGNAL), 1);
	assert_in_range(takt_door_timeout_ms(&door, 1), 900, 1000);
	takt_door_look(&door, 999 * ms);
	assert_int_equal(send(fds[1], "x", 1, MSG_NOSIGNAL), 1);
	takt_door_look(&door, 1000 * ms);
	assert_int_equal(send(fds[1], "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(takt_door_timeout_ms(&door, 1000 * ms), -1);
	for (int i = 0; i <= TAKT_FAREWELL_SLOTS; i++)
		close(fds[i]);
}

/* Whoever comes by the new one is let in, and nothing is heard of the old one. */
static void another_socket_takes_its_place(void **state)
{
	struct takt_guest guest;
	int fd = -1, old = door.listen_fd, guest_fd;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(takt_net_listen_unix(path, 0600, &fd, NULL), 0);
	assert_int_equal(takt_door_move(&door, fd, NULL), 0);
	assert_int_equal(takt_door_move(&door, -1, NULL), -EBADF);
	close(old);
	assert_int_equal(door.listen_fd, fd);
	assert_false(readable());
	guest_fd = dial();
	assert_true(readable());
	assert_true(takt_door_accept(&door, 0, &guest));
	close(guest.fd);
	close(guest_fd);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(guests_are_known),
		CASE(without_descriptors_one_comes_in_and_the_door_shuts),
		CASE(hours_without_descriptors_are_few_tries),
		CASE(who_is_turned_away_can_read_why),
		CASE(who_is_turned_away_does_not_stay),
		CASE(another_socket_takes_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
