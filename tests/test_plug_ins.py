"""Code of the user's own: by dotted path, from an installed package, and from ``edgesim new``."""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from refusals import in_one_line
from small_runs import TIMING
from typed_commands import refused
from typer.testing import CliRunner

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry
from edgesim.base.sources import digest_when_loaded
from edgesim.commands import new_command
from edgesim.commands.cli import app
from edgesim.commands.new_command import TEMPLATES
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.scenario import start
from edgesim.selection import SELECTORS
from edgesim.simulation import composition as simulation
from edgesim.simulation import named_code
from edgesim.simulation.kinds import KINDS

BY_COUNT = TIMING | {"devices": {"count": 6}, "round": {"admission": "count", "count": 2, "payload_bits": 1e5}}

POLICY = """
from edgesim.selection.stateless import Stateless, walk

class Backwards(Stateless):
    def choose(self, view):
        yield from walk(view.ids[::-1])

class Raises(Stateless):
    def choose(self, view):
        yield {}["nowhere"]

class Other:
    pass

def backwards():
    pass
"""


def config_of(policy, **sections):
    return parse(BY_COUNT | {"selection": {"policy": policy}} | sections, "test")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module of the user's own, which is imported anew in each test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_helper.py").write_text("ANSWER = 42\n")
    (tmp_path / "own_plug_in.py").write_text("import own_helper\n" + POLICY)
    # Tests of other files have modules of these names, too.
    _forget_own()
    yield tmp_path
    _forget_own()


def _forget_own():
    for module in ("own_plug_in", "own_helper", "own_half", "own_metric", "own_allocator", "my_policy"):
        sys.modules.pop(module, None)
    digest_when_loaded.cache_clear()


def test_a_policy_by_its_dotted_path_decides_and_its_code_stays_with_the_run(own):
    simulation.run(config_of("own_plug_in.Backwards"), own / "run")
    assert read_table(own / "run", "updates")["device"].tolist() == [5, 4] * 3
    assert (own / "run/code/own_plug_in.py").read_text() == (own / "own_plug_in.py").read_text()
    assert (own / "run/code/own_helper.py").read_text() == "ANSWER = 42\n"
    assert sorted(path.name for path in (own / "run/code").iterdir()) == ["own_helper.py", "own_plug_in.py"]
    assert simulation.why_run(own / "run", simulation.complete(config_of("own_plug_in.Backwards"))) is None


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("own_plug_in.Nowhere", "cannot import 'own_plug_in.Nowhere': module 'own_plug_in' has no attribute 'Nowhere'"),
        ("own_plugin.Backwards", "No module named 'own_plugin'; is its folder the current one or on PYTHONPATH?"),
        ("own_plug_in.Other", "'own_plug_in.Other' is the class Other, expected a subclass of edgesim.selection.view"),
        ("own_plug_in.backwards", "is of type function, expected a subclass of edgesim.selection.view.Selector"),
        ("broken.Policy", "cannot import 'broken.Policy': ZeroDivisionError: division by zero"),
        ("ends.Policy", "cannot import 'ends.Policy': SystemExit: 3"),
        ("..", "unknown policy '..'"),
        ("a b.c", "unknown policy 'a b.c'"),
        ("randm", "unknown policy 'randm', did you mean 'random'?"),
    ],
)
def test_what_is_no_policy_is_refused_in_a_line_before_anything_is_written(own, policy, said):
    (own / "broken.py").write_text("1 / 0\n")
    (own / "ends.py").write_text("import sys\nsys.exit(3)\n")
    with in_one_line(r"^selection\.policy: ") as caught:
        simulation.run(config_of(policy), own / "run")
    assert said in str(caught.value)
    assert not (own / "run").exists()


def test_an_error_in_a_plug_in_is_a_line_with_its_place_and_stands_in_run_json(own):
    said = f"selection.policy 'own_plug_in.Raises': {own}/own_plug_in.py, line 11, in choose: KeyError: 'nowhere'"
    with in_one_line(f"^{re.escape(said)}$"):
        simulation.run(config_of("own_plug_in.Raises"), own / "run")
    run = read_run(own / "run")
    assert (run["status"], run["reason"]) == ("failed", said)


def test_an_error_in_edgesim_itself_keeps_its_traceback(own, monkeypatch):
    monkeypatch.setattr("edgesim.selection.random_choice.RandomChoice.choose", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        simulation.run(config_of("random"), own / "run")


def test_an_installed_package_offers_names(own, monkeypatch):
    offered = own / "offers-1.0.dist-info"
    offered.mkdir()
    (offered / "METADATA").write_text("Name: offers\nVersion: 1.0\n")
    (offered / "entry_points.txt").write_text("[edgesim.policies]\nbackwards = own_plug_in:Backwards\n")
    monkeypatch.setattr("edgesim.base.registry.offers", metadata.entry_points)
    monkeypatch.setattr(SELECTORS, "installed", None, raising=False)
    del SELECTORS.__dict__["installed"]
    try:
        simulation.run(config_of("backwards"), own / "run")
        assert read_table(own / "run", "updates")["device"].tolist() == [5, 4] * 3
        assert named_code.foreign(config_of("backwards")) == {"selection.policy": "backwards"}
        told = CliRunner().invoke(app, ["list"]).stdout
        assert "availability-first, backwards, best-channel" in " ".join(told.split())
    finally:
        SELECTORS.__dict__.pop("installed", None)


PATHS = {
    "policies": "policy.LongestWait", "algorithms": "algorithm.Mine", "partitions": "partition.Halves",
    "allocators": "allocator.LeastAndEqual", "drift_laws": "drift.Seasons", "joining_laws": "joining.SlowOnesRest",
    "presence_models": "presence.Shifts", "motion_models": "motion.Visits",
    "path_loss_laws": "channel.TwoSlopes", "predictors": "predictor.SameHour", "metrics": "metric.TopLosses",
    "protocols": "protocol.EnoughArrived", "codecs": "codec.FewDigits",
}  # fmt: skip


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if isinstance(kind.entries, Registry)])
def test_every_kind_takes_a_dotted_path_and_names_of_installed_packages(kind, monkeypatch):
    entries, path = KINDS[kind].entries, f"edgesim.templates.{PATHS[kind]}"
    name = path.rpartition(".")[2]
    assert entries[path].__name__ == name
    groups = re.findall(r"`(edgesim\.\w+)`", (Path(__file__).parents[1] / "docs/plug-ins.md").read_text())
    group = f"edgesim.{entries._group}"
    assert group in groups
    offered = metadata.EntryPoint("offered-by-a-package", path.replace(f".{name}", f":{name}"), group)
    monkeypatch.setattr("edgesim.base.registry.offers", lambda: metadata.EntryPoints([offered]))
    fresh = Registry(entries.field, entries._group, entries._base, dict(entries))
    assert "offered-by-a-package" in fresh.names
    assert fresh["offered-by-a-package"] is entries[path]


def test_a_class_with_a_method_missing_is_refused(own):
    (own / "own_law.py").write_text("from edgesim.radio.laws.law import Law\nclass Mine(Law):\n    pass\n")
    channel = {"name": "mine", "source": "a test", "shadowing_std_db": 0.0, "shadowing": "per_run"}
    channel |= {"noise_dbm_per_hz": -174.0, "noise_figure_db": 0.0, "path_loss": {"law": "own_law.Mine"}}
    (own / "mine.toml").write_text(tomli_w.dumps(channel))
    config = config_of("random", radio={"channel": "mine.toml"})
    with in_one_line(r"path_loss\.law: 'own_law\.Mine' lacks the method 'loss_db'"):
        simulation.run(config, own / "run")


def test_the_command_names_code_outside_edgesim_and_refuses_it_on_demand(own):
    (own / "mine.toml").write_text(tomli_w.dumps(BY_COUNT | {"selection": {"policy": "own_plug_in.Backwards"}}))
    named = "selection.policy = 'own_plug_in.Backwards'"
    said = f"error: mine.toml: names code outside edgesim, {named}, which is refused here"
    assert refused("run", "mine.toml", "--no-user-code") == said
    assert "own_plug_in" not in sys.modules
    done = CliRunner().invoke(app, ["run", "mine.toml"])
    assert done.exit_code == 0
    assert f"note: runs code outside edgesim: {named}" in done.stdout


OWN_ALLOCATOR = """
import numpy as np

from edgesim.radio.allocators import Allocator


class Mine(Allocator):
    def allocate(self, request):
        return ANSWER
"""


def with_allocator(answer):
    Path("own_allocator.py").write_text(OWN_ALLOCATOR.replace("ANSWER", answer))
    return config_of("random", round={"payload_bits": 1e6, "allocator": "own_allocator.Mine"})


def test_an_allocator_of_ones_own_shares_the_band_and_stays_with_the_run(own):
    """A third of the band for the first upload, the rest for the others."""
    own_shares = "request.bandwidth_hz * np.where(np.arange(n := len(request.ids)) == 0, 1 / 3, 2 / 3 / max(1, n - 1))"
    config = with_allocator(own_shares)
    simulation.run(config, own / "run")
    uploads = read_table(own / "run", "activities").query("activity == 'upload' and outcome == 'done'")
    shares_hz = np.sort(uploads[uploads["round"] == 1]["bandwidth_hz"])
    band_hz = config.radio.bandwidth_hz
    assert shares_hz[-1] == pytest.approx(band_hz / 3)
    assert shares_hz[:-1] == pytest.approx(np.full(len(shares_hz) - 1, 2 * band_hz / 3 / (len(shares_hz) - 1)))
    assert len(shares_hz) > 3
    assert "round.allocator" in json.loads((own / "run/run.json").read_text())["inputs"]
    assert (own / "run/code/own_allocator.py").is_file()


OWN_PREDICTOR = """
import numpy as np
from edgesim.prediction.predictor import Predictor


class Half(Predictor):
    value: float = 0.5

    def chances(self, log, ids, future_rounds):
        return ANSWER
"""
OWN_METRIC = """
from edgesim.learning.measures import Metric


class Own(Metric):
    scale: float = 1.0

    def measure(self, tested):
        return ANSWER
"""
LEARNS = {"learning.training": "real", "data.dataset": "digits", "learning.pretrain": False, "learning.steps": 1}


def with_predictor(answer, **options):
    Path("own_half.py").write_text(OWN_PREDICTOR.replace("ANSWER", answer))
    given = {"selection.policy": "feddance", "selection.predictor": "own_half.Half"}
    return LEARNS | given | ({"selection.predictor_options": options} if options else {})


def with_metric(answer, **options):
    Path("own_metric.py").write_text(OWN_METRIC.replace("ANSWER", answer))
    return LEARNS | {"evaluation.metrics": {"own_metric.Own": options, "worst-class": {}}, "evaluation.samples": 40}


SMALL = {
    "rounds": 2,
    "devices": {"count": 4},
    "round": {"payload_bits": 1e5, "admission": "count", "count": 2},
    "data": {"partition": "fedteddi"},
    "learning": {"pretrain": True},
}


def test_refl_asks_a_predictor_of_ones_own_where_it_goes_by_the_log(own):
    """Devices that are least likely to come are first: the predictor decides, and nothing else does."""
    given = with_predictor("np.where(ids == 3, self.value, np.where(ids == 1, 0.2, 0.9))", value=0.1)
    given |= {"selection.policy": "refl", "selection.forecast": "log", "selection.cool_down": 0}
    run = edgesim.run(SMALL, "run", given)
    assert (run.folder / "code/own_half.py").is_file()
    assert "selection.predictor" in json.loads(Path("run/run.json").read_text())["inputs"]
    assert run.config["selection"]["predictor_options"] == {"value": 0.1}
    assert {*run.updates["device"]} == {1, 3}
    del given["selection.forecast"]
    with in_one_line(r"forecast = 'oracle' does not go with predictor = "):
        edgesim.run(SMALL, "other", given)


def ask_allocator(answer):
    simulation.run(with_allocator(answer), Path("run"))


def ask_predictor(answer):
    edgesim.run(SMALL, "run", with_predictor(answer))


def ask_metric(answer):
    edgesim.run(SMALL, "run", with_metric(answer))


@pytest.mark.parametrize(
    ("ask", "answer", "said"),
    [
        (ask_allocator, "np.ones(1)", "an array of float64 and shape (1,) for"),
        (ask_allocator, "[request.bandwidth_hz / len(request.ids)] * len(request.ids)", "returned list for"),
        (ask_allocator, "np.full(len(request.ids), 'all')", "an array of <U3 and shape"),
        (ask_allocator, "-np.ones(len(request.ids))", "allocate returned -1 to -1 Hz"),
        (ask_allocator, "np.full(len(request.ids), np.nan)", "allocate returned nan to nan Hz"),
        (ask_allocator, "np.full(len(request.ids), request.bandwidth_hz)", "Hz in all"),
        (ask_predictor, "[0.5] * len(ids)", "chances answered list, expected 4 numbers"),
        (ask_predictor, "np.full(len(ids) + 1, 0.5)", "chances answered an array float64[5], expected 4 numbers"),
        (ask_predictor, "np.full(len(ids), 1.5)", "chances answered 1.5 for device 0, expected 0 to 1"),
        (ask_predictor, "np.full(len(ids), np.nan)", "chances answered nan for device 0, expected 0 to 1"),
        (ask_predictor, "1 / 0", "own_half.py, line 10, in chances: ZeroDivisionError: division by zero"),
        (ask_metric, "None", "measure returned None, expected a fin"),
        (ask_metric, "float('nan')", "measure returned nan, expected a fin"),
        (ask_metric, "'high'", "measure returned 'high', expected a fin"),
        (ask_metric, "True", "measure returned True, expected a fin"),
    ],
)
def test_what_code_of_ones_own_answers_is_checked_in_a_line_that_names_it(own, ask, answer, said):
    name = {ask_allocator: "own_allocator.Mine", ask_predictor: "own_half.Half", ask_metric: "own_metric.Own"}[ask]
    with in_one_line(re.escape(said)) as refusal:
        ask(answer)
    assert name in str(refusal.value)


def test_metrics_are_rows_of_each_test(own):
    run = edgesim.run(SMALL, "run", with_metric("self.scale * len(tested.labels)", scale=2.0))
    rows = run.metrics[run.metrics["name"] == "metric"]
    assert rows["key"].tolist() == ["own_metric.Own", "worst-class"] * 3
    assert rows["value"][rows["key"] == "own_metric.Own"].tolist() == [80.0] * 3
    by_class = run.metrics[run.metrics["name"] == "class_accuracy"].groupby("round")["value"].min()
    assert rows["value"][rows["key"] == "worst-class"].tolist() == by_class.tolist()
    assert (run.folder / "code/own_metric.py").is_file()
    assert run.config["evaluation"]["metrics"] == {"own_metric.Own": {"scale": 2.0}, "worst-class": {}}


NEVER = """

class Never(Metric):
    def measure(self, tested):
        from edgesim.learning.measures import UndefinedError

        raise UndefinedError("forty are too few")
"""


def test_metrics_are_columns_of_the_summary_and_compared_and_null_with_the_reason_where_undefined(
    own, capsys, studies_here
):
    settings = with_metric("self.scale * tested.losses.mean()", scale=2.0)
    settings["evaluation.metrics"] |= {"own_metric.Never": {}}
    Path("own_metric.py").write_text(Path("own_metric.py").read_text() + NEVER)
    axes = {"selection.policy": ["random", "best-channel"]}
    study = edgesim.study(SMALL, axes, seeds=2, out="study", set=settings, jobs=1, quiet=True)
    table = study.table().set_index("policy")
    expected = [2 * run.rounds["test_loss"].mean() for run in study.runs.values()]
    assert table["own_metric.Own"].tolist() == pytest.approx([np.mean(expected[:2]), np.mean(expected[2:])])
    assert {"own_metric.Own_low", "worst-class"} <= {*table}
    told = study.compare("own_metric.Own").table.iloc[0]
    assert told["difference"] == pytest.approx(np.mean(expected[2:]) - np.mean(expected[:2]))
    assert study.table()["own_metric.Never"].isna().all()
    assert study.table()["worst-class"].notna().all()
    for run in study.runs.values():
        assert run.metrics["key"].eq("worst-class").sum() == 3
        assert not run.metrics["key"].eq("own_metric.Never").any()
    study.show()
    next(iter(study.runs.values())).show()
    said = " ".join(capsys.readouterr().out.split())
    assert "No own_metric.Never of random-s0 and 3 others: forty are too few." in said
    assert "undefined: forty are too few" in said
    with in_one_line(r"metric own_metric\.Never: no run has it \(forty are too few\)"):
        study.compare("own_metric.Never", by="policy")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"evaluation.metrics": {"worst-class": {"share": 1}}}, "takes no options"),
        ({"algorithm.server": "own_helper.ANSWER"}, ": algorithm.server: 'own_helper.ANSWER' is of type int, expected"),
        ({"selection.policy": "feddance", "selection.predictor": "poison"}, "did you mean 'poisson'?"),
        (
            {"selection.policy": "feddance", "selection.predictor": "collections.OrderedDict"},
            "expected a subclass of edgesim.prediction.predictor.Predictor",
        ),
    ],
)
def test_metrics_and_predictors_that_are_none_are_refused_before_anything_is_written(own, setting, said):
    with pytest.raises(EdgesimError) as refusal:
        edgesim.run(SMALL, "run", LEARNS | setting)
    assert said in str(refusal.value)
    assert not Path("run").exists()


@pytest.mark.parametrize("kind", TEMPLATES)
def test_new_writes_what_passes_its_own_test(own, kind):
    done = CliRunner().invoke(app, ["new", kind, "brand_new"])
    assert done.exit_code == 0, done.output
    written = (own / "brand_new.py").read_text()
    assert "edgesim.templates" not in written
    shipped, use = TEMPLATES[kind]
    assert shipped == "" or shipped not in written
    use = use.format(path="brand_new.BrandNew", stem="brand_new")
    assert done.stdout.splitlines()[-1] == f"to use it: {use}"
    assert "brand_new.py: is there already; choose another name" in refused("new", kind, "brand_new")


@pytest.mark.slow
def test_every_new_plug_in_passes_its_own_test_in_a_folder_of_its_own(own):
    for kind in TEMPLATES:
        assert CliRunner().invoke(app, ["new", kind, f"my_{kind}"]).exit_code == 0
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "."]
    done = subprocess.run(command, cwd=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (
        f"{len(re.findall('def test_', ''.join(path.read_text() for path in own.glob('test_*.py'))))} passed"
        in done.stdout
    )


def test_init_writes_a_folder_whose_run_finishes(own, monkeypatch):
    done = CliRunner().invoke(app, ["init", "begin"])
    assert done.exit_code == 0, done.output
    names = ["README.md", "my_policy.py", "my_study.py", "run.toml", "test_my_policy.py"]
    assert sorted(path.name for path in (own / "begin").iterdir()) == names
    monkeypatch.chdir(own / "begin")
    monkeypatch.syspath_prepend(own / "begin")
    run = CliRunner().invoke(app, ["run", "run.toml", "--set", "rounds=2"])
    assert run.exit_code == 0, run.output
    assert "runs code outside edgesim: selection.policy = 'my_policy.MyPolicy'" in run.stdout
    monkeypatch.chdir(own)
    assert refused("init", "begin") == "error: begin: is not an empty folder; choose another one"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["new", "polcy", "mine"], "kind: unknown kind 'polcy', did you mean 'policy'?"),
        (
            ["new", "policy", "My-Policy"],
            "'My-Policy': expected a module name of small letters, digits and underscores",
        ),
        (["new", "policy", "class"], "'class': expected a module name"),
        (["new", "policy", "random"], "'random': is the name of an installed module"),
        (["new", "algorithm", "torch"], "'torch': is the name of an installed module"),
        (["new", "policy", "mine", "--folder", "own_helper.py"], "own_helper.py: cannot be written"),
    ],
)
def test_new_refuses_in_a_line(own, arguments, said):
    assert refused(*arguments).startswith(f"error: {said}")
    assert Path("own_helper.py").is_file()


def test_the_page_shows_the_templates_as_they_are():
    page = (Path(__file__).parents[1] / "docs/plug-ins.md").read_text()
    shown = set(re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL))
    folder = Path(new_command.__file__).parents[1] / "templates"
    kinds = [f"{kind}.py" for kind in TEMPLATES if kind not in ("algorithm", "protocol", "scenario")]
    assert {(folder / name).read_text() for name in (*kinds, "channel.toml")} <= shown
    skeleton = (Path(__file__).parents[1] / "docs/algorithms.md").read_text()
    assert f"```python\n{(folder / 'algorithm.py').read_text()}```" in skeleton
    protocols = (Path(__file__).parents[1] / "docs/writing-a-protocol.md").read_text()
    assert f"```python\n{(folder / 'protocol.py').read_text()}```" in protocols
    assert max(map(len, page.splitlines())) <= 120


def test_a_scenario_finds_plug_ins_of_the_current_folder(monkeypatch):
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    monkeypatch.setattr(sys, "argv", ["scenario"])
    with pytest.raises(SystemExit):
        start(lambda: None)
    assert sys.path == ["/nowhere", ""]
