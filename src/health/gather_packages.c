/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is installed that runs on CUDA, from the files that say so: nothing is imported or run. A
 * PyTorch says in torch/version.py what it was built for; of TensorFlow the tested configurations
 * tell (tensorflow.org/install/source); a toolkit has version.json.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "health/file_words.h"
#include "health/gather.h"
#include "health/rooted.h"

enum {
	FILE_BYTES = 16 * 1024,
};

struct search {
	const char *root;
	struct takt_doctor_facts *facts;
};

static const struct {
	const char *version, *cuda;
} tensorflow[] = {
	{"2.18", "12.5"}, {"2.17", "12.3"}, {"2.16", "12.3"}, {"2.15", "12.2"}, {"2.14", "11.8"},
	{"2.13", "11.8"}, {"2.12", "11.8"}, {"2.11", "11.2"}, {"2.10", "11.2"}, {"2.9", "11.2"},
	{"2.8", "11.2"},  {"2.7", "11.2"},  {"2.6", "11.2"},  {"2.5", "11.2"},	{"2.4", "11.0"},
};

/* "torch-2.6.0+cu124.dist-info" -> "2.6.0+cu124" */
static bool take_version(const char *path, const char *prefix, char *ret, size_t size)
{
	const char *name = takt_path_name(path) + strlen(prefix);
	const char *end = strstr(name, ".dist-info");

	if (!end || (size_t)(end - name) >= size)
		return false;
	memcpy(ret, name, (size_t)(end - name));
	ret[end - name] = '\0';
	return true;
}

static struct takt_doctor_package *add(struct search *search, const char *name, const char *path)
{
	struct takt_doctor_package *package = &search->facts->package[search->facts->package_count];

	if (search->facts->package_count == TAKT_DOCTOR_MAX_PACKAGES)
		return NULL;
	*package = (struct takt_doctor_package){0};
	takt_strcpy(package->name, sizeof(package->name), name);
	takt_strcpy(package->path, sizeof(package->path), path);
	takt_strcpy(package->cuda, sizeof(package->cuda), "?");
	return package;
}

static void found_torch(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct takt_doctor_package *package = add(search, "PyTorch", path);
	char file[PATH_MAX], text[FILE_BYTES];

	if (!package || !take_version(path, "torch-", package->version, sizeof(package->version)))
		return;
	snprintf(file, sizeof(file), "%.*s/torch/version.py",
		 (int)(takt_path_name(path) - path - 1), path);
	if (takt_rooted_text(search->root, file, text, sizeof(text)))
		takt_find_torch_cuda(text, package->cuda, sizeof(package->cuda));
	search->facts->package_count++;
}

static void found_tensorflow(void *ctx, const char *path)
{
	struct takt_doctor_package *package = add(ctx, "TensorFlow", path);
	char release[16] = "";
	unsigned major, minor;

	if (!package ||
	    !take_version(path, "tensorflow-", package->version, sizeof(package->version)))
		return;
	if (sscanf(package->version, "%u.%u", &major, &minor) == 2 && major < 100 && minor < 1000)
		snprintf(release, sizeof(release), "%u.%u", major, minor);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(tensorflow); i++)
		if (strcmp(tensorflow[i].version, release) == 0)
			takt_strcpy(package->cuda, sizeof(package->cuda), tensorflow[i].cuda);
	((struct search *)ctx)->facts->package_count++;
}

static void found_toolkit(void *ctx, const char *path)
{
	struct search *search = ctx;
	struct takt_doctor_package *package = add(search, "cuda", path);
	char text[FILE_BYTES];

	if (!package || !takt_rooted_text(search->root, path, text, sizeof(text)) ||
	    !takt_find_toolkit_version(text, package->cuda, sizeof(package->cuda)))
		return;
	takt_strcpy(package->version, sizeof(package->version), package->cuda);
	search->facts->package_count++;
}

/* Packages below one folder that holds a lib/python3.x. */
static void look_below(struct search *search, const char *folder, const char *site)
{
	char pattern[PATH_MAX];

	if (!folder || snprintf(pattern, sizeof(pattern), "%s/%s", folder, site) > PATH_MAX / 2)
		return;
	snprintf(pattern, sizeof(pattern), "%s/%s/torch-*.dist-info", folder, site);
	takt_rooted_glob(search->root, pattern, found_torch, search);
	snprintf(pattern, sizeof(pattern), "%s/%s/tensorflow-*.dist-info", folder, site);
	takt_rooted_glob(search->root, pattern, found_tensorflow, search);
}

void takt_gather_packages(const struct takt_gather *gather, struct takt_doctor_facts *facts)
{
	struct search search = {gather->root, facts};
	char local[PATH_MAX];

	look_below(&search, "/usr/lib", "python3*/dist-packages");
	look_below(&search, "/usr/lib", "python3*/site-packages");
	look_below(&search, "/usr/local/lib", "python3*/dist-packages");
	look_below(&search, "/usr/local/lib", "python3*/site-packages");
	if (gather->home &&
	    snprintf(local, sizeof(local), "%s/.local", gather->home) < PATH_MAX / 2)
		look_below(&search, local, "lib/python3*/site-packages");
	look_below(&search, gather->venv, "lib/python3*/site-packages");
	look_below(&search, gather->conda, "lib/python3*/site-packages");
	takt_rooted_glob(gather->root, "/usr/local/cuda/version.json", found_toolkit, &search);
}
