"""Pages and what is packed in them, read without a browser and without the code that wrote them."""

import base64
import json
import re
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from whole_runs import play

from edgesim.report.report import report_html

TIMING = {"seed": 4, "learning": {"training": "none", "pretrain": True}, "data": {"partition": "fedteddi"}}
CONFIGS: dict[str, dict[str, Any]] = {
    "synchronous": {
        "rounds": 6,
        "round": {"payload_bits": 17_881_664.0, "tmax_s": 0.8, "delay_knowledge": "planned", "plan_quantile": 0.5},
    },
    "paused": {
        "stop_at_s": 40.0,
        "devices": {"count": 12, "battery_j": 12.0, "recharge_w": 0.3},
        "radio": {"sharing": "reshared", "bandwidth_hz": 2e6},
        "availability": {"model": "round_robin", "turn_s": 4.0, "overlap_s": 1.0, "interruption": "pause"},
        "round": {
            "protocol": "buffered",
            "admission": "count",
            "count": 5,
            "protocol_options": {"buffer": 3},
            "payload_bits": 9e6,
        },
    },
}


def decode(column: dict[str, str]) -> np.ndarray:
    """A packed column by its description alone."""
    data = zlib.decompress(base64.b64decode(column["data"]))
    if column["code"] == "small":
        return np.frombuffer(data, np.uint8)
    if column["code"] == "exact":
        return np.frombuffer(data, "<f8")
    count = len(data) // 4
    bytes_of = [
        np.frombuffer(data[place * count : (place + 1) * count], np.uint8).astype(np.int64) for place in range(4)
    ]
    values = sum(part << (8 * place) for place, part in enumerate(bytes_of))
    if column["code"] == "whole":
        values = np.cumsum(values)
    values = np.asarray(values) % 2**32
    return np.where(values >= 2**31, values - 2**32, values)


class Page(HTMLParser):
    """The texts of a page, the cells of its tables, its data and its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.written = ""
        self._cell = self._hidden = False
        self.feed(text)
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
        assert found is not None
        self.data: dict[str, Any] = json.loads(found[1])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attributes if name in ("src", "href") and value]
        self._hidden = tag in ("script", "style")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._cell = True

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False
        self._cell = self._cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._cell:
            self.tables[-1][-1][-1] += data
        if not self._hidden:
            self.written += data


@pytest.fixture(scope="session")
def decoded() -> Callable[[dict[str, str]], np.ndarray]:
    return decode


@pytest.fixture(scope="session")
def page_of() -> Callable[[str], Page]:
    return Page


@pytest.fixture(scope="session", params=sorted(CONFIGS))
def any_run(request, tmp_path_factory) -> Path:
    """A run of each kind: in rounds with late work; without rounds, on batteries, among devices that come and go."""
    return play(tmp_path_factory.mktemp("runs") / request.param, TIMING, CONFIGS[request.param]).folder


@pytest.fixture(scope="session")
def any_html(any_run) -> str:
    """The page of a run of each kind, as a text."""
    return report_html(any_run)


@pytest.fixture(scope="session")
def any_page(any_html) -> Page:
    return Page(any_html)
