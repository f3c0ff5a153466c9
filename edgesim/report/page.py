"""The page: its parts put together, with everything that it needs inside it."""

from importlib import resources
from typing import Any

from bokeh.resources import Resources

from edgesim.plots.palette import KIND_COLORS
from edgesim.report import states
from edgesim.report.charts import COUNT_COLORS
from edgesim.report.columns import script_json
from edgesim.report.tables import text

SCRIPTS = (
    "columns.js",
    "theme.js",
    "choice.js",
    "timeline.js",
    "taking_part.js",
    "ways.js",
    "handovers.js",
    "charts.js",
    "place.js",
    "page.js",
)
"""In the order in which they stand in the page; each is one idea."""

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""Content security policy: the page loads nothing from elsewhere and sends nothing."""


def page(title: str, about: str, tables: str, data: dict[str, Any], refresh_s: int | None = None) -> str:
    """The whole page: ``about`` and ``tables`` are HTML, ``data`` is what ``page.js`` draws.

    ``data`` has ``runs`` (`edgesim.report.run_data`), ``charts`` (Bokeh's items by the element that each is for),
    ``series`` (colours by label), ``bits_unit`` (the bits of the unit of their chart), ``averaged`` (whether a line has
    several runs) and ``note`` (which runs there are). With ``refresh_s`` the page loads itself again.
    """
    whole = data | {
        "states": [state._asdict() for state in states.STATES],
        "state_of_code": states.state_of_code(),
        "activities": states.ACTIVITIES,
        "outcomes": states.OUTCOMES,
        "kinds": KIND_COLORS,
        "counts": COUNT_COLORS,
    }
    bokeh = "\n".join(Resources(mode="inline", components=["bokeh"], log_level="warn").js_raw)
    scripts = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {"TITLE": text(title), "ABOUT": about, "TABLES": tables, "NOTE": text(data["note"])}
    body = _asset("body.html")
    for name, part in parts.items():
        body = body.replace(f"<!--{name}-->", part, 1)
    return _whole(
        title,
        f'{body}\n<script type="application/json" id="data">{script_json(whole)}</script>\n'
        f'<script>{bokeh}</script>\n<script>"use strict";\n{scripts}</script>',
        refresh_s,
    )


def waiting_page(title: str, body: str, refresh_s: int | None) -> str:
    """A page of ``body``, HTML without pictures, which loads itself again where ``refresh_s`` is given."""
    head = f'<header><h1>{text(title)}</h1><button id="theme" type="button">dark</button></header>'
    return _whole(title, f'{head}<main>{body}</main><script>"use strict";\n{_asset("theme.js")}</script>', refresh_s)


def _whole(title: str, body: str, refresh_s: int | None) -> str:
    again = f'<meta http-equiv="refresh" content="{refresh_s}">' if refresh_s else ""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">{again}'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{text(title)}</title><style>{_asset('page.css')}</style>"
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _asset(name: str) -> str:
    return (resources.files("edgesim.report") / "assets" / name).read_text(encoding="utf-8")
