/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text, see the header. */
#include "codec/quantity.h"

#include <math.h>
#include <stdio.h>

#define MJ_PER_J   1e3
#define MJ_PER_WH  3.6e6
#define MJ_PER_KWH 3.6e9

const char *takt_number_text(double value, char ret[TAKT_QUANTITY_TEXT])
{
	double size = fabs(value);

	if (size > 0 && size < 0.0005)
		snprintf(ret, TAKT_QUANTITY_TEXT, value < 0 ? ">-0.001" : "<0.001");
	else if (size >= 99.95)
		snprintf(ret, TAKT_QUANTITY_TEXT, "%.0f", value);
	else
		snprintf(ret, TAKT_QUANTITY_TEXT, "%.*g",
			 size < 0.00995	 ? 1
			 : size < 0.0995 ? 2
					 : 3,
			 value);
	return ret;
}

const char *takt_energy_text(uint64_t mj, char ret[TAKT_QUANTITY_TEXT])
{
	static const struct {
		double from_mj, unit_mj;
		const char *unit;
	} units[] = {
		{MJ_PER_KWH, MJ_PER_KWH, "kWh"}, {MJ_PER_WH, MJ_PER_WH, "Wh"}, {0, MJ_PER_J, "J"}};
	char number[TAKT_QUANTITY_TEXT];
	size_t i = 0;

	while ((double)mj < units[i].from_mj)
		i++;
	snprintf(ret, TAKT_QUANTITY_TEXT, "%.22s %s",
		 takt_number_text((double)mj / units[i].unit_mj, number), units[i].unit);
	return ret;
}
