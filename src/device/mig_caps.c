/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files `access` of the driver's capabilities: lines "Name: number". */
#include "device/mig_caps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	ACCESS_MAX = 4096
};

int takt_mig_cap_minor(const char *text, uint16_t *ret)
{
	static const char name[] = "DeviceFileMinor:";
	char number[8];
	unsigned long long minor;
	const char *at = strstr(text, name);
	size_t len;

	if (!at || (at > text && at[-1] != '\n'))
		return -TAKT_E_CORRUPT;
	at += sizeof(name) - 1;
	at += strspn(at, " \t");
	len = strcspn(at, " \t\n");
	if (len >= sizeof(number))
		return -TAKT_E_CORRUPT;
	takt_strcpy(number, len + 1, at);
	if (takt_parse_u64(number, 0, UINT16_MAX, &minor) < 0)
		return -TAKT_E_CORRUPT;
	*ret = (uint16_t)minor;
	return 0;
}

static int read_minor(const char *path, uint16_t *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;
	int rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, ACCESS_MAX, &text, &len, err);

	if (rc == 0)
		rc = takt_mig_cap_minor(text, ret);
	return rc < 0 ? takt_err_set(err, rc, "capability '%s'", path) : 0;
}

int takt_mig_caps(const char *dir, uint32_t gpu_minor, const struct takt_gpu_instance *instance,
		  uint16_t ret[TAKT_MIG_CAPS_EACH], struct takt_err *err)
{
	char path[PATH_MAX];
	int rc;

	if (instance->gi < 0 || instance->ci < 0)
		return takt_err_set(err, -ENOENT, "which instance %s is", instance->uuid);
	snprintf(path, sizeof(path), "%s/gpu%u/mig/gi%d/access", dir, gpu_minor, instance->gi);
	rc = read_minor(path, &ret[0], err);
	if (rc < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/gpu%u/mig/gi%d/ci%d/access", dir, gpu_minor, instance->gi,
		 instance->ci);
	return read_minor(path, &ret[1], err);
}
