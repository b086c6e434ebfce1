/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a simulated machine looks like in its file, and therefore in the memory of every process
 * that maps it.
 *
 * The file has a fixed part (the machine: written once by `takt-twin create`, never changed) and a
 * slot a GPU. A slot holds two copies of the GPU's state and a number: the copy (number % 2) is in
 * force. A writer takes an OFD lock on the byte of that GPU, fills the other copy and raises the
 * number; a reader copies the one in force and looks whether the number moved meanwhile. So readers
 * never wait, a writer that is killed half-way leaves nothing but a copy that nobody looks at, and
 * its lock is freed by the kernel (twin_shared.h).
 *
 * A copy is the state at the moment `at_ns`; what it has become since is computed by whoever looks
 * (twin_physics.h). All state is integer arithmetic, so every process computes the same.
 *
 * Everything is plain data without pointers. A change of any struct here raises TWIN_LAYOUT.
 */
#ifndef TAKT_TWIN_LAYOUT_H
#define TAKT_TWIN_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TWIN_LAYOUT = 9,
	TWIN_MAX_GPUS = 64,  /* as many as a mask of 64 bits names */
	TWIN_MAX_LOADS = 32, /* processes a GPU */
	TWIN_MAX_LINKS = 18,
	TWIN_COUNTED_LINKS = 6, /* of boards whose links have utilisation counters: V100 */
	TWIN_MAX_CLOCKS = 512,
	TWIN_MAX_MEMORY_CLOCKS = 8,
	TWIN_MAX_PHASES = 8, /* of a workload's step */
	TWIN_ROWS = 16,	     /* of a measured workload */
	TWIN_CPU_WORDS = 16, /* 1024 CPUs */
	TWIN_CELLS = 10,     /* cells kept: the window of averages */
	TWIN_MIG_PROFILES = 8,
	TWIN_MIG_SLICES = 8,   /* slices of memory; the first seven are slices of computing, too */
	TWIN_EVENTS = 16,      /* kept for those who wait: older ones are lost to them */
	TWIN_ACCOUNTS = 64,    /* ended processes that accounting remembers */
	TWIN_PLANNED = 64,     /* faults of a GPU that are still to come */
	TWIN_STRETCHES = 4,    /* of the machine's clock that are kept */
	TWIN_PERMISSIONS = 24, /* functions with a rule of their own */
	TWIN_BOOT_ID = 40,
};

/* Time advances in cells of 100 ms, the period in which the boards update their energy counter.
 * Temperature changes from cell to cell and not within one. */
#define TWIN_CELL_NS 100000000ull
/* How long the memory of an ended process stays taken, as on real drivers. */
#define TWIN_MEMORY_LAG_NS 80000000ull

#define TWIN_MAGIC "TAKTTWIN"

enum twin_feature {
	TWIN_HAS_ROW_REMAP = 1u << 0,
	TWIN_HAS_RETIRED_PAGES = 1u << 1,
	TWIN_HAS_T_LIMIT = 1u << 2,
	TWIN_HAS_POWER_AVERAGE = 1u << 3, /* power is a mean of 1 s; else of the last cell */
	TWIN_HAS_MIG = 1u << 4,
	TWIN_HAS_MEMORY_LOCK = 1u << 5,
	TWIN_HAS_FABRIC = 1u << 6,
	TWIN_HAS_SRAM_STATUS = 1u << 7,
	TWIN_HAS_JPEG_OFA = 1u << 8,
	TWIN_HAS_CONF_COMPUTE = 1u << 9,
	TWIN_HAS_GSP = 1u << 10,
	TWIN_HAS_MEMORY_TEMP = 1u << 11,
	TWIN_HAS_MEMORY_POWER = 1u << 12,
	TWIN_HAS_ECC = 1u << 13,
	TWIN_HAS_SERIAL = 1u << 14,
	TWIN_HAS_MEMORY_MAX = 1u << 15, /* a threshold of the memory's temperature */
	TWIN_HAS_PCIE_REST = 1u << 16,	/* the bus falls back to generation 1 when at rest */
};

/* A memory clock, and the highest SM clock that goes with it. */
struct twin_memory_clock {
	uint32_t mhz, sm_max_mhz;
};

/* A way to cut a GPU instance. It may start at each multiple of `size` where its slices of
 * computing fit: start + slices <= 7. */
struct twin_mig_profile {
	uint32_t id;	 /* what clients create it by */
	uint32_t number; /* NVML_GPU_INSTANCE_PROFILE_...: what clients ask for it by */
	uint32_t slices; /* of computing */
	uint32_t size;	 /* slices of memory */
	uint32_t count;	 /* at most so many at a time */
	uint32_t multiprocessors, copies, decoders, jpegs, ofas, memory_mib;
};

/* A board type, from twin/boards. */
struct twin_board {
	char id[32];
	char name[64];
	char part[32];
	char vbios[32];
	char inforom[16];
	uint32_t features; /* enum twin_feature */
	uint32_t brand, arch, compute_major, compute_minor, cores, bus_width;
	uint32_t pci_device, pci_subsystem, pcie_gen, pcie_width;
	uint32_t memory_mib, reserved_mib, bar1_mib;
	uint32_t nvlinks, nvlink_version, nvlink_mbps;
	uint32_t c2c_links;   /* to a CPU on the same module; 0: none there */
	uint32_t clock_count; /* of sm_mhz, ascending */
	uint16_t sm_mhz[TWIN_MAX_CLOCKS];
	uint32_t memory_count;
	struct twin_memory_clock memory[TWIN_MAX_MEMORY_CLOCKS]; /* descending */
	uint32_t idle_mhz, application_mhz, idle_memory_mhz, video_idle_mhz, video_max_mhz;
	uint32_t busy_memory_mhz; /* 0 = the highest */
	uint32_t memory_busy_mw;  /* what its memory's rail reports more when kernels run */
	uint32_t idle_pstate, busy_pstate;
	uint32_t power_min_mw, power_default_mw, power_max_mw;
	uint32_t module_rest_mw, module_limit_mw[3]; /* min, default, max; no max: has no module */
	uint32_t idle_mw, held_mw, dynamic_mw, memory_mw, memory_idle_mw, leak_mw_per_k;
	uint32_t slope_permille, floor_permille;
	uint32_t ambient_c, k_per_kw, tau_ms;
	uint32_t fans, fan_min_percent, fan_start_c, fan_k_per_kw; /* 0 fans: the machine's */
	uint32_t gpu_max_c, slowdown_c, shutdown_c, memory_max_c;
	uint32_t memory_temp_permille, memory_temp_plus_c;
	uint32_t remap_banks, nvswitch_device;
	/* of readings (twin_noise.h): power at rest and beyond, the temperature, a held clock */
	uint32_t noise_power_permille[2], noise_temp_mc, noise_clock_permille;
	char oem[8], ecc[8];  /* versions of inforom objects */
	int32_t t_limit_c[4]; /* shutdown, slowdown, memory, GPU */
	uint32_t mig_count;
	struct twin_mig_profile mig[TWIN_MIG_PROFILES];
};

struct twin_link {
	uint8_t to_switch; /* else to a GPU */
	uint8_t end;	   /* PCI bus of the switch, index of the GPU */
};

/* A compute instance: at its first slice in its GPU instance. Free if it has no slices. */
struct twin_compute_instance {
	uint8_t slices, id;
};

/* A GPU instance: at its first slice of memory. Free if it is not in use. */
struct twin_gpu_instance {
	uint8_t used;
	uint8_t profile; /* index into the board's */
	struct twin_compute_instance compute[TWIN_MIG_SLICES - 1];
};

/* A place on the PCI bus; the function is always 0. */
struct twin_pci {
	uint32_t domain, bus, slot;
};

/* One GPU of a machine. Handles of clients point at these. */
struct twin_gpu_desc {
	char uuid[48];
	char serial[24];
	uint32_t index, module, numa;
	struct twin_pci pci;
	uint32_t clique; /* in its fabric: GPUs of one clique reach each other over NVLink */
	uint64_t cpus[TWIN_CPU_WORDS];
	uint32_t link_count;
	struct twin_link links[TWIN_MAX_LINKS];
	uint8_t ancestor[TWIN_MAX_GPUS]; /* PCIe level to each GPU, as NVML numbers them */
	/* how it is cut when it is made: MIG mode is on if it is at all */
	uint32_t cut;
	struct twin_gpu_instance instances[TWIN_MIG_SLICES];
};

/* Who may make a call that changes something. */
enum twin_permit {
	TWIN_PERMIT_OWNER, /* of the machine's file, and root */
	TWIN_PERMIT_ROOT,
	TWIN_PERMIT_ANYONE,
	TWIN_PERMIT_NOBODY,
	TWIN_PERMITS
};

/* Of one function, by name. */
struct twin_permission {
	char function[60];
	uint32_t permit;
};

struct twin_machine {
	char name[32];
	char driver_branch[8]; /* the library to be used with it */
	char driver_version[32];
	uint32_t cuda_version; /* 12040 = 12.4 */
	uint32_t gpu_count;
	struct twin_board board;
	struct twin_gpu_desc gpus[TWIN_MAX_GPUS];
	/* simulated permission: it protects nothing */
	uint32_t permit; /* of functions that are not named */
	uint32_t open_apis;
	uint32_t permission_count, pad;
	struct twin_permission permissions[TWIN_PERMISSIONS];
};

enum twin_phase_kind {
	TWIN_PHASE_COMPUTE,
	TWIN_PHASE_MEMORY,
	TWIN_PHASE_COMMUNICATION, /* between the GPUs of a job; a job on one GPU has none */
	TWIN_PHASE_HOST,	  /* the GPU waits for the program */
};

/* A part of a workload's step: what it asks of a GPU and how it answers to the clock. Permille of
 * what the board can. */
struct twin_phase {
	uint16_t kind;	       /* enum twin_phase_kind */
	uint16_t share;	       /* of the step's time alone at the highest clocks */
	uint16_t util;	       /* part of the time that a kernel runs */
	uint16_t memory_util;  /* bandwidth */
	uint16_t activity;     /* switching activity of the SMs */
	uint16_t clock_weight; /* a in: time = 1 + a (fmax/f - 1) + (1 - a) (memory's stretch) */
	uint16_t bus;	       /* of a host phase: part that is copying over PCI Express */
	uint16_t tensor;       /* part of the time in which the tensor cores work */
};

/* What was measured of a workload at a clock. */
struct twin_row {
	uint32_t mhz;
	uint32_t time; /* millionths of that at the highest clock */
	uint32_t power_mw;
	uint32_t limit_mw; /* the lowest limit that lets it have that clock: its peaks, if measured
			    */
};

/* A workload: its step is its phases, one after the other. Communication comes on top of the
 * others' 1000 permille. */
struct twin_profile {
	char name[16];
	uint32_t step_ms, memory_mib; /* when the command line says nothing */
	uint32_t leak_mib;	      /* taken more with each step */
	/* steps differ: their speed by a standard deviation, and some, by chance, go at a pace of
	 * their own; permille all three */
	uint32_t jitter, slow_chance, slow_pace;
	uint32_t phase_count;
	struct twin_phase phases[TWIN_MAX_PHASES];
	/* a measured workload has one phase, and these in place of activity and clock_weight */
	uint32_t row_count;
	struct twin_row rows[TWIN_ROWS]; /* clocks rise, power and limits never fall */
};

/* Something that a client may wait for. */
struct twin_event {
	uint64_t at_ns;
	uint64_t type; /* NVML_EVENT_... */
	uint64_t data; /* number of an XID */
	/* of the instances in which it came about; NVML_NO_VALUE_U32: in none */
	uint32_t gpu_instance, compute_instance;
};

/* Counters that only grow, of permille times nanoseconds: time in which kernels ran, bandwidth of
 * the memory and of the NVLinks that was used, time in which tensor cores worked. */
struct twin_counters {
	uint64_t busy, memory, link, tensor;
};

/* What accounting says of a process that has ended. */
struct twin_account {
	int32_t pid;
	uint16_t busy_permille, memory_permille; /* over its life */
	uint64_t max_memory_bytes, started_ns, ended_ns;
};

/* What can go wrong with a GPU: a kind and what it needs (twin_trouble.h). Part of the file, so
 * only added to at the end. */
enum twin_trouble {
	TWIN_TROUBLE_NONE, /* all well again */
	TWIN_TROUBLE_FORGET,
	TWIN_TROUBLE_LOST,
	TWIN_TROUBLE_HANG,
	TWIN_TROUBLE_SLOW,
	TWIN_TROUBLE_PERMISSION,
	TWIN_TROUBLE_RESTORE_REFUSED,
	TWIN_TROUBLE_XID,
	TWIN_TROUBLE_ECC,
	TWIN_TROUBLE_ECC_CORRECTED,
	TWIN_TROUBLE_REMAP_FAILED,
	TWIN_TROUBLE_POWER_BRAKE,
	TWIN_TROUBLE_AIR,
	TWIN_TROUBLE_FAN_STUCK,
	TWIN_TROUBLE_OVERHEATED,
	TWIN_TROUBLE_PCIE_WIDTH,
	TWIN_TROUBLE_PCIE_GEN,
	TWIN_TROUBLE_LINK_DOWN,
	TWIN_TROUBLE_RELOAD,
	TWIN_TROUBLE_COUNT,
};

/* A fault that comes about by itself, whoever planned it may be gone. */
struct twin_planned {
	uint64_t at_ns, value;
	uint32_t trouble, pad; /* enum twin_trouble */
};

/* One process on one GPU. A free entry has pid 0. */
struct twin_load {
	int32_t pid;
	uint32_t pid_namespace; /* in which pid is its number; only there can it be found dead */
	uint64_t start_ticks;	/* of the process: field 22 of its stat file */
	uint64_t memory_bytes;
	uint64_t lease_until_ns; /* computes until here unless renewed: a killed load stops */
	uint64_t gone_ns;	 /* found dead at this moment; 0 = living */
	uint64_t step_ns;	 /* a step alone at the highest clocks, without communication */
	uint64_t work_ns;	 /* progress, in time that it would take under those conditions */
	uint64_t work_rest;	 /* billionth parts of a nanosecond of work */
	uint64_t work_limit_ns;	 /* waits here for the other GPUs of its job; 0 = nobody to wait for
				  */
	uint32_t pace_permille;	 /* below 1000: a straggler */
	uint32_t link_permille;	 /* speed of communication, of what this machine's best set has */
	uint32_t failed_xid;	 /* an error took its work away; 0 = none */
	uint32_t pad;
	uint64_t seed; /* of how its steps differ */
	struct twin_profile profile;
	/* where it runs, when the GPU is cut: starts of the instances, and what part of the GPU's
	 * computing that is; whole is 1000 */
	uint8_t in_instance, gpu_instance, compute_instance;
	uint8_t accounted; /* accounting was on when it began */
	uint32_t part_permille;
	/* what accounting says of it */
	uint64_t started_ns, max_memory_bytes;
	struct twin_counters used;
};

/* The state of a GPU at `at_ns`, in the machine's time (twin_clock.h). */
struct twin_gpu {
	uint64_t at_ns;
	int64_t temp_uc;    /* millionths of a degree Celsius */
	uint64_t energy_nj; /* up to the last full cell */
	/* What the board's counter shows: one cell less. A change takes effect at a moment and is
	 * seen a little later; the cell in between keeps the counter from ever going back. */
	uint64_t counter_nj;

	/* the present cell so far */
	uint64_t cell_uw_ns, cell_util_ns, cell_memory_ns;
	/* the last full cells; `cells` counts them all, the newest is at (cells - 1) % TWIN_CELLS
	 */
	uint64_t cells;
	uint32_t power_uw[TWIN_CELLS];
	uint16_t util[TWIN_CELLS], memory_util[TWIN_CELLS];
	uint16_t sm_mhz[TWIN_CELLS], memory_mhz[TWIN_CELLS]; /* at the cell's end */

	/* of the whole GPU, and of each GPU instance by its start; since the driver's load */
	struct twin_counters counters, instance_counters[TWIN_MIG_SLICES];

	uint64_t power_cap_ns, sw_thermal_ns, hw_thermal_ns, power_brake_ns; /* throttled */

	/* its place and its specimen, and what is done to it from outside */
	int64_t ambient_uc;
	uint32_t silicon_permille; /* dynamic power, of the type's */
	uint32_t airflow_permille; /* 1000 = free; less cools less */
	uint64_t noise_seed;	   /* 0 = its sensors show the truth */

	/* settings */
	uint32_t lock_min_mhz, lock_max_mhz; /* 0, 0 = not locked */
	uint32_t memory_lock_min_mhz, memory_lock_max_mhz;
	uint32_t application_mhz; /* 0 = not set */
	uint32_t limit_mw;
	uint32_t persistence, compute_mode;
	uint32_t fan_set_percent;	   /* of all fans; 0 = they follow the temperature */
	uint32_t accounting, streaming;	   /* modes; streaming is GPM's */
	uint32_t ecc_off, ecc_off_pending; /* the other way round, since ECC is on by default */
	uint32_t open_apis;		   /* bit N: everyone may use restricted API N */
	/* utilisation counters of the links, two each: what is taken off the sum, or a sum that
	 * stands */
	uint64_t link_base[2][TWIN_COUNTED_LINKS], link_held[2][TWIN_COUNTED_LINKS];
	uint32_t link_frozen[2]; /* bit masks of links */
	uint64_t account_count;	 /* the newest is at (account_count - 1) % TWIN_ACCOUNTS */
	struct twin_account accounts[TWIN_ACCOUNTS];
	uint64_t setter_calls, setter_refusals;

	/* what is broken */
	uint32_t faults;	/* enum twin_fault */
	uint32_t slow_ms;	/* each call takes so long */
	uint64_t hang_until_ns; /* calls hang until here; 0 = until mended */
	uint32_t off;		/* it switched itself off, being too hot */
	uint32_t fan_stuck;
	/* of the driver as a whole, and true for GPU 0 alone: how often it was loaded anew, and
	 * until when it is not there */
	uint64_t reloads, away_until_ns;
	uint64_t plan_count;
	struct twin_planned
		plan[TWIN_PLANNED];    /* by time; of one moment, by when they were planned */
	uint32_t power_brake;	       /* the board is told to slow down by its power supply */
	uint32_t pcie_gen, pcie_width; /* 0 = as the board has them */
	uint32_t links_down;	       /* bit mask */
	uint32_t remapped_cor, remapped_unc, remap_pending, remap_failed;
	uint32_t retired_pages, retired_pending; /* boards without row remapping */
	uint64_t ecc_cor_volatile, ecc_cor_aggregate, ecc_unc_volatile, ecc_unc_aggregate;
	uint64_t event_count; /* the newest is at (event_count - 1) % TWIN_EVENTS */
	struct twin_event events[TWIN_EVENTS];

	uint32_t mig_mode, mig_pending;
	struct twin_gpu_instance instances[TWIN_MIG_SLICES]; /* by start */

	/* what follows from all the above at this moment; twin_physics_settle() keeps it right */
	uint32_t now_mhz, now_uw, now_util, now_memory_util, now_pstate, now_share;
	uint32_t now_memory_mhz, now_fan_percent;
	uint64_t now_reasons;

	uint64_t load_count; /* entries of loads that may be in use */
	struct twin_load loads[TWIN_MAX_LOADS];
};

enum twin_fault {
	TWIN_FAULT_LOST = 1u << 0,
	TWIN_FAULT_HANG = 1u << 1,
	TWIN_FAULT_SLOW = 1u << 2,
	TWIN_FAULT_PERMISSION = 1u << 3,
	TWIN_FAULT_RESTORE_REFUSED = 1u << 4,
};

struct twin_slot {
	_Atomic uint64_t number;
	struct twin_gpu copy[2];
};

/* A stretch of the machine's time: from `boot_ns` on it begins at `machine_ns` and passes `speed`
 * times as fast as CLOCK_BOOTTIME does. */
struct twin_stretch {
	uint64_t boot_ns, machine_ns, speed;
};

/* Stretch (number % TWIN_STRETCHES) is the newest; until it begins the one before it holds. */
struct twin_clock {
	_Atomic uint64_t number;
	struct twin_stretch stretch[TWIN_STRETCHES];
};

struct twin_file {
	char magic[8];
	uint32_t layout, file_size;
	char boot_id[TWIN_BOOT_ID]; /* times are of this boot: a file of another is refused */
	uint32_t owner_uid;	    /* may use setters, as root may */
	uint32_t seed;
	uint64_t created_ns; /* in its own time */
	_Atomic uint32_t destroyed;
	uint32_t pad;
	struct twin_clock clock;
	struct twin_machine machine;
	struct twin_slot slots[TWIN_MAX_GPUS];
};

#endif
