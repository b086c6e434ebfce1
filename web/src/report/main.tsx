// SPDX-License-Identifier: Apache-2.0
// A result of takt's programs as a page: the document stands in the page itself, and nothing is asked for.
import { type ComponentChildren, render } from "preact";
import { useEffect } from "preact/hooks";
import { clock_time } from "../format";
import { Theme } from "../theme";
import { Problem } from "../ui";
import { ClocksPage } from "./clocks";
import { ComparisonPage } from "./comparison";
import type { Document } from "./document";
import { ForecastPage } from "./forecast";
import { PackingPage } from "./packing";
import { Simulated, Tag } from "./parts";
import { TunePage } from "./tune";
import { UsagePage } from "./usage";
import "../style.css";
import "./report.css";

interface Said {
  title: string;
  lead: string;
  body: ComponentChildren;
}

/** undefined: of a kind that this page does not know. */
function say(it: Document): Said | undefined {
  if (it.format === "takt-tune")
    return { title: `Clocks for ${it.command.replace(/^.* -- /, "")}`, lead: `What it does and costs at each setting, on ${it.gpu ?? "this GPU"}.`, body: <TunePage it={it} /> };
  if (it.format === "takt-usage")
    return {
      title: "What GPUs were used for",
      lead: `Jobs that ended ${it.since_ms ? `after ${clock_time(it.since_ms)}` : "since takt keeps them"}${it.until_ms ? ` and before ${clock_time(it.until_ms)}` : ""}, by ${it.by}.`,
      body: <UsagePage it={it} />,
    };
  if (it.format === "takt-forecast")
    return { title: "Forecasts on time held out", lead: `${it.series}. Each was fitted on what came before.`, body: <ForecastPage it={it} /> };
  if (it.format !== "takt-simulation") return undefined;
  switch (it.protocol) {
    case "fgd":
      return {
        title: "How full each policy packs the cluster",
        lead: "Pods arrive one after the other; each is placed at once or lost. After Weng et al., USENIX ATC 2023.",
        body: <PackingPage it={it} />,
      };
    case "queue":
      return {
        title: "How long jobs take under each queue policy",
        lead: "Jobs are submitted as in the trace, wait, run and end on a virtual clock; the scheduler is the one that the daemon uses.",
        body: <ComparisonPage it={it} />,
      };
    case "timed":
      return { title: "Placement with real times", lead: "Pods come, wait, stay and leave as in the trace.", body: <ComparisonPage it={it} /> };
    case "clocks":
      return { title: "Governors on measured clocks", lead: "What was saved within the promise, replayed on measured tables: nothing ran.", body: <ClocksPage it={it} /> };
    default:
      return undefined;
  }
}

function Report({ it, said }: { it: Document; said: Said }) {
  useEffect(() => {
    document.title = `${it.simulated ? "simulated: " : ""}${said.title} · takt`;
  }, []);
  const errors = "seeds" in it && it.seeds.count > 1;
  return (
    <Simulated.Provider value={it.simulated}>
      <a class="skip" href="#main">
        To the content
      </a>
      <header class="top">
        <span class="brand">takt</span>
        <span class="soft">{it.format.replace("takt-", "")}</span>
        <div class="right">
          <Tag />
          <Theme />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <h1>{said.title}</h1>
        <p class="lead soft">{said.lead}</p>
        {said.body}
        <h2>The command that repeats this</h2>
        <pre tabIndex={0} role="region" aria-label="the command that repeats this">
          {it.command}
        </pre>
        <p class="soft">
          takt {it.takt}, commit {it.commit}.{errors && " ± holds the mean in 95 of 100 cases (Student's t over the seeds)."}
        </p>
      </main>
    </Simulated.Provider>
  );
}

function Page() {
  try {
    const it = JSON.parse(document.getElementById("document")!.textContent!) as Document;
    const said = say(it);
    if (said) return <Report it={it} said={said} />;
  } catch {
    // said below
  }
  return (
    <main>
      <h1>takt</h1>
      <Problem what="This page holds no result that it can show." />
    </main>
  );
}

render(<Page />, document.getElementById("app")!);
