// SPDX-License-Identifier: Apache-2.0
// What one comes for, first: is a GPU free, what of my jobs, when does my next one start, what is broken. Then all
// GPUs at a glance, and what they draw and cost.
import { useMemo } from "preact/hooks";
import { get, past_jobs } from "../api";
import { Chart } from "../chart";
import { DASH, bytes, clock_time, energy, from_now, gpu_set, plural, short, watts, with_unit } from "../format";
import { given_gpus, has_part, is_mine } from "../jobs";
import { total_watts, useLive, type Sample } from "../live";
import { useMine } from "../mine";
import { usePrice } from "../price";
import type { Account, Gpu, History, Job, Queue } from "../types";
import { Empty, Figure, Meter, Spark, State, Waiting, state_of, useAsked, useNow } from "../ui";
import { ending, job_name, shown_state, to_come } from "./queue";

const HOUR_MS = 3600_000;
const DAY_MS = 24 * HOUR_MS;
const SPARK_MS = HOUR_MS / 4;
const FEW_GPUS = 16; // more are shown smaller, without a line each
const SHOWN_JOBS = 5;

type Points = [at_ms: number, value: number][];

interface Hour {
  power: Points; // of all GPUs together
  utilisation: Map<number, Points>;
}

/** What the GPUs did in the last hour, each ten seconds; what is not known is not there. */
async function last_hour(gpus: number[], signal: AbortSignal): Promise<Hour> {
  const ask = async (gpu: number, metric: string, span_ms: number): Promise<Points> => {
    const history = await get<History>(`/v1/history?gpu=${gpu}&metric=${metric}&step=10s&since_ms=${Date.now() - span_ms}`, signal);
    return history.points.map(([at_ms, , mean]) => [at_ms, mean]);
  };
  const powers = await Promise.all(gpus.map((gpu) => ask(gpu, "power", HOUR_MS)));
  const lines = gpus.length > FEW_GPUS ? [] : await Promise.all(gpus.map((gpu) => ask(gpu, "utilization", SPARK_MS)));
  const sums = new Map<number, number>();
  for (const [at_ms, mean] of powers.flat()) sums.set(at_ms, (sums.get(at_ms) ?? 0) + mean);
  return { power: [...sums].sort(([a], [b]) => a - b), utilisation: new Map(lines.map((points, i) => [gpus[i], points])) };
}

const energy_mj = (points: Points) => points.reduce((sum, [, mean]) => sum + mean * 10 * 1000, 0);

const last_day = (account: Account | undefined, signal: AbortSignal) =>
  past_jobs(50, `&since_ms=${Date.now() - DAY_MS}${account ? `&uid=${account.uid}` : ""}`, signal);

/** What is on record, and behind it what was heard since. */
function joined(past: Points, heard: Points): Points {
  const newest = past.at(-1)?.[0] ?? 0;
  return [...past, ...heard.filter(([at_ms]) => at_ms > newest + 10_000)];
}

const heard_of = (samples: Sample[] | undefined): Points => (samples ?? []).flatMap(({ at_ms, util }): Points => (util === undefined ? [] : [[at_ms, util]]));

export function Overview() {
  const { status, jobs, power, samples, account } = useLive();
  const mine = useMine();
  const indices = status?.gpus.map((gpu) => gpu.index).join() ?? "";
  const hour = useAsked<Hour | undefined>(
    (signal) => (indices ? last_hour(indices.split(",").map(Number), signal) : Promise.resolve(undefined)),
    [indices],
    30_000,
  ).value;
  const live_jobs = mine?.jobs.map((job) => job.id).join(); // asked again when one has ended, not now and then
  const recent = useAsked(
    (signal) => (live_jobs === undefined ? Promise.resolve(undefined) : last_day(account, signal)),
    [account?.uid, live_jobs],
  );
  const lines = useMemo(() => [{ label: "all GPUs", points: joined(hour?.power ?? [], power) }], [hour, power]);

  if (!status || !jobs || !mine || !(recent.value || recent.problem)) return <Waiting what="the GPUs" rows={10} />;
  const failed = (recent.value?.jobs ?? []).filter((job) => is_mine(job, account) && ["failed", "lost", "interrupted"].includes(job.state));
  return (
    <>
      <h1 class="hidden">Overview</h1>
      <Answers gpus={status.gpus} queue={jobs} mine={mine} failed={failed} />
      <MyJobs mine={mine} failed={failed} />
      <h2>
        GPUs {status.gpus.length > 0 && status.gpus.length <= FEW_GPUS && <span class="soft">lines: utilisation in the last 15 min</span>}
      </h2>
      {status.gpus.length === 0 && (
        <Empty title="No GPU is seen">
          Whether the driver is loaded and what it says: <code>takt doctor</code>.
        </Empty>
      )}
      <ul class={status.gpus.length > FEW_GPUS ? "cards many" : "cards"}>
        {status.gpus.map((gpu) => (
          <Card key={gpu.index} gpu={gpu} util={joined(hour?.utilisation.get(gpu.index) ?? [], heard_of(samples.get(gpu.index)))} />
        ))}
      </ul>
      <h2>Power, energy and cost</h2>
      <Consumption gpus={status.gpus} jobs={jobs.jobs} used_mj={hour?.power.length ? energy_mj(hour.power) : undefined} />
      <section aria-label="Power of all GPUs">
        <Chart title="Power of all GPUs, last hour" unit="W" lines={lines} window_ms={HOUR_MS} />
      </section>
    </>
  );
}

const is_ill = (gpu: Gpu) => gpu.lost || (!!gpu.health && gpu.health !== "healthy");
const is_free = (gpu: Gpu) => gpu.state === "free" && !gpu.lost && !gpu.kept_for_job;

/** GPUs of one kind: what they are and how much memory each has. */
function kinds(gpus: Gpu[]): string[] {
  const of = new Map<string, number[]>();
  for (const gpu of gpus) {
    const kind = `${gpu.name?.replace(/^NVIDIA /, "") ?? "GPU"}${gpu.mem_total_bytes ? `, ${bytes(gpu.mem_total_bytes)}` : ""}`;
    of.set(kind, [...(of.get(kind) ?? []), gpu.index]);
  }
  return [...of].map(([kind, list]) => `${list.length} × ${kind}: GPU ${gpu_set(list)}`);
}

/** Parts of shared GPUs that nobody has. */
function parts_left(gpus: Gpu[]): string[] {
  return gpus.flatMap((gpu) => {
    const shares = gpu.shares ?? [];
    const held = shares.reduce((sum, each) => sum + (each.milli ?? 0), 0);
    if (gpu.state !== "running" || held === 0 || held >= 1000) return [];
    const memory = (gpu.mem_total_bytes ?? 0) - shares.reduce((sum, each) => sum + (each.mem_mib ?? 0) * 2 ** 20, 0);
    return [`${(1000 - held) / 1000} of GPU ${gpu.index} can be shared${memory > 0 ? `, with ${bytes(memory)}` : ""}`];
  });
}

/** The GPU that is expected to be handed back first. */
function next_free(jobs: Job[], now: number): string | undefined {
  const ends = jobs.flatMap((job) => (job.state === "running" && job.started_ms && job.run_ms && job.gpu_list.length && !has_part(job) ? [{ job, at_ms: Math.max(now, job.started_ms + job.run_ms) }] : []));
  if (!ends.length) return undefined;
  const { job, at_ms } = ends.reduce((first, each) => (each.at_ms < first.at_ms ? each : first));
  return `GPU ${gpu_set(job.gpu_list)} is expected back ${from_now(at_ms, now)}, from job ${job.id}`;
}

function Answers({ gpus, queue, mine, failed }: { gpus: Gpu[]; queue: Queue; mine: Queue; failed: Job[] }) {
  const now = useNow();
  const free = gpus.filter(is_free);
  const ill = gpus.filter(is_ill);
  const kept = gpus.filter((gpu) => gpu.state === "free" && gpu.kept_for_job);
  const my_waiting = mine.jobs.filter((job) => job.state === "waiting");
  const my_running = mine.jobs.length - my_waiting.length; // they are listed first
  const waiting = queue.total - queue.jobs.filter((job) => job.state !== "waiting").length;
  const notes = [
    ...kinds(free),
    ...parts_left(gpus),
    ...kept.map((gpu) => `GPU ${gpu.index} is kept free for job ${gpu.kept_for_job}`),
    ...(free.length ? [] : [next_free(queue.jobs, now), waiting ? `${plural(waiting, "job")} wait${waiting === 1 ? "s" : ""} already` : undefined]),
  ].filter((note) => note !== undefined);
  return (
    <section aria-label="In short" class="answers">
      <Answer title="Free now" value={free.length ? `${free.length} of ${plural(gpus.length, "GPU")}` : "no GPU"} notes={notes} />
      <Answer
        title="My jobs"
        value={mine.total ? `${my_running} running, ${mine.total - my_running} waiting` : "none"}
        notes={[failed.length ? `${failed.length} failed since yesterday` : mine.total ? "" : "none of yours runs or waits"]}
      />
      <NextStart waiting={my_waiting} now={now} />
      <Answer
        title="Broken"
        tone={ill.length ? "grave" : undefined}
        value={ill.length ? plural(ill.length, "GPU") : "nothing"}
        notes={ill.length ? ill.map((gpu) => `GPU ${gpu.index}: ${gpu.health_note ?? gpu.note ?? gpu.health ?? "lost"}`) : [gpus.length ? `all ${plural(gpus.length, "GPU")} healthy` : ""]}
        href="#/health"
      />
    </section>
  );
}

function Answer({ title, value, notes, tone, href }: { title: string; value: string; notes: string[]; tone?: "grave"; href?: string }) {
  return (
    <div class={`answer ${tone ?? ""}`}>
      <h2>{title}</h2>
      <p class="value">
        {tone === "grave" && <span aria-hidden="true">■ </span>}
        {href ? <a href={href}>{value}</a> : value}
      </p>
      {notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
    </div>
  );
}

function NextStart({ waiting, now }: { waiting: Job[]; now: number }) {
  const known = waiting.filter((job) => job.starts_ms);
  const next = known.length ? known.reduce((first, job) => (job.starts_ms! < first.starts_ms! ? job : first)) : undefined;
  if (next)
    return (
      <Answer
        title="My next start"
        value={from_now(next.starts_ms!, now)}
        notes={[`${next.id} ${job_name(next)}${next.starts_gpus?.length ? ` on GPU ${gpu_set(next.starts_gpus)}` : ""}, predicted for ${clock_time(next.starts_ms)}`]}
      />
    );
  const [first] = waiting;
  return <Answer title="My next start" value={first ? "not known" : DASH} notes={[first ? `${first.id} ${job_name(first)}: ${first.why_text ?? "waits"}` : "none of yours waits"]} />;
}

/** The few that matter now: what failed, what runs, what comes next. */
function MyJobs({ mine, failed }: { mine: Queue; failed: Job[] }) {
  const now = useNow(5000);
  const rows = [...failed.slice(0, 2), ...mine.jobs].slice(0, SHOWN_JOBS);
  const left = failed.length + mine.total - rows.length;
  return (
    <section aria-label="My jobs">
      <h2>My jobs</h2>
      {rows.length === 0 && (
        <p class="soft">
          You have no jobs. Hand one in with <code>takt submit -- ./train.sh</code> or <a href="#/submit">here</a>.
        </p>
      )}
      {rows.length > 0 && (
        <ul class="mine">
          {rows.map((job) => (
            <li key={job.id}>
              <a href={`#/jobs/${job.id}`}>
                {job.id} {job_name(job)}
              </a>
              <State of={shown_state(job)} />
              <span>{given_gpus(job) ?? ""}</span>
              <span class="soft">{job.ended_ms ? `${ending(job)}, ${from_now(job.ended_ms, now)}` : to_come(job, now)}</span>
            </li>
          ))}
        </ul>
      )}
      {left > 0 && (
        <p>
          <a href="#/jobs?whose=mine">{left} more of yours</a>
        </p>
      )}
    </section>
  );
}

function Consumption({ gpus, jobs, used_mj }: { gpus: Gpu[]; jobs: Job[]; used_mj?: number }) {
  const [price, set_price] = usePrice();
  const now_w = total_watts(gpus);
  const busy = gpus.filter((gpu) => ["running", "assigned", "outside"].includes(gpu.state)).length;
  const utils = gpus.flatMap((gpu) => gpu.gpu_util_pct ?? []);
  // What rests on utilisation alone is a guess, and in no sum.
  const known = jobs.flatMap(({ report }) => (report?.work_signal !== "utilisation" && report?.highest_mj && report.governed_mj ? [report] : []));
  const saved = known.reduce((sum, report) => sum + report.highest_mj! - report.governed_mj!, 0);
  const saved_error = known.reduce((sum, report) => sum + (report.highest_mj! * (report.highest_error_permille ?? 0)) / 1000, 0);
  return (
    <dl class="figures">
      <Figure label="GPUs in use" value={`${busy} of ${gpus.length}`} />
      <Figure
        label="Utilisation"
        value={utils.length ? `${Math.round(utils.reduce((a, b) => a + b, 0) / utils.length)} %` : DASH}
        note={gpus.some((gpu) => gpu.asleep) ? "mean of those awake" : "mean of all GPUs"}
      />
      <Figure label="Power" value={watts(now_w)} note={limits(gpus)} />
      <Figure
        label="Energy, last hour"
        value={energy(used_mj)}
        note={saved > 0 ? `running jobs saved ${energy(saved)} ± ${energy(saved_error)}, as modelled` : undefined}
      />
      <div class="figure">
        <dt>
          <label for="price">Cost</label>
        </dt>
        <dd>{price !== undefined && now_w !== undefined ? `${short((now_w / 1000) * price)} / h` : DASH}</dd>
        <dd class="note">
          at{" "}
          <input id="price" type="text" inputMode="decimal" placeholder="your price" value={price ?? ""} onChange={(event) => set_price(event.currentTarget.value)} /> a
          kWh
        </dd>
      </div>
    </dl>
  );
}

function limits(gpus: Gpu[]): string | undefined {
  const known = gpus.filter((gpu) => gpu.power_limit_mw !== undefined);
  if (known.length !== gpus.length || !known.length) return undefined;
  return `of ${watts(known.reduce((sum, gpu) => sum + gpu.power_limit_mw! / 1000, 0))} allowed`;
}

/** "312 of 700 W": the unit once. */
function of_most(value: number | undefined, most: number | undefined, unit: string): string {
  if (value === undefined) return DASH;
  return most ? `${Math.round(value)} of ${Math.round(most)} ${unit}` : `${Math.round(value)} ${unit}`;
}

const in_watts = (mw: number | undefined) => (mw === undefined ? undefined : mw / 1000);

function memory_text({ mem_used_bytes: used, mem_total_bytes: total }: Gpu): string {
  if (used === undefined || !total) return bytes(used);
  return `${short(used / 2 ** 30)} of ${bytes(total)}`;
}

function Card({ gpu, util }: { gpu: Gpu; util: Points }) {
  const ill = is_ill(gpu);
  return (
    <li class={`card ${gpu.stale || gpu.lost ? "stale" : ""} ${ill ? "broken" : ""}`}>
      <header>
        <h3>GPU {gpu.index}</h3>
        <State of={ill ? (gpu.health ?? "lost") : state_of(gpu)} title={gpu.note ?? gpu.health_note} />
      </header>
      <p class="model" title={gpu.name}>
        {gpu.name?.replace(/^NVIDIA /, "") ?? DASH}
      </p>
      {ill && (
        <p class="ailment">
          {gpu.health_note ?? gpu.note ?? "It does not answer."} <a href="#/health">What to do</a>
        </p>
      )}
      {!(gpu.lost && !gpu.job_id) && <Who gpu={gpu} />}
      <Spark points={util} span_ms={SPARK_MS} most={100} label={`utilisation of GPU ${gpu.index}, now ${with_unit(gpu.gpu_util_pct, "%")}`} />
      <Meter label="util" value={gpu.gpu_util_pct} most={100} text={with_unit(gpu.gpu_util_pct, "%")} />
      <Meter label="power" value={gpu.power_mw} most={gpu.power_limit_mw} mark={gpu.power_cap_mw} text={of_most(in_watts(gpu.power_mw), in_watts(gpu.power_limit_mw), "W")} />
      <Meter label="memory" value={gpu.mem_used_bytes} most={gpu.mem_total_bytes} text={memory_text(gpu)} />
      <Meter label="clock" value={gpu.sm_mhz} most={gpu.sm_max_mhz} mark={gpu.lease_max_mhz} text={of_most(gpu.sm_mhz, gpu.sm_max_mhz, "MHz")} />
      <footer>
        <span>{with_unit(gpu.temp_c, "°C")}</span>
        <span class="soft" title={gpu.throttle_text}>
          {gpu.throttle_text?.replaceAll(",", ", ").replaceAll("_", " ") ?? (gpu.lease_max_mhz ? `capped at ${gpu.lease_max_mhz} MHz` : "")}
        </span>
      </footer>
    </li>
  );
}

/** Whose it is; of a shared one, who has which part. */
function Who({ gpu }: { gpu: Gpu }) {
  if (gpu.shares?.length)
    return (
      <p class="who shared">
        {gpu.shares.map((each, i) => (
          <span key={each.job_id}>
            {i > 0 && ", "}
            {each.milli ? `${each.milli / 1000}: ` : ""}
            <a href={`#/jobs/${each.job_id}`}>
              {each.job_id} {each.name}
            </a>
          </span>
        ))}
      </p>
    );
  if (gpu.job_id)
    return (
      <p class="who">
        <a href={`#/jobs/${gpu.job_id}`}>
          {gpu.job_id} {gpu.job_name}
        </a>
        <span class="soft"> {gpu.job_user}</span>
      </p>
    );
  const words = gpu.kept_for_job ? `kept free for job ${gpu.kept_for_job}` : (gpu.note ?? (gpu.asleep ? "suspended to save power" : gpu.state === "free" ? "no job" : gpu.state));
  return (
    <p class="who">
      <span class="soft">{words}</span>
    </p>
  );
}
