"""`sellf audit`: audit a decision log and print the result as a table or as JSON."""

import sys
from dataclasses import fields, replace
from itertools import combinations
from json import dumps
from pathlib import Path
from typing import Any

from sellf import files, interrupts, report
from sellf.audit import Audit, Audits, audit, audit_all
from sellf.audit.measured import Measured
from sellf.audit.terms import Words
from sellf.cli.audit_flags import ColumnFlags, JudgeFlags, MeasureFlags, OutputFlags, ReadingFlags
from sellf.cli.showing import waiting
from sellf.errors import InputError
from sellf.fairness.notions import Notion
from sellf.logs.configured import read_config
from sellf.logs.files import are_files, named_files
from sellf.text import plain_json


def run(
    log: str | None,
    columns: ColumnFlags,
    reading: ReadingFlags,
    judge: JudgeFlags,
    measures: MeasureFlags,
    output: OutputFlags,
) -> None:
    """Audit a log and print the result.

    Args:
        log: the file, or a configuration that names it.
        columns: the columns of the log.
        reading: how the log is read.
        judge: the notion, the tolerance and how intervals are computed.
        measures: measures in addition to the disparity.
        output: the files and formats to write.
    """
    if output.json_schema:
        from sellf.audit.schema import schema

        print(dumps(schema(), indent=2))
        return
    typed = typed_options(columns, reading, judge, measures)
    if output.init:
        from sellf.cli.audit_init import init

        init(log, typed, output.out, yes=output.yes)
        return
    if output.out is not None or output.yes:
        raise InputError("--out and --yes go with --init: leave them out, or type --init.")
    source, options, words = _configured(log, typed, output.words)
    failing = _failing(output.fail_on)
    instead = next((name for name in ("compare", "mask_test") if options.get(name)), None)
    if instead is not None:
        # Before the outputs are checked: --pdf would ask for a browser that is not needed.
        _check_alone(instead.replace("_", "-"), output)
    _check_output(source, output)
    if output.save is not None:
        _save(output.save, output.example)
    options = {**_defaults(), **options}
    if instead is not None:
        # A library may swallow Ctrl-C.
        with waiting("auditing", *_work(source, options)), interrupts.nothing_to_lose():
            found = _in_its_place(source, options)
        print(plain_json(found.to_json()) if output.json else found)
        return
    work = _work(source, options)
    notion = options.pop("notion")
    with waiting("auditing", *work), interrupts.nothing_to_lose():
        result = _example(notion, options) if output.example else _audit(source, notion, options)
    for kind, path in _reports(output).items():
        files.write(path, report.audit_as(result, kind, words))
    # If the page goes to standard output, the table goes to standard error.
    alone = output.html is not None and files.is_stdout(output.html)
    print(_text(result, output.json, words), file=sys.stderr if alone else sys.stdout)
    audits = list(result.by_notion.values()) if isinstance(result, Audits) else [result]
    if any(audit.verdict in failing for audit in audits):
        sys.stdout.flush()
        raise SystemExit(FAILED)


def _work(log: Any, options: dict[str, Any]) -> tuple[str, float]:
    """Return the kind of audit and the bytes it reads, from which its duration is estimated."""
    asked = [name for name in SLOWER if options.get(name)]
    # A configuration may hold any value; an unknown notion is refused where it is looked up.
    kind = " ".join(["audit", str(options["notion"]), *asked])
    try:
        paths = named_files(log) if are_files(log) else []
        size = sum(path.stat().st_size for path in paths)
    except (InputError, OSError):  # reported when the log is read
        return kind, 1.0
    return (f"{kind} {paths[0].suffix}", float(size)) if size else (kind, 1.0)


SLOWER = ("compare", "mask_test", "panel", "ladder", "within", "features", "by", "anytime")
"""Options with which an audit takes longer."""


def _reports(output: OutputFlags) -> dict[str, Path]:
    """Return the report files to write, by format."""
    kinds = {"html": output.html, "xlsx": output.xlsx, "pdf": output.pdf}
    return {kind: path for kind, path in kinds.items() if path is not None}


def _in_its_place(log: Any, options: dict[str, Any]) -> Measured:
    """Run what replaces an audit: the comparison of two logs, or a test with masked outcomes."""
    from sellf.audit.change import audit_change
    from sellf.audit.masking import mask_test

    old, masked = options.pop("compare", None), options.pop("mask_test", False)
    repeats = {"repeats": options.pop("repeats")} if "repeats" in options else {}
    if old and masked:
        raise InputError("--compare and --mask-test cannot be combined: type one of them.")
    if log is None:
        raise InputError("name the log: type `sellf audit --compare OLD NEW --group ...`.")
    if old:
        return audit_change(old, log, **options)
    return mask_test(log, **repeats, **options)


def _check_alone(command: str, output: OutputFlags) -> None:
    """Refuse output options that apply to the result of an audit only."""
    given = [*_reports(output), *(["fail-on"] if output.fail_on is not None else [])]
    if given:
        raise InputError(
            f"--{command} prints a table, or JSON with --json: leave --{given[0]} out."
        )


FAILED = 3
"""The exit code for a verdict that --fail-on names."""


def typed_options(*flags: Any) -> dict[str, Any]:
    """Return the options that were typed, by their names in `sellf.audit`."""
    typed = {
        field.name: getattr(one, field.name)
        for one in flags
        for field in fields(one)
        if getattr(one, field.name) != field.default
    }
    if "feature" in typed:
        typed["features"] = typed.pop("feature")
    return {n: list(v) if isinstance(v, tuple) else v for n, v in typed.items()}


def _defaults() -> dict[str, Any]:
    found = {field.name: field.default for field in fields(JudgeFlags)}
    return {**found, "group": [], "decision": None}


def _configured(
    log: str | None, typed: dict[str, Any], words: str | None
) -> tuple[Any, dict[str, Any], Words | None]:
    """Return the log, the options and the words of a report; what is typed takes precedence."""
    if log is None or not log.lower().endswith(".toml"):
        return log, typed, Words.of(words)
    asked = (*fields(JudgeFlags), *fields(MeasureFlags))
    known = tuple(field.name for field in asked)
    found = read_config(Path(log), {"audit": (*known, "words")})
    own = dict(found.tables.get("audit", {}))
    said = own.pop("words", None)
    return found.log, {**found.options, **own, **typed}, Words.of(words or said)


def _failing(verdict: str | None) -> tuple[str, ...]:
    """Return the verdicts for which the command exits with code 3."""
    if verdict is None:
        return ()
    if verdict not in ("unfair", "undetermined"):
        raise InputError(
            f"--fail-on is {verdict!r}: type --fail-on unfair, or --fail-on undetermined to stop "
            "at open verdicts as well."
        )
    return ("unfair",) if verdict == "unfair" else ("unfair", "undetermined")


def _check_output(log: Any, output: OutputFlags) -> None:
    """Refuse output files that cannot be written or coincide, before any work is done."""
    reports = {f"--{kind}": path for kind, path in _reports(output).items()}
    given = reports if output.save is None else {**reports, "--save": output.save}
    for option, path in given.items():
        files.check_output(path, option=option)
    for (one, first), (other, second) in combinations(given.items(), 2):
        if _same_file(first, second):
            raise InputError(f"{one} and {other} both name {first}: give each a file of its own.")
    for option, path in reports.items():
        if output.json and files.is_stdout(path):
            raise InputError(
                f"--json and {option} both go to standard output: give {option} a file."
            )
    if output.example == (log is not None):
        raise InputError(
            "name one log: type `sellf audit loans.parquet --group race --decision approved "
            "--outcome repaid`, or `sellf audit --example`."
        )
    for option, path in reports.items():
        files.check_output(path, named_files(log) if are_files(log) else (), option)
        report.check()
    if output.xlsx is not None:
        from sellf.report.workbook import check

        check()
    if output.pdf is not None:
        from sellf.report.pdf import browser

        browser()


def _text(result: Audit | Audits, json: bool, words: Words | None) -> str:
    if json:
        return plain_json(result.to_json())
    parts = [str(result)]
    if isinstance(result, Audits):
        parts += map(str, result.by_notion.values())
    text = ("\n\n" + "-" * 78 + "\n").join(parts)
    return text if words is None else words.rewrite(text)


def _same_file(one: Path, other: Path) -> bool:
    both = one.exists() and other.exists()
    return one.samefile(other) if both else one.resolve() == other.resolve()


def _save(path: Path, example: bool) -> None:
    from sellf.cli.lending_log import as_csv

    if not example or path.suffix != ".csv":
        raise InputError("--save keeps the example's log: type `--example --save loans.csv`.")
    content = as_csv()
    if path.exists() and not (path.is_file() and path.read_bytes() == content):
        raise InputError(f"{path} exists: choose another name for --save, or remove it first.")
    files.write(path, content)


def _audit(log: Any, notion: str, options: dict[str, Any]) -> Audit | Audits:
    grouped = () if options.get("group_probability") else ("group",)
    for name in (*grouped, "decision"):
        if not options.get(name):
            raise InputError(f"{name} is missing: type --{name} and the name of its column.")
    if notion == "all":
        return audit_all(log, **options)
    return audit(log, notion=_notion(notion), **options)


def _notion(name: str) -> Notion:
    return name  # pyright: ignore[reportReturnType]  # audit checks it


def _example(notion: str, options: dict[str, Any]) -> Audit | Audits:
    from sellf.audit.origin import command
    from sellf.cli.lending_log import example, truth

    columns = {
        "group": ["race"],
        "decision": "approved",
        "outcome": "repaid",
        "propensity": "p_approve",
        "score": "p_repay",
    }
    true = truth()
    result = _audit(example(), notion, {**options, **columns})
    asked = {name: options[name] for name in ("omega", "delta") if options[name] != 0.05}

    def known(audit: Audit) -> Audit:
        origin = audit.origin
        if origin is not None:
            how = command("--example", {"notion": notion, **asked, "seed": origin.seed})
            origin = replace(origin, command=how)
        parts = {name: known(part) for name, part in audit.parts.items()}
        found = None if parts else true[audit.notion]
        return replace(audit, truth=found, origin=origin, parts=parts)

    if isinstance(result, Audit):
        return known(result)
    return Audits({name: known(found) for name, found in result.by_notion.items()})
