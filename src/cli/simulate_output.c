/* SPDX-License-Identifier: Apache-2.0 */
/* Where results of `takt simulate` go, and the bar that shows how far it is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sys.h"
#include "base/timetext.h"
#include "cli/simulate.h"
#include "takt_build.h"
#include "takt_commit.h"

enum {
	BAR = 40,
};

static const uint64_t QUIET_NS = 2 * TAKT_NS_PER_S, EVERY_NS = TAKT_NS_PER_S / 10;

int takt_simulate_progress(void *ctx, size_t done, size_t count)
{
	struct takt_simulate *simulate = ctx;
	uint64_t now = takt_mono_now(takt_sys_real()).ns, taken = now - simulate->begun_ns;
	char left[TAKT_DURATION_TEXT], bar[BAR + 1];
	size_t full = done * BAR / count;

	if (taken < QUIET_NS || now - simulate->shown_ns < EVERY_NS || isatty(STDERR_FILENO) != 1)
		return 0;
	simulate->shown_ns = now;
	memset(bar, '.', BAR);
	memset(bar, '#', full);
	bar[BAR] = '\0';
	fprintf(stderr, "\r[%s] %zu of %zu runs, %s left ", bar, done, count,
		takt_duration_text(taken / done * (count - done), left));
	return 0;
}

void takt_simulate_progress_end(struct takt_simulate *simulate)
{
	if (simulate->shown_ns)
		fprintf(stderr, "\r%*s\r", BAR + 40, "");
}

struct takt_sim_meta takt_simulate_meta(const struct takt_simulate *simulate, const char *protocol)
{
	struct takt_simulate *own = (struct takt_simulate *)simulate;

	for (size_t i = 0; i < simulate->note_count; i++)
		own->note_list[i] = simulate->notes[i];
	own->note_list[simulate->note_count] = NULL;
	return (struct takt_sim_meta){
		.protocol = protocol,
		.version = TAKT_VERSION,
		.commit = TAKT_COMMIT,
		.command = takt_str_text(&simulate->command),
		.cluster = simulate->cluster,
		.cluster_hash = "",
		.trace = simulate->trace,
		.trace_hash = "",
		.first_seed = simulate->first_seed,
		.last_seed = simulate->last_seed,
		.options = simulate->note_list,
	};
}

int takt_simulate_write(const struct takt_simulate *simulate, const char *option,
			const struct takt_str *text, struct takt_err *err)
{
	const char *path = takt_cli_value(simulate->cli, option);
	size_t at = 0;
	int fd;

	if (text->rc < 0)
		return takt_err_set(err, text->rc, "no memory for the result");
	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return takt_err_set(err, -errno, "write '%s'", path);
	while (at < text->len) {
		ssize_t n = write(fd, text->s + at, text->len - at);

		if (n < 0 && errno != EINTR) {
			int rc = takt_err_set(err, -errno, "write '%s'", path);

			close(fd);
			return rc;
		}
		at += n > 0 ? (size_t)n : 0;
	}
	return close(fd) < 0 ? takt_err_set(err, -errno, "write '%s'", path) : 0;
}
