/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon has to remember of attempts besides what the store has: the id by which processes
 * in a container are known, and the port where ranks meet. Both are in the attempt's own spec, from
 * which they are learnt again after a restart. Jobs with neither are not in the table.
 *
 * A port is no other live job's and nobody listens on it when it is given out. It is looked for
 * from where the job's number points, so that one comes back late.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/daemon.h"

enum {
	MAX_KNOWN = 262144
};

struct known {
	char id[TAKT_ATTEMPT_ID_MAX];
	uint32_t port; /* 0 = none */
	uid_t uid;
	bool container, over;
};

struct takt_attempts {
	uint32_t port_first, port_last;
	struct takt_map jobs; /* job id -> struct known *, owned */
};

int takt_attempts_new(uint32_t port_first, uint32_t port_last, struct takt_attempts **ret)
{
	struct takt_attempts *attempts = takt_zalloc(sizeof(*attempts));

	if (!attempts)
		return -ENOMEM;
	attempts->port_first = port_first;
	attempts->port_last = port_last;
	attempts->jobs = TAKT_MAP_U64(MAX_KNOWN);
	*ret = attempts;
	return 0;
}

void takt_attempts_free(struct takt_attempts *attempts)
{
	if (!attempts)
		return;
	TAKT_MAP_EACH(entry, &attempts->jobs)
	takt_free(entry->value.ptr);
	takt_map_fini(&attempts->jobs);
	takt_free(attempts);
}

static bool taken(struct takt_attempts *attempts, uint32_t port)
{
	TAKT_MAP_EACH(entry, &attempts->jobs)
	{
		const struct known *known = entry->value.ptr;

		if (known->port == port)
			return true;
	}
	return false;
}

/* Whether one could listen there now, as the first rank will: on all addresses, of both families
 * where there are both. A port whose last connections are still timing out is free. */
static bool can_listen(uint32_t port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0, on = 1, rc;
	bool both = fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0;

	if (fd < 0)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	rc = both ? bind(fd, (struct sockaddr *)&six, sizeof(six))
		  : bind(fd, (struct sockaddr *)&four, sizeof(four));
	if (rc == 0)
		rc = listen(fd, 1);
	close(fd);
	return rc == 0;
}

static uint32_t find_port(struct takt_attempts *attempts, uint64_t job_id)
{
	uint32_t count = attempts->port_last - attempts->port_first + 1;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t port = attempts->port_first + (uint32_t)((job_id + i) % count);

		if (!taken(attempts, port) && can_listen(port))
			return port;
	}
	return 0;
}

/* The id of a container that is over is of use while its GPUs drain; a full table forgets it. */
static void forget_over(struct takt_attempts *attempts)
{
	uint64_t over[256];
	size_t n = 0;

	TAKT_MAP_EACH(entry, &attempts->jobs)
	{
		const struct known *known = entry->value.ptr;

		if (known->over && n < TAKT_ARRAY_LEN(over))
			over[n++] = entry->key;
	}
	for (size_t i = 0; i < n; i++) {
		takt_free(takt_map_u64_ptr(&attempts->jobs, over[i]));
		(void)takt_map_u64_remove(&attempts->jobs, over[i]);
	}
}

static struct known *entry_of(struct takt_attempts *attempts, uint64_t job_id)
{
	struct known *known = takt_map_u64_ptr(&attempts->jobs, job_id);

	if (known)
		return known;
	if (attempts->jobs.len == MAX_KNOWN)
		forget_over(attempts);
	known = takt_zalloc(sizeof(*known));
	if (known && takt_map_u64_put_ptr(&attempts->jobs, job_id, known) == 0)
		return known;
	takt_free(known);
	return NULL;
}

int takt_attempts_begin(struct takt_attempts *attempts, const struct takt_queue_job *job,
			const char *attempt_id, uint32_t *ret_port, struct takt_err *err)
{
	struct known *known;

	*ret_port = 0;
	if (!job->spec.ranks && !job->spec.container)
		return 0;
	known = entry_of(attempts, job->row.id);
	if (!known)
		return takt_err_set(err, -ENOMEM, "attempt %s", attempt_id);
	*known = (struct known){.uid = job->row.uid, .container = job->spec.container};
	takt_strcpy(known->id, sizeof(known->id), attempt_id);
	if (!job->spec.ranks)
		return 0;
	known->port = *ret_port = find_port(attempts, job->row.id);
	return known->port ? 0
			   : takt_err_set(err, -TAKT_E_UNAVAILABLE,
					  "no port from %u to %u is free for its ranks "
					  "(rank_port_first, rank_port_last)",
					  attempts->port_first, attempts->port_last);
}

/* What it runs as: of one that was staged that is its `go`. */
static void read_known(const struct takt_sys *sys, int attempt_dirfd, struct known *known)
{
	struct takt_attempt_spec spec = {0};
	int rc = takt_attempt_read_go(sys, attempt_dirfd, &spec, NULL);

	if (rc == -ENOENT)
		rc = takt_attempt_read_spec(sys, attempt_dirfd, &spec, NULL);
	if (rc == 0) {
		takt_strcpy(known->id, sizeof(known->id), spec.id);
		known->port = spec.master_port;
	}
	takt_attempt_spec_fini(&spec);
}

int takt_attempts_adopt(struct takt_attempts *attempts, const struct takt_sys *sys, int jobs_dirfd,
			const struct takt_queue_job *job, struct takt_err *err)
{
	struct known *known;
	int dirfd;

	if ((!job->spec.ranks && !job->spec.container) || job->row.staged)
		return 0;
	known = entry_of(attempts, job->row.id);
	if (!known)
		return takt_err_set(err, -ENOMEM, "an attempt to adopt");
	*known = (struct known){.uid = job->row.uid, .container = job->spec.container};
	dirfd = takt_attempt_open(sys, jobs_dirfd, job->row.id, job->row.attempt, NULL);
	if (dirfd < 0)
		return 0;
	read_known(sys, dirfd, known);
	(void)sys->close(sys, dirfd);
	return 0;
}

void takt_attempts_over(struct takt_attempts *attempts, uint64_t job_id)
{
	struct known *known = takt_map_u64_ptr(&attempts->jobs, job_id);

	if (known && known->container) {
		known->port = 0;
		known->over = true;
	} else if (known) {
		takt_free(known);
		(void)takt_map_u64_remove(&attempts->jobs, job_id);
	}
}

bool takt_attempts_is(const struct takt_attempts *attempts, uint64_t job_id, const char *attempt_id,
		      uid_t uid)
{
	const struct known *known = takt_map_u64_ptr(&attempts->jobs, job_id);

	return known && known->uid == uid && strcmp(known->id, attempt_id) == 0;
}
