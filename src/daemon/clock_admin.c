/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What administrators say of clocks and power limits for good: a facility's caps, and how the GPUs
 * stand while no job asks for anything else. Both hold when takt ends. What is declared lies in a
 * file that the actuator reads; it is in the runtime directory, so that it goes with a reboot, as
 * the driver's settings do.
 *
 * An order is sent to the actuator, its replies are awaited, then the GPUs are looked at, and the
 * answer is what they show. One that a GPU refuses is taken back on the others.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actuate/actuate.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/clock_terms.h"
#include "daemon/daemon.h"
#include "daemon/gpu_mig.h"
#include "daemon/log.h"

static const char caps_name[] = "clocks.caps";
static const uint64_t begin_ns = 20 * TAKT_NS_PER_S; /* the actuator's, after a death too */
static const uint64_t answer_ns = 8 * TAKT_NS_PER_S;
static const uint64_t look_ns = TAKT_NS_PER_S;
static const uint64_t cut_answer_ns = 60 * TAKT_NS_PER_S; /* instances take seconds each */

enum {
	MAX_ORDERS = 8,
	MAX_FILE = 64 * 1024,
	WHY = 160,
};

struct order {
	enum step {
		STEP_NONE,
		STEP_CAP,
		STEP_DECLARE,
		STEP_LOOK
	} step;
	struct takt_pending *pending; /* NULL = nobody waits any more */
	bool unsent;		      /* the actuator is about to be there */
	uint64_t first_seq, missing;  /* of the requests of this step */
	uint64_t last_seq;
	struct takt_err err; /* the first refusal */
	struct takt_boot deadline;
	uint64_t gpu_mask; /* CAP */
	uint32_t cap_mw;
	uint32_t was_mw[TAKT_DEVICE_MAX_GPUS];
	char *was_text;	   /* DECLARE: owned; NULL = there is no way back */
	uint64_t cut_mask; /* DECLARE: GPUs that may be cut into other MIG instances by it */
};

struct takt_clock_admin {
	struct takt_daemon *daemon;
	char *declared; /* owned; what the file says */
	/* takt clock writes the file by itself where it finds no daemon, one that begins too. */
	struct stat declared_stat; /* of the file that was read */
	struct takt_boot look_at;
	struct {
		uint32_t power_mw; /* 0 = nothing is known */
		char why[WHY];
	} cap[TAKT_DEVICE_MAX_GPUS];
	struct order orders[MAX_ORDERS];
};

static const struct takt_gpu_facts *facts_of(const struct takt_clock_admin *admin, uint32_t gpu)
{
	return takt_machine_facts(admin->daemon->machine, gpu);
}

static int write_file(const struct takt_clock_admin *admin, const char *name, const char *text,
		      struct takt_err *err)
{
	const char *path = admin->daemon->config.runtime_dir;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (dir < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	rc = takt_file_write_durable(admin->daemon->sys, dir, name, text, strlen(text), 0644, err);
	close(dir);
	return rc;
}

/* "" when there is none; NULL: no memory. */
static char *read_file(const struct takt_clock_admin *admin, const char *name)
{
	char path[PATH_MAX], *text = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", admin->daemon->config.runtime_dir, name);
	if (takt_file_read(admin->daemon->sys, AT_FDCWD, path, MAX_FILE, &text, &len, NULL) < 0)
		return takt_strdup("");
	return text;
}

/* The file once more if it is another than the one that was read. */
static void follow_file(struct takt_clock_admin *admin)
{
	char path[PATH_MAX], *text;
	struct stat now;

	snprintf(path, sizeof(path), "%s/%s", admin->daemon->config.runtime_dir,
		 takt_declared_name);
	if (stat(path, &now) < 0 || (now.st_ino == admin->declared_stat.st_ino &&
				     now.st_mtim.tv_sec == admin->declared_stat.st_mtim.tv_sec &&
				     now.st_mtim.tv_nsec == admin->declared_stat.st_mtim.tv_nsec))
		return;
	text = read_file(admin, takt_declared_name);
	if (!text)
		return;
	takt_free(admin->declared);
	admin->declared = text;
	admin->declared_stat = now;
}

static void note_cap(struct takt_clock_admin *admin, uint32_t gpu, uint32_t power_mw,
		     const char *why)
{
	admin->cap[gpu].power_mw = power_mw;
	takt_strcpy(admin->cap[gpu].why, sizeof(admin->cap[gpu].why), power_mw ? why : "");
}

/* One line a cap: UUID, milliwatts, why. Without it caps hold as well, nobody knows why. */
static void save_caps(const struct takt_clock_admin *admin)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_FILE);
	struct takt_err err;

	for (uint32_t gpu = 0; gpu < admin->daemon->gpu_count; gpu++)
		if (admin->cap[gpu].power_mw)
			takt_str_addf(&text, "%s %u %s\n", facts_of(admin, gpu)->uuid,
				      admin->cap[gpu].power_mw, admin->cap[gpu].why);
	if (write_file(admin, caps_name, takt_str_text(&text), &err) < 0)
		takt_log(TAKT_LOG_WARNING, "why power is capped is not kept: %s", err.msg);
}

static void load_caps(struct takt_clock_admin *admin, char *text)
{
	char *next, uuid[96], why[WHY];
	unsigned mw;

	for (char *line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (sscanf(line, "%95s %u %159[^\n]", uuid, &mw, why) != 3)
			continue;
		for (uint32_t gpu = 0; gpu < admin->daemon->gpu_count; gpu++)
			if (strcmp(facts_of(admin, gpu)->uuid, uuid) == 0)
				note_cap(admin, gpu, mw, why);
	}
}

int takt_clock_admin_new(struct takt_daemon *daemon, struct takt_clock_admin **ret,
			 struct takt_err *err)
{
	struct takt_clock_admin *admin = takt_zalloc(sizeof(*admin));
	char *caps = NULL;

	if (admin) {
		admin->daemon = daemon;
		admin->declared = read_file(admin, takt_declared_name);
		caps = read_file(admin, caps_name);
	}
	if (!admin || !admin->declared || !caps) {
		takt_free(caps);
		takt_clock_admin_free(admin);
		return takt_err_set(err, -ENOMEM, "what is declared of clocks");
	}
	load_caps(admin, caps);
	takt_free(caps);
	*ret = admin;
	return 0;
}

void takt_clock_admin_free(struct takt_clock_admin *admin)
{
	if (!admin)
		return;
	for (size_t i = 0; i < MAX_ORDERS; i++)
		takt_free(admin->orders[i].was_text);
	takt_free(admin->declared);
	takt_free(admin);
}

const char *takt_clock_admin_cap_why(const struct takt_clock_admin *admin, uint32_t gpu,
				     uint32_t power_mw)
{
	return power_mw && admin->cap[gpu].power_mw == power_mw ? admin->cap[gpu].why : "";
}

/* One request of a step; those of a step have numbers in a row. */
static void send(struct takt_clock_admin *admin, struct order *order,
		 struct takt_actuate_request request)
{
	uint64_t seq = takt_leases_send(admin->daemon->leases, request);

	if (seq == 0)
		takt_err_set(&order->err, -TAKT_E_UNAVAILABLE, "the actuator does not answer");
	if (seq == 0)
		return;
	if (order->missing++ == 0)
		order->first_seq = seq;
	order->last_seq = seq;
}

static void send_to_gpu(struct takt_clock_admin *admin, struct order *order, uint32_t op,
			uint32_t gpu, uint32_t power_mw)
{
	struct takt_actuate_request request = {
		.op = op,
		.gpu_index = gpu,
		.power_limit_mw = power_mw,
	};

	takt_strcpy(request.uuid, sizeof(request.uuid), facts_of(admin, gpu)->uuid);
	send(admin, order, request);
}

static void look(struct takt_clock_admin *admin, struct order *order)
{
	order->step = STEP_LOOK;
	for (uint32_t gpu = 0; gpu < admin->daemon->gpu_count; gpu++)
		if (takt_watch_known(admin->daemon, gpu))
			send_to_gpu(admin, order, TAKT_ACTUATE_STATUS, gpu, 0);
}

/* What could be done on some GPUs is undone; nobody waits for that. */
static void take_back(struct takt_clock_admin *admin, struct order *order)
{
	struct order unheard = {0};

	for (uint32_t gpu = 0; order->step == STEP_CAP && gpu < admin->daemon->gpu_count; gpu++)
		if (order->gpu_mask >> gpu & 1)
			send_to_gpu(admin, &unheard, TAKT_ACTUATE_CAP, gpu, order->was_mw[gpu]);
	if (order->step != STEP_DECLARE || !order->was_text)
		return;
	takt_free(admin->declared);
	admin->declared = order->was_text;
	order->was_text = NULL;
	if (write_file(admin, takt_declared_name, admin->declared, &unheard.err) < 0)
		takt_log(TAKT_LOG_ERROR, "what was declared of clocks before is not written: %s",
			 unheard.err.msg);
	send(admin, &unheard, (struct takt_actuate_request){.op = TAKT_ACTUATE_DECLARE});
}

static void finish(struct takt_clock_admin *admin, struct order *order)
{
	struct takt_pending *pending = order->pending;

	if (order->err.rc < 0)
		take_back(admin, order);
	order->pending = NULL;
	order->step = STEP_NONE;
	takt_free(order->was_text);
	order->was_text = NULL;
	if (pending && order->err.rc < 0)
		takt_pending_error(pending, &order->err);
	else if (pending)
		takt_leases_answer(admin->daemon->leases, pending);
}

/* All replies of a step are there, or will not come. What is to be given up goes on being tried, so
 * the answer is how far that is. */
static void go_on(struct takt_clock_admin *admin, struct order *order)
{
	bool withdraws = order->step == STEP_DECLARE && !order->was_text;

	if (order->missing > 0 && order->err.rc != -TAKT_E_UNAVAILABLE)
		return;
	if (withdraws && order->err.rc != -TAKT_E_UNAVAILABLE)
		order->err.rc = 0;
	order->missing = 0;
	if (order->err.rc == 0 && order->step != STEP_LOOK)
		look(admin, order);
	if (order->err.rc < 0 || order->missing == 0)
		finish(admin, order);
}

bool takt_clock_admin_take(struct takt_clock_admin *admin, const struct takt_actuate_reply *reply)
{
	for (size_t i = 0; i < MAX_ORDERS; i++) {
		struct order *order = &admin->orders[i];

		if (order->step == STEP_NONE || order->missing == 0 ||
		    reply->seq < order->first_seq || reply->seq > order->last_seq)
			continue;
		if (reply->rc < 0 && order->step != STEP_LOOK && order->err.rc == 0)
			takt_err_set(&order->err, reply->rc, "%s", reply->message);
		order->missing--;
		go_on(admin, order);
		return true;
	}
	return false;
}

static void send_caps(struct takt_clock_admin *admin, struct order *order)
{
	struct takt_lease_state state;

	for (uint32_t gpu = 0; gpu < admin->daemon->gpu_count; gpu++) {
		if (!(order->gpu_mask >> gpu & 1))
			continue;
		takt_leases_state(admin->daemon->leases, gpu, &state);
		order->was_mw[gpu] = state.cap_power_mw;
		send_to_gpu(admin, order, TAKT_ACTUATE_CAP, gpu, order->cap_mw);
	}
}

/* To the actuator, as soon as it is there: it starts beside takt serve, and again when it died. */
static void set_off(struct takt_clock_admin *admin, struct order *order)
{
	if (takt_leases_fd(admin->daemon->leases) < 0)
		return;
	order->unsent = false;
	order->deadline = takt_boot_add(takt_boot_now(admin->daemon->sys), answer_ns);
	if (order->cut_mask)
		order->deadline.ns += cut_answer_ns;
	if (order->step == STEP_CAP)
		send_caps(admin, order);
	else
		send(admin, order, (struct takt_actuate_request){.op = TAKT_ACTUATE_DECLARE});
	go_on(admin, order);
}

static void tick_order(struct takt_clock_admin *admin, struct order *order, struct takt_boot now)
{
	if (order->unsent)
		set_off(admin, order);
	if (order->step == STEP_NONE || now.ns < order->deadline.ns)
		return;
	takt_err_set(&order->err, order->unsent ? -TAKT_E_UNAVAILABLE : -ETIMEDOUT, "%s",
		     order->unsent ? "the actuator does not answer; try again"
				   : "a GPU did not answer in time");
	finish(admin, order);
}

void takt_clock_admin_tick(struct takt_clock_admin *admin, struct takt_boot now,
			   uint64_t *ret_next_ns)
{
	if (now.ns >= admin->look_at.ns) {
		follow_file(admin);
		admin->look_at = takt_boot_add(now, look_ns);
	}
	for (size_t i = 0; i < MAX_ORDERS; i++) {
		struct order *order = &admin->orders[i];

		if (order->step != STEP_NONE)
			tick_order(admin, order, now);
		if (order->step != STEP_NONE && order->deadline.ns < *ret_next_ns)
			*ret_next_ns = order->deadline.ns;
	}
}

static int check_peer(const struct takt_daemon *daemon, const struct takt_peer *peer,
		      struct takt_err *err)
{
	if (!peer->admin)
		return takt_err_set(err, -EPERM, "only root and members of group %s may do so",
				    daemon->config.admin_group);
	if (!daemon->manages)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "takt only observes here (%s)",
				    daemon->observe_why);
	return 0;
}

static struct order *free_order(struct takt_clock_admin *admin, enum step step,
				struct takt_err *err)
{
	struct order *found = NULL;

	for (size_t i = 0; i < MAX_ORDERS; i++) {
		struct order *order = &admin->orders[i];

		if (order->step == STEP_NONE)
			found = order;
		if (step == STEP_DECLARE && order->step == STEP_DECLARE) {
			takt_err_set(err, -TAKT_E_BUSY, "another declaration is under way");
			return NULL;
		}
	}
	if (!found)
		takt_err_set(err, -TAKT_E_BUSY, "%d orders are under way; try again", MAX_ORDERS);
	return found;
}

static void forget(void *order)
{
	((struct order *)order)->pending = NULL;
}

static void begin(struct takt_clock_admin *admin, struct order *order, enum step step,
		  struct takt_pending *pending)
{
	*order = (struct order){
		.step = step,
		.pending = pending,
		.unsent = true,
		.deadline = takt_boot_add(takt_boot_now(admin->daemon->sys), begin_ns),
	};
	takt_pending_set_cancel(pending, forget, order);
}

const char *takt_clock_admin_mig(const struct takt_clock_admin *admin, uint32_t gpu,
				 char ret[TAKT_MIG_TEXT])
{
	return takt_declared_mig(admin->declared, facts_of(admin, gpu)->uuid, ret);
}

bool takt_clock_admin_cuts(const struct takt_clock_admin *admin, uint32_t gpu)
{
	for (size_t i = 0; i < MAX_ORDERS; i++)
		if (admin->orders[i].step != STEP_NONE && admin->orders[i].cut_mask >> gpu & 1)
			return true;
	return false;
}

/* Jobs may be on a GPU that stays declared as it is, not on one that is to be cut otherwise. */
static int check_cut(const struct takt_clock_admin *admin, const struct takt_declared *wish,
		     struct takt_err *err)
{
	char was[TAKT_MIG_TEXT];

	if (strcmp(takt_clock_admin_mig(admin, wish->index, was), wish->mig) == 0 || !wish->mig[0])
		return 0;
	return takt_mig_check(admin->daemon->mig, wish->index, err);
}

/* An order names GPUs that are there and take what is asked. */
static int check_declared(const struct takt_clock_admin *admin, const struct takt_declared *wish,
			  struct takt_err *err)
{
	const struct takt_gpu_facts *facts;
	struct takt_declared_bounds bounds;
	int rc;

	if (wish->index >= admin->daemon->gpu_count ||
	    !takt_watch_known(admin->daemon, wish->index))
		return takt_err_set(err, -TAKT_E_USAGE, "no GPU %u is known here", wish->index);
	facts = facts_of(admin, wish->index);
	bounds = (struct takt_declared_bounds){.uuid = facts->uuid, .name = facts->name};
	if ((facts->has & TAKT_FACT_SM_CLOCKS) && facts->sm_clock_count) {
		bounds.sm_min_mhz = facts->sm_clocks_mhz[0];
		bounds.sm_max_mhz = facts->sm_clocks_mhz[facts->sm_clock_count - 1];
	}
	if (facts->has & TAKT_FACT_POWER_LIMITS) {
		bounds.power_min_mw = facts->power_min_mw;
		bounds.power_max_mw = facts->power_max_mw;
	}
	rc = takt_declared_check(wish, &bounds, err);
	if (rc == 0)
		rc = check_cut(admin, wish, err);
	return rc < 0 ? takt_err_wrap(err, rc, "GPU %u", wish->index) : 0;
}

static int check_all(const struct takt_clock_admin *admin,
		     const struct takt_declaration *declaration, struct takt_err *err)
{
	uint64_t seen = 0;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < declaration->count; i++) {
		uint32_t gpu = declaration->gpu[i].index;

		rc = check_declared(admin, &declaration->gpu[i], err);
		if (rc == 0 && (seen >> gpu & 1))
			rc = takt_err_set(err, -TAKT_E_USAGE, "GPU %u is declared twice", gpu);
		if (rc == 0)
			seen |= 1ull << gpu;
	}
	return rc;
}

int takt_api_clock_cap(void *ctx, const struct takt_peer *peer, const struct takt_clock_cap *cap,
		       struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_clock_admin *admin = daemon->clock_admin;
	char who[33], why[WHY];
	struct order *order;
	int rc = check_peer(daemon, peer, err);

	for (uint32_t gpu = 0; rc == 0 && gpu < 64; gpu++)
		if (cap->gpu_mask >> gpu & 1)
			rc = check_declared(
				admin,
				&(struct takt_declared){.index = gpu,
							.cap_power_mw = cap->power_limit_mw},
				err);
	if (rc < 0)
		return rc;
	order = free_order(admin, STEP_CAP, err);
	if (!order)
		return err->rc;
	begin(admin, order, STEP_CAP, pending);
	order->gpu_mask = cap->gpu_mask;
	order->cap_mw = cap->power_limit_mw;
	snprintf(why, sizeof(why), "%s%s%s", takt_user_name(peer->uid, who, sizeof(who)),
		 cap->reason[0] ? ": " : "", cap->reason);
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (cap->gpu_mask >> gpu & 1)
			note_cap(admin, gpu, cap->power_limit_mw, why);
	save_caps(admin);
	takt_log(TAKT_LOG_NOTICE, "power cap of %u W on GPUs %#" PRIx64 " by %s",
		 cap->power_limit_mw / 1000, cap->gpu_mask, why);
	set_off(admin, order);
	return 0;
}

static int declared_text(const struct takt_clock_admin *admin,
			 const struct takt_declaration *declaration, struct takt_str *ret)
{
	for (uint32_t i = 0; declaration && i < declaration->count; i++)
		takt_declared_line(&declaration->gpu[i],
				   facts_of(admin, declaration->gpu[i].index)->uuid, ret);
	return ret->rc;
}

/* From here on the actuator reads this. *ret_was: what it read before, owned. */
static int replace_declared(struct takt_clock_admin *admin,
			    const struct takt_declaration *declaration, char **ret_was,
			    struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_FILE);
	char *copy = NULL;
	int rc;

	if (declared_text(admin, declaration, &text) == 0)
		copy = takt_strdup(takt_str_text(&text));
	if (!copy)
		return takt_err_set(err, -ENOMEM, "no memory for what is declared");
	rc = write_file(admin, takt_declared_name, copy, err);
	if (rc < 0) {
		takt_free(copy);
		return rc;
	}
	*ret_was = admin->declared;
	admin->declared = copy;
	return 0;
}

static void await_cuts(struct takt_clock_admin *admin, struct order *order,
		       const struct takt_declaration *declaration)
{
	for (uint32_t i = 0; i < declaration->count; i++)
		if (declaration->gpu[i].mig[0])
			order->cut_mask |= 1ull << declaration->gpu[i].index;
	takt_mig_close(admin->daemon->mig);
}

int takt_api_clock_declare(void *ctx, const struct takt_peer *peer,
			   const struct takt_declaration *declaration, struct takt_pending *pending,
			   struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_clock_admin *admin = daemon->clock_admin;
	char who[33], *was = NULL;
	struct order *order = NULL;
	int rc = check_peer(daemon, peer, err);

	if (rc == 0 && declaration)
		rc = check_all(admin, declaration, err);
	if (rc == 0 && !(order = free_order(admin, STEP_DECLARE, err)))
		rc = err->rc;
	if (rc == 0)
		rc = replace_declared(admin, declaration, &was, err);
	if (rc < 0)
		return rc;
	begin(admin, order, STEP_DECLARE, pending);
	if (declaration)
		order->was_text = was;
	else
		takt_free(was);
	if (declaration)
		await_cuts(admin, order, declaration);
	for (uint32_t i = 0; declaration && i < declaration->count; i++)
		if (declaration->gpu[i].cap_power_mw)
			note_cap(admin, declaration->gpu[i].index, declaration->gpu[i].cap_power_mw,
				 "declared");
	save_caps(admin);
	if (!declaration)
		takt_leases_end_standing(daemon->leases);
	takt_log(TAKT_LOG_NOTICE, "clocks of %u GPUs are declared by %s",
		 declaration ? declaration->count : 0, takt_user_name(peer->uid, who, sizeof(who)));
	set_off(admin, order);
	return 0;
}
