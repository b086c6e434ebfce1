// SPDX-License-Identifier: Apache-2.0
// Governors on measured clocks: what each saved within its promise, a board at a time.
import { useMemo, useState } from "preact/hooks";
import { DASH } from "../format";
import type { Curve } from "../plot";
import { Figure, State } from "../ui";
import type { Clocks, Score } from "./document";
import { Choice, Graph, Origins, Table, Value, fixed } from "./parts";

/** What stands in one table: a board, and how well it is measured. */
const board_of = (score: Score) =>
  `${score.dataset}, ${score.gpu}, ${score.actuator.replace("_", " ")}; noise ${score.time_noise_pct} % of time, ${score.power_noise_pct} % of power`;
const who = (score: Score) =>
  score.setting === null ? `${score.governor}${score.trained ? ", trained" : ""}` : `${score.governor} (${score.setting})`;
const of_optimum = (score: Score) =>
  score.share_of_optimum_pct === null
    ? DASH
    : `${fixed(score.share_of_optimum_pct, 1)}${score.share_of_optimum_half95 ? ` ± ${fixed(score.share_of_optimum_half95, 1)}` : ""} %`;

export function ClocksPage({ it }: { it: Clocks }) {
  const boards = [...new Set(it.scores.map(board_of))];
  const [board, set_board] = useState(boards[0]);
  const scores = it.scores.filter((score) => board_of(score) === board);
  const governors = scores.filter((score) => score.setting === null);
  const best = governors.filter((score) => !score.violating_jobs).sort((a, b) => (b.share_of_optimum_pct ?? 0) - (a.share_of_optimum_pct ?? 0))[0];
  return (
    <>
      {boards.length > 1 && (
        <label class="toolbar">
          <span class="soft">measured on</span>
          <select value={board} onChange={(event) => set_board(event.currentTarget.value)}>
            {boards.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      <dl class="figures">
        <Figure label="Promised" value={`${scores[0].max_slowdown_pct} %`} note="of a job's whole time may be lost" />
        <Figure label="The optimum saves" value={scores[0].optimum_saved_pct === null ? DASH : `${fixed(scores[0].optimum_saved_pct, 1)} %`} note="of energy, within the promise" />
        <Figure label="Best that kept every promise" value={best ? who(best) : "none"} note={best ? `${of_optimum(best)} of what the optimum saves` : undefined} />
      </dl>
      <Curves governors={governors} scores={scores} />
      <Scores scores={scores} />
      <Workloads governors={governors} />
      <Origins {...it} />
    </>
  );
}

function Curves({ governors, scores }: { governors: Score[]; scores: Score[] }) {
  const { share, slower } = useMemo(() => {
    const names = [...new Set(governors.map(who))];
    const over = (y: (score: Score) => number | null, error?: (score: Score) => number | null) =>
      names.map((label): Curve => ({
        label,
        points: governors
          .filter((score) => who(score) === label && y(score) !== null)
          .map((score) => ({ x: score.epochs, y: y(score)!, error: error?.(score) ?? undefined }))
          .sort((a, b) => a.x - b.x),
      }));
    return { share: over((score) => score.share_of_optimum_pct, (score) => score.share_of_optimum_half95), slower: over((score) => score.slowdown_max_pct) };
  }, [scores[0], governors.length]);
  const lengths = [...new Set(governors.map((score) => score.epochs))];
  const promise: Curve = { label: "promised", drawn: "bound", points: lengths.map((x) => ({ x, y: scores[0].max_slowdown_pct })) };
  const x = { title: "epochs of a job" };
  return (
    <div class="charts">
      <Graph title="Of what the optimum saves" x={x} y={{ title: "%" }} curves={share} />
      <Graph title="Slowest job against its promise" x={x} y={{ title: "% slower" }} curves={[...slower, promise]} />
    </div>
  );
}

function Scores({ scores }: { scores: Score[] }) {
  return (
    <>
      <h2>Beside each other</h2>
      <Table
        name="What was saved within the promise, by the truth of the tables"
        columns={[
          { title: "governor" },
          { title: "epochs" },
          { title: "of the optimum", unit: "%" },
          { title: "worst workload", unit: "%" },
          { title: "energy saved", unit: "%" },
          { title: "slower, mean", unit: "%" },
          { title: "slower, p95", unit: "%" },
          { title: "slower, most", unit: "%" },
          { title: "promises broken", text: true },
          { title: "epochs beyond", unit: "%" },
          { title: "lost to probes", unit: "%" },
        ]}
        rows={scores.map((score) => ({
          key: `${who(score)} ${score.epochs}`,
          name: who(score),
          cells: [
            score.epochs,
            <Value of={score.share_of_optimum_pct} error={score.share_of_optimum_half95} decimals={1} />,
            <Value of={score.worst_workload_share_pct} decimals={0} />,
            <Value of={score.energy_saved_pct} error={score.energy_saved_half95} />,
            <Value of={score.slowdown_mean_pct} />,
            <Value of={score.slowdown_p95_pct} />,
            <Value of={score.slowdown_max_pct} />,
            score.violating_jobs ? <span><State of="warning" /> {score.violating_jobs} of {score.runs}</span> : `none of ${score.runs}`,
            <Value of={score.violating_epochs_pct} />,
            <Value of={score.overhead_pct} />,
          ],
        }))}
      />
    </>
  );
}

function Workloads({ governors }: { governors: Score[] }) {
  const lengths = [...new Set(governors.map((score) => score.epochs))];
  const [epochs, set_epochs] = useState(lengths.at(-1)!);
  const chosen = lengths.includes(epochs) ? epochs : lengths.at(-1)!;
  const now = governors.filter((score) => score.epochs === chosen);
  const names = now[0]?.workloads.map((one) => one.workload) ?? [];
  if (!names.length) return null;
  return (
    <>
      <h2>By workload</h2>
      <Choice label="epochs of a job" of={lengths} chosen={chosen} choose={set_epochs} text={String} />
      <Table
        name="Of what the optimum saves in this workload, %"
        columns={[{ title: "workload" }, ...now.map((score) => ({ title: who(score) }))]}
        rows={names.map((name, i) => ({ key: name + i, name, cells: now.map((score) => <Value of={score.workloads[i]?.share_of_optimum_pct} decimals={0} />) }))}
      />
      <p class="soft">A dash: the optimum saves next to nothing there, so that a share of it says nothing.</p>
    </>
  );
}
