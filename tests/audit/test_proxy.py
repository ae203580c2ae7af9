"""Groups known by their probability: bounds as linear programs over all joint laws find them."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

import sellf
from sellf.audit.proxy import Bands, bands, ends
from sellf.audit.saved import read
from sellf.cli import main
from sellf.errors import InputError
from sellf.fairness.notions import TABLE, Counts
from sellf.logs.person import Person
from sellf.report import audit as page

RATES = [definition.alone for name, definition in TABLE.items() if name != "equalized-odds"]


def people(cells):
    """Return people by band of p: accepted and good, accepted and bad, rejected."""
    a, ay, p = [], [], []
    for chance, (good, bad, rejected) in cells.items():
        a += [1] * (good + bad) + [0] * rejected
        ay += [1] * good + [0] * (bad + rejected)
        p += [chance] * (good + bad + rejected)
    a, ay, p = (np.array(x, dtype=float) for x in (a, ay, p))
    return Person(a, ay, None, None), p


def enumerated(rate, cells, sign):
    """Return the extreme rate of members over all joint laws of band, group, decision, outcome.

    Variables are the numbers of members (g = 1) and others (g = 0) that are accepted and good,
    accepted and bad, rejected and good, rejected and bad in each band.
    """
    bands_ = list(cells.items())
    size = 8 * len(bands_)
    rows, right = [], []
    for k, (chance, (good, bad, rejected)) in enumerate(bands_):
        for members, count in (((0,), good), ((1,), bad), ((2, 3), rejected)):
            row = np.zeros(size)
            for y in members:
                row[[8 * k + y, 8 * k + 4 + y]] = 1
            rows.append(row)
            right.append(count)
        row = np.zeros(size)
        row[8 * k : 8 * k + 4] = 1
        rows.append(row)
        right.append(chance * (good + bad + rejected))
    kinds = [(1, 1, 1), (1, 0, 0), (0, 0, 1), (0, 0, 0)]  # A, A Y, Y
    low, high = 0.0, 1.0
    for _ in range(30):
        t = (low + high) / 2
        cost = np.zeros(size)
        for k in range(len(bands_)):
            for y, kind in enumerate(kinds):
                cost[8 * k + y] = rate.of.value(*kind) - t * rate.among.value(*kind)
        best = -linprog(-sign * cost, A_eq=np.array(rows), b_eq=right, bounds=(0, None)).fun
        possible = best >= -1e-9  # a rate of t or beyond
        if possible == (sign > 0):
            low = t
        else:
            high = t
    return (low + high) / 2


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_ranges_are_those_of_linear_programs_over_all_joint_laws(rate):
    rng = np.random.default_rng(0)
    for _ in range(2):
        chances = (0.1, 0.45, 0.8)
        cells = {c: tuple(20 * n for n in rng.integers(2, 12, 3).tolist()) for c in chances}
        person, p = people(cells)
        low, high = ends(rate, person, p, bands(p, None), 0.0)
        assert low == pytest.approx(enumerated(rate, cells, -1), abs=2e-5)
        assert high == pytest.approx(enumerated(rate, cells, 1), abs=2e-5)


def counted(rate, cells):
    """Return the extreme rates of members over every way to say who is one and who is good."""
    found = []
    for in_bands in product(*(_ways(chance, *counts) for chance, counts in cells.items())):
        a, ay, y, n = (sum(column) for column in zip(*in_bands, strict=True))
        whole = rate.among.total(Counts(n, a, ay, y - ay))
        if whole:
            found.append(rate.of.total(Counts(n, a, ay, y - ay)) / whole)
    return min(found), max(found)


def _ways(chance, good, bad, rejected):
    """Yield what members may come to in one band: accepted, accepted and good, good, people."""
    members = round(chance * (good + bad + rejected))
    for one, other, third, fourth in product(
        range(good + 1), range(bad + 1), range(rejected + 1), range(rejected + 1)
    ):
        # Of `third` rejected members `fourth` are good.
        if one + other + third == members and fourth <= third:
            yield one + other, one, one + fourth, members


@pytest.mark.parametrize("rate", RATES, ids=lambda rate: rate.name)
def test_ranges_are_those_of_all_people_who_may_be_members(rate):
    rng = np.random.default_rng(5)
    for _ in range(4):
        cells = {}
        for chance in (0.25, 0.5):
            good, bad = rng.integers(1, 6, 2).tolist()
            cells[chance] = (good, bad, 12 - good - bad)
        person, p = people(cells)
        # Bands of so few people would be put together.
        by = Bands((p > 0.3).astype(np.intp), 2, None)
        low, high = ends(rate, person, p, by, 0.0)
        assert (low, high) == pytest.approx(counted(rate, cells), abs=2e-5)


def log(seed=0, n=4000, effect=0.0):
    """Return a log of a hidden group; `effect` lowers its members' chance of acceptance."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.02, 0.1, 0.5, 0.9, 0.98], n)
    member = rng.random(n) < p
    good = rng.random(n) < 0.6
    accepted = rng.random(n) < np.where(member, 0.6 - effect, 0.6)
    return {
        "p": p,
        "a": accepted.astype(int),
        "y": np.where(accepted, good, np.nan),
        "member": member,
    }


def test_the_truth_is_within_the_bounds_and_the_usual_estimate_needs_its_assumption():
    columns = {"group_probability": "p", "decision": "a", "outcome": "y", "notion": "demographic"}
    held = fooled = 0
    for seed in range(12):
        found = sellf.audit(log(seed, effect=0.3), **columns, seed=seed).measures["proxy"]
        held += found.any_dependence.low <= -0.3 <= found.any_dependence.high
        fooled += not found.if_explained.low <= -0.3 <= found.if_explained.high
        assert found.any_dependence.low <= found.if_explained.low
    assert held >= 11
    assert fooled > 6  # given p the group does matter here, so the usual estimate is wrong


def test_a_proxy_that_is_certain_is_a_column_of_groups():
    made = log(3, n=3000, effect=0.2)
    made["p"] = made["member"].astype(float)
    made["g"] = np.where(made["member"], "p", "others")
    by_proxy = sellf.audit(
        made, group_probability="p", decision="a", outcome="y", notion="demographic", seed=0
    )
    recorded = sellf.audit(made, group="g", decision="a", notion="demographic", seed=0)
    for name in ("p", "others"):
        mine, known = by_proxy.by_group[name], recorded.by_group[name]
        assert (mine.low, mine.high) == pytest.approx((known.low, known.high), abs=0.01)


def test_it_is_read_back_reported_and_refused_where_it_cannot_be(tmp_path, capsys):
    found = sellf.audit(
        log(), group_probability="p", decision="a", outcome="y", notion="equalized-odds", seed=0
    )
    path = tmp_path / "audit.json"
    path.write_text(found.to_json())
    assert read(path).to_dict() == found.to_dict()
    assert "Groups that are not recorded" in page(found)
    columns = {"decision": "a", "outcome": "y"}
    with pytest.raises(InputError, match="divide per cents by 100"):
        sellf.audit({**log(), "p": 50 * log()["p"]}, group_probability="p", **columns)
    with pytest.raises(InputError, match="both named"):
        sellf.audit(log(), group="member", group_probability="p", **columns)
    with pytest.raises(InputError, match="panel"):
        sellf.audit(log(), group_probability="p", panel=True, **columns)
    import pandas as pd

    pd.DataFrame(log()).to_csv(tmp_path / "log.csv", index=False)
    words = [
        "--group-probability",
        "p",
        "--decision",
        "a",
        "--notion",
        "demographic",
        "--seed",
        "1",
    ]
    assert main(["audit", str(tmp_path / "log.csv"), *words]) == 0
    assert "for any dependence of group and outcome" in capsys.readouterr().out
