/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine: one source, a worker a GPU, one thread for rounds, GPUs in PCI bus order. Everything
 * here copies finished results or posts wishes; the waiting in open and close has deadlines.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/device_set.h"
#include "device/pci_id.h"
#include "device/rounds.h"
#include "device/sysfs_pci.h"
#include "device/worker.h"

static const uint64_t default_stale_ns = 2 * TAKT_NS_PER_S;
/* The kernel gives the board power and waits for its link, the driver sets it up anew, which takes
 * one that was not set up one to three seconds: several times that, as for the facts. */
static const uint64_t default_wake_ns = 10 * TAKT_NS_PER_S;
static const uint64_t default_init_ns = 60 * TAKT_NS_PER_S;
static const uint64_t default_facts_ns = 10 * TAKT_NS_PER_S;
static const uint64_t close_ns = 2 * TAKT_NS_PER_S;
/* For one thread to read all GPUs' facts, before each gets its own. */
static const uint64_t facts_round_ns = 50 * TAKT_NS_PER_MS;

enum {
	LEAVE_AFTER = 10, /* ticks */
};

struct takt_machine {
	struct takt_machine_info info;
	struct takt_wake *wake;	    /* holds a reference */
	struct takt_rounds *rounds; /* owned; NULL = fewer than two GPUs */
	uint32_t held_up;	    /* ticks in a row that found it in the driver */
	uint32_t gpu_count;
	struct gpu {
		struct takt_worker *worker; /* holds a reference */
		bool answers;		    /* had all its facts in time */
		struct takt_gpu_facts facts;
		struct takt_gpu_link links[TAKT_DEVICE_MAX_GPUS]; /* by our numbers */
	} * gpus;						  /* owned, in PCI order */
};

static uint64_t or_default(uint64_t ns, uint64_t value)
{
	return ns != 0 ? ns : value;
}

static struct takt_mono in(uint64_t ns)
{
	return takt_mono_add(takt_mono_now(takt_sys_real()), ns);
}

static void describe(struct takt_machine *machine, const struct takt_source *source)
{
	struct takt_machine_info *info = &machine->info;

	info->gpu_count = source->gpu_count;
	takt_strcpy(info->driver_version, sizeof(info->driver_version), source->driver_version);
	takt_strcpy(info->nvml_version, sizeof(info->nvml_version), source->nvml_version);
	info->cuda_version = source->cuda_version;
	takt_strcpy(info->source, sizeof(info->source), source->ops->name);
	info->simulated = source->simulated;
	info->can_set = source->ops->set != NULL;
}

/* Parts of a full sample. */
static uint32_t part_mask(const struct takt_machine_config *config)
{
	return TAKT_PART_FAST | TAKT_PART_ENERGY | TAKT_PART_SLOW |
	       (config->no_processes ? 0 : TAKT_PART_PROCS) |
	       (config->counts_errors ? TAKT_PART_ERRORS : 0) |
	       (config->vitals ? TAKT_PART_VITALS : 0) |
	       (config->for_view ? TAKT_PART_VIEW : TAKT_PART_DETAIL);
}

/* For a view, which soon ends, threads that most often have nothing to do are not worth their
 * start. */
static bool shares_thread(const struct takt_machine_config *config,
			  const struct takt_source *source)
{
	return config->for_view && source->gpu_count > 1;
}

static int start_workers(struct takt_machine *machine, struct takt_source *source,
			 const struct takt_machine_config *config, struct takt_err *err)
{
	uint32_t mask = part_mask(config);

	machine->gpus = takt_calloc(source->gpu_count + 1, sizeof(machine->gpus[0]));
	if (!machine->gpus)
		return takt_err_set(err, -ENOMEM, "%" PRIu32 " GPUs", source->gpu_count);
	for (uint32_t g = 0; g < source->gpu_count; g++) {
		struct takt_worker **worker = &machine->gpus[g].worker;
		int rc = takt_worker_new(source, machine->wake, g, mask, worker, err);

		if (rc < 0)
			return rc;
		machine->gpu_count++;
		(*worker)->falling_ns = machine->info.wake_ns;
		if (!shares_thread(config, source))
			rc = takt_worker_start(*worker, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* One GPU is nothing to go round. */
static int start_rounds(struct takt_machine *machine, struct takt_source *source, bool reads_facts,
			struct takt_err *err)
{
	struct takt_worker *workers[TAKT_DEVICE_MAX_GPUS];

	for (uint32_t g = 0; g < machine->gpu_count; g++)
		workers[g] = machine->gpus[g].worker;
	return machine->gpu_count < 2 ? 0
				      : takt_rounds_start(source, workers, machine->gpu_count,
							  reads_facts, &machine->rounds, err);
}

static bool comes_before(const struct gpu *a, const struct gpu *b)
{
	return takt_pci_id_compare(a->facts.pci_bus_id, b->facts.pci_bus_id) < 0;
}

static bool all_known(const struct takt_machine *machine)
{
	for (uint32_t g = 0; g < machine->gpu_count; g++)
		if (!(machine->gpus[g].facts.has & TAKT_FACT_PCI))
			return false;
	return true;
}

/* Insertion keeps the source's order among equals and needs no memory. Where one did not say who it
 * is, the source's order stands: it is the bus order on every driver that we know, while a wrong
 * place for one would give all behind it the number of another. */
static void sort_gpus(struct takt_machine *machine)
{
	if (!all_known(machine))
		return;
	for (uint32_t i = 1; i < machine->gpu_count; i++) {
		for (uint32_t j = i; j > 0; j--) {
			struct gpu *left = &machine->gpus[j - 1];
			struct gpu *right = &machine->gpus[j];
			struct gpu swap = *left;

			if (!comes_before(right, left))
				break;
			*left = *right;
			*right = swap;
		}
	}
}

static bool board_is_simulated(const struct takt_gpu_facts *facts)
{
	return ((facts->has & TAKT_FACT_SERIAL) && strstr(facts->serial, "TWIN")) ||
	       ((facts->has & TAKT_FACT_VBIOS) && strstr(facts->vbios, "TWIN"));
}

/* What the first round has not come to by then, each GPU's own thread reads. */
static void await_facts_round(struct takt_machine *machine)
{
	if (takt_rounds_await(machine->rounds, in(facts_round_ns)))
		return;
	for (uint32_t g = 0; g < machine->gpu_count; g++)
		(void)takt_worker_start(machine->gpus[g].worker, NULL);
}

static void gather_facts(struct takt_machine *machine, struct takt_mono deadline)
{
	/* The last one to be started first, so that this thread seldom wakes for each. */
	for (uint32_t g = machine->gpu_count; g > 0; g--) {
		struct gpu *gpu = &machine->gpus[g - 1];

		gpu->answers = takt_worker_facts(gpu->worker, deadline, &gpu->facts);
		machine->info.simulated |= board_is_simulated(&gpu->facts);
	}
	sort_gpus(machine);
}

/* What one side did not answer is taken from the other. */
static void merge_links(struct takt_gpu_link *a, struct takt_gpu_link *b)
{
	struct takt_gpu_link both = {
		.pcie = a->pcie ? a->pcie : b->pcie,
		.nvlinks = a->nvlinks > b->nvlinks ? a->nvlinks : b->nvlinks,
	};

	*a = *b = both;
}

static void gather_links(struct takt_machine *machine, struct takt_mono deadline)
{
	struct takt_gpu_link links[TAKT_DEVICE_MAX_GPUS];

	for (uint32_t g = 0; g < machine->gpu_count; g++)
		takt_worker_ask_links(machine->gpus[g].worker);
	for (uint32_t g = 0; g < machine->gpu_count; g++) {
		struct gpu *gpu = &machine->gpus[g];

		/* A GPU that used up the time for facts is not waited for again. */
		takt_worker_links(gpu->worker, gpu->answers ? deadline : (struct takt_mono){0},
				  links);
		for (uint32_t o = 0; o < machine->gpu_count; o++)
			gpu->links[o] = links[machine->gpus[o].worker->at_source];
	}
	for (uint32_t a = 0; a < machine->gpu_count; a++)
		for (uint32_t b = a + 1; b < machine->gpu_count; b++)
			merge_links(&machine->gpus[a].links[b], &machine->gpus[b].links[a]);
}

static int open_driver(const struct takt_machine_config *config, uint64_t deadline_ns,
		       struct takt_source **ret, struct takt_err *err)
{
	if (config->leaves_asleep &&
	    takt_sysfs_all_asleep(config->sysfs_root ? config->sysfs_root : "/sys"))
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "every GPU is suspended, and is left so until something uses "
				    "it");
	return takt_source_open(&takt_source_nvml, config, deadline_ns, ret, err);
}

static int open_source(const struct takt_machine_config *config, struct takt_machine *machine,
		       struct takt_source **ret, struct takt_err *err)
{
	uint64_t deadline_ns = or_default(config->init_deadline_ns, default_init_ns);
	struct takt_err why = {0};
	int rc;

	switch (config->source) {
	case TAKT_SOURCE_NVML:
		return open_driver(config, deadline_ns, ret, err);
	case TAKT_SOURCE_REPLAY:
		return takt_source_open(&takt_source_replay, config, deadline_ns, ret, err);
	case TAKT_SOURCE_NONE:
		takt_strcpy(machine->info.why_none, sizeof(machine->info.why_none),
			    "no source was asked for");
		return takt_source_open(&takt_source_none, config, deadline_ns, ret, err);
	case TAKT_SOURCE_AUTO:
		rc = open_driver(config, deadline_ns, ret, &why);
		if (rc == 0 || rc == -ENOMEM)
			return rc < 0 ? takt_err_set(err, rc, "%s", why.msg) : 0;
		takt_strcpy(machine->info.why_none, sizeof(machine->info.why_none), why.msg);
		return takt_source_open(&takt_source_none, config, deadline_ns, ret, err);
	}
	return takt_err_set(err, -EINVAL, "unknown source %d", (int)config->source);
}

static int open_into(struct takt_machine *machine, const struct takt_machine_config *config,
		     struct takt_err *err)
{
	struct takt_source *source = NULL;
	uint64_t facts_ns = or_default(config->facts_deadline_ns, default_facts_ns);
	bool shared;
	int rc;

	rc = open_source(config, machine, &source, err);
	if (rc < 0)
		return rc;
	describe(machine, source);
	shared = shares_thread(config, source);
	rc = start_workers(machine, source, config, err);
	if (rc == 0)
		rc = start_rounds(machine, source, shared, err);
	/* From now on the threads hold the source: the last of them closes it. */
	takt_source_unref(source);
	if (rc < 0)
		return rc;
	if (shared)
		await_facts_round(machine);
	gather_facts(machine, in(facts_ns));
	if (!config->no_links)
		gather_links(machine, in(facts_ns));
	return 0;
}

int takt_machine_open(const struct takt_machine_config *config, struct takt_machine **ret,
		      struct takt_err *err)
{
	struct takt_machine *machine = takt_zalloc(sizeof(*machine));
	int rc;

	if (machine)
		machine->wake = takt_wake_new();
	if (!machine || !machine->wake) {
		takt_free(machine);
		return takt_err_set(err, -ENOMEM, "machine");
	}
	machine->info.stale_ns = or_default(config->call_deadline_ns, default_stale_ns);
	machine->info.wake_ns = or_default(config->wake_deadline_ns, default_wake_ns);
	if (machine->info.wake_ns < machine->info.stale_ns)
		machine->info.wake_ns = machine->info.stale_ns;
	rc = open_into(machine, config, err);
	if (rc < 0) {
		takt_machine_close(machine);
		return rc;
	}
	*ret = machine;
	return 0;
}

void takt_machine_close(struct takt_machine *machine)
{
	struct takt_mono deadline;

	if (!machine)
		return;
	takt_wake_set_fd(machine->wake, -1);
	deadline = in(close_ns);
	takt_rounds_stop(machine->rounds, deadline);
	for (uint32_t g = 0; g < machine->gpu_count; g++)
		takt_worker_stop(machine->gpus[g].worker);
	for (uint32_t g = 0; g < machine->gpu_count; g++)
		takt_worker_join(machine->gpus[g].worker, deadline);
	takt_wake_unref(machine->wake);
	takt_free(machine->gpus);
	takt_free(machine);
}

const struct takt_machine_info *takt_machine_info(const struct takt_machine *machine)
{
	return &machine->info;
}

const struct takt_gpu_facts *takt_machine_facts(const struct takt_machine *machine, uint32_t gpu)
{
	return gpu < machine->gpu_count ? &machine->gpus[gpu].facts : NULL;
}

bool takt_machine_knows_more(struct takt_machine *machine)
{
	struct takt_gpu_facts facts;

	for (uint32_t g = 0; g < machine->gpu_count; g++)
		if (!machine->gpus[g].answers &&
		    takt_worker_facts(machine->gpus[g].worker, (struct takt_mono){0}, &facts) &&
		    (facts.has & TAKT_FACT_UUID))
			return true;
	return false;
}

bool takt_machine_driver_is_gone(struct takt_machine *machine)
{
	bool gone = false;

	for (uint32_t g = 0; g < machine->gpu_count; g++) {
		enum takt_word word =
			takt_worker_word(machine->gpus[g].worker, machine->info.stale_ns);

		if (word == TAKT_WORD_THERE)
			return false;
		gone = gone || word == TAKT_WORD_GONE;
	}
	return gone;
}

void takt_machine_look_at_mig(struct takt_machine *machine, uint32_t gpu)
{
	if (gpu < machine->gpu_count && machine->gpus[gpu].answers)
		takt_worker_ask_mig(machine->gpus[gpu].worker);
}

bool takt_machine_seen_mig(struct takt_machine *machine, uint32_t gpu)
{
	return gpu < machine->gpu_count &&
	       takt_worker_seen_mig(machine->gpus[gpu].worker, &machine->gpus[gpu].facts);
}

struct takt_gpu_link takt_machine_link(const struct takt_machine *machine, uint32_t a, uint32_t b)
{
	if (a >= machine->gpu_count || b >= machine->gpu_count)
		return (struct takt_gpu_link){0};
	return machine->gpus[a].links[b];
}

static bool is_asked(uint32_t g, uint32_t gpu)
{
	return gpu == UINT32_MAX || gpu == g;
}

static void announce(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_mono now = takt_mono_now(takt_sys_real());

	for (uint32_t g = 0; g < machine->gpu_count; g++)
		if (is_asked(g, gpu))
			takt_worker_announce(machine->gpus[g].worker, now);
}

void takt_machine_sample(struct takt_machine *machine, uint32_t gpu)
{
	announce(machine, gpu);
	for (uint32_t g = 0; g < machine->gpu_count; g++)
		if (is_asked(g, gpu))
			takt_worker_ask_sample(machine->gpus[g].worker);
}

/* A GPU that hangs keeps the thread that goes round; another one goes round the others, for which
 * their own threads are too dear to be woken at each tick for as long as that lasts. */
static void leave_held_up(struct takt_machine *machine)
{
	struct takt_rounds *left = machine->rounds;

	if (++machine->held_up < LEAVE_AFTER)
		return;
	machine->held_up = 0;
	machine->rounds = NULL;
	(void)start_rounds(machine, machine->gpus[0].worker->source, false, NULL);
	takt_rounds_stop(left, (struct takt_mono){0}); /* last: it may be who holds the source */
}

void takt_machine_tick(struct takt_machine *machine, uint32_t gpu)
{
	announce(machine, gpu);
	if (gpu == UINT32_MAX && machine->rounds) {
		if (takt_rounds_ask(machine->rounds)) {
			machine->held_up = 0;
			return;
		}
		leave_held_up(machine);
	}
	for (uint32_t g = 0; g < machine->gpu_count; g++)
		if (is_asked(g, gpu))
			takt_worker_ask_tick(machine->gpus[g].worker);
}

void takt_machine_energy_every(struct takt_machine *machine, uint32_t gpu, uint64_t ns)
{
	if (gpu < machine->gpu_count)
		atomic_store(&machine->gpus[gpu].worker->energy_every_ns, ns);
}

void takt_machine_read_always(struct takt_machine *machine, uint32_t gpu, bool always)
{
	if (gpu < machine->gpu_count)
		atomic_store(&machine->gpus[gpu].worker->read_always, always);
}

int takt_machine_reading(struct takt_machine *machine, uint32_t gpu, struct takt_gpu_reading *ret)
{
	if (gpu >= machine->gpu_count)
		return -EINVAL;
	return takt_worker_reading(machine->gpus[gpu].worker, &machine->info, ret);
}

int takt_machine_wait(struct takt_machine *machine, uint32_t gpu, uint64_t after_seq,
		      struct takt_mono deadline)
{
	if (gpu >= machine->gpu_count)
		return -EINVAL;
	return takt_worker_wait(machine->gpus[gpu].worker, after_seq, deadline);
}

void takt_machine_notify(struct takt_machine *machine, int eventfd)
{
	takt_wake_set_fd(machine->wake, eventfd);
}

void takt_machine_hush(struct takt_machine *machine, bool hush)
{
	atomic_store(&machine->wake->hushed, hush);
}

int takt_machine_set_post(struct takt_machine *machine, uint32_t gpu,
			  const struct takt_set_call *call, struct takt_err *err)
{
	int rc;

	if (gpu >= machine->gpu_count)
		return takt_err_set(err, -EINVAL, "GPU %" PRIu32 " of %" PRIu32, gpu,
				    machine->gpu_count);
	if (!machine->info.can_set)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "GPU %" PRIu32 " comes from '%s', which changes nothing", gpu,
				    machine->info.source);
	if ((call->op == TAKT_SET_LOCK_SM || call->op == TAKT_SET_LOCK_MEM) &&
	    (call->min_mhz == 0 || call->min_mhz > call->max_mhz))
		return takt_err_set(err, -EINVAL, "clock range %" PRIu32 " to %" PRIu32 " MHz",
				    call->min_mhz, call->max_mhz);
	if (call->op == TAKT_SET_MIG && !machine->gpus[gpu].facts.mig_enabled)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "GPU %" PRIu32 " is not in MIG mode",
				    gpu);
	rc = takt_worker_set_post(machine->gpus[gpu].worker, call);
	return rc < 0 ? takt_err_set(err, rc, "GPU %" PRIu32 " has a setter under way", gpu) : 0;
}

bool takt_machine_set_finished(struct takt_machine *machine, uint32_t gpu,
			       struct takt_err *ret_result)
{
	return gpu < machine->gpu_count &&
	       takt_worker_set_finished(machine->gpus[gpu].worker, ret_result);
}
