/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to those who are turned away, and their sockets for a second more. */
#include "net/farewell.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	NS_PER_MS = 1000000
};

static void release(struct takt_farewell *farewell, unsigned i)
{
	if (farewell->slots[i].until_ns > 0)
		close(farewell->slots[i].fd);
	farewell->slots[i].until_ns = 0;
}

static void answer(int fd, const char *why)
{
	char body[256], text[512];
	int body_len = snprintf(body, sizeof(body),
				"{\"error\":{\"name\":\"UNAVAILABLE\",\"message\":\"%s\"}}\n", why);
	int len = snprintf(text, sizeof(text),
			   "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
			   "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			   body_len, body);

	(void)send(fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
}

void takt_farewell_say(struct takt_farewell *farewell, int fd, const char *why, uint64_t now_ns)
{
	unsigned i = farewell->next;

	answer(fd, why);
	release(farewell, i);
	farewell->slots[i].fd = fd;
	farewell->slots[i].until_ns = now_ns + (uint64_t)TAKT_FAREWELL_MS * NS_PER_MS;
	farewell->next = (i + 1) % TAKT_FAREWELL_SLOTS;
}

void takt_farewell_look(struct takt_farewell *farewell, uint64_t now_ns)
{
	for (unsigned i = 0; i < TAKT_FAREWELL_SLOTS; i++)
		if (now_ns >= farewell->slots[i].until_ns)
			release(farewell, i);
}

bool takt_farewell_drop(struct takt_farewell *farewell)
{
	bool any = false;

	for (unsigned i = 0; i < TAKT_FAREWELL_SLOTS; i++) {
		any |= farewell->slots[i].until_ns > 0;
		release(farewell, i);
	}
	return any;
}

int takt_farewell_timeout_ms(const struct takt_farewell *farewell, uint64_t now_ns)
{
	uint64_t first_ns = UINT64_MAX;

	for (unsigned i = 0; i < TAKT_FAREWELL_SLOTS; i++) {
		uint64_t until_ns = farewell->slots[i].until_ns;

		if (until_ns > 0 && until_ns < first_ns)
			first_ns = until_ns;
	}
	if (first_ns == UINT64_MAX)
		return -1;
	return now_ns >= first_ns ? 0 : (int)((first_ns - now_ns) / NS_PER_MS) + 1;
}
