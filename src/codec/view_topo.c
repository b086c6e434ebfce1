/* SPDX-License-Identifier: Apache-2.0 */
/* The topology view. */
#include <errno.h>

#include "base/mem.h"
#include "codec/view_tables.h"
#include "codec/views.h"

#define TOPO struct takt_topo_view
#define LIST(member, k, m)                                                                         \
	TAKT_FIELD_AT(TOPO, member, k), .many = (m), .room = TAKT_VIEW_MAX_GPUS, .required = true, \
					COUNT(TOPO, gpu_count)
#define MASK(member, text)                                                                \
	{                                                                                 \
		.name = (text), .kind = TAKT_FIELD_MASK, .offset = offsetof(TOPO, member) \
	}

static const struct takt_field fields[] = {
	MUST_BOOL(TOPO, simulated),
	{LIST(name, TAKT_FIELD_TEXT, TAKT_MANY_ARRAY), .counts = true,
	 .size = sizeof(((TOPO *)0)->name[0])},
	{LIST(numa_node, TAKT_FIELD_I32, TAKT_MANY_ARRAY), .size = sizeof(int32_t),
	 .max = INT32_MAX, NONE(-1)},
	{LIST(cpu_list, TAKT_FIELD_TEXT, TAKT_MANY_ARRAY),
	 .size = sizeof(((TOPO *)0)->cpu_list[0])},
	{LIST(link, TAKT_FIELD_TEXT, TAKT_MANY_MATRIX), .size = sizeof(((TOPO *)0)->link[0][0])},
	{LIST(score, TAKT_FIELD_I32, TAKT_MANY_MATRIX), .size = sizeof(int32_t), .min = INT32_MIN,
	 .max = INT32_MAX},
	MASK(best2_mask, "best2"),
	MASK(best4_mask, "best4"),
	I64(TOPO, best2_sum),
	I64(TOPO, best4_sum),
	MASK(free_best2_mask, "free_best2"),
	MASK(free_best4_mask, "free_best4"),
};
static const struct takt_shape shape = TAKT_SHAPE(TOPO, "a topology", fields);

int takt_topo_view_to_json(const struct takt_topo_view *view, struct takt_str *out)
{
	return takt_shape_encode(&shape, view, out);
}

int takt_topo_view_from_json(const char *text, size_t len, struct takt_topo_view *ret,
			     struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_topo_view *view = takt_zalloc(sizeof(*view));
	int rc;

	if (!view)
		return takt_err_set(err, -ENOMEM, "no memory for a topology");
	rc = takt_shape_decode(&shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT, view,
			       err);
	if (rc == 0)
		*ret = *view;
	return rc;
}
