"""Every Python program and every config of the README and the handbook runs, page by page.

Programs run in this process, a few rounds and seeds long; the classes that they show are run by the tests of templates
(`test_plug_ins`, `algorithms/test_handbook`) too. A config is made a world of, as ``edgesim run --dry-run`` does; one
for a cluster of Ray on the processors of this machine.
"""

import re
import shutil
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from quoted import HANDBOOK, ROOT, examples
from small_runs import TIMING

import edgesim
from edgesim.config import RunConfig

PAGES = [*HANDBOOK, ROOT / "plots/README.md"]


def shorter(program: str) -> str:
    """A few rounds, seeds and trials, and for the trials a target that they can reach."""
    for written, few in (
        (r'"rounds": \d+', '"rounds": 6'),
        (r": Rounds = \d+", ": Rounds = 6"),
        (r"seeds=\d+", "seeds=2"),
        (r"seeds=range\(\d+\)", "seeds=range(2)"),
        (r"trials=\d+", "trials=3"),
        (r"target=0\.75", "target=0.3"),
    ):
        program = re.sub(written, few, program)
    return program


def check(text: str) -> None:
    settings = tomllib.loads(re.sub(r"(recording|availability)\.parquet", "sample-week", text))
    if not settings or not settings.keys() <= RunConfig.model_fields.keys():
        return
    if settings.get("learning", {}).get("back_end") == "ray":
        RunConfig.model_validate(settings)
        settings["learning"] = {"back_end": "loop"}
    # What a part of a config leaves out, such as the deadline of phones, need not fit it.
    outlook = edgesim.dry_run(settings, "out", {} if "round" in settings else {"round.tmax_s": 10.0})
    assert not outlook.refused
    assert outlook.facts["payload"]


def pages(language: str) -> Any:
    # The README's program is run as it is typed, in `test_pages`; what stands in coming-from.md in `test_coming_from`.
    others = [("python", "README.md"), ("python", "docs/coming-from.md"), ("toml", "docs/coming-from.md")]
    names = {str(page.relative_to(ROOT)): page for page in PAGES if examples(page, language)}
    shown = [page for name, page in names.items() if (language, name) not in others]
    return pytest.mark.parametrize("page", shown, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture
def here(tmp_path, monkeypatch, studies_here, figures_as_text):
    """An empty folder with what the pages take for granted: a config, a study that was run, recordings of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "CONFIG.toml").write_text(
        'rounds = 3\n[data]\ndataset = "digits"\npartition = "fedteddi"\n[learning]\nmodel = "mlp"\nlr = 0.1\n'
        "pretrain = false\n[round]\npayload_bits = 1e6\n"
    )
    links = {"device": np.arange(100), "t_s": np.zeros(100), "bps": np.full(100, 1e7), "end_s": np.full(100, 60.0)}
    pd.DataFrame(links).to_parquet("links.parquet")
    # Speeds of phones, as `edgesim trace convert` leaves them.
    shutil.copy(ROOT / "traces/sample-phones.parquet", "phones.parquet")
    yield tmp_path
    sys.modules.pop("my_policy", None)


def past(page: Path) -> None:
    """What was run before the reader comes to a page."""
    if page == ROOT / "plots/README.md":
        axes = {"selection.policy": ["random", "best-channel"]}
        edgesim.study(TIMING, axes, seeds=1, out="runs/my-study", jobs=1, quiet=True)
    if page.name == "run-folder.md":
        config = {
            "rounds": 2,
            "selection": {"policy": "fedteddi"},
            "round": {"payload_bits": 1e7},
            "data": {"partition": "fedteddi"},
            "learning": {"pretrain": True},
        }
        edgesim.run(config, "runs/demo/fedteddi-tmax0.8-known-s0", quiet=True)


LEFT = {
    "plots/README.md": "figures/scheduled.png",
    "docs/python.md": "runs/mine/summary.csv",
    "docs/studies.md": "runs/my-study/differences-policy.csv",
    "docs/tuning.md": "runs/CONFIG-tune/summary.csv",
}
"""A file that the programs of a page leave."""


@pytest.mark.slow
@pages("python")
def test_every_program_shown_runs(page, here, monkeypatch):
    past(page)
    # Classes look for their module by name, and programs ask whether they are the one that was started.
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setattr(sys, "argv", ["script.py"])
    main.__dict__["present"] = np.random.default_rng(0).random((120, 20)) < 0.4
    for program in examples(page, "python"):
        if "class LeastBand" in program:
            Path("my_policy.py").write_text(program)
        try:
            exec(compile(shorter(program), page, "exec"), main.__dict__)
        except SystemExit as end:  # as a scenario ends
            if end.code:
                raise
    assert (here / LEFT.get(str(page.relative_to(ROOT)), ".")).exists()


@pytest.mark.slow
@pages("toml")
def test_every_config_shown_can_be_run(page, here):
    for text in examples(page, "toml"):
        check(text)
