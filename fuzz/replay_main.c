/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a target over its seeds without libFuzzer: every file of the folders named as arguments, one
 * TAP case each, whole and cut off after every byte. A target that finds a broken promise aborts.
 */
#include <dirent.h>
#include <stdio.h>

#include "fuzz_input.h"

enum {
	SEED_MAX = 1 << 20,
	CUT_MAX = 4096,
};

/* In memory of exactly n bytes, so that a read beyond them is seen. */
static void run_exactly(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static int run_file(const char *path)
{
	static uint8_t bytes[SEED_MAX];
	FILE *file = fopen(path, "rb");
	size_t n;

	if (!file)
		return -1;
	n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	for (size_t cut = 0; cut < n && cut < CUT_MAX; cut++)
		run_exactly(bytes, cut);
	run_exactly(bytes, n);
	return 0;
}

static int is_seed(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Cases run so far, or -1 when the folder cannot be read. */
static int run_folder(const char *folder, int cases)
{
	struct dirent **names;
	char path[4096];
	int n = scandir(folder, &names, is_seed, alphasort);

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		printf("# %s\n", path);
		fflush(stdout);
		printf("%s %d - %s\n", run_file(path) < 0 ? "not ok" : "ok", ++cases,
		       names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return n < 0 ? -1 : cases;
}

int main(int argc, char **argv)
{
	int cases = 0;

	for (int i = 1; i < argc && cases >= 0; i++)
		cases = run_folder(argv[i], cases);
	if (cases <= 0) {
		printf("not ok 1 - no seeds\n1..1\n");
		return 1;
	}
	printf("1..%d\n", cases);
	return 0;
}
