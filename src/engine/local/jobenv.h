/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment that a job of takt's own engine is started with. Pure: the user's environment and
 * what was decided go in, the final environment comes out.
 *
 * Set, whatever the user had:
 *   CUDA_DEVICE_ORDER=PCI_BUS_ID    (with GPUs) so that an index means what takt means by it
 *   CUDA_VISIBLE_DEVICES            indices in PCI order "0,3"; UUIDs on request (popular programs
 *                                   crash on those) and of MIG instances, which have no index;
 *                                   empty without GPUs: such a job sees none
 *   TAKT_JOB_ID, TAKT_GPUS ("0,3", "" without), TAKT_ATTEMPT (finds what is left of the attempt)
 *   TAKT_RESTART                    how often the job ran before: 0 at its first start
 *   TAKT_CHECKPOINT_DIR             (of a job with one)
 *   TAKT_PROGRESS                   the file to say in how far it is
 *   TAKT_ARRAY_ID, TAKT_ARRAY_INDEX (of a job of an array)
 *   TAKT_GPU_MILLI, TAKT_GPU_MEM_MIB (of a job with shares) what it has of each GPU, in
 *                                   thousandths and in MiB
 *   CUDA_MPS_PINNED_DEVICE_MEM_LIMIT (of such a job, where MPS runs) the same memory as a limit
 *   TAKT_PARAM_NAME                 (of a job of a grid) each parameter's value
 *   whatever `more` says            (of a hook)
 * Set unless the user did:
 *   OMP_NUM_THREADS                 CPUs of the job by its ranks, else its GPUs, at least 1: most
 *                                   programs run one process a GPU. Left alone when the number
 *                                   of CPUs is not known.
 */
#ifndef TAKT_ENGINE_LOCAL_JOBENV_H
#define TAKT_ENGINE_LOCAL_JOBENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct takt_jobenv_gpu {
	uint32_t index;	  /* in PCI order on this machine */
	const char *uuid; /* "GPU-...", or of an instance on it; borrowed, for by_uuid */
};

struct takt_jobenv {
	char *const *user_env; /* "NAME=value", NULL-terminated; borrowed; NULL = empty */
	const struct takt_jobenv_gpu *gpus; /* borrowed, in the order the job shall see them */
	size_t gpu_count;
	bool by_uuid;
	uint32_t processes; /* ranks, that share its CPUs; 0 = as many as GPUs */
	uint32_t cpu_count; /* CPUs the job is bound to or may use; 0 = not known */
	uint64_t job_id;
	uint32_t restarts;
	uint32_t array_index;
	uint64_t array_id;	    /* 0 = of none */
	uint32_t gpu_milli;	    /* of each GPU; 1000 = whole */
	uint32_t gpu_mem_mib;	    /* of each, of a share; 0 = not known */
	bool mps;		    /* hold it to gpu_mem_mib */
	const char *checkpoint_dir; /* NULL = none; borrowed */
	const char *progress;	    /* NULL = none; borrowed */
	char *const *params; /* of its grid, "NAME=value", NULL-terminated; borrowed; NULL = none */
	char *const *more;   /* "NAME=value", NULL-terminated; borrowed; NULL = none */
	const char *attempt_id; /* struct takt_attempt_spec.id; borrowed */
};

/* Variables keep the user's order, ours follow; of a name given twice the last stays, as a shell
 * would have it. Entries without '=' or without a name are dropped. The caller releases *ret with
 * takt_jobenv_free. -EINVAL: by_uuid and a GPU without one; -ENOMEM. */
int takt_jobenv_build(const struct takt_jobenv *in, char ***ret, struct takt_err *err);

/* Also fit for argv. NULL is fine. */
void takt_jobenv_free(char **env);

#endif
