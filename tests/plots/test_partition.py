import numpy as np
import pytest

from edgesim.analysis.runs import RunFolder
from edgesim.folder.records import RunWriter
from edgesim.plots.partition import MOST_DEVICES, draw_partition


@pytest.fixture
def make_run(tmp_path):
    def make(*frames) -> RunFolder:
        writer = RunWriter(tmp_path / "run", {}, {})
        for frame, counts in enumerate(frames):
            ids = np.arange(len(counts))
            writer.write(
                "devices", {"device": ids, "frame": [frame] * len(ids), "class_counts": np.array(counts).tolist()}
            )
        writer.close("finished")
        return RunFolder(tmp_path / "run", {}, 0)

    return make


def images(figure):
    return [axes.images[0] for axes in figure.axes if axes.images]


def test_every_cell_is_a_count_and_what_nobody_holds_is_blank(make_run):
    figure = draw_partition(make_run([[5, 0, 1], [0, 40, 2]], [[5, 0, 1], [0, 40, 2]]))
    (image,) = images(figure)
    shown = image.get_array()
    assert shown.filled(0).tolist() == [[5, 0], [0, 40], [1, 2]]
    assert shown.mask.tolist() == [[False, True], [True, False], [False, False]]
    assert (image.norm.vmin, image.norm.vmax) == (1, 40)
    # All samples: (5, 40, 3) / 48; mixes (5, 0, 1) / 6 and (0, 40, 2) / 42.
    first = abs(5 / 6 - 5 / 48) + 40 / 48 + abs(1 / 6 - 3 / 48)
    second = 5 / 48 + abs(40 / 42 - 40 / 48) + abs(2 / 42 - 3 / 48)
    assert figure.axes[0].get_title(loc="left") == f"mean EMD {(first + second) / 2:.2f}"
    assert [text.get_text() for text in figure.axes[-1].get_yticklabels()] == ["1", "10", "40"]


def test_data_that_change_have_a_panel_per_change_on_one_scale(make_run):
    figure = draw_partition(make_run([[8, 0], [8, 0]], [[4, 4], [8, 0]]))
    assert [axes.get_title(loc="left")[:8] for axes in figure.axes[:2]] == ["frame 0:", "frame 1:"]
    assert [image.norm.vmax for image in images(figure)] == [8, 8]


@pytest.mark.parametrize("devices", [1, 40, 41, MOST_DEVICES, 3 * MOST_DEVICES])
def test_of_very_many_devices_some_are_drawn_and_it_is_said_so(make_run, devices):
    counts = np.arange(1, 2 * devices + 1).reshape(devices, 2)
    figure = draw_partition(make_run(counts))
    shown = images(figure)[0].get_array()
    assert shown.shape == (2, min(devices, MOST_DEVICES))
    assert shown[:, [0, -1]].T.tolist() == counts[[0, -1]].tolist()
    some = f" ({MOST_DEVICES} of {devices:,} shown)" if devices > MOST_DEVICES else ""
    assert figure.axes[0].get_xlabel() == f"device{some}"
    for tick, label in zip(figure.axes[0].get_xticks(), figure.axes[0].get_xticklabels(), strict=True):
        assert counts[int(label.get_text()), 0] == shown[0, int(tick)]
