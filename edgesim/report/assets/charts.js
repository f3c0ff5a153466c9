// Bokeh's charts: put into the page, filled with the chosen run, and linked with the choice.

const charts = {};

async function embedCharts() {
  let first = null;
  for (const [name, item] of Object.entries(DATA.charts)) {
    const views = await Bokeh.embed.embed_item(item), view = views.roots ? views.roots[0] : views[0] ?? views;
    charts[name] = view.model;
    first ??= view;
  }
  // Bokeh measures the toolbar of a page's first chart before it has its width, and folds it.
  first.invalidate_layout();
  for (const name of Object.keys(charts)) {
    const over = name.replace("accuracy-", "");
    if (name === "counts" || name === "work" || name.startsWith("accuracy-")) charts[name].on_event("tap", (event) => choose({ round: nearest(RUN(), over, event.x) }));
  }
  if (charts.cell) {
    const chosen = source("cell", "devices").selected;
    chosen.properties.indices.change.connect(() => {
      const run = RUN();
      if (chosen.indices.length && run.map.number) choose({ device: run.map.number[chosen.indices[0]] });
    });
  }
  theme.listeners.push(colorCharts);
  choice.listeners.push(markCharts);
  colorCharts();
}

function source(chart, name) { return charts[chart].renderers.map((one) => one.data_source).find((one) => one.name === name); }

// What a run had spent at the end of its rounds, along the axis of a chart.
function along(run, over) {
  return over === "seconds" ? run.rounds.end_s : over === "bits" ? run.rounds.bits.map((one) => one / DATA.bits_unit) : over === "joules" ? run.rounds.joules : run.roundNumbers;
}

function nearest(run, over, x) {
  const places = along(run, over);
  let best = 0;
  for (let i = 0; i < places.length; i++) if (Math.abs(places[i] - x) < Math.abs(places[best] - x)) best = i;
  return run.roundNumbers[best];
}

function spansOf(chart, name) { return [...chart.center, ...chart.left, ...chart.right, ...chart.above, ...chart.below].filter((one) => one.name === name); }

function markCharts() {
  const run = RUN(), at = run.roundNumbers.indexOf(choice.round);
  for (const [name, chart] of Object.entries(charts)) {
    for (const span of spansOf(chart, "chosen")) {
      const linked = name === "counts" || name === "work" || name.startsWith("accuracy-");
      span.visible = linked && at >= 0;
      if (at >= 0) span.location = along(run, name.replace("accuracy-", ""))[at];
    }
  }
  if (charts.cell && run.map.number) {
    const dots = source("cell", "devices"), place = Array.from(run.map.number).indexOf(choice.device);
    dots.data = { ...dots.data, line: Array.from(run.map.number, (_, i) => i === place ? 4 : 0.4) };
    if (run.ways) followWays(run, dots, place, at);
    document.getElementById("moment").textContent = run.ways ? momentOf(run, at) : "";
    source("cell", "handovers").data = handoverPlaces(run, place, at < 0 ? null : choice.round);
    if (run.made && run.stations.name.length > 1) dots.data = { ...dots.data, what: Array.from(run.map.number, (device, i) => `device ${device} of ${run.stations.name[servingAt(run, i, at < 0 ? 0 : run.rounds.end_s[at])]}`) };
    const now = place < 0 ? [] : [place];
    if (String(dots.selected.indices) !== String(now)) dots.selected.indices = now;
  }
}

function fillCharts(run) {
  const rounds = run.rounds, list = (values) => Array.from(values), map = run.map;
  source("counts", "counts").data = { round: run.roundNumbers, ...Object.fromEntries(Object.keys(DATA.counts).map((name) => [name, list(rounds[name])])) };
  const names = map.number ? list(map.number).map((device, i) => `device ${device}${run.stations.name.length > 1 ? `${run.ways ? ", at first" : ""} of ${run.stations.name[map.station[i]]}` : ""}`)
    : list(map.count).map((count) => `${count} device${count === 1 ? "" : "s"}`);
  const size = map.number ? Math.min(16, Math.max(5, 90 / Math.sqrt(names.length))) : 9;
  source("cell", "devices").data = { x: list(map.x_m), y: list(map.y_m), use: list(map.use), what: names, line: names.map(() => 0.4), size: names.map(() => size) };
  const dots = charts.cell.renderers.find((one) => one.name === "devices"), mapper = dots.glyph.fill_color.transform;
  mapper.high = Math.max(1e-9, ...map.use);
  dots.glyph.marker = { value: map.number ? "circle" : "square" };
  source("cell", "way").data = { x: [], y: [] };
  source("cell", "handovers").data = handoverPlaces(run, -1, null);
  document.getElementById("crosses").hidden = !(run.handovers && run.ways);
  source("cell", "stations").data = { x: run.stations.x_m, y: run.stations.y_m, name: run.stations.name };
  fillWork(run);
}

function fillWork(run) {
  const amount = document.getElementById("amount").value, work = run.work, list = (values) => Array.from(values);
  const first = list(work.first), last = list(work.last);
  const data = { middle: first.map((one, i) => (one + last[i]) / 2), width: first.map((one, i) => (last[i] - one + 1) * 0.92),
    rounds: first.map((one, i) => one === last[i] ? `${one}` : `${one} to ${last[i]}`), ...Object.fromEntries(Object.keys(DATA.kinds).map((kind) => [kind, list(work[amount][kind])])) };
  source("work", "work").data = data;
  charts.work.left.find((one) => one.axis_label !== undefined).axis_label = { seconds: "device time (s)", bits: "sent (bit)", joules: "energy (J)" }[amount] + (work.block > 1 ? ` per ${work.block} rounds` : " per round");
}

function colorCharts() {
  const text = ink("ink"), soft = ink("soft"), line = ink("line"), grid = ink("grid");
  for (const chart of Object.values(charts)) {
    for (const one of [...chart.center, ...chart.left, ...chart.right, ...chart.above, ...chart.below]) {
      if (one.axis_label_text_color !== undefined) {
        one.axis_label_text_color = soft; one.major_label_text_color = soft; one.axis_line_color = line;
        one.major_tick_line_color = line; one.minor_tick_line_color = null; one.axis_label_text_font_style = "normal";
      } else if (one.grid_line_color !== undefined) one.grid_line_color = grid;
      if (one.name === "chosen") one.line_color = ink("accent");
      if (one.name === "target") one.line_color = soft;
      if (one.name === "bar") { one.title_text_color = soft; one.major_label_text_color = soft; one.background_fill_color = null; }
    }
    for (const one of chart.renderers) {
      if (one.name === "names") one.glyph.text_color = text;
      // A policy that is black on paper takes the colour of the text in the dark.
      const label = (one.name ?? "").replace("series:", "");
      if (one.name?.startsWith("series:") && DATA.series[label] === "#000000") {
        for (const key of ["line_color", "fill_color"]) if (one.glyph[key] !== undefined) one.glyph[key] = text;
      }
    }
  }
}

function showSeries(label, shown) {
  for (const chart of Object.values(charts)) for (const one of chart.renderers) if (one.name === `series:${label}`) one.visible = shown;
}
