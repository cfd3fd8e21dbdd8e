"use strict";
const SILENT = "The server does not answer.", AGAIN = "The page retries automatically.";
const REOPEN = "Reload the page, or open the address that the server printed."; // a restarted server has a new token
const PATIENCE_MS = 20_000; // an open page receives an event at least every 15 s
const lost = Object.assign(document.createElement("p"), { className: "problem", id: "lost", hidden: true });
lost.setAttribute("role", "alert");
document.getElementById("content").prepend(lost);
const say = (words) => {
  if (lost.textContent !== words) lost.textContent = words;
  lost.hidden = false;
};
let since = 0;
const met = () => { lost.hidden = true; since = 0; };
/** Shows that an automatically updated page has lost its connection and is out of date. */
const missed = (way, heard = Date.now()) => {
  since ||= heard;
  say(`Not connected since ${new Date(since).toLocaleTimeString()}: this page is out of date. ${way}`);
};
const asked = (path, more = {}) => fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS), ...more });
let acting = false;
for (const form of document.querySelectorAll('form[method="post"]:not([data-upload])')) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (acting || (form.dataset.confirm && !confirm(form.dataset.confirm))) return;
    acting = true;
    // If the server has ended, the browser's error page would replace this page and the user's input, so the server is checked first.
    try {
      if ((await asked("/queue/state")).status === 401) say(`The server was restarted, so nothing was sent. ${REOPEN}`);
      else { met(); form.submit(); }
    } catch (error) {
      if (error.name !== "TimeoutError") say(`${SILENT} Nothing was sent. Try again when the server is running.`);
      else { // the server renders one page at a time, so it may only be busy with a long page
        say(`${SILENT} The request is sent, and processed when the server continues.`);
        form.submit();
      }
    }
    acting = false;
  });
}
for (const place of document.querySelectorAll("[data-fill]")) {
  fetch(place.dataset.fill).then(async (answer) => { place.innerHTML = await answer.text(); }).catch(() => { place.textContent = SILENT; });
}
// Computing an answer for the first time takes the server 0.1 s, so only visible answers are fetched, one after another.
let queued = Promise.resolve();
const answers = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    answers.unobserve(target);
    queued = queued.then(() => fetch(target.dataset.answer)).then(async (answer) => { target.textContent = answer.ok ? await answer.text() : ""; })
      .catch(() => { target.textContent = SILENT; });
  }
});
for (const place of document.querySelectorAll("[data-answer]")) answers.observe(place);
for (const form of document.querySelectorAll("form[data-upload]")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.querySelector("input[type=file]").files[0];
    const said = form.querySelector("output");
    if (!file) { said.textContent = "Choose a file first."; return; }
    said.textContent = "Uploading …";
    try {
      const answer = await fetch(form.action, { method: "POST", body: file, headers: { "content-type": "application/octet-stream" } });
      said.textContent = await answer.text();
    } catch { said.textContent = `${SILENT} Either nothing or everything was imported: check the archive.`; }
  });
}
const changing = document.querySelector("[data-reload]");
if (changing) {
  const before = changing.dataset.state;
  let asking = false;
  setInterval(async () => {
    if (document.hidden || asking) return;
    asking = true;
    try {
      const answer = await asked(changing.dataset.reload), now = await answer.text();
      if (!answer.ok) missed(answer.status === 401 ? REOPEN : AGAIN);
      else { met(); if (now !== before && !acting) location.reload(); }
    } catch { missed(AGAIN); }
    asking = false;
  }, 1000);
}
const draft = document.querySelector("textarea[data-plan]");
if (draft) {
  let waiting, number = 0;
  const plan = async () => {
    const mine = ++number;
    const body = new URLSearchParams({ name: draft.form.elements.name.value, text: draft.value });
    const shown = await fetch(draft.dataset.plan, { method: "POST", body }).then((answer) => answer.text())
      .catch(() => `<p class="problem">${SILENT}</p>`);
    if (mine === number) document.getElementById("plan").innerHTML = shown;
  };
  draft.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(plan, 400); });
  plan();
}
document.addEventListener("click", (event) => {
  const mark = event.target.closest?.("button[data-say]");
  if (!mark) return;
  const said = mark.closest("section").querySelector("output.said");
  const link = Object.assign(document.createElement("a"), { href: mark.dataset.record, textContent: "open record" });
  said.replaceChildren(`${mark.dataset.say}. `, link);
});

const live = document.querySelector("[data-live]");
if (live) {
  const place = (name) => live.querySelector(`[data-now="${name}"]`);
  const set = (name, text) => { const there = place(name); if (there && there.textContent !== text) there.textContent = text; };
  const short = (value, digits = 3) => (value >= 1000 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(digits)).toString());
  const time = (seconds) => (seconds == null ? "–" : seconds < 1e-3 ? `${short(seconds * 1e6)} µs` : seconds < 1 ? `${short(seconds * 1e3)} ms` : `${short(seconds)} s`);
  const bytes = (value) => (value < 1e6 ? `${short(value / 1e3)} kB/s` : `${short(value / 1e6)} MB/s`);
  const line = (name, values, words) => {
    const known = values.filter((value) => value != null);
    const most = Math.max(...known, 0);
    const from = 120 - values.length;
    const points = values.map((value, second) => (value == null || !most ? "" : `${from + second},${39 - 37 * value / most}`)).join(" ");
    live.querySelector(`[data-line="${name}"]`).innerHTML = `<polyline points="${points}"/>`;
    set(`${name}-range`, known.length ? `0 to ${words(most)}` : "");
  };
  const phases = { prepare: "preparing data, engine and caches", connect: "connecting clients", ready: "waiting until all clients are ready", warmup: "warm-up", run: "measuring", turns: "measuring in interleaved slices; the results appear at the end of the block", drain: "finishing", done: "finished" };
  const show = ({ trial, machine }) => {
    if (trial) {
      set("title", trial.title || `${trial.cell}, ${trial.purpose} ${trial.block + 1}`);
      const whole = trial.duration_s, at = trial.elapsed_s;
      place("progress").value = whole ? Math.min(1, Math.max(0, at / whole)) : 0;
      set("phase", `${phases[trial.phase] ?? trial.phase}${trial.phase === "run" && whole ? `, ${Math.floor(at)} of ${Math.round(whole)} s` : ""}`);
      const rates = trial.seconds.map(([width, done]) => (width ? done / width : null));
      const times = trial.seconds.map(([, , , mean]) => mean);
      const last = rates.length - 1;
      set("throughput", last < 0 ? "–" : `${short(rates[last])}/s`);
      set("response", last < 0 ? "–" : time(times[last]));
      set("failed", String(trial.failed));
      line("throughput-line", rates, (value) => `${short(value)}/s`);
      line("response-line", times, time);
    }
    if (machine && "busy" in machine) {
      const stolen = machine.steal > 0.005 ? `, ${Math.round(100 * machine.steal)}% steal time` : "";
      set("cpu", `${Math.round(100 * machine.busy)}%${stolen}`);
      const busy = machine.devices.map((one) => `${one.name}: reads ${bytes(one.read)}, writes ${bytes(one.written)}, ${Math.round(100 * one.busy)}% busy`);
      set("devices", busy.join("; ") || "idle");
    }
  };
  const parsed = (html) => Object.assign(document.createElement("template"), { innerHTML: html });
  // HTML of each part as received and serialized by the browser. The live elements cannot be compared, because charts and chosen marks change them.
  const sent = Object.fromEntries([...live.querySelectorAll("[id]")].map((there) => [there.id, there.innerHTML]));
  const replace = (there, { content }) => {
    const said = there.querySelector(":scope > output.said");
    if (!said) { there.replaceChildren(content); return; }
    // The displayed description is kept. The focus stays on the chosen mark, or moves to the mark at the same position.
    const marks = [...there.querySelectorAll(".trial")], chosen = marks.indexOf(document.activeElement);
    const record = marks[chosen]?.dataset.record;
    content.querySelector("output.said")?.remove();
    while (there.firstChild !== said) there.firstChild.remove();
    there.prepend(content);
    if (chosen < 0) return;
    const now = [...there.querySelectorAll(".trial")];
    (now.find((mark) => mark.dataset.record === record) ?? now[chosen])?.focus({ preventScroll: true });
  };
  const change = ({ parts, charts }) => {
    let changed = false;
    for (const [id, html] of Object.entries(parts)) {
      const there = document.getElementById(id), fresh = parsed(html), text = fresh.innerHTML;
      if (!there || text === sent[id]) continue;
      sent[id] = text;
      replace(there, fresh);
      changed = true;
    }
    const kept = document.getElementById("charts"), drawn = JSON.stringify(charts);
    if (!changed && drawn === JSON.stringify(JSON.parse(kept.textContent))) return;
    kept.textContent = drawn; // for the chart library, if it is still loading
    document.dispatchEvent(new CustomEvent("charts", { detail: charts }));
  };
  let source, heard = Date.now(), tried = heard;
  const connect = () => {
    tried = Date.now();
    source = new EventSource(live.dataset.live);
    for (const name of ["open", "state", "parts"]) source.addEventListener(name, () => { heard = Date.now(); met(); });
    source.addEventListener("state", (event) => show(JSON.parse(event.data)));
    source.addEventListener("parts", (event) => change(JSON.parse(event.data)));
    source.addEventListener("over", () => { source.close(); location.reload(); });
    source.addEventListener("error", () => missed(source.readyState === EventSource.CLOSED ? REOPEN : AGAIN));
  };
  connect();
  // A suspended server or a machine without power closes no connection, so a long silence means that the connection is lost.
  setInterval(() => {
    if (source.readyState === EventSource.CLOSED || Date.now() - Math.max(heard, tried) < PATIENCE_MS) return;
    missed(AGAIN, heard);
    source.close();
    connect();
  }, 1000);
}
