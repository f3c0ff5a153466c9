// Handovers: marks in the timeline, crosses on the map, and the station that serves a device.

// Rows of a device's handovers, [from, to).
function handoversOf(run, device) {
  const devices = run.handovers?.device ?? [];
  return [lower(devices, device, 0, devices.length), lower(devices, device + 1, 0, devices.length)];
}

function handoverText(run, i) {
  const [from, to] = [run.handovers.from[i], run.handovers.to[i]].map((station) => run.stations.name[station]);
  return `handed over at ${number(run.handovers.t_s[i])} s from ${from} to ${to}`;
}

// The row of the station that served a device last until an instant; that of the map where it had no work before.
function servingAt(run, row, t_s) {
  const device = run.map.number[row], { start, end, first, code } = run.made;
  let station = run.map.station[row], since = -Infinity;
  for (let i = first[device]; run.bars.station && i < first[device + 1] && start[i] <= t_s; i++) {
    if (activityOf(code[i]) !== "away") { station = run.bars.station[i]; since = end[i]; }
  }
  // A bar that a handover cuts has the station before it, and ends within a tick of it.
  const [begin, behind] = handoversOf(run, device);
  for (let i = begin; i < behind && run.handovers.t_s[i] <= t_s; i++) if (run.handovers.t_s[i] >= since - run.bars.tick_s) station = run.handovers.to[i];
  return station;
}

// Crosses where devices were handed over: the chosen device or all, in the chosen round or in all.
function handoverPlaces(run, row, round) {
  const x = [], y = [], what = [], rows = run.handovers?.device ?? [];
  for (let i = 0; run.ways && i < rows.length; i++) {
    const of = run.map.number.indexOf(rows[i]);
    if ((row >= 0 && of !== row) || (round !== null && run.handovers.round[i] !== round)) continue;
    const [atX, atY] = placeAt(run.ways, of, run.handovers.t_s[i]);
    x.push(atX); y.push(atY); what.push(`device ${rows[i]} ${handoverText(run, i)}`);
  }
  return { x, y, what };
}
