/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as every view writes them: three digits, which is what they were measured to. */
#ifndef TAKT_CODEC_QUANTITY_H
#define TAKT_CODEC_QUANTITY_H

#include <stdint.h>

enum {
	TAKT_QUANTITY_TEXT = 32
};

/* "0", "0.25", "12.3", "1234", three decimals at most; "<0.001" of what is smaller and not 0. Each
 * returns `ret`. */
const char *takt_number_text(double value, char ret[TAKT_QUANTITY_TEXT]);
/* Millijoules: "850 J", "62.8 Wh", "1.25 kWh". */
const char *takt_energy_text(uint64_t mj, char ret[TAKT_QUANTITY_TEXT]);

#endif
