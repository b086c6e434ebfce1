/* SPDX-License-Identifier: Apache-2.0 */
/* See top_columns.h. */
#include "top/top_columns.h"

static int total(const int *widths, int count)
{
	int sum = 0;

	for (int i = 0; i < count; i++)
		sum += widths[i] ? widths[i] + 1 : 0;
	return sum - 1;
}

static bool drop_one(const struct takt_top_column *columns, int count, int *widths)
{
	int worst = -1;

	for (int i = 0; i < count; i++)
		if (widths[i] && columns[i].drop &&
		    (worst < 0 || columns[i].drop > columns[worst].drop))
			worst = i;
	if (worst >= 0)
		widths[worst] = 0;
	return worst >= 0;
}

void takt_top_fit(const struct takt_top_column *columns, int count, int width, int *ret)
{
	bool grew = true;
	int left;

	for (int i = 0; i < count; i++)
		ret[i] = columns[i].min;
	while (total(ret, count) > width && drop_one(columns, count, ret))
		;
	left = width - total(ret, count);
	while (left > 0 && grew) {
		grew = false;
		for (int i = 0; i < count && left > 0; i++) {
			if (!ret[i] || ret[i] >= columns[i].max)
				continue;
			ret[i]++;
			left--;
			grew = true;
		}
	}
}
