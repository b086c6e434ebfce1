/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin create, destroy, list: machine files come and go. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "base/sys.h"
#include "takt_twin.h"
#include "twin_board_file.h"
#include "twin_hide.h"
#include "twin_physics.h"

/* Driver branches of which there is a library. */
static const struct branch {
	const char *name, *driver_version;
	uint32_t cuda_version;
} branches[] = {
#define X(name, driver, cuda, nvml) {name, driver, cuda},
	NVML_BRANCHES(X)
#undef X
};

struct wish {
	struct twin_machine machine;
	const struct branch *branch;
	uint32_t gpus;
	uint32_t seed;
	uint64_t speed; /* of its time */
	bool quiet;	/* without noise */
	bool replace;
	char path[PATH_MAX];
};

/* Steele, Lea and Flood's mixing function: spreads seed and index over a UUID. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static void name_gpu(struct twin_gpu_desc *gpu, uint32_t seed)
{
	uint64_t a = mix((uint64_t)seed << 8 | gpu->index), b = mix(a);

	snprintf(gpu->uuid, sizeof(gpu->uuid), "GPU-%08x-%04x-%04x-%04x-%012llx",
		 (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xffff),
		 (unsigned)(b >> 48), (unsigned long long)(b & 0xffffffffffff));
	snprintf(gpu->serial, sizeof(gpu->serial), "TWIN%08X%02u", seed, gpu->index);
}

static void fill(struct twin_file *file, const struct wish *wish)
{
	struct twin_machine *machine = &file->machine;
	uint64_t boot_ns = twin_now_ns();

	memcpy(file->magic, TWIN_MAGIC, sizeof(file->magic));
	file->layout = TWIN_LAYOUT;
	file->file_size = sizeof(*file);
	takt_boot_id(file->boot_id);
	file->owner_uid = geteuid();
	file->seed = wish->seed;
	twin_clock_init(&file->clock, boot_ns, wish->speed);
	file->created_ns = twin_clock_at(&file->clock, boot_ns);
	*machine = wish->machine;
	snprintf(machine->driver_branch, sizeof(machine->driver_branch), "%s", wish->branch->name);
	snprintf(machine->driver_version, sizeof(machine->driver_version), "%s",
		 wish->branch->driver_version);
	machine->cuda_version = wish->branch->cuda_version;
	machine->gpu_count = wish->gpus;
	for (uint32_t i = 0; i < wish->gpus; i++) {
		struct twin_gpu *gpu = &file->slots[i].copy[0];

		name_gpu(&machine->gpus[i], wish->seed);
		twin_physics_init(gpu, &machine->board, file->created_ns);
		twin_physics_vary(gpu, &machine->board, mix(~((uint64_t)wish->seed << 8 | i)));
		gpu->open_apis = machine->open_apis;
		gpu->mig_mode = gpu->mig_pending = machine->gpus[i].cut;
		memcpy(gpu->instances, machine->gpus[i].instances, sizeof(gpu->instances));
		gpu->noise_seed = wish->quiet ? 0 : mix(~mix((uint64_t)wish->seed << 8 | i)) | 1;
		/* even, so that copy 0 is in force; not zero, so that no empty cache matches it */
		atomic_store(&file->slots[i].number, 2);
	}
}

/* Complete before it has its name, so that nobody ever maps half a machine. Everybody may write:
 * workloads of any user register themselves. */
static int write_machine(const struct wish *wish, int fd, struct takt_err *err)
{
	struct twin_file *file;

	if (ftruncate(fd, sizeof(*file)) != 0 || fchmod(fd, 0666) != 0)
		return takt_err_set(err, -errno, "make machine '%s'", wish->path);
	file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return takt_err_set(err, -errno, "map machine '%s'", wish->path);
	fill(file, wish);
	munmap(file, sizeof(*file));
	return 0;
}

static int put_in_place(const struct wish *wish, const char *temporary, struct takt_err *err)
{
	int rc = wish->replace ? rename(temporary, wish->path) : link(temporary, wish->path);

	if (rc == 0)
		return 0;
	if (errno == EEXIST)
		return takt_err_set(
			err, -TAKT_E_CONFLICT,
			"'%s' exists already: use it, `takt-twin destroy` it, say --replace, "
			"or choose another --path",
			wish->path);
	return takt_err_set(err, -errno, "put machine in place at '%s'", wish->path);
}

static int create(const struct wish *wish, struct takt_err *err)
{
	char temporary[PATH_MAX + 16];
	int fd, rc;

	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", wish->path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return takt_err_set(err, -errno, "create '%s'", wish->path);
	rc = write_machine(wish, fd, err);
	close(fd);
	if (rc == 0)
		rc = put_in_place(wish, temporary, err);
	unlink(temporary);
	return rc;
}

/* $XDG_RUNTIME_DIR/takt-twin, or a directory of this user's in /tmp. */
static int default_dir(char *dir, size_t size, struct takt_err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	if (runtime && *runtime)
		snprintf(dir, size, "%s/takt-twin", runtime);
	else
		snprintf(dir, size, "/tmp/takt-twin-%u", (unsigned)geteuid());
	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		return takt_err_set(err, -errno, "make directory '%s'", dir);
	if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return takt_err_set(err, -EPERM, "'%s' is not a directory of yours; give --dir",
				    dir);
	return 0;
}

static int choose_path(struct wish *wish, const char *dir, const char *path, struct takt_err *err)
{
	char own[PATH_MAX / 2];
	int rc;

	if (path) {
		snprintf(wish->path, sizeof(wish->path), "%s", path);
		return 0;
	}
	if (!dir) {
		rc = default_dir(own, sizeof(own), err);
		if (rc < 0)
			return rc;
		dir = own;
	}
	snprintf(wish->path, sizeof(wish->path), "%s/%s.twin", dir, wish->machine.name);
	return 0;
}

struct create_options {
	const char *dir, *path, *driver;
	uint64_t gpus, seed, speed;
	bool has_seed, quiet, replace;
};

static int parse_create(int argc, char **argv, struct create_options *options, struct takt_err *err)
{
	static const struct option known[] = {
		{"gpus", required_argument, NULL, 'g'},
		{"dir", required_argument, NULL, 'd'},
		{"path", required_argument, NULL, 'p'},
		{"seed", required_argument, NULL, 's'},
		{"replace", no_argument, NULL, 'r'},
		{"driver", required_argument, NULL, 'D'},
		{"speed", required_argument, NULL, 'x'},
		{"no-noise", no_argument, NULL, 'n'},
		{0},
	};
	int c, rc = 0;

	while (rc == 0 && (c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 'g')
			rc = twin_number("--gpus", optarg, 1, TWIN_MAX_GPUS, &options->gpus, err);
		else if (c == 's')
			rc = twin_number("--seed", optarg, 0, UINT32_MAX, &options->seed, err);
		else if (c == 'x')
			rc = twin_number("--speed", optarg, 0, TWIN_MAX_SPEED, &options->speed,
					 err);
		else if (c == 'd')
			options->dir = optarg;
		else if (c == 'D')
			options->driver = optarg;
		else if (c == 'p')
			options->path = optarg;
		else if (c == 'n')
			options->quiet = true;
		else if (c == 'r')
			options->replace = true;
		else
			rc = twin_bad_option(&twin_verb_create, argv, err);
		options->has_seed |= c == 's';
	}
	return rc;
}

static int find_branch(const char *name, const struct branch **ret, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(branches); i++) {
		if (strcmp(branches[i].name, name) != 0)
			continue;
		*ret = &branches[i];
		return 0;
	}
	return takt_err_set(err, -TAKT_E_USAGE, "no driver branch '%s'; there are 535, 550 and 13x",
			    name);
}

static int run_create(int argc, char **argv, struct takt_err *err)
{
	struct create_options options = {.speed = 1};
	struct wish wish = {0};
	int rc = parse_create(argc, argv, &options, err);

	if (rc < 0)
		return rc;
	if (optind != argc - 1)
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"say which machine; `takt-twin list` shows all, or give a file");
	rc = twin_machine_load(argv[optind], &wish.machine, err);
	if (rc == 0)
		rc = find_branch(options.driver ? options.driver : "550", &wish.branch, err);
	if (rc < 0)
		return rc;
	if (options.gpus > wish.machine.gpu_count)
		return takt_err_set(err, -TAKT_E_USAGE, "%s has %u GPUs, not %llu",
				    wish.machine.name, wish.machine.gpu_count,
				    (unsigned long long)options.gpus);
	wish.gpus = options.gpus ? (uint32_t)options.gpus : wish.machine.gpu_count;
	wish.seed = (uint32_t)options.seed;
	wish.speed = options.speed;
	wish.quiet = options.quiet;
	wish.replace = options.replace;
	if (!options.has_seed && getrandom(&wish.seed, sizeof(wish.seed), 0) < 0)
		return takt_err_set(err, -errno, "draw a seed");
	rc = choose_path(&wish, options.dir, options.path, err);
	if (rc == 0)
		rc = create(&wish, err);
	if (rc == 0)
		printf("%s\n", wish.path);
	return rc;
}

static int run_destroy(int argc, char **argv, struct takt_err *err)
{
	const char *path = argc > 1 ? argv[1] : getenv("TAKT_TWIN");
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;

	if (argc > 2 || !path)
		return takt_err_set(err, -TAKT_E_USAGE, "say which machine file, or set TAKT_TWIN");
	/* what maps is told that it ended; what does not (another layout, another boot) just goes
	 */
	if (twin_map_open(path, &map, err) == 0)
		atomic_store(&twin_map_file(map)->destroyed, 1);
	else if (err->rc != -TAKT_E_VERSION && err->rc != -TAKT_E_STALE)
		return err->rc;
	if (unlink(path) != 0)
		return takt_err_set(err, -errno, "remove '%s'", path);
	twin_hide_clear(path);
	return 0;
}

static int run_list(int argc, char **argv, struct takt_err *err)
{
	if (argc > 1)
		return takt_err_set(err, -TAKT_E_USAGE, "takes no arguments, not '%s'", argv[1]);
	for (unsigned i = 0; i < twin_machine_text_count; i++) {
		struct twin_machine machine;
		int rc = twin_machine_load(twin_machine_texts[i].name, &machine, err);

		if (rc < 0)
			return rc;
		printf("%-12s %2u x %s\n", machine.name, machine.gpu_count, machine.board.name);
	}
	printf("\nboards:  ");
	for (unsigned i = 0; i < twin_board_text_count; i++)
		printf(" %s", twin_board_texts[i].name);
	printf("\nprofiles:");
	for (unsigned i = 0; i < twin_profile_text_count; i++)
		printf(" %s", twin_profile_texts[i].name);
	printf("\n");
	return 0;
}

const struct twin_verb twin_verb_create = {
	.name = "create",
	.usage = "MACHINE|FILE.toml [--gpus N] [--driver BRANCH] [--dir DIR | --path FILE] ...",
	.summary = "Make a simulated machine and print its file's path",
	.help = "  --gpus N     only the first N of its GPUs\n"
		"  --dir DIR    make DIR/MACHINE.twin (default: $XDG_RUNTIME_DIR/takt-twin, else "
		"/tmp)\n"
		"  --path FILE  make FILE\n"
		"  --seed N     the same UUIDs, serial numbers, specimens and noise each time "
		"(default: new ones)\n"
		"  --speed N    its time passes N times as fast, 0 to 1000; see takt-twin time\n"
		"  --no-noise   sensors show the truth\n"
		"  --driver B   the driver's branch: 535, 550 (default) or 13x\n"
		"  --replace    put it in the place of one that is there\n\n"
		"FILE.toml describes a machine of your own; twin/README.md says how.\n\n"
		"  export TAKT_TWIN=$(takt-twin create hgx-h100 --gpus 4)\n",
	.run = run_create,
};

const struct twin_verb twin_verb_destroy = {
	.name = "destroy",
	.usage = "[FILE]",
	.summary = "Remove a machine ($TAKT_TWIN if none is named)",
	.help = "Programs that use it keep what they have; new ones find no driver.\n",
	.run = run_destroy,
};

const struct twin_verb twin_verb_list = {
	.name = "list",
	.usage = "",
	.summary = "Show the machines, boards and workloads that are built in",
	.help = "Their data: twin/machines, twin/boards and twin/profiles in the source.\n",
	.run = run_list,
};
