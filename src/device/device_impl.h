/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a machine's readings come from, for implementers. Callers read device.h.
 *
 * A source is one const table of operations and one heap object that starts with struct
 * takt_source. Every operation may block for as long as the driver likes: each runs on a thread
 * that the machine can give up, never on a caller's. open runs alone; afterwards each GPU's
 * operations run one at a time on that GPU's worker, different GPUs' at the same time. close runs
 * on whichever thread lets go last: an abandoned worker keeps the source open.
 *
 * GPUs are numbered here as the source numbers them; the machine sorts them by PCI bus id.
 */
#ifndef TAKT_DEVICE_DEVICE_IMPL_H
#define TAKT_DEVICE_DEVICE_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"
#include "device/device_set.h"
#include "device/sysfs_pci.h"

struct takt_source;

/* Parts of a sample. */
enum takt_part {
	TAKT_PART_FAST = 1u << 0,
	TAKT_PART_SLOW = 1u << 1,
	TAKT_PART_PROCS = 1u << 2,  /* only together with SLOW, */
	TAKT_PART_ERRORS = 1u << 3, /* this one too */
	TAKT_PART_VITALS = 1u << 4, /* and these */
	TAKT_PART_DETAIL = 1u << 5, /* slow readings that no view of a GPU shows */
	TAKT_PART_VIEW = 1u << 6,   /* the vitals that a view shows; in place of VITALS */
	TAKT_PART_ENERGY = 1u << 7, /* fast where that is cheap */
};

/* What of a reading belongs to the fast part; the rest is slow. */
enum {
	TAKT_FAST_HAS = TAKT_HAS_SM_CLOCK | TAKT_HAS_POWER | TAKT_HAS_TEMP | TAKT_HAS_GPU_UTIL |
			TAKT_HAS_MEM_UTIL | TAKT_HAS_MEMORY | TAKT_HAS_RESERVED | TAKT_HAS_THROTTLE,
};

struct takt_source_config {
	char *path;	   /* of the library or the recording; NULL = the default */
	char *unused_path; /* as of a machine */
	char *sysfs_root;  /* never NULL */
	bool for_view;	   /* as of a machine */
	bool leaves_asleep;
};

struct takt_source_ops {
	const char *name; /* what takt_machine_info says: "nvml", "replay" */

	/* Fills *ret with an object whose base.ops is this table; messages name what was tried. */
	int (*open)(const struct takt_source_config *config, struct takt_source **ret,
		    struct takt_err *err);
	void (*close)(struct takt_source *source);

	/*
	 * Static facts in steps, so that those before a hanging call are not lost: step 0, 1, ...
	 * each adds to *facts; false = there was no such step. Step 0 adds the PCI id if it can.
	 */
	bool (*facts)(struct takt_source *source, uint32_t gpu, uint32_t step,
		      struct takt_gpu_facts *facts);

	/* Optional: whether the GPU is asleep, and is to be left so; AWAKE where it is not to be.
	 * Asks the kernel and not the driver. */
	enum takt_sleep (*asleep)(struct takt_source *source, uint32_t gpu);

	/* Called once every GPU that answers has its facts, on `gpu`'s worker. */
	struct takt_gpu_link (*link)(struct takt_source *source, uint32_t gpu, uint32_t other);

	/*
	 * Reads `parts` into *reading: sets the fields and bits of those parts, last_rc when a call
	 * failed for another reason than "not supported", and lost. The bits of those parts are
	 * clear on entry, so is last_rc, so is lost. False: no call was answered, by a value or by
	 * "lost" or a refusal of this user.
	 */
	bool (*sample)(struct takt_source *source, uint32_t gpu, uint32_t parts,
		       struct takt_gpu_reading *reading);

	/* Optional: reads what *facts says of MIG anew. */
	void (*mig)(struct takt_source *source, uint32_t gpu, struct takt_gpu_facts *facts);

	/* Optional: a source without it is one that cannot be changed. The gate was asked. */
	int (*set)(struct takt_source *source, uint32_t gpu, const struct takt_set_call *call,
		   struct takt_err *err);
};

struct takt_source {
	const struct takt_source_ops *ops;
	atomic_uint refs;   /* the machine and each worker hold one */
	uint32_t gpu_count; /* at most TAKT_DEVICE_MAX_GPUS */
	char driver_version[80];
	char nvml_version[80];
	int32_t cuda_version;
	bool simulated; /* recordings say so; for the driver the machine looks at the boards */
};

void takt_source_unref(struct takt_source *source);

extern const struct takt_source_ops takt_source_nvml;
extern const struct takt_source_ops takt_source_replay;
extern const struct takt_source_ops takt_source_none;

/* Opens on a helper thread and waits at most deadline_ns; -ETIMEDOUT leaves the helper behind. */
int takt_source_open(const struct takt_source_ops *ops, const struct takt_machine_config *config,
		     uint64_t deadline_ns, struct takt_source **ret, struct takt_err *err);

#endif
