// SPDX-License-Identifier: Apache-2.0
// How the GPUs are: verdict, evidence, what to do, what happened before.
import { clock_time, plural } from "../format";
import { useLive } from "../live";
import type { HealthGpu, Sxid } from "../types";
import { Banner, State, Waiting } from "../ui";

const GRAVE_FIRST = ["critical", "warning", "info"];

export function HealthPage() {
  const { health } = useLive();
  if (!health) return <Waiting what="the health of the GPUs" />;
  const ill = health.gpus.filter((gpu) => gpu.state !== "healthy" || gpu.findings.length || gpu.note);
  const count = (severity: string) => health.gpus.filter((gpu) => gpu.severity === severity).length;
  const well = health.gpus.filter((gpu) => !ill.includes(gpu));
  return (
    <>
      <div class="toolbar">
        <h1>Health</h1>
        {GRAVE_FIRST.filter(count).map((severity) => (
          <State key={severity} of={severity} text={`${plural(count(severity), "GPU")} ${severity}`} />
        ))}
        <span class="soft">
          {health.gpus.filter((gpu) => gpu.state === "healthy").length} of {health.gpus.length} healthy
        </span>
      </div>
      {health.events_why && <Banner>Errors that the driver tells (XIDs) are not heard: {health.events_why}</Banner>}
      {health.kernel_log_why && <Banner>The kernel's log is not read: {health.kernel_log_why}</Banner>}
      {ill.map((gpu) => (
        <Ill key={gpu.index} gpu={gpu} />
      ))}
      {!!health.sxids?.length && <Switches sxids={health.sxids} />}
      <ul class="well">
        {well.map((gpu) => (
          <li key={gpu.index}>
            <strong>GPU {gpu.index}</strong> <State of={gpu.state} />
            <Before gpu={gpu} />
          </li>
        ))}
      </ul>
    </>
  );
}

function Ill({ gpu }: { gpu: HealthGpu }) {
  return (
    <section class="panel" aria-label={`GPU ${gpu.index}`}>
      <h2>
        GPU {gpu.index} <State of={gpu.state} />
        {gpu.since_ms && <span class="soft"> since {clock_time(gpu.since_ms)}</span>}
      </h2>
      {gpu.note && <p>{gpu.note}</p>}
      <ul class="findings">
        {gpu.findings.map((finding, i) => (
          <li key={i} class={finding.cause === undefined ? "" : "follows"}>
            <State of={finding.level} /> <strong>{finding.finding}</strong> {finding.text}
            <span class="soft">
              {finding.since_ms ? ` since ${clock_time(finding.since_ms)}` : ""}
              {finding.cause !== undefined && gpu.findings[finding.cause] ? `, follows from ${gpu.findings[finding.cause].finding}` : ""}
            </span>
          </li>
        ))}
      </ul>
      {gpu.actions.length > 0 && (
        <p>
          <strong>To do:</strong> {gpu.actions.join(", then ")}
        </p>
      )}
      <Before gpu={gpu} />
    </section>
  );
}

function Switches({ sxids }: { sxids: Sxid[] }) {
  return (
    <section class="panel" aria-label="NVSwitches">
      <h2>NVSwitches</h2>
      <ul class="findings">
        {sxids.map((each) => (
          <li key={`${each.pci} ${each.sxid}`}>
            <State of={each.fatal ? "fatal" : "non-fatal"} /> <strong>SXid {each.sxid}</strong> {each.pci}
            {each.link === undefined ? "" : `, link ${each.link}`}:
            <span class="soft">
              {" "}
              {plural(each.count, "time")}
              {each.last_ms ? `, last ${clock_time(each.last_ms)}` : ""}
            </span>
          </li>
        ))}
      </ul>
      <p class="soft">Which GPUs they ail is told by the GPUs' own XIDs.</p>
    </section>
  );
}

function Before({ gpu }: { gpu: HealthGpu }) {
  if (!gpu.xids.length && !gpu.changes.length) return null;
  return (
    <details>
      <summary>
        {plural(gpu.xids.length, "kind")} of XID, {plural(gpu.changes.length, "change")}
      </summary>
      <ul class="plain">
        {gpu.xids.map((xid) => (
          <li key={xid.xid}>
            XID {xid.xid} {xid.text ?? ""}: {xid.count} times, last {clock_time(xid.last_ms)}
          </li>
        ))}
        {gpu.changes.map((change, i) => (
          <li key={i}>
            {clock_time(change.at_ms)} {change.from} → {change.to} {change.why && `(${change.why})`}
          </li>
        ))}
      </ul>
    </details>
  );
}
