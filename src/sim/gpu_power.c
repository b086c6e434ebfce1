/* SPDX-License-Identifier: Apache-2.0 */
/* Power by model, see the header. */
#include "sim/gpu_power.h"

#include <string.h>
#include <strings.h>

#include "base/compiler.h"

/* G2 and G3 are openb's names for boards that PWR takes for A10 and A100. */
static const struct {
	const char *model;
	struct takt_gpu_power power;
} table[] = {
	{"T4", {10, 70}},    {"A100", {50, 400}}, {"A10", {30, 150}}, {"P100", {25, 250}},
	{"V100", {30, 300}}, {"G2", {30, 150}},	  {"G3", {50, 400}},
};

bool takt_gpu_power_find(const char *model, struct takt_gpu_power *ret)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(table); i++) {
		if (strncasecmp(model, table[i].model, strlen(table[i].model)) != 0)
			continue;
		*ret = table[i].power;
		return true;
	}
	return false;
}
