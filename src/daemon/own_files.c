/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database, the socket and the journal of clocks that takt has open are the ones on disk, or no
 * job is accepted. Who tidies up a folder, or restores an old copy of it, under a running daemon
 * would else find nothing of what was promised meanwhile. The socket is made anew.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "net/listen.h"

enum {
	NOTE = 6
};

static const uint64_t look_ns = 2 * TAKT_NS_PER_S;
static const char what_follows[] = "; no job is accepted meanwhile";

struct file_id {
	dev_t device;
	ino_t inode; /* 0 = no such file */
};

struct takt_own_files {
	struct file_id socket; /* that is open */
	struct takt_boot looked;
};

static struct file_id id_of(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return (struct file_id){.inode = 0};
	return (struct file_id){st.st_dev, st.st_ino};
}

static bool same(struct file_id a, struct file_id b)
{
	return a.inode == b.inode && a.device == b.device;
}

int takt_own_files_new(struct takt_daemon *daemon, struct takt_err *err)
{
	daemon->own_files = takt_zalloc(sizeof(*daemon->own_files));
	if (!daemon->own_files)
		return takt_err_set(err, -ENOMEM, "start");
	daemon->own_files->socket = id_of(daemon->config.socket);
	return 0;
}

void takt_own_files_free(struct takt_own_files *files)
{
	takt_free(files);
}

int takt_daemon_listen(const struct takt_daemon *daemon, int *ret_fd, struct takt_err *err)
{
	return takt_net_listen_unix(daemon->config.socket, daemon->single_user ? 0600 : 0666,
				    ret_fd, err);
}

/* Nobody else has this path by right: takt holds its database, and its path was free then. */
static int make_socket(struct takt_daemon *daemon, struct takt_err *err)
{
	int fd = -1, rc = takt_daemon_listen(daemon, &fd, err);

	if (rc == 0)
		rc = takt_server_move(daemon->server, fd, err);
	if (rc < 0) {
		if (fd >= 0)
			close(fd);
		return takt_err_wrap(err, -TAKT_E_MOVED,
				     "takt's socket is gone and cannot be made anew");
	}
	daemon->own_files->socket = id_of(daemon->config.socket);
	takt_log(TAKT_LOG_WARNING, "'%s' was not takt's socket any more and was made anew",
		 daemon->config.socket);
	return 0;
}

static int look_at_socket(struct takt_daemon *daemon, struct takt_err *err)
{
	if (same(id_of(daemon->config.socket), daemon->own_files->socket))
		return 0;
	return make_socket(daemon, err);
}

/* What the actuator has open it says itself; while none answers nothing is known. */
static int look_at_journal(struct takt_daemon *daemon, struct takt_err *err)
{
	char path[PATH_MAX];
	uint64_t device, inode;
	struct file_id now;

	if (!takt_leases_journal(daemon->leases, &device, &inode) ||
	    snprintf(path, sizeof(path), "%s/clocks.journal", daemon->config.clocks_dir) >=
		    PATH_MAX)
		return 0;
	now = id_of(path);
	if (now.inode == inode && now.device == device)
		return 0;
	return takt_err_set(err, -TAKT_E_MOVED,
			    "'%.100s' is not the file that takt-actuate has open: put it back, or "
			    "end takt-actuate, which then starts with what is there",
			    path);
}

/* The same trouble is said once. */
static void say(struct takt_daemon *daemon, const struct takt_err *err)
{
	char text[sizeof(daemon->notes[0])] = "";

	if (err)
		snprintf(text, sizeof(text), "%s%s", err->msg, what_follows);
	if (strcmp(text, daemon->notes[NOTE]) == 0)
		return;
	if (err)
		takt_log(TAKT_LOG_WARNING, "%s", text);
	else
		takt_log(TAKT_LOG_NOTICE, "takt's files are where they belong again");
	takt_strcpy(daemon->notes[NOTE], sizeof(daemon->notes[NOTE]), text);
}

int takt_own_files_look(struct takt_daemon *daemon, struct takt_err *err)
{
	struct takt_err first = {0};
	int rc = look_at_socket(daemon, &first);

	if (rc == 0)
		rc = takt_store_look(daemon->store, &first);
	if (rc == 0)
		rc = look_at_journal(daemon, &first);
	say(daemon, rc < 0 ? &first : NULL);
	daemon->own_files->looked = takt_boot_now(daemon->sys);
	return rc < 0 ? takt_err_set(err, -TAKT_E_MOVED, "no job is accepted: %s", first.msg) : 0;
}

void takt_own_files_tick(struct takt_daemon *daemon, struct takt_boot now)
{
	if (now.ns - daemon->own_files->looked.ns >= look_ns)
		(void)takt_own_files_look(daemon, NULL);
}

void takt_own_files_update_page(struct takt_daemon *daemon)
{
	takt_telemetry_gauge(daemon->telemetry, "takt_files_moved",
			     "1 while a file that takt has open is not the one on disk.", false,
			     daemon->notes[NOTE][0] != 0);
}
