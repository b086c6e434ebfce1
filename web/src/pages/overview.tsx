// SPDX-License-Identifier: Apache-2.0
// All GPUs at a glance: who works, for whom, at which clock, and what that takes.
import { useMemo, useState } from "preact/hooks";
import { get } from "../api";
import { Chart } from "../chart";
import { DASH, bytes, duration, energy, plural, short, watts, with_unit } from "../format";
import { total_watts, useLive } from "../live";
import type { Gpu, History } from "../types";
import { Banner, Empty, Figure, Meter, Spark, State, Waiting, state_of, useAsked } from "../ui";

const HOUR_MS = 3600_000;

/** What each GPU drew in the last hour, minute by minute; what is not known is not there. */
async function last_hour(gpus: number[], signal: AbortSignal): Promise<[number, number][]> {
  const since = Date.now() - HOUR_MS;
  const sums = new Map<number, number>();
  for (const gpu of gpus) {
    const history = await get<History>(`/v1/history?gpu=${gpu}&metric=power&step=10s&since_ms=${since}`, signal);
    for (const [at, , mean] of history.points) sums.set(at, (sums.get(at) ?? 0) + mean);
  }
  return [...sums].sort(([a], [b]) => a - b);
}

const energy_mj = (points: [number, number][]) => points.reduce((sum, [, mean]) => sum + mean * 10 * 1000, 0);

/** The price is its reader's own; without one there is no money on the page. */
function usePrice(): [number | undefined, (text: string) => void] {
  const read = () => Number(localStorage.getItem("takt-price")) || undefined;
  const [price, set_price] = useState(read);
  return [
    price,
    (text) => {
      const value = Number(text.replace(",", "."));
      if (value > 0) localStorage.setItem("takt-price", String(value));
      else localStorage.removeItem("takt-price");
      set_price(read());
    },
  ];
}

export function Overview() {
  const { status, jobs, power, samples } = useLive();
  const [price, set_price] = usePrice();
  const indices = status?.gpus.map((gpu) => gpu.index).join() ?? "";
  const hour = useAsked(
    (signal) => (indices ? last_hour(indices.split(",").map(Number), signal) : Promise.resolve([])),
    [indices],
    30_000,
  ).value;
  const line = useMemo(() => {
    const past = hour ?? [];
    const newest = past.at(-1)?.[0] ?? 0;
    return [...past, ...power.filter(([at]) => at > newest + 10_000)] as [number, number][];
  }, [hour, power]);
  const lines = useMemo(() => [{ label: "all GPUs", points: line }], [line]);

  if (!status) return <Waiting what="the GPUs" rows={10} />;
  const now_w = total_watts(status.gpus);
  const busy = status.gpus.filter((gpu) => ["running", "assigned", "outside"].includes(gpu.state)).length;
  const utils = status.gpus.flatMap((gpu) => gpu.gpu_util_pct ?? []);
  const ill = status.gpus.filter((gpu) => gpu.health && gpu.health !== "healthy");
  // What rests on utilisation alone is a guess, and in no sum.
  const known = (jobs?.jobs ?? []).flatMap(({ report }) => (report?.work_signal !== "utilisation" && report?.highest_mj && report.governed_mj ? [report] : []));
  const saved = known.reduce((sum, report) => sum + report.highest_mj! - report.governed_mj!, 0);
  const saved_error = known.reduce((sum, report) => sum + (report.highest_mj! * (report.highest_error_permille ?? 0)) / 1000, 0);
  const used_mj = hour?.length ? energy_mj(hour) : undefined;
  return (
    <>
      <h1 class="hidden">Overview</h1>
      <dl class="figures">
        <Figure label="GPUs in use" value={`${busy} of ${status.gpus.length}`} note={`${plural(status.running, "job")} running`} />
        <Figure label="Waiting" value={short(status.waiting)} note={next_start(jobs?.jobs)} />
        <Figure label="Power" value={watts(now_w)} note={limits(status.gpus)} />
        <Figure
          label="Energy, last hour"
          value={energy(used_mj)}
          note={saved > 0 ? `running jobs saved ${energy(saved)} ± ${energy(saved_error)}, as modelled` : undefined}
        />
        <Figure
          label="Utilisation"
          value={utils.length ? `${Math.round(utils.reduce((a, b) => a + b, 0) / utils.length)} %` : DASH}
          note={status.gpus.some((gpu) => gpu.asleep) ? "mean of those awake" : "mean of all GPUs"}
        />
        <div class="figure">
          <dt>
            <label for="price">Money</label>
          </dt>
          <dd>{price !== undefined && now_w !== undefined ? `${short((now_w / 1000) * price)} / h` : DASH}</dd>
          <dd class="note">
            at{" "}
            <input
              id="price"
              type="text"
              inputMode="decimal"
              placeholder="your price"
              value={price ?? ""}
              onChange={(event) => set_price(event.currentTarget.value)}
            />{" "}
            a kWh
          </dd>
        </div>
      </dl>
      {ill.map((gpu) => (
        <Banner key={gpu.index} severity={gpu.severity}>
          <a href="#/health">GPU {gpu.index}</a> is {gpu.health}: {gpu.health_note ?? gpu.note}
        </Banner>
      ))}
      <section aria-label="Power of all GPUs">
        <Chart title="Power of all GPUs, last hour" unit="W" lines={lines} />
      </section>
      <h2>GPUs</h2>
      {status.gpus.length === 0 && (
        <Empty title="No GPU is seen">
          Whether the driver is loaded and what it says: <code>takt doctor</code>.
        </Empty>
      )}
      <ul class={status.gpus.length > 16 ? "cards many" : "cards"}>
        {status.gpus.map((gpu) => (
          <Card key={gpu.index} gpu={gpu} util={(samples.get(gpu.index) ?? []).map((sample) => sample.util)} />
        ))}
      </ul>
    </>
  );
}

function next_start(jobs: { state: string; starts_ms?: number }[] | undefined): string | undefined {
  const starts = (jobs ?? []).flatMap((job) => (job.state === "waiting" ? (job.starts_ms ?? []) : []));
  if (!starts.length) return undefined;
  return `next start in ${duration(Math.max(0, Math.min(...starts) - Date.now()))}`;
}

function limits(gpus: Gpu[]): string | undefined {
  const known = gpus.filter((gpu) => gpu.power_limit_mw !== undefined);
  if (known.length !== gpus.length || !known.length) return undefined;
  return `of ${watts(known.reduce((sum, gpu) => sum + gpu.power_limit_mw! / 1000, 0))} allowed`;
}

function Card({ gpu, util }: { gpu: Gpu; util: (number | undefined)[] }) {
  const share = gpu.shares?.length;
  return (
    <li class={`card ${gpu.stale || gpu.lost ? "stale" : ""}`}>
      <header>
        <h3>GPU {gpu.index}</h3>
        <State of={gpu.health && gpu.health !== "healthy" ? gpu.health : state_of(gpu)} title={gpu.note ?? gpu.health_note} />
      </header>
      <p class="model" title={gpu.name}>
        {gpu.name?.replace(/^NVIDIA /, "") ?? DASH}
      </p>
      <p class="who">
        {gpu.job_id ? (
          <a href={`#/jobs/${gpu.job_id}`}>
            {gpu.job_id} {gpu.job_name}
          </a>
        ) : share ? (
          <span>
            {gpu.shares!.map((each) => (
              <a key={each.job_id} href={`#/jobs/${each.job_id}`}>
                {each.job_id}{" "}
              </a>
            ))}
          </span>
        ) : (
          <span class="soft">{gpu.note ?? (gpu.asleep ? "suspended to save power" : gpu.state === "free" ? "no job" : gpu.state)}</span>
        )}
        <span class="soft"> {gpu.job_user}</span>
      </p>
      <Spark values={util} most={100} label={`utilisation of GPU ${gpu.index}, now ${with_unit(gpu.gpu_util_pct, "%")}`} />
      <Meter label="util" value={gpu.gpu_util_pct} most={100} text={with_unit(gpu.gpu_util_pct, "%")} />
      <Meter
        label="power"
        value={gpu.power_mw}
        most={gpu.power_limit_mw}
        mark={gpu.power_cap_mw}
        text={watts(gpu.power_mw === undefined ? undefined : gpu.power_mw / 1000)}
      />
      <Meter label="memory" value={gpu.mem_used_bytes} most={gpu.mem_total_bytes} text={bytes(gpu.mem_used_bytes)} />
      <Meter
        label="clock"
        value={gpu.sm_mhz}
        most={gpu.sm_max_mhz}
        mark={gpu.lease_max_mhz}
        text={gpu.sm_mhz === undefined ? DASH : `${gpu.sm_mhz} MHz`}
      />
      <footer>
        <span>{with_unit(gpu.temp_c, "°C")}</span>
        <span class="soft" title={gpu.throttle_text}>
          {gpu.throttle_text?.replaceAll(",", ", ").replaceAll("_", " ") ?? (gpu.lease_max_mhz ? `capped at ${gpu.lease_max_mhz}` : "")}
        </span>
      </footer>
    </li>
  );
}
