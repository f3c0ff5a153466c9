// Puts the page together: the columns unpacked, the pictures of the chosen run, the controls.

const DATA = JSON.parse(document.getElementById("data").textContent);
const RUN = () => DATA.runs[choice.run];
const by = (id) => document.getElementById(id);

async function prepare(run) {
  if (run.roundNumbers) return;
  Object.assign(run, await unpackAll(run));
  run.roundNumbers = Array.from(run.rounds.number);
  run.deviceNumbers = Array.from({ length: run.devices }, (_, i) => i);
  if (run.bars) { run.made = makeBars(run.bars, run.devices, DATA.state_of_code); run.band = makeBand(run, run.bars, run.made); }
}

function key(parent, label, color, change) {
  const box = document.createElement("input"), mark = document.createElement("span"), whole = document.createElement("label");
  box.type = "checkbox"; box.checked = true; box.value = label;
  box.addEventListener("change", () => change(box.checked));
  mark.className = "key"; mark.style.background = color === "#000000" ? "currentColor" : color;
  whole.append(box, mark, label); parent.append(whole);
  return mark;
}

function legend(id, colors) {
  for (const [name, color] of Object.entries(colors)) {
    const mark = document.createElement("span"), whole = document.createElement("span");
    mark.className = "key"; mark.style.background = color; whole.className = "entry";
    whole.append(mark, name); by(id).append(whole, " ");
  }
}

function statesOf(run) {
  return new Set(run.groups ? Object.keys(run.groups.states) : Array.from(new Set(run.made.state), (i) => DATA.states[i].name));
}

function tellAggregated(run, hidden) {
  by("aggregated").hidden = !run.groups;
  if (run.groups) {
    const why = run.devices >= 10000 ? `${number(run.devices)} devices` : `${number(run.rows)} bars`;
    by("aggregated").textContent = `Aggregated, since there are ${why}: a row is a group of ${run.groups.size} devices with neighbouring numbers, a column `
      + `${number(run.groups.span_s)} s; its colours stand for how many of the group are in each state on average, its full height for ${number(mostAtOnce(run.groups.states, hidden) / 100)} devices.`
      + (run.map.number ? "" : " The map shows squares of the cell instead of devices.");
  }
}

async function main() {
  if (!window.DecompressionStream) {
    by("note").textContent = "This browser is too old for the pictures (it has no DecompressionStream); the tables above are whole.";
    return;
  }
  const hidden = new Set(), timeline = new Picture(by("timeline"), hidden), who = new Picture(by("who"), hidden);
  const marks = DATA.states.map((state, i) => key(by("states"), state.name, state.light, (shown) => {
    if (shown) hidden.delete(i); else hidden.add(i);
    tellAggregated(RUN(), hidden); timeline.draw(); who.draw();
  }));
  theme.listeners.push(() => marks.forEach((mark, i) => { mark.style.background = theme.dark ? DATA.states[i].dark : DATA.states[i].light; }));
  for (const [label, color] of Object.entries(DATA.series)) key(by("series"), label, color, (shown) => showSeries(label, shown));
  by("series").hidden = Object.keys(DATA.series).length < 2 || !("accuracy-rounds" in DATA.charts);
  by("means").hidden = !("accuracy-rounds" in DATA.charts);
  by("averaged").hidden = !DATA.averaged;
  legend("count-keys", DATA.counts); legend("kind-keys", DATA.kinds);
  by("untested").hidden = "accuracy-rounds" in DATA.charts;
  DATA.runs.forEach((run, i) => by("run").append(new Option(run.name, i)));
  by("run-label").hidden = DATA.runs.length < 2;
  const kept = location.protocol === "file:" ? null : keptPlace();
  choice.run = by("run").selectedIndex = kept ? Math.max(0, DATA.runs.findIndex((run) => run.name === kept.run)) : 0;
  await prepare(RUN());
  const showRun = async () => {
    const run = RUN();
    await prepare(run);
    const occurs = statesOf(run);
    marks.forEach((mark, i) => { mark.parentElement.hidden = !occurs.has(DATA.states[i].name); });
    if (DATA.runs.length > 1) for (const one of document.querySelectorAll(".of-run")) one.textContent = `: ${run.name}`;
    tellAggregated(run, hidden); showTimeline(timeline, run); showWho(who, run);
    if (charts.cell) { fillCharts(run); markCharts(); }
  };
  by("run").addEventListener("change", async () => { choice.run = Number(by("run").value); await showRun(); choose({}); });
  for (const what of ["round", "device"]) by(what).addEventListener("input", () => choose({ [what]: by(what).value === "" ? null : Number(by(what).value) }));
  for (const what of ["round", "device"]) by(what).addEventListener("keydown", (event) => { if (event.key === "Enter") timeline.zoomToChoice(); });
  by("clear").addEventListener("click", () => choose({ round: null, device: null }));
  by("zoom").addEventListener("click", () => timeline.zoomToChoice());
  by("in").addEventListener("click", () => timeline.scale(0.6)); by("out").addEventListener("click", () => timeline.scale(1 / 0.6)); by("whole").addEventListener("click", () => timeline.reset());
  by("amount").addEventListener("change", () => fillWork(RUN()));
  choice.listeners.push(() => {
    for (const what of ["round", "device"]) if (document.activeElement !== by(what)) by(what).value = choice[what] ?? "";
    by("told").textContent = toldOf(RUN());
  });
  setTheme(theme.dark);
  await showRun();
  await embedCharts();
  fillCharts(RUN());
  if (kept) backToPlace(timeline, kept);
  if (location.protocol !== "file:") keepPlace(timeline);
  // For tests, and for whoever looks into the page with a browser's tools.
  window.edgesim = { timeline, who, choice, choose, charts, data: DATA };
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

main();
