"""One palette: an algorithm looks the same in a figure of a study and in a report."""

import re

import pytest

pytest.importorskip("matplotlib")

from matplotlib.markers import MarkerStyle

from sellf import palette
from sellf.numbers import figure, tick
from sellf.report.charts import zoomed
from sellf.report.page import colours
from sellf.report.svg import mark


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_colour_can_be_seen_on_its_background():
    """By WCAG 2, lines and marks need a contrast of 3 with what is behind them."""
    for look in palette.LOOKS:
        assert 1.05 / (luminance(look.light) + 0.05) >= 2.9, look
        assert (luminance(look.dark) + 0.05) / (luminance("#12171d") + 0.05) >= 3, look


def test_algorithms_differ_in_colour_in_dashes_or_in_marker():
    own = list(palette.ALGORITHMS.values())
    assert len({look.light for look in own}) == len(own)
    assert len({look.marker for look in own}) == len(own)


def test_reports_and_figures_draw_an_algorithm_alike():
    from sellf.studies.plots import style

    sheet = colours()
    names = [*palette.ALGORITHMS, "an own one"]
    for name, place, drawn in zip(names, palette.places_of(names), style.looks(names), strict=True):
        look = palette.LOOKS[place]
        assert f"--c{place}: {drawn.color};" in sheet, name
        assert palette.MATPLOTLIB[look.marker] == drawn.marker
    several = ["sellf", "ppo", "sellf"]
    assert [look.color for look in style.looks(several)] == [
        palette.LOOKS[i].light for i in palette.places_of(several)
    ]
    assert len({look.color for look in style.looks(several)}) == 3


def test_policies_from_elsewhere_look_different_from_each_other_and_from_ours():
    for others in (["SB3 PPO", "SB3 PPO, deterministic"], ["a", "i"], ["own", "own, again", "x"]):
        names = ["ppo", "sellf-direct", *others]
        looks = [palette.LOOKS[place] for place in palette.places_of(names)]
        assert len({look.light for look in looks}) == len(names)
        assert looks[:2] == [palette.ALGORITHMS[name] for name in names[:2]]


@pytest.mark.parametrize("name", list(palette.SHAPES))
def test_shapes_have_as_many_corners_as_matplotlib_draws(name):
    style = MarkerStyle(palette.MATPLOTLIB[name])
    corners = {tuple(v) for v in style.get_path().vertices.round(6).tolist()}
    assert len(palette.SHAPES[name]) == len(corners) or name == "square"
    assert len(re.findall(r"[ML]", mark(name, 0, 0))) == len(palette.SHAPES[name])


def test_numbers_are_written_one_way():
    written = {0.1234: "0.123", 12.34: "12.3", 1234.5: "1,234", 20000: "20,000", 7: "7"}
    assert {value: figure(value) for value in written} == written
    assert figure(None) == figure(float("nan")) == figure(float("inf")) == "—"
    assert [tick(v) for v in (0, 0.05, 150.0, 20_000.0)] == ["0", "0.05", "150", "20,000"]


def test_axes_show_the_part_in_which_shares_differ():
    low, high = zoomed([0.50, 0.52, float("nan")])
    assert 0.45 < low < 0.50
    assert 0.52 < high < 0.57
    assert zoomed([0.1, 0.9]) == (0.0, 1.0)
    assert zoomed([0.0, 0.01])[0] == 0.0
    assert zoomed([float("nan")]) == (0.0, 1.0)
