"""The worlds by name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sellf.envs.admission import admission
from sellf.envs.attention import attention
from sellf.envs.build import Rules
from sellf.envs.drift import drifted
from sellf.envs.lending import lending, lending_amounts
from sellf.envs.recidivism import recidivism
from sellf.envs.school.world import school
from sellf.envs.table import tabulated
from sellf.envs.world import World
from sellf.errors import InputError
from sellf.fairness.checks import short
from sellf.fairness.registry import Registry


@dataclass(frozen=True)
class Kind:
    """A world that can be made by name."""

    make: Callable[..., World]
    rules: Rules | None
    """Default rules; None for an external world, which has settings only."""
    settings: tuple[str, ...]
    """Settings of the world in addition to the rules."""
    dynamics: str
    source: str | None = None
    """Name of its data table in `sellf.envs.tables.provenance`."""
    described: str | None = None
    """Reference for the law of a built-in world without a data table."""

    @property
    def takes(self) -> tuple[str, ...]:
        """All settings that the world accepts."""
        return self.settings if self.rules is None else (*self.settings, *RULES, *DRIFT)


def _adapt(thing: Any, name: str) -> Kind:
    """Return an external world, or a function that makes one, as an entry."""
    if isinstance(thing, World):
        world = thing
        return Kind(lambda: world, None, (), f"as given: {world.name}")
    if not callable(thing):
        raise InputError(
            f"world {name!r} is {short(thing)}: give a world, or a function that makes one."
        )
    text = (inspect.getdoc(thing) or "").partition("\n")[0]
    make: Any = thing
    return Kind(make, None, tuple(inspect.signature(make).parameters), text)


RULES = ("cost", "horizon", "population", "window", "start")
DRIFT = ("drift", "period")
WORLDS: Registry[Kind] = Registry("world", _adapt)
WORLDS |= {
    "lending": Kind(
        lending,
        Rules(cost=0.8, horizon=10_000),
        ("groups",),
        "accepted and repaid: one score class up; defaulted: one down",
        "fico",
    ),
    "lending-amounts": Kind(
        lending_amounts,
        Rules(cost=0.8, horizon=10_000),
        ("groups",),
        "a small loan repaid: one score class up, defaulted: one down; a large one: two",
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
    "attention": Kind(
        attention,
        Rules(cost=0.5, horizon=10_000, population=1000),
        ("rates", "dynamic_rate"),
        "attended: the risk of incidents falls; left alone: it grows",
        described="D'Amour et al. 2020, Fairness is not static, attention allocation",
    ),
    "admission": Kind(
        admission,
        Rules(cost=0.5, horizon=10_000, population=1000),
        ("costs", "again", "improvement", "noise"),
        "rejected: a score raised by effort, which costs groups differently; admitted: leaves",
        described="D'Amour et al. 2020, Fairness is not static, college admission",
    ),
}


def make_world(name: str, **settings: Any) -> World:
    """Make a world by name.

    Args:
        name: the paper's "lending", "recidivism", "school" and "school-continuous";
            "lending-amounts", with loans of two sizes; "attention" and "admission", after D'Amour
            et al. (2020); a world registered by `sellf.register` or an installed package; or
            "package.module:name".
        settings: the world's own settings: `groups` (lending: names of races, or "all";
            recidivism: "race" or "race-sex"), `microdata` and `state` (school: the path of INEP's
            file, and the state whose applicants are used, by default "SP"), `rates` and
            `dynamic_rate` (attention), `costs`, `again`, `improvement` and `noise` (admission); and
            the rules `cost`, `horizon`, `population`, `window` and `start`, to replace the
            defaults. `drift` describes changes from period to period, and `period` selects one:
            {"label": {"Black": -0.2}} shifts the log-odds of a good outcome in every period,
            {"arrivals": ...} the logarithm of a group's share; a list gives the shift in each
            period.
    """
    kind = WORLDS.find(name, typed=True)
    known = kind.takes
    for setting in settings:
        if setting not in known:
            listed = f"it has {', '.join(known)}" if known else "it has none"
            raise InputError(f"{name} has no setting {setting!r}: {listed}.")
    if kind.rules is None:
        return _from_outside(name, kind, settings)
    rules = kind.rules.changed(**{key: settings.get(key) for key in RULES})
    own = {key: value for key, value in settings.items() if key in kind.settings}
    made = kind.make(rules, **own)
    if "drift" not in settings:
        if "period" in settings:
            raise InputError("period is given without drift: say what changes, drift={...}.")
        return made
    return drifted(tabulated(made, "drift"), settings["drift"], settings.get("period", 0))


def _from_outside(name: str, kind: Kind, settings: dict[str, Any]) -> World:
    """Make an external world, under the name by which it can be made again."""
    made = kind.make(**settings)
    if not isinstance(made, World):
        raise InputError(
            f"{name} makes {short(made)}: return a world, of sellf.world_from_frame for example."
        )
    return replace(made, name=name)
