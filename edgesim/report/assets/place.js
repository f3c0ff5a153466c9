// A served page loads itself again while its study goes on: what was chosen, switched off and zoomed to is kept.

const switches = () => [...document.querySelectorAll("#series input, #states input")];

function keepPlace(timeline) {
  addEventListener("pagehide", () => {
    const { view, facts } = timeline, whole = view.from === 0 && view.to === facts.end;
    sessionStorage.setItem("place", JSON.stringify({ run: RUN().name, round: choice.round, device: choice.device,
      view: whole ? null : view, off: switches().filter((box) => !box.checked).map((box) => box.value), dark: theme.dark, top: scrollY }));
  });
}

function keptPlace() { return JSON.parse(sessionStorage.getItem("place") ?? "null"); }

function backToPlace(timeline, kept) {
  for (const box of switches()) if (kept.off.includes(box.value)) box.click();
  choose({ round: kept.round, device: kept.device });
  if (kept.view && RUN().name === kept.run) { timeline.view = kept.view; timeline.draw(); }
  if (kept.dark !== theme.dark) setTheme(kept.dark);
  scrollTo({ top: kept.top, behavior: "instant" });
}
