// Devices that move: the map shows them where they are when the chosen round begins, and the way of the chosen device.

// The place of the device in a row of the map at an instant: straight between the corners of its way.
function placeAt(ways, row, t_s) {
  let low = ways.begin[row], high = ways.begin[row + 1] - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (ways.t_s[middle] <= t_s) low = middle; else high = middle - 1;
  }
  const next = low + 1;
  if (next >= ways.begin[row + 1] || t_s <= ways.t_s[low]) return [ways.x_m[low], ways.y_m[low]];
  const share = (t_s - ways.t_s[low]) / (ways.t_s[next] - ways.t_s[low]);
  return [ways.x_m, ways.y_m].map((axis) => axis[low] + share * (axis[next] - axis[low]));
}

// The way of the device in a row of the map until an instant; all of it without one.
function wayUntil(ways, row, t_s) {
  const from = ways.begin[row];
  let to = ways.begin[row + 1];
  if (t_s !== null) while (to > from + 1 && ways.t_s[to - 1] > t_s) to--;
  const x = Array.from(ways.x_m.slice(from, to)), y = Array.from(ways.y_m.slice(from, to));
  if (t_s !== null) { const [endX, endY] = placeAt(ways, row, t_s); x.push(endX); y.push(endY); }
  return { x, y };
}

// When the devices on the map were where it shows them, as a sentence.
function momentOf(run, round) {
  if (round < 0) return "Devices move: shown is where they were when the run began, with the whole way of the chosen one.";
  const when = `when round ${run.roundNumbers[round]} began, at ${number(run.rounds.start_s[round])} s`;
  return `Devices move: shown is where they were ${when}, with the way of the chosen one until then.`;
}

function followWays(run, dots, row, round) {
  const t_s = round >= 0 ? run.rounds.start_s[round] : null;
  const places = Array.from(run.map.number, (_, i) => placeAt(run.ways, i, t_s ?? 0));
  dots.data = { ...dots.data, x: places.map(([x]) => x), y: places.map(([, y]) => y) };
  source("cell", "way").data = row < 0 ? { x: [], y: [] } : wayUntil(run.ways, row, t_s);
}
