"""The gallery's real files, from raw to figures in one command; skipped where they are absent."""

import json
from pathlib import Path

import pytest

from sellf.cli import main

pytest.importorskip("duckdb")
REAL = Path(__file__).parents[3] / "shared" / "data" / "real"
STOPS, CARDS = REAL / "nypd_sqf_2014.csv.gz", REAL / "amex_1988.csv"
WEAPONS = "pistol | riflshot | asltweap | knifcuti | machgun | othrweap"


def audited(capsys, *words) -> dict:
    assert main(["audit", *map(str, words), "--seed", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow  # tests/datasets audits the same file, and counts it by hand
@pytest.mark.skipif(not STOPS.exists(), reason="the file is not here")
def test_the_stops_of_2014_give_the_published_rates(capsys):
    asked = [STOPS, "--group", "race", "--groups", "Black=B,White=W", "--decision", "frisked"]
    asked += ["--accepted-value", "Y", "--outcome", WEAPONS, "--hide-rejected-outcomes"]
    asked += ["--positive-value", "Y", "--negative-value", "N", "--negative-value", " "]
    found = audited(capsys, *asked, "--negative-value", "1", "--notion", "predictive-parity")
    rates = {row["group"]: row for row in found["by_group"]}
    assert round(rates["Black"]["value"], 3) == 0.027
    assert round(rates["White"]["value"], 3) == 0.065
    assert round(rates["Black"]["accepted"] / rates["Black"]["people"], 2) == 0.70
    assert round(rates["White"]["accepted"] / rates["White"]["people"], 2) == 0.56
    assert found["quality"]["rows"] == 45_787


@pytest.mark.skipif(not CARDS.exists(), reason="the file is not here")
def test_the_cards_of_1988_are_read_with_bands_and_a_bad_outcome(capsys):
    asked = [CARDS, "--group", "AGE", "--bands", "AGE=25,62", "--decision", "CARDHLDR"]
    asked += ["--outcome", "DEFAULT", "--negative-value", "1", "--hide-rejected-outcomes"]
    found = audited(capsys, *asked, "--notion", "predictive-parity")
    assert sum(row["people"] for row in found["by_group"]) == 13_444
    # 10,499 cards and 996 defaults among them, Greene's figures.
    cards = sum(row["accepted"] for row in found["by_group"])
    kept = sum(row["accepted"] * row["naive"] for row in found["by_group"])
    assert (cards, round(cards - kept)) == (10_499, 996)
