/* SPDX-License-Identifier: Apache-2.0 */
/* Growing a vector: doubling, never beyond its limit. */
#include "base/vec.h"

#include <errno.h>

#include "base/err.h"

int takt_vec_grow_bytes(void **at, size_t *cap, size_t len, size_t more, size_t max, size_t size)
{
	size_t want = *cap ? *cap * 2 : 8;
	void *grown;

	if (more > max || len > max - more)
		return -TAKT_E_LIMIT;
	if (len + more <= *cap)
		return 0;
	if (want < len + more)
		want = len + more;
	if (want > max)
		want = max;
	grown = takt_reallocarray(*at, want, size);
	if (!grown)
		return -ENOMEM;
	*at = grown;
	*cap = want;
	return 0;
}
