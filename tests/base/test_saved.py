"""Records packed into JSON and arrays come back as they were, to the last bit; anything else is refused in one line."""

import enum
import json
import math
import struct
import subprocess
import sys
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors.numpy import load, save

from edgesim.base.errors import EdgesimError
from edgesim.base.saved import pack, unpack
from edgesim.selection.oort import Oort, OortOptions, OortState

DTYPES = ["bool", "int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64"]


@dataclass
class Leaf:
    value: Any
    more: Any = None

    @cached_property
    def counted(self) -> int:
        return 1


@dataclass(frozen=True)
class Frozen:
    value: Any


@dataclass(slots=True)
class Slotted:
    value: Any


@dataclass
class Loud:
    """Its code must not run when it comes back."""

    value: int
    built: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.built.append(self.value)


class Colour(enum.IntEnum):
    RED = 1


Pair = namedtuple("Pair", "one other")


def written(record: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """What a reader of files finds: the JSON as text and the arrays as safetensors writes them."""
    packed, named = pack(record)
    return json.loads(json.dumps(packed, allow_nan=False)), load(save(named))


def again(record: Any) -> Any:
    return unpack(type(record), *written(record))


def assert_same(one: Any, other: Any) -> None:
    """Types, order, numbers to the last bit, and where an array's axes lie in memory."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
        assert one.flags.f_contiguous == other.flags.f_contiguous
    elif isinstance(one, torch.Tensor):
        assert (one.dtype, one.shape, one.device) == (other.dtype, other.shape, other.device)
        assert torch.equal(one.nan_to_num(7), other.nan_to_num(7))
    elif isinstance(one, float):
        assert struct.pack("d", one) == struct.pack("d", other) or (math.isnan(one) and math.isnan(other))
    elif isinstance(one, dict):
        assert_same(list(one.items()), list(other.items()))
    elif isinstance(one, set):
        assert_same(sorted(one, key=repr), sorted(other, key=repr))
    elif isinstance(one, list | tuple | deque):
        assert getattr(one, "maxlen", None) == getattr(other, "maxlen", None)
        assert len(one) == len(other)
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)
    elif is_dataclass(one):
        for each in fields(one):
            assert_same(getattr(one, each.name), getattr(other, each.name))
    else:
        assert one == other or one != one


numbers = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
numpy_numbers = st.sampled_from(DTYPES).flatmap(lambda name: arrays(name, ())).map(lambda array: array[()])
keys = st.recursive(st.integers() | st.text() | numpy_numbers, lambda inner: st.tuples(inner, inner), max_leaves=3)
numpy_arrays = st.sampled_from(DTYPES).flatmap(lambda name: arrays(name, array_shapes(min_dims=0, min_side=0)))
tensors = st.sampled_from(["bool", "int64", "float32", "float64"]).flatmap(
    lambda name: arrays(name, array_shapes(min_dims=0, min_side=0)).map(torch.from_numpy)
)
values = st.recursive(
    numbers | numpy_numbers | numpy_arrays | numpy_arrays.map(np.transpose) | tensors,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.tuples(st.lists(inner, max_size=4), st.none() | st.integers(0, 3)).map(lambda of: deque(*of))
        | st.dictionaries(keys, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.builds(Leaf, inner, inner)
        | st.builds(Frozen, inner)
        | st.builds(Slotted, inner)
    ),
    max_leaves=12,
)


@given(values)
def test_a_record_of_anything_that_can_be_saved_comes_back_as_it_was(value):
    record = Leaf(value, 1)
    assert_same(record, again(record))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(6.0)[::2],
        torch.tensor([1.5, math.inf, -(2.0**-130)], dtype=torch.bfloat16),
        torch.tensor(0.25, dtype=torch.bfloat16),
        torch.tensor([1.0, 65504.0], dtype=torch.float16),
    ],
    ids=lambda tensor: f"{tensor.dtype} {tuple(tensor.shape)}",
)
def test_a_tensor_comes_back_as_a_tensor(tensor):
    found = again(Leaf(tensor)).value
    assert type(found) is torch.Tensor
    assert_same(found, tensor)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_tensor_comes_back_to_its_device_on_a_gpu():
    found = again(Leaf(torch.arange(3.0, device="cuda"))).value
    assert (str(found.device), found.tolist()) == ("cuda:0", [0.0, 1.0, 2.0])


def test_one_model_that_a_thousand_devices_hold_is_stored_once_and_comes_back_as_one():
    model, log = torch.zeros(1000), np.zeros(3)
    record = Leaf(dict.fromkeys(range(1000), model), [log, Frozen(log)])
    packed, named = pack(record)
    assert sum(array.nbytes for array in named.values()) == 4000 + 24
    assert len(json.dumps(packed)) < 50_000
    found = again(record)
    assert len({id(tensor) for tensor in found.value.values()}) == 1
    found.more[0][1] = 5.0
    assert found.more[1].value.tolist() == [0.0, 5.0, 0.0]


def test_lists_and_records_in_several_places_come_back_as_one_object_even_in_a_ring():
    shared, task = [1], Leaf(1)
    ring = Leaf({"a": shared, "b": task, "c": {7: deque([task])}}, shared)
    ring.value["ring"] = ring
    found = again(ring)
    assert found.value["ring"] is found
    assert found.value["a"] is found.more
    assert found.value["b"] is found.value["c"][7][0]
    # Equal is not the same.
    apart = again(Leaf([1], [1]))
    assert apart.value is not apart.more


def test_the_order_of_sets_of_texts_does_not_hang_on_the_process():
    assert pack({"x", "yy", "z", "a", "bb"})[0] == {"set": ["a", "bb", "x", "yy", "z"]}


def test_neither_packing_nor_unpacking_loads_torch():
    code = (
        "import sys, numpy as np; from edgesim.base.saved import pack, unpack\n"
        "assert unpack(dict, *pack({'a': np.arange(3.0), 'b': [1, None]}))['b'] == [1, None]\n"
        "assert 'torch' not in sys.modules and 'simpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arrays_are_named_after_their_places_and_share_their_memory():
    record = Leaf({"c": {3: np.zeros(2)}}, [np.ones(1)])
    _, named = pack(record)
    assert list(named) == ["record.value['c'][3]", "record.more[0]"]
    record.more[0][0] = 9.0
    assert named["record.more[0]"].tolist() == [9.0]


def test_what_comes_back_can_be_changed_even_where_the_file_is_read_only():
    packed, named = pack(Leaf(np.zeros(3), torch.zeros(3)))
    for array in named.values():
        array.flags.writeable = False
    found = unpack(Leaf, packed, named)
    found.value[0] = found.more[0] = 1.0
    assert [array.sum() for array in named.values()] == [0.0, 0.0]


def test_no_code_of_a_record_runs():
    found = again(Loud(3))
    assert (found.value, found.built) == (3, [3])


def test_what_is_worked_out_of_a_record_is_left_out():
    leaf = Leaf(1)
    assert leaf.counted == 1
    assert "counted" not in json.dumps(pack(leaf)[0])


def local() -> Any:
    @dataclass
    class Inside:
        value: int

    return Inside(3)


def with_another_attribute() -> Leaf:
    leaf = Leaf(1)
    leaf.extra = 2  # type: ignore[attr-defined]
    return leaf


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (print, "cannot save a builtin_function_or_method; expected numbers, texts, arrays, data classes"),
        (Colour.RED, "cannot save a Colour"),
        (Pair(1, 2), "cannot save a Pair"),
        (OrderedDict(a=1), "cannot save a OrderedDict"),
        (b"x", "cannot save a bytes"),
        (np.str_("x"), "cannot save a str_ of <U1"),
        (np.array([None]), "cannot save a ndarray of object"),
        (np.array([1.0], dtype=">f8"), "cannot save a ndarray of >f8"),
        (np.ma.array([1.0]), "cannot save a MaskedArray"),
        (np.random.default_rng(0), "cannot save a Generator"),
        (torch.nn.Parameter(torch.zeros(1)), "cannot save a Parameter"),
        (torch.zeros(1, requires_grad=True), "cannot save a tensor that requires a gradient; detach it"),
        (torch.zeros(2, 2).to_sparse(), "cannot save a tensor"),
        ({Frozen(1): 2}, "cannot save a Frozen as a key or in a set; expected numbers and texts"),
        ({(1, Frozen(1))}, "cannot save a tuple as a key or in a set"),
        ({Colour.RED: 1}, "cannot save a Colour"),
        (Leaf, "cannot save a type"),
        (local(), "cannot save a local.<locals>.Inside; define it at the top of its module"),
        (Slotted.__new__(Slotted), "has no value yet, and a Slotted is saved whole"),
        (with_another_attribute(), "is no field of Leaf and would be lost; declare it"),
    ],
    ids=lambda told: type(told).__name__ if not isinstance(told, str) else "refused",
)
def test_what_cannot_come_back_is_refused_with_its_place(value, says):
    with pytest.raises(EdgesimError) as refusal:
        pack(Leaf([0, value]))
    place, _, told = str(refusal.value).partition(": ")
    assert place in ("record.value[1]", "record.value[1].value", "record.value[1].extra")
    assert told.startswith(says)
    assert "\n" not in str(refusal.value)


HERE = Leaf.__module__
LEAF = {"record": f"{HERE}:Leaf", "fields": {"value": 1, "more": None}}


def leaf_of(node: Any) -> Any:
    return {**LEAF, "fields": {"value": node, "more": None}}


@pytest.mark.parametrize(
    ("packed", "says"),
    [
        (leaf_of({"record": "os:environ", "fields": {}}), "record.value: os:environ is not of edgesim"),
        (leaf_of({"record": "subprocess:Popen", "fields": {"args": "true"}}), "subprocess:Popen is not of edgesim"),
        (leaf_of({"record": "edgesimulator:Leaf", "fields": {}}), "edgesimulator:Leaf is not of edgesim"),
        (
            leaf_of({"record": "edgesim.base.errors:EdgesimError", "fields": {}}),
            "there is no data class edgesim.base.errors:Edge",
        ),
        (leaf_of({"record": "edgesim.base.saved:sys.exit", "fields": {}}), "there is no data class"),
        (leaf_of({"record": "edgesim.__main__:main", "fields": {}}), "there is no data class"),
        (leaf_of({"record": "two\nlines", "fields": {}}), "two"),
        ({**LEAF, "fields": {"value": 1}}, "record: Leaf has the fields value, more (got value)"),
        ({**LEAF, "fields": {"value": 1, "more": 2, "most": 3}}, "has the fields value, more (got value, more, most)"),
        ({"record": f"{HERE}:Frozen", "fields": {"value": 1}}, "record: expected a Leaf (got a Frozen)"),
        (None, "record: expected a Leaf (got a NoneType)"),
        (leaf_of({"pickle": "x"}), "is not what was written"),
        (leaf_of({"same": "record.more"}), "is not what was written"),
        (leaf_of({"array": "record.value"}), "record.value: 'record.value'"),
        (leaf_of({"tensor": "there", "dtype": "float64", "device": "nowhere"}), "record.value: "),
        (leaf_of({"scalar": 300, "dtype": "int8"}), "record.value: "),
        (leaf_of({"scalar": 3, "dtype": "object"}), "is not what was written"),
        (leaf_of({"set": [[1]]}), "unhashable"),
        (leaf_of([0, {"tuple": [1, {"float": 3}]}]), "record.value[1][1]: is not what was written"),
    ],
    ids=str,
)
def test_a_hostile_or_damaged_record_is_one_line_that_names_the_place(packed, says):
    with pytest.raises(EdgesimError) as refusal:
        unpack(Leaf, packed, {"there": np.zeros((2, 3))})
    message = str(refusal.value)
    assert message.startswith("saved record")
    assert says in message
    assert "\n" not in message
    assert "edgesim.__main__" not in sys.modules, "nothing is imported for the sake of a record"


def test_a_tower_of_lists_is_refused_without_end_of_the_stack():
    tower: list[Any] = []
    for _ in range(100_000):
        tower = [tower]
    with pytest.raises(EdgesimError, match="recursion"):
        unpack(Leaf, leaf_of(tower), {})


def test_data_classes_of_a_users_module_come_back_where_the_module_is_named():
    record = Oort(OortOptions(), 2, 0).state
    record.exploited = Leaf(3)  # type: ignore[assignment]
    packed, named = pack(record)
    assert unpack(OortState, packed, named, modules=[HERE]).exploited == Leaf(3)
    with pytest.raises(EdgesimError, match=f"record.exploited: {HERE}:Leaf is not of edgesim, nor of a module"):
        unpack(OortState, packed, named)


words = ["tuple", "set", "dict", "same", "float", "scalar", "dtype", "array", "axes", "tensor", "device", "fields"]
nodes = st.recursive(
    numbers | st.sampled_from(["inf", "float64", "record.value[1][0]", "cpu"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(words), inner, max_size=3),
    max_leaves=4,
)


def attempt(packed: Any, named: dict[str, np.ndarray]) -> Any:
    try:
        return unpack(Leaf, packed, named)
    except EdgesimError as error:
        return str(error)


@given(st.data())
def test_whatever_is_changed_in_a_saved_record_it_comes_back_or_is_one_line(data):
    record = Leaf({1: [np.zeros(2), (1.5, math.inf)], "x": {2, 3}}, Frozen([deque([torch.ones(2), np.int8(1)], 3)]))
    packed, named = written(record)
    node, holder, key = packed, {}, ""
    while isinstance(node, dict | list) and node and data.draw(st.integers(0, 5)):
        holder, key = node, data.draw(st.sampled_from(range(len(node)) if isinstance(node, list) else sorted(node)))
        node = node[key]
    holder[key] = data.draw(nodes)
    found = attempt(packed, named)
    assert type(found) is Leaf or "\n" not in found
