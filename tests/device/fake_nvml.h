/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver library inside the test program, made to misbehave: functions that are missing, refuse,
 * hang, lose the GPU, speak older versions of their structs, fail at the Nth call. dlopen and
 * dlsym of the code under test are redirected here by the linker (-Wl,--wrap).
 *
 * Its GPUs give fixed values (the FAKE_ constants plus the GPU's number), so that a value that was
 * made up can be told from one that was read.
 */
#ifndef TAKT_TESTS_FAKE_NVML_H
#define TAKT_TESTS_FAKE_NVML_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	FAKE_GPUS = 4,
	FAKE_MAX_PROCS = 200,
	FAKE_MAX_USES = 200,

	FAKE_SM_MHZ = 1400,
	FAKE_MEM_MHZ = 2600,
	FAKE_POWER_MW = 250000,
	FAKE_LIMIT_MW = 700000,
	FAKE_ENFORCED_MW = 650000,
	FAKE_TEMP_C = 40,
	FAKE_GPU_UTIL = 50,
	FAKE_MEM_UTIL = 20,
	FAKE_FAN = 30,
	FAKE_PSTATE = 2,
	FAKE_REPLAYS = 7,
	FAKE_CORRECTED = 12,
	FAKE_UNCORRECTED = 3,
	FAKE_FIRST_PID = 1000,
};
#define FAKE_TOTAL_BYTES    (80ull << 30)
#define FAKE_RESERVED_BYTES (1ull << 30)
#define FAKE_USED_BYTES	    (10ull << 30)
#define FAKE_ENERGY_MJ	    123456789000ull

/* Everything at rest: FAKE_GPUS boards, all functions, nothing wrong. Wakes what hangs. */
void fake_reset(void);

void fake_library_missing(void);	      /* dlopen fails */
void fake_hide(const char *name);	      /* dlsym does not find it; several may be hidden */
void fake_answer(const char *name, int code); /* this function only says `code`, once a test */
void fake_field_answer(int code);	      /* the code inside each field value */
void fake_fail_nth(unsigned nth, int code); /* the nth driver call from now says `code`; 0 = none */
unsigned fake_calls(void);		    /* driver calls since reset */
unsigned fake_calls_of(const char *name);   /* calls of one function since it was named here */
unsigned fake_calls_about(uint32_t gpu);    /* of them, those about this GPU */
void fake_lose(uint32_t gpu, bool lost);
void fake_take_away(bool gone); /* each call says that of a driver which was loaded anew (999) */
void fake_slow(const char *name, unsigned us); /* calls of it take so long; NULL: none */
void fake_hang(const char *name, int gpu); /* calls of it for this GPU (-1: without a GPU) block */
bool fake_hangs(void);			   /* a call does block */
void fake_wake(void);			   /* let them go on, nothing hangs any more */
void fake_procs(uint32_t gpu, uint32_t count);
/* A sample of what a process did on the GPU, beside those before it. */
void fake_use(uint32_t gpu, uint32_t pid, uint32_t sm_pct, uint32_t memory_pct, uint64_t stamp_us);
void fake_more_used(uint32_t gpu, uint64_t bytes); /* of its memory, beyond FAKE_USED_BYTES */
void fake_entry_bytes(uint32_t bytes);		   /* of the newest process list: 24 or 32 */
void fake_memory_v2_answer(int code);		   /* what the newer memory struct gets */
void fake_links(const uint8_t links[FAKE_GPUS][FAKE_GPUS], uint32_t to_switch);
void fake_call_it_a_twin(void); /* serials say TWIN */

uint32_t fake_locked_min(uint32_t gpu); /* 0 = not locked */
uint32_t fake_mem_locked_max(uint32_t gpu);
uint32_t fake_limit(uint32_t gpu);

/* Name of the i-th function that the fake offers; NULL behind the last. */
const char *fake_function(unsigned i);

#endif
