/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG through the driver: how a GPU is cut, and cutting it anew. GPU instances first, then what
 * computes in them; undone the other way round.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "device/nvml_api.h"

enum {
	COMPUTE_PROFILES = 8,
	MAX_PLACES = 16,
};

struct cut {
	const struct takt_nvml_api *api;
	struct takt_nvml_gpu *gpu;
	const struct takt_set_call *call; /* when it is cut anew */
	struct takt_err *err;
	bool changed; /* something was done to the GPU */
};

/* One kind of GPU instance. */
struct kind {
	char name[32]; /* "" = an old library does not say */
	uint32_t id, slices, memory_mib;
};

/* A GPU instance that there is. */
struct part {
	struct nvml_gpu_instance *handle;
	struct takt_mig_part is;
	bool whole; /* one compute instance has all of it */
};

struct parts {
	uint32_t count;
	struct part at[TAKT_MIG_MAX_PARTS];
};

static bool can_cut(const struct takt_nvml_api *api)
{
	return api->gi_profile && api->gi_list && api->gi_info && api->ci_profile && api->ci_list &&
	       api->ci_info && api->gi_create && api->gi_create_at && api->gi_places &&
	       api->gi_destroy && api->ci_create && api->ci_destroy;
}

static int fail(struct cut *cut, int code, const char *what)
{
	int rc = takt_nvml_rc(code);

	if (cut->changed && rc != -ENODEV && rc != -ETIMEDOUT)
		rc = code == NVML_ERROR_INSUFFICIENT_RESOURCES ? -TAKT_E_IMPOSSIBLE : -EIO;
	rc = takt_err_set(cut->err, rc, "%s: %s", what, takt_nvml_text(code));
	if (cut->err)
		cut->err->vendor = code;
	return rc;
}

static int read_kind(const struct cut *cut, uint32_t number, struct kind *ret)
{
	struct nvml_gpu_instance_profile_v2 named = {.version = NVML_GPU_INSTANCE_PROFILE_V2_WORD};
	struct nvml_gpu_instance_profile plain;
	int code = cut->api->gi_profile(cut->gpu->device, number, &plain);

	if (code != NVML_SUCCESS)
		return code;
	*ret = (struct kind){.id = plain.id,
			     .slices = plain.slice_count,
			     .memory_mib = (uint32_t)plain.memory_mib};
	if (cut->api->gi_profile_named &&
	    cut->api->gi_profile_named(cut->gpu->device, number, &named) == NVML_SUCCESS)
		takt_strcpy(ret->name, sizeof(ret->name),
			    named.name + (strncmp(named.name, "MIG ", 4) == 0 ? 4 : 0));
	return NVML_SUCCESS;
}

/* The kind that a part asks for. */
static bool find_kind(const struct cut *cut, const struct takt_mig_part *part, struct kind *ret)
{
	for (uint32_t number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; number++) {
		if (read_kind(cut, number, ret) != NVML_SUCCESS)
			continue;
		if (part->name[0] ? strcmp(part->name, ret->name) == 0 : part->id == ret->id)
			return true;
	}
	return false;
}

/* The compute profile that has all of a GPU instance. */
static int whole_profile(const struct cut *cut, struct nvml_gpu_instance *instance, uint32_t slices,
			 uint32_t *ret)
{
	struct nvml_compute_instance_profile profile;

	for (uint32_t number = 0; number < COMPUTE_PROFILES; number++)
		if (cut->api->ci_profile(instance, number, 0, &profile) == NVML_SUCCESS &&
		    profile.slice_count == slices) {
			*ret = profile.id;
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_SUPPORTED;
}

struct computes {
	uint32_t count;
	struct nvml_compute_instance *handle[TAKT_MIG_MAX_COMPUTE];
	struct nvml_compute_instance_info info[TAKT_MIG_MAX_COMPUTE]; /* by their place */
};

static void put_in_place(struct computes *all, struct nvml_compute_instance *handle,
			 const struct nvml_compute_instance_info *info)
{
	uint32_t at = all->count++;

	for (; at > 0 && all->info[at - 1].placement.start > info->placement.start; at--) {
		all->info[at] = all->info[at - 1];
		all->handle[at] = all->handle[at - 1];
	}
	all->info[at] = *info;
	all->handle[at] = handle;
}

static int list_computes(const struct cut *cut, struct nvml_gpu_instance *instance,
			 struct computes *ret)
{
	*ret = (struct computes){0};
	for (uint32_t number = 0; number < COMPUTE_PROFILES; number++) {
		struct nvml_compute_instance *found[TAKT_MIG_MAX_COMPUTE];
		struct nvml_compute_instance_profile profile;
		struct nvml_compute_instance_info info;
		uint32_t count = TAKT_MIG_MAX_COMPUTE;
		int code;

		if (cut->api->ci_profile(instance, number, 0, &profile) != NVML_SUCCESS)
			continue;
		code = cut->api->ci_list(instance, profile.id, found, &count);
		for (uint32_t i = 0; code == NVML_SUCCESS && i < count; i++) {
			code = ret->count < TAKT_MIG_MAX_COMPUTE
				       ? cut->api->ci_info(found[i], &info)
				       : NVML_ERROR_INSUFFICIENT_SIZE;
			if (code == NVML_SUCCESS)
				put_in_place(ret, found[i], &info);
		}
		if (code != NVML_SUCCESS)
			return code;
	}
	return NVML_SUCCESS;
}

static int read_part(const struct cut *cut, struct nvml_gpu_instance *handle,
		     const struct kind *kind, struct part *ret)
{
	struct nvml_gpu_instance_info info;
	struct computes computes;
	uint32_t whole = 0;
	int code = cut->api->gi_info(handle, &info);

	if (code == NVML_SUCCESS)
		code = list_computes(cut, handle, &computes);
	if (code == NVML_SUCCESS)
		code = whole_profile(cut, handle, kind->slices, &whole);
	if (code != NVML_SUCCESS)
		return code;
	*ret = (struct part){
		.handle = handle,
		.is = {.id = kind->id,
		       .start = (int32_t)info.placement.start,
		       .compute_count = (int32_t)computes.count},
		.whole = computes.count == 1 && computes.info[0].profile_id == whole,
	};
	for (uint32_t i = 0; i < computes.count; i++)
		ret->is.compute[i] = computes.info[i].profile_id;
	return NVML_SUCCESS;
}

/* By their place. */
static void put_part(struct parts *parts, const struct part *part)
{
	uint32_t at = parts->count++;

	for (; at > 0 && parts->at[at - 1].is.start > part->is.start; at--)
		parts->at[at] = parts->at[at - 1];
	parts->at[at] = *part;
}

static int read_parts(const struct cut *cut, struct parts *ret)
{
	*ret = (struct parts){0};
	for (uint32_t number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; number++) {
		struct nvml_gpu_instance *found[TAKT_MIG_MAX_PARTS];
		uint32_t count = TAKT_MIG_MAX_PARTS;
		struct part part;
		struct kind kind;
		int code;

		if (read_kind(cut, number, &kind) != NVML_SUCCESS)
			continue;
		code = cut->api->gi_list(cut->gpu->device, kind.id, found, &count);
		for (uint32_t i = 0; code == NVML_SUCCESS && i < count; i++) {
			code = ret->count < TAKT_MIG_MAX_PARTS
				       ? read_part(cut, found[i], &kind, &part)
				       : NVML_ERROR_INSUFFICIENT_SIZE;
			if (code == NVML_SUCCESS)
				put_part(ret, &part);
		}
		if (code != NVML_SUCCESS)
			return code;
	}
	return NVML_SUCCESS;
}

static bool same_computes(const struct part *there, const struct takt_mig_part *wish)
{
	if (wish->compute_count < 0)
		return there->whole;
	if (there->is.compute_count != wish->compute_count)
		return false;
	for (int32_t i = 0; i < wish->compute_count; i++)
		if (there->is.compute[i] != wish->compute[i])
			return false;
	return true;
}

static bool is_as_wished(const struct part *there, const struct takt_mig_part *wish)
{
	return there->is.id == wish->id && (wish->start < 0 || wish->start == there->is.start) &&
	       same_computes(there, wish);
}

/* Whether the GPU is cut so already. Parts that name their place come first in what is looked for,
 * so that none takes the place of another. */
static bool stands(const struct parts *parts, const struct takt_mig_layout *wish)
{
	uint32_t taken = 0, found = 0;

	for (int placed = 1; placed >= 0; placed--) {
		for (uint32_t w = 0; w < wish->count; w++) {
			bool more = (wish->parts[w].start >= 0) == placed;

			for (uint32_t i = 0; more && i < parts->count; i++) {
				if (taken >> i & 1 || !is_as_wished(&parts->at[i], &wish->parts[w]))
					continue;
				taken |= 1u << i;
				found++;
				more = false;
			}
		}
	}
	return found == wish->count && found == parts->count;
}

static void list_kinds(const struct cut *cut, struct takt_gpu_facts *facts)
{
	struct kind kind;

	facts->kind_count = 0;
	for (uint32_t number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; number++) {
		struct takt_gpu_kind *to = &facts->kinds[facts->kind_count];

		if (facts->kind_count == TAKT_DEVICE_MAX_KINDS ||
		    read_kind(cut, number, &kind) != NVML_SUCCESS || !kind.name[0])
			continue;
		takt_strcpy(to->name, sizeof(to->name), kind.name);
		to->slices = kind.slices;
		to->memory_mib = kind.memory_mib;
		facts->kind_count++;
	}
}

void takt_nvml_read_layout(struct takt_nvml *nvml, uint32_t gpu, struct takt_gpu_facts *facts)
{
	const struct cut cut = {.api = &nvml->api, .gpu = &nvml->gpus[gpu]};
	struct takt_mig_layout layout = {0};
	struct parts parts;

	facts->mig_layout[0] = '\0';
	if (!can_cut(&nvml->api))
		return;
	list_kinds(&cut, facts);
	if (read_parts(&cut, &parts) != NVML_SUCCESS)
		return;
	for (uint32_t i = 0; i < parts.count; i++) {
		layout.parts[i] = parts.at[i].is;
		if (parts.at[i].whole)
			layout.parts[i].compute_count = -1;
	}
	layout.count = parts.count;
	if (!takt_mig_layout_text(&layout, facts->mig_layout))
		facts->mig_layout[0] = '\0';
}

static int refuse_kind(struct cut *cut, const struct takt_mig_part *part)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(512);
	struct kind kind;

	for (uint32_t number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; number++)
		if (read_kind(cut, number, &kind) == NVML_SUCCESS && kind.name[0])
			takt_str_addf(&text, "%s%s", takt_str_text(&text)[0] ? ", " : "",
				      kind.name);
	if (part->name[0])
		return takt_err_set(cut->err, -EINVAL,
				    "no MIG instances of kind '%s' here; there are %s", part->name,
				    takt_str_text(&text));
	return takt_err_set(cut->err, -EINVAL, "no MIG instances of kind %u here; there are %s",
			    part->id, takt_str_text(&text));
}

static int name_kinds(struct cut *cut, struct takt_mig_layout *wish)
{
	for (uint32_t i = 0; i < wish->count; i++) {
		struct kind kind;

		if (!find_kind(cut, &wish->parts[i], &kind))
			return refuse_kind(cut, &wish->parts[i]);
		wish->parts[i].id = kind.id;
	}
	return 0;
}

/* The driver refuses to destroy what is in use; asking first means that nothing is half destroyed.
 */
static int check_unused(struct cut *cut)
{
	struct takt_gpu_reading reading = {0};
	int code = takt_nvml_read_procs(cut->api, cut->gpu, &reading);
	uint32_t count = reading.proc_count + reading.procs_dropped;

	if (code != NVML_SUCCESS)
		return fail(cut, code, "listing its processes");
	if (count == 0)
		return 0;
	return takt_err_set(cut->err, -TAKT_E_BUSY, "%" PRIu32 " process%s on it", count,
			    count == 1 ? " is" : "es are");
}

/* A call may have hung: whoever posted this may have lost the right to it meanwhile. */
static int ask_gate(const struct cut *cut)
{
	int rc = cut->call->gate ? cut->call->gate(cut->call->gate_ctx) : 0;

	return rc < 0 ? takt_err_set(cut->err, rc, "another process sets the GPU now") : 0;
}

static int destroy_part(struct cut *cut, const struct part *part)
{
	struct computes computes;
	int code = list_computes(cut, part->handle, &computes);

	for (uint32_t i = 0; code == NVML_SUCCESS && i < computes.count; i++) {
		code = cut->api->ci_destroy(computes.handle[i]);
		cut->changed = cut->changed || code == NVML_SUCCESS;
	}
	if (code == NVML_SUCCESS)
		code = cut->api->gi_destroy(part->handle);
	if (code != NVML_SUCCESS)
		return fail(cut, code, "destroying a MIG instance");
	cut->changed = true;
	return 0;
}

static int destroy(struct cut *cut, const struct parts *parts)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < parts->count; i++) {
		rc = ask_gate(cut);
		if (rc == 0)
			rc = destroy_part(cut, &parts->at[i]);
	}
	return rc;
}

static int create_at(const struct cut *cut, uint32_t id, uint32_t start,
		     struct nvml_gpu_instance **ret)
{
	struct nvml_gpu_instance_placement places[MAX_PLACES];
	uint32_t count = MAX_PLACES;
	int code = cut->api->gi_places(cut->gpu->device, id, places, &count);

	for (uint32_t i = 0; code == NVML_SUCCESS && i < count; i++)
		if (places[i].start == start)
			return cut->api->gi_create_at(cut->gpu->device, id, &places[i], ret);
	return code == NVML_SUCCESS ? NVML_ERROR_INSUFFICIENT_RESOURCES : code;
}

static int create_computes(const struct cut *cut, struct nvml_gpu_instance *instance,
			   const struct takt_mig_part *part, uint32_t slices)
{
	struct nvml_compute_instance *made;
	uint32_t whole;
	int code = NVML_SUCCESS;

	if (part->compute_count < 0) {
		code = whole_profile(cut, instance, slices, &whole);
		return code == NVML_SUCCESS ? cut->api->ci_create(instance, whole, &made) : code;
	}
	for (int32_t i = 0; code == NVML_SUCCESS && i < part->compute_count; i++)
		code = cut->api->ci_create(instance, part->compute[i], &made);
	return code;
}

static int create_part(struct cut *cut, const struct takt_mig_part *part)
{
	struct nvml_gpu_instance *instance;
	struct kind kind;
	int code = find_kind(cut, part, &kind) ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;

	if (code == NVML_SUCCESS)
		code = part->start < 0 ? cut->api->gi_create(cut->gpu->device, part->id, &instance)
				       : create_at(cut, part->id, (uint32_t)part->start, &instance);
	if (code == NVML_SUCCESS) {
		cut->changed = true;
		code = create_computes(cut, instance, part, kind.slices);
	}
	return code == NVML_SUCCESS ? 0 : fail(cut, code, "creating a MIG instance");
}

static int create(struct cut *cut, const struct takt_mig_layout *wish)
{
	int rc = 0;

	for (int placed = 1; placed >= 0; placed--)
		for (uint32_t i = 0; rc == 0 && i < wish->count; i++)
			if ((wish->parts[i].start >= 0) == placed) {
				rc = ask_gate(cut);
				rc = rc == 0 ? create_part(cut, &wish->parts[i]) : rc;
			}
	return rc;
}

int takt_nvml_cut(struct takt_nvml *nvml, uint32_t gpu, const struct takt_set_call *call,
		  struct takt_err *err)
{
	struct cut cut = {.api = &nvml->api, .gpu = &nvml->gpus[gpu], .call = call, .err = err};
	struct takt_mig_layout wish;
	struct parts parts;
	int code, rc = takt_mig_layout_parse(call->mig, &wish, err);

	if (rc == 0 && !can_cut(&nvml->api))
		rc = takt_err_set(err, -TAKT_E_UNSUPPORTED,
				  "this driver's library has no functions for MIG");
	if (rc == 0)
		rc = name_kinds(&cut, &wish);
	if (rc < 0)
		return rc;
	code = read_parts(&cut, &parts);
	if (code != NVML_SUCCESS)
		return fail(&cut, code, "listing MIG instances");
	if (stands(&parts, &wish))
		return 0;
	rc = check_unused(&cut);
	if (rc == 0)
		rc = destroy(&cut, &parts);
	return rc == 0 ? create(&cut, &wish) : rc;
}
