"""Plain arrays in place of a world: what selectors see, and an admission rule that answers them."""

from dataclasses import dataclass, field

import numpy as np

from edgesim.selection.view import Feedback, RoundReport, RoundView, Spending
from edgesim.streams import Streams


@dataclass
class PlainKnowledge:
    """Knowledge read from arrays of one row per device; remembers which devices were asked about what."""

    counts: np.ndarray
    previous: np.ndarray | None = None
    batches: np.ndarray | None = None
    loss: np.ndarray | None = None
    norm: np.ndarray | None = None
    deviation: np.ndarray | None = None
    per_bit: np.ndarray | None = None
    asked: dict = field(default_factory=dict)

    def class_counts(self, ids, source):
        return self.source(source)[ids]

    def previous_class_counts(self, ids):
        return (self.counts if self.previous is None else self.previous)[ids]

    def global_shares(self, source):
        counts, sizes = self.source(source), self.counts.sum(axis=1)
        return (counts / counts.sum(axis=1, keepdims=True) * sizes[:, None]).sum(axis=0) / sizes.sum()

    def losses(self, ids):
        self.asked["losses"] = ids.tolist()
        return self.loss[ids]

    def update_norms(self, ids):
        self.asked["update_norms"] = ids.tolist()
        return self.norm[ids]

    def sent_norms(self, ids, room_bits=None):
        self.asked["sent_norms"] = ids.tolist()
        return self.norm[ids] if self.per_bit is None else self.per_bit[ids] * room_bits()

    def gradient_deviations(self, ids):
        self.asked["gradient_deviations"] = ids.tolist()
        return self.deviation[ids]

    def source(self, source):
        return self.counts if source == "dataset" or self.batches is None else self.batches


@dataclass
class PlainEstimates:
    """An estimates read from arrays of one row per candidate; by default everybody is ready at once and stays."""

    ids: np.ndarray
    most: int
    download: np.ndarray | None = None
    ready: np.ndarray | None = None
    due: float = 1.0
    upload: np.ndarray | None = None
    leaves: np.ndarray | None = None
    room: np.ndarray | None = None
    leaves_cell: np.ndarray | None = None
    asked: list = field(default_factory=list)

    def places(self):
        return min(self.most, len(self.ids))

    def download_s(self, rows):
        return np.zeros(len(rows)) if self.download is None else self.download[rows]

    def ready_s(self, rows):
        return np.zeros(len(rows)) if self.ready is None else self.ready[rows]

    def due_s(self, rows):
        return np.full(len(rows), self.due)

    def upload_s(self, rows, at_once):
        self.asked.append(at_once)
        return np.full(len(rows), 0.5) if self.upload is None else self.upload[rows]

    def finish_s(self, rows, at_once):
        return self.ready_s(rows) + self.upload_s(rows, at_once)

    def room_bits(self, rows, at_once):
        self.asked.append(at_once)
        return self.room[rows]

    def leaves_s(self, rows, horizon_s):
        until_s = np.full(len(rows), np.inf) if self.leaves is None else self.leaves[rows]
        return np.where(until_s >= horizon_s, np.inf, until_s)

    def leaves_cell_s(self, rows, horizon_s):
        until_s = np.full(len(rows), np.inf) if self.leaves_cell is None else self.leaves_cell[rows]
        return np.where(until_s >= horizon_s, np.inf, until_s)


def view_of(
    knowledge, ids=None, need_hz=None, gain=None, times_selected=None, seed=0, places=10**9, estimates=None, **when
):
    count = len(knowledge.counts)
    ids = np.arange(count) if ids is None else np.asarray(ids, dtype=np.int64)

    def column(values, default):
        return np.full(len(ids), default) if values is None else np.asarray(values)[ids]

    when = {
        "round": 1, "frame": 1, "round_in_frame": 1, "rounds_in_frame": 2, "t_s": 0.0, "tmax_s": 1.0, "batch_size": 16
    } | when  # fmt: skip
    return RoundView(
        ids=ids,
        gain=column(gain, 1e-11),
        delay_s=np.full(len(ids), 0.1),
        need_hz=column(need_hz, 1.0),
        samples=knowledge.counts.sum(axis=1)[ids],
        work_samples=np.full(len(ids), 5 * when["batch_size"]),
        times_selected=column(times_selected, 0),
        streams=Streams(seed),
        knowledge=knowledge,
        estimates=PlainEstimates(ids, places, **(estimates or {})),
        **when,
    )


def report_of(round=1, checked_in=(), selected=(), heard=None, gradients=None, length_s=1.0, received=None, **columns):
    """What a selector hears; ``heard`` are those whose updates were merged, by default all selected."""
    checked_in, selected = np.asarray(checked_in, dtype=np.int64), np.asarray(selected, dtype=np.int64)
    heard = selected if heard is None else np.asarray(heard, dtype=np.int64)
    columns = {
        name: np.broadcast_to(np.asarray(columns.get(name, default), dtype=np.float64), heard.shape)
        for name, default in {
            "duration_s": 0.5,
            "upload_s": 0.2,
            "loss": 1.0,
            "loss_rms": 1.0,
            "accuracy": 0.5,
            "loss_drop": 0.1,
        }.items()
    }
    return RoundReport(
        round=round,
        who_checked_in=lambda: checked_in,
        selected=selected,
        arrived=heard[np.isin(heard, selected)],
        feedback=Feedback(ids=heard, **columns),
        gradients=gradients,
        length_s=length_s,
        t_s=length_s * round,
        accuracy=None,
        what_was_spent=lambda: Spending(0.0, 0.0, 0.0),
        received=received,
    )


def offers(choice, accept):
    """Devices offered and devices taken, both in order, when ``accept(device, taken)`` answers."""
    offered, taken = [], []

    def answer(device):
        offered.append(device)
        accepted = accept(device, taken)
        if accepted:
            taken.append(device)
        return accepted

    try:
        offer = next(choice)
        while True:
            several = isinstance(offer, np.ndarray)
            answers = np.array([answer(device) for device in offer.tolist()]) if several else answer(offer)
            offer = choice.send(answers)
    except StopIteration:
        return offered, taken


def schedule(choice, view, band_hz=np.inf):
    """Devices offered and devices taken, both in order, when least bandwidths must fit one band."""
    need_hz = dict(zip(view.ids.tolist(), view.need_hz.tolist(), strict=True))
    return offers(choice, lambda device, taken: sum(need_hz[one] for one in [*taken, device]) <= band_hz)
