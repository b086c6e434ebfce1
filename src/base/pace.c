/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pace.h"

uint64_t takt_pace_ns(const struct takt_pace *pace, uint32_t failures)
{
	return failures < 64 && pace->first_ns <= pace->longest_ns >> failures
		       ? pace->first_ns << failures
		       : pace->longest_ns;
}
