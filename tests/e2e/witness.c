/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job that end-to-end tests run: a witness of what takt does that takt cannot talk out of.
 *
 *   witness DIRECTORY MILLISECONDS [-- COMMAND...]
 *
 * It takes a lock on a file for each of its GPUs and one for its job, without waiting: a lock that
 * is busy is a GPU handed out twice or a job that runs twice at once, whatever takt's database
 * says. The locks go to every process that it starts, so that a GPU counts as in use until the last
 * of them is gone. It appends one line when it begins and one when it ends to
 * DIRECTORY/witness.log:
 *
 *   begin JOB ATTEMPT GPUS NANOSECONDS            (CLOCK_MONOTONIC; GPUS is "0,3", or "-")
 *   end JOB ATTEMPT GPUS NANOSECONDS NANOSECONDS  (begin and end)
 *   busy JOB ATTEMPT NAME NANOSECONDS             (the lock NAME was held by somebody)
 *
 * With a command it waits for that instead of for time, and ends with its exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	EXIT_WITNESS = 99
};

struct witness {
	const char *dir, *job, *attempt, *gpus;
	int logfd;
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

static void blame(const struct witness *w, const char *name)
{
	char line[512];

	snprintf(line, sizeof(line), "busy %s %s %s %llu\n", w->job, w->attempt, name, now_ns());
	say(w, line);
}

static void take(const struct witness *w, const char *kind, const char *number)
{
	char name[256];

	snprintf(name, sizeof(name), "%s-%s", kind, number);
	if (!lock(w, name, LOCK_EX))
		blame(w, name);
}

/* Of a GPU that others have a part of too: as many of its 20 parts as the job was given. */
static void take_parts(const struct witness *w, const char *gpu, unsigned long milli)
{
	unsigned long need = (milli + 49) / 50;
	char name[256];

	snprintf(name, sizeof(name), "gpu-%s", gpu);
	if (!lock(w, name, LOCK_SH))
		blame(w, name);
	for (int part = 0; part < 20 && need > 0; part++) {
		snprintf(name, sizeof(name), "gpu-%s-part-%d", gpu, part);
		need -= lock(w, name, LOCK_EX);
	}
	snprintf(name, sizeof(name), "gpu-%s-parts", gpu);
	if (need > 0)
		blame(w, name);
}

/* Instances are devices of their own; the GPU that they are on is not anybody's whole. */
static void take_instances(const struct witness *w, const char *uuids)
{
	char list[4096], *save = NULL;

	snprintf(list, sizeof(list), "%s", uuids);
	for (char *uuid = strtok_r(list, ",", &save); uuid; uuid = strtok_r(NULL, ",", &save))
		take(w, "mig", uuid);
}

static void take_gpus(const struct witness *w)
{
	const char *milli = getenv("TAKT_GPU_MILLI"), *shown = getenv("CUDA_VISIBLE_DEVICES");
	bool instances = shown && strncmp(shown, "MIG-", 4) == 0;
	char list[512], *save = NULL;

	snprintf(list, sizeof(list), "%s", w->gpus);
	for (char *gpu = strtok_r(list, ",", &save); gpu; gpu = strtok_r(NULL, ",", &save))
		if (milli || instances)
			take_parts(w, gpu, milli ? strtoul(milli, NULL, 10) : 0);
		else
			take(w, "gpu", gpu);
	if (instances)
		take_instances(w, shown);
}

static int work(const char *ms, char **command)
{
	unsigned long long left = strtoull(ms, NULL, 10);
	struct timespec t = {(time_t)(left / 1000), (long)(left % 1000) * 1000000};
	int status = 0;
	pid_t pid;

	if (!command) {
		while (nanosleep(&t, &t) < 0 && errno == EINTR)
			;
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
	unsigned long long begin = now_ns();
	struct witness w = {.logfd = -1};
	char path[4096], line[1024];
	const char *shown;
	int code;

	if (argc < 3 || (argc > 3 && (strcmp(argv[3], "--") != 0 || argc == 4))) {
		fprintf(stderr, "usage: witness DIRECTORY MILLISECONDS [-- COMMAND...]\n");
		return EXIT_WITNESS;
	}
	w.dir = argv[1];
	w.job = need("TAKT_JOB_ID");
	w.attempt = need("TAKT_ATTEMPT");
	w.gpus = need("CUDA_VISIBLE_DEVICES");
	if (strncmp(w.gpus, "MIG-", 4) == 0)
		w.gpus = need("TAKT_GPUS");
	shown = w.gpus[0] ? w.gpus : "-";
	snprintf(path, sizeof(path), "%s/witness.log", w.dir);
	w.logfd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (w.logfd < 0)
		give_up(path);
	take(&w, "job", w.job);
	take_gpus(&w);
	snprintf(line, sizeof(line), "begin %s %s %s %llu\n", w.job, w.attempt, shown, begin);
	say(&w, line);
	code = work(argv[2], argc > 4 ? argv + 4 : NULL);
	snprintf(line, sizeof(line), "end %s %s %s %llu %llu\n", w.job, w.attempt, shown, begin,
		 now_ns());
	say(&w, line);
	return code;
}
