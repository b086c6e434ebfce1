/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `serve`: its configuration, and the daemon's life. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "daemon/clean_start.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "device/nvml_find.h"
#include "takt_build.h"

static void greet(const struct takt_daemon *daemon)
{
	const struct takt_machine_info *info = takt_machine_info(daemon->machine);

	printf("takt %s: %u%s GPU%s", TAKT_VERSION, daemon->gpu_count,
	       info->simulated ? " SIMULATED" : "", daemon->gpu_count == 1 ? "" : "s");
	if (info->driver_version[0])
		printf(" (driver %s)", info->driver_version);
	if (daemon->manages)
		printf(", gives them out\n");
	else
		printf(", observes only: %s\n", daemon->observe_why);
	printf("takt: API on %s\n", daemon->config.socket);
	if (daemon->metrics_port)
		printf("takt: metrics on port %u%s\n", daemon->metrics_port,
		       daemon->config.metrics_tls ? ", HTTPS" : "");
	if (daemon->web_port)
		printf("takt: web page on port %u%s\n", daemon->web_port,
		       daemon->tls ? ", HTTPS" : "");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(daemon->notes); i++)
		if (daemon->notes[i][0])
			printf("takt: %s\n", daemon->notes[i]);
	fflush(stdout);
}

static int show(int (*write)(const struct takt_config *config, struct takt_str *out),
		const struct takt_config *config, struct takt_err *err)
{
	struct takt_str text = TAKT_STR(256 * 1024);
	int rc = write(config, &text);

	if (rc == 0)
		fputs(takt_str_text(&text), stdout);
	takt_str_fini(&text);
	return rc < 0 ? takt_err_set(err, rc, "the text") : 0;
}

static int write_help(const struct takt_config *config, struct takt_str *out)
{
	takt_str_add(out,
		     "usage: takt serve [--config FILE] [FLAG VALUE]...\n\n"
		     "Sees and gives out this machine's GPUs, in the foreground until SIGINT or "
		     "SIGTERM. Jobs go on\n"
		     "when it ends. Each flag is also a line \"key = value\" of the file.\n\n");
	takt_config_help(out);
	return takt_str_add(
		out, "  --print-config\n      Print what is in force, as a file, and end.\n");
}

static int run(const struct takt_config *config, int argc, char **argv, bool *ret_again,
	       struct takt_err *err)
{
	struct takt_daemon *daemon = takt_zalloc(sizeof(*daemon));
	int rc = daemon ? takt_daemon_open(daemon, config, argc, argv, err)
			: takt_err_set(err, -ENOMEM, "start");

	if (rc == 0) {
		greet(daemon);
		rc = takt_daemon_loop(daemon, err);
		*ret_again = daemon->again;
		takt_daemon_close(daemon);
	}
	takt_free(daemon);
	return rc;
}

static void note_unused_library(void)
{
	char path[PATH_MAX];

	if (takt_nvml_find(getenv("LD_LIBRARY_PATH"), path, sizeof(path)))
		(void)setenv(TAKT_UNUSED_NVML, path, 1);
}

/* Who serves others loads the driver from where the system has it, or an administrator says; the
 * processes that it starts inherit the clean environment. */
static int serve(int argc, char **argv, const struct takt_config *config, struct takt_err *err)
{
	int verb = argc > 1, rc = 0;
	bool again = false;

	if (config->users == TAKT_USERS_ALL ||
	    (geteuid() == 0 && config->users != TAKT_USERS_OWN)) {
		note_unused_library();
		rc = takt_clean_start(argv, err);
	}
	if (rc == 0)
		rc = run(config, argc - verb, argv + verb, &again, err);
	if (rc < 0 || !again)
		return rc;
	execv("/proc/self/exe", argv);
	return takt_err_set(err, -errno, "start anew");
}

int takt_serve_main(int argc, char **argv)
{
	struct takt_config config;
	int status;
	enum takt_config_action action = TAKT_CONFIG_RUN;
	struct takt_err err = {0};
	char text[TAKT_ERR_MSG + 64];
	int verb = argc > 1;
	int rc;

	if (takt_driver_look_main(argc, argv, &status))
		return status;
	takt_keep_name(argv);
	rc = takt_config_from_args(&config, argc - verb, argv + verb, &action, &err);
	if (rc == 0)
		rc = takt_config_resolve(&config, getuid(), getenv("XDG_RUNTIME_DIR"),
					 getenv("XDG_STATE_HOME"), getenv("HOME"), &err);
	if (rc == 0 && action == TAKT_CONFIG_HELP)
		rc = show(write_help, &config, &err);
	else if (rc == 0 && action == TAKT_CONFIG_PRINT)
		rc = show(takt_config_print, &config, &err);
	else if (rc == 0)
		rc = serve(argc, argv, &config, &err);
	if (rc < 0)
		takt_log(TAKT_LOG_ERROR, "%s", takt_err_text(&err, text, sizeof(text)));
	return takt_err_exit_status(rc);
}
