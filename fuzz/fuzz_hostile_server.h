/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a client's socket, for targets that play a hostile server: whoever connects to
 * its path is sent what the input holds, message by message. */
#ifndef TAKT_FUZZ_HOSTILE_SERVER_H
#define TAKT_FUZZ_HOSTILE_SERVER_H

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz_bytes.h"

enum {
	HOSTILE_MESSAGES = 16
};

static char hostile_folder[] = "/tmp/takt-fuzz-server-XXXXXX";
static struct sockaddr_un hostile_address = {.sun_family = AF_UNIX};
static int hostile_listen_fd = -1;

static void hostile_remove(void)
{
	(void)unlink(hostile_address.sun_path);
	(void)rmdir(hostile_folder);
}

/* The path to connect to. */
static inline const char *hostile_path(void)
{
	if (hostile_listen_fd >= 0)
		return hostile_address.sun_path;
	fuzz_expect(mkdtemp(hostile_folder) != NULL);
	(void)atexit(hostile_remove);
	(void)snprintf(hostile_address.sun_path, sizeof(hostile_address.sun_path), "%s/door",
		       hostile_folder);
	hostile_listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	fuzz_expect(bind(hostile_listen_fd, (struct sockaddr *)&hostile_address,
			 sizeof(hostile_address)) == 0);
	fuzz_expect(listen(hostile_listen_fd, 4) == 0);
	return hostile_address.sun_path;
}

/* To whoever has just connected. Most are `size` bytes that begin with the right version; he who
 * is sent an empty one is hung up on. */
static inline void hostile_send(struct fuzz_bytes *in, size_t size, uint32_t version)
{
	int fd = accept4(hostile_listen_fd, NULL, NULL, SOCK_CLOEXEC);
	unsigned char *bytes = malloc(2 * size);

	fuzz_expect(fd >= 0 && bytes != NULL);
	for (int i = 0; i < HOSTILE_MESSAGES && in->left > 0; i++) {
		uint8_t how = fuzz_u8(in);
		size_t len = how % 4 ? size : fuzz_u16(in) % (2 * size);

		fuzz_take(in, bytes, len);
		if (how % 8)
			memcpy(bytes, &version, sizeof(version));
		(void)send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	free(bytes);
	close(fd);
}

#endif
