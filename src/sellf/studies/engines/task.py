"""What a worker does with a message, whichever engine brought it."""

from typing import Any


def attempt(run: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Do a run; return its files, or why there are none."""
    from sellf.algorithms.catalogue import ALGORITHMS
    from sellf.errors import InputError
    from sellf.fairness.notions import TABLE
    from sellf.studies.execute import perform
    from sellf.training.loop import DivergedError
    from sellf.training.spec import from_json

    try:
        # What a study's file names is imported here as it was where the file was read.
        TABLE.find(run["notion"], typed=True)
        ALGORITHMS.find(run["algorithm"], typed=True)
        return {}, perform(from_json(run))
    except DivergedError as error:
        # What one cannot train with these settings will not train another time either.
        return {"kind": "diverged", "reason": str(error)}, {}
    except InputError as error:
        # Nor now, but once what it names is mended.
        return {"kind": "refused", "reason": error.typed}, {}
    except Exception as error:
        return {"kind": "died", "reason": f"{type(error).__name__}: {error}"}, {}
