/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the system's data base and PAM, in a process that may hang, crash or be ended. */
#include "launch/user_session.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <security/pam_appl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "launch/proc_tree.h"

enum {
	REPLY_FD = 3,
	END_MS = 2000,
	END_PAUSE_MS = 2,
};

static const char service[] = "takt";

struct answer {
	struct takt_err err; /* rc 0 = the rest counts */
	struct takt_user_session session;
};

/* What a module had to complain of last. */
struct said {
	char text[100];
};

/* Modules may tell something; nobody is there to be asked. */
static int converse(int count, const struct pam_message **messages, struct pam_response **ret,
		    void *ctx)
{
	struct said *said = ctx;

	for (int i = 0; i < count; i++) {
		if (messages[i]->msg_style == PAM_TEXT_INFO)
			continue;
		if (messages[i]->msg_style != PAM_ERROR_MSG)
			return PAM_CONV_ERR;
		takt_strcpy(said->text, sizeof(said->text), messages[i]->msg);
		said->text[strcspn(said->text, "\r\n")] = '\0';
	}
	*ret = takt_calloc((size_t)count, sizeof(**ret)); /* PAM gives it back with free() */
	return *ret ? PAM_SUCCESS : PAM_BUF_ERR;
}

static int refuse(pam_handle_t *pam, int why, const struct said *said, const char *name,
		  struct takt_err *err)
{
	return takt_err_set(err, -EPERM, "user '%.32s' may start no jobs by PAM's service %s: %s",
			    name, service, said->text[0] ? said->text : pam_strerror(pam, why));
}

/* Through the door and, with his limits, out again. */
static int visit(const char *name, struct takt_user_limits *ret, struct takt_err *err)
{
	struct said said = {0};
	struct pam_conv conversation = {converse, &said};
	pam_handle_t *pam = NULL;
	int why = pam_start(service, name, &conversation, &pam), rc;

	if (why == PAM_SUCCESS)
		why = pam_set_item(pam, PAM_TTY, service);
	if (why == PAM_SUCCESS)
		why = pam_acct_mgmt(pam, 0);
	if (why == PAM_SUCCESS)
		why = pam_open_session(pam, 0);
	if (why != PAM_SUCCESS) {
		rc = refuse(pam, why, &said, name, err);
	} else {
		rc = takt_user_limits_read(ret, err);
		(void)pam_close_session(pam, 0);
	}
	(void)pam_end(pam, why);
	return rc;
}

static bool has_service(void)
{
	return access("/etc/pam.d/takt", F_OK) == 0 || access("/usr/lib/pam.d/takt", F_OK) == 0;
}

/* Files that say nothing of a limit leave it as it is: then it is to be that of a log-in. */
static int learn_limits(const struct takt_user_wish *wish, const struct passwd *user,
			struct takt_user_limits *ret, struct takt_err *err)
{
	int rc;

	takt_user_limits_default(ret);
	if (!wish->comes_in || !has_service())
		return 0;
	if (!user)
		return takt_err_set(err, -EPERM,
				    "user %u has no account here, which PAM's service %s asks for",
				    wish->uid, service);
	rc = takt_user_limits_take(ret, err);
	return rc < 0 ? rc : visit(user->pw_name, ret, err);
}

static int learn_groups(const struct takt_user_wish *wish, const struct passwd *user,
			struct takt_user_session *ret, struct takt_err *err)
{
	int count = TAKT_USER_GROUPS;

	if (!user && wish->gid < wish->min_gid)
		return takt_err_set(err, -EPERM,
				    "group %u is the system's, and no data base says that user %u "
				    "is in it",
				    wish->gid, wish->uid);
	ret->gid = wish->gid;
	if (!user) {
		ret->groups[0] = wish->gid;
		ret->group_count = 1;
		return 0;
	}
	if (getgrouplist(user->pw_name, user->pw_gid, ret->groups, &count) < 0)
		return takt_err_set(err, -E2BIG, "user %u is in more than %d groups", wish->uid,
				    TAKT_USER_GROUPS);
	ret->group_count = (uint32_t)count;
	ret->gid = user->pw_gid;
	for (int i = 0; i < count; i++)
		if (ret->groups[i] == wish->gid)
			ret->gid = wish->gid;
	return 0;
}

static int learn(const struct takt_user_wish *wish, struct takt_user_session *ret,
		 struct takt_err *err)
{
	const struct passwd *user;
	int rc;

	errno = 0;
	user = getpwuid(wish->uid);
	if (!user && errno != 0 && errno != ENOENT && errno != ESRCH)
		return takt_err_set(err, -errno, "look up user %u", wish->uid);
	rc = learn_groups(wish, user, ret, err);
	return rc < 0 ? rc : learn_limits(wish, user, &ret->limits, err);
}

/* Modules run programs of theirs, find them by a PATH, and wait for them. */
static void settle_down(pid_t parent)
{
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		(void)signal(sig, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)clearenv();
	(void)setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	if (chdir("/") < 0)
		_exit(EXIT_FAILURE);
	umask(022);
}

static _Noreturn void reply(const struct takt_user_wish *wish, int into, pid_t parent)
{
	static struct answer answer; /* a pipe has room for it */

	if (into != REPLY_FD && dup3(into, REPLY_FD, O_CLOEXEC) < 0)
		_exit(EXIT_FAILURE);
	(void)close_range(REPLY_FD + 1, ~0u, 0);
	settle_down(parent);
	if (learn(wish, &answer.session, &answer.err) == 0)
		answer.err.rc = 0;
	_exit(write(REPLY_FD, &answer, sizeof(answer)) == sizeof(answer) ? EXIT_SUCCESS
									 : EXIT_FAILURE);
}

/* 0: all of the answer; -EPIPE: the process ended without; -ETIMEDOUT. */
static int hear(int from, struct answer *ret)
{
	const struct takt_sys *sys = takt_sys_real();
	uint64_t end_ns = takt_boot_now(sys).ns + TAKT_USER_SESSION_S * TAKT_NS_PER_S;
	struct pollfd fd = {.fd = from, .events = POLLIN};
	size_t have = 0;

	while (have < sizeof(*ret)) {
		uint64_t now_ns = takt_boot_now(sys).ns;
		ssize_t got;

		if (now_ns >= end_ns)
			return -ETIMEDOUT;
		if (poll(&fd, 1, (int)((end_ns - now_ns) / TAKT_NS_PER_MS) + 1) <= 0)
			continue;
		got = read(from, (char *)ret + have, sizeof(*ret) - have);
		if (got == 0)
			return -EPIPE;
		if (got > 0)
			have += (size_t)got;
	}
	return 0;
}

/* True once it has ended; SIGKILL has been sent. One that hangs in the kernel is not waited for. */
static bool wait_for_end(pid_t pid)
{
	struct pollfd fd = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	bool ended = fd.fd >= 0 && poll(&fd, 1, END_MS) == 1;

	if (fd.fd >= 0)
		(void)close(fd.fd);
	return ended && waitpid(pid, NULL, 0) == pid;
}

static void kill_all_below(void)
{
	struct takt_proc_tree tree = TAKT_PROC_TREE_INIT;

	if (takt_proc_tree_read(&tree) == 0)
		takt_proc_tree_mark(&tree, getpid());
	TAKT_VEC_EACH (entry, &tree.procs)
		if (entry->below)
			(void)kill(entry->pid, SIGKILL);
	takt_proc_tree_fini(&tree);
}

/*
 * Nothing of it, nor of what its modules started, is left when we go on: what we become takes every
 * child for the job's, and whoever lost his parent is our child.
 */
static bool put_to_rest(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = END_PAUSE_MS * (long)TAKT_NS_PER_MS};

	(void)kill(pid, SIGKILL);
	if (!wait_for_end(pid))
		return false;
	for (int i = 0; i < END_MS / END_PAUSE_MS; i++) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (errno == ECHILD)
			return true;
		kill_all_below();
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

static int judge(const struct takt_user_wish *wish, int heard, const struct answer *answer,
		 struct takt_user_session *ret, struct takt_err *err)
{
	if (heard == -ETIMEDOUT)
		return takt_err_set(err, heard,
				    "user %u: the data base of users or PAM (service %s) has not "
				    "answered for %d s",
				    wish->uid, service, TAKT_USER_SESSION_S);
	if (heard < 0)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "user %u: asking the data base of users and PAM (service %s) "
				    "ended without an answer",
				    wish->uid, service);
	if (answer->err.rc < 0)
		return takt_err_set(err, answer->err.rc, "%s", answer->err.msg);
	*ret = answer->session;
	return 0;
}

/* "files systemd [NOTFOUND=return] sss": what is no module's name loads nothing. */
static void load_modules(char *services)
{
	char *save = NULL, name[64];

	for (char *word = strtok_r(services, " \t\n", &save); word;
	     word = strtok_r(NULL, " \t\n", &save)) {
		int len = snprintf(name, sizeof(name), "libnss_%s.so.2", word);

		if (!strchr(word, '/') && len < (int)sizeof(name))
			(void)dlopen(name, RTLD_NOW | RTLD_LOCAL); /* for good */
	}
}

void takt_user_session_prepare(void)
{
	static const char *const kinds[] = {"passwd:", "group:", "initgroups:"};
	FILE *file = fopen("/etc/nsswitch.conf", "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		for (size_t i = 0; i < TAKT_ARRAY_LEN(kinds); i++)
			if (strncmp(line, kinds[i], strlen(kinds[i])) == 0)
				load_modules(line + strlen(kinds[i]));
	if (file)
		fclose(file);
}

int takt_user_session_ask(const struct takt_user_wish *wish, struct takt_user_session *ret,
			  struct takt_err *err)
{
	static struct answer answer;
	pid_t self = getpid(), pid;
	int ends[2], heard;

	(void)signal(SIGCHLD, SIG_DFL); /* ignored, its number could be another's when we end it */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		reply(wish, ends[1], self);
	}
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return takt_err_set(err, -errno, "fork");
	}
	heard = hear(ends[0], &answer);
	(void)close(ends[0]);
	if (!put_to_rest(pid))
		heard = -ETIMEDOUT;
	return judge(wish, heard, &answer, ret, err);
}
