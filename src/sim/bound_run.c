/* SPDX-License-Identifier: Apache-2.0 */
/* takt-bound as a child process: input and output are files in memory, so nothing can block. */
#include "sim/bound_run.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "codec/json.h"
#include "sim/sha256.h"

enum {
	EXIT_NO_SOLVER = 3,
	EXIT_NOT_THERE = 127,
	WORDS = 200, /* of the program's complaint that are passed on */
	PATH_TEXT = 64,
	MAX_PROGRAM_BYTES = 16 * 1024 * 1024,
};

extern char **environ;

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A file in memory with that text, read from its start. */
static int memory_file(const char *name, const struct takt_str *text, int *ret)
{
	int fd = memfd_create(name, 0);
	size_t at = 0, len = text ? text->len : 0;

	if (fd < 0)
		return -errno;
	while (at < len) {
		ssize_t n = write(fd, text->s + at, len - at);

		if (n < 0) {
			int rc = -errno;

			close(fd);
			return rc;
		}
		at += (size_t)n;
	}
	lseek(fd, 0, SEEK_SET);
	*ret = fd;
	return 0;
}

static int read_whole(int fd, struct takt_str *text)
{
	char chunk[65536];
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
		takt_str_addn(text, chunk, (size_t)n);
		at += n;
	}
	return n < 0 ? -errno : text->rc;
}

/* Exit status of the child, or negative; killed when it takes too long. */
static int await(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0), status;
	struct pollfd ready = {.fd = pidfd, .events = POLLIN};

	if (pidfd >= 0 && poll(&ready, 1, TAKT_BOUND_SECONDS * 1000) == 0)
		kill(pid, SIGKILL);
	if (pidfd >= 0)
		close(pidfd);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ETIMEDOUT;
}

static int spawn(const char *program, const int fds[4])
{
	char cluster[PATH_TEXT];
	char *argv[] = {(char *)program, (char *)"--cluster", cluster, (char *)"--arrived",
			(char *)"-",	 (char *)"--json",    NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int rc;

	snprintf(cluster, sizeof(cluster), "/proc/self/fd/%d", fds[3]);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	rc = posix_spawn_file_actions_adddup2(&actions, fds[0], 0);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&actions, fds[2], 2);
	rc = rc ? rc : posix_spawn(&pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc ? -rc : await(pid);
}

/* The first line of what it complained about. */
static int explain(const char *program, int status, int errors, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str words = TAKT_STR(65536);
	const char *text;

	read_whole(errors, &words);
	text = takt_str_text(&words);
	if (status < 0 || status == EXIT_NOT_THERE)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "run '%s': %s", program,
				    status < 0 ? takt_err_sentence(status) : "not found");
	return takt_err_set(err, status == EXIT_NO_SOLVER ? -TAKT_E_UNAVAILABLE : -TAKT_E_CORRUPT,
			    "%.*s", (int)strcspn(text, "\n"), text[0] ? text : "it failed");
}

static int compute(const struct takt_bound_program *program, const struct takt_str *cluster_csv,
		   const struct takt_str *arrived_csv, struct takt_str *answer,
		   struct takt_err *err)
{
	int fds[4] = {-1, -1, -1, -1};
	int rc = memory_file("arrived", arrived_csv, &fds[0]);

	rc = rc < 0 ? rc : memory_file("answer", NULL, &fds[1]);
	rc = rc < 0 ? rc : memory_file("errors", NULL, &fds[2]);
	rc = rc < 0 ? rc : memory_file("cluster", cluster_csv, &fds[3]);
	if (rc < 0) {
		takt_err_set(err, rc, "make a file in memory");
	} else {
		rc = spawn(program->path, fds);
		if (rc != 0)
			rc = explain(program->path, rc, fds[2], err);
		else if (read_whole(fds[1], answer) < 0)
			rc = takt_err_set(err, -EIO, "read the answer of '%s'", program->path);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(fds); i++)
		close_fd(&fds[i]);
	return rc;
}

/* The name under which the answer is kept: program, cluster and arrivals. */
static int key_of(const struct takt_bound_program *program, const struct takt_str *cluster_csv,
		  const struct takt_str *arrived_csv, char ret[TAKT_SHA256_TEXT])
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_PROGRAM_BYTES);
	struct takt_sha256 sha;
	int fd = open(program->path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -errno : read_whole(fd, &text);

	close_fd(&fd);
	if (rc < 0)
		return rc;
	takt_sha256_init(&sha);
	takt_sha256_add(&sha, takt_str_text(&text), text.len);
	takt_sha256_add(&sha, "", 1);
	takt_sha256_add(&sha, takt_str_text(cluster_csv), cluster_csv->len);
	takt_sha256_add(&sha, "", 1);
	takt_sha256_add(&sha, takt_str_text(arrived_csv), arrived_csv->len);
	takt_sha256_text(&sha, ret);
	return 0;
}

/* Keeping is a convenience: whatever fails in it is not told. */
static bool load_kept(int dir, const char *key, struct takt_str *answer)
{
	char *text;
	size_t len;
	bool ok;

	if (dir < 0 ||
	    takt_file_read(takt_sys_real(), dir, key, TAKT_BOUND_MAX_BYTES, &text, &len, NULL) < 0)
		return false;
	ok = takt_str_addn(answer, text, len) == 0;
	takt_free(text);
	return ok;
}

static int open_cache(const char *path)
{
	if (!path || takt_mkdirs_durable(takt_sys_real(), path, 0700, NULL) < 0)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int takt_bound_run(const struct takt_bound_program *program, const struct takt_str *cluster_csv,
		   const struct takt_str *arrived_csv, struct takt_str *answer,
		   struct takt_err *err)
{
	char key[TAKT_SHA256_TEXT];
	int rc = key_of(program, cluster_csv, arrived_csv, key), dir;

	if (rc < 0)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "read '%s': %s", program->path,
				    takt_err_sentence(rc));
	dir = open_cache(program->cache);
	if (load_kept(dir, key, answer)) {
		close_fd(&dir);
		return 1;
	}
	rc = compute(program, cluster_csv, arrived_csv, answer, err);
	if (rc == 0 && dir >= 0)
		(void)takt_file_write_durable(takt_sys_real(), dir, key, takt_str_text(answer),
					      answer->len, 0600, NULL);
	close_fd(&dir);
	return rc;
}

static int bad_answer(struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_CORRUPT,
			    "the answer of the bound is not what it should be");
}

/* One entry: {"seed":"42","load_pct":100,"bound_pct":96.9}. */
static int take_entry(const cJSON *entry, unsigned long long first_seed, size_t seed_count,
		      const unsigned *loads, size_t load_count, double *bounds,
		      struct takt_err *err)
{
	const cJSON *seed = cJSON_GetObjectItemCaseSensitive(entry, "seed");
	const cJSON *load = cJSON_GetObjectItemCaseSensitive(entry, "load_pct");
	const cJSON *bound = cJSON_GetObjectItemCaseSensitive(entry, "bound_pct");
	unsigned long long number;

	if (!cJSON_IsString(seed) ||
	    takt_parse_u64(seed->valuestring, 0, UINT64_MAX, &number) < 0 ||
	    !cJSON_IsNumber(load) || !cJSON_IsNumber(bound))
		return bad_answer(err);
	for (size_t i = 0; i < load_count; i++)
		if (load->valuedouble == loads[i] && number >= first_seed &&
		    number - first_seed < seed_count)
			bounds[(number - first_seed) * load_count + i] = bound->valuedouble;
	return 0;
}

int takt_bound_read(const struct takt_str *answer, unsigned long long first_seed, size_t seed_count,
		    const unsigned *loads, size_t load_count, double *bounds, struct takt_err *err)
{
	cJSON *root = NULL;
	const cJSON *list, *entry;
	int rc = takt_json_parse(takt_str_text(answer), answer->len, TAKT_BOUND_MAX_BYTES, &root,
				 err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "answer of the bound");
	list = cJSON_GetObjectItemCaseSensitive(root, "bounds");
	rc = cJSON_IsArray(list) ? 0 : bad_answer(err);
	if (rc == 0)
		cJSON_ArrayForEach (entry, list) {
			rc = take_entry(entry, first_seed, seed_count, loads, load_count, bounds,
					err);
			if (rc < 0)
				break;
		}
	cJSON_Delete(root);
	return rc;
}
