/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines of podman, docker and apptainer. */
#include "engine/local/container.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "engine/local/jobenv.h"

enum {
	MAX_WORDS = 16384,
	MAX_WORD = 256 * 1024,
};

struct words {
	TAKT_VEC(char *) at; /* strings owned */
	int rc;		     /* sticky */
};

/* A variable of the host's, not the job's. A name that ends in '_' stands for all that begin so. */
static const char *const of_the_host[] = {
	"PATH",
	"HOME",
	"SHELL",
	"PWD",
	"OLDPWD",
	"SHLVL",
	"_",
	"TMPDIR",
	"HOSTNAME",
	"LOGNAME",
	"USER",
	"MAIL",
	"DISPLAY",
	"SSH_",
	"XDG_",
	"DBUS_",
	"LD_",
	"DOCKER_",
	"CONTAINER",
	"CONTAINERS_",
	"TAKT_SOCKET",
	"INVOCATION_ID",
	"JOURNAL_STREAM",
};

/* Of takt's own that the shim adds to each rank. */
static const char *const of_ranks[] = {
	"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};

const char *takt_container_first(void)
{
	static const char *const runtimes[] = {"podman", "docker", "apptainer"};
	static const char *const dirs[] = {"/usr/local/bin", "/usr/bin", "/bin"};
	char path[64];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(runtimes); i++)
		for (size_t d = 0; d < TAKT_ARRAY_LEN(dirs); d++) {
			snprintf(path, sizeof(path), "%s/%s", dirs[d], runtimes[i]);
			if (access(path, X_OK) == 0)
				return runtimes[i];
		}
	return NULL;
}

static bool is(const struct takt_container *in, const char *runtime)
{
	return strcmp(in->runtime, runtime) == 0;
}

static void add_owned(struct words *words, char *word)
{
	if (!word && words->rc == 0)
		words->rc = -ENOMEM;
	if (words->rc == 0)
		words->rc = takt_vec_push(&words->at, word);
	if (words->rc < 0)
		takt_free(word);
}

static void add(struct words *words, const char *word)
{
	add_owned(words, takt_strdup(word));
}

static void TAKT_PRINTF(2, 3) addf(struct words *words, const char *fmt, ...)
{
	va_list ap, again;
	char *word;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	word = len < 0 ? NULL : takt_alloc((size_t)len + 1);
	if (word)
		vsnprintf(word, (size_t)len + 1, fmt, again);
	va_end(again);
	va_end(ap);
	add_owned(words, word);
}

static void add_all(struct words *words, char *const *more)
{
	for (; more && *more; more++)
		add(words, *more);
}

/* NULL-terminated, to the caller; or what failed. */
static int take(struct words *words, char ***ret, struct takt_err *err)
{
	if (words->rc == 0)
		words->rc = takt_vec_push(&words->at, NULL);
	if (words->rc == 0) {
		*ret = words->at.at;
		return 0;
	}
	TAKT_VEC_EACH (word, &words->at)
		takt_free(*word);
	takt_vec_fini(&words->at);
	return takt_err_set(err, words->rc, "command line of a container");
}

static bool stays_outside(const char *entry)
{
	size_t len = strcspn(entry, "=");

	for (size_t i = 0; i < TAKT_ARRAY_LEN(of_the_host); i++) {
		size_t known = strlen(of_the_host[i]);
		bool prefix = known > 1 && of_the_host[i][known - 1] == '_';

		if ((prefix ? len >= known : len == known) &&
		    strncmp(entry, of_the_host[i], known) == 0)
			return true;
	}
	return false;
}

static void add_names(struct words *words, const struct takt_container *in, char *const *env)
{
	for (; *env; env++)
		if (!stays_outside(*env))
			addf(words, "--env=%.*s", (int)strcspn(*env, "="), *env);
	for (size_t i = 0; in->ranks && i < TAKT_ARRAY_LEN(of_ranks); i++)
		addf(words, "--env=%s", of_ranks[i]);
}

/* docker parses the value as a line of CSV: the quotes keep the list together. */
static void add_docker_gpus(struct words *words, const struct takt_container *in)
{
	struct takt_str list = TAKT_STR(MAX_WORD);

	for (size_t i = 0; i < in->gpu_count; i++)
		(void)takt_str_addf(&list, "%s%s", i ? "," : "", in->gpus[i]);
	if (in->gpu_count > 0) {
		add(words, "--gpus");
		addf(words, "\"device=%s\"", takt_str_text(&list));
	}
	if (list.rc < 0 && words->rc == 0)
		words->rc = list.rc;
	takt_str_fini(&list);
}

static void add_podman(struct words *words, const struct takt_container *in)
{
	add(words, "--cgroups=disabled"); /* it stays in the job's */
	if (in->uid != 0)
		add(words, "--userns=keep-id");
	for (size_t i = 0; i < in->gpu_count; i++) {
		add(words, "--device");
		addf(words, "nvidia.com/gpu=%s", in->gpus[i]);
	}
}

static void add_mount(struct words *words, const char *path)
{
	addf(words, "--mount=type=bind,source=%s,target=%s", path, path);
}

static void add_oci(struct words *words, const struct takt_container *in, char *const *env)
{
	add(words, in->runtime);
	add(words, "run");
	add(words, "--rm");
	if (!in->ranks)
		addf(words, "--name=takt-%s", in->attempt_id);
	addf(words, "--label=takt.attempt=%s", in->attempt_id);
	addf(words, "--label=takt.job=%" PRIu64, in->job_id);
	if (in->pty)
		add(words, "--interactive");
	if (in->pty)
		add(words, "--tty");
	add(words, "--network=host");
	add(words, "--ipc=host");
	addf(words, "--user=%" PRIu32 ":%" PRIu32, in->uid, in->gid);
	add_mount(words, in->cwd);
	if (in->progress)
		add_mount(words, in->progress);
	addf(words, "--workdir=%s", in->cwd);
	if (is(in, "podman"))
		add_podman(words, in);
	else
		add_docker_gpus(words, in);
	add_names(words, in, env);
}

static void add_apptainer(struct words *words, const struct takt_container *in)
{
	add(words, "apptainer");
	add(words, "exec");
	if (in->gpu_count > 0)
		add(words, "--nv");
	addf(words, "--bind=%s", in->cwd);
	if (in->progress)
		addf(words, "--bind=%s", in->progress);
	addf(words, "--pwd=%s", in->cwd);
}

bool takt_container_mounts(const char *runtime, const char *path)
{
	return !strpbrk(path, strcmp(runtime, "apptainer") == 0 ? ",:" : ",\"\n");
}

int takt_container_argv(const struct takt_container *in, char *const *env, char ***ret_argv,
			struct takt_err *err)
{
	struct words words = {.at = TAKT_VEC_INIT(MAX_WORDS)};

	if (!takt_container_mounts(in->runtime, in->cwd))
		return takt_err_set(err, -EINVAL,
				    "%s cannot mount the directory '%.200s' for the characters in "
				    "its name",
				    in->runtime, in->cwd);
	if (is(in, "apptainer"))
		add_apptainer(&words, in);
	else
		add_oci(&words, in, env);
	add_all(&words, in->args);
	add(&words, in->image);
	add_all(&words, in->argv);
	return take(&words, ret_argv, err);
}

static int set_env(char ***env, const char *name, const char *value)
{
	size_t len = strlen(name), n = 0;
	struct takt_str text = TAKT_STR(MAX_WORD);
	char *entry, **grown;

	(void)takt_str_addf(&text, "%s=%s", name, value);
	entry = takt_str_take(&text);
	takt_str_fini(&text);
	if (!entry)
		return -ENOMEM;
	for (; (*env)[n]; n++)
		if (strncmp((*env)[n], name, len) == 0 && (*env)[n][len] == '=') {
			takt_free((*env)[n]);
			(*env)[n] = entry;
			return 0;
		}
	grown = takt_reallocarray(*env, n + 2, sizeof(*grown));
	if (!grown) {
		takt_free(entry);
		return -ENOMEM;
	}
	grown[n] = entry;
	grown[n + 1] = NULL;
	*env = grown;
	return 0;
}

int takt_container_env(const struct takt_container *in, char ***env, struct takt_err *err)
{
	struct takt_str list = TAKT_STR(4096);
	int rc = 0;

	if (is(in, "apptainer"))
		return 0;
	for (size_t i = 0; i < in->gpu_count; i++)
		(void)takt_str_addf(&list, "%s%zu", i ? "," : "", i);
	if (list.rc < 0)
		rc = list.rc;
	else if (in->gpu_count > 0)
		rc = set_env(env, "CUDA_VISIBLE_DEVICES", takt_str_text(&list));
	else /* an image may ask for all of them */
		rc = set_env(env, "NVIDIA_VISIBLE_DEVICES", "void");
	takt_str_fini(&list);
	return rc < 0 ? takt_err_set(err, rc, "environment of a container") : 0;
}

int takt_container_cleanup(const struct takt_container *in, char ***ret, struct takt_err *err)
{
	static const char script[] =
		"command -v \"$0\" >/dev/null || exit 0\n"
		"ids=$(\"$0\" ps --all --quiet --filter \"label=takt.attempt=$1\") || exit 1\n"
		"[ -z \"$ids\" ] || \"$0\" rm --force $ids >/dev/null";
	struct words words = {.at = TAKT_VEC_INIT(MAX_WORDS)};

	*ret = NULL;
	if (is(in, "apptainer"))
		return 0;
	add(&words, "/bin/sh");
	add(&words, "-c");
	add(&words, script);
	add(&words, in->runtime);
	add(&words, in->attempt_id);
	return take(&words, ret, err);
}
