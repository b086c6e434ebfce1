/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects as policies, see the header. What crosses is copied field by field: the installed
 * header stays as it is when the scheduler's own structs change. */
#include "sim/policy_object.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <takt/policy.h>

#include "base/mem.h"
#include "base/str.h"
#include "objects/object_file.h"
#include "sched/cluster.h"

enum {
	MAX_NAME = 32
};

struct takt_policy_object {
	struct takt_object_file file; /* stays first */
	const struct takt_policy_placement *placing;
	const struct takt_policy_queue *queueing;
	struct takt_placement placement; /* made of `placing`, if there is one */
	struct takt_order order;	 /* made of `queueing` */
};

/* A placement policy's state in one run. */
struct placing_state {
	const struct takt_policy_placement *policy;
	void *state; /* the policy's own */
};

static struct takt_policy_request request_of(const struct takt_request *request)
{
	return (struct takt_policy_request){
		.cpu_milli = request->cpu_milli,
		.mem_mib = request->mem_mib,
		.gpus = request->devices,
		.milli = request->milli,
		.gpu_mem_mib = request->dev_mem_mib,
		.model_mask = request->model_mask,
	};
}

static struct takt_policy_node node_of(const struct takt_node *node)
{
	return (struct takt_policy_node){
		.id = node->id,
		.rank = node->rank,
		.cpu_left_milli = node->cpu_left_milli,
		.cpu_milli = node->cpu_milli,
		.mem_left_mib = node->mem_left_mib,
		.mem_mib = node->mem_mib,
		.gpus = node->devices,
		.model = node->model,
		.tasks = node->tasks,
		.gpu_left = node->left,
	};
}

static int call_prepare(const struct placing_state *own, const struct takt_place_setup *setup,
			struct takt_policy_expected *expected, struct takt_policy_param *params,
			void **ret, struct takt_err *err)
{
	const struct takt_workload *workload = setup->workload;
	char message[160] = "it gives no reason";
	struct takt_policy_setup given = {
		.expected = expected,
		.expected_count = workload ? workload->count : 0,
		.params = params,
		.param_count = setup->param_count,
		.seed = setup->seed,
	};

	for (size_t i = 0; i < given.expected_count; i++) {
		expected[i].request = request_of(&workload->items[i].request);
		expected[i].weight = workload->items[i].weight;
	}
	for (size_t i = 0; i < setup->param_count; i++)
		params[i] =
			(struct takt_policy_param){setup->params[i].name, setup->params[i].value};
	if (own->policy->prepare(&given, ret, message, sizeof(message)) < 0)
		return takt_err_set(err, -EINVAL, "policy '%s' refuses to begin: %s",
				    own->policy->name, message);
	return 0;
}

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	const struct takt_policy_object *object =
		TAKT_CONTAINER_OF(setup->placement, struct takt_policy_object, placement);
	size_t count = setup->workload ? setup->workload->count : 0;
	struct placing_state *own = takt_zalloc(sizeof(*own));
	TAKT_CLEANUP(freep)
	struct takt_policy_expected *expected = takt_calloc(count + 1, sizeof(*expected));
	TAKT_CLEANUP(freep)
	struct takt_policy_param *params = takt_calloc(setup->param_count + 1, sizeof(*params));
	int rc = 0;

	if (!own || !expected || !params) {
		takt_free(own);
		return takt_err_set(err, -ENOMEM, "no memory for a policy");
	}
	own->policy = object->placing;
	if (own->policy->prepare)
		rc = call_prepare(own, setup, expected, params, &own->state, err);
	if (rc < 0) {
		takt_free(own);
		return rc;
	}
	*ret = own;
	return 0;
}

static void release(void *state)
{
	struct placing_state *own = state;

	if (own && own->policy->release)
		own->policy->release(own->state);
	takt_free(own);
}

/* A level beyond the policy's own is its mistake, not one of the index. */
static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct placing_state *own = state;
	struct takt_policy_request asked = request_of(request);
	struct takt_policy_node seen = node_of(node);
	uint32_t level =
		own->policy->score(own->state, &seen, &asked, choice ? choice->candidates : 0,
				   choice ? &choice->dev_mask : NULL);

	if (level == TAKT_POLICY_REFUSE)
		return TAKT_PLACE_REFUSE;
	return level < own->policy->levels ? level : own->policy->levels - 1;
}

static struct takt_policy_job job_of(const struct takt_order_job *job, uint64_t now_ns)
{
	return (struct takt_policy_job){
		.id = job->id,
		.submit_ns = job->submit_ns,
		.priority = job->priority,
		.gpu_milli = job->gpu_milli,
		.attained_gpu_ms = takt_order_attained_gpu_ms(job, now_ns),
		.ran_ns = takt_order_ran_ns(job, now_ns),
		.waited_ns = takt_order_waited_ns(job, now_ns),
		.running = job->running,
		.has_prediction = job->has_prediction,
		.predicted_ns = job->predicted_ns,
		.has_deadline = job->has_deadline,
		.deadline_ns = job->deadline_ns,
	};
}

static void key(const struct takt_order_config *config, const struct takt_order_job *job,
		uint64_t now_ns, struct takt_order_key *ret)
{
	const struct takt_policy_queue *policy = config->own;
	struct takt_policy_job seen = job_of(job, now_ns);

	policy->key(&seen, now_ns, &ret->band, &ret->value);
}

static uint64_t next_change_ns(const struct takt_order_config *config,
			       const struct takt_order_job *job, uint64_t now_ns)
{
	const struct takt_policy_queue *policy = config->own;
	struct takt_policy_job seen = job_of(job, now_ns);
	uint64_t at =
		policy->next_change_ns ? policy->next_change_ns(&seen, now_ns) : TAKT_ORDER_NEVER;

	return at > now_ns ? at : now_ns + 1;
}

static int check_name(const char *path, const char *name, struct takt_err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";

	if (name && name[0] && strlen(name) < MAX_NAME && name[strspn(name, allowed)] == '\0')
		return 0;
	return takt_err_set(err, -TAKT_E_UNSUPPORTED,
			    "'%s': its policy's name must be of a-z, 0-9, '-' and '_', shorter "
			    "than %d",
			    path, MAX_NAME);
}

static int check_abi(const char *path, uint32_t abi, struct takt_err *err)
{
	if (abi == TAKT_POLICY_ABI)
		return 0;
	return takt_err_set(err, -TAKT_E_UNSUPPORTED,
			    "'%s' was made for version %u of takt/policy.h, this takt has %u", path,
			    abi, TAKT_POLICY_ABI);
}

static int adopt_placing(const char *path, struct takt_policy_object *object, struct takt_err *err)
{
	const struct takt_policy_placement *policy = object->placing;
	int rc = check_abi(path, policy->abi, err);

	rc = rc < 0 ? rc : check_name(path, policy->name, err);
	if (rc < 0)
		return rc;
	if (!policy->score || policy->levels < 1 || policy->levels > TAKT_POLICY_MAX_LEVELS)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'%s': a placement policy needs score() and 1 to %d levels",
				    path, TAKT_POLICY_MAX_LEVELS);
	object->placement = (struct takt_placement){
		.name = policy->name,
		.summary = policy->summary ? policy->summary : "",
		.levels = (uint16_t)policy->levels,
		.prepare = prepare,
		.release = release,
		.score = score,
	};
	return 0;
}

static int adopt_queueing(const char *path, struct takt_policy_object *object, struct takt_err *err)
{
	const struct takt_policy_queue *policy = object->queueing;
	int rc = check_abi(path, policy->abi, err);

	rc = rc < 0 ? rc : check_name(path, policy->name, err);
	if (rc < 0)
		return rc;
	if (!policy->key)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "'%s': a queue policy needs key()",
				    path);
	object->order = (struct takt_order){
		.name = policy->name,
		.summary = policy->summary ? policy->summary : "",
		.reads = TAKT_ORDER_PRIORITY | TAKT_ORDER_SERVICE | TAKT_ORDER_PREDICTION |
			 TAKT_ORDER_DEADLINE | TAKT_ORDER_TIME,
		.preempts = policy->preempts,
		.key = key,
		.next_change_ns = next_change_ns,
	};
	return 0;
}

static int adopt(const char *path, void *opened, struct takt_err *err)
{
	struct takt_policy_object *object = opened;
	int rc = 0;

	object->placing = dlsym(object->file.handle, "takt_policy_placement");
	object->queueing = dlsym(object->file.handle, "takt_policy_queue");
	if (!object->placing && !object->queueing)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "'%s' has neither takt_policy_placement nor takt_policy_queue; "
				    "see takt/policy.h",
				    path);
	if (object->placing)
		rc = adopt_placing(path, object, err);
	if (rc == 0 && object->queueing)
		rc = adopt_queueing(path, object, err);
	return rc;
}

int takt_policy_object_open(const char *path, struct takt_policy_object **ret, struct takt_err *err)
{
	return takt_object_file_open(path, sizeof(**ret), adopt, ret, err);
}

void takt_policy_object_close(struct takt_policy_object *object)
{
	takt_object_file_close(object);
}

const struct takt_placement *takt_policy_object_placement(const struct takt_policy_object *object)
{
	return object->placing ? &object->placement : NULL;
}

const struct takt_order *takt_policy_object_order(const struct takt_policy_object *object)
{
	return object->queueing ? &object->order : NULL;
}

const void *takt_policy_object_order_own(const struct takt_policy_object *object)
{
	return object->queueing;
}
