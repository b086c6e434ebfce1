/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin exec: run a program so that the NVML it opens is the twin's. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "takt_twin.h"
#include "twin_faces.h"
#include "twin_guard.h"
#include "twin_hide.h"

/* Where the library is, seen from this program: in the build tree, installed. */
static const char *const places[] = {"lib", "../lib/takt-twin"};

static int library_dir(const char *branch, char *ret, size_t size, struct takt_err *err)
{
	char self[PATH_MAX / 4], probe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return takt_err_set(err, -errno, "find my own path");
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < TAKT_ARRAY_LEN(places); i++) {
		snprintf(probe, sizeof(probe), "%s/%s/%s/libnvidia-ml.so.1", self, places[i],
			 branch);
		if (access(probe, R_OK) != 0)
			continue;
		snprintf(ret, size, "%s/%s/%s", self, places[i], branch);
		return 0;
	}
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "no library of driver branch %s beside '%s'",
			    branch, self);
}

struct options {
	const char *machine, *hide;
	bool faces;
	char absolute[PATH_MAX]; /* path of the machine's file */
};

static int parse(int argc, char **argv, struct options *options, struct takt_err *err)
{
	static const struct option known[] = {{"machine", required_argument, NULL, 'm'},
					      {"hide", required_argument, NULL, 'h'},
					      {"faces", no_argument, NULL, 'f'},
					      {0}};
	int c;

	while ((c = getopt_long(argc, argv, "+", known, NULL)) != -1) {
		if (c == 'm')
			options->machine = optarg;
		else if (c == 'h')
			options->hide = optarg;
		else if (c == 'f')
			options->faces = true;
		else
			return twin_bad_option(&twin_verb_exec, argv, err);
	}
	if (optind >= argc)
		return takt_err_set(err, -TAKT_E_USAGE, "say which program to run, after --");
	return 0;
}

static int choose_library(const struct options *options, const char *branch, char *ret, size_t size,
			  struct takt_err *err)
{
	char library[PATH_MAX];
	int rc = library_dir(branch, ret, size, err);

	if (rc < 0 || !options->hide)
		return rc;
	snprintf(library, sizeof(library), "%.*s/libnvidia-ml.so.1", PATH_MAX - 32, ret);
	return twin_hide(options->absolute, library, options->hide, ret, size, err);
}

static int set_environment(const struct options *options, const char *dir, struct takt_err *err)
{
	char path[2 * PATH_MAX], self[PATH_MAX] = "";
	const char *old = getenv("LD_LIBRARY_PATH");

	snprintf(path, sizeof(path), "%s%s%s", dir, old && *old ? ":" : "", old ? old : "");
	/* What stands in for CUDA where there is none: takt bench gpu asks for its load. */
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 ||
	    setenv("TAKT_TWIN_PROGRAM", self, 1) != 0)
		return takt_err_set(err, -errno, "say where takt-twin is");
	if (setenv("LD_LIBRARY_PATH", path, 1) != 0 ||
	    setenv("TAKT_TWIN", options->absolute, 1) != 0)
		return takt_err_set(err, -errno, "set the environment");
	return 0;
}

/* `takt serve` as root for others drops its caller's LD_LIBRARY_PATH, for who set it is not known
 * there. Here it is: root runs this program, and it names the library that lies beside it. */
static char **name_library(char **argv, int count, const char *dir)
{
	const char *base = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	static char option[PATH_MAX + 40];
	char **longer;

	if (geteuid() != 0 || count < 2 || strcmp(base, "takt") != 0 ||
	    strcmp(argv[1], "serve") != 0)
		return argv;
	for (int i = 2; i < count; i++) {
		if (strncmp(argv[i], "--nvml-path", 11) == 0)
			return argv;
	}
	longer = takt_calloc((size_t)count + 2, sizeof(*longer));
	if (!longer)
		return NULL;
	snprintf(option, sizeof(option), "--nvml-path=%s/libnvidia-ml.so.1", dir);
	memcpy(longer, argv, 2 * sizeof(*argv));
	longer[2] = option;
	memcpy(longer + 3, argv + 2, (size_t)(count - 2) * sizeof(*argv));
	return longer;
}

static int run_exec(int argc, char **argv, struct takt_err *err)
{
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	struct options options = {0};
	char dir[PATH_MAX], **command;
	int rc = parse(argc, argv, &options, err);

	if (rc < 0)
		return rc;
	if (twin_guard_real_driver())
		return takt_err_set(
			err, -TAKT_E_UNAVAILABLE,
			"a real NVIDIA driver is loaded here; the twin refuses to run beside "
			"it on the library search path");
	rc = twin_open_machine(options.machine, &map, err);
	if (rc < 0)
		return rc;
	if (!realpath(options.machine ? options.machine : getenv("TAKT_TWIN"), options.absolute))
		return takt_err_set(err, -errno, "find the machine's file");
	rc = choose_library(&options, twin_map_file(map)->machine.driver_branch, dir, sizeof(dir),
			    err);
	if (rc == 0)
		rc = set_environment(&options, dir, err);
	if (rc == 0 && options.faces)
		rc = twin_faces_put_on(map, err);
	if (rc < 0)
		return rc;
	command = name_library(argv + optind, argc - optind, dir);
	if (!command)
		return takt_err_set(err, -ENOMEM, "run '%s'", argv[optind]);
	execvp(command[0], command);
	takt_err_set(err, -errno, "run '%s'", argv[optind]);
	fprintf(stderr, "takt-twin exec: %s: %s\n", err->msg, strerror(-err->rc));
	return err->rc == -ENOENT ? 127 : 126;
}

const struct twin_verb twin_verb_exec = {
	.name = "exec",
	.usage = "[--machine FILE] [--hide FUNCTION,...] [--faces] -- COMMAND [ARGUMENT...]",
	.summary = "Run a program on a simulated machine",
	.help = "  --machine FILE  the machine (default: $TAKT_TWIN)\n"
		"  --hide NAMES    a library that lacks these functions, as an older driver's "
		"does\n"
		"  --faces         and /dev/nvidia*, /proc/driver/nvidia, /sys/bus/pci as a driver "
		"shows\n"
		"                  them, in a mount namespace of the program's own (needs root)\n\n"
		"Puts the twin's libnvidia-ml.so.1 first on the program's library search path; "
		"`takt "
		"serve`,\n"
		"which as root looks at no such path, gets it as --nvml-path. Exit status: the "
		"program's;\n"
		"127 if there is none of that name, 126 if it does not start.\n\n"
		"  takt-twin exec -- nvtop\n",
	.run = run_exec,
};
