/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile daemon: the account that takt's daemon has, in somebody else's hands, against root's
 * launcher. It may write into the directory of attempts, and ask what it likes.
 *
 *   takt-hostile-daemon SOCKET JOBS SECRET ROOTS-PID [SEED]
 *
 * SECRET is a file that only root may read, ROOTS-PID a process of root's that is nobody's shim.
 * One line each: "held NAME: why", "DONE NAME" where the launcher did as it was told. What came of
 * it is for whoever looks from outside.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/rng.h"
#include "launch/attempt.h"
#include "launch/launch.h"

enum {
	USER = 54321, /* no user of the system's: such are refused before anything is looked at */
	SYSTEM = 77,
	RANDOM_MESSAGES = 3000,
	ANSWERS_WITHIN_MS = 60000,
};

static const char *door, *jobs, *secret;
static int jobs_dirfd;
static uint64_t next_job = 1;

static int connect_raw(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", door);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		perror("connect");
		exit(1);
	}
	return fd;
}

/* The answer, or an rc of its own: -EPIPE when it hung up, -ETIMEDOUT. */
static struct takt_launch_reply ask(struct takt_launch_request request)
{
	struct takt_launch_reply reply = {.rc = -EPIPE};
	int fd = connect_raw();
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	request.version = TAKT_LAUNCH_VERSION;
	if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) == (ssize_t)sizeof(request)) {
		if (poll(&poll_fd, 1, ANSWERS_WITHIN_MS) == 0)
			reply.rc = -ETIMEDOUT;
		else if (recv(fd, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply))
			reply = (struct takt_launch_reply){.rc = -EPIPE};
	}
	close(fd);
	return reply;
}

static void tell(int rc, const char *name, const char *why)
{
	if (rc < 0)
		printf("held %s: %d %s\n", name, rc, why);
	else
		printf("DONE %s\n", name);
	fflush(stdout);
}

static void attack(const char *name, struct takt_launch_request request)
{
	struct takt_launch_reply reply = ask(request);

	tell(reply.rc, name, reply.message);
}

static void make_attempt(uint64_t job)
{
	char *argv[] = {(char[]){"/bin/true"}, NULL}, id[TAKT_ATTEMPT_ID_MAX],
	     mark[TAKT_ATTEMPT_ID_MAX + 16];
	char *env[] = {mark, NULL};
	struct takt_attempt_spec spec = {.job_id = job,
					 .attempt = 1,
					 .argv = argv,
					 .env = env,
					 .cwd = (char[]){"/"},
					 .grace_ms = 100};
	struct takt_err err;

	snprintf(id, sizeof(id), "%llu.1.nonce", (unsigned long long)job);
	snprintf(mark, sizeof(mark), "TAKT_ATTEMPT=%s", id);
	memcpy(spec.id, id, sizeof(spec.id));
	if (takt_attempt_create(takt_sys_real(), jobs_dirfd, &spec, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
}

static struct takt_launch_request start_of(uint64_t job, uint32_t uid, uint32_t gid)
{
	return (struct takt_launch_request){.op = TAKT_LAUNCH_START,
					    .job_id = job,
					    .attempt = 1,
					    .uid = uid,
					    .gid = gid,
					    .limits = {.any_device = true}};
}

static void attack_users(void)
{
	static const struct {
		const char *name;
		uint32_t uid, gid;
	} users[] = {{"start a job as root", 0, 0},
		     {"start a job as root with a user's group", 0, USER},
		     {"start a job as a user of the system's", SYSTEM, SYSTEM},
		     {"start a job as no user at all", UINT32_MAX, UINT32_MAX},
		     {"start a job as a user below the first", 999, 999},
		     {"start a job of somebody unknown with root's group", USER, 0}};

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		make_attempt(next_job);
		attack(users[i].name, start_of(next_job++, users[i].uid, users[i].gid));
	}
}

static void put(const char *what, uint64_t job, const char *name)
{
	char path[4096], other[4096];

	snprintf(path, sizeof(path), "%s/%llu.1/%s", jobs, (unsigned long long)job, name);
	snprintf(other, sizeof(other), "%s/twin-%llu-%s", jobs, (unsigned long long)job, name);
	if (strcmp(what, "second name") == 0) {
		if (link(path, other) < 0)
			perror(path);
		return;
	}
	unlink(path);
	if ((strcmp(what, "link") == 0 && symlink(secret, path) < 0) ||
	    (strcmp(what, "FIFO") == 0 && mkfifo(path, 0666) < 0) ||
	    (strcmp(what, "folder") == 0 && mkdir(path, 0777) < 0))
		perror(path);
}

static void attack_files(void)
{
	static const char *const whats[] = {"link", "FIFO", "folder", "second name"};
	static const char *const files[] = {"lock", "spec"};
	static const char *const later[] = {"log",	"shim",	       "shim.new", "isolation.new",
					    "started",	"started.tmp", "exit.tmp", "exit",
					    "progress", "tty"};
	char name[100];

	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 2; j++) {
			make_attempt(next_job);
			put(whats[i], next_job, files[j]);
			snprintf(name, sizeof(name), "start a job whose %s is a %s", files[j],
				 whats[i]);
			attack(name, start_of(next_job++, USER, USER));
		}
	for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++) {
		make_attempt(next_job);
		put("link", next_job, later[i]);
		snprintf(name, sizeof(name), "plant a link as %s", later[i]);
		(void)ask(start_of(next_job++, USER, USER)); /* it may run: not by the link */
		printf("held %s: see the secret\n", name);
	}
	make_attempt(next_job); /* what is refused above is refused for what is put there */
	printf("without all that it answers %d\n", ask(start_of(next_job++, USER, USER)).rc);
}

static void attack_directories(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%llu.1", jobs, (unsigned long long)next_job);
	if (symlink("/etc", path) < 0)
		perror(path);
	attack("start a job whose directory is a link to /etc", start_of(next_job, USER, USER));
	attack("reap a job whose directory is a link to /etc",
	       (struct takt_launch_request){
		       .op = TAKT_LAUNCH_REAP, .job_id = next_job++, .attempt = 1, .uid = USER});
	attack("start a job that is not there", start_of(next_job, USER, USER));
	attack("reap a job that is not there",
	       (struct takt_launch_request){
		       .op = TAKT_LAUNCH_REAP, .job_id = next_job++, .attempt = 1, .uid = USER});
	attack("start the numbers of no job", start_of(UINT64_MAX, USER, USER));
}

static void attack_processes(int32_t roots)
{
	const struct {
		const char *name;
		uint32_t op;
		int32_t signal;
	} asks[] = {{"stop", TAKT_LAUNCH_STOP, 0},
		    {"wake up", TAKT_LAUNCH_LOOK, 0},
		    {"ask for the environment of", TAKT_LAUNCH_WHOSE, 0},
		    {"send SIGKILL to", TAKT_LAUNCH_SIGNAL, SIGKILL},
		    {"send SIGTERM to", TAKT_LAUNCH_SIGNAL, SIGTERM},
		    {"send no signal to", TAKT_LAUNCH_SIGNAL, 0},
		    {"send a signal below all to", TAKT_LAUNCH_SIGNAL, -1},
		    {"send a signal above all to", TAKT_LAUNCH_SIGNAL, SIGRTMAX + 1},
		    {"say idle to", TAKT_LAUNCH_SIGNAL, TAKT_SHIM_NOTICE_IDLE + 5}};
	static const uint32_t uids[] = {USER, 0, SYSTEM};
	char name[100];

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
		for (size_t j = 0; j < 3; j++) {
			struct takt_launch_request request = {.op = asks[i].op,
							      .job_id = 1,
							      .attempt = 1,
							      .uid = uids[j],
							      .signal = asks[i].signal,
							      .limits.staged = true};

			if (takt_proc_identify(roots, &request.target, NULL) < 0)
				exit(1);
			snprintf(name, sizeof(name), "%s a process of root's as user %u",
				 asks[i].name, uids[j]);
			attack(name, request);
		}
	attack("stop the machine's first process",
	       (struct takt_launch_request){
		       .op = TAKT_LAUNCH_STOP, .uid = USER, .target = {.pid = 1}});
	attack("stop a process without a number",
	       (struct takt_launch_request){.op = TAKT_LAUNCH_STOP, .uid = USER});
	attack("stop a group of processes",
	       (struct takt_launch_request){
		       .op = TAKT_LAUNCH_STOP, .uid = USER, .target = {.pid = -roots}});
}

/* True when it hung up, as it should, and goes on serving others. */
static void attack_message(const char *name, const void *bytes, size_t len)
{
	int fd = connect_raw();
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct takt_launch_reply reply;
	ssize_t got = -1;

	if (send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len &&
	    poll(&poll_fd, 1, ANSWERS_WITHIN_MS) > 0)
		got = recv(fd, &reply, sizeof(reply), 0);
	close(fd);
	tell(got > 0 && reply.rc >= 0 ? 0 : -1, name, "refused");
}

static void attack_messages(void)
{
	struct takt_launch_request request = {.version = TAKT_LAUNCH_VERSION, .op = 0};
	static char large[65536];

	attack_message("be served for one byte", "x", 1);
	attack_message("be served for a message that is cut", &request, sizeof(request) - 1);
	attack_message("be served for a message that is too long", large, sizeof(large));
	request.op = TAKT_LAUNCH_HELLO;
	memcpy(large, &request, sizeof(request));
	attack_message("be served for a message with more behind it", large, sizeof(request) + 1);
	request.op = 0;
	attack_message("be served for operation 0", &request, sizeof(request));
	request.op = UINT32_MAX;
	attack_message("be served for the last operation", &request, sizeof(request));
	request.op = TAKT_LAUNCH_HELLO;
	request.version = TAKT_LAUNCH_VERSION + 1;
	attack_message("be served in another version", &request, sizeof(request));
}

/* All fields at random, but for the version; targets are processes that are not there, lest a
 * process of the machine's that is no part of this be meant. */
static void send_at_random(uint64_t seed)
{
	struct takt_rng rng;
	struct takt_launch_request request;
	struct takt_launch_reply reply;
	int fd = connect_raw();

	takt_rng_init(&rng, seed);
	for (int i = 0; i < RANDOM_MESSAGES; i++) {
		unsigned char *bytes = (unsigned char *)&request;
		size_t len = sizeof(request);

		for (size_t at = 0; at < sizeof(request); at++)
			bytes[at] = (unsigned char)takt_rng_next(&rng);
		request.version = TAKT_LAUNCH_VERSION;
		request.op %= 8;
		request.target.pid |= 1 << 30;
		if (takt_rng_next(&rng) % 8 == 0)
			len = takt_rng_next(&rng) % sizeof(request);
		if (takt_rng_next(&rng) % 2)
			request.uid = USER;
		if (send(fd, &request, len, MSG_NOSIGNAL) < 0 ||
		    recv(fd, &reply, sizeof(reply), 0) <= 0) {
			close(fd);
			fd = connect_raw();
		}
	}
	close(fd);
}

/* A client that reads no answer is given no further ones, and is no hindrance to the next. */
static void flood(void)
{
	struct takt_launch_request request = {.version = TAKT_LAUNCH_VERSION,
					      .op = TAKT_LAUNCH_HELLO};
	int fd = connect_raw();

	while (send(fd, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		;
	close(fd);
}

int main(int argc, char **argv)
{
	struct takt_launch_reply reply;

	if (argc < 5)
		return 2;
	door = argv[1];
	jobs = argv[2];
	secret = argv[3];
	jobs_dirfd = open(jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	attack_users();
	attack_files();
	attack_directories();
	attack_processes(atoi(argv[4]));
	attack_messages();
	flood();
	send_at_random(argc > 5 ? strtoull(argv[5], NULL, 10) : 1);
	reply = ask((struct takt_launch_request){.op = TAKT_LAUNCH_HELLO});
	printf("at the end it answers %d\n", reply.rc);
	return 0;
}
