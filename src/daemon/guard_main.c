/* SPDX-License-Identifier: Apache-2.0 */
/* takt-guard: puts the clocks back when takt-actuate dies, which starts it. Wiring only. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "actuate/actuate.h"
#include "daemon/actuate_flags.h"
#include "daemon/clean_start.h"
#include "daemon/log.h"

static void log_line(void *ctx, const char *text)
{
	takt_log(TAKT_LOG_NOTICE, "%s", text);
}

int main(int argc, char **argv)
{
	struct takt_actuate_flags flags;
	struct takt_err err = {0};
	char text[512];
	int rc;

	takt_actuate_tell_refusals("takt-guard");
	takt_log_as("takt-guard");
	rc = takt_actuate_flags_parse(argc, argv, &flags, &err);
	if (rc == 0 && geteuid() == 0 && flags.config.client_uid != 0)
		rc = takt_clean_start(argv, &err);
	if (rc == 0 && flags.help) {
		(void)puts(
			"Usage: takt-guard --watch-fd N --journal PATH --lock PATH [--nvml PATH]\n"
			"                  [--sysfs PATH] [--deadline-ms N] [--driver-calls "
			"listed|any]\n"
			"It is started by takt-actuate and ends by itself.");
		return 0;
	}
	if (rc == 0 && flags.watch_fd < 0)
		rc = takt_err_set(&err, -TAKT_E_USAGE, "--watch-fd is needed");
	if (rc == 0)
		rc = takt_actuate_confine(&flags, true, &err);
	if (rc == 0) {
		/* It leaves when the clocks are back, not when somebody ends the rest of takt. */
		(void)signal(SIGTERM, SIG_IGN);
		(void)signal(SIGINT, SIG_IGN);
		(void)signal(SIGHUP, SIG_IGN);
		(void)signal(SIGPIPE, SIG_IGN);
		flags.config.log.line = log_line;
		rc = takt_guard_run(&flags.config, flags.watch_fd, &err);
	}
	if (rc < 0)
		takt_log(TAKT_LOG_ERROR, "%s", takt_err_text(&err, text, sizeof(text)));
	return rc < 0 ? takt_err_exit_status(rc) : 0;
}
