"""`sellf whatif` and `sellf improve` as they are typed."""

import csv
import json

import pytest

import sellf
from sellf.cli import main
from tests.offline.logs import log

CONFIG = """format = 1

[log]
file = "loans.csv"

[columns]
group = "race"
decision = "approved"
outcome = "repaid"
propensity = "p"
person = "who"
time = "day"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log in which everybody is decided about twice, and its configuration."""
    path = tmp_path_factory.mktemp("loans")
    parts = [log(1500, seed, new=lambda x, group: (x > 0.4) * 1.0) for seed in (1, 2)]
    with (path / "loans.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*parts[0], "who", "day"])
        for day, part in enumerate(parts):
            for who, row in enumerate(zip(*part.values(), strict=True)):
                writer.writerow(["" if value != value else value for value in row] + [who, day])
    (path / "audit.toml").write_text(CONFIG)
    return path


def test_improve_reads_a_configuration_and_writes_policy_and_report(folder, tmp_path, capsys):
    words = ["improve", "--config", str(folder / "audit.toml"), "--feature", "x", "--cost", "0.45"]
    words += ["--omega", "0.3", "--reward-at-least", "0.2", "--explore", "0.05", "--horizon", "3"]
    words += ["--html", str(tmp_path / "page.html"), "-o", str(tmp_path / "policy"), "--seed", "1"]
    assert main([*words, "--json"]) in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert told["certified"]
    assert len(told["long_term"]["rows"]) == 3
    assert told["exploration_costs"]["low"] <= told["exploration_costs"]["high"]
    page = (tmp_path / "page.html").read_text()
    assert "Over time: a model, not certified" in page
    assert "What exploration costs" in page
    assert sellf.load_policy(tmp_path / "policy").explore == 0.05


def test_whatif_writes_a_report_of_a_policy_only(folder, tmp_path, capsys):
    words = ["whatif", "--config", str(folder / "audit.toml"), "--cost", "0.45", "--seed", "1"]
    page = str(tmp_path / "page.html")
    asked = ["--notion", "opportunity", "--html", page]
    assert main([*words, "--policy", "new", *asked]) in (0, None)
    assert "Who gains, who loses, by group" in (tmp_path / "page.html").read_text()
    assert main([*words, "--cutoffs", "x", "--html", str(tmp_path / "other.html")]) == 2
    assert "--html is for a policy" in capsys.readouterr().err
