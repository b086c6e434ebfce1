/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the doctor knows of a machine when he judges: gathered once (gather.h), or written down by a
 * test. A value without its bit, or a list without its bit, was not to be had: no check may read it
 * as a zero.
 */
#ifndef TAKT_HEALTH_DOCTOR_FACTS_H
#define TAKT_HEALTH_DOCTOR_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/gpu_board.h"

enum {
	TAKT_DOCTOR_MAX_PORTS = 64,
	TAKT_DOCTOR_MAX_PACKAGES = 64,
	TAKT_DOCTOR_MAX_HEARD = 256,
	TAKT_DOCTOR_MAX_ALARMS = 16,
	TAKT_DOCTOR_MAX_RUNS = 500,
};

enum takt_doctor_has {
	TAKT_DOCTOR_KERNEL_MODULE = 1u << 0, /* kernel_version, open_module */
	TAKT_DOCTOR_CUDA_LIB = 1u << 1,
	TAKT_DOCTOR_BUS = 1u << 2, /* pci, nvswitches */
	TAKT_DOCTOR_MODULES = 1u << 3,
	TAKT_DOCTOR_PROCESSES = 1u << 4, /* fabric_manager */
	TAKT_DOCTOR_NUMA_NODES = 1u << 5,
	TAKT_DOCTOR_PORTS = 1u << 6,
	TAKT_DOCTOR_DEV_CHAR = 1u << 7,
	TAKT_DOCTOR_DAEMON = 1u << 8, /* takt's own answered: held_by_takt is true to life */
	TAKT_DOCTOR_HEARD = 1u << 9,  /* and told what it has found: heard, deaf */
};

/* What became of asking the driver. */
enum takt_doctor_asked {
	TAKT_ASKED_YES,
	TAKT_ASKED_FAILED,    /* open_error says how, open_code is the driver's */
	TAKT_ASKED_HANGS,     /* it did not answer in time */
	TAKT_ASKED_NO_LIB,    /* there is no library of a driver */
	TAKT_ASKED_NO_MODULE, /* a GPU is there, the kernel module is not: asking would load it */
	TAKT_ASKED_ASLEEP,    /* a GPU is suspended: asking would wake it */
};

/* A GPU of NVIDIA's as the kernel sees it on the bus. */
struct takt_doctor_pci {
	char id[32];
	char driver[24]; /* "" = none */
	bool asleep;
	uint32_t port_max_width;       /* lanes of the slot; 0 = not known */
	bool acs_known, acs_redirects; /* a bridge above it sends peers' traffic upwards */
	char switch_id[32];	       /* the bridge that it shares with others; "" = none */
};

struct takt_doctor_gpu {
	struct takt_gpu_facts facts;
	bool board_known;
	bool silent;		      /* it did not answer in time: the driver hangs for it */
	struct takt_gpu_board board;  /* peer[] by index here */
	struct takt_gpu_reading last; /* of those below */
	uint32_t samples;
	uint32_t busy;	   /* samples in which it worked */
	uint32_t full;	   /* and was busy nearly all the time */
	uint32_t loaded;   /* and at full performance (P0 to P2): links are then at their speed */
	uint32_t no_procs; /* samples with a process list that was empty */
	uint64_t least_held_bytes;	     /* memory in use, the least of the samples */
	uint64_t throttle_any, throttle_all; /* reasons in some, in all busy samples that had any */
	uint32_t throttled_known;	     /* busy samples that had throttle reasons */
	uint32_t sm_max_seen_mhz;	     /* while busy */
	uint32_t gen_seen, width_seen;	     /* the best while loaded; width: ever */
	uint32_t pstate_best;		     /* while busy; the lowest number */
	uint32_t dead_procs;		     /* that the driver lists and /proc does not have */
	int32_t dead_pid;		     /* the first of them */
	bool procs_checked;		     /* dead_procs was looked for */
	bool held_by_takt; /* a lease, a cap or a declared baseline of takt's is on it */
	bool watched;	   /* takt serve has it under its eyes */
};

/* What takt serve has found over time, with XIDs and the kernel's log. */
struct takt_doctor_heard {
	uint32_t gpu;
	int verdict, action; /* doctor.h: enum takt_doctor_verdict, takt_doctor_act */
	char text[200];
};

struct takt_doctor_port {
	char device[32];
	uint32_t number;
	bool ethernet;
	char state[16], phys[24]; /* "ACTIVE", "LinkUp" */
	uint32_t gbit;
};

struct takt_doctor_package {
	char name[24], version[40];
	char cuda[16]; /* that it was built for; "" = for none; "?" = not known */
	char path[160];
};

/* A run of a job that takt has kept: it ended well, in its first attempt and undisturbed. */
struct takt_doctor_run {
	uint64_t thing; /* the same number: the same owner, name, command and demands */
	char name[65];
	uint64_t gpus; /* not empty */
	uint64_t ran_ms;
	uint32_t sm_mhz, util_permille; /* mean; 0 = not known */
};

/* What a sensor of the machine says is wrong, as the kernel has it (hwmon). */
struct takt_doctor_alarm {
	bool supply;		   /* of a power supply's chip; else of a fan */
	char chip[24], sensor[40]; /* "pfe1100", "in1_alarm" */
};

/* Containers: what is installed and how it is set up. */
struct takt_doctor_containers {
	bool docker; /* or podman's or containerd's, see `which` */
	char which[32];
	bool toolkit;	      /* the runtime hook is there */
	bool runtime_named;   /* daemon.json names a runtime "nvidia" */
	bool runtime_missing; /* ... whose program is not there */
	char runtime_path[128];
	bool cgroupfs;			    /* daemon.json asks for that cgroup driver */
	bool no_cgroups;		    /* the toolkit was told to leave cgroups alone */
	bool systemd;			    /* it manages the machine's cgroups */
	bool char_links;		    /* /dev/char has the GPU's control device */
	char cdi_path[96], cdi_version[32]; /* driver that a CDI file was written for; "" = none */
};

struct takt_doctor_facts {
	uint32_t has; /* enum takt_doctor_has */
	enum takt_doctor_asked asked;
	int open_code; /* of the driver; 0 = none */
	char open_error[TAKT_ERR_MSG];
	char kernel_version[32]; /* of the loaded module */
	bool open_module;
	char cuda_lib_version[32]; /* of the file libcuda.so.1 leads to */
	struct takt_machine_info info;
	char own_library[256]; /* the driver's, that LD_LIBRARY_PATH alone leads to; "" = none */
	uint32_t gpu_count;
	struct takt_doctor_gpu gpu[TAKT_DEVICE_MAX_GPUS];
	uint8_t nvlinks[TAKT_DEVICE_MAX_GPUS][TAKT_DEVICE_MAX_GPUS];
	uint32_t pci_count;
	struct takt_doctor_pci pci[TAKT_DEVICE_MAX_GPUS];
	uint32_t nvswitches;
	bool in_container;
	bool other_namespace; /* ours of PIDs is not the machine's: a PID of the driver's that is
				 not found here may live elsewhere */
	bool hides_processes; /* others' are in another namespace: a virtual machine may be made of
				 a container's files and see them all */
	uint32_t numa_nodes;
	bool nouveau, peermem;
	bool fabric_manager;
	char fabric_manager_version[32]; /* "" = not known */
	uint32_t supplies, fans;	 /* that the kernel has sensors of */
	uint32_t alarm_count;
	struct takt_doctor_alarm alarm[TAKT_DOCTOR_MAX_ALARMS];
	uint32_t port_count;
	struct takt_doctor_port port[TAKT_DOCTOR_MAX_PORTS];
	struct takt_doctor_containers containers;
	uint32_t package_count;
	struct takt_doctor_package package[TAKT_DOCTOR_MAX_PACKAGES];
	uint32_t heard_count;
	struct takt_doctor_heard heard[TAKT_DOCTOR_MAX_HEARD]; /* of a GPU: causes first */
	uint32_t run_count;
	struct takt_doctor_run run[TAKT_DOCTOR_MAX_RUNS];
	char deaf[160]; /* why XIDs are not heard; "" = they are */
};

/* Adds a sample to what was seen of the GPU. */
void takt_doctor_see(struct takt_doctor_gpu *gpu, const struct takt_gpu_reading *reading);

#endif
