/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs. An answer is at most 256 KiB of the log from an offset on, as bytes, with headers that say
 * where to go on and whether more may come. With follow=1 an answer that would be empty is held
 * until there is something, the job is over, or the time is up. Asking again from an offset loses
 * nothing, whatever happened to the connection or the daemon in between.
 *
 * Of a job that printed more than output_limit the middle of the log is not kept: the file has a
 * hole there. In its place an answer has one line that says so, and the next goes on behind it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "server/server_impl.h"

enum {
	PART_BYTES = 256 * 1024,
	NOTE_BYTES = 160,
	LOOK_MS = 200,
	MAX_FOLLOW_MS = 60 * 1000,
};

struct follower {
	struct takt_held held; /* first: http->user points here */
	struct takt_call call;
	uint64_t offset;
	uint32_t attempt; /* that the client reads; 0 = whichever is the latest */
	uint64_t deadline_ns;
	struct follower *prev, *next;
};

/* What one look at the log gave. */
struct part {
	char *bytes; /* owned; NULL = none */
	size_t len;
	uint64_t offset; /* after it */
	uint32_t attempt;
	bool live;
};

static ssize_t read_at(int fd, char *bytes, size_t n, uint64_t offset)
{
	ssize_t got;

	do
		got = pread(fd, bytes, n, (off_t)offset);
	while (got < 0 && errno == EINTR);
	return got;
}

/* One that is shorter than what the client has read was written anew. */
static bool is_shorter(int fd, uint64_t offset)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size < offset;
}

/* The line in place of a hole, behind the part's `len` bytes before it, which is a line of its own
 * also where they end within one. */
static size_t add_note(int fd, const struct part *part, off_t hole, off_t end)
{
	char before = '\n';

	if (part->len > 0)
		before = part->bytes[part->len - 1];
	else if (hole > 0)
		(void)read_at(fd, &before, 1, (uint64_t)hole - 1);
	return (size_t)snprintf(part->bytes + part->len, NOTE_BYTES,
				"%stakt: bytes %lld to %lld of this output are not kept: there is "
				"more than output_limit allows\n",
				before == '\n' ? "" : "\n", (long long)hole, (long long)end);
}

/* What reads as zeros may be a hole, which is looked for only then. */
static void end_at_hole(int fd, struct part *part)
{
	off_t from = (off_t)(part->offset - part->len), hole, end;

	if (!memchr(part->bytes, '\0', part->len))
		return;
	hole = lseek(fd, from, SEEK_HOLE);
	if (hole < from || hole >= from + (off_t)part->len)
		return;
	end = lseek(fd, hole, SEEK_DATA);
	if (end < 0)
		end = lseek(fd, 0, SEEK_END);
	part->len = (size_t)(hole - from);
	part->len += add_note(fd, part, hole, end);
	part->offset = (uint64_t)end;
}

static int read_bytes(int fd, struct part *part, struct takt_err *err)
{
	char *fitted;
	ssize_t n;
	int rc;

	part->bytes = takt_alloc(PART_BYTES + NOTE_BYTES);
	if (!part->bytes)
		return takt_err_set(err, -ENOMEM, "no memory for the log");
	if (is_shorter(fd, part->offset))
		part->offset = 0;
	n = read_at(fd, part->bytes, PART_BYTES, part->offset);
	if (n <= 0) {
		rc = n == 0 ? 0 : takt_err_set(err, -errno, "read the job's log");
		takt_free(part->bytes);
		part->bytes = NULL;
		return rc;
	}
	part->len = (size_t)n;
	part->offset += (size_t)n;
	end_at_hole(fd, part);
	fitted = takt_realloc(part->bytes, part->len);
	part->bytes = fitted ? fitted : part->bytes;
	return 0;
}

/* The attempt after the latest is waited for: the job had it for a moment, and will again. */
static int look_ahead(const struct takt_call *call, uint32_t attempt, struct part *part,
		      struct takt_err *err)
{
	if (!part->live || attempt - part->attempt > 1)
		return takt_err_set(err, -TAKT_E_NOT_FOUND,
				    "job %llu has no attempt %u; the latest is %u",
				    (unsigned long long)call->job_id, attempt, part->attempt);
	part->attempt = attempt;
	return 0;
}

/* Where a log's last bytes begin. */
static uint64_t tail_offset(int fd, uint64_t tail)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size > tail ? (uint64_t)st.st_size - tail : 0;
}

/* Another attempt than the one that the client reads is a new log. `tail`: of a log that is read
 * from its beginning so many bytes at its end, 0 = all. */
static int look(const struct takt_call *call, uint64_t offset, uint32_t attempt, uint64_t tail,
		struct part *ret, struct takt_err *err)
{
	struct part part = {.offset = offset};
	bool ahead;
	int fd = -1, rc;

	rc = call->server->backend.log(call->server->ctx, &call->peer, call->job_id, &fd,
				       &part.attempt, &part.live, err);
	if (rc < 0)
		return rc;
	ahead = attempt > part.attempt;
	if (ahead)
		rc = look_ahead(call, attempt, &part, err);
	else if (attempt != 0 && part.attempt != attempt)
		part.offset = 0;
	if (fd >= 0 && tail && part.offset == 0)
		part.offset = tail_offset(fd, tail);
	if (fd >= 0 && !ahead)
		rc = read_bytes(fd, &part, err);
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		*ret = part;
	return rc;
}

static void answer_part(struct takt_http_request *http, const struct part *part)
{
	char number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)part->offset);
	takt_http_answer_header(http, "Takt-Log-Offset", number);
	snprintf(number, sizeof(number), "%u", part->attempt);
	takt_http_answer_header(http, "Takt-Log-Attempt", number);
	takt_http_answer_header(http, "Takt-Log-Live", part->live ? "true" : "false");
	takt_http_answer_header(http, "X-Content-Type-Options", "nosniff");
	takt_http_answer(http, 200, "application/octet-stream", part->bytes ? part->bytes : "",
			 part->len, part->bytes ? takt_free : NULL, part->bytes);
}

static void unlink_follower(struct follower *follower)
{
	if (follower->prev)
		follower->prev->next = follower->next;
	else
		follower->call.server->followers = follower->next;
	if (follower->next)
		follower->next->prev = follower->prev;
	takt_free(follower);
}

void takt_server_follower_gone(struct follower *follower)
{
	unlink_follower(follower);
}

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

/* False when there is no memory to wait: the client may then ask again at once. */
static bool hold(const struct takt_call *call, const struct part *part, uint64_t timeout_ms)
{
	struct takt_server *server = call->server;
	struct follower *follower = takt_zalloc(sizeof(*follower));
	uint64_t now = now_ns();

	if (!follower)
		return false;
	follower->held.kind = TAKT_HELD_FOLLOWER;
	follower->call = *call;
	follower->offset = part->offset;
	follower->attempt = part->attempt;
	follower->deadline_ns = now + timeout_ms * TAKT_NS_PER_MS;
	follower->next = server->followers;
	if (follower->next)
		follower->next->prev = follower;
	else
		server->look_ns = now + LOOK_MS * TAKT_NS_PER_MS;
	server->followers = follower;
	call->http->user = &follower->held;
	return true;
}

void takt_route_log(struct takt_call *call)
{
	uint64_t offset, attempt, follow, tail, timeout_ms;
	struct part part = {.bytes = NULL};
	struct takt_err err;

	if (takt_server_query_u64(call, "offset", 0, INT64_MAX / 2, 0, &offset) < 0 ||
	    takt_server_query_u64(call, "attempt", 0, UINT32_MAX, 0, &attempt) < 0 ||
	    takt_server_query_u64(call, "follow", 0, 1, 0, &follow) < 0 ||
	    takt_server_query_u64(call, "tail", 0, INT64_MAX / 2, 0, &tail) < 0 ||
	    takt_server_query_u64(call, "timeout_ms", 0, MAX_FOLLOW_MS, 30000, &timeout_ms) < 0)
		return;
	if (look(call, offset, (uint32_t)attempt, tail, &part, &err) < 0) {
		takt_server_answer_failure(call->http, &err);
		return;
	}
	if (part.len == 0 && part.live && follow && hold(call, &part, timeout_ms))
		return;
	answer_part(call->http, &part);
}

/* An attempt that has ended and was read to its end is left when the next one has started. */
static void look_after(struct follower *follower, uint64_t now)
{
	struct part part = {.bytes = NULL};
	struct takt_http_request *http = follower->call.http;
	struct takt_err err;
	int rc = look(&follower->call, follower->offset, follower->attempt, 0, &part, &err);

	if (rc == 0 && part.len == 0 && part.live && now < follower->deadline_ns) {
		follower->attempt = part.attempt;
		follower->offset = part.offset;
		return;
	}
	unlink_follower(follower);
	if (rc < 0)
		takt_server_answer_failure(http, &err);
	else
		answer_part(http, &part);
}

void takt_server_followers_look(struct takt_server *server, uint64_t now)
{
	struct follower *next;

	if (!server->poked && now < server->look_ns)
		return;
	server->poked = false;
	server->look_ns = now + LOOK_MS * TAKT_NS_PER_MS;
	for (struct follower *follower = server->followers; follower; follower = next) {
		next = follower->next;
		look_after(follower, now);
	}
}

int takt_server_followers_timeout_ms(const struct takt_server *server, uint64_t now)
{
	if (!server->followers)
		return -1;
	if (server->poked || now >= server->look_ns)
		return 0;
	return (int)((server->look_ns - now) / TAKT_NS_PER_MS) + 1;
}

void takt_server_followers_fini(struct takt_server *server)
{
	static const struct takt_err stopping = {.rc = -TAKT_E_UNAVAILABLE,
						 .msg = "takt is stopping; ask again"};

	while (server->followers) {
		struct takt_http_request *http = server->followers->call.http;

		unlink_follower(server->followers);
		takt_server_answer_failure(http, &stopping);
	}
}
