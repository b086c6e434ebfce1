/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a machine without GPUs, so that nobody asks whether there is one. */
#include <errno.h>

#include "base/mem.h"
#include "device/device_impl.h"

static int open_none(const struct takt_source_config *config, struct takt_source **ret,
		     struct takt_err *err)
{
	struct takt_source *source = takt_zalloc(sizeof(*source));

	if (!source)
		return takt_err_set(err, -ENOMEM, "source");
	source->ops = &takt_source_none;
	atomic_init(&source->refs, 1);
	*ret = source;
	return 0;
}

static void close_none(struct takt_source *source)
{
	takt_free(source);
}

/* With no GPU there is no worker, so the rest is never called. */
const struct takt_source_ops takt_source_none = {
	.name = "none",
	.open = open_none,
	.close = close_none,
};
