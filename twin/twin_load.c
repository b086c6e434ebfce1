/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt-twin load: a workload that stands for a training script.
 *
 * It registers itself on its GPUs and then only watches: how far the work has come is computed by
 * the model from clocks and time, so a clock that anybody changes slows it down. It proves that it
 * lives by renewing a lease; a killed load stops computing by itself.
 *
 * On several GPUs each computes for itself up to a limit a little beyond what the slowest has done,
 * and waits there: so one slow GPU slows the job, and the others draw less.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/nvml.h"
#include "takt_twin.h"
#include "twin_board_file.h"
#include "twin_mig.h"
#include "twin_physics.h"
#include "twin_rows_file.h"
#include "twin_work.h"

enum {
	MAX_STEPS = 1000000000,
	MAX_SECONDS = 31536000,
	MAX_STEP_MS = 3600000,
	UNSAID = INT32_MAX, /* options that were not given */
};

static const uint64_t
	LEASE_NS = 1000000000,
	RENEW_NS = 200000000, WATCH_NS = 20000000, FOR_EVER = UINT64_MAX, MIB = 1048576,
	/* how far a GPU may be ahead: more than it can do from one renewal to the next */
	AHEAD_NS = 500000000;

struct options {
	const char *machine, *gpus, *straggler;
	struct twin_rows_wish rows;
	struct twin_profile profile;
	uint64_t steps, seconds, memory_mib, leak_mib, step_ms, exit_code;
	uint64_t fail_at, hang_at; /* steps */
	uint64_t jitter;	   /* permille */
	const char *slow_steps;
	bool ignore_term, quiet;
};

struct load {
	struct twin_map *map;
	const struct options *options;
	uint64_t mask, slow_mask;     /* GPUs */
	char instance[TWIN_MIG_UUID]; /* MIG device on the one GPU of the mask; empty: any */
	uint32_t link_permille, slow_permille;
	uint64_t step_ns, memory_mib, least_ns; /* least_ns: work done by the slowest GPU */
	int32_t pid;
	uint64_t start_ticks;
	uint64_t started_ns; /* in the machine's time */
	uint64_t renewed_ns; /* in the world's */
	uint64_t speed;	     /* of the machine's time, as of the last renewal */
	uint64_t wear;	     /* what links and buses were like then */
	bool beyond;	     /* at a clock at which the workload was not measured */
};

static int parse_number(int c, struct options *options, struct takt_err *err)
{
	switch (c) {
	case 's':
		return twin_number("--steps", optarg, 1, MAX_STEPS, &options->steps, err);
	case 't':
		return twin_number("--seconds", optarg, 1, MAX_SECONDS, &options->seconds, err);
	case 'M':
		return twin_number("--mem", optarg, 0, UINT32_MAX, &options->memory_mib, err);
	case 'L':
		return twin_number("--leak", optarg, 0, 1048576, &options->leak_mib, err);
	case 'J':
		return twin_number("--jitter", optarg, 0, 200, &options->jitter, err);
	case 'F':
		return twin_number("--fail-at", optarg, 1, MAX_STEPS, &options->fail_at, err);
	case 'H':
		return twin_number("--hang-at", optarg, 1, MAX_STEPS, &options->hang_at, err);
	case 'w':
		return twin_number("--step-time-ms", optarg, 1, MAX_STEP_MS, &options->step_ms,
				   err);
	default:
		return twin_number("--exit-code", optarg, 0, 255, &options->exit_code, err);
	}
}

/* Where an option goes that is kept as it is written; NULL = it is none of them. */
static const char **text_option(int c, struct options *options)
{
	switch (c) {
	case 'g':
		return &options->gpus;
	case 'm':
		return &options->machine;
	case 'S':
		return &options->straggler;
	case 'P':
		return &options->slow_steps;
	case 'r':
		return &options->rows.file;
	case 'W':
		return &options->rows.workload;
	case 'O':
		return &options->rows.gpu;
	default:
		return NULL;
	}
}

static int parse(int argc, char **argv, struct options *options, struct takt_err *err)
{
	static const struct option known[] = {
		{"profile", required_argument, NULL, 'p'},
		{"steps", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'},
		{"mem", required_argument, NULL, 'M'},
		{"gpus", required_argument, NULL, 'g'},
		{"step-time-ms", required_argument, NULL, 'w'},
		{"exit-code", required_argument, NULL, 'e'},
		{"leak", required_argument, NULL, 'L'},
		{"fail-at", required_argument, NULL, 'F'},
		{"hang-at", required_argument, NULL, 'H'},
		{"straggler", required_argument, NULL, 'S'},
		{"jitter", required_argument, NULL, 'J'},
		{"slow-steps", required_argument, NULL, 'P'},
		{"rows", required_argument, NULL, 'r'},
		{"workload", required_argument, NULL, 'W'},
		{"measured-on", required_argument, NULL, 'O'},
		{"ignore-term", no_argument, NULL, 'i'},
		{"quiet", no_argument, NULL, 'q'},
		{"machine", required_argument, NULL, 'm'},
		{0},
	};
	int c, rc = 0;

	while (rc == 0 && (c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == '?')
			rc = twin_bad_option(&twin_verb_load, argv, err);
		else if (c == 'p')
			rc = twin_profile_load(optarg, &options->profile, err);
		else if (c == 'i')
			options->ignore_term = true;
		else if (c == 'q')
			options->quiet = true;
		else if (text_option(c, options))
			*text_option(c, options) = optarg;
		else
			rc = parse_number(c, options, err);
	}
	if (rc == 0 && optind != argc)
		rc = takt_err_set(err, -TAKT_E_USAGE, "takes no argument '%s'", argv[optind]);
	if (rc == 0 && !options->rows.file != !options->rows.workload)
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "--rows FILE and --workload NAME belong together");
	return rc;
}

/* The MIG device of that UUID on a GPU; of an empty one the first, which is what CUDA takes. */
static bool find_instance(const struct twin_gpu *gpu, const struct twin_board *board,
			  const struct twin_gpu_desc *desc, const char *uuid,
			  struct twin_mig_device *ret)
{
	char own[TWIN_MIG_UUID];
	uint32_t at = 0;

	while (twin_mig_next(gpu, board, &at, ret)) {
		twin_mig_uuid(desc, ret->id, ret->compute_id, own);
		if (!*uuid || strcmp(own, uuid) == 0)
			return true;
	}
	return false;
}

/* A process computes in one MIG device at most. */
static int choose_instance(struct load *load, const char *uuid, struct takt_err *err)
{
	const struct twin_machine *machine = &twin_map_file(load->map)->machine;
	struct twin_mig_device found;
	struct twin_gpu gpu;

	for (uint32_t i = 0; i < machine->gpu_count; i++) {
		twin_read(load->map, i, &gpu);
		if (!find_instance(&gpu, &machine->board, &machine->gpus[i], uuid, &found))
			continue;
		load->mask = 1ull << i;
		snprintf(load->instance, sizeof(load->instance), "%s", uuid);
		return 0;
	}
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "no MIG device '%s'", uuid);
}

/* As a CUDA program sees it: all GPUs when nothing is said, of which a plain script uses the first.
 * Numbers follow PCI order, which is the order of the machine. */
static int choose_gpus(struct load *load, struct takt_err *err)
{
	const char *list =
		load->options->gpus ? load->options->gpus : getenv("CUDA_VISIBLE_DEVICES");

	if (!list) {
		load->mask = 1;
		return 0;
	}
	if (strncmp(list, "MIG-", 4) == 0)
		return choose_instance(load, list, err);
	if (twin_find_gpus(&twin_map_file(load->map)->machine, list, &load->mask, err) < 0)
		return err->rc;
	if (load->mask == 0)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "no GPU is visible: CUDA_VISIBLE_DEVICES or --gpus is empty");
	return 0;
}

/* GPUs of a mask, one after the other: for (i = first; ...; next). */
static uint32_t next_gpu(const struct load *load, uint32_t from)
{
	while (from < TWIN_MAX_GPUS && !(load->mask >> from & 1))
		from++;
	return from;
}

#define EACH_GPU(load, i) \
	for (uint32_t i = next_gpu(load, 0); i < TWIN_MAX_GPUS; i = next_gpu(load, i + 1))

static struct twin_load *mine(const struct load *load, struct twin_gpu *gpu)
{
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		struct twin_load *entry = &gpu->loads[i];
		if (entry->pid == load->pid && entry->start_ticks == load->start_ticks)
			return entry;
	}
	return NULL;
}

/* So long in the machine's time. A machine that stands still is moved on by any stretch. */
static uint64_t span(const struct load *load, uint64_t ns)
{
	return load->speed ? ns * load->speed : ns;
}

static uint64_t lease_end(const struct load *load, const struct twin_gpu *gpu)
{
	return gpu->at_ns + (load->speed ? LEASE_NS * load->speed : FOR_EVER / 4);
}

static bool refused_by_mode(const struct twin_gpu *gpu)
{
	if (gpu->compute_mode == NVML_COMPUTEMODE_PROHIBITED)
		return true;
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		if (gpu->compute_mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS &&
		    twin_load_alive(&gpu->loads[i]))
			return true;
	}
	return false;
}

static uint64_t free_mib(const struct twin_gpu *gpu, const struct twin_board *board)
{
	return board->memory_mib - board->reserved_mib - twin_physics_memory_used(gpu) / MIB;
}

static uint64_t mig_free_mib(const struct twin_gpu *gpu, const struct twin_mig_device *mig)
{
	return mig->profile->memory_mib - twin_mig_memory_used(gpu, mig->start) / MIB;
}

/* A GPU in MIG mode computes in its instances only. */
static bool find_mine(const struct load *load, const struct twin_gpu *gpu,
		      const struct twin_board *board, struct twin_mig_device *ret)
{
	const struct twin_machine *machine = &twin_map_file(load->map)->machine;

	return find_instance(gpu, board, &machine->gpus[next_gpu(load, 0)], load->instance, ret);
}

/* A job on one GPU has nobody to talk to. */
static struct twin_profile without_communication(const struct twin_profile *profile)
{
	struct twin_profile alone = *profile;

	alone.phase_count = 0;
	for (uint32_t i = 0; i < profile->phase_count; i++) {
		if (profile->phases[i].kind != TWIN_PHASE_COMMUNICATION)
			alone.phases[alone.phase_count++] = profile->phases[i];
	}
	return alone;
}

/* One GPU of a load that something is done to. */
struct member {
	struct load *load;
	uint32_t gpu;
};

static bool has_peers(const struct load *load)
{
	return (load->mask & (load->mask - 1)) != 0;
}

static int enter(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct member *member = arg;
	const struct load *load = member->load;
	const struct twin_profile *profile = &load->options->profile;
	struct twin_mig_device mig = {0};
	uint64_t slot = 0;

	if (refused_by_mode(gpu))
		return -EBUSY;
	if (gpu->mig_mode && !find_mine(load, gpu, board, &mig))
		return -ENXIO;
	if (load->memory_mib > (gpu->mig_mode ? mig_free_mib(gpu, &mig) : free_mib(gpu, board)))
		return -ENOMEM;
	while (slot < gpu->load_count && gpu->loads[slot].pid)
		slot++;
	if (slot == TWIN_MAX_LOADS)
		return -ENOSPC;
	if (slot == gpu->load_count)
		gpu->load_count++;
	gpu->loads[slot] = (struct twin_load){
		.pid = load->pid,
		.pid_namespace = twin_pid_namespace(),
		.start_ticks = load->start_ticks,
		.memory_bytes = load->memory_mib * MIB,
		.lease_until_ns = lease_end(load, gpu),
		.step_ns = load->step_ns,
		.seed = gpu->noise_seed + slot + 1,
		.work_limit_ns = has_peers(load) ? span(load, AHEAD_NS) : 0,
		.pace_permille = load->slow_mask >> member->gpu & 1 ? load->slow_permille : 1000,
		.link_permille = load->link_permille,
		.profile = has_peers(load) ? *profile : without_communication(profile),
		.in_instance = gpu->mig_mode != 0,
		.gpu_instance = (uint8_t)mig.start,
		.compute_instance = (uint8_t)mig.compute_start,
		.part_permille = gpu->mig_mode ? mig.slices * 1000 / (TWIN_MIG_SLICES - 1) : 1000,
		.accounted = gpu->accounting != 0,
		.started_ns = gpu->at_ns,
	};
	return 0;
}

static int leave(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct twin_load *entry = mine(arg, gpu);

	if (!entry)
		return -ENOENT;
	entry->gone_ns = gpu->at_ns;
	return 0;
}

static int renew(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct load *load = arg;
	struct twin_load *entry = mine(load, gpu);

	if (!entry)
		return -ENOENT;
	entry->lease_until_ns = lease_end(load, gpu);
	entry->link_permille = load->link_permille;
	if (has_peers(load))
		entry->work_limit_ns = load->least_ns + span(load, AHEAD_NS);
	return 0;
}

/* Takes what a leaking program takes more with each step. */
static int leak(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct load *load = arg;
	struct twin_load *entry = mine(load, gpu);
	struct twin_mig_device mig;
	uint64_t free;

	if (!entry)
		return -ENOENT;
	if (entry->in_instance && !find_mine(load, gpu, board, &mig))
		return -ENXIO;
	free = entry->in_instance ? mig_free_mib(gpu, &mig) : free_mib(gpu, board);
	if (load->memory_mib - entry->memory_bytes / MIB > free)
		return -ENOMEM;
	entry->memory_bytes = load->memory_mib * MIB;
	return 0;
}

/* Its kernels run on and get nowhere, as those that wait for a peer that is gone. */
static int get_stuck(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	const struct load *load = arg;
	struct twin_load *entry = mine(load, gpu);

	if (!entry)
		return -ENOENT;
	entry->lease_until_ns = lease_end(load, gpu);
	entry->work_limit_ns = 1;
	return 0;
}

static int explain(int rc, uint32_t gpu, const struct load *load, struct takt_err *err)
{
	switch (rc) {
	case -ENOMEM:
		return takt_err_set(err, rc, "GPU %u: out of memory, %llu MiB asked for", gpu,
				    (unsigned long long)load->memory_mib);
	case -EBUSY:
		return takt_err_set(err, -TAKT_E_BUSY,
				    "GPU %u: its compute mode lets no other process in", gpu);
	case -ENOSPC:
		return takt_err_set(err, -TAKT_E_LIMIT, "GPU %u: %d processes at most", gpu,
				    TWIN_MAX_LOADS);
	case -ENXIO:
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "GPU %u is in MIG mode and has no such compute instance", gpu);
	case -ENODEV:
		return takt_err_set(err, rc, "GPU %u is lost", gpu);
	default:
		return takt_err_set(err, rc, "GPU %u: change the machine's file", gpu);
	}
}

static bool has_fault(const struct load *load, uint32_t gpu, uint32_t fault)
{
	return twin_ailment(load->map, gpu).faults & fault;
}

static void leave_all(struct load *load)
{
	EACH_GPU(load, i)
	twin_change(load->map, i, leave, load);
}

/* A GPU works from when it is entered on: its first step takes longer than that, never less. */
static int enter_all(struct load *load, struct takt_err *err)
{
	load->started_ns = twin_map_now_ns(load->map);
	EACH_GPU(load, i)
	{
		struct member member = {load, i};
		int rc = has_fault(load, i, TWIN_FAULT_LOST)
				 ? -ENODEV
				 : twin_change(load->map, i, enter, &member);
		if (rc == 0)
			continue;
		leave_all(load);
		return explain(rc, i, load, err);
	}
	load->renewed_ns = twin_now_ns();
	return 0;
}

static int change_all(struct load *load, twin_change_fn *change, struct takt_err *err)
{
	EACH_GPU(load, i)
	{
		int rc = twin_change(load->map, i, change, load);
		if (rc < 0)
			return explain(rc, i, load, err);
	}
	return 0;
}

/* Links that went down and buses that fell back are noticed as they happen, as a program would. */
static int look_at_links(struct load *load, struct takt_err *err)
{
	uint64_t wear = 0;

	if (!has_peers(load))
		return 0;
	EACH_GPU(load, i)
	{
		struct twin_gpu gpu;
		twin_read(load->map, i, &gpu);
		wear = wear * 31 + gpu.links_down;
		wear = wear * 31 + gpu.pcie_gen * 64 + gpu.pcie_width;
	}
	if (wear == load->wear)
		return 0;
	load->wear = wear;
	return twin_rings_permille(load->map, load->mask, &load->link_permille, err);
}

static int renew_all(struct load *load, struct takt_err *err)
{
	uint64_t speed = twin_clock_speed(&twin_map_file(load->map)->clock);
	uint64_t now_ns = twin_now_ns();
	int rc;

	/* a change of speed is announced before it comes: leases have to be right by then */
	if (now_ns - load->renewed_ns < RENEW_NS && speed == load->speed)
		return 0;
	load->speed = speed;
	rc = look_at_links(load, err);
	if (rc == 0)
		rc = change_all(load, renew, err);
	if (rc == 0)
		load->renewed_ns = now_ns;
	return rc;
}

/* What the slowest GPU has done, and how fast it goes. */
struct progress {
	uint64_t work_ns, speed;
	uint32_t sm_mhz;
	uint64_t energy_nj; /* of all, since they were made */
};

static int look(struct load *load, struct progress *ret, struct takt_err *err)
{
	const struct twin_board *board = twin_map_board(load->map);
	struct progress least = {.work_ns = UINT64_MAX};
	struct twin_gpu gpu;

	EACH_GPU(load, i)
	{
		const struct twin_load *entry;
		twin_read(load->map, i, &gpu);
		entry = mine(load, &gpu);
		if (!entry || has_fault(load, i, TWIN_FAULT_LOST))
			return explain(-ENODEV, i, load, err);
		if (entry->failed_xid)
			return takt_err_set(err, -EIO, "GPU %u: its work ended with XID %u", i,
					    entry->failed_xid);
		least.energy_nj += gpu.energy_nj + gpu.cell_uw_ns / 1000000;
		if (entry->work_ns >= least.work_ns)
			continue;
		least.work_ns = entry->work_ns;
		least.speed = twin_physics_speed(&gpu, board, entry);
		least.sm_mhz = gpu.now_mhz;
	}
	load->least_ns = least.work_ns;
	/* a profile that does not compute makes its steps in the host's time */
	if (!load->options->profile.phase_count) {
		least.work_ns = twin_map_now_ns(load->map) - load->started_ns;
		least.speed = 1000000000;
	}
	*ret = least;
	return 0;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};

	nanosleep(&ts, NULL);
}

/* A hanging GPU stops the program that uses it. */
static void hang(const struct load *load)
{
	EACH_GPU(load, i)
	{
		struct twin_ailment ailment = twin_ailment(load->map, i);
		while (twin_ailment_hangs(load->map, &ailment)) {
			sleep_ns(WATCH_NS);
			ailment = twin_ailment(load->map, i);
		}
	}
}

/* Work of a step: with its communication, if there is any. */
static uint64_t cycle_ns(const struct load *load)
{
	const struct twin_profile *profile = &load->options->profile;
	struct twin_load entry = {.step_ns = load->step_ns,
				  .profile = has_peers(load) ? *profile
							     : without_communication(profile)};

	return profile->phase_count ? twin_work_cycle_ns(&entry) : load->step_ns;
}

/* How long to sleep for `rest_ns` of work; never past the time to look again, since anybody may
 * change the clock meanwhile. Work is never done faster than time passes. */
static uint64_t nap_for(const struct load *load, uint64_t rest_ns, uint64_t speed)
{
	uint64_t ns = WATCH_NS;

	if (rest_ns < span(load, WATCH_NS) && speed && load->speed)
		ns = rest_ns * 1000 / (speed / 1000000 + 1) / load->speed + 1000;
	return ns < WATCH_NS ? ns : WATCH_NS;
}

/* Until the slowest GPU has done `target_ns` of work. */
static int reach(struct load *load, uint64_t target_ns, struct progress *ret, struct takt_err *err)
{
	for (;;) {
		int rc;

		hang(load);
		rc = renew_all(load, err);
		if (rc == 0)
			rc = look(load, ret, err);
		if (rc < 0 || ret->work_ns >= target_ns)
			return rc;
		sleep_ns(nap_for(load, target_ns - ret->work_ns, ret->speed));
	}
}

static bool finished(const struct load *load, uint64_t step)
{
	const struct options *options = load->options;

	if (options->seconds &&
	    twin_map_now_ns(load->map) - load->started_ns >= options->seconds * 1000000000)
		return true;
	return step >= options->steps;
}

/* Once, and again only after it was within what was measured. */
static void say_if_beyond(struct load *load, uint32_t sm_mhz)
{
	const struct twin_profile *profile = &load->options->profile;
	bool beyond = profile->row_count && (sm_mhz < profile->rows[0].mhz ||
					     sm_mhz > profile->rows[profile->row_count - 1].mhz);

	if (beyond && !load->beyond)
		fprintf(stderr,
			"takt-twin load: %u MHz is beyond what was measured, %u to %u MHz: "
			"extrapolated\n",
			sm_mhz, profile->rows[0].mhz, profile->rows[profile->row_count - 1].mhz);
	load->beyond = beyond;
}

/* Mean power of all GPUs over the step: phases differ. */
static void print_step(const struct load *load, uint64_t step, uint64_t ns, uint64_t energy_nj,
		       uint32_t sm_mhz)
{
	if (!load->options->quiet)
		printf("step %llu time_ms %.1f sm_mhz %u power_w %.0f\n", (unsigned long long)step,
		       (double)ns / 1e6, sm_mhz, (double)energy_nj / (double)(ns ? ns : 1));
}

/* For ever: only a signal ends it. */
static int stay_stuck(struct load *load, uint64_t step, struct takt_err *err)
{
	printf("stuck after step %llu\n", (unsigned long long)step);
	for (;;) {
		int rc = change_all(load, get_stuck, err);
		if (rc < 0)
			return rc;
		sleep_ns(RENEW_NS);
	}
}

/* What a program does to itself after a step. */
static int mishaps(struct load *load, uint64_t step, struct takt_err *err)
{
	const struct options *options = load->options;

	if (options->leak_mib) {
		int rc;
		load->memory_mib += options->leak_mib;
		rc = change_all(load, leak, err);
		if (rc < 0)
			return rc;
	}
	if (step == options->fail_at)
		return takt_err_set(err, -EIO, "failed after step %llu, as asked for",
				    (unsigned long long)step);
	return step == options->hang_at ? stay_stuck(load, step, err) : 0;
}

static int train(struct load *load, struct takt_err *err)
{
	uint64_t step = 0, at_ns = load->started_ns, step_ns = cycle_ns(load), energy_nj;
	struct progress before;
	int rc = look(load, &before, err);

	if (rc < 0)
		return rc;
	energy_nj = before.energy_nj;
	while (!finished(load, step)) {
		struct progress progress;
		uint64_t now_ns;

		rc = reach(load, ++step * step_ns, &progress, err);
		if (rc < 0)
			return rc;
		now_ns = twin_map_now_ns(load->map);
		say_if_beyond(load, progress.sm_mhz);
		print_step(load, step, now_ns - at_ns, progress.energy_nj - energy_nj,
			   progress.sm_mhz);
		at_ns = now_ns;
		energy_nj = progress.energy_nj;
		rc = mishaps(load, step, err);
		if (rc < 0)
			return rc;
	}
	printf("done steps %llu seconds %.3f mean_step_ms %.2f\n", (unsigned long long)step,
	       (double)(at_ns - load->started_ns) / 1e9,
	       step ? (double)(at_ns - load->started_ns) / 1e6 / (double)step : 0.0);
	return 0;
}

/* GPU=PERCENT of its speed. */
static int choose_straggler(struct load *load, struct takt_err *err)
{
	const char *text = load->options->straggler;
	const char *value = text ? strchr(text, '=') : NULL;
	char gpu[64];
	uint64_t percent = 0;
	int rc;

	if (!text)
		return 0;
	if (!value)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "--straggler needs a GPU and its speed: 3=70 for 70 %%");
	snprintf(gpu, sizeof(gpu), "%.*s", (int)(value - text), text);
	rc = twin_number("--straggler", value + 1, 1, 100, &percent, err);
	if (rc == 0)
		rc = twin_find_gpus(&twin_map_file(load->map)->machine, gpu, &load->slow_mask, err);
	load->slow_permille = (uint32_t)percent * 10;
	return rc;
}

/* CHANCE=PACE, permille both. */
static int parse_slow_steps(struct options *options, struct takt_err *err)
{
	const char *value = options->slow_steps ? strchr(options->slow_steps, '=') : NULL;
	uint64_t chance, pace;
	char text[24];
	int rc;

	if (!options->slow_steps)
		return 0;
	if (!value)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "--slow-steps needs a chance and a pace, permille both: "
				    "10=600");
	snprintf(text, sizeof(text), "%.*s", (int)(value - options->slow_steps),
		 options->slow_steps);
	rc = twin_number("--slow-steps", text, 0, 1000, &chance, err);
	if (rc == 0)
		rc = twin_number("--slow-steps", value + 1, 1, 1000, &pace, err);
	if (rc == 0) {
		options->profile.slow_chance = (uint32_t)chance;
		options->profile.slow_pace = (uint32_t)pace;
	}
	return rc;
}

/* What the command line leaves open, the profile says. */
static void fill_in(struct options *options)
{
	if (options->jitter != UNSAID)
		options->profile.jitter = (uint32_t)options->jitter;
	if (options->memory_mib == UNSAID)
		options->memory_mib = options->profile.memory_mib;
	if (options->leak_mib == UNSAID)
		options->leak_mib = options->profile.leak_mib;
	if (options->step_ms == UNSAID)
		options->step_ms = options->profile.step_ms;
}

static int prepare(struct load *load, struct takt_err *err)
{
	int rc = choose_gpus(load, err);

	if (rc == 0)
		rc = choose_straggler(load, err);
	if (rc == 0)
		rc = twin_rings_permille(load->map, load->mask, &load->link_permille, err);
	load->speed = twin_clock_speed(&twin_map_file(load->map)->clock);
	load->start_ticks = twin_process_start(load->pid);
	load->step_ns = load->options->step_ms * 1000000;
	load->memory_mib = load->options->memory_mib;
	return rc;
}

static int run_load(int argc, char **argv, struct takt_err *err)
{
	struct options options = {.steps = FOR_EVER,
				  .memory_mib = UNSAID,
				  .leak_mib = UNSAID,
				  .step_ms = UNSAID,
				  .jitter = UNSAID};
	TAKT_CLEANUP(twin_mapp) struct twin_map *map = NULL;
	struct load load = {.options = &options, .pid = getpid()};
	int rc = twin_profile_load("gemm", &options.profile, err);

	if (rc == 0)
		rc = parse(argc, argv, &options, err);
	if (rc == 0)
		rc = twin_open_machine(options.machine, &map, err);
	if (rc < 0)
		return rc;
	if (options.rows.file)
		rc = twin_rows_load(&options.rows, twin_map_board(map), &options.profile, err);
	if (rc == 0)
		rc = parse_slow_steps(&options, err);
	if (rc < 0)
		return rc;
	fill_in(&options);
	load.map = map;
	rc = prepare(&load, err);
	if (rc < 0)
		return rc;
	if (options.ignore_term)
		signal(SIGTERM, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = enter_all(&load, err);
	if (rc < 0)
		return rc;
	rc = train(&load, err);
	leave_all(&load);
	return rc < 0 ? rc : (int)options.exit_code;
}

const struct twin_verb twin_verb_load = {
	.name = "load",
	.usage = "[--profile NAME] [--steps N] [--seconds S] [--mem MIB] [--gpus LIST] ...",
	.summary = "Run a simulated workload in this process, like a training script",
	.help = "  --profile NAME     a workload; `takt-twin list` shows all (default gemm), or "
		"the\n"
		"                     path of a file of your own\n"
		"  --rows FILE        a workload as it was measured: a CSV file with the columns\n"
		"                     workload, core_mhz (or power_limit_w), time, power_w\n"
		"  --workload NAME    which of the file's; --measured-on GPU if on several\n"
		"  --steps N          end after N steps (default: run until killed)\n"
		"  --seconds S        end with the first step that ends after S seconds\n"
		"  --mem MIB          memory taken on each GPU (default: the profile's)\n"
		"  --leak MIB         memory taken more with each step (default: the profile's)\n"
		"  --gpus LIST        indices in PCI order or UUIDs, with commas; or one MIG UUID\n"
		"                     (default: $CUDA_VISIBLE_DEVICES; when that is not set, GPU "
		"0)\n"
		"  --step-time-ms MS  a step's time alone at the highest clock (default: the "
		"profile's)\n"
		"  --straggler G=PCT  GPU G makes PCT % of the speed that the others make\n"
		"  --jitter N         permille by which steps differ in speed (default: the "
		"profile's)\n"
		"  --slow-steps C=P   C permille of each GPU's steps make P permille of its speed\n"
		"  --exit-code N      end with this status\n"
		"  --fail-at N        fail after step N\n"
		"  --hang-at N        after step N do nothing more, and keep the GPUs busy\n"
		"  --ignore-term      SIGTERM does not end it\n"
		"  --quiet            only the last line\n"
		"  --machine FILE     the machine (default: $TAKT_TWIN)\n\n"
		"Steps follow the simulated clocks: compute-bound profiles slow down when the SM\n"
		"clock is lowered, stream hardly does. On several GPUs the slowest sets the pace,\n"
		"and a set that is badly linked takes longer to communicate. Times are simulated\n"
		"and say nothing about a real GPU.\n",
	.run = run_load,
};
