/* SPDX-License-Identifier: Apache-2.0 */
/* See known_users.h. A table of questions with their answers; the thread takes the oldest that
 * waits.
 */
#include "base/known_users.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	KEPT = 256,	   /* questions; the one asked longest ago makes room */
	ENTRY = 16 * 1024, /* bytes of one user's entry */
	MAX_GROUPS = 1024,
};

static const uint64_t patience_ns = TAKT_NS_PER_S / 5; /* of each second */
static const uint64_t names_fresh_ns = 60 * TAKT_NS_PER_S;
static const uint64_t fresh_ns = 10 * TAKT_NS_PER_S;

enum question_kind {
	OF_UID,
	IN_GROUP,
	BY_NAME,
};

struct question {
	enum question_kind kind;
	uid_t uid;
	gid_t group;
	char name[TAKT_KNOWN_USER_NAME];
};

struct entry {
	struct question question;
	bool used, answered;
	bool waits;	   /* for the thread, or for its answer */
	uint64_t asked;	   /* in which order, of those that wait */
	uint64_t since_ns; /* when */
	uint64_t until_ns; /* ANSWERED: fresh until then */
	uint64_t seen_ns;  /* when somebody last wanted to know */
	struct takt_known_user account;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	bool runs;
	struct entry entries[KEPT];
	uint64_t asked;
	uint64_t second_ns; /* when the second began whose waits are counted */
	uint64_t waited_ns;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER,
	   .work = PTHREAD_COND_INITIALIZER,
	   .done = PTHREAD_COND_INITIALIZER};

static bool has_group(const struct passwd *user, gid_t wanted)
{
	gid_t groups[MAX_GROUPS];
	int n = MAX_GROUPS;

	if (getgrouplist(user->pw_name, user->pw_gid, groups, &n) < 0)
		n = MAX_GROUPS;
	for (int i = 0; i < n; i++)
		if (groups[i] == wanted)
			return true;
	return false;
}

/* On the thread. False: nobody could say. */
static bool look_up(const struct question *question, struct takt_known_user *ret)
{
	struct passwd pw, *found = NULL;
	char text[ENTRY];
	int rc = question->kind == BY_NAME
			 ? getpwnam_r(question->name, &pw, text, sizeof(text), &found)
			 : getpwuid_r(question->uid, &pw, text, sizeof(text), &found);

	*ret = (struct takt_known_user){.uid = question->uid};
	if (!found)
		return rc == 0;
	ret->found = true;
	ret->uid = found->pw_uid;
	ret->gid = found->pw_gid;
	takt_strcpy(ret->name, sizeof(ret->name), found->pw_name);
	ret->in_group = question->kind == IN_GROUP && has_group(found, question->group);
	return true;
}

static struct entry *oldest_waiting(void)
{
	struct entry *oldest = NULL;

	for (size_t i = 0; i < KEPT; i++) {
		struct entry *entry = &known.entries[i];

		if (entry->waits && (!oldest || entry->asked < oldest->asked))
			oldest = entry;
	}
	return oldest;
}

/* Where nobody can say now, an earlier word stays; but not on what somebody may do. */
static void answer(struct entry *entry, bool said, const struct takt_known_user *account)
{
	bool names = entry->question.kind == OF_UID;

	if (said || !names || !entry->answered)
		entry->account = *account;
	entry->answered = true;
	entry->waits = false;
	entry->until_ns =
		takt_mono_now(takt_sys_real()).ns + (said && names ? names_fresh_ns : fresh_ns);
}

static void *work(void *arg)
{
	pthread_mutex_lock(&known.lock);
	for (;;) {
		struct entry *entry = oldest_waiting();
		struct takt_known_user account;
		struct question question;
		bool said;

		if (!entry) {
			pthread_cond_wait(&known.work, &known.lock);
			continue;
		}
		question = entry->question;
		pthread_mutex_unlock(&known.lock);
		said = look_up(&question, &account);
		pthread_mutex_lock(&known.lock);
		answer(entry, said, &account);
		pthread_cond_broadcast(&known.done);
	}
	return arg;
}

/* Signals are the main thread's. */
static bool start_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;

	if (known.runs || pthread_attr_init(&attr) != 0)
		return known.runs;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	known.runs = pthread_create(&thread, &attr, work, NULL) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return known.runs;
}

static bool is_same(const struct question *a, const struct question *b)
{
	return a->kind == b->kind && a->uid == b->uid && a->group == b->group &&
	       strcmp(a->name, b->name) == 0;
}

/* Its own, or one that has not been looked at for longest; NULL: all wait. */
static struct entry *find_entry(const struct question *question)
{
	struct entry *free = NULL;

	for (size_t i = 0; i < KEPT; i++) {
		struct entry *entry = &known.entries[i];

		if (entry->used && is_same(&entry->question, question))
			return entry;
		if (!entry->waits && (!free || entry->seen_ns < free->seen_ns))
			free = entry;
	}
	if (free)
		*free = (struct entry){.question = *question, .used = true};
	return free;
}

static void ask(struct entry *entry, uint64_t now_ns)
{
	if (entry->waits)
		return;
	entry->waits = true;
	entry->asked = known.asked++;
	entry->since_ns = now_ns;
	pthread_cond_signal(&known.work);
}

/* Of this second; 0 also while the thread has waited for an answer for longer than that. */
static uint64_t patience_left(uint64_t now_ns)
{
	const struct entry *oldest = oldest_waiting();

	if (oldest && now_ns - oldest->since_ns > patience_ns)
		return 0;
	if (now_ns - known.second_ns >= TAKT_NS_PER_S) {
		known.second_ns = now_ns;
		known.waited_ns = 0;
	}
	return known.waited_ns < patience_ns ? patience_ns - known.waited_ns : 0;
}

static void wait_a_little(const struct entry *entry, uint64_t now_ns)
{
	uint64_t left_ns = patience_left(now_ns);
	struct timespec until;

	if (left_ns == 0 || clock_gettime(CLOCK_REALTIME, &until) < 0)
		return;
	left_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(left_ns / TAKT_NS_PER_S);
	until.tv_nsec = (long)(left_ns % TAKT_NS_PER_S);
	while (entry->waits)
		if (pthread_cond_timedwait(&known.done, &known.lock, &until) != 0)
			break;
	known.waited_ns += takt_mono_now(takt_sys_real()).ns - now_ns;
}

static int get(const struct question *question, struct takt_known_user *ret)
{
	uint64_t now_ns = takt_mono_now(takt_sys_real()).ns;
	bool may_be_old = question->kind == OF_UID;
	struct entry *entry;
	int rc = -EAGAIN;

	pthread_mutex_lock(&known.lock);
	entry = start_thread() ? find_entry(question) : NULL;
	if (entry) {
		entry->seen_ns = now_ns;
		if (!entry->answered || now_ns >= entry->until_ns)
			ask(entry, now_ns);
		if (entry->waits && !(may_be_old && entry->answered))
			wait_a_little(entry, now_ns);
		if (entry->answered && (!entry->waits || may_be_old)) {
			*ret = entry->account;
			rc = 0;
		}
	}
	pthread_mutex_unlock(&known.lock);
	return rc;
}

int takt_known_user_of(uid_t uid, struct takt_known_user *ret)
{
	return get(&(struct question){.kind = OF_UID, .uid = uid}, ret);
}

int takt_known_user_in_group(uid_t uid, gid_t group, struct takt_known_user *ret)
{
	return get(&(struct question){.kind = IN_GROUP, .uid = uid, .group = group}, ret);
}

int takt_known_user_named(const char *name, struct takt_known_user *ret)
{
	struct question question = {.kind = BY_NAME};

	*ret = (struct takt_known_user){.found = false};
	if (!takt_strcpy(question.name, sizeof(question.name), name))
		return 0; /* nobody is called so */
	return get(&question, ret);
}

int takt_known_user_find(const char *text, uid_t *ret)
{
	struct takt_known_user account;
	unsigned long long number;
	int rc = takt_known_user_named(text, &account);

	if (rc == 0 && account.found) {
		*ret = account.uid;
		return 0;
	}
	if (takt_parse_u64(text, 0, UINT32_MAX - 1, &number) < 0)
		return rc < 0 ? rc : -TAKT_E_NOT_FOUND;
	*ret = (uid_t)number;
	return 0;
}
