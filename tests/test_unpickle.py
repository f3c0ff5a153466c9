import io
import os
import pickle

import numpy as np
import pytest

from edgesim.errors import EdgesimError
from edgesim.unpickle import load_plain, read_plain


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
    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

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


def test_only_the_latin_1_codec_is_used():
    import _codecs

    with pytest.raises(pickle.UnpicklingError, match="codec rot13"):
        load_plain(io.BytesIO(pickle.dumps(_Calls(_codecs.encode, "abc", "rot13"), 2)))


def test_a_broken_pickle_is_one_line_that_names_the_file(tmp_path):
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps({"a": [1, 2, 3]})[:-4])
    with pytest.raises(EdgesimError, match="batch: not a pickle of plain data") as caught:
        read_plain(path)
    assert "\n" not in str(caught.value)
