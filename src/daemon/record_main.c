/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `record`: this machine's facts and readings into a file, without a daemon. Changes
 * nothing. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/timetext.h"
#include "cli/whole_file.h"
#include "codec/json.h"
#include "daemon/daemon.h"

enum {
	MAX_SAMPLES = 1000000
};

struct record_flags {
	struct takt_record_options options;
	struct takt_machine_config machine;
	const char *path;
	bool json;
};

static const struct option flags[] = {
	{"samples", required_argument, NULL, 's'}, {"interval", required_argument, NULL, 'i'},
	{"anonymous", no_argument, NULL, 'a'},	   {"nvml-path", required_argument, NULL, 'n'},
	{"json", no_argument, NULL, 'j'},	   {0},
};

static int take_samples(struct record_flags *ret, const char *text, struct takt_err *err)
{
	unsigned long long n;

	if (takt_parse_u64(text, 1, MAX_SAMPLES, &n) < 0)
		return takt_err_set(err, -TAKT_E_USAGE, "--samples '%s'; 1 to %d are accepted",
				    text, MAX_SAMPLES);
	ret->options.samples = (uint32_t)n;
	return 0;
}

static int take_interval(struct record_flags *ret, const char *text, struct takt_err *err)
{
	uint64_t ns = 0;

	if (takt_duration_parse(text, &ns) < 0 || ns < TAKT_NS_PER_MS || ns > 3600 * TAKT_NS_PER_S)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "--interval '%s'; a time such as 100ms or 1s is accepted",
				    text);
	ret->options.interval_ms = (uint32_t)(ns / TAKT_NS_PER_MS);
	return 0;
}

static int take_flag(struct record_flags *ret, int flag, const char *value, struct takt_err *err)
{
	switch (flag) {
	case 's':
		return take_samples(ret, value, err);
	case 'i':
		return take_interval(ret, value, err);
	case 'a':
		ret->options.anonymous = true;
		return 0;
	case 'n':
		ret->machine.nvml_path = value;
		return 0;
	case 'j':
		ret->json = true;
		return 0;
	default:
		return takt_err_set(err, -TAKT_E_USAGE, "see takt help record");
	}
}

static int parse(int argc, char **argv, struct record_flags *ret, struct takt_err *err)
{
	int flag, rc = 0;

	while (rc == 0 && (flag = getopt_long(argc, argv, "", flags, NULL)) != -1)
		rc = take_flag(ret, flag, optarg, err);
	if (rc == 0 && argc - optind != 1)
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "record takes one FILE (or - for standard output)");
	ret->path = argv[optind];
	return rc;
}

/* Into a descriptor that stays open. */
static int write_fd(struct takt_machine *machine, const struct record_flags *given, int fd,
		    struct takt_err *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), rc;
	FILE *out = own < 0 ? NULL : fdopen(own, "w");

	if (!out) {
		rc = takt_err_set(err, -errno, "write '%s'", given->path);
		if (own >= 0)
			close(own);
		return rc;
	}
	rc = takt_machine_record(machine, &given->options, out, err);
	if (fclose(out) != 0 && rc == 0)
		rc = takt_err_set(err, -errno, "write '%s'", given->path);
	return rc;
}

/* A recording appears whole or not at all. */
static int write_file(struct takt_machine *machine, const struct record_flags *given,
		      struct takt_err *err)
{
	struct takt_whole_file file;
	int rc;

	if (strcmp(given->path, "-") == 0)
		return takt_machine_record(machine, &given->options, stdout, err);
	rc = takt_whole_file_open(given->path, &file, err);
	if (rc < 0)
		return rc;
	return takt_whole_file_close(&file, write_fd(machine, given, file.fd, err), err);
}

static void tell_json(const struct takt_machine_info *info, const struct record_flags *given)
{
	struct takt_str text = TAKT_STR(2 * PATH_MAX);

	takt_str_add(&text, "{\"file\":");
	takt_json_add_text(&text, given->path);
	takt_str_addf(&text, ",\"gpus\":%u,\"samples\":%u,\"simulated\":%s}\n", info->gpu_count,
		      given->options.samples, info->simulated ? "true" : "false");
	fputs(takt_str_text(&text), stdout);
	takt_str_fini(&text);
}

static void tell(const struct takt_machine_info *info, const struct record_flags *given)
{
	uint32_t samples = given->options.samples;

	if (given->json)
		tell_json(info, given);
	else
		fprintf(stderr, "takt: %u sample%s of %u%s GPUs in %s\n", samples,
			samples == 1 ? "" : "s", info->gpu_count,
			info->simulated ? " SIMULATED" : "", given->path);
}

int takt_record_main(int argc, char **argv)
{
	struct record_flags given = {.options = {.samples = 10, .interval_ms = 100},
				     .machine = {.source = TAKT_SOURCE_NVML}};
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};
	char text[TAKT_ERR_MSG + 64];
	int rc = parse(argc, argv, &given, &err);

	if (rc == 0)
		rc = takt_machine_open(&given.machine, &machine, &err);
	if (rc == 0 && given.options.samples * (uint64_t)given.options.interval_ms > 2000)
		fprintf(stderr, "takt: recording for %llu s ...\n",
			(unsigned long long)given.options.samples * given.options.interval_ms /
				1000);
	if (rc == 0)
		rc = write_file(machine, &given, &err);
	if (rc == 0)
		tell(takt_machine_info(machine), &given);
	else
		fprintf(stderr, "takt record: %s\n", takt_err_text(&err, text, sizeof(text)));
	takt_machine_close(machine);
	return takt_err_exit_status(rc);
}
