/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a GPU is: one job's, several jobs' that share it, nobody's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/top_draw.h"
#include "top/top_text.h"

static bool is_well(const struct takt_gpu_view *gpu)
{
	return !gpu->lost && !gpu->stale &&
	       (!gpu->health[0] || strcmp(gpu->health, "healthy") == 0);
}

static const char *plain_state(const struct takt_gpu_view *gpu)
{
	if (gpu->asleep && (!gpu->state[0] || strcmp(gpu->state, "free") == 0))
		return "asleep";
	if (gpu->state[0])
		return gpu->state;
	return gpu->proc_count ? "in use" : "";
}

/* Jobs that have a part of the GPU, each once: several of its instances may be one job's. Those
 * that are over and may have left something come behind the others. */
struct sharers {
	const struct takt_gpu_share_view *at[TAKT_ARRAY_LEN(((struct takt_gpu_view *)0)->shares)];
	uint32_t count, more; /* more: are not told of */
};

static bool has_sharer(const struct sharers *sharers, uint64_t job_id)
{
	for (uint32_t i = 0; i < sharers->count; i++)
		if (sharers->at[i]->job_id == job_id)
			return true;
	return false;
}

static struct sharers sharers_of(const struct takt_gpu_view *gpu)
{
	uint32_t told = gpu->share_count < TAKT_ARRAY_LEN(gpu->shares)
				? gpu->share_count
				: TAKT_ARRAY_LEN(gpu->shares);
	struct sharers sharers = {.more = gpu->share_count - told};

	for (int left = 0; left < 2; left++)
		for (uint32_t i = 0; i < told; i++)
			if (gpu->shares[i].left == (left == 1) &&
			    !has_sharer(&sharers, gpu->shares[i].job_id))
				sharers.at[sharers.count++] = &gpu->shares[i];
	return sharers;
}

/* "#12 train, #13 eval", or "#12 #13", as many as fit, and how many more. */
static void share_label(const struct sharers *sharers, int room, bool named,
			char ret[TAKT_GPU_LABEL])
{
	uint32_t more = sharers->more + sharers->count;
	size_t used = 0;

	ret[0] = '\0';
	for (uint32_t i = 0; i < sharers->count; i++, more--) {
		const struct takt_gpu_share_view *share = sharers->at[i];
		int rest = more > 1 ? 4 : 0;
		char one[96];

		snprintf(one, sizeof(one), "%s#%" PRIu64 "%s%s%s",
			 i == 0	 ? ""
			 : named ? ", "
				 : " ",
			 share->job_id, named && share->name[0] ? " " : "",
			 named ? share->name : "", share->left ? " over" : "");
		if (used + strlen(one) >= TAKT_GPU_LABEL ||
		    (i > 0 && takt_cells_width(ret) + takt_cells_width(one) + rest > room))
			break;
		used += (size_t)snprintf(ret + used, TAKT_GPU_LABEL - used, "%s", one);
	}
	if (more)
		snprintf(ret + used, TAKT_GPU_LABEL - used, " +%u", more);
}

static void all_sharers(const struct takt_gpu_view *gpu, int room, char ret[TAKT_GPU_LABEL])
{
	const struct sharers sharers = sharers_of(gpu);

	share_label(&sharers, TAKT_GPU_LABEL, true, ret);
	if (takt_cells_width(ret) > room)
		share_label(&sharers, room, false, ret);
}

const char *takt_gpu_label(const struct takt_gpu_view *gpu, int room, char ret[TAKT_GPU_LABEL],
			   enum takt_role *role)
{
	*role = TAKT_ROLE_ALARM;
	if (gpu->lost || gpu->stale) {
		takt_strcpy(ret, TAKT_GPU_LABEL, gpu->lost ? "lost" : "no news");
	} else if (!is_well(gpu)) {
		snprintf(ret, TAKT_GPU_LABEL, "%s", gpu->health);
		*role = strcmp(gpu->health, "suspect") == 0 ? TAKT_ROLE_MIND : TAKT_ROLE_ALARM;
	} else if (gpu->share_count) {
		all_sharers(gpu, room, ret);
		*role = TAKT_ROLE_JOB;
	} else if (gpu->job_id) {
		snprintf(ret, TAKT_GPU_LABEL, "#%" PRIu64 " %s", gpu->job_id, gpu->job_name);
		*role = TAKT_ROLE_JOB;
	} else {
		takt_strcpy(ret, TAKT_GPU_LABEL, plain_state(gpu));
		*role = strcmp(ret, "free") == 0 ? TAKT_ROLE_GOOD : TAKT_ROLE_DIM;
	}
	return ret;
}

/* "0.25 of it, 20.0G reserved". */
static void part_text(const struct takt_gpu_share_view *share, char ret[TAKT_TOP_TEXT])
{
	char memory[TAKT_TOP_TEXT];
	size_t used;

	if (share->milli)
		used = (size_t)snprintf(ret, TAKT_TOP_TEXT, "%u.%02u of it", share->milli / 1000,
					share->milli % 1000 / 10);
	else
		used = (size_t)snprintf(ret, TAKT_TOP_TEXT, "an instance");
	if (share->mem_mib)
		snprintf(ret + used, TAKT_TOP_TEXT - used, ", %s reserved",
			 takt_top_bytes((uint64_t)share->mem_mib << 20, memory));
}

int takt_draw_sharers(struct takt_cells *cells, struct takt_area area,
		      const struct takt_gpu_view *gpu)
{
	const struct sharers sharers = sharers_of(gpu);
	char part[TAKT_TOP_TEXT];
	int lines = 0;

	for (uint32_t i = 0; i < sharers.count && lines < area.rows; i++, lines++) {
		const struct takt_gpu_share_view *share = sharers.at[i];

		part_text(share, part);
		takt_cells_textf(cells, area.row + lines, area.col, area.cols, TAKT_ROLE_JOB,
				 "#%" PRIu64 " %s  %s  %s%s", share->job_id, share->name,
				 share->user, part, share->left ? "  over" : "");
	}
	return lines;
}
