/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU's clocks are told to clients, and what is declared of them to the actuator: the same
 * words whether takt serve says it or takt clock alone. */
#ifndef TAKT_DAEMON_CLOCK_TERMS_H
#define TAKT_DAEMON_CLOCK_TERMS_H

#include "base/str.h"
#include "codec/clock_policy.h"
#include "codec/views.h"
#include "device/device.h"

/* In the runtime directory: what is declared, in the words of actuate/baseline.h. */
extern const char takt_declared_name[];

/* The line of one GPU in that file. */
void takt_declared_line(const struct takt_declared *wish, const char *uuid, struct takt_str *out);

/* The layout that a text of such lines declares for a GPU, "" = none. Returns ret. */
const char *takt_declared_mig(const char *text, const char *uuid, char ret[TAKT_MIG_TEXT]);

/* What the board is and takes; what it reads. */
void takt_clock_gpu_facts(const struct takt_gpu_facts *facts, struct takt_clock_gpu *ret);
void takt_clock_gpu_reading(const struct takt_gpu_reading *reading, struct takt_clock_gpu *ret);

#endif
