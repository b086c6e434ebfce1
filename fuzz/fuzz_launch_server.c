/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's loop and a daemon in hostile hands: messages of any bytes and length, with
 * descriptors that nobody asked for, and no time for answers. Nobody is started but an attempt that
 * has not run, as a user who may; nobody is signalled, for no shim is there; each sound request is
 * answered once at most; nothing stays open.
 *
 * What would fork, signal or touch cgroups is in the linker's hands (see fuzz/meson.build).
 */
#include "fuzz_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "launch/attempt.h"
#include "launch/launch_spawn.h"

enum {
	CLIENT = 4321,
	USER = 54321,
	MESSAGES = 24,
	ATTEMPTS =
		4, /* of jobs 1 to 3: one that may run, one that has ended, one that is not there */
};

enum {
	FIRST_UID = 1000, /* of those who may run jobs */
};

static char folder[] = "/tmp/takt-fuzz-launch-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct takt_launch_server_config config;
static int jobs_dirfd;
static uint8_t fates[MESSAGES]; /* of shims that are to be started */
static size_t started;
static uint64_t last_seq;

static void remove_folder(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	(void)!system(command);
}

static void make_attempt(uint64_t job)
{
	char id[TAKT_ATTEMPT_ID_MAX], mark[TAKT_ATTEMPT_ID_MAX + 16];
	char *argv[] = {(char[]){"/bin/true"}, NULL}, *env[] = {mark, NULL};
	char *cleanup[] = {(char[]){"/bin/true"}, NULL};
	struct takt_attempt_spec spec = {.job_id = job,
					 .attempt = 1,
					 .argv = argv,
					 .env = env,
					 .cwd = (char[]){"/"},
					 .cleanup = cleanup};

	(void)snprintf(id, sizeof(id), "%llu.1.nonce", (unsigned long long)job);
	(void)snprintf(mark, sizeof(mark), "TAKT_ATTEMPT=%s", id);
	memcpy(spec.id, id, sizeof(spec.id));
	fuzz_expect(takt_attempt_create(takt_sys_real(), jobs_dirfd, &spec, NULL) == 0);
}

static void prepare(void)
{
	static char jobs[sizeof(folder) + 8];

	fuzz_expect(mkdtemp(folder) != NULL);
	(void)atexit(remove_folder);
	(void)snprintf(jobs, sizeof(jobs), "%s/jobs", folder);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/door", folder);
	fuzz_expect(mkdir(jobs, 0755) == 0);
	jobs_dirfd = open(jobs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_attempt(1);
	make_attempt(2);
	fuzz_expect(takt_attempt_void(takt_sys_real(), jobs_dirfd, 2, 1, NULL) == 0);
	config = (struct takt_launch_server_config){
		.listen_fd = takt_launch_listen(address.sun_path, NULL),
		.jobs_dir = jobs,
		.shim_path = "/bin/true",
		.cgroup = "/nowhere",
		.client_uid = geteuid() == 0 ? CLIENT : geteuid(),
		.min_uid = FIRST_UID,
		.idle_ms = 1,
		.allow_weak = true,
	};
	fuzz_expect(jobs_dirfd >= 0 && config.listen_fd >= 0);
}

static bool may_run(uint32_t uid)
{
	return geteuid() == 0 ? uid >= FIRST_UID : uid == geteuid();
}

int __wrap_takt_spawn_shim(const struct takt_spawn *spawn,
			   const struct takt_launch_request *request, struct takt_proc_id *ret_shim,
			   int *ret_report, struct takt_err *err);
int __wrap_takt_spawn_shim(const struct takt_spawn *spawn,
			   const struct takt_launch_request *request, struct takt_proc_id *ret_shim,
			   int *ret_report, struct takt_err *err)
{
	struct takt_err failed = {.rc = -ENOENT, .msg = "no such program"};
	uint8_t fate = fates[started++ % MESSAGES];
	int report[2];

	fuzz_expect(may_run(request->uid) && request->job_id == 1 && request->attempt == 1);
	if (fate % 4 == 0)
		return takt_err_set(err, -EAGAIN, "no more processes");
	fuzz_expect(pipe2(report, O_CLOEXEC | O_NONBLOCK) == 0);
	if (fate % 4 == 1) /* or what somebody else writes */
		fuzz_expect(write(report[1], &failed, 1 + fate % sizeof(failed)) > 0);
	if (fate % 4 == 2)
		fuzz_expect(write(report[1], &failed, sizeof(failed)) > 0);
	close(report[1]);
	*ret_shim = (struct takt_proc_id){.pid = 1 << 30};
	*ret_report = report[0];
	return 0;
}

int __wrap_takt_spawn_cleanup(const struct takt_spawn *spawn,
			      const struct takt_launch_request *request,
			      const struct takt_attempt_spec *spec, int attempt_dirfd,
			      int *ret_report, struct takt_err *err);
int __wrap_takt_spawn_cleanup(const struct takt_spawn *spawn,
			      const struct takt_launch_request *request,
			      const struct takt_attempt_spec *spec, int attempt_dirfd,
			      int *ret_report, struct takt_err *err)
{
	fuzz_expect(may_run(request->uid) && spec->job_id == request->job_id);
	*ret_report = -1;
	return 0;
}

int __wrap_takt_attempt_survivors(const char *id, uid_t uid, const char *cgroup,
				  struct takt_proc_id *ret, int max, struct takt_err *err);
int __wrap_takt_attempt_survivors(const char *id, uid_t uid, const char *cgroup,
				  struct takt_proc_id *ret, int max, struct takt_err *err)
{
	fuzz_expect(may_run(uid) && cgroup[0] == '\0');
	return 0;
}

int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned int flags);
int __wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned int flags)
{
	abort();
}

static struct takt_launch_request any_request(struct fuzz_bytes *in)
{
	static const uint32_t uids[] = {USER, 0, CLIENT, FIRST_UID - 1, UINT32_MAX};
	struct takt_launch_request request = {.version = TAKT_LAUNCH_VERSION, .seq = ++last_seq};
	uint8_t uid;

	request.op = fuzz_u8(in) % (TAKT_LAUNCH_LOOK + 2);
	request.job_id = fuzz_u8(in) % ATTEMPTS;
	request.attempt = fuzz_u8(in) % 3;
	uid = fuzz_u8(in);
	request.uid = request.gid =
		uid % 2 ? uids[uid / 2 % (sizeof(uids) / sizeof(uids[0]))] : geteuid();
	request.signal = (int32_t)fuzz_u16(in) - 8;
	if (fuzz_u8(in) % 2)
		(void)takt_proc_identify(getpid(), &request.target, NULL);
	request.limits.staged = fuzz_u8(in) % 2;
	request.limits.gpu_count = fuzz_u16(in);
	request.limits.cap_count = fuzz_u16(in);
	return request;
}

/* With `passed` beside it, unless that is -1. */
static void send_one(int fd, const void *bytes, size_t size, int passed)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {(void *)bytes, size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *head;

	if (passed >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		head = CMSG_FIRSTHDR(&message);
		*head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS,
					 .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(head), &passed, sizeof(passed));
	}
	(void)sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* As it is, of another length, with any bytes behind the version, with any version. */
static void send_any(struct fuzz_bytes *in, int fd)
{
	struct {
		struct takt_launch_request request;
		unsigned char more[64];
	} message = {0};
	size_t size = sizeof(message.request);
	uint8_t how = fuzz_u8(in);

	message.request = any_request(in);
	if (how % 4 == 1)
		size = 1 + fuzz_u16(in) % sizeof(message);
	else if (how % 4 == 2)
		fuzz_take(in, (char *)&message.request + sizeof(uint32_t), size - sizeof(uint32_t));
	else if (how % 16 == 3)
		message.request.version = fuzz_u8(in);
	send_one(fd, &message, size, how & 0x40 ? jobs_dirfd : -1);
}

static int count_replies(int fd)
{
	struct takt_launch_reply reply;
	ssize_t got;
	int count = 0;

	while ((got = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT | MSG_TRUNC)) > 0) {
		fuzz_expect(got == (ssize_t)sizeof(reply));
		fuzz_expect(reply.version == TAKT_LAUNCH_VERSION && reply.rc <= 0);
		fuzz_expect(memchr(reply.message, '\0', sizeof(reply.message)) != NULL);
		fuzz_expect(reply.rc == 0 || reply.message[0]);
		count++;
	}
	return count;
}

static int lowest_free_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_bytes in = {data, size};
	int fd, free_before, sent = 0;

	if (!config.jobs_dir)
		prepare();
	free_before = lowest_free_descriptor();
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	fuzz_expect(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	fuzz_take(&in, fates, sizeof(fates));
	started = 0;
	for (; sent < MESSAGES && in.left > 0; sent++)
		send_any(&in, fd);
	if (data && size % 2)
		(void)shutdown(fd, SHUT_WR);
	else /* who is gone hears nothing */
		close(fd);
	fuzz_expect(takt_launch_serve(&config, NULL) == 0);
	if (data && size % 2) {
		fuzz_expect(count_replies(fd) <= sent);
		close(fd);
	}
	fuzz_expect(lowest_free_descriptor() == free_before);
	return 0;
}
