"""What a worker does with a message, whichever engine brought it."""

from typing import Any

from sellf.studies.records import RunSpec


def attempt(run: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Do a run; return its files, or why there are none."""
    from sellf.errors import InputError
    from sellf.studies.work import perform

    try:
        return {}, perform(RunSpec(**run))
    except InputError as error:
        # What one cannot train with these settings will not train another time either.
        return {"kind": "diverged", "reason": str(error)}, {}
    except Exception as error:
        return {"kind": "died", "reason": f"{type(error).__name__}: {error}"}, {}
