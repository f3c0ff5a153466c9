// Light or dark: as the system says, until the button is used; paper is light, and as wide as A4 and letter allow.

const theme = { listeners: [], get dark() { return document.documentElement.dataset.theme === "dark"; } };

function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.getElementById("theme").textContent = dark ? "light" : "dark";
  for (const listener of theme.listeners) listener();
}

{
  const system = matchMedia("(prefers-color-scheme: dark)");
  setTheme(system.matches);
  system.addEventListener("change", () => setTheme(system.matches));
  document.getElementById("theme").addEventListener("click", () => setTheme(!theme.dark));
  let before = false;
  const plots = () => [...window.Bokeh?.index.roots ?? []].filter((one) => one.model.toolbar);
  addEventListener("beforeprint", async () => {
    before = theme.dark;
    document.body.classList.add("paper");
    setTheme(false);
    for (const plot of plots()) { plot.model.toolbar.visible = false; plot.after_resize(); }
    // Bokeh takes new colours over in promises, for which paper waits, and paints in the next frame, for which it does not:
    // paper gets copies, painted at once.
    for (let promise = 0; promise < 100; promise++) await null;
    for (const plot of plots()) {
      const { canvas } = plot.export("png", true);
      canvas.className = "copy";
      document.getElementById(plot.model.name).append(canvas);
    }
  });
  addEventListener("afterprint", () => {
    document.body.classList.remove("paper");
    for (const copy of document.querySelectorAll(".copy")) copy.remove();
    setTheme(before);
    for (const plot of plots()) { plot.model.toolbar.visible = true; plot.after_resize(); }
  });
}
