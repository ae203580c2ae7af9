"""The files of one run: their contents and their integrity."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from sellf import files
from sellf.errors import InputError
from sellf.studies.plan import key_of
from sellf.studies.records import Record

if TYPE_CHECKING:
    from sellf.training.spec import RunSpec

SUMS = "sha256sums"
NEEDED = ("config.json", "results.safetensors")
KNOWN = (*NEEDED, "agent.safetensors", "world.safetensors")
"""The files that a run may have; other names are refused, so names cannot act as paths."""


class DamagedError(InputError):
    """Raised if a run's folder is not as it was written."""


def sealed(contents: dict[str, bytes]) -> dict[str, bytes]:
    """Return files together with their checksums, in the format of `sha256sum --check`."""
    sums = "".join(f"{sha256(text).hexdigest()}  {name}\n" for name, text in contents.items())
    return contents | {SUMS: sums.encode()}


def flat(metrics: dict[str, np.ndarray], evaluation: Any) -> dict[str, np.ndarray]:
    """Return metrics and an evaluation as a flat mapping of arrays."""
    return {
        **{f"metrics.{name}": value for name, value in metrics.items()},
        **{f"disparities.{name}": value for name, value in evaluation.disparities.items()},
        **{f"by_time.{name}": value for name, value in evaluation.by_time.items()},
        "rewards": evaluation.rewards,
        "acceptances": evaluation.acceptances,
    }


def unflat(
    arrays: dict[str, np.ndarray], run: "RunSpec", groups: list[str]
) -> tuple[dict[str, np.ndarray], Any]:
    """Return metrics and evaluation from the result of `flat`."""
    from sellf.training.evaluation import Evaluation

    def part(name: str) -> dict[str, np.ndarray]:
        start = f"{name}."
        return {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}

    _check_shapes(arrays, len(groups))
    evaluation = Evaluation(
        notion=run.notion,
        groups=tuple(groups),
        rewards=arrays["rewards"],
        disparities=part("disparities"),
        acceptances=arrays["acceptances"],
        by_time=part("by_time"),
    )
    # Earlier versions wrote a figure even where no label was predicted.
    return part("metrics"), evaluation if run.has_predictor else evaluation.without_imputed()


POINTS = ("reward", "disparity", "disparity_imputed", "disparity_accepted", "disparity_exact")
BY_GROUP = ("acceptance", "qualification")


def _check_shapes(arrays: dict[str, np.ndarray], groups: int) -> None:
    """Refuse an incomplete evaluation, since tables and figures rely on every part."""
    (deployments,), (points,) = arrays["rewards"].shape, arrays["by_time.time"].shape
    over_time = 1 if len(arrays["by_time.reward"]) == 1 else deployments
    views = ("true", "imputed", "accepted", "exact")
    shapes = {
        **{f"disparities.{view}": (deployments,) for view in views},
        "acceptances": (deployments, groups),
        # In an archive, these are averaged over deployments.
        **{f"by_time.{name}": (over_time, points) for name in POINTS},
        **{f"by_time.{name}": (over_time, points, groups) for name in BY_GROUP},
    }
    bad = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    bad += [name for name in ("rewards", "acceptances") if not np.isfinite(arrays[name]).all()]
    # A disparity is NaN where it is not defined.
    bad += [name for view in views if np.isinf(arrays[name := f"disparities.{view}"]).any()]
    if bad or not deployments or not points:
        raise ValueError(f"{', '.join(bad) or 'rewards'} is not valid in an evaluation")


def check_whole(name: str, contents: dict[str, bytes]) -> None:
    """Refuse a run whose files, including its checksums, are not as they were written."""
    own = {file: content for file, content in contents.items() if file != SUMS}
    try:
        sums = read_sums(contents[SUMS])
        if set(sums) != set(own):
            raise ValueError(f"{SUMS} names other files")
    except (KeyError, ValueError) as error:
        raise DamagedError(f"run {name} is damaged ({error}).") from None
    compare(name, own, sums)
    read_record(name, own)


def is_name(text: str) -> bool:
    """Return whether a text is a valid name of a run."""
    return len(text) == 32 and set(text) <= set("0123456789abcdef")


def read_sums(content: bytes) -> dict[str, str]:
    """Return checksums by file."""
    lines = content.decode().splitlines()
    sums = {file: digest for digest, file in (line.split("  ", 1) for line in lines)}
    strange = [file for file in sums if file not in KNOWN]
    if strange:
        raise ValueError(f"{SUMS} names {strange[0][:60]!r}, which no run has")
    return sums


def compare(name: str, contents: dict[str, bytes], sums: dict[str, str]) -> None:
    """Refuse files with other checksums, and missing files."""
    bad = [f for f, content in contents.items() if sha256(content).hexdigest() != sums[f]]
    lost = set(NEEDED) - set(sums)
    if bad or lost:
        raise DamagedError(
            f"run {name} is damaged: {', '.join([*bad, *sorted(lost)])} is not as it was written."
        )


def read_record(name: str, contents: dict[str, bytes]) -> Record:
    """Return the run that the files contain."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    from sellf.training.spec import from_json

    try:
        config = files.parse_json(contents["config.json"])
        if key_of(config["run"]) != name:
            raise DamagedError(f"run {name} holds another run, {key_of(config['run'])}.")
        run = from_json(config["run"])
        arrays = load(contents["results.safetensors"])
        groups = list(map(str, config["world_rules"]["groups"]))
        metrics, evaluation = unflat(arrays, run, groups)
        return Record(run, evaluation, metrics, float(config["seconds"]))
    except DamagedError:
        raise
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(f"run {name} is damaged ({type(error).__name__}: {error}).") from None
