/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API: HTTP/JSON on a Unix socket, routes and access control over an interface that the daemon
 * supplies. Over TCP (loopback too) the metrics page, and on a socket of its own the web page and,
 * for requests with a token, the API (docs/web.md); the Host header is checked.
 *
 * Who asks is on the Unix socket what the kernel says of its peer (SO_PEERCRED, and its groups by
 * SO_PEERGROUPS), and nothing in a request can claim otherwise; over TCP it is the one account that
 * the token stands for. Single-threaded: everything happens
 * inside takt_server_pump() on the caller's loop. Answers that have to wait (a submit for its
 * commit, a wait for its job, a log that is followed) are held as struct takt_pending and finished
 * later.
 */
#ifndef TAKT_SERVER_SERVER_H
#define TAKT_SERVER_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "codec/clock_policy.h"
#include "codec/course_view.h"
#include "codec/health.h"
#include "codec/jobspec.h"
#include "codec/net_view.h"
#include "codec/orders.h"
#include "codec/views.h"
#include "net/tls.h"

struct takt_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	bool admin; /* root, the daemon's own user in single-user mode, or a member of group
		       takt-admin */
};

/* One request whose answer comes later. Valid until finished; gone (cancelled callback) when the
 * client hangs up. A backend that is handed one may finish it before it returns; one that returns
 * an error has not taken it. */
struct takt_pending;
/* Answer with a status and a JSON body (copied); the pending is gone afterwards. */
void takt_pending_json(struct takt_pending *pending, int http_status, const char *json, size_t len);
/* Answer with an error's status and body. */
void takt_pending_error(struct takt_pending *pending, const struct takt_err *error);
/* The backend's own pointer, and what to call when the client hangs up before the answer. */
void takt_pending_set_cancel(struct takt_pending *pending, void (*cancelled)(void *ctx), void *ctx);

/* Which ended jobs: by number from the highest down. Or which live ones: those of `uid`. */
struct takt_history_ask {
	bool live;
	uint64_t before;	    /* lower numbers only; 0 = from the newest */
	int64_t since_ms, until_ms; /* of the end, wall clock; 0 = no bound */
	uint32_t uid;		    /* UINT32_MAX = anybody's */
	uint32_t gpu;		    /* TAKT_VIEW_MAX_GPUS = any */
	const char *states;	    /* names, commas between them; NULL = any */
};

/* What a list says beside its jobs. */
struct takt_queue_rest {
	uint64_t total; /* how many there are; of ended ones, in the list */
	uint64_t next;	/* ended ones: there may be more below this number; 0 = there are none */
};

/* One metric of one GPU over time. Texts are borrowed for the call. */
struct takt_gpu_history_ask {
	uint32_t gpu;
	const char *metric;	    /* NULL = "power" */
	const char *step;	    /* "raw", "10s", "1m", "1h"; NULL = the finest that fits */
	int64_t since_ms, until_ms; /* wall clock; 0 = an hour ago, now */
};

/* What the daemon supplies. All calls come from within takt_server_pump(). Functions that fill a
 * view return 0 or an error that the server turns into an answer. Access to other users' jobs is
 * decided here by `peer`: the backend fills only what the peer may see and refuses with -EPERM. */
struct takt_server_backend {
	int (*status)(void *ctx, const struct takt_peer *peer, struct takt_status_view *ret,
		      struct takt_err *err);
	int (*topology)(void *ctx, struct takt_topo_view *ret, struct takt_err *err);
	/* Hands at most `limit` (1..10,000) job views to `each`, one at a time (borrowed for the
	 * call): running first, then waiting in queue order; with history (not NULL) the ended
	 * ones that it asks for instead, or if it says so a user's live ones. Stops and returns
	 * what `each` returns when negative. Of ended ones it
	 * may stop before the limit, where one answer has cost enough. */
	int (*queue)(void *ctx, const struct takt_peer *peer,
		     const struct takt_history_ask *history, uint32_t limit,
		     int (*each)(void *arg, const struct takt_job_view *view), void *arg,
		     struct takt_queue_rest *ret_rest, struct takt_err *err);
	/* Changes whenever a live job does, but for the figures of running ones; NULL = nothing is
	 * known, every list is made anew. */
	uint64_t (*live_version)(void *ctx);
	int (*job)(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		   struct takt_job_view *ret, struct takt_err *err);
	int (*explain)(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		       struct takt_explain_view *ret, struct takt_err *err);
	/* How it went; *ret is zeroed. */
	int (*course)(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		      struct takt_course_view *ret, struct takt_err *err);
	/* Takes over *spec's contents on success. Finishes `pending` with the job view when it is
	 * on disk. */
	int (*submit)(void *ctx, const struct takt_peer *peer, struct takt_jobspec *spec,
		      struct takt_pending *pending, struct takt_err *err);
	/* Several, all or none; takes the contents over on success and finishes with the first. */
	int (*submit_many)(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
			   struct takt_pending *pending, struct takt_err *err);
	/* One that has ended, as it is on record, with the environment of *env, which alone is
	 * filled in and taken over on success. Otherwise as submit. */
	int (*again)(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     struct takt_jobspec *env, struct takt_pending *pending, struct takt_err *err);
	/* What would become of them, handed in together; nothing is kept. *ret has room for all,
	 * zeroed. */
	int (*try)(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
		   struct takt_try_view *ret, struct takt_err *err);
	int (*cancel)(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		      struct takt_pending *pending, struct takt_err *err);
	/* Finishes `pending` with the job view when the change is on disk. */
	int (*change)(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		      const struct takt_job_change *change, struct takt_pending *pending,
		      struct takt_err *err);
	int (*signal)(void *ctx, const struct takt_peer *peer, uint64_t job_id, int signal,
		      struct takt_err *err);
	/* Finishes `pending` with the job view when the job has ended or after timeout_ms (then as
	 * it is). */
	int (*wait)(void *ctx, const struct takt_peer *peer, uint64_t job_id, uint32_t timeout_ms,
		    struct takt_pending *pending, struct takt_err *err);
	/* A descriptor of the log of the job's latest attempt (the server closes it; -1 = nothing
	 * started yet), the attempt's number (0 = none), whether more may come: from this attempt
	 * or a next one. */
	int (*log)(void *ctx, const struct takt_peer *peer, uint64_t job_id, int *ret_fd,
		   uint32_t *ret_attempt, bool *ret_live, struct takt_err *err);
	int (*clocks)(void *ctx, struct takt_clock_view *ret, struct takt_err *err);
	/* gpu_mask by index. Finishes with the clock view. */
	int (*clock_set)(void *ctx, const struct takt_peer *peer, uint64_t gpu_mask,
			 const struct takt_clock_order *ask, struct takt_pending *pending,
			 struct takt_err *err);
	/* A ceiling of all CPUs, 0: as they were found. */
	int (*cpu_clock)(void *ctx, const struct takt_peer *peer, uint32_t max_mhz,
			 struct takt_pending *pending, struct takt_err *err);
	int (*clock_reset)(void *ctx, const struct takt_peer *peer, uint64_t gpu_mask,
			   struct takt_pending *pending, struct takt_err *err);
	/* A facility's cap. Finishes with the clock view. */
	int (*clock_cap)(void *ctx, const struct takt_peer *peer, const struct takt_clock_cap *cap,
			 struct takt_pending *pending, struct takt_err *err);
	/* What is declared of all GPUs, NULL: nothing any more. Finishes with the clock view. */
	int (*clock_declare)(void *ctx, const struct takt_peer *peer,
			     const struct takt_declaration *declaration,
			     struct takt_pending *pending, struct takt_err *err);
	/* Finishes with the history view. */
	int (*history)(void *ctx, const struct takt_gpu_history_ask *ask,
		       struct takt_pending *pending, struct takt_err *err);
	/* How the GPUs are. */
	int (*health)(void *ctx, const struct takt_peer *peer, struct takt_health_view *ret,
		      struct takt_err *err);
	/* Round trips to other machines. */
	int (*net)(void *ctx, struct takt_net_view *ret, struct takt_err *err);
	/* Which GPUs are set aside. */
	int (*orders)(void *ctx, const struct takt_peer *peer, struct takt_orders_view *ret,
		      struct takt_err *err);
	/* Set aside, resumed, reserved, released. Finishes with the orders view when it is on disk.
	 */
	int (*order)(void *ctx, const struct takt_peer *peer,
		     const struct takt_gpu_request *request, struct takt_pending *pending,
		     struct takt_err *err);
	/* Reads the configuration again. */
	int (*reload)(void *ctx, const struct takt_peer *peer, struct takt_reload_view *ret,
		      struct takt_err *err);
	/* The finished metrics page, in OpenMetrics or the plain format; *ret_release(page) is
	 * called when it was sent. */
	int (*metrics)(void *ctx, bool openmetrics, const char **ret_text, size_t *ret_len,
		       void **ret_page, void (**ret_release)(void *page));
};

struct takt_server_config {
	int unix_fd;		  /* listening socket, owned by the server from then on */
	int tcp_fd;		  /* listening TCP socket for /metrics only; -1 = none */
	struct takt_tls *tcp_tls; /* of tcp_fd, borrowed until free; NULL = plain */
	int web_fd;		  /* of the page and the API by tokens; -1 = none */
	struct takt_tls *web_tls;
	const char *tokens_dir;	 /* where tokens are kept, borrowed for the call; NULL = nowhere */
	uid_t owner_uid;	 /* single-user mode: this user is an administrator */
	bool single_user;	 /* refuse every other user but root */
	const char *admin_group; /* NULL = "takt-admin" */
	/* To the Unix socket; 0 = 256. Of these a user who is no administrator may hold a quarter,
	 * and 16 (of few, a quarter) are kept for administrators. */
	uint32_t max_connections;
	bool simulated; /* /v1/version says so */
	/* Names that may stand in the Host header on TCP beside localhost, 127.0.0.1, [::1] and
	 * this machine's; NULL-terminated, borrowed until free; NULL = none. */
	const char *const *hosts;
};

struct takt_server;
int takt_server_new(const struct takt_server_config *config,
		    const struct takt_server_backend *backend, void *ctx, struct takt_server **ret,
		    struct takt_err *err);
/* Readable (epoll descriptors nest) when pump has work. */
int takt_server_fd(const struct takt_server *server);
/* Never blocks. *ret_timeout_ms: call again by then; -1 = only when readable. */
int takt_server_pump(struct takt_server *server, int *ret_timeout_ms, struct takt_err *err);
/* Another Unix socket takes the place of the one that it listens on; owned from success on. */
int takt_server_move(struct takt_server *server, int unix_fd, struct takt_err *err);
/* Followed logs look for news at the next pump: call when a job started or ended. (While somebody
 * follows, pump asks to be called every 200 ms and looks by itself.) */
void takt_server_poke(struct takt_server *server);
/* Pending requests are answered 503. NULL is fine. */
void takt_server_free(struct takt_server *server);

#endif
