/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up users while the directory that knows them is away: nobody waits for it. */
#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/known_users.h"

enum {
	FIRST_UID = 70000, /* user N is called uN, up to the last */
	LAST_UID = 70999,
	GROUP = 4242,
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool away, broken;
	atomic_bool asked_here; /* on the thread of the test */
	atomic_uint asked, answered;
	pthread_t test;
} directory = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

/* What this file gives the program in their places. */
int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t size, struct passwd **found);
int __wrap_getpwnam_r(const char *name, struct passwd *pw, char *buf, size_t size,
		      struct passwd **found);
int __wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *n);

/* Whether it can say anything. */
static bool asks(void)
{
	bool broken;

	pthread_mutex_lock(&directory.lock);
	directory.asked++;
	if (pthread_equal(pthread_self(), directory.test))
		directory.asked_here = true;
	pthread_cond_broadcast(&directory.moved);
	while (directory.away)
		pthread_cond_wait(&directory.moved, &directory.lock);
	broken = directory.broken;
	directory.answered++;
	pthread_mutex_unlock(&directory.lock);
	return !broken;
}

static int tell(uid_t uid, struct passwd *pw, char *buf, size_t size, struct passwd **found)
{
	*found = NULL;
	if (!asks())
		return EIO;
	if (uid < FIRST_UID || uid > LAST_UID)
		return 0;
	snprintf(buf, size, "u%u", (unsigned)uid);
	*pw = (struct passwd){.pw_name = buf, .pw_uid = uid, .pw_gid = uid};
	*found = pw;
	return 0;
}

int __wrap_getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t size, struct passwd **found)
{
	return tell(uid, pw, buf, size, found);
}

int __wrap_getpwnam_r(const char *name, struct passwd *pw, char *buf, size_t size,
		      struct passwd **found)
{
	unsigned uid = 0;

	if (name[0] == 'u')
		(void)sscanf(name + 1, "%u", &uid);
	return tell(uid, pw, buf, size, found);
}

int __wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *n)
{
	groups[0] = group;
	groups[1] = GROUP;
	*n = 2;
	return 2;
}

static void set(bool away, bool broken)
{
	pthread_mutex_lock(&directory.lock);
	directory.away = away;
	directory.broken = broken;
	pthread_cond_broadcast(&directory.moved);
	pthread_mutex_unlock(&directory.lock);
}

static int setup(void **state)
{
	directory.test = pthread_self();
	set(false, false);
	return 0;
}

static int teardown(void **state)
{
	set(false, false);
	assert_false(directory.asked_here);
	return 0;
}

/* The answer, however long it takes. */
static struct takt_known_user until_known(uid_t uid)
{
	struct takt_known_user account;

	while (takt_known_user_of(uid, &account) < 0)
		usleep(1000);
	return account;
}

static void users_are_known_by_their_names(void **state)
{
	struct takt_known_user account = until_known(70001);
	uid_t uid = 0;

	assert_true(account.found);
	assert_string_equal(account.name, "u70001");
	assert_false(until_known(60000).found);
	while (takt_known_user_find("u70001", &uid) == -EAGAIN)
		usleep(1000);
	assert_int_equal(uid, 70001);
	while (takt_known_user_in_group(70001, GROUP, &account) < 0)
		usleep(1000);
	assert_true(account.in_group);
	while (takt_known_user_in_group(70001, GROUP + 1, &account) < 0)
		usleep(1000);
	assert_false(account.in_group);
	assert_int_equal(takt_known_user_find("60000", &uid), 0);
	assert_int_equal(uid, 60000);
	assert_int_equal(takt_known_user_find("nobody-is-called-so", &uid), -TAKT_E_NOT_FOUND);
}

/* Each of these would never come back if it waited. */
static void nobody_waits_for_a_directory_that_is_away(void **state)
{
	struct takt_known_user account = until_known(70002);
	unsigned before = directory.asked;
	uid_t uid;

	set(true, false);
	for (uid_t other = 70100; other < 70300; other++)
		assert_int_equal(takt_known_user_of(other, &account), -EAGAIN);
	assert_int_equal(takt_known_user_in_group(70002, GROUP + 2, &account), -EAGAIN);
	assert_int_equal(takt_known_user_find("u70003", &uid), -EAGAIN);
	assert_int_equal(takt_known_user_find("70003", &uid), 0); /* a number needs no word */
	assert_int_equal(takt_known_user_of(70002, &account), 0);
	assert_string_equal(account.name, "u70002");
	assert_true(directory.asked <= before + 1);
	set(false, false);
	assert_string_equal(until_known(70299).name, "u70299");
	assert_true(until_known(70100).found);
}

static void a_directory_that_fails_gives_no_rights(void **state)
{
	struct takt_known_user account;

	set(false, true);
	while (takt_known_user_in_group(70004, GROUP, &account) < 0)
		usleep(1000);
	assert_false(account.found);
	assert_false(account.in_group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
		CASE(users_are_known_by_their_names),
		CASE(nobody_waits_for_a_directory_that_is_away),
		CASE(a_directory_that_fails_gives_no_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
