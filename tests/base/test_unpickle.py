import io
import os
import pickle

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.base.unpickle import load_plain, read_plain


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_containers_numbers_strings_and_arrays_are_read_back(protocol):
    value = {
        "text": "é",
        "bytes": b"\x00\xff",
        "numbers": [1, 2.5, True, None, 10**30],
        "pair": (1, "a"),
        "array": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "floats": np.array([0.5, -1.0]),
        "scalar": np.float64(0.25),
    }
    read = load_plain(io.BytesIO(pickle.dumps(value, protocol)), arrays=True)
    assert read.keys() == value.keys()
    for key in ("text", "bytes", "numbers", "pair", "scalar"):
        assert read[key] == value[key]
    for key in ("array", "floats"):
        np.testing.assert_array_equal(read[key], value[key], strict=True)


def test_byte_strings_of_python_2_come_back_as_latin_1_text():
    assert load_plain(io.BytesIO(b"(U\x04data\x94U\x01\xe9\x94t.".replace(b"\x94", b""))) == ("data", "é")


class _Calls:
    """Is pickled as a call, and as a state that is given by hand."""

    def __init__(self, function, *arguments, state=None):
        self.reduced = (function, arguments, state)

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (_Calls(os.system, "touch never"), "system"),
        (_Calls(eval, "1"), "builtins.eval|__builtin__.eval"),
        (_Calls(getattr, 1, "real"), "getattr"),
        (pytest.approx, "approx"),
        (np.random.default_rng, "default_rng"),
        ({"deep": [_Calls(os.getcwd)]}, "getcwd"),
    ],
)
def test_a_class_or_function_is_refused_by_name_and_not_called(value, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arrays in (False, True):
        with pytest.raises(pickle.UnpicklingError, match=name):
            load_plain(io.BytesIO(pickle.dumps(value)), arrays)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("protocol", [2, 4])
def test_arrays_are_built_only_where_they_are_wanted(protocol):
    scalars = {"mean": np.float64(0.25), "count": np.int32(7)}
    assert load_plain(io.BytesIO(pickle.dumps(scalars, protocol))) == scalars
    with pytest.raises(pickle.UnpicklingError, match="_reconstruct"):
        load_plain(io.BytesIO(pickle.dumps({"data": np.arange(3)}, protocol)))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8"])
def test_numbers_of_any_size_and_byte_order_are_read_back(kind, order):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(np.dtype(kind).newbyteorder(order))
    for array in (values, np.asfortranarray(values), values[:0]):
        read = load_plain(io.BytesIO(pickle.dumps([array, array], 4)), arrays=True)
        np.testing.assert_array_equal(read[0], array, strict=True)
        assert read[1] is read[0]
        assert read[0].flags.writeable
    scalar = load_plain(io.BytesIO(pickle.dumps(values[0, 1], 2)))
    assert scalar == 1
    assert type(scalar) is type(values[0, 1])


def _scalar_of(dtype, raw=b"AAAAAAAA"):
    return _Calls(np.float64(0).__reduce__()[0], dtype, raw)


def _array_of(state):
    return _Calls(np.empty(0).__reduce__()[0], np.ndarray, (0,), b"b", state=state)


_OWN = (3, "|", None, ("p",), {"p": (1, 0)}, 8, 1, 27)
_NAMED = (3, "|", None, ("p",), {"p": (_Calls(np.dtype, "O8", False, True), 0)}, 8, 1, 27)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        # A field of objects over eight bytes: NumPy would take them for the address of one.
        (_scalar_of(_Calls(np.dtype, "V8", False, True, state=_NAMED)), "asks for the NumPy type '[VO]8'"),
        (_scalar_of(_Calls(np.dtype, "f8", False, True, state=_NAMED)), "asks for the NumPy type 'O8'"),
        (_scalar_of(_Calls(np.dtype, "f8", False, True, state=_OWN)), "a NumPy type with a state of its own"),
        (_scalar_of(np.dtype("f8"), b"AAAA"), "not the bytes of their type"),
        (_scalar_of(np.dtype("f8"), [1, 2]), "not the bytes of their type"),
        (_scalar_of("f8"), "not the bytes of their type"),
        (np.datetime64("2020-01-01"), "asks for the NumPy type 'M8'"),
        (np.dtype("f8"), "asks for a DType"),
        ({1, 2}, "asks for (a |__builtin__.|builtins.)set,"),
        ([frozenset({1})], "asks for (a |__builtin__.|builtins.)frozenset,"),
        ({"a": (bytearray(b"a"),)}, "asks for (a |__builtin__.|builtins.)bytearray,"),
        (1j, "complex"),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_what_is_no_plain_value_is_refused_whatever_the_file_says_of_it(value, said, protocol):
    for arrays in (False, True):
        with pytest.raises(pickle.UnpicklingError, match=said):
            load_plain(io.BytesIO(pickle.dumps(value, protocol)), arrays)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.array(["a", None], dtype=object), "asks for the NumPy type 'O8'"),
        (_array_of((1, (2,), np.dtype("f8"), False, b"AAAAAAAA")), "not the bytes of their type"),
        (_array_of((1, (10**9, 10**9), np.dtype("f8"), False, b"AAAAAAAA")), "not the bytes of their type"),
        (_array_of((1, (-1,), np.dtype("f8"), False, b"AAAAAAAA")), "an array without a shape"),
        (_array_of(None), "asks for a Array"),
        (_Calls(np.ndarray, (10**12,)), "an array that is not made by"),
    ],
)
def test_a_forged_array_is_refused(value, said):
    with pytest.raises(pickle.UnpicklingError, match=said):
        load_plain(io.BytesIO(pickle.dumps(value, 4)), arrays=True)


def test_a_file_cannot_change_its_reader_nor_use_another_codec_than_latin_1_and_a_broken_one_is_named(tmp_path):
    import _codecs

    with pytest.raises(pickle.UnpicklingError, match="codec rot13"):
        load_plain(io.BytesIO(pickle.dumps(_Calls(_codecs.encode, "abc", "rot13"), 2)))
    (tmp_path / "batch").write_bytes(pickle.dumps({"a": [1, 2, 3]})[:-4])
    with pytest.raises(EdgesimError, match=r"batch: not a pickle of plain data[^\n]*$"):
        read_plain(tmp_path / "batch")
    # GLOBAL _codecs encode, BUILD with (None, {"call": 1}): would set an attribute.
    with pytest.raises(pickle.UnpicklingError, match="a change of the reader"):
        load_plain(io.BytesIO(b"c_codecs\nencode\n(N(U\x04callI1\ndtb."))


def test_a_container_that_holds_itself_is_refused_and_one_met_often_is_looked_through_once():
    loop = []
    loop.append([loop])
    with pytest.raises(pickle.UnpicklingError, match="a container that holds itself"):
        load_plain(io.BytesIO(pickle.dumps(loop)))
    doubled = []
    for _ in range(60):
        doubled = [doubled, doubled]
    load_plain(io.BytesIO(pickle.dumps(doubled)))
