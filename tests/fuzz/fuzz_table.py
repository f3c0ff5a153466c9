"""How many inputs of each kind end how: ``python tests/fuzz/fuzz_table.py --inputs 30000 --draws 1``.

Goes on after a fault, and prints one input for each different one. ``--keep tests/fuzz/corpus``
puts the inputs that failed there, which `test_fuzz.py` types again.
"""

import argparse
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import hypothesis
from fuzz_inputs import BASE, KINDS, attempt
from fuzz_outcomes import GOOD
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edgesim.config_file import parse
from edgesim.simulation import composition as simulation


def tried(kind: str, count: int, draws: int, whole: Path, keep: Path | None) -> tuple[Counter[str], dict[str, str]]:
    """The outcomes of so many inputs of a kind, and an input for each different fault."""
    ends: Counter[str] = Counter()
    faults: dict[str, str] = {}

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @hypothesis.seed(draws)
    @given(st.data())
    def one(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory(dir=whole.parent) as place:
            folder = Path(place)
            os.chdir(folder)
            began_s = time.monotonic()
            ended, said, given = attempt(kind, data.draw, folder, whole, keep)
            ends[ended] += 1
            ends["slowest_s"] = max(ends["slowest_s"], round(time.monotonic() - began_s))
            if ended not in GOOD:
                faults.setdefault(f"{ended}: {said[:160]}", given)
            os.chdir(whole.parent)

    one()
    return ends, faults


def main() -> None:
    """Try inputs of all kinds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=0, help="seed of the inputs")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--keep", type=Path, help="folder for inputs that fail")
    wanted = parser.parse_args()
    kinds = wanted.kinds.split(",")
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "run"
        simulation.run(parse(BASE, "test"), whole)
        for kind in kinds:
            ends, faults = tried(
                kind, wanted.inputs // len(kinds), wanted.draws, whole, wanted.keep and wanted.keep.absolute()
            )
            print(kind, dict(sorted(ends.items())), flush=True)
            for fault, command in faults.items():
                print(f"  {fault}\n    " + command.replace("\n", "\n    "), flush=True)


if __name__ == "__main__":
    main()
