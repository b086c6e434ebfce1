/* SPDX-License-Identifier: Apache-2.0 */
/* See top_deeds.h. */
#include "top/top_deeds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "client/client.h"

static void say(struct takt_top_ui *ui, int rc, const struct takt_err *err, const char *done)
{
	ui->notice_bad = rc < 0;
	snprintf(ui->notice, sizeof(ui->notice), "%s", rc < 0 ? err->msg : done);
}

static void let_go(int *pidfd)
{
	if (*pidfd >= 0)
		close(*pidfd);
	*pidfd = -1;
}

/* Held from the question to the answer: a number that is used again cannot be meant by mistake. */
static void look_up(struct takt_top_ui *ui, const struct takt_deed *deed, int *pidfd)
{
	let_go(pidfd);
	*pidfd = takt_proc_open(&deed->proc);
	if (*pidfd >= 0)
		return;
	ui->ask.kind = TAKT_DEED_NONE;
	ui->notice_bad = true;
	snprintf(ui->notice, sizeof(ui->notice), "process %d: %s", deed->proc.pid,
		 *pidfd == -ESRCH ? "it has ended" : takt_err_sentence(*pidfd));
	*pidfd = -1;
}

static void send_signal(struct takt_top_ui *ui, const struct takt_deed *deed, int *pidfd)
{
	struct takt_err err = {0};
	char done[80];
	int rc = 0;

	if (syscall(SYS_pidfd_send_signal, *pidfd, deed->signal, NULL, 0) < 0)
		rc = takt_err_set(&err, -errno, "process %d: %s", deed->proc.pid,
				  errno == ESRCH ? "it has ended" : strerror(errno));
	snprintf(done, sizeof(done), "signal %d is sent to process %d", deed->signal,
		 deed->proc.pid);
	say(ui, rc, &err, done);
	let_go(pidfd);
}

static int ask_daemon(const struct takt_deed *deed, const char *socket, struct takt_err *err)
{
	bool requeue = deed->kind == TAKT_DEED_REQUEUE;
	const struct takt_job_change change = {
		.has_held = !requeue, .held = deed->hold, .requeue = requeue};
	struct takt_job_view *job = takt_alloc(sizeof(*job));
	struct takt_client *client = NULL;
	int rc = job ? takt_client_connect(socket, &client, err)
		     : takt_err_set(err, -ENOMEM, "no memory for the answer");

	if (rc == 0 && deed->kind == TAKT_DEED_CANCEL)
		rc = takt_client_cancel(client, deed->job_id, job, err);
	else if (rc == 0)
		rc = takt_client_change(client, deed->job_id, &change, job, err);
	takt_client_free(client);
	takt_free(job);
	return rc;
}

static void change_job(struct takt_top_ui *ui, const struct takt_deed *deed, const char *socket)
{
	const char *what = deed->kind == TAKT_DEED_CANCEL    ? "is being cancelled"
			   : deed->kind == TAKT_DEED_REQUEUE ? "is being ended, and begins anew"
			   : deed->hold			     ? "is held"
							     : "is released";
	struct takt_err err = {0};
	int rc = ask_daemon(deed, socket, &err);
	char done[80];

	snprintf(done, sizeof(done), "job %" PRIu64 " %s", deed->job_id, what);
	say(ui, rc, &err, done);
}

void takt_top_do(struct takt_top_ui *ui, const struct takt_deed *deed, const char *socket,
		 int *pidfd)
{
	switch (deed->kind) {
	case TAKT_DEED_LOOK_UP:
		look_up(ui, deed, pidfd);
		break;
	case TAKT_DEED_DROP:
		let_go(pidfd);
		break;
	case TAKT_DEED_SIGNAL:
		send_signal(ui, deed, pidfd);
		break;
	case TAKT_DEED_CANCEL:
	case TAKT_DEED_HOLD:
	case TAKT_DEED_REQUEUE:
		change_job(ui, deed, socket);
		break;
	default:
		break;
	}
}

static bool may_signal(struct takt_top_ui *ui, int32_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (ui->allow_foreign || (stat(path, &st) == 0 && st.st_uid == ui->own_uid))
		return true;
	ui->notice_bad = true;
	snprintf(ui->notice, sizeof(ui->notice),
		 "process %d is somebody else's: only with --allow-foreign", pid);
	return false;
}

void takt_top_do_told(struct takt_top_ui *ui, const struct takt_deed *deed, const char *socket)
{
	int pidfd = -1;

	ui->notice_bad = false;
	if (deed->kind == TAKT_DEED_SIGNAL) {
		look_up(ui, deed, &pidfd);
		if (pidfd < 0 || !may_signal(ui, deed->proc.pid)) {
			let_go(&pidfd);
			return;
		}
	}
	takt_top_do(ui, deed, socket, &pidfd);
}
