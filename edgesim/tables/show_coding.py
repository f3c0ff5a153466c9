"""What `edgesim show` says of a run whose updates are coded, from its folder alone."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

_BY_SIZE = ("fit_at", "least", "plan")
_MEANINGS = {
    "error": "relative error {:.4g}",
    "missing": "the server lacks {:.4g} times the length of an update",
    "setting": "levels or numbers sent {:.4g}",
    "entropy_bits": "entropy of {:.4g} bits a number",
    "bits_over_plan": "{:.4g} bits an upload more than planned",
}
"""Texts of the rows ``codec`` of ``metrics``, by their keys."""
_OF_ALL = ("codec", "size", "feedback", "lost", "beside", "encode", *_BY_SIZE)


def coding_rows(config: Mapping[str, Any], run: Mapping[str, Any], metrics: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Names and texts of what a run's config, ``run.json`` and ``metrics`` tell of its codecs; none without codecs."""
    upload, download = (config.get(key, {}) for key in ("upload", "download"))
    if upload:
        size = " ".join([upload["size"], *(f"{key} {upload[key]}" for key in _BY_SIZE if upload.get(key) is not None)])
        yield "codec, size, feedback", f"{_named(upload)}, {size}, {upload['feedback']}"
    if "update_bits" in run:
        notice = f" ({run['update_bits_notice']})" if "update_bits_notice" in run else ""
        yield "bits of an update", f"{run['update_bits']:,} for {run['update_numbers']:,} numbers{notice}"
    if download:
        yield "codec down", f"{_named(download)}, {run['change_bits']:,} bits a change"
    shares = metrics.loc[metrics["name"] == "received_share", "value"]
    if len(shares):
        means = f"{shares.mean():.1%} in the mean, {(shares >= 1).mean():.1%} of them whole, {(shares == 0).mean():.1%}"
        yield "received of uploads", f"{means} not at all"
    of_codec = metrics[metrics["name"] == "codec"].groupby("key")["value"].mean()
    known = [text.format(of_codec[key]) for key, text in _MEANINGS.items() if key in of_codec.index]
    if known:
        yield "coding, mean of merges", ", ".join(known)


def _named(section: Mapping[str, Any]) -> str:
    """A codec with its options."""
    options = ", ".join(f"{key} {value}" for key, value in section.items() if key not in _OF_ALL)
    return f"{section['codec']} ({options})" if options else str(section["codec"])
