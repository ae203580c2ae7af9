"""The worlds by name."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from sellf.envs.build import Rules
from sellf.envs.lending import lending
from sellf.envs.recidivism import recidivism
from sellf.envs.school.world import school
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness.checks import one_of


@dataclass(frozen=True)
class Kind:
    """A world that can be made by name."""

    make: Callable[..., World]
    rules: Rules
    settings: tuple[str, ...]
    """What it takes beyond the rules."""
    dynamics: str
    source: str
    """The table in `sellf.envs.tables.provenance` that its figures come from."""


WORLDS: dict[str, Kind] = {
    "lending": Kind(
        lending,
        Rules(cost=0.8, horizon=10_000),
        ("groups",),
        "accepted and repaid: one score class up; defaulted: one down",
        "fico",
    ),
    "recidivism": Kind(
        recidivism,
        Rules(cost=0.9, horizon=2_048),
        ("groups",),
        "bailed and reoffended: one class of priors up",
        "compas",
    ),
    "school": Kind(
        school,
        Rules(cost=0.4, horizon=2_048),
        ("microdata", "state"),
        "older at every visit; accepted or passed: +0.5 to pass from then on",
        "school",
    ),
    "school-continuous": Kind(
        partial(school, grades=True),
        Rules(cost=0.4, horizon=2_048),
        ("microdata", "state"),
        "as school",
        "school",
    ),
}
RULES = ("cost", "horizon", "population", "window", "start")


def make_world(name: str, **settings: Any) -> World:
    """Make one of the paper's worlds: "lending", "recidivism", "school", "school-continuous".

    Args:
        name: which.
        settings: the world's own, `groups` (lending: names of races, or "all"; recidivism: "race"
            or "race-sex") `microdata` and `state` (school: the path of INEP's file, and whose
            applicants to take from it, by default "SP"); and the rules `cost`,
            `horizon`, `population`, `window`, `start`, where they are not to be the paper's.
    """
    one_of("name", name, tuple(WORLDS))
    kind = WORLDS[name]
    known = (*kind.settings, *RULES)
    for setting in settings:
        if setting not in known:
            raise InputError(f"{name} has no setting {setting!r}: it has {', '.join(known)}.")
    rules = kind.rules.changed(**{key: settings.get(key) for key in RULES})
    own = {key: value for key, value in settings.items() if key in kind.settings}
    return kind.make(rules, **own)
