/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment is the largest part of a description, and the same for all jobs of an array: they
 * have one together, in memory as in the store, where it is under the number of the first of them.
 */
#include <string.h>

#include "base/mem.h"
#include "queue/queue_impl.h"

size_t takt_queue_env_bytes(char *const *env)
{
	size_t bytes = 0;

	for (; env && *env; env++)
		bytes += strlen(*env) + 1;
	return bytes;
}

static void free_list(char **list)
{
	for (char **entry = list; entry && *entry; entry++)
		takt_free(*entry);
	takt_free(list);
}

struct takt_queue_env *takt_queue_env_ref(struct takt_queue_env *env)
{
	env->refs++;
	return env;
}

void takt_queue_env_unref(struct takt_queue_env *env)
{
	if (!env || --env->refs > 0)
		return;
	takt_map_u64_remove(&env->queue->envs, env->id);
	takt_queue_user_lets_go(env->queue, env->uid, 0, env->bytes);
	free_list(env->list);
	takt_free(env);
}

struct takt_queue_env *takt_queue_env_share(struct takt_queue *queue, uint64_t id, uid_t uid,
					    char **list)
{
	struct takt_queue_env *env = takt_map_u64_ptr(&queue->envs, id);

	if (env) {
		free_list(list);
		return takt_queue_env_ref(env);
	}
	env = takt_zalloc(sizeof(*env));
	if (!env || takt_map_u64_put_ptr(&queue->envs, id, env) < 0) {
		free_list(list);
		takt_free(env);
		return NULL;
	}
	if (takt_queue_user_has(queue, uid, 0, takt_queue_env_bytes(list)) < 0) {
		takt_map_u64_remove(&queue->envs, id);
		free_list(list);
		takt_free(env);
		return NULL;
	}
	*env = (struct takt_queue_env){.queue = queue,
				       .id = id,
				       .uid = uid,
				       .refs = 1,
				       .bytes = takt_queue_env_bytes(list),
				       .list = list};
	return env;
}

void takt_queue_env_lend(struct takt_queue_job *job, struct takt_queue_env *env)
{
	job->env = takt_queue_env_ref(env);
	job->spec.env = env->list;
	job->row.env_of = env->id;
}
