/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming a log. */
#include "cli/log_stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/pace.h"

enum {
	FOLLOW_MS = 30000,
};

static const struct takt_pace tries = {TAKT_NS_PER_S / 10, 5 * TAKT_NS_PER_S};

static void sleep_ns(const struct takt_patience *patience, uint64_t ns)
{
	struct pollfd fd = {.fd = patience->wake_fd, .events = POLLIN};

	(void)poll(&fd, 1, (int)(ns / TAKT_NS_PER_MS));
}

bool takt_patience_retry(struct takt_patience *patience, int rc, const struct takt_err *err)
{
	if (rc != -TAKT_E_UNAVAILABLE) {
		if (rc >= 0 && patience->away)
			fprintf(stderr, "takt: connected again\n");
		patience->away = patience->away && rc < 0;
		return false;
	}
	if (!patience->away) {
		fprintf(stderr, "takt: %s; the job goes on, trying to reach takt again\n",
			err->msg);
		patience->away = true;
		patience->failures = 0;
	}
	sleep_ns(patience, takt_pace_ns(&tries, patience->failures++));
	return true;
}

int takt_log_stream(struct takt_cli *cli, uint64_t job_id, bool follow,
		    struct takt_patience *patience, struct takt_log_place *place,
		    struct takt_err *err)
{
	uint32_t attempt = place->attempt;
	const char *bytes;
	size_t len;
	int rc;

	do {
		rc = takt_client_log(cli->client, job_id, follow ? FOLLOW_MS : 0, place, &bytes,
				     &len, err);
		if (follow && takt_patience_retry(patience, rc, err))
			return 1;
		if (rc < 0)
			return rc;
		if (attempt != 0 && place->attempt != attempt)
			fprintf(stderr, "takt: job %llu was started again (attempt %u)\n",
				(unsigned long long)job_id, place->attempt);
		attempt = place->attempt;
		rc = takt_cli_write(bytes, len, err);
	} while (rc == 0 && !place->over && (follow || len > 0));
	return rc;
}
