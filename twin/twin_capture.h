/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nvidia-smi printed on a real machine, read: `-q` as text or (-x) as XML, `-q -d
 * SUPPORTED_CLOCKS`, `topo -m`, `nvlink -s`, `c2c -s`, in any number of files and in any order,
 * several in one file, too. Text between them is passed over. A GPU that is described twice keeps
 * the first description, and gets from the second what the first had not.
 */
#ifndef TAKT_TWIN_TWIN_CAPTURE_H
#define TAKT_TWIN_TWIN_CAPTURE_H

#include <stdbool.h>

#include "base/err.h"
#include "twin_layout.h"

enum {
	TWIN_CAPTURE_MAX_BYTES = 8 << 20, /* of a file */
	TWIN_CAPTURE_MAX_ITEMS = 8192,	  /* of a GPU */
};

/* A reading: its path in the XML ("clocks/sm_clock"), whichever form it came in, and its text. One
 * that is not available is not there. */
struct twin_capture_item {
	const char *name, *value;
};

struct twin_capture_gpu {
	struct twin_pci pci;
	uint32_t count, room;
	struct twin_capture_item *items; /* in the order of the file; some names repeat */
};

/* What is said of a GPU by its index alone: by topo, nvlink and c2c. */
struct twin_capture_place {
	bool in_matrix;
	uint8_t level[TWIN_MAX_GPUS]; /* NVML's, to each GPU; 0: not said, an NVLink hides it */
	uint8_t links[TWIN_MAX_GPUS]; /* NVLinks to each GPU */
	char cpus[256];		      /* "0-51,104-155"; "" if it is not said */
	int numa;		      /* -1 if it is not said */
	uint64_t nvlinks, nvlinks_off, c2c_links; /* bit masks */
	uint32_t nvlink_mbps;
};

struct twin_capture {
	uint32_t gpu_count, text_count;
	struct twin_capture_gpu gpus[TWIN_MAX_GPUS]; /* by place on the bus, as NVML counts them */
	uint32_t place_count;			     /* one more than the highest index */
	struct twin_capture_place places[TWIN_MAX_GPUS];
	uint32_t other_devices; /* network cards in the matrix */
	char **texts;		/* that items point into */
};

/* Empty, to be read into; NULL if there is no memory. */
struct twin_capture *twin_capture_new(void);

/* Takes in one text; `file` names it in errors. Error if it has nothing of the kind. */
int twin_capture_add(struct twin_capture *capture, const char *file, const char *text,
		     struct takt_err *err);
/* The same from a file. */
int twin_capture_read(struct twin_capture *capture, const char *path, struct takt_err *err);

void twin_capture_free(struct twin_capture *capture); /* takes NULL */

/* The first reading of that name, NULL if there is none. */
const char *twin_capture_text(const struct twin_capture_gpu *gpu, const char *name);

static inline void takt_cleanup_twin_capturep(struct twin_capture **capture)
{
	twin_capture_free(*capture);
}

#endif
