/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat: refused lines leave the result alone. */
#include <errno.h>

#include "base/proc_stat.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_proc_stat stat = {.ppid = 4711};
	char *text = fuzz_text(data, size);
	int rc = takt_proc_stat_parse(text, &stat);

	fuzz_expect(rc == 0 || (rc == -EINVAL && stat.ppid == 4711 && stat.start_ticks == 0));
	fuzz_expect(rc != 0 || stat.state != '\0');
	free(text);
	return 0;
}
