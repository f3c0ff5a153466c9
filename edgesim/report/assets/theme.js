// Light or dark: as the system says, until the button is used; paper is light.

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
  // Bokeh paints in the next frame, which paper does not wait for.
  const paint = (tools) => {
    for (const view of [...window.Bokeh?.index.roots ?? []].filter((one) => one.model.toolbar)) {
      view.model.toolbar.visible = tools; view.invalidate_painters(); view.repaint();
    }
  };
  addEventListener("beforeprint", () => { before = theme.dark; setTheme(false); paint(false); });
  addEventListener("afterprint", () => { setTheme(before); paint(true); });
}
