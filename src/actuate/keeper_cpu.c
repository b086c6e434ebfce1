/* SPDX-License-Identifier: Apache-2.0 */
/* As for a GPU: on disk before it is done, "as found" on disk after it is so again. */
#include "actuate/keeper_cpu.h"

#include <errno.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"
#include "base/str.h"

static const char *root_of(const struct takt_keeper *keeper)
{
	return keeper->cpu.sysfs_root ? keeper->cpu.sysfs_root : "/sys";
}

static int write_record(struct takt_keeper *keeper, enum takt_journal_state state,
			struct takt_err *err)
{
	struct takt_journal_record record = {
		.uuid = TAKT_CPU_UUID,
		.state = state,
		.cpu = keeper->cpu.found,
		.epoch = keeper->mandate->mine.epoch,
	};

	if (takt_mandate_check(keeper->mandate) < 0) {
		keeper->stale = true;
		return takt_err_set(err, -TAKT_E_STALE, "another process has the journal");
	}
	takt_strcpy(record.boot_id, sizeof(record.boot_id), keeper->boot_id);
	takt_strcpy(record.driver_load, sizeof(record.driver_load), keeper->driver_load);
	return takt_journal_record(keeper->journal, &record, err);
}

static void retry_later(struct takt_keeper_cpu *cpu, struct takt_boot now)
{
	cpu->next = takt_boot_add(now, takt_pace_ns(&takt_keeper_pace, cpu->failures++));
}

static int put_back(struct takt_keeper *keeper, struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_cpu *cpu = &keeper->cpu;
	struct takt_err why = {0};
	int rc = takt_mandate_check(keeper->mandate);

	if (rc < 0)
		keeper->stale = true;
	if (rc == 0)
		rc = takt_cpufreq_put_back(keeper->sys, root_of(keeper), &cpu->found, &why);
	takt_crash_point("actuate.cpu_put_back");
	if (rc == 0)
		rc = write_record(keeper, TAKT_JOURNAL_CLEAN, &why);
	if (rc == 0) {
		cpu->changed = false;
		cpu->failures = 0;
		cpu->note[0] = '\0';
		return 0;
	}
	if (cpu->failures == 0)
		takt_actuate_say(&keeper->log,
				 "CPUs could not be put back as they were found (%s); trying again "
				 "until they are",
				 why.msg);
	(void)snprintf(cpu->note, sizeof(cpu->note), "left changed, tried again: %.120s", why.msg);
	retry_later(cpu, now);
	return takt_err_set(err, rc, "%s", cpu->note);
}

/* The way back is known and on disk. */
static int begin(struct takt_keeper *keeper, struct takt_err *err)
{
	struct takt_keeper_cpu *cpu = &keeper->cpu;
	int rc = 0;

	if (cpu->changed)
		return 0;
	if (!keeper->guarded)
		return takt_err_set(
			err, -TAKT_E_UNAVAILABLE,
			"no guard is running that would put the CPUs back if takt died");
	rc = takt_cpufreq_read(keeper->sys, root_of(keeper), &cpu->found, err);
	if (rc == 0)
		rc = write_record(keeper, TAKT_JOURNAL_CHANGED, err);
	cpu->changed = rc == 0;
	return rc;
}

static int cap(struct takt_keeper *keeper, uint32_t max_mhz, struct takt_boot now,
	       struct takt_err *err)
{
	struct takt_err why = {0};
	int rc = begin(keeper, err);

	if (rc < 0)
		return rc;
	takt_crash_point("actuate.cpu_journaled");
	rc = takt_mandate_check(keeper->mandate);
	if (rc == 0)
		rc = takt_cpufreq_cap(keeper->sys, root_of(keeper), &keeper->cpu.found, max_mhz,
				      &why);
	takt_crash_point("actuate.cpu_set");
	if (rc == 0)
		return 0;
	(void)put_back(keeper, now, NULL);
	if (rc == -EACCES || rc == -EPERM)
		return takt_err_set(err, -EPERM,
				    "no permission to limit CPUs; an administrator would run: "
				    "cpupower frequency-set -u %uMHz",
				    max_mhz);
	return takt_err_set(err, rc, "%s", why.msg);
}

int takt_keeper_cpu_set(struct takt_keeper *keeper, uint32_t max_mhz, uint64_t ttl_ns,
			struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_cpu *cpu = &keeper->cpu;
	bool same = cpu->changed && cpu->max_mhz == max_mhz;
	int rc = 0;

	cpu->expires = takt_boot_add(now, ttl_ns);
	if (max_mhz && same)
		return 0;
	cpu->max_mhz = 0;
	if (max_mhz)
		rc = cap(keeper, max_mhz, now, err);
	else if (cpu->changed)
		rc = put_back(keeper, now, err);
	if (rc == 0)
		cpu->max_mhz = max_mhz;
	return rc;
}

int takt_keeper_cpu_recover(struct takt_keeper *keeper, const struct takt_journal_record *record,
			    struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_cpu *cpu = &keeper->cpu;

	cpu->found = record->cpu;
	if (record->state != TAKT_JOURNAL_CHANGED)
		return 0;
	if (takt_boot_differs(record->boot_id, keeper->boot_id)) {
		takt_actuate_say(&keeper->log, "the limit on CPUs went with the reboot");
		return write_record(keeper, TAKT_JOURNAL_CLEAN, err);
	}
	takt_actuate_say(&keeper->log, "CPUs were left limited; putting them back");
	cpu->changed = true;
	cpu->next = now;
	return 0;
}

struct takt_boot takt_keeper_cpu_step(struct takt_keeper *keeper, struct takt_boot now)
{
	struct takt_keeper_cpu *cpu = &keeper->cpu;

	if (cpu->max_mhz && cpu->expires.ns <= now.ns) {
		takt_actuate_say(&keeper->log, "the limit on CPUs ran out");
		cpu->max_mhz = 0;
		cpu->next = now;
	}
	if (cpu->changed && !cpu->max_mhz && cpu->next.ns <= now.ns && !keeper->stale)
		(void)put_back(keeper, now, NULL);
	if (cpu->max_mhz)
		return cpu->expires;
	return cpu->changed ? cpu->next : (struct takt_boot){UINT64_MAX};
}
