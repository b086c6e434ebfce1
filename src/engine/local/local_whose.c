/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a process is that only root may look into: asked of the launcher, and answered by it or
 * never. */
#include "engine/local/local_private.h"

void takt_engine_local_whose(struct takt_engine *engine, const struct takt_proc_id *process,
			     uid_t uid)
{
	struct local_engine *local = TAKT_CONTAINER_OF(engine, struct local_engine, engine);
	struct takt_launch_request request = {
		.op = TAKT_LAUNCH_WHOSE, .uid = uid, .target = *process};
	uint64_t seq;

	TAKT_VEC_EACH (asked, &local->questions)
		if (asked->process.pid == process->pid &&
		    asked->process.start_ticks == process->start_ticks)
			return;
	if (takt_vec_reserve(&local->questions, 1) < 0)
		return;
	seq = local_link_send(local, request, 0);
	if (seq != 0)
		(void)takt_vec_push(&local->questions, (struct local_question){seq, *process});
}

bool local_whose_reply(struct local_engine *local, const struct takt_launch_reply *reply)
{
	struct takt_proc_id process;
	size_t i = 0;

	while (i < local->questions.len && local->questions.at[i].seq != reply->seq)
		i++;
	if (i == local->questions.len)
		return false;
	process = local->questions.at[i].process;
	takt_vec_remove_swap(&local->questions, i);
	if (local->config.whose)
		local->config.whose(local->config.ctx, &process,
				    reply->rc == 0 ? reply->message : "");
	return true;
}
