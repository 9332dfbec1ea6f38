// The page's beginning: language, modes, the stream of events, and the buttons that stand on the page from the start.

import { speak, t, complaint } from "/words.js";
import { legend } from "/chart.js";
import { post, sayProblem, setText } from "/dom.js";
import live, { take, render, paint } from "/live.js";
import { makeScenarios, sayScenarios, showScenario } from "/scenarios.js";
import { makeTicks, sayTicks, paintTicks } from "/ticks.js";
import { makeSettings, showSettings, sayAgain } from "/settings.js";

const $ = (id) => document.getElementById(id);
let connected = false;
/** Why the server would not be heard, if it has said so. */
let turnedAway = null;

function say(lang) {
  speak(lang);
  legend($("legend-items"));
  sayAgain();
  sayProblem();
  sayScenarios();
  sayTicks();
  showConnection();
  render();
  showScenario(live.state?.scenario);
}

function showConnection() {
  $("connection").dataset.connected = connected;
  const why = !connected && turnedAway ? `: ${complaint(turnedAway)}` : "";
  setText("connection", t(connected ? "connected" : "disconnected") + why);
}

let events = null;

function connect() {
  events?.close();
  events = new EventSource("/api/events");
  const heard = (anew) => ({ data }) => {
    const frame = JSON.parse(data);
    take(frame, anew);
    if (!frame.state) return;
    // Not before: what is clicked on a page that knows of no candidates yet would do nothing.
    connected = true;
    turnedAway = null;
    showConnection();
    showSettings(frame.state.settings);
    showScenario(frame.state.scenario);
  };
  events.addEventListener("snapshot", heard(true));
  events.addEventListener("update", heard(false));
  events.addEventListener("error", async () => {
    connected = false;
    const refused = events.readyState === EventSource.CLOSED;
    if (!refused) turnedAway = null;
    showConnection();
    if (!refused || document.hidden) return;
    // A server that refuses is asked again, too; the browser itself gives up then.
    setTimeout(() => { if (!document.hidden) connect(); }, 2000);
    turnedAway = await refusalOf("/api/events");
    showConnection();
  });
}

/** What a stream of events does not tell: the answer to who asks for it and gets none. */
async function refusalOf(path) {
  const asking = new AbortController();
  try {
    const answer = await fetch(path, { signal: asking.signal });
    return answer.ok ? null : await answer.json();
  } catch {
    return null;
  } finally {
    // It may have a place by now, which the page's own stream is to get.
    asking.abort();
  }
}

// A browser has few connections to one server: a page that nobody looks at gives its own back.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) events?.close();
  else connect();
});

for (const lang of ["en", "ko"]) {
  $(`lang-${lang}`).addEventListener("click", () => {
    const url = new URL(location.href);
    url.searchParams.set("lang", lang);
    history.replaceState(null, "", url);
    say(lang);
  });
}

const modes = ["live", "ticks"];
function show(mode) {
  for (const one of modes) {
    $(one).hidden = one !== mode;
    $(`mode-${one}`).setAttribute("aria-selected", String(one === mode));
    $(`mode-${one}`).tabIndex = one === mode ? 0 : -1;
  }
  paintTicks();
}
for (const mode of modes) {
  $(`mode-${mode}`).addEventListener("click", () => show(mode));
  $(`mode-${mode}`).addEventListener("keydown", ({ key }) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const other = modes[1 - modes.indexOf(mode)];
    show(other);
    $(`mode-${other}`).focus();
  });
}

$("start-all").addEventListener("click", async () => {
  for (const { id, phase } of live.state?.candidates ?? []) {
    if (phase === "down") await post(`/api/candidates/${id}`, { action: "start" });
  }
});
$("reset").addEventListener("click", () => post("/api/reset", {}));
$("store-stop").addEventListener("click", ({ target }) => post("/api/store", { action: target.dataset.action }));
$("store-forget").addEventListener("click", () => post("/api/store", { action: "forget" }));

const wanted = new URL(location.href).searchParams;
const { about } = await (await fetch("/api/state")).json();
setText("lock-name", about.name);
makeSettings($("settings"), about.ranges);
makeScenarios($("scenarios"), about.scenarios);
await makeTicks();
say(wanted.get("lang") ?? (navigator.language.startsWith("ko") ? "ko" : "en"));
connect();
if (wanted.get("mode") === "ticks") show("ticks");
addEventListener("resize", paintTicks);
const calm = matchMedia("(prefers-reduced-motion: reduce)");
(function again() {
  paint();
  setTimeout(again, calm.matches ? 500 : 66);
})();
