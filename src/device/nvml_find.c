/* SPDX-License-Identifier: Apache-2.0 */
/* See nvml_find.h. */
#include "device/nvml_find.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool takt_nvml_find(const char *folders, char *ret, size_t size)
{
	const char *at = folders ? folders : "";

	for (size_t len; *at; at += len + (at[len] != '\0')) {
		int n;

		len = strcspn(at, ":;");
		n = snprintf(ret, size, "%.*s/" TAKT_NVML_LIBRARY, (int)len, at);
		if (at[0] == '/' && n < (int)size && access(ret, R_OK) == 0)
			return true;
	}
	return false;
}
