/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for one of takt's helper programs and becomes it at once: named DIRECTORY/takt-shim it
 * executes DIRECTORY/real/takt-shim with the same arguments. When the file DIRECTORY/arm.takt-shim
 * exists, exactly one process takes it away and goes on with TAKT_CRASH_AT set to what it holds. So
 * a test kills one process of a kind at a named place while the others live. When it holds "inject
 * CALL WHAT", strace makes calls of that process fail ("inject openat error=EMFILE:when=3") and
 * writes what it did to DIRECTORY/injected.takt-shim.
 *
 * Whether it really died there only its parent could tell, and that is takt. So a tracer of its own
 * waits for the armed process and writes the signal that it died of, or 0, into
 * DIRECTORY/died.takt-shim.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MAX_POINT = 96,
	MAX_WORDS = 64,
};

/* Who renames it has it: the kernel lets only one. */
static int take_arms(const char *dir, const char *name, char point[MAX_POINT])
{
	char from[PATH_MAX], to[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(from, sizeof(from), "%s/arm.%s", dir, name);
	snprintf(to, sizeof(to), "%s/taken.%s", dir, name);
	if (rename(from, to) < 0)
		return 0;
	fd = open(to, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, point, MAX_POINT - 1);
	if (fd >= 0)
		close(fd);
	return n > 0;
}

/* Lets every signal through until the process is gone; how it went. */
static int see_through(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status)) {
		long sig = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);

		if (ptrace(PTRACE_CONT, pid, NULL, sig) < 0 && errno != ESRCH)
			return -1;
	}
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int report(const char *dir, const char *name, int sig)
{
	char path[PATH_MAX], whole[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/died.%s.new", dir, name);
	snprintf(whole, sizeof(whole), "%s/died.%s", dir, name);
	file = fopen(path, "we");
	if (!file)
		return -1;
	fprintf(file, "%d\n", sig);
	return fclose(file) == 0 ? rename(path, whole) : -1;
}

/* Keeps nothing of what it inherited: an open end of a pipe would speak for a dead process. */
static void trace(pid_t pid, int ready, const char *dir, const char *name)
{
	int ok = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;

	if (write(ready, ok ? "y" : "n", 1) != 1 || !ok)
		_exit(1);
	setsid();
	(void)close_range(0, ~0u, 0);
	_exit(report(dir, name, see_through(pid)) < 0);
}

/* The tracer is nobody's child, so that nobody waits for it. */
static void start_tracer(const char *dir, const char *name)
{
	pid_t self = getpid(), child;
	int ready[2];
	char word = 'n';

	if (pipe2(ready, O_CLOEXEC) < 0)
		_exit(126);
	(void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	child = fork();
	if (child == 0) {
		if (fork() == 0)
			trace(self, ready[1], dir, name);
		_exit(0);
	}
	close(ready[1]);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (read(ready[0], &word, 1) != 1 || word != 'y')
		_exit(126);
	close(ready[0]);
}

/* strace's own process is out of the way (-DDD): ours becomes the program. */
static void run_injected(char **argv, int argc, const char *dir, const char *name, const char *real,
			 const char *what)
{
	char call[MAX_POINT], how[MAX_POINT], trace[2 * MAX_POINT], inject[3 * MAX_POINT],
		log[PATH_MAX];
	const char *words[MAX_WORDS] = {"strace", "-DDD", "-f",	 "-q", "--seccomp-bpf", "-o",
					log,	  "-e",	  trace, "-e", inject,		real};
	size_t n = 12;

	if (sscanf(what, "%95s %95s", call, how) != 2 || n + (size_t)argc > MAX_WORDS)
		_exit(126);
	snprintf(log, sizeof(log), "%s/injected.%s", dir, name);
	snprintf(trace, sizeof(trace), "trace=%s", call);
	snprintf(inject, sizeof(inject), "inject=%s:%s", call, how);
	for (int i = 1; i < argc; i++)
		words[n++] = argv[i];
	execvp(words[0], (char *const *)words);
	_exit(126);
}

int main(int argc, char **argv)
{
	static const char inject[] = "inject ";
	char self[PATH_MAX / 2] = "", real[PATH_MAX], point[MAX_POINT] = "", *name;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	name = n > 0 ? strrchr(self, '/') : NULL;
	if (!name)
		return 127;
	*name++ = '\0';
	unsetenv("TAKT_CRASH_AT");
	snprintf(real, sizeof(real), "%s/real/%s", self, name);
	if (take_arms(self, name, point)) {
		if (strncmp(point, inject, strlen(inject)) == 0)
			run_injected(argv, argc, self, name, real, point + strlen(inject));
		start_tracer(self, name);
		setenv("TAKT_CRASH_AT", point, 1);
	}
	execv(real, argv);
	fprintf(stderr, "armed: %s: %s\n", real, strerror(errno));
	return 127;
}
