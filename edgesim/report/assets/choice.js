// What is chosen: a run, a round and a device of it. Every picture shows it, and may change it.

const choice = { run: 0, round: null, device: null, listeners: [] };

function choose(change) {
  Object.assign(choice, change);
  for (const listener of choice.listeners) listener();
}

// A step to the next round or device of a run; from nothing to the first or the last.
function step(run, what, by) {
  const numbers = run[what === "round" ? "roundNumbers" : "deviceNumbers"], at = numbers.indexOf(choice[what]);
  const next = at < 0 ? (by > 0 ? 0 : numbers.length - 1) : Math.min(numbers.length - 1, Math.max(0, at + by));
  choose({ [what]: numbers[next] });
}

function number(value) { return value.toLocaleString("en", { maximumSignificantDigits: 6 }); }

// The choice in words.
function toldOf(run) {
  const parts = [], rounds = run.rounds, at = run.roundNumbers.indexOf(choice.round);
  if (at >= 0) {
    const accuracy = Number.isNaN(rounds.accuracy[at]) ? "" : `, accuracy ${rounds.accuracy[at].toFixed(4)}`;
    parts.push(`Round ${choice.round}: ${number(rounds.start_s[at])} to ${number(rounds.end_s[at])} s, `
      + `${rounds.candidates[at]} candidates, ${rounds.selected[at]} selected, ${rounds.arrived[at]} arrived, `
      + `${rounds.late[at]} late, ${rounds.dropped[at]} dropped${accuracy}.`);
  } else if (choice.round !== null) parts.push(`There is no round ${choice.round}.`);
  if (choice.device !== null) {
    if (!(choice.device >= 0 && choice.device < run.devices)) parts.push(`There is no device ${choice.device}.`);
    else if (run.groups) {
      const first = Math.floor(choice.device / run.groups.size) * run.groups.size;
      parts.push(`Device ${choice.device}, one of the group ${first} to ${Math.min(run.devices, first + run.groups.size) - 1}.`);
    } else {
      const place = Array.from(run.map.number).indexOf(choice.device);
      const use = place < 0 ? "" : `, uploaded in ${(100 * run.map.use[place]).toFixed(1)} % of the rounds`;
      parts.push(`Device ${choice.device}${use}.`);
      const [begin, behind] = handoversOf(run, choice.device);
      for (let i = begin; i < behind; i++) if (at >= 0 && run.handovers.round[i] === choice.round) parts.push(`${handoverText(run, i).replace("h", "H")}.`);
      if (at >= 0) parts.push(barsOf(run, choice.device, choice.round).map((i) => barText(run, i)).join("; ") + ".");
    }
  }
  return parts.filter((part) => part !== ".").join(" ");
}
