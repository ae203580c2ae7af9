"""`sellf datasets`: public logs of decisions, and the command that audits each."""

from sellf.audit.origin import command
from sellf.datasets.catalogue import NAMES, fetch

LISTED = {
    "compas": "risk scores of people arrested in Broward County, all outcomes known",
    "nypd-stops": "stops by the New York police, 2003 to 2016 (--year)",
    "amex": "applications for a credit card, 1988",
    "adult": "incomes from the census of 1994",
}


def act(name: str | None, year: int, address: str | None) -> None:
    """List the data sets, or fetch one and print its description and the command that audits it."""
    if name is None:
        width = max(map(len, NAMES))
        for one in NAMES:
            print(f"{one:<{width}}  {LISTED[one]}")
        print(
            "\n`sellf datasets NAME` fetches one, checks it, and prints its source, its licence and"
            "\nthe command that audits it. Files in the folder of $SELLF_DATA are used first."
        )
        return
    data = fetch(name, year, address)
    print(data)
    print(f"\n{command(str(data.path), data.audit_settings)}")
