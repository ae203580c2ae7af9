"""Execution of a run by a worker, common to all engines."""

from typing import Any


def attempt(run: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Execute a run; return its files, or the reason why there are none."""
    from sellf.algorithms.catalogue import ALGORITHMS
    from sellf.errors import InputError
    from sellf.fairness.notions import TABLE
    from sellf.studies.execute import perform
    from sellf.training.loop import DivergedError
    from sellf.training.spec import from_json

    try:
        # Import whatever the study's file names, as where the file was read.
        TABLE.find(run["notion"], typed=True)
        ALGORITHMS.find(run["algorithm"], typed=True)
        return {}, perform(from_json(run))
    except DivergedError as error:
        # A run that diverges with these settings would diverge again.
        return {"kind": "diverged", "reason": str(error)}, {}
    except InputError as error:
        # A refused run may succeed later, once its cause is fixed.
        return {"kind": "refused", "reason": error.typed}, {}
    except Exception as error:
        return {"kind": "died", "reason": f"{type(error).__name__}: {error}"}, {}
