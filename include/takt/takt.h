/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtakt: the client API of takt for other programs. Link with -ltakt.
 *
 *	struct takt_client *client;
 *	struct takt_failure failure;
 *	struct takt_result result;
 *	uint64_t id;
 *
 *	if (takt_open(NULL, &client, &failure) < 0 ||
 *	    takt_submit(client, "{\"argv\":[\"./train\"],\"cwd\":\"/data\",\"gpus\":2}", &id,
 *			&failure) < 0 ||
 *	    takt_wait(client, id, 60000, &result, &failure) < 0)
 *		fprintf(stderr, "%s\n", failure.message);
 *
 * Calls block, return 0 or a negative number and then fill *failure (which may be NULL). A client
 *is for one thread at a time. What JSON looks like is described in docs/api.md.
 */
#ifndef TAKT_TAKT_H
#define TAKT_TAKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct takt_failure {
	int code;	   /* what the call returned: -errno, or a code of takt's below -4095 */
	char name[24];	   /* stable, for programs: "NOT_FOUND", "EPERM", "UNAVAILABLE" */
	char message[240]; /* for people */
};

struct takt_client;

/* Connects to the daemon. socket NULL: the one in $TAKT_SOCKET, else the first that answers of the
 * usual places. */
int takt_open(const char *socket, struct takt_client **ret, struct takt_failure *failure);
void takt_close(struct takt_client *client);

/* Any route of the API: GET where body is NULL, else POST. *ret_json is the caller's:
 * takt_text_free.
 */
int takt_request(struct takt_client *client, const char *path, const char *body, char **ret_json,
		 struct takt_failure *failure);
void takt_text_free(char *text);

/* Hands in a job; it is on disk when this returns. */
int takt_submit(struct takt_client *client, const char *spec_json, uint64_t *ret_job_id,
		struct takt_failure *failure);

struct takt_result {
	bool ended;
	char state[16];	 /* "waiting", "running", "done", "failed", "cancelled", ... */
	int exit_status; /* of an ended one: its code, 128 + signal when killed */
};
/* Waits until the job has ended, at most timeout_ms. */
int takt_wait(struct takt_client *client, uint64_t job_id, uint32_t timeout_ms,
	      struct takt_result *ret, struct takt_failure *failure);

int takt_cancel(struct takt_client *client, uint64_t job_id, struct takt_failure *failure);
int takt_signal(struct takt_client *client, uint64_t job_id, int signal,
		struct takt_failure *failure);

#ifdef __cplusplus
}
#endif
#endif
