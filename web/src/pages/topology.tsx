// SPDX-License-Identifier: Apache-2.0
// The machine as a picture: sockets, switches, GPUs, the links between them, and who runs where.
import { get } from "../api";
import { DASH, byte_rate, gpu_set, watts } from "../format";
import { useLive } from "../live";
import type { Gpu, Topology } from "../types";
import { Problem, Terms, Waiting, state_of, useAsked } from "../ui";

const CELL = 118;
const BOX = 108;
const PAD = 16;
const ROW = 17;

/** GPUs below one PCIe switch: PIX or PXB to each other. */
function switches(list: number[], link: string[][]): number[][] {
  const groups: number[][] = [];
  for (const gpu of list) {
    const group = groups.find((others) => others.some((other) => ["PIX", "PXB"].includes(link[gpu][other])));
    if (group) group.push(gpu);
    else groups.push([gpu]);
  }
  return groups;
}

/** What goes over a GPU's links, both ways; undefined where the board does not say, or what it said is old. */
function traffic(gpu: Gpu | undefined) {
  const sum = (sent?: number, received?: number) => (gpu?.stale || sent === undefined || received === undefined ? undefined : sent + received);
  return {
    pcie: sum(gpu?.pcie_sent_bytes_per_s, gpu?.pcie_received_bytes_per_s),
    nvlink: sum(gpu?.nvlink_sent_bytes_per_s, gpu?.nvlink_received_bytes_per_s),
  };
}

/** The more, the thicker: below 1 MB/s, 100 MB/s, 10 GB/s, more. */
const flow = (rate: number | undefined) => (rate === undefined ? "" : `flow${1 + [1e6, 1e8, 1e10].filter((step) => rate >= step).length}`);

const is_nvlink = (name: string) => name.startsWith("NV");

/** All pairs are linked alike: drawn as one fabric and not as a net of lines. */
function fabric(link: string[][]): string | undefined {
  const names = new Set(link.flatMap((row, i) => row.filter((_, j) => i !== j)));
  const [only] = names;
  return link.length > 2 && names.size === 1 && is_nvlink(only) ? only : undefined;
}

export function TopologyPage() {
  const { status } = useLive();
  const answer = useAsked((signal) => get<Topology>("/v1/topology", signal), [], 30_000);
  const topology = answer.value;
  if (answer.problem && !topology) return <Problem what={answer.problem} />;
  if (!topology || !status) return <Waiting what="the topology" rows={8} />;
  return (
    <>
      <div class="toolbar">
        <h1>Topology</h1>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="picture of the machine">
        <Picture topology={topology} gpus={status.gpus} />
      </div>
      <Terms
        rows={[
          ["best pair", topology.best2?.length ? `GPU ${gpu_set(topology.best2)}` : undefined],
          ["best four", topology.best4?.length ? `GPU ${gpu_set(topology.best4)}` : undefined],
          ["best free pair", topology.free_best2?.length ? `GPU ${gpu_set(topology.free_best2)}` : undefined],
          ["best free four", topology.free_best4?.length ? `GPU ${gpu_set(topology.free_best4)}` : undefined],
        ]}
      />
      <h2>Traffic</h2>
      <Traffic gpus={status.gpus} />
      <h2>Links</h2>
      <Matrix link={topology.link} />
    </>
  );
}

function Picture({ topology, gpus }: { topology: Topology; gpus: Gpu[] }) {
  const nodes = [...new Set(topology.numa_node)];
  const all = fabric(topology.link);
  const places = new Map<number, number>();
  const sockets: { node: number | null; x: number; width: number; groups: { x: number; width: number; of: number[] }[] }[] = [];
  let x = PAD;
  for (const node of nodes) {
    const members = topology.numa_node.flatMap((each, gpu) => (each === node ? [gpu] : []));
    const start = x;
    const groups = switches(members, topology.link).map((of) => {
      const from = x;
      for (const gpu of of) {
        places.set(gpu, x + CELL / 2);
        x += CELL;
      }
      return { x: from, width: x - from, of };
    });
    sockets.push({ node, x: start, width: x - start, groups });
    x += PAD * 2;
  }
  const width = x - PAD;
  const pairs = all
    ? []
    : topology.link.flatMap((row, i) => row.flatMap((name, j) => (j > i && is_nvlink(name) ? [{ i, j, name }] : [])));
  const reach = Math.max(0, ...pairs.map(({ i, j }) => Math.abs(places.get(i)! - places.get(j)!)));
  const arcs = all || !pairs.length ? 0 : Math.min(170, 30 + reach / 5);
  const gpu_y = 96;
  const traffic_of = (gpu: number) => traffic(gpus.find(({ index }) => index === gpu));
  const rows = gpus.some((gpu) => traffic(gpu).pcie !== undefined || traffic(gpu).nvlink !== undefined) ? 2 : 0;
  const box = 100 + rows * ROW;
  const link_y = gpu_y + box + 12;
  const height = link_y + (all ? 56 : arcs + 16);
  return (
    <svg class="machine" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={in_words(topology, all)}>
      {sockets.map(({ node, x: left, width: wide, groups }) => (
        <g key={String(node)}>
          <rect class="socket" x={left} y={8} width={wide} height={44} rx="6" />
          <text class="strong" x={left + 12} y={27}>
            {node === null ? "NUMA node not known" : `NUMA node ${node}`}
          </text>
          <text class="soft" x={left + 12} y={43}>
            {topology.cpu_list[groups[0].of[0]] ? `CPUs ${topology.cpu_list[groups[0].of[0]]}` : ""}
          </text>
          {groups.map(({ x: from, width: span, of }) => (
            <g key={from}>
              {of.length > 1 && <rect class="switch" x={from + 6} y={70} width={span - 12} height={8} rx="2" />}
              <line class={`pcie ${of.length > 1 ? "" : flow(traffic_of(of[0]).pcie)}`} x1={from + span / 2} x2={from + span / 2} y1={52} y2={of.length > 1 ? 70 : gpu_y} />
              {of.length > 1 &&
                of.map((gpu) => <line key={gpu} class={`pcie ${flow(traffic_of(gpu).pcie)}`} x1={places.get(gpu)} x2={places.get(gpu)} y1={78} y2={gpu_y} />)}
            </g>
          ))}
        </g>
      ))}
      {all && (
        <g>
          {[...places].map(([gpu, at]) => (
            <line key={gpu} class={`nvlink ${flow(traffic_of(gpu).nvlink)}`} x1={at} x2={at} y1={gpu_y + box} y2={link_y + 16} />
          ))}
          <rect class="fabric" x={PAD} y={link_y + 14} width={width - 2 * PAD} height={30} rx="6" />
          <text class="strong" x={width / 2} y={link_y + 34} text-anchor="middle">
            NVLink fabric: {all} between all GPUs
          </text>
        </g>
      )}
      {pairs.map(({ i, j, name }) => {
        const [a, b] = [places.get(i)!, places.get(j)!];
        const depth = 24 + Math.abs(b - a) / 3.2;
        return (
          <path key={`${i}.${j}`} class={`nvlink n${Math.min(4, Math.ceil(Number(name.slice(2)) / 4))}`} d={`M${a} ${gpu_y + box}C${a} ${gpu_y + box + depth} ${b} ${gpu_y + box + depth} ${b} ${gpu_y + box}`}>
            <title>
              GPU {i} and {j}: {name}
            </title>
          </path>
        );
      })}
      {gpus.map((gpu) => places.has(gpu.index) && <Box key={gpu.index} gpu={gpu} x={places.get(gpu.index)! - BOX / 2} y={gpu_y} height={box} />)}
    </svg>
  );
}

function Box({ gpu, x, y, height }: { gpu: Gpu; x: number; y: number; height: number }) {
  const util = gpu.gpu_util_pct ?? 0;
  const job = gpu.job_id ? `${gpu.job_id} ${gpu.job_name ?? ""}` : state_of(gpu);
  const ill = gpu.health && gpu.health !== "healthy";
  const { pcie, nvlink } = traffic(gpu);
  const inside = (
    <>
      <rect class={`gpu ${gpu.job_id ? "busy" : ""} ${ill ? "ill" : ""}`} x={x} y={y} width={BOX} height={height} rx="6" />
      <text class="strong" x={x + 10} y={y + 20}>
        GPU {gpu.index}
      </text>
      <text class={gpu.job_id ? "job" : "soft"} x={x + 10} y={y + 38}>
        {job.length > 13 ? `${job.slice(0, 12)}…` : job}
      </text>
      <text class="soft" x={x + 10} y={y + 55}>
        {gpu.gpu_util_pct === undefined ? DASH : `${gpu.gpu_util_pct} %`} {watts(gpu.power_mw === undefined ? undefined : gpu.power_mw / 1000)}
      </text>
      <text class={ill ? "ill" : "soft"} x={x + 10} y={y + 72}>
        {ill ? `■ ${gpu.health}` : gpu.temp_c === undefined ? "" : `${gpu.temp_c} °C`}
      </text>
      {[
        ["PCIe", pcie],
        ["NVL", nvlink],
      ].map(
        ([name, rate], i) =>
          rate !== undefined && (
            <text key={name} class="soft" x={x + 10} y={y + 72 + (i + 1) * ROW}>
              {name} {byte_rate(rate as number)}
            </text>
          ),
      )}
      <rect class="rail" x={x + 10} y={y + height - 16} width={BOX - 20} height={6} rx="1" />
      <rect class="fill" x={x + 10} y={y + height - 16} width={((BOX - 20) * util) / 100} height={6} rx="1" />
    </>
  );
  return gpu.job_id ? (
    <a href={`#/jobs/${gpu.job_id}`}>
      {inside}
    </a>
  ) : (
    <g>{inside}</g>
  );
}

function in_words(topology: Topology, all: string | undefined): string {
  const nodes = [...new Set(topology.numa_node)].map((node) => {
    const members = topology.numa_node.flatMap((each, gpu) => (each === node ? [gpu] : []));
    return `GPU ${gpu_set(members)} at NUMA node ${node ?? "not known"}`;
  });
  return `${nodes.join("; ")}. ${all ? `All are linked by ${all}.` : "Links are in the table below."}`;
}

/** The same in figures; a board that does not say has a dash, and what none says is not there. */
function Traffic({ gpus }: { gpus: Gpu[] }) {
  const known = gpus.filter((gpu) => traffic(gpu).pcie !== undefined || traffic(gpu).nvlink !== undefined);
  if (!known.length) return <p class="soft">No GPU here says what goes over its links.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="traffic of the GPUs' links">
      <table>
        <thead>
          <tr>
            <th>GPU</th>
            <th class="number">PCIe out</th>
            <th class="number">PCIe in</th>
            <th>PCIe link</th>
            <th class="number">NVLink out</th>
            <th class="number">NVLink in</th>
            <th class="number">NVLinks up</th>
          </tr>
        </thead>
        <tbody>
          {gpus.map((gpu) => (
            <tr key={gpu.index}>
              <th scope="row">GPU {gpu.index}</th>
              {[gpu.pcie_sent_bytes_per_s, gpu.pcie_received_bytes_per_s].map((rate, i) => (
                <td key={i} class="number">
                  {byte_rate(gpu.stale ? undefined : rate)}
                </td>
              ))}
              <td>{gpu.pcie_gen ? `gen ${gpu.pcie_gen} x${gpu.pcie_width ?? DASH}` : DASH}</td>
              {[gpu.nvlink_sent_bytes_per_s, gpu.nvlink_received_bytes_per_s].map((rate, i) => (
                <td key={i} class="number">
                  {byte_rate(gpu.stale ? undefined : rate)}
                </td>
              ))}
              <td class="number">{gpu.nvlinks === undefined ? DASH : `${gpu.nvlinks_up ?? DASH} of ${gpu.nvlinks}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const MEANING: Record<string, string> = {
  PIX: "one PCIe switch",
  PXB: "several PCIe switches",
  PHB: "the CPU's host bridge",
  NODE: "between host bridges of a NUMA node",
  SYS: "between sockets",
};

function Matrix({ link }: { link: string[][] }) {
  const used = [...new Set(link.flat())].filter((name) => MEANING[name]);
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="links between GPUs">
        <table class="matrix">
          <thead>
            <tr>
              <td />
              {link.map((_, i) => (
                <th key={i} scope="col">
                  {i}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {link.map((row, i) => (
              <tr key={i}>
                <th scope="row">GPU {i}</th>
                {row.map((name, j) => (
                  <td key={j} class={is_nvlink(name) ? "near" : ""}>
                    {i === j ? "" : name}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        {link.flat().some(is_nvlink) && "NVn: n NVLinks. "}
        {used.map((name) => `${name}: ${MEANING[name]}. `)}
      </p>
    </>
  );
}
