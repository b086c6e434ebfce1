/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job that end-to-end tests run: a witness of what takt does that takt cannot talk out of.
 *
 *   witness DIRECTORY MILLISECONDS|FILE [-- COMMAND...]
 *
 * It runs for that time, or until that file (an absolute path) is there: then nobody who looks at
 * it has to hurry.
 *
 * It takes a lock on a file for each of its GPUs and one for its job, without waiting: a lock that
 * is busy is a GPU handed out twice or a job that runs twice at once, whatever takt's database
 * says. The locks go to every process that it starts, so that a GPU counts as in use until the last
 * of them is gone. It appends one line when it begins, which is when it has its locks (who is
 * frozen before that has used nothing), and one when it ends to DIRECTORY/witness.log:
 *
 *   begin JOB ATTEMPT GPUS NANOSECONDS            (CLOCK_MONOTONIC; GPUS is "0,3", or "-";
 *                                                 "0,3@250": so many thousandths of each)
 *   end JOB ATTEMPT GPUS NANOSECONDS NANOSECONDS  (begin and end)
 *   busy JOB ATTEMPT NAME NANOSECONDS WHO         (the lock NAME was held by somebody: which
 * process, its state, who traces it, of which attempt it is) beside JOB ATTEMPT NAME NANOSECONDS
 * (by a process that is stopped: a frozen job's) dying JOB ATTEMPT NAME NANOSECONDS            (by
 * one that SIGKILL was sent to, which runs no more)
 *
 * Beside others it looks until it ends whether they are stopped; one that is not is "busy".
 *
 * With a command it waits for that instead of for time, and ends with its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	EXIT_WITNESS = 99,
	MOST_AWAKE = 60,     /* looks, of 5 ms at least */
	DEATH_TRIES = 10000, /* of a millisecond at least */
	STOP_TRIES = 2000,   /* likewise */
};

/* A GPU whose lock a process has that is stopped. */
struct beside {
	char name[64];
	int pid;
	int awake; /* looks in a row at which it was not stopped */
};

struct witness {
	const char *dir, *job, *attempt, *gpus;
	int logfd;
	struct beside beside[64];
	int beside_count;
};

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec;
}

static void give_up(const char *what)
{
	fprintf(stderr, "witness: %s: %s\n", what, strerror(errno));
	exit(EXIT_WITNESS);
}

static const char *need(const char *name)
{
	const char *value = getenv(name);

	if (value)
		return value;
	errno = EINVAL;
	give_up(name);
	return NULL;
}

/* One write a line: O_APPEND keeps lines of several witnesses apart. */
static void say(const struct witness *w, const char *line)
{
	size_t len = strlen(line);

	if (write(w->logfd, line, len) != (ssize_t)len)
		give_up("write the log");
}

/* Whether it is ours now, and of whatever the job starts: the descriptor is not CLOEXEC. */
static bool lock(const struct witness *w, const char *name, int how)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.lock", w->dir, name);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		give_up(path);
	if (flock(fd, how | LOCK_NB) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		give_up(path);
	close(fd);
	return false;
}

static void note(const struct witness *w, const char *what, const char *name, const char *who)
{
	char line[1024];

	snprintf(line, sizeof(line), "%s %s %s %s %llu%s%s\n", what, w->job, w->attempt, name,
		 now_ns(), who[0] ? " " : "", who);
	say(w, line);
}

/* Campaigns let calls of a job fail, too: who cannot look must not say what is there. */
static void close_read(FILE *file, const char *path)
{
	if (ferror(file) && errno != ESRCH)
		give_up(path);
	fclose(file);
}

/* NULL: there is no such process. */
static FILE *open_proc(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file && errno != ENOENT && errno != ESRCH)
		give_up(path);
	errno = 0;
	return file;
}

/*
 * The process that took a lock, as the kernel has it; 0 = nobody that is to be seen. Locks that
 * come and go between two reads of the list hide others, so it is read at once as far as the kernel
 * lets: read by stdio's kilobytes a lock was missed in one look of some thousands.
 */
static int holder_of(const struct witness *w, const char *name)
{
	static char whole[65536];
	char path[4096], line[256];
	unsigned long inode;
	struct stat st;
	int pid, found = 0;
	FILE *locks;

	snprintf(path, sizeof(path), "%s/%s.lock", w->dir, name);
	if (stat(path, &st) < 0)
		return 0;
	locks = fopen("/proc/locks", "r");
	if (!locks)
		give_up("/proc/locks");
	(void)setvbuf(locks, whole, _IOFBF, sizeof(whole));
	errno = 0;
	while (!found && fgets(line, sizeof(line), locks))
		if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%lu", &pid, &inode) == 2 &&
		    inode == st.st_ino)
			found = pid;
	close_read(locks, "/proc/locks");
	return found;
}

/* A number from its status, of that base; 0 also where it is gone. */
static unsigned long long status_of(int pid, const char *key, int base)
{
	unsigned long long number = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = open_proc(path);
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, key, strlen(key)) == 0)
			number = strtoull(line + strlen(key), NULL, base);
	if (file)
		close_read(file, path);
	return number;
}

/* A SIGKILL waits for it: on a busy machine it may take long until it is its turn to die. */
static bool is_killed(int pid)
{
	return (status_of(pid, "SigPnd:", 16) | status_of(pid, "ShdPnd:", 16)) >> (SIGKILL - 1) & 1;
}

/* Its state, as the kernel has it; 0 = it is gone, or on its way out. */
static char state_of(int pid)
{
	const unsigned exiting = 0x4; /* PF_EXITING */
	unsigned flags = 0;
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = open_proc(path);
	if (file && fscanf(file, "%*d %*s %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		state = 0;
	if (file)
		close_read(file, path);
	return (flags & exiting) || is_killed(pid) ? 0 : state;
}

/* Campaigns trace the launcher with all that it starts: what stands still there shows as traced. */
static bool is_stopped(char state)
{
	return state == 'T' || state == 't';
}

static bool is_gone(char state)
{
	return !state || state == 'Z' || state == 'X';
}

/* Into ret, up to its NUL, from that environment; "" where it is not to be read. */
static void environ_of(int pid, const char *name, char *ret, size_t size)
{
	static char all[65536];
	char path[64];
	FILE *file;
	size_t len;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = fopen(path, "r");
	if (!file)
		return;
	len = fread(all, 1, sizeof(all) - 1, file);
	fclose(file);
	all[len] = '\0';
	for (const char *at = all; at < all + len; at += strlen(at) + 1)
		if (strncmp(at, name, strlen(name)) == 0)
			snprintf(ret, size, "%s", at + strlen(name));
}

/* For whoever has to find out how it came about. */
static void blame(const struct witness *w, const char *name)
{
	int pid = holder_of(w, name);
	char who[256] = "nobody", attempt[128], state;

	if (pid) {
		state = state_of(pid);
		environ_of(pid, "TAKT_ATTEMPT=", attempt, sizeof(attempt));
		snprintf(who, sizeof(who), "pid=%d,state=%c,tracer=%llu,attempt=%s", pid,
			 state ? state : '-', status_of(pid, "TracerPid:", 10), attempt);
	}
	note(w, "busy", name, who);
}

/*
 * One that is traced may be on its way from a stop of its tracer's to that of its job: it gets to
 * no instruction of its own in between. One that runs all the time, or ends, was never stopped.
 */
static bool comes_to_a_stop(int pid)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < STOP_TRIES; i++) {
		char state = state_of(pid);

		if (is_stopped(state))
			return true;
		if (is_gone(state) || !status_of(pid, "TracerPid:", 10))
			return false;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Where nobody that runs has it, the lock comes free soon. *ret_pid: who has it; 0 = not to be
 * seen. */
static bool take_from_dying(const struct witness *w, const char *name, int how, int *ret_pid)
{
	struct timespec pause = {.tv_nsec = 1000000};

	for (int i = 0; i < DEATH_TRIES; i++) {
		*ret_pid = holder_of(w, name);
		if (*ret_pid && !is_gone(state_of(*ret_pid)))
			return false;
		if (lock(w, name, how)) {
			note(w, "dying", name, "");
			return true;
		}
		nanosleep(&pause, NULL);
	}
	return false;
}

/* `how`: LOCK_EX, or LOCK_SH for a part of it. */
static void take(struct witness *w, const char *kind, const char *number, int how)
{
	bool gpu = strcmp(kind, "gpu") == 0;
	char name[64];
	int pid = 0;

	snprintf(name, sizeof(name), "%s-%s", kind, number);
	if (lock(w, name, how) || (gpu && take_from_dying(w, name, how, &pid)))
		return;
	if (!gpu || pid == 0 || !comes_to_a_stop(pid) || w->beside_count == 64) {
		blame(w, name);
		return;
	}
	note(w, "beside", name, "");
	w->beside[w->beside_count].pid = pid;
	w->beside[w->beside_count].awake = 0;
	memcpy(w->beside[w->beside_count++].name, name, sizeof(name));
}

/* One that is killed is awake for a moment, on its way out. */
static void look_beside(struct witness *w)
{
	for (int i = w->beside_count; i-- > 0;) {
		struct beside *beside = &w->beside[i];
		char state = state_of(beside->pid);
		bool gone = is_gone(state);

		beside->awake = is_stopped(state) ? 0 : beside->awake + 1;
		if (!gone && beside->awake < MOST_AWAKE)
			continue;
		if (!gone)
			blame(w, beside->name);
		*beside = w->beside[--w->beside_count];
	}
}

/* Of a GPU that others have a part of too: as many of its 20 parts as the job was given. */
static void take_parts(struct witness *w, const char *gpu, unsigned long milli)
{
	unsigned long need = (milli + 49) / 50;
	bool ours[20] = {false};
	char name[256];
	int pid;

	take(w, "gpu", gpu, LOCK_SH);

	for (int from_dying = 0; from_dying < 2; from_dying++) {
		for (int part = 0; part < 20 && need > 0; part++) {
			snprintf(name, sizeof(name), "gpu-%s-part-%d", gpu, part);
			if (ours[part])
				continue;
			ours[part] = from_dying ? take_from_dying(w, name, LOCK_EX, &pid)
						: lock(w, name, LOCK_EX);
			need -= ours[part];
		}
	}
	snprintf(name, sizeof(name), "gpu-%s-parts", gpu);
	if (need > 0)
		blame(w, name);
}

/* Instances are devices of their own; the GPU that they are on is not anybody's whole. */
static void take_instances(struct witness *w, const char *uuids)
{
	char list[4096], *save = NULL;

	snprintf(list, sizeof(list), "%s", uuids);
	for (char *uuid = strtok_r(list, ",", &save); uuid; uuid = strtok_r(NULL, ",", &save))
		take(w, "mig", uuid, LOCK_EX);
}

static void take_gpus(struct witness *w)
{
	const char *milli = getenv("TAKT_GPU_MILLI"), *shown = getenv("CUDA_VISIBLE_DEVICES");
	bool instances = shown && strncmp(shown, "MIG-", 4) == 0;
	char list[512], *save = NULL;

	snprintf(list, sizeof(list), "%s", w->gpus);
	for (char *gpu = strtok_r(list, ",", &save); gpu; gpu = strtok_r(NULL, ",", &save))
		if (milli || instances)
			take_parts(w, gpu, milli ? strtoul(milli, NULL, 10) : 0);
		else
			take(w, "gpu", gpu, LOCK_EX);
	if (instances)
		take_instances(w, shown);
}

/* As the log has them: "-", "0,3", or of parts "0,3@250", of instances "0,3@0". */
static void show_gpus(const char *gpus, bool instances, char *ret, size_t size)
{
	const char *milli = getenv("TAKT_GPU_MILLI");

	if (instances)
		milli = "0";
	snprintf(ret, size, "%s%s%s", gpus[0] ? gpus : "-", milli ? "@" : "", milli ? milli : "");
}

/* `until`: milliseconds, or the path of a file. */
static void rest(struct witness *w, const char *until)
{
	const char *file = until[0] == '/' ? until : NULL;
	unsigned long long now = now_ns();
	unsigned long long end = file ? ULLONG_MAX : now + strtoull(until, NULL, 10) * 1000000u;

	for (; now < end && !(file && access(file, F_OK) == 0); now = now_ns()) {
		unsigned long long left = end - now;
		struct timespec t;

		if ((file || w->beside_count) && left > 5000000u)
			left = 5000000u;
		t = (struct timespec){(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
		(void)nanosleep(&t, NULL);
		look_beside(w);
	}
}

static int work(struct witness *w, const char *until, char **command)
{
	int status = 0;
	pid_t pid;

	if (!command) {
		rest(w, until);
		return 0;
	}
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (pid == 0) {
		execvp(command[0], command);
		give_up(command[0]);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct witness w = {.logfd = -1};
	char path[4096], line[1024], shown[520];
	unsigned long long begin;
	bool instances;
	int code;

	if (argc < 3 || (argc > 3 && (strcmp(argv[3], "--") != 0 || argc == 4))) {
		fprintf(stderr, "usage: witness DIRECTORY MILLISECONDS|FILE [-- COMMAND...]\n");
		return EXIT_WITNESS;
	}
	w.dir = argv[1];
	w.job = need("TAKT_JOB_ID");
	w.attempt = need("TAKT_ATTEMPT");
	w.gpus = need("CUDA_VISIBLE_DEVICES");
	instances = strncmp(w.gpus, "MIG-", 4) == 0;
	if (instances)
		w.gpus = need("TAKT_GPUS");
	show_gpus(w.gpus, instances, shown, sizeof(shown));
	snprintf(path, sizeof(path), "%s/witness.log", w.dir);
	w.logfd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (w.logfd < 0)
		give_up(path);
	take(&w, "job", w.job, LOCK_EX);
	take_gpus(&w);
	begin = now_ns();
	snprintf(line, sizeof(line), "begin %s %s %s %llu\n", w.job, w.attempt, shown, begin);
	say(&w, line);
	code = work(&w, argv[2], argc > 4 ? argv + 4 : NULL);
	snprintf(line, sizeof(line), "end %s %s %s %llu %llu\n", w.job, w.attempt, shown, begin,
		 now_ns());
	say(&w, line);
	return code;
}
