/* SPDX-License-Identifier: Apache-2.0 */
/* Accepting connections, and what is done without descriptors. */
#include "net/door.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/pace.h"
#include "net/peer.h"
#include "net/seats.h"

enum {
	NS_PER_MS = 1000000
};

static const struct takt_pace pauses = {100 * NS_PER_MS, 1000 * NS_PER_MS};

/* Any descriptor will do; this one needs no file. */
static int put_aside(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int takt_door_init(struct takt_door *door, int listen_fd, int epoll_fd, void *mark,
		   struct takt_err *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = mark};

	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
		return takt_err_set(err, -errno, "watch a listening socket");
	*door = (struct takt_door){
		.listen_fd = listen_fd,
		.epoll_fd = epoll_fd,
		.reserve_fd = put_aside(),
		.mark = mark,
	};
	return 0;
}

static void give_reserve(struct takt_door *door)
{
	if (door->reserve_fd >= 0)
		close(door->reserve_fd);
	door->reserve_fd = -1;
}

void takt_door_fini(struct takt_door *door)
{
	(void)takt_farewell_drop(&door->farewell);
	give_reserve(door);
}

int takt_door_move(struct takt_door *door, int listen_fd, struct takt_err *err)
{
	struct epoll_event event = {.events = door->shut ? 0 : EPOLLIN, .data.ptr = door->mark};

	if (epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) < 0)
		return takt_err_set(err, -errno, "watch a listening socket");
	(void)epoll_ctl(door->epoll_fd, EPOLL_CTL_DEL, door->listen_fd, NULL);
	door->listen_fd = listen_fd;
	return 0;
}

static void watch(struct takt_door *door, bool on)
{
	struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = door->mark};

	door->shut = !on;
	(void)epoll_ctl(door->epoll_fd, EPOLL_CTL_MOD, door->listen_fd, &event);
}

static int take(struct takt_door *door, struct takt_guest *guest)
{
	int fd;

	do {
		guest->address_len = sizeof(guest->address);
		fd = accept4(door->listen_fd, (struct sockaddr *)&guest->address,
			     &guest->address_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return fd;
}

static uid_t who(const struct takt_guest *guest)
{
	uid_t uid;
	gid_t gid;
	pid_t pid;

	/* Other sockets answer, too, but with nobody's ids. */
	if (guest->address.ss_family != AF_UNIX ||
	    takt_net_peer(guest->fd, &uid, &gid, &pid, NULL) < 0)
		return TAKT_SEATS_NO_USER;
	return uid;
}

/* What is not passing is not asked for at once again. */
static void shut(struct takt_door *door, uint64_t now_ns)
{
	watch(door, false);
	door->open_ns = now_ns + takt_pace_ns(&pauses, door->shuts++);
}

static bool lacks_descriptors(const struct takt_guest *guest)
{
	return guest->fd < 0 && (errno == EMFILE || errno == ENFILE);
}

/* Those who were turned away go first, then the descriptor that was kept. */
static void find_room(struct takt_door *door, uint64_t now_ns, struct takt_guest *guest)
{
	if (takt_farewell_drop(&door->farewell))
		guest->fd = take(door, guest);
	if (!lacks_descriptors(guest))
		return;
	shut(door, now_ns);
	guest->scarce = door->reserve_fd >= 0;
	give_reserve(door);
	if (guest->scarce)
		guest->fd = take(door, guest);
}

bool takt_door_accept(struct takt_door *door, uint64_t now_ns, struct takt_guest *ret)
{
	struct takt_guest guest = {.fd = -1};

	if (door->shut)
		return false;
	guest.fd = take(door, &guest);
	if (lacks_descriptors(&guest))
		find_room(door, now_ns, &guest);
	else if (guest.fd < 0 && errno != EAGAIN)
		shut(door, now_ns);
	if (guest.fd < 0)
		return false;
	if (!guest.scarce)
		door->shuts = 0;
	guest.uid = who(&guest);
	*ret = guest;
	return true;
}

void takt_door_look(struct takt_door *door, uint64_t now_ns)
{
	takt_farewell_look(&door->farewell, now_ns);
	if (door->reserve_fd < 0)
		door->reserve_fd = put_aside();
	if (door->shut && now_ns >= door->open_ns)
		watch(door, true);
}

int takt_door_timeout_ms(const struct takt_door *door, uint64_t now_ns)
{
	int ms = takt_farewell_timeout_ms(&door->farewell, now_ns), open_ms;

	if (!door->shut)
		return ms;
	open_ms = now_ns >= door->open_ns ? 0 : (int)((door->open_ns - now_ns) / NS_PER_MS) + 1;
	return ms < 0 || open_ms < ms ? open_ms : ms;
}

void takt_door_turn_away(struct takt_door *door, const struct takt_guest *guest, const char *why,
			 uint64_t now_ns)
{
	takt_farewell_say(&door->farewell, guest->fd, why, now_ns);
	if (!guest->scarce)
		return;
	(void)takt_farewell_drop(&door->farewell);
	door->reserve_fd = put_aside();
}
