"""`sellf audit`: a log's verdict, as a table or as JSON."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sellf import files, report
from sellf.audit import Audit, Audits, audit, audit_all
from sellf.cli.audit_flags import ColumnFlags, JudgeFlags, MeasureFlags, OutputFlags, ReadingFlags
from sellf.errors import InputError
from sellf.fairness.notions import Notion
from sellf.logs.files import named_files
from sellf.text import plain_json


def run(
    log: str | None,
    columns: ColumnFlags,
    reading: ReadingFlags,
    judge: JudgeFlags,
    measures: MeasureFlags,
    output: OutputFlags,
) -> None:
    """Audit a log and print what was found.

    Args:
        log: the file.
        columns: which column holds what.
        reading: how the log is read.
        judge: what is asked.
        measures: what is asked beside the disparity.
        output: what is written.
    """
    options = {**vars(columns), **vars(reading), **vars(judge), **vars(measures)}
    options |= {"group": list(columns.group), "features": options.pop("feature")}
    html, save, example = output.html, output.save, output.example
    for option, path in (("--html", html), ("--save", save)):
        if path is not None:
            files.check_output(path, option=option)
    if html is not None and save is not None and _same_file(html, save):
        raise InputError(f"--html and --save both name {html}: give each a file of its own.")
    if example == (log is not None):
        raise InputError(
            "name one log: type `sellf audit loans.parquet --group race --decision approved "
            "--outcome repaid`, or `sellf audit --example`."
        )
    if save is not None:
        _save(save, example)
    if html is not None:
        files.check_output(html, () if log is None else named_files(log), "--html")
        report.check()
    notion = options.pop("notion")
    result = _example(notion, options) if example else _audit(log, notion, options)
    if html is not None:
        files.write(html, report.audit(result).encode())
    if output.json:
        print(plain_json(result.to_json()))
    elif isinstance(result, Audits):
        parts = [str(result), *map(str, result.by_notion.values())]
        print(("\n\n" + "-" * 78 + "\n").join(parts))
    else:
        print(result)


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
    grouped = () if options["group_probability"] else ("group",)
    for name in (*grouped, "decision"):
        if not options[name]:
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
