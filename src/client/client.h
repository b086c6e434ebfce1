/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client as takt's own programs use it: blocking calls that return views. What other programs
 * get is include/takt/takt.h, which is built on this.
 *
 * rc of a call: what the daemon said (its error's own code), or -TAKT_E_UNAVAILABLE when it cannot
 * be reached or went away in between, whatever the reason: then asking again later may help.
 */
#ifndef TAKT_CLIENT_CLIENT_H
#define TAKT_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "codec/clock_policy.h"
#include "codec/course_view.h"
#include "codec/health.h"
#include "codec/history_view.h"
#include "codec/jobspec.h"
#include "codec/net_view.h"
#include "codec/orders.h"
#include "codec/tokens.h"
#include "codec/views.h"

struct takt_client;

/*
 * Finds a daemon and keeps a connection to it. `socket` NULL: $TAKT_SOCKET if that is set, else the
 * first that answers of $XDG_RUNTIME_DIR/takt/takt.sock, /tmp/takt-UID/takt.sock (if the directory
 * is ours) and /run/takt/takt.sock. The error says what was tried.
 */
int takt_client_connect(const char *socket, struct takt_client **ret, struct takt_err *err);
void takt_client_free(struct takt_client *client); /* NULL is fine */
/* Path of the socket in use; borrowed until free. */
const char *takt_client_socket(const struct takt_client *client);

/* While a call waits and `fd` becomes readable, `woken` is called; it must not use this client.
 * Negative ends the call with -ECANCELED. fd -1 = no more. */
void takt_client_wake_on(struct takt_client *client, int fd, int (*woken)(void *ctx), void *ctx);

/* Called once, by the next call while it waits for its answer; it must not use this client. NULL =
 * none. */
void takt_client_meanwhile(struct takt_client *client, void (*meanwhile)(void));

/* The JSON of the last answer; borrowed until the next call, "" before the first. */
const char *takt_client_json(const struct takt_client *client);

/* `path` as in docs/api.md, with its query; body NULL for GET. The answer is in takt_client_json().
 */
int takt_client_ask(struct takt_client *client, const char *path, const char *body,
		    struct takt_err *err);

/* Callers fini what owns memory. */
int takt_client_status(struct takt_client *client, struct takt_status_view *ret,
		       struct takt_err *err);
int takt_client_topology(struct takt_client *client, struct takt_topo_view *ret,
			 struct takt_err *err);
int takt_client_queue(struct takt_client *client, bool history, uint32_t limit,
		      struct takt_queue_view *ret, struct takt_err *err);
/* Ended jobs by number from the highest down: those below `before` (0 = all) that ended in the time
 * given (0 = no bound), of this user (UINT32_MAX = any), on this GPU (-1 = any), in one of these
 * states (names, commas between them; NULL = any). */
struct takt_client_past {
	uint64_t before;
	int64_t since_ms, until_ms;
	uint32_t uid;
	int64_t gpu;
	const char *states;
	uint32_t limit; /* 1..10,000 */
};
/* One answer, which may end before the limit: ret->next is where to go on. */
int takt_client_past(struct takt_client *client, const struct takt_client_past *past,
		     struct takt_queue_view *ret, struct takt_err *err);
/* As many answers as it takes to have `limit` of them, or all. */
int takt_client_past_all(struct takt_client *client, const struct takt_client_past *past,
			 struct takt_queue_view *ret, struct takt_err *err);
int takt_client_job(struct takt_client *client, uint64_t job_id, struct takt_job_view *ret,
		    struct takt_err *err);
/* *ret is overwritten. */
int takt_client_course(struct takt_client *client, uint64_t job_id, struct takt_course_view *ret,
		       struct takt_err *err);
int takt_client_explain(struct takt_client *client, uint64_t job_id, struct takt_explain_view *ret,
			struct takt_err *err);
int takt_client_submit(struct takt_client *client, const struct takt_jobspec *spec,
		       struct takt_job_view *ret, struct takt_err *err);
/* `body` as docs/api.md has it for /v1/jobs/batch; *ret: the first of them. */
int takt_client_submit_many(struct takt_client *client, const char *body, struct takt_job_view *ret,
			    struct takt_err *err);
/* What would become of it; nothing is handed in. */
int takt_client_try(struct takt_client *client, const struct takt_jobspec *spec,
		    struct takt_try_view *ret, struct takt_err *err);
/* The same of several, as takt_client_submit_many has them. *ret has room for `count`, their
 * number.
 */
int takt_client_try_many(struct takt_client *client, const char *body, uint32_t count,
			 struct takt_try_view *ret, struct takt_err *err);
int takt_client_cancel(struct takt_client *client, uint64_t job_id, struct takt_job_view *ret,
		       struct takt_err *err);
/* A new job of that one's description, with the environment of `env` alone. */
int takt_client_again(struct takt_client *client, uint64_t job_id, const struct takt_jobspec *env,
		      struct takt_job_view *ret, struct takt_err *err);
int takt_client_change(struct takt_client *client, uint64_t job_id,
		       const struct takt_job_change *change, struct takt_job_view *ret,
		       struct takt_err *err);
int takt_client_signal(struct takt_client *client, uint64_t job_id, int signal,
		       struct takt_err *err);
/* Returns when the job has ended, or as it is after timeout_ms. */
int takt_client_wait(struct takt_client *client, uint64_t job_id, uint32_t timeout_ms,
		     struct takt_job_view *ret, struct takt_err *err);
/* A cap; what is declared; what was declared taken back. */
int takt_client_clock_cap(struct takt_client *client, const struct takt_clock_cap *cap,
			  struct takt_clock_view *ret, struct takt_err *err);
int takt_client_clock_apply(struct takt_client *client, const struct takt_declaration *declaration,
			    struct takt_clock_view *ret, struct takt_err *err);
int takt_client_clock_restore(struct takt_client *client, struct takt_clock_view *ret,
			      struct takt_err *err);
int takt_client_clocks(struct takt_client *client, struct takt_clock_view *ret,
		       struct takt_err *err);
int takt_client_clock_set(struct takt_client *client, uint64_t gpu_mask,
			  const struct takt_clock_order *ask, struct takt_clock_view *ret,
			  struct takt_err *err);
/* A ceiling of all CPUs, 0: as they were found. */
int takt_client_cpu_clock(struct takt_client *client, uint32_t max_mhz, struct takt_clock_view *ret,
			  struct takt_err *err);
int takt_client_clock_reset(struct takt_client *client, uint64_t gpu_mask,
			    struct takt_clock_view *ret, struct takt_err *err);

/* One metric of one GPU over time; `step` NULL: the finest that fits. The caller finis *ret. */
int takt_client_history(struct takt_client *client, uint32_t gpu, const char *metric,
			const char *step, int64_t since_ms, int64_t until_ms,
			struct takt_history_view *ret, struct takt_err *err);

/* How the GPUs are; the caller finis it. */
int takt_client_health(struct takt_client *client, struct takt_health_view *ret,
		       struct takt_err *err);

/* Round trips to other machines. */
int takt_client_net(struct takt_client *client, struct takt_net_view *ret, struct takt_err *err);

int takt_client_orders(struct takt_client *client, struct takt_orders_view *ret,
		       struct takt_err *err);
/* Sets GPUs aside, resumes, reserves, releases. */
/* Has the daemon read its configuration again. */
int takt_client_reload(struct takt_client *client, struct takt_reload_view *ret,
		       struct takt_err *err);
int takt_client_order(struct takt_client *client, const struct takt_gpu_request *request,
		      struct takt_orders_view *ret, struct takt_err *err);

/* Tokens that one may see. A new one: it alone, with `token`. Revoked: those that are left. The
 * caller finis *ret. */
int takt_client_tokens(struct takt_client *client, struct takt_tokens_view *ret,
		       struct takt_err *err);
int takt_client_token_add(struct takt_client *client, const struct takt_token_request *request,
			  struct takt_tokens_view *ret, struct takt_err *err);
int takt_client_token_revoke(struct takt_client *client, const char *id,
			     struct takt_tokens_view *ret, struct takt_err *err);

/* Where a reader of a log is. Zeroed = at the beginning. */
struct takt_log_place {
	uint64_t offset;
	uint32_t attempt; /* 0 = none yet */
	bool over;	  /* nothing more will come */
	/* So many bytes before the log's end at most; 0 = all of it. Stays as it is. */
	uint64_t tail;
};
/*
 * The next part of a job's log (at most 256 KiB, any bytes) and moves *place behind it. follow_ms
 * > 0: waits so long for something to come. When the job began anew (another attempt) the place
 * starts at the beginning of its new log. *ret_bytes is borrowed until the next call.
 */
int takt_client_log(struct takt_client *client, uint64_t job_id, uint32_t follow_ms,
		    struct takt_log_place *place, const char **ret_bytes, size_t *ret_len,
		    struct takt_err *err);

/* Has it ended? By the name of its state. */
bool takt_client_job_ended(const struct takt_job_view *job);
/* The exit status of a program that stands for an ended job: its code, 128 + signal, else 1. */
int takt_client_exit_status(const struct takt_job_view *job);

#endif
