"""Bits, weights and ledger of a run's algorithm over its rounds, without torch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edgesim import joining
from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning.algorithms import make_halves
from edgesim.learning.algorithms.local_half import has_own
from edgesim.learning.algorithms.merge_rules import IN_ROUNDS, MergeRule
from edgesim.learning.algorithms.privacy import account, why_unknown
from edgesim.learning.algorithms.records import Arrivals, Devices, Sizes
from edgesim.learning.algorithms.server_half import BY_CLASSES, BY_NORMS, EQUAL, Around, counts
from edgesim.learning.algorithms.staleness import weights
from edgesim.learning.batches import make_local_work
from edgesim.learning.charges import make_download_charges, make_upload_charges, numbers_of
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import START, When
from edgesim.learning.federation import Federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.payload import BITS_PER_PARAMETER, Network
from edgesim.learning.rates import rate_in
from edgesim.selection.column import Column
from edgesim.streams import Streams


class Accounts:
    """Both halves of the algorithm and the protocol's merge rule of one run, with the records that need no torch."""

    def __init__(
        self,
        config: RunConfig,
        federation: Federation,
        streams: Streams,
        network: Network,
        rule: MergeRule = IN_ROUNDS,
    ) -> None:
        """A model costs 32 bits per parameter, unless ``round.payload_bits`` is a number."""
        payload_bits = config.round.payload_bits
        self.model_bits = float(BITS_PER_PARAMETER * network.parameters if payload_bits == "model" else payload_bits)
        sizes = Sizes(
            self.model_bits,
            devices=config.devices.count,
            classes=federation.class_count,
            private=int(federation.frames[1].sizes.sum()),
            public=len(federation.public),
            **vars(network),
        )
        self.local, self.server = make_halves(config.algorithm, sizes, streams)
        self.rule = rule
        self.up = make_upload_charges(config, self.model_bits, len(self.local.vectors_up))
        """Charges of coded uploads; None where updates travel as they are."""
        self.down = make_download_charges(config, self.model_bits)
        """Charges of coded downloads, and the version that each device has; None where models travel as they are."""
        self.adds_lost = config.upload is not None and config.upload.lost == "add"
        """Whether devices remember updates whose uploads are lost."""
        self.work = make_local_work(config.learning, streams, config.devices.count)
        """Steps or epochs, and batch size, of each device's jobs."""
        self.measured = joining.measured(config.joining)
        """Samples whose accuracies after each epoch decide who joins; None where none are measured."""
        self.looked_at: frozenset[str] = frozenset()
        """Inputs of the policy: `edgesim.selection.view.Selector.looks_at`."""
        self.models = 0
        """Merges so far of at least one update."""
        self._config = config
        self._federation = federation
        self.ledger: Any = self.server.ledger(1, None)
        self._is_open = True
        self.when = START
        """Instant at which the round was last opened."""
        self.held: Holdings = federation.frames[1]
        """Data sets of the devices at that instant."""
        self.before: Holdings = federation.frames[0]
        """Data sets with which policies compare `held`."""
        self.is_due = True
        """Whether the round in flight makes a model (``merging``)."""
        self.has_model = np.zeros(config.devices.count, dtype=bool)
        """Devices that have the server's model and are not sent it again, [N]."""
        self._first = self.before
        """Data sets of the devices when the round was first opened."""
        self._first_when = START

    def facts(self) -> dict[str, Any]:
        """Entries of ``run.json`` about the algorithm and the public images that the config does not state."""
        rule = self.server.weighs_by if self.local.options.sends_models else EQUAL
        weights = {} if rule in ("", BY_NORMS, BY_CLASSES) else {"update_weights": rule}
        public = len(self._federation.public)
        facts = weights | ({"public_images": public} if public else {})
        if self.up is not None:
            facts |= {"update_numbers": numbers_of(self.model_bits), "update_bits": self.up.update_bits}
            facts |= self.up.rule.facts()
        if self.down is not None:
            facts["change_bits"] = self.down.change_bits
        return facts

    def open_round(self, when: When) -> None:
        """Open a round, or open it again with other data; the ledger is asked for in the first of each frame."""
        if when[:2] != self.when[:2]:
            self.before = self._federation.drift.before(when, self._first)
            self._first, self._first_when = self._federation.drift.at(when), when
        self.when, self.held = when, self._federation.drift.at(when)
        if not self._is_open:
            self._is_open, self.ledger = True, self.server.ledger(when.round, self.ledger)

    def snapshot(self) -> dict[str, Any]:
        """Snapshot between two rounds, by name."""
        of_data = {"when": tuple(self.when), "first": tuple(self._first_when)}
        of_devices: dict[str, Any] = {"has_model": self.has_model}
        if self.down is not None:
            of_devices["version"] = self.down.version
        if self.up is not None:
            of_devices["sizes"] = self.up.rule.state, self.up.last_bits
        return {"ledger": self.ledger, "models": self.models, "is_open": self._is_open, **of_devices, **of_data}

    def restore(self, remembered: Mapping[str, Any]) -> None:
        """Restore the result of `snapshot`."""
        self.ledger, self.models, self._is_open = (remembered[name] for name in ("ledger", "models", "is_open"))
        self.has_model = remembered["has_model"]
        if self.down is not None:
            self.down.version = remembered["version"]
        if self.up is not None:
            state, self.up.last_bits = remembered["sizes"]
            self.up.rule.restore(state)
            self.up.plan()
        self.when, self._first_when = When(*remembered["when"]), When(*remembered["first"])
        drift = self._federation.drift
        # The present data sets come last: laws remember their last answer.
        self._first, self.held = drift.at(self._first_when), drift.at(self.when)

    @property
    def data_move(self) -> bool:
        """Whether data may change at other instants than the end of a frame."""
        return self._federation.drift.moves

    @property
    def drift_note(self) -> str:
        """Warning about the drift law before the run; empty where there is none."""
        return self._federation.drift.warning

    def have_moved(self, t_s: float) -> bool:
        """Whether devices hold other data at an instant than when the round was last opened."""
        return self.data_move and self._federation.drift.at(self.when._replace(t_s=t_s)) is not self.held

    def end_frame(self) -> None:
        """End a frame."""
        self._is_open = False

    @property
    def local_ledger(self) -> Any:
        """The ledger that the local half sees."""
        return self.ledger.inner if isinstance(self.ledger, Around) else self.ledger

    @property
    def settled_at_begin(self) -> bool:
        """Whether bits and computing of a device are known only when it begins to work."""
        return has_own(self.local, "begin")

    def server_s(self, updates: int) -> float:
        """Simulated seconds that the server computes on so many updates of a round before its model is there."""
        return 0.0 if self.server.training is None else self.server.training.server_s(updates)

    def begin(self, ids: Integers, round: int) -> None:
        """Let devices [n] begin to work at once, which settles their bits and their computing."""
        if self.settled_at_begin:
            self.local.begin(self._devices(ids), round, self.local_ledger)

    @property
    def sends(self) -> bool:
        """Whether devices send their updates in the round in flight."""
        return self.is_due or self._config.merging is None or self._config.merging.skip == "sent"

    def received(self, ids: Sequence[int]) -> None:
        """Note devices that have the model: with ``merging`` it is sent once, unless updates are always sent."""
        merging = self._config.merging
        if merging is not None and merging.skip != "sent":
            self.has_model[list(ids)] = True

    def download_bits(self, ids: Integers, round: int) -> Floats:
        """Bits that each device receives, [n]."""
        bits = self._checked("download_bits", ids, self.server.download_bits(self._devices(ids), round, self.ledger))
        if self.down is not None:
            bits = self.down.coded(bits, ids, self.models)
        return bits if self._config.merging is None else np.where(self.has_model[ids], 0.0, bits)

    def settle(self, ids: Integers, round: int) -> Floats:
        """Bits that each device sends once the band is shared, [n]."""
        if not self.sends:
            return np.zeros(len(ids))
        bits = self._checked("upload_bits", ids, self.local.upload_bits(self._devices(ids), round, self.local_ledger))
        return bits if self.up is None else self.up.coded(bits, ids)

    def expected_weights(self, ids: Integers) -> Floats:
        """Weight of each device's update in a mean, up to a common factor, before it is merged, [n]."""
        return np.asarray(counts(self.server, self.held.sizes[ids]), dtype=np.float64)

    def _checked(self, method: str, ids: Integers, bits: Floats) -> Floats:
        """Bits that a method of a half returned, [n]; raises `EdgesimError` for anything but a number of bits each."""
        fine = (bits >= 0) & (bits < np.inf)
        # To count takes a tenth of what `all` does.
        if np.shape(bits) != ids.shape or np.count_nonzero(fine) < len(ids):
            answer = f"an array of shape {np.shape(bits)} for {len(ids)} devices"
            if np.shape(bits) == ids.shape:
                answer = f"{bits[~fine][0]:g} for device {ids[~fine][0]}"
            name = self._config.algorithm.name
            raise EdgesimError(
                f"algorithm {name!r}: {method} returned {answer}; expected 0 or more bits for each device"
            )
        return bits

    def _devices(self, ids: Integers) -> Devices:
        return Devices(ids, self.held.class_counts, self.held.sizes)

    def charged_samples(self, ids: Integers, round: int) -> Floats:
        """Samples that FedAvg trains on in the time that each device computes in a round, [n]."""
        devices = self._devices(ids)
        samples = self.work.samples_per_job(ids, devices.sizes)
        # Forward passes over the whole data set before and after training, and over what is held out after each epoch;
        # one costs a third of training.
        passes = 2 / 3 * devices.sizes if "loss_drops" in self.looked_at else 0.0
        if self.measured == "held_out":
            passes = passes + self._federation.drift.held_out.sizes(ids) * self.work.epochs[ids] / 3
        if self.up is not None:
            passes = passes + self.up.encode_samples
        if self._config.algorithm.compute_cost == "equal":
            return np.asarray(samples + passes, dtype=np.float64)
        return np.asarray(samples * self.local.compute_factor(devices, samples, round, self.local_ledger) + passes)

    def plan(self, ids: Integers, round: int) -> tuple[Column, Column]:
        """Bits that each device is planned to receive and to send, [n] each, computed for the devices that are read."""
        down = Column(len(ids), lambda rows: self.download_bits(ids[rows], round))
        return down, Column(len(ids), lambda rows: self.settle(ids[rows], round))

    def used(self, arrived: Sequence[Arrived]) -> list[Arrived]:
        """Updates whose jobs are to run."""
        return [update for update in arrived if update.picked or self.server.merges == "all arrivals"]

    def arrivals(self, used: Sequence[Arrived], began: Integers, change: Floats | None = None) -> Arrivals:
        """Rows of a merge, without tensors; ``change`` [S] is `relative_change`, if staleness needs it.

        Raises `EdgesimError` for a task whose update was merged before.
        """
        for update in used:
            promise = update.promise
            if promise.merged:
                raise EdgesimError(
                    f"round.protocol {self._config.round.protocol!r}: merges the update of device {promise.device} "
                    f"that began in round {promise.round} twice",
                    "round.protocol",
                )
            promise.merged = True
        ids = np.array([update.promise.device for update in used], dtype=np.int64)
        ages = np.array([update.staleness for update in used], dtype=np.int64)
        classes = self.held.class_counts.shape[1]
        counts = np.array([update.promise.class_counts for update in used] if classes else [], dtype=np.int64)
        learning, began_in = self._config.learning, [update.promise.round for update in used]
        lr_in = {round: rate_in(learning, round) for round in set(began_in)}
        return Arrivals(
            ids=ids,
            samples=np.array([update.promise.samples for update in used], dtype=np.int64),
            round=self.when.round,
            began_in=np.array(began_in, dtype=np.int64),
            staleness=ages,
            age_weight=weights(self._config.staleness, ages, change),
            picked=np.array([update.picked for update in used], dtype=bool),
            lr=np.array([lr_in[round] for round in began_in], dtype=np.float64),
            began=began,
            all_samples=self.held.sizes,
            class_counts=counts.reshape(len(ids), classes),
            round_lr=rate_in(learning, self.when.round),
        )

    def weigh(self, arrived: Arrivals) -> Floats:
        """Weight of each update by algorithm and protocol, [S]."""
        return self.rule.weigh(self.server, arrived)

    def report(self, arrived: Arrivals) -> dict[tuple[str, str], float]:
        """Rows of ``metrics`` by (name, key) about a round that is about to be merged.

        They are those of the algorithm and, where data move, the samples that each update began with
        (``class_samples``, by device/class).
        """
        rows = self.server.report(self.ledger, arrived)
        if self.data_move:
            of_classes = np.argwhere(arrived.class_counts)
            keys = (f"{arrived.ids[row]}/{label}" for row, label in of_classes.tolist())
            counts = arrived.class_counts[tuple(of_classes.T)].tolist()
            rows = rows | {("class_samples", key): float(count) for key, count in zip(keys, counts, strict=True)}
        return rows

    def note(self, arrived: Arrivals, alpha: Floats) -> Floats:
        """Note a merge of updates with the weights ``alpha``, [S]; returns their weights in the model, [S]."""
        if len(arrived.ids):
            self.models += 1
            self.has_model[:] = False
        return self.server.note(self.ledger, replace(arrived, alpha=alpha))

    def privacy(self, uploads: Mapping[int, int], has_buffers: bool) -> dict[str, Any]:
        """Entries of ``run.json`` on privacy, for a number of uploads by device; empty without ``[privacy]``."""
        config = self._config
        if config.privacy.mechanism == "none":
            return {}
        unknown = why_unknown(config, self.server.weighs_by, has_buffers, len(self._federation.frames) - 1)
        return {"privacy": account(config.privacy, unknown, uploads, self.models)}
