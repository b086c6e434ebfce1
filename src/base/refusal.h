/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What keeps a job from being started once its turn has come: said by whoever refuses (launcher,
 * engine), acted upon by the queue, shown in every view. One list, so that none of them has to
 * read another's sentences.
 */
#ifndef TAKT_BASE_REFUSAL_H
#define TAKT_BASE_REFUSAL_H

enum takt_refusal {
	TAKT_REFUSAL_NONE,	/* it was not refused */
	TAKT_REFUSAL_LAUNCHER,	/* takt-launch is not there, or can start no shim: nobody's job */
	TAKT_REFUSAL_ISOLATION, /* no job of another user's can be kept apart here */
	TAKT_REFUSAL_USER,	/* nothing runs as its user, or with his groups */
	TAKT_REFUSAL_CGROUP,	/* its cgroup cannot be made */
	TAKT_REFUSAL_ATTEMPT,	/* its directory, or something that it names, is not to be had */
	TAKT_REFUSAL_SHIM,	/* its shim gave up before the program ran */
	TAKT_REFUSAL_COUNT
};

/* Whose starts are refused by that: this job's alone, its user's, or all. */
enum takt_refusal_scope {
	TAKT_REFUSED_JOB,
	TAKT_REFUSED_USER,
	TAKT_REFUSED_ALL,
};

const char *takt_refusal_name(enum takt_refusal refusal); /* "launcher", ...; "" of NONE */
const char *takt_refusal_by(enum takt_refusal refusal);	  /* the program that refuses */
const char *takt_refusal_mend(enum takt_refusal refusal); /* where to look, which setting counts */
enum takt_refusal_scope takt_refusal_scope(enum takt_refusal refusal);

#endif
