// SPDX-License-Identifier: Apache-2.0
// The frame around all pages: where one is, how the machine is, whether what is shown is still so.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { forget_token, has_token, keep_token, offered_token, on_pasted_token, take_offer } from "./api";
import { clock_time, duration } from "./format";
import { follow, useLive } from "./live";
import { go, usePlace } from "./route";
import { ClocksPage } from "./pages/clocks";
import { HealthPage } from "./pages/health";
import { JobPage } from "./pages/job";
import { Overview } from "./pages/overview";
import { Jobs } from "./pages/queue";
import { Reservations } from "./pages/reservations";
import { Submit } from "./pages/submit";
import { Timeline } from "./pages/timeline";
import { TopologyPage } from "./pages/topology";
import { Theme } from "./theme";
import { Ask, Banner, Empty, useNow } from "./ui";
import "./style.css";

const PAGES = [
  ["overview", "Overview", "o"],
  ["jobs", "Jobs", "j"],
  ["timeline", "Timeline", "t"],
  ["topology", "Topology", "p"],
  ["reservations", "Reservations", "r"],
  ["clocks", "Clocks", "c"],
  ["health", "Health", "h"],
] as const;

function Page() {
  const { page, id } = usePlace();
  if (page === "jobs") return id === undefined ? <Jobs /> : <JobPage key={id} id={id} />;
  if (page === "timeline") return <Timeline />;
  if (page === "topology") return <TopologyPage />;
  if (page === "clocks") return <ClocksPage />;
  if (page === "health") return <HealthPage />;
  if (page === "reservations") return <Reservations />;
  if (page === "submit") return <Submit />;
  if (page === "overview") return <Overview />;
  return (
    <Empty title="There is no such page">
      <a href="#/overview">Overview</a>
    </Empty>
  );
}

function Frame() {
  const live = useLive();
  const { page, id } = usePlace();
  const [help, set_help] = useState(false);
  const [offered, answer_offer] = useOffer();
  useKeys(() => set_help(true));
  useEffect(() => {
    const name = id !== undefined ? `job ${id}` : page;
    document.title = `${name} · ${live.status?.hostname ?? "takt"}`;
  }, [page, id, live.status?.hostname]);
  if (live.link === "signed-out") return <SignIn problem={has_token() ? live.problem : undefined} />;
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
        To the content
      </a>
      <header class="top">
        <a class="brand" href="#/overview">
          takt
        </a>
        <nav aria-label="pages">
          {PAGES.map(([name, title]) => (
            <a key={name} href={`#/${name}`} aria-current={page === name ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="right">
          {live.status?.simulated && <span class="simulated">simulated</span>}
          <span class="host" title={live.status?.driver_version ? `driver ${live.status.driver_version}` : undefined}>
            {live.status?.hostname}
          </span>
          <Link />
          <Theme />
          {live.account && (
            <button
              class="plain"
              title={live.account.write ? "may act" : "may look only"}
              onClick={() => {
                forget_token();
                void follow();
              }}
            >
              {live.account.user}: sign out
            </button>
          )}
        </div>
      </header>
      {live.link === "lost" && <Lost />}
      {live.status?.notes?.map((note, i) => (
        <Banner key={note} severity={live.status?.note_severity?.[i]}>
          {note}
        </Banner>
      ))}
      <main key={live.session} id="main" tabIndex={-1} class={live.link === "lost" ? "old" : ""}>
        <Page />
      </main>
      {help && <Help done={() => set_help(false)} />}
      {offered && live.link === "live" && (
        <Ask title="Sign in by the link?" yes="Sign in as its account" done={answer_offer}>
          <p>
            The link that was opened carries another token. You are signed in
            {live.account && (
              <>
                {" "}
                as <strong>{live.account.user}</strong>
              </>
            )}
            : whoever made the link decides for whom you would act.
          </p>
        </Ask>
      )}
    </>
  );
}

/** Whether a link offers another token, and what to do about it; where nobody is signed in it is taken at once. */
function useOffer(): [boolean, (yes: boolean) => void] {
  const { link } = useLive();
  const [, again] = useState({});
  const answer = (yes: boolean) => {
    take_offer(yes);
    again({});
    if (yes) void follow();
  };
  useEffect(() => {
    const look = () => again({});
    addEventListener("takt-offer", look);
    return () => removeEventListener("takt-offer", look);
  }, []);
  useEffect(() => {
    if (offered_token() && link === "signed-out") answer(true);
  });
  return [offered_token() !== null, answer];
}

function Link() {
  const { link } = useLive();
  const words = { connecting: "connecting", live: "live", lost: "lost", "signed-out": "" }[link];
  return (
    <span class={`link ${link}`} role="status">
      <span aria-hidden="true">{link === "live" ? "●" : "○"}</span> {words}
    </span>
  );
}

function Lost() {
  const { heard_ms, problem } = useLive();
  const now = useNow();
  return (
    <div class="lost" role="alert">
      <strong>takt does not answer.</strong>{" "}
      {heard_ms ? (
        <>
          What is shown is of {clock_time(heard_ms)}, <span aria-hidden="true">{duration(now - heard_ms)} old</span>.
        </>
      ) : (
        "Nothing has been heard yet."
      )}{" "}
      {problem ?? "The page goes on trying."}
    </div>
  );
}

function useKeys(help: () => void) {
  useEffect(() => {
    const on_key = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || at.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
      const page = PAGES.find(([, , key]) => key === event.key);
      if (page) go(`#/${page[0]}`);
      else if (event.key === "n") go("#/submit");
      else if (event.key === "?") help();
      else if (event.key === "/") {
        event.preventDefault();
        go("#/jobs");
        setTimeout(() => document.getElementById("find")?.focus(), 50);
      }
    };
    addEventListener("keydown", on_key);
    return () => removeEventListener("keydown", on_key);
  }, []);
}

function Help({ done }: { done: () => void }) {
  return (
    <Ask title="Keys" yes="Good" done={done}>
      <dl class="terms">
        {[...PAGES.map(([, title, key]) => [key, title]), ["n", "Submit a job"], ["/", "Find a job"], ["?", "This"]].map(([key, title]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
      </dl>
    </Ask>
  );
}

function SignIn({ problem }: { problem?: string }) {
  const [token, set_token] = useState("");
  const [remember, set_remember] = useState(false);
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keep_token(token.trim(), remember);
          void follow();
        }}
      >
        <h1>takt</h1>
        <p>
          Over the network takt asks for a token. Make one on the machine: <code>takt token add</code>
        </p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          required
          value={token}
          onInput={(event) => set_token(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={remember} onChange={(event) => set_remember(event.currentTarget.checked)} /> keep it in this
          browser, not only in this tab
        </label>
        {problem && (
          <p class="trial bad" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button class="main">Sign in</button>
        </div>
      </form>
    </main>
  );
}

on_pasted_token(() => dispatchEvent(new Event("takt-offer"))); // before the pages look at where they are
render(<Frame />, document.getElementById("app")!);
void follow();
