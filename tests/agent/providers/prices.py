"""Holds the shipped prices against a table that others keep.

`python -m tests.agent.providers.prices TABLE` prints each price and limit that differs, and the names that the table
does not have. TABLE is the JSON of litellm, which its wheel has as model_prices_and_context_window_backup.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dovetail.agent.providers.catalog import Catalog, Known, Rates

FIELDS = {
    "input": "input_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "written": "cache_creation_input_token_cost",
    "output": "output_cost_per_token",
}


def differences(rows: Iterator[Known], table: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for each price that is not the table's, and for each row that cannot be checked."""
    for row in rows:
        found = table.get(row.name) or table.get(f"gemini/{row.name}")
        if row.usd is None:
            continue
        if found is None:
            yield f"{row.name}: not in the table"
            continue
        yield from _rates(row.name, row.usd, found, "")
        if row.usd.long is not None:
            suffix = f"_above_{row.usd.long.above // 1000}k_tokens"
            yield from _rates(f"{row.name} long", row.usd.long, found, suffix)


def _rates(name: str, ours: Rates, theirs: Mapping[str, Any], suffix: str) -> Iterator[str]:
    for field, key in FIELDS.items():
        price = theirs.get(key + suffix)
        given = getattr(ours, field)
        if None not in (price, given) and abs(price * 1e6 - given) > 1e-6:
            yield f"{name}: {field} is {given}, in the table {price * 1e6:g}"


if __name__ == "__main__":
    table = json.loads(Path(sys.argv[1]).read_text())
    told = "\n".join(differences(iter(Catalog().rows), table)) or "all prices are those of the table"
    sys.stdout.write(f"{told}\n")
