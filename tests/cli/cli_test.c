/* SPDX-License-Identifier: Apache-2.0 */
/* The command line against a real server with a fake behind it: what people see, what scripts get,
 * and what is said when something is wrong. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli_run.h"
#include "fake_backend.h"

static struct fake fake;
static struct cli_result result;

static int set_up(void **state)
{
	setenv("TZ", "UTC", 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	unsetenv("COLUMNS");
	fake_start(&fake, false, false);
	setenv("TAKT_SOCKET", fake.socket, 1);
	fake_run(&fake);
	return 0;
}

static int tear_down(void **state)
{
	fake_halt(&fake);
	fake_stop(&fake);
	return 0;
}

static void says(const char *line, int status, const char *out)
{
	cli_run(line, &result);
	if (result.status != status || strcmp(result.out, out) != 0)
		fail_msg("takt %s: status %d, expected %d\n--- got\n%s--- expected\n%s--- "
			 "errors\n%s",
			 line, result.status, status, result.out, out, result.err);
}

static void complains(const char *line, int status, const char *part)
{
	cli_run(line, &result);
	if (result.status != status || !strstr(result.err, part))
		fail_msg("takt %s: status %d, expected %d; '%s' lacks '%s'", line, result.status,
			 status, result.err, part);
	assert_string_equal(result.out, "");
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}

/* The jobs of the fake are told by commands; this makes one that the PATH has. */
static uint64_t submit(const char *words)
{
	char line[256];

	snprintf(line, sizeof(line), "submit -q --env PATH=%s -n 2 -- %s", fake.dir, words);
	cli_run(line, &result);
	if (result.status != 0)
		fail_msg("%s", result.err);
	return strtoull(result.out, NULL, 10);
}

static void submit_with(const char *words)
{
	char line[1024];

	snprintf(line, sizeof(line), "submit -q --env PATH=%s %s", fake.dir, words);
	cli_run(line, &result);
	if (result.status != 0)
		fail_msg("%s", result.err);
}

/* Files of the names that the fake knows, so that commands of these names are found. */
static int set_up_commands(void **state)
{
	static const char *const names[] = {"echo", "exit", "kill", "hang", "queue", "binary"};

	set_up(state);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		char path[300];

		snprintf(path, sizeof(path), "%s/%s", fake.dir, names[i]);
		close(open(path, O_CREAT | O_WRONLY, 0755));
	}
	setenv("PATH", fake.dir, 1);
	return 0;
}

static int tear_down_commands(void **state)
{
	static const char *const names[] = {"echo", "exit", "kill", "hang", "queue", "binary"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		char path[300];

		snprintf(path, sizeof(path), "%s/%s", fake.dir, names[i]);
		unlink(path);
	}
	return tear_down(state);
}

static void status_is_a_line_a_gpu(void **state)
{
	says("status", 0,
	     "box: 3 x H100 80GB HBM3, driver 550.54.15, takt 0.1.0 up 1h02m; 2 jobs running, 1 "
	     "waiting\n"
	     "GPU      CLOCK     POWER  TEMP  UTIL    MEMORY  THROTTLE      STATE    WHO\n"
	     "  0  1410/1410  612/700W   61C   97%  45.0/80G  sw_power_cap  running  7 train ada\n"
	     "  1   345/1980   71/700W   33C    0%     0/80G  none          free     bob "
	     "python3(4242)\n"
	     "  2          -         -     -     -         -  -             free     -\n");
}

static void different_gpus_have_their_names(void **state)
{
	fake.mixed = true;
	cli_run("status", &result);
	assert_has(result.out, "box: 3 GPUs, driver");
	assert_has(result.out, "GPU  NAME                CLOCK");
	assert_has(result.out, "  1  L40S             345/1980");
}

static size_t longest_line(const char *text)
{
	size_t longest = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");

		longest = len > longest ? len : longest;
		text += len + (text[len] == '\n');
	}
	return longest;
}

static void status_fits_narrow_terminals(void **state)
{
	setenv("COLUMNS", "80", 1);
	cli_run("status", &result);
	assert_true(longest_line(strstr(result.out, "GPU  ")) <= 80);
	assert_has(result.out, "612/700W   61C   97%  45.0/80G  sw_powe");
	setenv("COLUMNS", "60", 1);
	cli_run("status", &result);
	assert_true(longest_line(strstr(result.out, "GPU ")) <= 60);
	assert_has(result.out, "running");
	unsetenv("COLUMNS");
}

static void simulated_is_said_everywhere(void **state)
{
	static const char *const lines[] = {"status", "topo",	   "queue",
					    "show 1", "explain 1", "clock"};

	fake_halt(&fake);
	fake.simulated = true;
	fake_restart(&fake);
	fake_run(&fake);
	submit("hang");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(lines); i++) {
		cli_run(lines[i], &result);
		assert_true(strncmp(result.out, "SIMULATED", 9) == 0);
	}
	cli_run("status --json", &result);
	assert_has(result.out, "\"simulated\":true");
}

static void changed_clocks_are_shouted(void **state)
{
	fake.changed_clock = true;
	cli_run("status", &result);
	assert_has(result.out, "CHANGED");
	assert_has(result.out, "GPU 1: CLOCKS CHANGED and not restored: the driver refuses to "
			       "restore: no permission\n");
	cli_run("clock", &result);
	assert_has(result.out, "GPU 1: CLOCKS CHANGED and not restored");
}

static void topo_is_a_matrix(void **state)
{
	says("topo", 0,
	     "GPU     0     1     2     3  NUMA  CPUS\n"
	     "  0     X  NV18   SYS   SYS     0  0-31,64-95\n"
	     "  1  NV18     X   SYS   SYS     0  0-31,64-95\n"
	     "  2   SYS   SYS     X  NV18     1  0-31,64-95\n"
	     "  3   SYS   SYS  NV18     X     -  -\n"
	     "best 2: 0-1 (score 1810), of the free ones: 2-3\n"
	     "best 4: 0-3 (score 3660), of the free ones: -\n"
	     "NV#: so many NVLinks. PIX: one PCIe switch, PXB: several, PHB: through the host "
	     "bridge,\n"
	     "NODE: within a NUMA node, SYS: across sockets.\n");
}

static void submit_says_where_it_went(void **state)
{
	says("submit -n 2 --name train -- hang", 0, "job 1 train: running on GPUs 0-1\n");
	says("submit -n 4 -- queue", 0,
	     "job 2 queue: queued: needs 4 GPUs, 2 are free: 2 more have to come free\n");
	says("submit -q hang", 0, "3\n");
	cli_run("submit --json hang", &result);
	assert_has(result.out, "\"id\":4,");
	assert_true(result.out[0] == '{');
}

static void options_reach_the_job(void **state)
{
	says("submit -q -n0 --clock 1410MHz -p -5 -e FIRST=1 --grace 1m30s -- hang --help -x", 64,
	     "");
	assert_has(result.err, "needs at least one GPU");
	says("submit -q -n1 --clock 1410MHz -p -5 --grace 1m30s -- hang --help -x", 0, "1\n");
	assert_string_equal(fake.jobs[0].view.command, "hang --help -x");
	assert_int_equal(fake.jobs[0].view.priority, -5);
}

/* Cut, it would be the root, where nobody wanted the job to run. */
static void a_directory_that_is_too_long_is_named(void **state)
{
	char line[4600];

	snprintf(line, sizeof(line), "submit --cwd %04200d -- hang", 0);
	memset(strchr(line, '0'), '/', 4200);
	complains(line, 1, "directory '//////");
}

static void bad_options_are_named(void **state)
{
	complains("stauts", 64, "there is no verb 'stauts'; did you mean 'status'?");
	complains("frobnicate", 64, "there is no verb 'frobnicate'; 'takt help'");
	complains("status --jsn", 64, "did you mean '--json'");
	complains("status extra", 64, "'extra' is too much; usage: takt status");
	complains("status --json=1", 64, "'--json' takes no value");
	complains("submit", 64, "usage: takt submit [options] [--] COMMAND");
	complains("submit -n", 64, "'-n' needs a value: GPUS");
	complains("submit --gpus", 64, "'--gpus' needs a value: GPUS");
	complains("submit -n x -- hang", 64, "'--gpus' must be a whole number from 0 to 64");
	complains("submit --clock 1.4GHz -- hang", 64, "a clock such as 1410 or 1410MHz");
	complains("submit --clock 1 --clock-lock 2 -- hang", 64, "exclude each other");
	complains("submit --visible gpu -- hang", 64, "must be index or uuid");
	complains("submit --grace 30 -- hang", 64, "a time such as 30s");
	complains("submit --env X -- hang", 64, "must be NAME=VALUE");
	complains("submit --cwd /nonexistent -- hang", 66, "directory '/nonexistent'");
	complains("submit --name a/b -- hang", 64, "field 'name' may have letters");
	complains("submit -n 9 -- hang", 65, "asks for 9 GPUs, the largest node has 8");
	complains("submit -- nosuchcommand", 127, "there is no command 'nosuchcommand' in $PATH");
	complains("submit -- ./nosuchcommand", 127, "there is no command './nosuchcommand'");
	complains("submit -- /tmp", 126, "'/tmp' cannot be executed");
	complains("show", 64, "usage: takt show JOB");
	complains("show x", 64, "'x' is not the number of a job");
	complains("show 99", 66, "there is no job 99");
	complains("explain 99", 66, "there is no job 99");
	complains("logs 99", 66, "there is no job 99");
	complains("wait 99", 66, "there is no job 99");
	complains("cancel 99", 66, "there is no job 99");
	complains("clock set 1410", 64, "say which GPUs");
	complains("clock set --gpus 0,5 1410", 64, "this machine has 2");
	complains("clock set --gpus 0 5000", 65, "210 to 1980");
	complains("clock set --gpus 0", 64, "usage: takt clock set");
	complains("clock bend", 64, "cap, apply or restore, not 'bend'");
	complains("clock show --lock", 64, "'--lock' is not for takt clock show");
	complains("queue --limit 0", 64, "from 1 to 10000, not '0'");
	complains("completion tcsh", 64, "bash, zsh and fish, not 'tcsh'");
	complains("help stauts", 64, "there is no verb 'stauts'");
	complains("record x", 69, "without recording");
}

/* What is typed out of habit either works or is answered with the command that does it. */
static void verbs_of_other_tools_work_or_are_answered(void **state)
{
	static const char *const queues[] = {"ls", "ps", "list", "squeue", "qstat", "bjobs"};
	static const char *const cancels[] = {"kill", "rm", "stop", "delete", "scancel", "qdel"};
	static const char *const rows[][2] = {
		{"watch", "'takt top'"},
		{"info", "'takt show JOB'"},
		{"get pods", "'takt queue'"},
		{"free", "'takt status'"},
		{"sbatch x.sh", "'takt submit --sbatch -- ./SCRIPT'"},
		{"srun -n 4 true", "'takt run -n GPUS -- COMMAND'"},
		{"salloc", "'takt run -n GPUS -- bash'"},
		{"scontrol show job 1", "'takt show JOB'"},
		{"resume 1", "'takt thaw JOB'"},
		{"help info", "'takt show JOB'"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(queues); i++)
		says(queues[i], 0, "no job runs or waits\n");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(cancels); i++) {
		char line[32];

		submit("hang");
		snprintf(line, sizeof(line), "%s %zu", cancels[i], i + 1);
		cli_run(line, &result);
		assert_int_equal(result.status, 0);
		assert_string_equal(fake.jobs[i].view.state, "cancelled");
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		complains(rows[i][0], 64, rows[i][1]);
	cli_run("help squeue", &result);
	assert_has(result.out, "takt queue [-a]");
	cli_run("sinfo", &result);
	assert_has(result.out, "GPU");
	cli_run("-V", &result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "takt ");
}

static void options_of_other_tools_work_or_are_answered(void **state)
{
	cli_run("submit --job-name train --gres=gpu:2 --time 1:30:00 --mem 16GB --json -- hang",
		&result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "\"name\":\"train\"");
	assert_has(result.out, "\"gpus\":2");
	assert_has(result.out, "\"time_limit_ms\":5400000");
	assert_has(result.out, "\"mem_mib\":16384");
	cli_run("submit -J two -G 1 -t 90 --mem 16Gi --json -- hang", &result);
	assert_has(result.out, "\"name\":\"two\"");
	assert_has(result.out, "\"time_limit_ms\":5400000");
	assert_has(result.out, "\"mem_mib\":16384");
	cli_run("submit -t 1-00:00:00 --json -- hang", &result);
	assert_has(result.out, "\"time_limit_ms\":86400000");
	cli_run("submit --time-limit 90min --begin tomorrow --json -- hang", &result);
	assert_has(result.out, "\"time_limit_ms\":5400000");
	assert_has(result.out, "\"begin_ms\":");
	complains("submit -t 5:30 -- hang", 64, "minutes such as 90");
	complains("submit --grace 30 -- hang", 64, "a time such as 30s");
	cli_run("submit -o out-%j.txt --json -- hang", &result);
	assert_has(result.out, "\"output\":\"out-%j.txt\"");
	complains("submit -o out-%q -- hang", 64, "'%q' stands for nothing");
	complains("submit --output=out --ranks=2 --rank-prefix -- hang", 64,
		  "'output' and 'rank_prefix'");
	complains("submit --error=out -- hang", 64, "'-o FILE' takes");
	complains("submit --dependency afterok:1 -- hang", 64, "'--after JOB:ok'");
	complains("queue -o x", 64, "see 'takt help queue'");
}

static void queue_gives_reasons(void **state)
{
	says("queue", 0, "no job runs or waits\n");
	submit("hang");
	submit("queue");
	cli_run("queue", &result);
	assert_has(result.out, "JOB  NAME   USER  STATE    GPUS ");
	assert_has(result.out, "  1  hang   ada   running     2 ");
	assert_has(result.out, "GPUs 0-1\n");
	assert_has(result.out, "needs 2 more\n");
	assert_null(strstr(result.out, "PRIO")); /* all have the same, the usual one */
	says("queue --ids", 0, "1\n2\n");
	cli_run("queue -n 1", &result);
	assert_has(result.out, "1 of 2; --limit shows more\n");
}

static void explain_gives_numbers(void **state)
{
	submit("queue");
	says("explain 1", 0,
	     "job 1 is waiting: needs 4 GPUs, 2 are free: 2 more have to come free\n"
	     "  asked for           2\n"
	     "  GPUs there are      8\n"
	     "  free                2\n"
	     "  running jobs        6\n"
	     "  draining            0\n"
	     "  used from outside   0\n"
	     "  unhealthy           0\n"
	     "  promised to others  0\n"
	     "  set aside, reserved 0\n"
	     "  must come free      2\n"
	     "  jobs ahead          0\n");
}

static void show_ends_with_the_report(void **state)
{
	submit("exit 3");
	cli_run("wait 1", &result);
	assert_int_equal(result.status, 3);
	assert_string_equal(result.out, "job 1 exit: failed: exit status 3\n");
	says("show 1", 0,
	     "job           1 exit\n"
	     "state         failed: exit status 3\n"
	     "user          ada\n"
	     "command       exit 3\n"
	     "directory     /home/ada\n"
	     "GPUs          2 asked for, given 0-1\n"
	     "              GPU-0\n"
	     "              GPU-1\n"
	     "priority      0\n"
	     "submitted     2025-11-20 15:05:05\n"
	     "started       2025-11-20 15:05:06\n"
	     "ended         2025-11-20 15:05:09\n"
	     "wall time     3.500s\n"
	     "GPUs          0-1\n"
	     "energy        1235 J\n"
	     "mean SM clock 1405 MHz\n"
	     "throttled     1.200s (sw_power_cap)\n"
	     "utilisation   87.5% of its GPUs, idle for 400ms of GPU time\n"
	     "peak memory   45.0G of one GPU\n");
}

static void run_is_like_running_it_here(void **state)
{
	says("run -n 1 -- echo one two", 0, "one\ntwo\n");
	assert_has(result.err, "takt: job 1 echo: running on GPU 0\n");
	assert_has(result.err, "takt:   energy        1235 J\n");
	says("run -q -- exit 3", 3, "");
	assert_string_equal(result.err, "");
	says("run -q -- kill 9", 137, "");
	cli_run("run --json -q -- exit 4", &result);
	assert_int_equal(result.status, 4);
	assert_has(result.err, "\"exit_code\":4");
}

static void logs_are_bytes(void **state)
{
	submit("binary");
	cli_run("logs -f 1", &result);
	assert_int_equal(result.status, 0);
	assert_int_equal(result.out_len, 256);
	for (unsigned i = 0; i < 256; i++)
		assert_int_equal((unsigned char)result.out[i], i);
}

/* Reads until it has been there so often; what came is lost. */
static void read_until_there(int fd, const char *text, int times)
{
	char got[1 << 14];
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, got + len, sizeof(got) - 1 - len);
		const char *at = got;
		int seen = 0;

		assert_true(n > 0);
		len += (size_t)n;
		got[len] = '\0';
		while ((at = strstr(at, text)) && ++at)
			seen++;
		if (seen >= times)
			return;
	}
}

static void status_is_of_some_gpus_and_again_and_again(void **state)
{
	static const char *const again[] = {"status -l 1", "status --watch"};
	struct cli_child child;

	cli_run("status -i 1", &result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "\n  1  ");
	assert_null(strstr(result.out, "\n  0  "));
	complains("status -g 7", 64, "'--gpu'");
	complains("status -i 0 --json", 64, "all GPUs");
	complains("status -l 0", 64, "from 1 to 3600");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(again); i++) {
		cli_start(again[i], &child);
		read_until_there(child.out_fd, "jobs running", 2);
		kill(child.pid, SIGINT);
		cli_finish(&child, &result);
		assert_int_equal(result.status, 128 + SIGINT);
	}
}

static void the_last_lines_of_a_log_are_chosen(void **state)
{
	submit("hang");
	fake_halt(&fake);
	fake_log(&fake, 1, "one\ntwo\nthree\n", 14);
	fake_run(&fake);
	says("logs --tail 2 1", 0, "two\nthree\n");
	says("logs -n 1 1", 0, "three\n");
	says("logs --tail 9 1", 0, "one\ntwo\nthree\n");
	says("logs --tail 0 1", 0, "");
	fake_halt(&fake);
	fake_log(&fake, 1, "fo", 2);
	fake_run(&fake);
	says("logs --tail=2 1", 0, "three\nfo");
	complains("logs --tail x 1", 64, "'--tail' must be a whole number");
}

static void wait_until(bool (*there)(void))
{
	for (int i = 0; i < 12000 && !there(); i++)
		usleep(10000);
	assert_true(there());
}

static bool has_started(void)
{
	return fake.job_count == 1 && fake.jobs[0].view.pid != 0;
}

static bool has_usr1(void)
{
	return fake.last_signal == SIGUSR1;
}

static void run_forwards_signals(void **state)
{
	struct cli_child child;

	cli_start("run -- hang", &child);
	wait_until(has_started);
	cli_wait_said(&child, "takt: job 1 hang: ");
	kill(child.pid, SIGUSR1);
	wait_until(has_usr1);
	kill(child.pid, SIGINT);
	cli_finish(&child, &result);
	assert_int_equal(fake.last_signal, SIGINT);
	assert_int_equal(result.status, 128 + SIGINT);
	assert_has(result.err, "failed: killed by SIGINT");
}

static void ctrl_c_takes_a_waiting_job_out_of_the_queue(void **state)
{
	struct cli_child child;

	cli_start("run -- queue", &child);
	cli_wait_said(&child, "takt: job 1 queue: ");
	kill(child.pid, SIGINT);
	cli_finish(&child, &result);
	assert_int_equal(result.status, 128 + SIGINT);
	assert_has(result.err, "takt: job 1 queue: cancelled: never started\n");
	assert_string_equal(fake.jobs[0].view.state, "cancelled");
}

static void run_survives_a_restart(void **state)
{
	struct cli_child child;

	cli_start("run -- hang", &child);
	cli_wait_said(&child, "takt: job 1 hang: ");
	fake_halt(&fake);
	fake_stop_server(&fake);
	cli_wait_said(&child, "trying to reach takt again");
	fake_restart(&fake);
	fake_log(&fake, 1, "afterwards\n", 11);
	fake_run(&fake);
	cli_wait_said(&child, "connected again");
	fake_halt(&fake);
	fake_end(&fake, 1, 5, 0);
	fake_run(&fake);
	cli_finish(&child, &result);
	assert_int_equal(result.status, 5);
	assert_string_equal(result.out, "afterwards\n");
	assert_has(result.err, "trying to reach takt again");
	assert_has(result.err, "connected again");
}

static void a_closed_pipe_ends_the_job(void **state)
{
	struct cli_child child;

	cli_start("run -- hang", &child);
	wait_until(has_started);
	close(child.out_fd);
	child.out_fd = open("/dev/null", O_RDONLY);
	fake_halt(&fake);
	fake_log(&fake, 1, "more\n", 5);
	fake_run(&fake);
	cli_finish(&child, &result);
	assert_int_equal(fake.last_signal, SIGPIPE);
	assert_int_equal(result.status, 128 + SIGPIPE);
}

static void the_queue_of_one_user_is_shown(void **state)
{
	submit_with("-n 2 --name mine -- hang");
	submit_with("-n 2 --name theirs -- queue");
	fake.jobs[1].view.uid = 4711;
	says("queue --me --ids", 0, "1\n");
	says("squeue -u 4711 --ids", 0, "2\n");
	says("queue -u ada -n 1 --ids", 0, "1\n");
	says("queue -u 4712", 0, "no job runs or waits\n");
	complains("queue --me --json", 64, "'takt jobs --json --user USER'");
}

static const char *state_of(size_t job_id)
{
	return fake.jobs[job_id - 1].view.state;
}

static void many_jobs_are_cancelled(void **state)
{
	for (int i = 0; i < 3; i++)
		submit_with("-n 2 --name sweep-a -- queue");
	submit_with("-n 2 --name other -- queue");
	submit_with("-n 2 --name sweep-b -- queue");
	cli_run("cancel 1-2", &result);
	assert_int_equal(result.status, 0);
	assert_string_equal(state_of(1), "cancelled");
	assert_string_equal(state_of(2), "cancelled");
	assert_string_not_equal(state_of(3), "cancelled");
	cli_run("cancel --name sweep-*", &result);
	assert_int_equal(result.status, 0);
	assert_string_equal(state_of(3), "cancelled");
	assert_string_equal(state_of(5), "cancelled");
	assert_string_not_equal(state_of(4), "cancelled");
	says("cancel --tag none", 0, "no such job runs or waits\n");
	submit_with("-n 2 --tag night -- queue");
	cli_run("cancel --tag night", &result);
	assert_string_equal(state_of(6), "cancelled");
	says("cancel -u 4711", 0, "no such job runs or waits\n");
	assert_string_not_equal(state_of(4), "cancelled");
	fake.jobs[3].view.uid = 4711;
	says("cancel --all -y", 0, "no such job runs or waits\n");
	cli_run("scancel -u 4711", &result);
	assert_string_equal(state_of(4), "cancelled");
	complains("cancel 7[5]", 66, "no such job of array 7 runs or waits");
	complains("cancel 7[5-x]", 64, "as in 30[0-19]");
	complains("cancel", 64, "say which jobs: their numbers (12 14-16), or --all");
	complains("cancel --all 3", 64, "say which jobs");
	complains("cancel 3-1", 64, "from a lower number to a higher one");
	complains("cancel 1-", 64, "is not the number of a job");
}

static void wait_and_cancel(void **state)
{
	submit("hang");
	submit("exit 0");
	says("wait -t 30ms 1", 124, "job 1 hang: running on GPUs 0-1\n");
	says("cancel 1", 0, "job 1: cancelled: killed by SIGTERM\n");
	cli_run("cancel 1 99 2", &result);
	assert_has(result.err, "job 1 is over");
	assert_has(result.err, "there is no job 99");
	says("wait 1", 128 + 15, "job 1 hang: cancelled: killed by SIGTERM\n");
}

static void wishes_are_read(void **state)
{
	complains("submit --array 5 -- true", 64, "'--array' must be such as 0-9");
	complains("submit --array 0-9%x -- true", 64, "not '0-9%x'");
	complains("submit --array 9-0 -- true", 64, "'array_last' must be 9");
	complains("submit -m 16 -- true", 64,
		  "'--mem' must be a size such as 512M or 16G, not '16'");
	complains("submit --gpu-mem 0G -- true", 64, "'--gpu-mem' must be a size");
	complains("submit -c 1.2345 -- true", 64, "'--cpus' must be a number such as 2 or 0.5");
	complains("submit -c -1 -- true", 64, "'--cpus' must be a number");
	complains("submit --after 3x -- true", 64, "'--after' must be the number of a job");
	complains("submit --after 3:ever -- true", 64, "'--after' must be the number of a job");
	complains("submit --begin soon -- true", 64, "a time must be such as 18:00");
	complains("submit --begin 25:00 -- true", 64, "not '25:00'");
	complains("submit --time-limit 1y -- true", 64, "'--time-limit' must be a time");
	complains("submit --retries 101 -- true", 64, "'--retries' must be a whole number");
	complains("submit --retry-backoff 0s -- true", 64, "'retry_backoff_ms' must be 1 to");
	complains("submit -n 1.5 -- true", 64, "not '1.5'");
	complains("submit -n 0x0.5 -- true", 64, "not '0x0.5'");
	complains("submit -n 0.0 -- true", 64, "not '0.0'");
	complains("submit -n 2 --mig 1g.10gb -- true", 64, "'--gpus' cannot be given with it");
	complains("submit --mig x2 -- true", 64, "'--mig' must be a profile");
	complains("submit --mig half -- true", 64, "field 'mig' must be a profile");
	complains("submit --checkpoint-signal FOO -- true", 64, "a signal such as USR1 or 10");
	complains("submit --checkpoint-signal KILL -- true", 64, "that a program can catch");
	complains("submit --checkpoint-grace 5s -- true", 64, "needs '--checkpoint-signal'");
	complains("submit --deadline soon -- true", 64, "a time must be such as 18:00");
	complains("submit --estimate 2 -- true", 64, "'--estimate' must be a time");
	complains("submit --tag a,,b -- true", 64, "'tags' must be such as night,big");
	complains("submit --tenant /x -- true", 64, "'tenant' must be such as lab/vision");
	complains("submit --ranks=0 -- true", 64, "'--ranks' must be a whole number from 1");
	complains("submit -n 0 --ranks -- true", 64, "without GPUs needs a number");
	complains("submit --container-arg x -- true", 64, "needs an image");
	complains("submit --container i --container-runtime lxc -- true", 64, "podman, docker or");
	complains("submit --hook= -- true", 64, "'hook' must be a shell command");
	complains("submit --wait-outside --use-outside -- true", 64, "exclude each other");
	complains("submit --gpu-index 0,x -- true", 64, "'--gpu-index' must be a list of GPUs");
	complains("submit --gpu-index all -- true", 64, "'--gpu-index' must be a list of GPUs");
	complains("submit --gpu-index 0,2 -n 3 -- true", 64, "names 2 GPUs, fewer than the 3");
	complains("submit --gpu-index 0 -n 0 -- true", 64, "needs at least one GPU");
}

/* What the server was told, as the fake shows it again. */
static void terms_reach_the_job(void **state)
{
	submit_with(
		"-n 2x0.25 --preemptible --freezable --checkpoint-signal SIGUSR1 "
		"--checkpoint-grace 5m --checkpoint-dir /ck --deadline 2026-12-24 --estimate 2h "
		"--tenant lab/vision --tag a --tag b,c --retries 1 --retry-backoff 10s "
		"--idle-release 30m --container deb --container-runtime docker "
		"--container-arg=--ipc --stage --prefetch sync --hook date --wait-outside "
		"--ranks -- hang");
	cli_run("show 1", &result);
	assert_has(result.out, "GPUs          2 asked for, 0.25 of each, given 0-1\n");
	assert_has(result.out, "tenant        lab/vision\ntags          a,b,c\n");
	assert_has(result.out, "up to 1, 0 failed so far, first pause 10.000s\n");
	assert_has(result.out, "yields        may be ended for others, may be frozen\n");
	assert_has(result.out, "checkpoint    signal 10 (USR1), then 5m00s to SIGTERM\n"
			       "              /ck\n");
	assert_has(result.out, "estimate      2h00m\ndeadline      2026-12-24 00:00:00\n"
			       "ranks         2\nidle release  30m00s\n"
			       "container     deb\n              docker\n"
			       "staged        before its turn\n"
			       "prefetch      /bin/sh -c sync\nhook          date\n"
			       "outside use   waited for\n");
	submit_with("--mig 1g.10gbx2 --ranks=3 --checkpoint-signal 12 -- hang");
	cli_run("show 2", &result);
	assert_has(result.out, "GPUs          2 of MIG 1g.10gb asked for");
	assert_has(result.out, "ranks         3\n");
	assert_has(result.out, "signal 12 (USR2), then 1m00s to SIGTERM\n");
	submit_with("-n 0.5 -- hang");
	cli_run("show 3", &result);
	assert_has(result.out, "GPUs          1 asked for, 0.5 of each");
}

static void a_dry_run_hands_in_nothing(void **state)
{
	says("submit --dry-run -n 2 -- true", 0, "would start now on GPUs 0-1\n");
	cli_run("submit --dry-run -n 3 -- true", &result);
	assert_has(result.out, "would wait: waits for more GPUs; predicted to start 2026-11-20 ");
	cli_run("submit --dry-run -n 2 --json -- true", &result);
	assert_has(result.out, "\"starts\":true,\"gpu_list\":[0,1]");
	assert_int_equal(fake.job_count, 0);
}

static void jobs_are_held_released_and_updated(void **state)
{
	submit("hang");
	cli_run("hold 1 99", &result);
	assert_has(result.out, "job 1: ");
	assert_has(result.err, "there is no job 99");
	assert_int_equal(result.status, 66);
	assert_string_equal(fake.jobs[0].view.held, "owner");
	cli_run("show 1", &result);
	assert_has(result.out, "held          by its owner\n");
	cli_run("release 1", &result);
	assert_int_equal(result.status, 0);
	assert_string_equal(fake.jobs[0].view.held, "");
	cli_run("update 1 -p -7", &result);
	assert_has(result.out, ", priority -7\n");
	complains("update 1", 64, "say what to change");
	complains("update 1 --max-slowdown 51%", 64, "from 0 to 50");
	complains("update 1 --priority 1001", 64, "from -1000 to 1000");
	complains("hold", 64, "usage: takt hold JOB...");
}

static void clocks_are_set_and_shown(void **state)
{
	says("clock", 0,
	     "GPU  NAME            SM MHZ      LIST  LEASE  OF  POWER  STATE  NOTE\n"
	     "  0  H100 80GB HBM3    1980  210-1980      -  -       -  clean  -\n"
	     "  1  H100 80GB HBM3       -  210-1980      -  -       -  clean  -\n");
	cli_run("clock set --gpus 0-1 1410", &result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "210-1410  job 7      -  leased");
	assert_int_equal(fake.last_mask, 3);
	assert_int_equal(fake.last_mhz, 1410);
	cli_run("clock reset", &result);
	assert_int_equal(fake.last_mhz, 0);
	assert_int_equal(fake.last_mask, 3);
}

static void gpus_are_set_aside_and_reserved(void **state)
{
	says("gpu", 0, "no GPU is set aside or reserved\n");
	cli_run("gpu drain 2 --reason fan", &result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "  2  drained  2025-11-20 14:46:40  root  fan\n");
	assert_int_equal(fake.last_mask, 4);
	cli_run("gpu reserve 0,1 3 --for-user ada --from 2096-01-02T03:04 --until 2096-01-02T04:05",
		&result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "0-1,3  ada  2096-01-02 03:04:00  2096-01-02 04:05:00  root");
	cli_run("gpu refuse 1 --reason demo", &result);
	assert_has(result.out, "refused");
	assert_has(result.out, "demo");
	cli_run("gpu approve 1", &result);
	assert_null(strstr(result.out, "refused"));
	complains("gpu refuse 1", 64, "say why: '--reason TEXT'");
	complains("gpu approve", 64, "usage: takt gpu approve ID");
	complains("gpu drain 1 --reason x --dry-run", 64, "'--dry-run' is for reserve");
	cli_run("gpu release 1", &result);
	cli_run("gpu reserve all --until 2h", &result);
	assert_has(result.out, "0-3   maintenance");
	cli_run("gpu release 1", &result);
	assert_null(strstr(result.out, "maintenance"));
	says("gpu resume 2", 0, "no GPU is set aside or reserved\n");
	complains("gpu drain 2", 64, "say why: '--reason TEXT'");
	complains("gpu drain --reason x", 64, "say which GPUs");
	complains("gpu drain 4 --reason x", 64, "this machine has 4");
	complains("gpu reserve 1", 64, "say how long");
	complains("gpu reserve 1 --until 1h --from 2h", 64, "must be after");
	complains("gpu reserve 1 --until soon", 64, "'--until': ");
	complains("gpu resume 1 --until 1h", 64, "are for takt gpu reserve");
	complains("gpu polish", 64, "not 'polish'");
	complains("gpu release x", 64, "'x' is no reservation's number");
}

static void help_comes_from_the_table(void **state)
{
	cli_run("", &result);
	assert_int_equal(result.status, 0);
	assert_has(result.out, "  status                every GPU and who runs on it\n");
	cli_run("help run", &result);
	assert_has(result.out, "  -n, --gpus GPUS       GPUs, best linked (default 1");
	assert_has(result.out, "      --ranks[=N]       start N");
	assert_has(result.out, "\nclocks and power\n      --clock MHZ");
	assert_has(result.out, "\nof every verb\n      --json");
	assert_true(longest_line(result.out) <= 80);
	cli_run("clock --help", &result);
	assert_has(result.out, "takt clock [show | set");
	cli_run("serve --help", &result);
	assert_has(result.out, "--sample-hz N  (default 10)");
	cli_run("man", &result);
	assert_has(result.out, ".SS takt submit");
	assert_has(result.out, ".B sample_hz\n");
	cli_run("completion bash", &result);
	assert_has(result.out, "complete -o default -F _takt takt");
	cli_run("completion zsh", &result);
	assert_has(result.out, "#compdef takt");
	cli_run("completion fish", &result);
	assert_has(result.out, "__fish_use_subcommand -a queue -d 'jobs that run and wait");
	assert_has(result.out, "'__fish_seen_subcommand_from logs' -l follow -s f -d 'go on ");
	assert_has(result.out, "'__fish_seen_subcommand_from logs' -a '(takt queue --ids");
	cli_run("--version", &result);
	assert_has(result.out, "takt 0.1.0\ndaemon 0.1.0 on /tmp/");
}

static void serve_gets_its_own_arguments(void **state)
{
	says("serve --sample-hz=5", 42, "");
}

static void no_daemon_is_said(void **state)
{
	setenv("TAKT_SOCKET", "/nonexistent/takt.sock", 1);
	complains("status", 69, "no takt answers on '/nonexistent/takt.sock'");
	complains("run -- true", 69, "'takt serve' starts one");
	cli_run("version", &result);
	assert_int_equal(result.status, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define JOBS(name) cmocka_unit_test_setup_teardown(name, set_up_commands, tear_down_commands)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(status_is_a_line_a_gpu),
		CASE(different_gpus_have_their_names),
		CASE(status_fits_narrow_terminals),
		JOBS(simulated_is_said_everywhere),
		CASE(changed_clocks_are_shouted),
		CASE(topo_is_a_matrix),
		JOBS(submit_says_where_it_went),
		JOBS(options_reach_the_job),
		JOBS(bad_options_are_named),
		JOBS(a_directory_that_is_too_long_is_named),
		JOBS(verbs_of_other_tools_work_or_are_answered),
		JOBS(options_of_other_tools_work_or_are_answered),
		JOBS(queue_gives_reasons),
		JOBS(explain_gives_numbers),
		JOBS(show_ends_with_the_report),
		JOBS(run_is_like_running_it_here),
		JOBS(logs_are_bytes),
		JOBS(status_is_of_some_gpus_and_again_and_again),
		JOBS(the_last_lines_of_a_log_are_chosen),
		JOBS(run_forwards_signals),
		JOBS(run_survives_a_restart),
		JOBS(ctrl_c_takes_a_waiting_job_out_of_the_queue),
		JOBS(a_closed_pipe_ends_the_job),
		JOBS(wait_and_cancel),
		JOBS(many_jobs_are_cancelled),
		JOBS(the_queue_of_one_user_is_shown),
		JOBS(jobs_are_held_released_and_updated),
		JOBS(wishes_are_read),
		JOBS(terms_reach_the_job),
		JOBS(a_dry_run_hands_in_nothing),
		CASE(clocks_are_set_and_shown),
		CASE(gpus_are_set_aside_and_reserved),
		CASE(help_comes_from_the_table),
		CASE(serve_gets_its_own_arguments),
		CASE(no_daemon_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
