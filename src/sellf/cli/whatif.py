"""`sellf whatif` and `sellf improve`: evaluate or learn a policy from a log."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

from sellf import files, interrupts, report
from sellf.cli.arguments import File
from sellf.cli.audit import typed_options
from sellf.cli.audit_flags import ColumnFlags, ReadingFlags
from sellf.cli.showing import bar, check_plot, draw, waiting
from sellf.cli.whatif_flags import ImproveFlags, QuestionFlags, WhatIfFlags
from sellf.errors import InputError
from sellf.logs.configured import read_config
from sellf.logs.files import are_files, named_files
from sellf.text import plain, plain_json


def _read(
    log: str | None, flags: tuple[Any, ...], question: QuestionFlags
) -> tuple[str | list[str], dict[str, Any]]:
    """Return the log and its options; what is typed overrides a configuration."""
    typed = typed_options(*flags, question)
    typed.pop("html", None)
    found: dict[str, Any] = {}
    source: str | list[str] | None = log
    config = typed.pop("config", None)
    if config is not None:
        read = read_config(Path(config))
        known = {field.name for field in fields(QuestionFlags)} - {"config", "html"}
        own = {n: v for n, v in read.tables.get("audit", {}).items() if n in known}
        found, source = {**read.options, **own}, log if log is not None else read.log
    if source is None:
        raise InputError(
            "name a log: type for example `sellf whatif loans.csv --group race --decision approved "
            "--outcome repaid --propensity p --policy p_new`, or --config audit.toml."
        )
    return source, {**found, **typed}


def _check_html(page: Path | None, source: str | list[str]) -> None:
    """Refuse a report file that cannot be written, before any work is done."""
    if page is not None:
        report.check()
        files.check_output(page, named_files(source) if are_files(source) else (), "--html")


def _write_html(page: Path | None, result: Any) -> None:
    if page is not None:
        files.write(page, report.policy(result).encode())


def whatif(
    log: str | None,
    columns: ColumnFlags,
    reading: ReadingFlags,
    question: QuestionFlags,
    asked: WhatIfFlags,
    as_json: bool,
    plot: File,
) -> None:
    """Evaluate a policy, or every cut-off of a score, and print and plot the result."""
    from sellf.offline.cutoffs import cutoffs
    from sellf.offline.whatif import whatif as compare

    if (asked.policy is None) == (asked.cutoffs is None):
        raise InputError(
            "name one policy: type --policy and the column with its acceptance probabilities, or "
            "--cutoffs and the column whose cut-offs are to be tried."
        )
    source, options = _read(log, (columns, reading), question)
    check_plot(plot, named_files(source) if are_files(source) else ())
    _check_html(question.html, source)
    if question.html is not None and asked.policy is None:
        raise InputError("--html is for a policy: name one with --policy; use --plot for cut-offs.")
    result: Any
    if asked.policy is not None:
        notions = list(asked.notion) or None
        with waiting("comparing policies", "whatif"), interrupts.nothing_to_lose():
            result = compare(
                source, policy=asked.policy, cost=asked.cost, notions=notions, **options
            )
    else:
        if asked.cost is None:
            raise InputError(
                "cost is missing: type --cost and what accepting costs, as --cost 0.8."
            )
        notion = asked.notion[0] if asked.notion else "opportunity"
        with bar(f"cut-offs of {asked.cutoffs}") as progress, interrupts.nothing_to_lose():
            result = cutoffs(
                source,
                by=str(asked.cutoffs),
                cost=asked.cost,
                notion=notion,
                per_group=asked.per_group,
                progress=progress,
                **options,
            )
    print(plain_json(result.to_json()) if as_json else plain(result))
    draw(result, plot)
    _write_html(question.html, result)


def improve(
    log: str | None,
    columns: ColumnFlags,
    reading: ReadingFlags,
    question: QuestionFlags,
    asked: ImproveFlags,
    as_json: bool,
) -> None:
    """Learn and certify a policy, print the result, and save the policy if a folder is named."""
    from sellf.offline.improve import improve as learn

    source, options = _read(log, (columns, reading), question)
    _check_html(question.html, source)
    features = options.pop("features", ())
    if asked.cost is None or not features:
        raise InputError(
            "name features and a cost: type for example `sellf improve loans.csv --group "
            "race --decision approved --outcome repaid --propensity p --feature income --cost 0.8 "
            "-o policy`."
        )
    if asked.out is not None and asked.out.exists():
        raise InputError(f"--out {asked.out} exists: choose another name, or remove it first.")
    with bar("learning a policy") as progress, interrupts.nothing_to_lose():
        found = learn(
            source,
            features=features,
            cost=asked.cost,
            notion=asked.notion,
            kind=asked.kind,  # pyright: ignore[reportArgumentType]  # improve checks it
            use_group=asked.use_group,
            explore=asked.explore,
            reward_at_least=asked.reward_at_least,
            horizon=asked.horizon,
            progress=progress,
            **options,
        )
    if asked.out is not None and found.policy is not None:
        found.save(asked.out)
    _write_html(question.html, found)
    if as_json:
        print(plain_json(json.dumps(found.to_dict(), indent=2, ensure_ascii=False)))
    else:
        print(plain(found))
        if asked.out is not None and found.policy is not None:
            print(
                f"\nthe policy is in {asked.out}: card.md describes it, sellf.load_policy reads it."
            )
