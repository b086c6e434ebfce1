/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/log.h"

enum {
	MODE = 0644, /* node_exporter is somebody else */
};

static const uint64_t every_ns = 15 * TAKT_NS_PER_S;

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* No fsync: what a crash takes with it is written again when takt is back. */
static int replace(const char *path, const struct takt_page *page)
{
	char fresh[TAKT_CONFIG_PATH + 8];
	int fd, rc;

	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, MODE);
	if (fd < 0)
		return -errno;
	rc = fchmod(fd, MODE) < 0 ? -errno : write_all(fd, page->text, page->len);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(fresh, path) < 0)
		rc = -errno;
	if (rc < 0)
		(void)unlink(fresh);
	return rc;
}

static void tell(struct takt_daemon *daemon, int rc)
{
	if (rc < 0 && !daemon->metrics_file_failed)
		takt_log(TAKT_LOG_WARNING, "metrics_textfile '%s': %s; tried again",
			 daemon->config.metrics_textfile, takt_err_sentence(rc));
	daemon->metrics_file_failed = rc < 0;
}

void takt_metrics_file_tick(struct takt_daemon *daemon, struct takt_mono now)
{
	const struct takt_page *page;

	if (daemon->config.metrics_textfile[0] == '\0' || now.ns < daemon->metrics_file_due.ns)
		return;
	daemon->metrics_file_due = takt_mono_add(now, every_ns);
	if (takt_telemetry_page_is_old(daemon->telemetry, TAKT_PAGE_PLAIN, now))
		takt_api_update_page(daemon);
	page = takt_telemetry_page(daemon->telemetry, TAKT_PAGE_PLAIN, now);
	tell(daemon, replace(daemon->config.metrics_textfile, page));
	takt_page_unref(page);
}

void takt_metrics_file_remove(struct takt_daemon *daemon)
{
	if (daemon->config.metrics_textfile[0] != '\0' && daemon->metrics_file_due.ns != 0)
		(void)unlink(daemon->config.metrics_textfile);
}
