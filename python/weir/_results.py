"""weir.load: results and tables as rows."""
import csv
import json
import os
import pathlib

_ROWS = ("levels", "rows")  # keys whose list holds the rows: of weir load, of weir study


def load(path):
    """Returns a result as a list of flat dictionaries: rows for pandas.DataFrame.

    - `weir load --json`: one row for each level
    - a study's folder, its results.csv or `weir study --json`: one row for each trial
    - any other result of `--json`: one row
    - another CSV file: its rows

    Keys of nested objects are joined with dots: "response_ms.p99". Numbers of a CSV file are numbers; empty
    cells are None.
    """
    path = pathlib.Path(os.fspath(path))
    if path.is_dir():
        path = path / "results.csv"
        if not path.is_file():
            raise FileNotFoundError(f"{path}: not the folder of a study")
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(file)]
    with open(path, encoding="utf-8") as file:
        try:
            result = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(result, dict) or "schema_version" not in result and not any(key in result for key in _ROWS):
        raise ValueError(f"{path}: not a result of weir")
    for key in _ROWS:
        if isinstance(result.get(key), list):
            return [_flat(row) for row in result[key]]
    return [_flat(result)]


def _flat(value, front=""):
    row = {}
    for key, inner in value.items():
        if isinstance(inner, dict):
            row.update(_flat(inner, f"{front}{key}."))
        else:
            row[front + key] = inner
    return row


def _number(text):
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
