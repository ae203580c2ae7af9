"""One mistake, two ways to make it: whoever types is told of flags, whoever calls of arguments."""

import pytest

import sellf
from sellf.cli import main
from sellf.errors import InputError, in_python

LOG = "race,approved,day\na,1,1\nb,0,2\na,0,3\nb,1,4\n"
MISTAKES = [
    ({"drop_missing": True}, ["--drop-missing"], "--decided-on COLUMN --matures-after 365d",
     "decided_on='COLUMN' matures_after='365d'"),
    ({"by": "month"}, ["--by", "month"], "with --time", "with time"),
    ({"other": "rest"}, ["--other", "rest"], "--groups Black,White --other others",
     "groups='Black,White' other='others'"),
    ({"score_range": "300:850"}, ["--score-range", "300:850"], "with --score.", "with score."),
]  # fmt: skip


@pytest.mark.parametrize(("options", "flags", "typed", "called"), MISTAKES)
def test_a_message_names_what_the_person_can_change(
    tmp_path, capsys, options, flags, typed, called
):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    columns = {"group": "race", "decision": "approved", "notion": "demographic"}
    words = [word for name, value in columns.items() for word in (f"--{name}", value)]
    assert main(["audit", str(path), *words, *flags]) == 2
    said = capsys.readouterr().err
    assert typed in said
    with pytest.raises(InputError) as caught:
        sellf.audit(path, **columns, **options)
    assert called in str(caught.value)
    assert "--" not in str(caught.value)
    assert f"sellf: {caught.value.typed}\n" == said


def test_commands_and_dashes_are_no_arguments():
    kept = "type `sellf train --resume runs/a --set x=1`, or wait - it is done -- soon"
    assert in_python(kept) == kept
    assert in_python("leave it out of --feature.") == "leave it out of features."
