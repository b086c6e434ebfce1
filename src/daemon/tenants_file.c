/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of tenants: read at the start, when it has changed, and at SIGHUP. A file that is wrong
 * in one place is refused whole, what was read before stays, and the notes of `takt status` say so.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "daemon/govern.h"
#include "daemon/gpu_orders.h"

static const char default_path[] = "/etc/takt/tenants.conf";
static const uint64_t look_again_ns = TAKT_NS_PER_S;

enum {
	NOTE = 2
};

static const char *path_of(const struct takt_daemon *daemon)
{
	return daemon->config.tenants_file[0] ? daemon->config.tenants_file : default_path;
}

/* Of a file that is not there nobody speaks, unless it was named. */
static void refused(struct takt_daemon *daemon, const struct takt_err *err)
{
	snprintf(daemon->notes[NOTE], sizeof(daemon->notes[NOTE]),
		 "tenants as before, the file was refused: %.150s", err->msg);
}

static void read_file(struct takt_daemon *daemon)
{
	struct takt_share_rules rules = {.count = 0};
	struct takt_err err = {.rc = 0};
	int rc = takt_share_rules_load(path_of(daemon), &rules, &err);

	daemon->notes[NOTE][0] = '\0';
	if (rc == -ENOENT && !daemon->config.tenants_file[0])
		rc = 0;
	if (rc == 0)
		rc = takt_govern_check_rules(daemon, &rules, &err);
	if (rc == 0)
		rc = takt_queue_set_rules(daemon->queue, &rules, &err);
	if (rc < 0)
		refused(daemon, &err);
	else if (daemon->orders)
		takt_orders_tell(daemon->orders); /* reservations may name tenants */
	takt_share_rules_fini(&rules);
}

void takt_tenants_file_read(struct takt_daemon *daemon)
{
	daemon->tenants_mark = takt_file_mark_of(path_of(daemon));
	read_file(daemon);
}

void takt_tenants_file_look(struct takt_daemon *daemon, struct takt_boot now)
{
	struct takt_file_mark mark;

	if (now.ns - daemon->tenants_looked.ns < look_again_ns)
		return;
	daemon->tenants_looked = now;
	mark = takt_file_mark_of(path_of(daemon));
	if (memcmp(&mark, &daemon->tenants_mark, sizeof(mark)) != 0)
		takt_tenants_file_read(daemon);
}
