// SPDX-License-Identifier: Apache-2.0
// One job: where it stands, why, what it did, what it saved, and what it prints.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Refused, get, post, request, words_of } from "../api";
import { Chart, type Line, type Span } from "../chart";
import { Decisions, ceilings, count_at, rates, told, useCourse, type Told } from "../course";
import { DASH, bytes, clock_time, duration, energy, from_now, gpu_set, short } from "../format";
import { asked_gpus, environment_of, given_gpus, is_mine, PATH, words_of_exit } from "../jobs";
import { FIRST_PAUSE_MS, longer, may_act, may_write, pause, useLive } from "../live";
import { cost_of } from "../price";
import { amend, go, usePlace } from "../route";
import type { History, Job, Progress } from "../types";
import { Ask, Banner, Empty, Figure, Problem, State, Terms, Waiting, useAsked, useNow } from "../ui";
import { ending, governed_text, job_name, shown_state } from "./queue";

const ENDED = ["done", "failed", "cancelled", "lost", "interrupted"];
const FAILED = ["failed", "lost", "interrupted"];
const KEPT_LOG = 400_000;
const TAIL_BYTES = 8192;
const TAIL_LINES = 15;

export function JobPage({ id }: { id: number }) {
  const [asked_again, ask_again] = useState(0);
  const { heard_ms } = useLive();
  const answer = useAsked((signal) => get<Job>(`/v1/jobs/${id}`, signal), [id, asked_again, Math.floor((heard_ms ?? 0) / 2000)]);
  const job = answer.value?.id === id ? answer.value : undefined;
  if (!job && answer.error instanceof Refused && answer.error.status === 404)
    return (
      <Empty title={`There is no job ${id}`}>
        Perhaps it has been forgotten, or never was. <a href="#/jobs">All jobs</a>
      </Empty>
    );
  if (!job && answer.problem) return <Problem what={answer.problem} />;
  if (!job) return <Waiting what={`job ${id}`} />;
  return <Shown job={job} changed={() => ask_again((n) => n + 1)} />;
}

function Shown({ job, changed }: { job: Job; changed: () => void }) {
  const now = useNow();
  const { query } = usePlace();
  const tab = query.get("tab") ?? "about";
  const tabs = ["about", "metrics", ...(governed(job) ? ["clocks"] : []), ...(job.mine ? ["log"] : [])]; // another's output is his own
  return (
    <article>
      <div class="toolbar">
        <h1>
          <span class="soft">{job.id}</span> {job_name(job)} <State of={shown_state(job)} />
        </h1>
        <Actions job={job} changed={changed} />
      </div>
      {FAILED.includes(job.state) ? <Failed job={job} now={now} /> : <Where job={job} now={now} />}
      <Report job={job} now={now} />
      <div class="tabs" role="group" aria-label="what is shown">
        {tabs.map((each) => (
          <button key={each} aria-pressed={tab === each} onClick={() => amend({ tab: each })}>
            {{ about: "About", metrics: "Metrics", clocks: "Clocks", log: "Log" }[each]}
          </button>
        ))}
      </div>
      {tab === "metrics" ? <Metrics job={job} /> : tab === "clocks" ? <Governed job={job} /> : tab === "log" ? job.mine ? <Log job={job} /> : <Empty title="Its output is for its owner alone" /> : <About job={job} now={now} />}
    </article>
  );
}

/** Somebody chooses, or chose, its clocks. */
const governed = (job: Job) => !!job.governed?.state || !!job.report?.governor;

/** The one sentence that its owner came for. */
function Where({ job, now }: { job: Job; now: number }) {
  const word = ENDED.includes(job.state)
    ? `${ending(job) || job.state}, ${from_now(job.ended_ms ?? now, now)}`
    : job.state === "waiting"
      ? [
          job.why_text ?? job.why,
          job.starts_ms && `predicted start ${from_now(job.starts_ms, now)}${job.starts_gpus?.length ? ` on GPU ${gpu_set(job.starts_gpus)}` : ""}`,
        ]
          .filter(Boolean)
          .join("; ")
      : [
          given_gpus(job) ? `on ${given_gpus(job)} since ${clock_time(job.started_ms)}` : `since ${clock_time(job.started_ms)}`,
          job.run_ms && job.started_ms && `expected to end ${from_now(job.started_ms + job.run_ms, now)}`,
          job.why_text,
        ]
          .filter(Boolean)
          .join("; ");
  return (
    <>
      <p class="lead">{word}</p>
      <Notes job={job} />
    </>
  );
}

function Notes({ job }: { job: Job }) {
  const notes = [
    { text: job.health_note, severity: job.health_severity },
    { text: job.stray_note, severity: "warning" },
    { text: job.memory_hint, severity: "info" },
    { text: job.clock_note, severity: "info" },
  ].filter(({ text }) => text);
  return (
    <>
      {notes.map(({ text, severity }) => (
        <Banner key={text} severity={severity}>
          {text}
        </Banner>
      ))}
    </>
  );
}

/** Why it failed, and what it said last. */
function Failed({ job, now }: { job: Job; now: number }) {
  return (
    <section class="panel failed" aria-label="why it failed">
      <h2>
        <State of={job.state} text={`It ${job.state === "failed" ? "failed" : `was ${job.state}`}`} /> <span class="soft">{from_now(job.ended_ms ?? now, now)}</span>
      </h2>
      <p class="lead">{ending(job) || job.cause || "Why is not known."}</p>
      {words_of_exit(job.exit_code) && <p>Usually: {words_of_exit(job.exit_code)}.</p>}
      <Notes job={job} />
      {job.mine && <LastLines job={job} />}
    </section>
  );
}

async function last_lines(id: number, signal: AbortSignal): Promise<string> {
  const response = await request(`/v1/jobs/${id}/log?tail=${TAIL_BYTES}`, { signal });
  const lines = plain(await response.text()).trimEnd().split("\n");
  return lines.slice(-TAIL_LINES).join("\n");
}

function LastLines({ job }: { job: Job }) {
  const { value, problem } = useAsked((signal) => last_lines(job.id, signal), [job.id, job.attempt]);
  if (problem) return <p class="soft">Its output cannot be read: {problem}</p>;
  if (value === "") return <p class="soft">It printed nothing.</p>;
  return (
    <>
      <h3>Its last lines</h3>
      <pre class="tail" tabIndex={0} role="region" aria-label={`last lines of job ${job.id}`}>
        {value ?? "…"}
      </pre>
      <p>
        <a href={`#/jobs/${job.id}?tab=log`}>The whole output</a>
      </p>
    </>
  );
}

function Report({ job, now }: { job: Job; now: number }) {
  const report = job.report ?? {};
  const saved = report.highest_mj !== undefined && report.governed_mj !== undefined ? report.highest_mj - report.governed_mj : undefined;
  const progress = job.progress ?? {};
  const rate = (milli: number | undefined, unit: string) => (milli === undefined ? undefined : `${short(milli / 1000)} ${unit}/s`);
  const ran = report.wall_ms ?? (job.started_ms ? (job.ended_ms ?? now) - job.started_ms : undefined);
  if (!job.started_ms) return null;
  return (
    <dl class="figures">
      <Figure label="Run time" value={duration(ran)} note={job.run_ms ? `${duration(job.run_ms)} expected, by ${job.run_from}` : undefined} />
      <Figure label="Energy" value={energy(report.energy_mj)} note={report.energy_why_not ?? cost_of(report.energy_mj)} />
      {governed(job) && (
        <Figure
          label="Saved"
          value={saved === undefined ? DASH : energy(saved)}
          note={
            saved === undefined
              ? (job.governed?.note ?? undefined)
              : `${short((100 * saved) / report.highest_mj!)} % ± ${short((report.highest_error_permille ?? 0) / 10)}, modelled${report.work_signal === "counters" ? " by activity counters" : report.work_signal === "utilisation" ? " by utilisation, a guess" : ""}; ${short((report.slowdown_permille ?? 0) / 10)} % slower`
          }
        />
      )}
      <Figure
        label="Utilisation"
        value={report.mean_util_permille === undefined ? DASH : `${short(report.mean_util_permille / 10)} %`}
        note={report.idle_ms ? `${duration(report.idle_ms)} of GPU time idle` : undefined}
      />
      <Figure
        label="Mean clock"
        value={report.mean_sm_mhz === undefined ? DASH : `${report.mean_sm_mhz} MHz`}
        note={
          [
            report.sm_spread_mhz !== undefined && `its GPUs ${report.sm_spread_mhz} MHz apart`,
            report.throttled_ms && `held back ${duration(report.throttled_ms)}: ${report.throttle_text ?? ""}`,
          ]
            .filter(Boolean)
            .join("; ") || undefined
        }
      />
      <Figure
        label={progress.steps !== undefined ? "Steps" : progress.tokens !== undefined ? "Tokens" : "Peak memory"}
        value={
          progress.steps !== undefined
            ? progress.steps.toLocaleString("en")
            : progress.tokens !== undefined
              ? progress.tokens.toLocaleString("en")
              : bytes(report.peak_memory_bytes)
        }
        note={[rate(progress.steps_milli_s, "steps") ?? rate(progress.tokens_milli_s, "tokens"), skew(progress)].filter(Boolean).join("; ") || undefined}
      />
    </dl>
  );
}

/** Which rank the others wait for. */
function skew({ ranks, slowest_rank, skew_permille }: Progress): string | undefined {
  return ranks && skew_permille !== undefined ? `of ${ranks} ranks, rank ${slowest_rank} is the slowest, ${short(skew_permille / 10)} % behind` : undefined;
}

function About({ job, now }: { job: Job; now: number }) {
  return (
    <div class="columns">
      <section>
        <h2>What happened</h2>
        <ol class="story">
          {story(job, now).map(([at, text]) => (
            <li key={text}>
              <time>{at ? clock_time(at) : ""}</time> <span>{text}</span>
            </li>
          ))}
        </ol>
        {job.governed?.text && (
          <>
            <h2>Its clocks</h2>
            <p>{governed_text(job)}</p>
          </>
        )}
      </section>
      <section>
        <h2>What was asked for</h2>
        <Terms
          rows={[
            ["command", job.command && <code>{job.command}</code>],
            ["directory", job.cwd && <code>{job.cwd}</code>],
            ["user", job.user],
            ["GPUs", asked_gpus(job)],
            ["given", given_gpus(job)],
            ["priority", job.priority ? String(job.priority) : undefined],
            ["tenant", job.tenant],
            ["tags", job.tags],
            ["parameters", job.params],
            ["after", job.after],
            ["time limit", job.time_limit_ms && duration(job.time_limit_ms)],
            ["wanted by", job.deadline_ms && clock_time(job.deadline_ms)],
            ["slower by at most", job.max_slowdown_permille && `${short(job.max_slowdown_permille / 10)} %`],
            ["array", job.array_id && <a href={`#/jobs?find=${encodeURIComponent(job.name ?? "")}`}>index {job.array_index ?? 0} of {job.array_id}</a>],
          ]}
        />
      </section>
    </div>
  );
}

function story(job: Job, now: number): [number | undefined, string][] {
  const rows: [number | undefined, string][] = [[job.submitted_ms, "handed in"]];
  if (job.begin_ms && job.begin_ms > now) rows.push([job.begin_ms, "may start from here on"]);
  if (job.restarts) rows.push([undefined, `started again ${job.restarts} times (${job.failures ?? 0} failures, ${job.preemptions ?? 0} for other jobs)`]);
  if (job.started_ms) rows.push([job.started_ms, `attempt ${job.attempt ?? 1} started on GPU ${gpu_set(job.gpu_list) || "none"}`]);
  const gap = job.report;
  if (gap?.gap_start_us !== undefined)
    rows.push([
      undefined,
      `${duration(((gap.gap_driver_us ?? 0) + (gap.gap_scheduler_us ?? 0) + gap.gap_start_us) / 1000)} between the job before it and its own start`,
    ]);
  if (job.checkpoint_ms) rows.push([job.checkpoint_ms, "checkpoint"]);
  if (job.ended_ms) rows.push([job.ended_ms, `${job.state}${ending(job) ? `: ${ending(job)}` : ""}`]);
  else if (job.starts_ms) rows.push([job.starts_ms, "predicted start"]);
  else if (job.started_ms && job.run_ms) rows.push([job.started_ms + job.run_ms, `expected end (${job.run_from})`]);
  return rows;
}

const METRICS = [
  ["utilization", "Utilisation"],
  ["power", "Power"],
  ["sm_clock", "SM clock"],
  ["memory", "Memory"],
] as const;

const SHOWN_GPUS = 8;
const RAW_MS = 100_000; // samples are kept for two minutes

/** Of each metric, of each GPU: what was measured while the job ran. Of a young one every sample: means of 10 s come late. */
function ask_history(job: Job, signal: AbortSignal): Promise<History[][]> {
  const step = Date.now() - job.started_ms! < RAW_MS ? "&step=raw" : "";
  const span = `since_ms=${job.started_ms}${job.ended_ms ? `&until_ms=${job.ended_ms}` : ""}${step}`;
  const of = (metric: string, gpu: number) => get<History>(`/v1/history?gpu=${gpu}&metric=${metric}&${span}`, signal).then(in_large);
  return Promise.all(METRICS.map(([metric]) => Promise.all(job.gpu_list.slice(0, SHOWN_GPUS).map((gpu) => of(metric, gpu)))));
}

/** Memory of today's GPUs is thousands of MiB. */
function in_large({ unit, points, ...rest }: History): History {
  if (unit !== "MiB") return { unit, points, ...rest };
  return { unit: "GiB", points: points.map(([at, least, mean, most]) => [at, least / 1024, mean / 1024, most / 1024]), ...rest };
}

/** A line has a hole where points are missing, and is not drawn through it. */
function with_holes({ points, step_ms }: History): Line["points"] {
  const most_ms = 2.5 * (step_ms || 1000);
  return points.flatMap(([at, , mean], i): Line["points"] =>
    i > 0 && at - points[i - 1][0] > most_ms ? [[(points[i - 1][0] + at) / 2, null], [at, mean]] : [[at, mean]],
  );
}

function Metrics({ job }: { job: Job }) {
  if (!job.started_ms || !job.gpu_list.length) return <Empty title="Nothing is measured of a job that has not held a GPU" />;
  return <Course job={job} />;
}

/** What its governor decided, and what came of it. */
function Governed({ job }: { job: Job }) {
  const { value: course, problem } = useCourse(job);
  if (problem && !course) return <Problem what={problem} />;
  if (!course) return <Waiting what="what was decided" />;
  return (
    <>
      <p class="soft">{[course.governor && `governor ${course.governor}`, governed_text(job)].filter(Boolean).join("; ")}</p>
      <Decisions course={course} />
    </>
  );
}

/** The same line over what the job had done by then; what was measured while it stood still is one point. */
function over_counts(points: Line["points"], it: Told): Line["points"] {
  const sums = new Map<number, { sum: number; count: number }>();
  for (const [at_ms, value] of points) {
    const count = count_at(it, at_ms);
    if (count === undefined || value === null) continue;
    const { sum, count: n } = sums.get(count) ?? { sum: 0, count: 0 };
    sums.set(count, { sum: sum + value, count: n + 1 });
  }
  return [...sums].map(([count, { sum, count: n }]): Line["points"][0] => [count * 1000, sum / n]).sort(([a], [b]) => a - b);
}

/** What its GPUs did, in the job's own time or over its own steps: all charts have one axis. */
function Course({ job }: { job: Job }) {
  const { query } = usePlace();
  const answer = useAsked((signal) => ask_history(job, signal), [job.id, job.attempt, job.started_ms, job.ended_ms], job.ended_ms ? 0 : 5000);
  const { value: course } = useCourse(job);
  const it = useMemo(() => told(course?.said), [course]);
  const by_count = it !== undefined && query.get("over") === "work";
  const charts = useMemo(() => {
    const measured = (answer.value ?? []).map((each) => each.map((history, i): Line => ({ label: `GPU ${job.gpu_list[i]}`, points: with_holes(history) })));
    const clocks = measured[METRICS.findIndex(([metric]) => metric === "sm_clock")];
    if (course?.decisions.length) clocks?.push({ label: "ceiling", points: ceilings(course.decisions) });
    const lines = it ? [...measured, [{ label: it.unit, points: rates(it) }]] : measured;
    return by_count ? lines.map((each) => each.map((line) => ({ ...line, points: over_counts(line.points, it) }))) : lines;
  }, [answer.value, course, it, by_count]);
  if (answer.problem) return <Problem what={answer.problem} />;
  const from_ms = job.started_ms!;
  const until_ms = job.ended_ms ?? answer.value?.[0]?.[0]?.until_ms ?? from_ms;
  const name = `job ${job.id}`;
  const span: Span = by_count ? { name, from_ms: 0, until_ms: it.at.at(-1)![1] * 1000, counts: it.unit } : { name, from_ms, until_ms };
  return (
    <>
      {it && (
        <div class="tabs over" role="group" aria-label="what the charts are over">
          {[undefined, "work"].map((each) => (
            <button key={each} aria-pressed={by_count === !!each} onClick={() => amend({ over: each })}>
              over {each ? it.unit : "time"}
            </button>
          ))}
        </div>
      )}
      <p class="soft">
        {by_count ? `Over its ${it.unit}, from its first word of them; it started at` : "Time since its start at"} {clock_time(from_ms)}
        {(job.attempt ?? 1) > 1 && `, attempt ${job.attempt}`}
        {job.gpu_list.length > SHOWN_GPUS && `; the first ${SHOWN_GPUS} of its ${job.gpu_list.length} GPUs`}
      </p>
      <div class="charts">
        {METRICS.map(([metric, title], i) => (
          <Chart
            key={metric}
            title={title}
            unit={answer.value?.[i]?.[0]?.unit ?? ""}
            lines={charts[i] ?? NO_LINES}
            span={span}
            nothing={job.ended_ms ? "nothing is kept of its time" : undefined}
          />
        ))}
        {it && <Chart title={`${it.unit[0].toUpperCase()}${it.unit.slice(1)} a second`} unit={`${it.unit}/s`} lines={charts[METRICS.length] ?? NO_LINES} span={span} />}
      </div>
    </>
  );
}

const NO_LINES: Line[] = [];

/** Colours and moves of a terminal are left out. */
const plain = (text: string) => text.replace(/\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07/g, "").replace(/[^\n]*\r(?!\n)/g, "");

function Log({ job }: { job: Job }) {
  const box = useRef<HTMLPreElement>(null);
  const [state, set_state] = useState<{ problem?: string; live: boolean; any: boolean }>({ live: true, any: false });
  useEffect(() => {
    const stop = new AbortController();
    follow_log(job.id, stop.signal, (text, fresh, is_live) => {
      const pre = box.current;
      if (!pre) return;
      const at_end = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
      pre.textContent = ((fresh ? "" : (pre.textContent ?? "")) + plain(text)).slice(-KEPT_LOG);
      if (at_end) pre.scrollTop = pre.scrollHeight;
      set_state({ live: is_live, any: pre.textContent.length > 0 });
    }).catch((problem) => {
      if (!stop.signal.aborted) set_state((old) => ({ ...old, live: false, problem: words_of(problem) }));
    });
    return () => stop.abort();
  }, [job.id]);
  return (
    <section class="log">
      {state.problem && <Problem what={state.problem} />}
      {!state.any && !state.problem && <p class="soft">{state.live ? "Nothing printed yet." : "It printed nothing."}</p>}
      <pre ref={box} tabIndex={0} role="log" aria-label={`output of job ${job.id}`} />
      <p class="soft">{state.live ? "following" : "complete"}; the whole: takt logs {job.id}</p>
    </section>
  );
}

/** From the beginning to the end of the log, across lost connections and new attempts. */
async function follow_log(id: number, signal: AbortSignal, say: (text: string, fresh: boolean, live: boolean) => void) {
  let offset = "0";
  let attempt = "";
  let decoder = new TextDecoder();
  let wait_ms = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    let response: Response;
    try {
      response = await request(`/v1/jobs/${id}/log?offset=${offset}${attempt ? `&attempt=${attempt}` : ""}&follow=1&timeout_ms=20000`, { signal });
    } catch (problem) {
      if (problem instanceof Refused || signal.aborted) throw problem;
      await pause(wait_ms);
      wait_ms = longer(wait_ms);
      continue;
    }
    wait_ms = FIRST_PAUSE_MS;
    const now = response.headers.get("Takt-Log-Attempt") ?? "";
    const fresh = attempt !== "" && now !== attempt;
    if (fresh) decoder = new TextDecoder();
    const bytes_now = await response.arrayBuffer();
    const live = response.headers.get("Takt-Log-Live") === "true";
    offset = response.headers.get("Takt-Log-Offset") ?? offset;
    attempt = now === "0" ? "" : now;
    say(decoder.decode(bytes_now, { stream: true }), fresh, live);
    if (!live && bytes_now.byteLength === 0) return;
  }
}

/** What is not done without being asked about: what takt is told, and what is said. */
const GRAVE = {
  requeue: {
    button: "Requeue…", title: "Requeue", yes: "Requeue the job", done: "requeued", path: "change", body: { requeue: true },
    note: "It is ended, waits in its old place and begins anew.",
  },
  cancel: { button: "Cancel…", title: "Cancel", yes: "Cancel the job", done: "cancelled", path: "cancel", body: {}, note: "" },
};
type Grave = keyof typeof GRAVE;

/** Hands it in once more. Its environment is not on record any more: who hands it in says it. */
function Again({ job }: { job: Job }) {
  const { account } = useLive();
  const [asked, ask] = useState(false);
  const [env, set_env] = useState(PATH);
  const [problem, set_problem] = useState<string>();
  if (!is_mine(job, account) || !may_write()) return null;
  const hand_in = async () => {
    try {
      const { id } = await post<Job>(`/v1/jobs/${job.id}/again`, { env: environment_of(env) });
      go(`#/jobs/${id}`);
    } catch (refusal) {
      set_problem(words_of(refusal));
    }
  };
  return (
    <div class="actions">
      <button class="main" onClick={() => ask(true)}>
        Run again…
      </button>
      {asked && (
        <Ask
          title={`Run job ${job.id} again?`}
          yes="Hand it in again"
          done={(yes) => {
            ask(false);
            if (yes) void hand_in();
          }}
        >
          <p>
            The same description becomes a new job: {job_name(job)}, {asked_gpus(job) === "0" ? "without a GPU" : `GPUs: ${asked_gpus(job)}`}, in <code>{job.cwd}</code>.
          </p>
          {job.command && <code>{job.command}</code>}
          <label class="env" for="again-env">
            Environment <span class="soft">NAME=value, one a line. takt deletes a job's environment when the job ends: add what yours needs.</span>
          </label>
          <textarea id="again-env" rows={4} spellcheck={false} value={env} onInput={(event) => set_env(event.currentTarget.value)} />
        </Ask>
      )}
      {problem && <Problem what={problem} />}
    </div>
  );
}

/** What its owner may do now; whoever may not sees none of it. */
function Actions({ job, changed }: { job: Job; changed: () => void }) {
  const [asked, set_asked] = useState<Grave>();
  // A priority that is being written: what the page is told meanwhile must not touch it, nor what is marked in it. So it is text, too: a
  // number is never what the input has, and would be set again and again.
  const [typed, set_typed] = useState<string>();
  const [problem, set_problem] = useState<string>();
  const [said, set_said] = useState("");
  if (ENDED.includes(job.state)) return <Again job={job} />;
  if (!may_act(job)) return null;
  const act = async (what: string, path: string, body: unknown) => {
    try {
      await post(`/v1/jobs/${job.id}/${path}`, body);
      set_problem(undefined);
      set_said(what);
      changed();
    } catch (refusal) {
      set_problem(words_of(refusal));
    }
  };
  const waits = job.state === "waiting";
  const graves: Grave[] = job.state === "running" ? ["requeue", "cancel"] : ["cancel"];
  return (
    <div class="actions">
      {waits && <button onClick={() => act(job.held ? "released" : "held", "change", { held: !job.held })}>{job.held ? "Release" : "Hold"}</button>}
      {waits && (
        <label>
          priority{" "}
          <input
            type="number"
            min={-1000}
            max={1000}
            value={typed ?? String(job.priority)}
            onInput={(event) => set_typed(event.currentTarget.value)}
            onBlur={() => set_typed(undefined)}
            onChange={(event) => act("priority changed", "change", { priority: Number(event.currentTarget.value) })}
          />
        </label>
      )}
      {job.state === "running" && (
        <button onClick={() => act(job.frozen ? "goes on" : "frozen", "change", { frozen: !job.frozen })}>{job.frozen ? "Go on" : "Freeze"}</button>
      )}
      {graves.map((grave) => (
        <button key={grave} class="grave" onClick={() => set_asked(grave)}>
          {GRAVE[grave].button}
        </button>
      ))}
      <span class="hidden" role="status">
        {said}
      </span>
      {asked && (
        <Ask
          title={`${GRAVE[asked].title} job ${job.id}?`}
          yes={GRAVE[asked].yes}
          done={(yes) => {
            set_asked(undefined);
            if (yes) void act(GRAVE[asked].done, GRAVE[asked].path, GRAVE[asked].body);
          }}
        >
          <p>
            {job_name(job)} of {job.user ?? "another user"}
            {job.gpu_list.length > 0 && !waits ? `, on GPU ${gpu_set(job.gpu_list)}` : ", waiting"}.
          </p>
          {job.command && <code>{job.command}</code>}
          {GRAVE[asked].note && <p>{GRAVE[asked].note}</p>}
        </Ask>
      )}
      {problem && <Problem what={problem} />}
    </div>
  );
}
