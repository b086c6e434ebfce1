/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "sim_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void trace_path(const char *file, char path[512])
{
	snprintf(path, 512, "%s/%s", getenv("TAKT_TRACES"), file);
}

int kit_throughputs(struct takt_throughputs *ret)
{
	struct takt_lines *lines;
	char path[512];
	int rc;

	trace_path("gavel_throughputs.json.gz", path);
	rc = takt_lines_open(path, &lines, NULL);
	if (rc < 0)
		return rc;
	rc = takt_throughputs_read(lines, ret, NULL);
	takt_lines_free(lines);
	return rc;
}

static void load_nodes(const char *path, struct takt_sim_cluster *ret)
{
	struct takt_err err = {0};

	if (takt_sim_cluster_load(path, ret, &err) < 0)
		fail_msg("%s", err.msg);
}

static void load_jobs(const char *path, struct takt_sim_cluster *cluster, struct takt_sim_work *ret)
{
	struct takt_err err = {0};

	if (takt_sim_work_load(path, 0, cluster, ret, &err) < 0)
		fail_msg("%s", err.msg);
}

void kit_load_nodes(const char *file, struct takt_sim_cluster *ret)
{
	char path[512];

	trace_path(file, path);
	load_nodes(path, ret);
}

void kit_load_pods(const char *file, struct takt_sim_cluster *cluster, struct takt_sim_work *ret)
{
	char path[512];

	trace_path(file, path);
	load_jobs(path, cluster, ret);
}

static void write_temporary(const char *text, char path[32])
{
	int fd;

	memcpy(path, "/tmp/takt-sim-XXXXXX", 21);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

void kit_nodes(const char *text, struct takt_sim_cluster *ret)
{
	char path[32];

	write_temporary(text, path);
	load_nodes(path, ret);
	unlink(path);
}

void kit_jobs(const char *text, struct takt_sim_cluster *cluster, struct takt_sim_work *ret)
{
	char path[32];

	write_temporary(text, path);
	load_jobs(path, cluster, ret);
	unlink(path);
}
