// Who took part when: a row per device (or group), a place on the line per round.

function showWho(picture, run) {
  const groups = run.groups, numbers = run.roundNumbers, size = groups ? groups.size : 1;
  const source = groups ? { groups: groups.who.states, rows: groups.count, spans: groups.who.spans, span: groups.who.block } : makeWho(run, run.made);
  picture.show({
    run, source, band: null, end: groups ? groups.who.spans * groups.who.block : numbers.length, label: "round", whole: true,
    rowLabel: groups ? `groups of ${size} devices` : "device", rowName: (row) => row * size,
    name: (at) => numbers[Math.round(at)] ?? "",
    at: (x, row) => ({ round: numbers[Math.floor(x)] ?? null, ...(row === null ? {} : { device: row * size }) }),
    chosen: () => { const i = numbers.indexOf(choice.round);
      return [i < 0 ? null : i, i < 0 ? null : i + 1, choice.device === null || choice.device >= run.devices ? null : Math.floor(choice.device / size)]; },
    tip: (x, row) => {
      const round = numbers[Math.floor(x)];
      if (round === undefined || row === null) return "";
      if (groups) return `round ${round}, devices ${row * size} to ${Math.min(run.devices, (row + 1) * size) - 1}`;
      return [`round ${round}, device ${row}`, ...barsOf(run, row, round).map((i) => barText(run, i))].join("\n");
    },
  });
}
