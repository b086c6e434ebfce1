/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's GPUs as takt sees them, for callers. Implementers read device_impl.h.
 *
 * Where the readings come from is one of: the NVIDIA driver (its library opened at run time), a
 * recording (replayed; has no setters), or nothing. Callers cannot tell and need not.
 *
 * Absence is data: every reading has a bit in `has`; a field without its bit holds no meaning. What
 * the board does not support, what was refused and what timed out all just lack the bit; `stale`
 * and `last_rc` say which.
 *
 * Threads. One worker a GPU makes every driver call of that GPU, readings and setters; no lock is
 * held across a driver call. Callers post work and read finished results; they never wait for the
 * driver unless they ask to (…_wait functions take a deadline). A GPU that hangs stalls its worker
 * alone and turns stale; a GPU that falls off the bus turns lost.
 */
#ifndef TAKT_DEVICE_DEVICE_H
#define TAKT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mig_layout.h"
#include "base/timetypes.h"
#include "device/vitals.h"

enum {
	TAKT_DEVICE_MAX_GPUS = 64,
	TAKT_DEVICE_MAX_PROCS = 128,  /* processes kept a GPU; more are counted in procs_dropped */
	TAKT_DEVICE_MAX_CLOCKS = 512, /* supported SM clocks */
	TAKT_DEVICE_MAX_MEM_CLOCKS = 32,
	TAKT_DEVICE_CPU_WORDS = 16,    /* CPU affinity mask, 64 CPUs a word */
	TAKT_DEVICE_MAX_INSTANCES = 8, /* of MIG, of a GPU */
	TAKT_DEVICE_MAX_KINDS = 16,    /* of such instances */
};

/* Facts that do not change while the driver stays loaded, but for how a GPU is cut into MIG
 * instances (takt_machine_look_at_mig). */
enum takt_gpu_fact {
	TAKT_FACT_NAME = 1u << 0,
	TAKT_FACT_UUID = 1u << 1,
	TAKT_FACT_PCI = 1u << 2,
	TAKT_FACT_SERIAL = 1u << 3,
	TAKT_FACT_VBIOS = 1u << 4,
	TAKT_FACT_MEMORY = 1u << 5,
	TAKT_FACT_NUMA = 1u << 6,
	TAKT_FACT_CPUS = 1u << 7,
	TAKT_FACT_POWER_LIMITS = 1u << 8,
	TAKT_FACT_SM_CLOCKS = 1u << 9,
	TAKT_FACT_COMPUTE_CAP = 1u << 10,
	TAKT_FACT_MINOR = 1u << 11,
	TAKT_FACT_SM_MAX = 1u << 12,
	TAKT_FACT_THROTTLE_TEMP = 1u << 13,
	TAKT_FACT_MIG = 1u << 14,
	TAKT_FACT_MEM_CLOCKS = 1u << 15,
	TAKT_FACT_PCIE_MAX = 1u << 16,
	TAKT_FACT_TEMP_MAX = 1u << 17,
	TAKT_FACT_MEM_TEMP_MAX = 1u << 18,
};

/* A MIG instance: a device of its own to programs, by its UUID. */
struct takt_gpu_instance {
	char uuid[96];
	char profile[32]; /* "1g.10gb" */
	uint32_t slices;  /* of computing */
	uint64_t memory_bytes;
	int32_t gi, ci; /* which GPU instance, and compute instance of it; -1 = not known */
};

/* A kind of instance that the GPU may be cut into. */
struct takt_gpu_kind {
	char name[32]; /* "1g.10gb" */
	uint32_t slices;
	uint32_t memory_mib;
};

struct takt_gpu_facts {
	uint32_t has; /* enum takt_gpu_fact */
	char name[96];
	char uuid[96];
	char pci_bus_id[32]; /* "00000000:07:00.0", upper-case hex as the driver prints it */
	char serial[32];
	char vbios[32];
	uint64_t memory_total_bytes;
	int32_t numa_node;
	uint64_t cpus[TAKT_DEVICE_CPU_WORDS]; /* affinity: bit c of word c/64 */
	uint32_t power_min_mw, power_max_mw, power_default_mw;
	uint32_t sm_clock_count;
	uint32_t sm_clocks_mhz[TAKT_DEVICE_MAX_CLOCKS]; /* ascending, at the highest memory clock */
	uint32_t mem_clock_count;
	uint32_t mem_clocks_mhz[TAKT_DEVICE_MAX_MEM_CLOCKS]; /* ascending */
	uint32_t sm_max_mhz;
	uint32_t compute_major, compute_minor;
	uint32_t minor;		 /* /dev/nvidiaN */
	int32_t slowdown_temp_c; /* absolute temperature of thermal slowdown */
	/* Highest temperatures that the GPU and its memory are to work at. */
	int32_t temp_max_c, mem_temp_max_c;
	uint32_t pcie_gen_max, pcie_width_max; /* of board and slot together */
	bool mig_enabled;
	uint32_t instance_count; /* with MIG */
	struct takt_gpu_instance instances[TAKT_DEVICE_MAX_INSTANCES];
	char mig_layout[TAKT_MIG_TEXT]; /* base/mig_layout.h, by places; "" = not known */
	uint32_t kind_count;		/* with MIG */
	struct takt_gpu_kind kinds[TAKT_DEVICE_MAX_KINDS];
};

enum takt_gpu_has {
	TAKT_HAS_SM_CLOCK = 1u << 0,
	TAKT_HAS_MEM_CLOCK = 1u << 1,
	TAKT_HAS_POWER = 1u << 2,
	TAKT_HAS_POWER_LIMIT = 1u << 3,
	TAKT_HAS_TEMP = 1u << 4,
	TAKT_HAS_GPU_UTIL = 1u << 5,
	TAKT_HAS_MEM_UTIL = 1u << 6,
	TAKT_HAS_MEMORY = 1u << 7,
	TAKT_HAS_RESERVED = 1u << 8,
	TAKT_HAS_ENERGY = 1u << 9,
	TAKT_HAS_THROTTLE = 1u << 10,
	TAKT_HAS_FAN = 1u << 11,
	TAKT_HAS_PSTATE = 1u << 12,
	TAKT_HAS_PCIE = 1u << 13,
	TAKT_HAS_PROCS = 1u << 14,
	TAKT_HAS_ENC_DEC = 1u << 15,
	TAKT_HAS_PCIE_REPLAY = 1u << 16,
	TAKT_HAS_POWER_ENFORCED = 1u << 17,
	TAKT_HAS_ECC = 1u << 18,
	TAKT_HAS_PERSISTENCE = 1u << 19,
};

/* Bits of throttle reasons, as NVML numbers them. */
enum takt_throttle {
	TAKT_THROTTLE_IDLE = 0x1,
	TAKT_THROTTLE_APP_CLOCKS = 0x2,
	TAKT_THROTTLE_SW_POWER = 0x4,
	TAKT_THROTTLE_HW_SLOWDOWN = 0x8,
	TAKT_THROTTLE_SYNC_BOOST = 0x10,
	TAKT_THROTTLE_SW_THERMAL = 0x20,
	TAKT_THROTTLE_HW_THERMAL = 0x40,
	TAKT_THROTTLE_POWER_BRAKE = 0x80,
	TAKT_THROTTLE_DISPLAY = 0x100,
};
/* "sw_power_cap" and so on for one bit; NULL for an unknown bit. */
const char *takt_throttle_name(uint64_t bit);

struct takt_gpu_proc {
	int32_t pid;
	bool memory_known;
	uint64_t memory_bytes;
	bool graphics; /* listed as a graphics client only */
	/* Its own part of the GPU's time, and of the memory's, over the driver's last second or so.
	 */
	bool util_known;
	uint32_t sm_util_pct, mem_util_pct;
};

struct takt_gpu_reading {
	/* When the last call of the newest sample of which one was answered returned; 0 = of none
	 * was. One without an answer has no values, lacks `lost` and leaves this as it was. */
	struct takt_mono at;
	struct takt_mono slow_at; /* the slow part (below) is no older than this; 0 = never read */
	uint64_t seq;		  /* 1, 2, ...: rises with every finished sample of this GPU */
	uint32_t has;		  /* enum takt_gpu_has */
	int32_t last_rc; /* 0, or why the sample is incomplete: -ENODEV lost, -ETIMEDOUT hanging,
			    ... */
	bool stale;	 /* as takt_reading_is_stale says, or the driver is silent for as long */
	bool lost;
	/* The kernel has suspended it, and the machine leaves_asleep: nothing was read, and it is
	 * neither stale nor lost. awake_at: when its last sample before that was taken; 0 = none
	 * was. */
	bool asleep;
	struct takt_mono awake_at;
	uint32_t sm_mhz, mem_mhz;
	uint32_t power_mw;
	uint32_t power_limit_mw;    /* the limit asked for: what a setter changes and puts back */
	uint32_t power_enforced_mw; /* the limit in force; lower when somebody else set one too */
	int32_t temp_c;
	uint32_t gpu_util_pct, mem_util_pct;
	uint64_t mem_used_bytes, mem_free_bytes, mem_reserved_bytes;
	/* Since driver load, monotonic until reload. Where the driver takes long to tell, it is
	 * kept from sample to sample: takt_machine_energy_every. */
	uint64_t energy_mj;
	struct takt_mono energy_at; /* when it was read */
	uint64_t energy_took_ns;    /* the driver, for that; 0 = not measured */
	uint64_t throttle;	    /* enum takt_throttle */
	uint32_t fan_pct, pstate, pcie_gen, pcie_width, enc_util_pct, dec_util_pct;
	uint64_t pcie_replay;
	bool persistence; /* the driver keeps the board set up while nobody has it open */
	/* Memory errors since the driver was loaded; only of a machine that counts_errors. */
	uint64_t ecc_corrected, ecc_uncorrected;
	struct takt_gpu_vitals vitals; /* only of a machine with vitals */
	uint32_t proc_count, procs_dropped;
	struct takt_gpu_proc procs[TAKT_DEVICE_MAX_PROCS]; /* ascending pid */
};

/* Link between two GPUs. */
struct takt_gpu_link {
	uint8_t pcie;	 /* enum takt_link's numbering (sched/sched.h): 0 unknown .. 6 same board */
	uint8_t nvlinks; /* active links between them, through an NVSwitch or directly */
};

struct takt_machine_info {
	uint32_t gpu_count;
	char driver_version[80]; /* "" = not known */
	char nvml_version[80];
	int32_t cuda_version; /* 12040 = 12.4; 0 = not known */
	char source[16];      /* "nvml", "replay", "none" */
	bool simulated;	      /* the boards call themselves TWIN, or the recording was of such */
	bool can_set;	      /* this source has setters at all (permission is another matter) */
	char why_none[240];   /* source "none": what was tried */
	uint64_t stale_ns;    /* a reading older than this is stale, */
	uint64_t wake_ns;     /* that of a GPU which was asleep when it was older than this */
};

struct takt_machine;

enum takt_machine_source {
	TAKT_SOURCE_AUTO,
	TAKT_SOURCE_NVML,
	TAKT_SOURCE_REPLAY,
	TAKT_SOURCE_NONE
};

struct takt_machine_config {
	enum takt_machine_source source; /* AUTO: the driver if it opens, else none */
	const char *nvml_path;		 /* NULL: libnvidia-ml.so.1 by the loader's search path */
	/* A library that the caller's environment names and this process does not load from there:
	 * told where there is no other. NULL: there is none. */
	const char *unused_nvml_path;
	const char *replay_path;   /* for REPLAY */
	uint64_t call_deadline_ns; /* a sample older than this is stale; 0 = 2 s */
	bool no_processes;	   /* leave process lists out (the actuator needs none) */
	bool no_links;		   /* leave out what joins GPUs: all links are unknown */
	bool counts_errors;	   /* samples say how many memory errors there were */
	bool vitals;		   /* samples have device/vitals.h */
	/* Facts and samples leave out what no view of a GPU (codec/views.h) shows; samples have the
	 * vitals that one does, NVLinks no newer than of some seconds: for who only shows. Links
	 * between GPUs are not known. One thread reads all GPUs; they get threads of their own
	 * once one of them holds that up. */
	bool for_view;
	uint64_t init_deadline_ns;  /* for the driver's start; 0 = 60 s (8 GPUs without persistence
				       mode need many seconds) */
	uint64_t facts_deadline_ns; /* for the facts of all GPUs, then for their links; 0 = 10 s
				       each */
	const char *sysfs_root;	    /* NULL: "/sys" */
	/* The driver is not started, as if it could not be opened, while every GPU of it is
	 * suspended (of a laptop, say): that would wake them. Else all are asked who they are when
	 * the machine is opened, which wakes those that sleep, once. From then on samples make no
	 * call about one that is suspended: its readings say `asleep`. */
	bool leaves_asleep;
	/* One that wakes, or is about to be suspended, counts as asleep for so long; 0 = 10 s. */
	uint64_t wake_deadline_ns;
	/* Called once by the opening thread while the source is being opened; NULL = none. */
	void (*meanwhile)(void);
};

/* Whether the reading is stale at that time. The first reading of a GPU that wakes takes as long as
 * the kernel needs to give it power and the driver to set it up: it has more time. */
bool takt_reading_is_stale(const struct takt_machine_info *info,
			   const struct takt_gpu_reading *reading, struct takt_mono now);

/*
 * Opens the source, readies a worker a GPU, waits for facts and links until the deadline. A GPU
 * that does not answer in time has no facts (has == 0) and comes behind the others; the rest is as
 * if it were not there. Source NVML or REPLAY that cannot be opened is -TAKT_E_UNAVAILABLE (or what
 * the file said) with the reason; AUTO turns into "none" with the reason in why_none.
 *
 * Heap object; close stops the workers (one that is stuck in the driver is abandoned, its memory
 * with it) and takes NULL.
 */
int takt_machine_open(const struct takt_machine_config *config, struct takt_machine **ret,
		      struct takt_err *err);
void takt_machine_close(struct takt_machine *machine);

const struct takt_machine_info *
takt_machine_info(const struct takt_machine *machine); /* until close */
/* Whether a GPU that did not say who it is in time when the machine was opened has done so since: a
 * machine opened anew would know it. */
bool takt_machine_knows_more(struct takt_machine *machine);
const struct takt_gpu_facts *takt_machine_facts(const struct takt_machine *machine, uint32_t gpu);
/*
 * Whether the driver, which answered before, has answered no call about any GPU for as long as
 * makes a reading stale: it was taken away, or loaded anew, and what this process has of it is of
 * no use for ever. Only a program that starts anew meets the driver that there is (driver_look.h).
 * One that hangs, or says that GPUs are lost, is there.
 */
bool takt_machine_driver_is_gone(struct takt_machine *machine);

/* Has the GPU asked how it is cut now; returns at once. The eventfd of takt_machine_notify is
 * written when it has answered. */
void takt_machine_look_at_mig(struct takt_machine *machine, uint32_t gpu);
/* True once for each such answer, to looks that were asked for before it began: what the facts say
 * of MIG is then what was answered. */
bool takt_machine_seen_mig(struct takt_machine *machine, uint32_t gpu);
struct takt_gpu_link takt_machine_link(const struct takt_machine *machine, uint32_t a, uint32_t b);

/* GPUs are in PCI bus order; index = position in CUDA_VISIBLE_DEVICES under PCI_BUS_ID order. */

/*
 * Two requests to the worker of one GPU (or all, gpu == UINT32_MAX); both return at once.
 *
 * sample: everything, process list included, read after this call: a sample already under way does
 * not count, and several requests meanwhile become one. To know that a process list was read after
 * an event, look at slow_at.
 *
 * tick: what changes fast (SM clock, power, energy, temperature, utilisation, memory, throttle
 * reasons). The slow part (processes, memory clock, limits, fan, performance state, PCIe, video
 * engines, vitals) is read again when it is a second old, and kept from the last time otherwise.
 * Dropped while a sample is under way, so that ticks never pile up behind a slow driver.
 */
void takt_machine_sample(struct takt_machine *machine, uint32_t gpu);
void takt_machine_tick(struct takt_machine *machine, uint32_t gpu);

/*
 * How old the energy counter may get between ticks on a GPU whose driver takes long to tell it
 * (4 ms of CPU time a call on an H200); a second until it is said. Where it takes no longer than
 * other readings every tick reads it, and a sample always does.
 */
void takt_machine_energy_every(struct takt_machine *machine, uint32_t gpu, uint64_t ns);

/* Whether the GPU is sampled even while it is suspended, which wakes it. Not so until it is said.
 * Counts from the next sample on that is begun. */
void takt_machine_read_always(struct takt_machine *machine, uint32_t gpu, bool always);

/* Copy of the newest finished sample. Never waits for the driver. -EAGAIN before the first. */
int takt_machine_reading(struct takt_machine *machine, uint32_t gpu, struct takt_gpu_reading *ret);

/* Wait until GPU's sample `seq` is past `after_seq` or the deadline (CLOCK_MONOTONIC) is over:
 * -ETIMEDOUT. */
int takt_machine_wait(struct takt_machine *machine, uint32_t gpu, uint64_t after_seq,
		      struct takt_mono deadline);

/*
 * Wake-up of a caller's loop: written to (eventfd) when samples have finished; -1 disables. GPUs
 * that were asked together and answer together wake the caller once; one that is late by 20 ms or
 * more does not hold the news of the others back beyond their next sample. Borrowed until close.
 */
void takt_machine_notify(struct takt_machine *machine, int eventfd);
/* No waking for samples while it is hushed: for a caller who looks when it asks for the next ones,
 * and is in no hurry. */
void takt_machine_hush(struct takt_machine *machine, bool hush);

/*
 * Write the machine's facts, links and `samples` samples of every GPU, interval_ms apart, to a
 * recording (the format is described in recording.h); blocks for as long as that takes. A GPU that
 * does not answer in time is recorded as such. anonymous: serial numbers and UUIDs are replaced by
 * numbers, host processes by 1, 2, ...
 */
struct takt_record_options {
	uint32_t samples;     /* 0 = 1 */
	uint32_t interval_ms; /* 0 = 100 */
	bool anonymous;
};
int takt_machine_record(struct takt_machine *machine, const struct takt_record_options *options,
			FILE *out, struct takt_err *err);

/* What changes a GPU is declared in device/device_set.h, for src/actuate alone. */

#endif
