/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's policy of clocks: how its GPUs are to stand while no job asks for anything else, as
 * an administrator writes it down (TOML), and as it is handed to the daemon (JSON).
 *
 *	[[gpu]]				# every GPU that no other entry names
 *	power_w = 500			# power limit; left out: as it was found
 *	cap_w = 600			# never more, whoever asks; left out: caps stay as they are
 *
 *	[[gpu]]
 *	model = "NVIDIA A100-PCIE-40GB" # as takt status --json has it in "name"
 *	sm_mhz = [210, 1200]		# range of the SM clock; left out: the driver's own
 *	mig = "3g.20gb,3g.20gb"		# MIG instances; left out: as it was found
 *
 *	[[gpu]]
 *	uuid = "GPU-8f2a..."		# one that is named goes before its model
 */
#ifndef TAKT_CODEC_CLOCK_POLICY_H
#define TAKT_CODEC_CLOCK_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mig_layout.h"
#include "base/str.h"

enum {
	TAKT_CLOCK_POLICY_MAX = 256, /* entries */
	TAKT_CLOCK_POLICY_BYTES = 64 * 1024,
	TAKT_DECLARED_MAX = 64, /* GPUs */
};

/* How one GPU is to stand. */
struct takt_declared {
	uint32_t index;
	uint32_t sm_min_mhz, sm_max_mhz; /* both 0 = the driver's own */
	uint32_t power_limit_mw;	 /* 0 = as it was found */
	uint32_t cap_power_mw;		 /* 0 = caps stay as they are */
	char mig[TAKT_MIG_TEXT];	 /* "" = as it was found */
};

/* All of a machine; a GPU that is not in it is not declared (any more). */
struct takt_declaration {
	uint32_t count;
	struct takt_declared gpu[TAKT_DECLARED_MAX];
};
int takt_declaration_to_json(const struct takt_declaration *declaration, struct takt_str *out);
/* -TAKT_E_USAGE names the field. */
int takt_declaration_from_json(const char *text, size_t len, struct takt_declaration *ret,
			       struct takt_err *err);

/* A facility's cap on the power limit of some GPUs. */
struct takt_clock_cap {
	uint64_t gpu_mask;
	uint32_t power_limit_mw; /* 0 = no cap any more */
	char reason[120];
};
int takt_clock_cap_to_json(const struct takt_clock_cap *cap, struct takt_str *out);
/* -TAKT_E_USAGE names the field. */
int takt_clock_cap_from_json(const char *text, size_t len, struct takt_clock_cap *ret,
			     struct takt_err *err);

struct takt_clock_policy {
	uint32_t count;
	struct takt_clock_rule {
		unsigned line;		   /* of the file */
		char uuid[96], model[96];  /* both "": all others */
		struct takt_declared wish; /* without its index */
	} rules[TAKT_CLOCK_POLICY_MAX];
};

/* The whole text or nothing: -TAKT_E_USAGE or -TAKT_E_CORRUPT, the message begins with the line and
 * names the key. *ret is overwritten on success. */
int takt_clock_policy_parse(const char *text, size_t len, struct takt_clock_policy *ret,
			    struct takt_err *err);

/* What a GPU is and takes; a bound of 0 is not known, and then nothing of the kind is accepted. */
struct takt_declared_bounds {
	const char *uuid, *name;
	uint32_t sm_min_mhz, sm_max_mhz, power_min_mw, power_max_mw;
};

/* The rule that a GPU falls under: by UUID, else by model, else the one for all; NULL = none. */
const struct takt_clock_rule *takt_clock_policy_of(const struct takt_clock_policy *policy,
						   const struct takt_declared_bounds *gpu);

/* Whether the GPU takes that: -TAKT_E_USAGE or -TAKT_E_UNSUPPORTED, the message names the key and
 * what would be accepted. */
int takt_declared_check(const struct takt_declared *wish, const struct takt_declared_bounds *gpu,
			struct takt_err *err);

#endif
