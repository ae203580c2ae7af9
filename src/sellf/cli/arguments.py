"""Kinds of command-line arguments, as the help shows them."""

from pathlib import Path
from typing import Annotated

import tyro

Count = Annotated[int, tyro.conf.arg(metavar="N")]
# For optional arguments the help text itself names the default, where it matters.
Text = Annotated[str | None, tyro.conf.arg(metavar="TEXT", help_behavior_hint="")]
Column = Annotated[str | None, tyro.conf.arg(metavar="COLUMN", help_behavior_hint="")]
Folder = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="")]
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="")]
# The default is None so that `sellf train --resume` can tell which options were typed; the help
# names the value that is used.
OwnNotion = Annotated[
    str | None, tyro.conf.arg(metavar="STR", help_behavior_hint="(default: opportunity)")
]
Steps = Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: 500000)")]
Seed = Annotated[int | None, tyro.conf.arg(metavar="N", help_behavior_hint="(default: 0)")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
Columns = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="COLUMN", help_behavior_hint="(repeatable)"),
]
Values = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(metavar="VALUE", help_behavior_hint="(repeatable)"),
]
