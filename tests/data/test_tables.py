import math

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from bert.common import storage
from bert.common.errors import UserError
from bert.data import table_rows, tables
from bert.data.tables import Column
from tests.helpers.tables import FORMATS, cell
from tests.helpers.tables import write as write_rows


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    return str(path)


def read(path, columns, header=True, **options):
    """The line and the values of each row."""
    schema = {str(i): Column(x, None) for i, x in enumerate(columns)}
    table = tables.read(path, schema, header=header, **options)
    return [(row.pop("line"), [*row.values()]) for row in table.rows]


LONG = "y" * 200_003


@pytest.mark.parametrize(
    ("name", "content", "columns", "rows"),
    [
        # Tabs separate; quotes are characters; a BOM and CR are dropped.
        (
            "x.tsv",
            "\ufeffQuality\t#1 ID\t#1 String\r\n"
            '1\t7\t"The witness\r\n'
            '0\t8\tsaid "no", twice"\r\n'
            "\r\n",
            ["#1 String", "Quality"],
            {2: ['"The witness', "1"], 3: ['said "no", twice"', "0"]},
        ),
        # A blank line between rows is an empty text.
        (
            "x.tsv",
            "t\none\n\ntwo\n\n\n",
            [0],
            {2: ["one"], 3: [""], 4: ["two"]},
        ),
        # Only newlines end lines.
        (
            "x.tsv",
            "t\tu\na\u2028b\x0bc\x85\td\n",
            ["t"],
            {2: ["a\u2028b\x0bc\x85"]},
        ),
        # JSON keeps its types.
        (
            "x.jsonl",
            '{"a": "t\\tu", "b": 3}\n{"b": ["x"], "a": ""}\n',
            ["a", "b"],
            {1: ["t\tu", 3], 2: ["", ["x"]]},
        ),
        # Blank lines of a CSV file are skipped, but not in its fields.
        (
            "x.csv",
            '\n\r\ntext,label\n\none,yes\n\r\n\n"two\n\n",no\n\nthree,no\n\n',
            ["label", "text"],
            {5: ["yes", "one"], 8: ["no", "two\n\n"], 12: ["no", "three"]},
        ),
        # Blanks around the names of columns do not count.
        ("x.csv", "t, l \n one, yes\n", ["l", "t"], {2: [" yes", " one"]}),
        (
            "x.tsv",
            "t\t l \n one\t yes\n",
            [tables.column_of(" l "), 0],
            {2: [" yes", " one"]},
        ),
        # Excel names the delimiter in a line before the header.
        (
            "x.csv",
            'sep=;\r\nt;l\r\n"one\n, two";yes\r\nthree;no\r\n',
            ["l", "t"],
            {3: ["yes", "one\n, two"], 5: ["no", "three"]},
        ),
        ("x.csv", "sep=\t\na\tb\n1\t2\n", ["b"], {3: ["2"]}),
        # The csv module rejects such fields unless it is told.
        ("x.csv", f"a\n1\n{LONG}\n", ["a"], {2: ["1"], 3: [LONG]}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_rows_of_text(tmp_path, name, content, columns, rows):
    path = write(tmp_path, name, content)
    assert read(path, columns) == [*rows.items()]


def test_a_given_delimiter_wins_over_the_one_of_excel(tmp_path):
    path = write(tmp_path, "x.csv", "sep=;\na|b\nc|d;e\n")
    assert read(path, ["b"], delimiter="|") == [(3, ["d;e"])]


def test_invalid_rows_are_skipped_or_yielded(tmp_path, capsys):
    path = write(tmp_path, "x.tsv", "a\tb\n1\t2\n3\n4\t5\t6\n7\t8\n")
    assert read(path, ["b"], skip_invalid=True) == [(2, ["2"]), (5, ["8"])]
    assert capsys.readouterr().err == (
        f"{path}: skipped 2 rows of the published file with too few or too "
        "many columns (lines 3, 4)\n"
    )
    found = [*tables.scan(path, {"b": Column("b")})[1]]
    assert [line for line, _ in found] == [2, 3, 4, 5]
    assert [isinstance(row, UserError) for _, row in found] == [
        *(False, True, True, False)
    ]
    assert str(found[1][1]).startswith(f"{path}:3: 1 column; expected 2, as")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("text", "number"), [("text", "n"), (0, -2)])
def test_a_file_of_any_format_is_opened_once(
    tmp_path, monkeypatch, name, text, number
):
    path = write_rows(tmp_path / name, [{"text": "cat", "n": 3, "m": 5}])
    opened, open_file = [], storage.open_file
    monkeypatch.setattr(
        storage, "open_file", lambda *x: opened.append(x) or open_file(*x)
    )
    schema = {
        "number": Column(number, tables.number),
        "name": Column("none", optional=True),
        "text": Column(text),
        "last": Column(7, optional=True),
        "first": Column(-3, optional=True),
    }
    table = tables.read(path, schema, lambda **row: [*row.items()])
    line = 1 if "jsonl" in name or "parquet" in name else 2
    (row,) = table.rows
    assert row == [
        *(("line", line), ("number", 3.0), ("text", "cat"), ("first", "cat"))
    ]
    by_name = {"number": "", "text": "", "first": "text"}
    by_number = {"number": "n", "text": "text", "first": "text"}
    assert table.cells == (by_name if text == "text" else by_number)
    assert len(opened) == 1
    assert table.sha256 == storage.hash_file(path)


def refuse(line, **fields):
    raise ValueError(f"row {line} with {fields}")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("column", "row", "found"),
    [
        (
            Column("c", flag="text_column"),
            dict,
            "1: no column 'c'; expected one of 2 columns: text, n; pass the "
            "name of a column, or its number, from 0, as --text_column",
        ),
        (Column(2), dict, "1: no column 2; expected one of 2 columns"),
        (Column(-3), dict, "1: no column -3; expected one of 2 columns"),
        (Column("text", tables.number), dict, "2: a 'x'; expected a number"),
        (Column("n"), refuse, "2: row 2 with {'a': '7'}"),
    ],
)
def test_faults_of_every_format_have_a_line(tmp_path, name, column, row, found):
    """Parquet files have no line for the names of their columns."""
    path = write_rows(tmp_path / name, [{"text": "x", "n": 7}])
    line, found = found.split(":", 1)
    if "jsonl" in name or "parquet" in name:
        line = "1"
        found = found.replace("row 2", "row 1")
    is_column = found.startswith(" no column")
    where = path if is_column and "parquet" in name else f"{path}:{line}"
    with pytest.raises(UserError) as error:
        tables.read(path, {"a": column}, row)
    assert str(error.value).startswith(f"{where}:{found}")


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        (None, tables.text, "the a is null; expected a string"),
        (math.nan, tables.text, "the a is null; expected a string"),
        (True, tables.text, "the a is True; expected a string"),
        (["b"], tables.text, "the a is ['b']; expected a string"),
        (["b"], tables.optional_text, "the a is ['b']; expected a string"),
        (None, tables.number, "a 'None'; expected a number"),
        (True, tables.number, "a 'True'; expected a number"),
        ("nan", tables.number, "a 'nan'; expected a number"),
        ("1e39", tables.number, "a '1e39'; expected a number"),
        ("9" * 400, tables.number, f"a '{'9' * 60}'; expected a number"),
        (9**400, tables.number, f"a '{str(9**400)[:60]}'; expected a number"),
    ],
)
def test_cells_of_another_kind_are_reported(tmp_path, value, kind, found):
    # JSON has no NaN.
    name = "x.jsonl" if value == value else "x.parquet"
    path = write_rows(tmp_path / name, [{"a": value}])
    with pytest.raises(UserError) as error:
        tables.read(path, {"a": Column("a", kind)})
    assert str(error.value) == f"{path}:1: {found}"


def test_cells_are_converted(tmp_path):
    rows = [{"a": 3, "b": None, "c": " 2.5"}, {"a": "x", "b": 0.5, "c": -1}]
    schema = {
        "a": Column("a"),
        "b": Column("b", tables.optional_text),
        "c": Column("c", tables.number),
    }
    path = write_rows(tmp_path / "x.jsonl", rows)
    assert tables.read(path, schema).rows == [
        {"line": 1, "a": "3", "b": "", "c": 2.5},
        {"line": 2, "a": "x", "b": "0.5", "c": -1.0},
    ]


@pytest.mark.parametrize(
    ("cell", "is_data"),
    [("yes", True), ("7", True), ("-1.5", True), ("label", False)],
)
def test_a_header_of_values_is_rejected(tmp_path, cell, is_data):
    """Only for columns that are given by number, in text."""
    table = tables.read(
        write(tmp_path, "x.tsv", f"1\t{cell}\none\tno\n"),
        {"text": Column(0), "label": Column(1)},
    )
    if is_data:
        with pytest.raises(UserError) as error:
            tables.check_header(table, ["yes", "no"], "label", "id")
        assert str(error.value) == (
            f"{table.path}:1: {cell!r} in the column of the label; expected a "
            "header; add a line with the column names before the data"
        )
    else:
        tables.check_header(table, ["yes", "no"], "label", "id")
    path = write_rows(tmp_path / "x.parquet", [{"yes": "one", "7": "no"}])
    table = tables.read(path, {"label": Column(1), "id": Column(0)})
    tables.check_header(table, ["yes", "no"], "label", "id")


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("One, two.\n\n'Three'\t3\n", ["One, two.", "", "'Three'\t3"]),
        ("id\tbody\n7\tOne.\n", ["One."]),
        ("body\nOne.\n", ["One."]),
    ],
    ids=["lines", "table", "column"],
)
def test_a_text_file_may_have_a_value_in_each_line(
    tmp_path, capsys, content, rows
):
    path = write(tmp_path, "x.txt", content)
    schema = {"text": Column("body"), "label": Column("none", optional=True)}
    table = tables.read(path, schema, plain_field="text")
    assert [row["text"] for row in table.rows] == rows
    said = f"{path}: each line is a text\n"
    assert capsys.readouterr().err == said * (rows[0] != "One.")


GIANT = "y" * 16_777_217


@pytest.mark.parametrize(
    ("name", "content", "columns", "found"),
    [
        ("x.tsv", "", [0], "x.tsv: is empty"),
        ("x.tsv", "\n\r\n", [0], "x.tsv: is empty"),
        ("x.tsv", "a\tb\n1\n", [0], "x.tsv:2: 1 column; expected 2"),
        ("x.tsv", "a\tb\n1\t2\t3\n", [0], "x.tsv:2: 3 columns; expected 2"),
        ("x.tsv", "a\ta\n", ["a"], "x.tsv:1: duplicate column 'a'"),
        (
            "x.csv",
            "text;label\na;b\n",
            ["text"],
            "x.csv:1: no column 'text'; expected one of 1 column: text;label; "
            "the fields seem to end at ';': pass --delimiter=';'",
        ),
        (
            "x.csv",
            "text\tlabel\na\tb\n",
            ["text"],
            "x.csv:1: no column 'text'; expected one of 1 column: text label; "
            "the fields seem to end at '\\\\t': pass --delimiter='\\t'",
        ),
        ("x.csv", "a,b\n1,2\n3\n", ["a"], "x.csv:3: 1 column; expected 2"),
        ("x.csv", 'a,b\n1,"2\n3,4\n', ["a"], "x.csv:2: this row cannot be"),
        ("x.csv", f"a\n{GIANT}", ["a"], "x.csv:2: this row cannot be"),
        ("x.csv", "\na\n\nb,c\n", ["a"], "x.csv:4: 2 columns; expected 1"),
        ("x.csv", "\na\n", ["b"], "x.csv:2: no column 'b'"),
        ("x.csv", "sep=;\na;b\n1\n", ["a"], "x.csv:3: 1 column; expected 2"),
        ("x.jsonl", '{"a": 1}\n{a}\n', ["a"], "x.jsonl:2: JSON is malformed"),
        (
            "x.jsonl",
            '{"a": "\\ud83d\\ude00"}\n{"a": ["b", "c\\udfff"]}\n',
            ["a"],
            "x.jsonl:2: JSON is malformed: invalid utf-16 surrogate",
        ),
        (
            "x.jsonl",
            "[1]\n",
            ["a"],
            "x.jsonl:1: Expected `object`, got `array`; expected an object",
        ),
        ("x.jsonl", '{"a": 1}\n{"b": 2}\n', ["a"], "x.jsonl:2: no column 'a'"),
        (
            "x.csv",
            "a,b\n\n",
            ["a"],
            "x.csv: no rows; expected one per line after the header",
        ),
        (
            "x.csv",
            "sep=;\n",
            ["a"],
            "x.csv:1: no column 'a'; expected one of 0",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_mistakes_are_reported_with_their_lines(
    tmp_path, name, content, columns, found
):
    path = write(tmp_path, name, content)
    with pytest.raises(UserError) as error:
        read(path, columns)
    assert str(error.value).startswith(f"{tmp_path}/{found}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_invalid_delimiters_of_csv_are_rejected(tmp_path, delimiter):
    path = write(tmp_path, "x.csv", "t,l\none,yes\ntwo,no\n")
    with pytest.raises(UserError, match="^--delimiter="):
        read(path, ["t"], delimiter=delimiter)


def test_a_parquet_file_may_have_no_rows(tmp_path):
    path = str(tmp_path / "x.parquet")
    parquet.write_table(pyarrow.table({"a": []}), path)
    with pytest.raises(UserError) as error:
        tables.read(path, {"a": Column("a")})
    assert str(error.value) == f"{path}: no rows; expected one per line"


@pytest.mark.parametrize("name", [x for x in FORMATS if x != "x.tsv.gz"])
@settings(max_examples=50)
@given(
    texts=st.lists(
        st.text() | st.sampled_from(["", 'a\n"b', "c;d"]),
        min_size=2,
        max_size=9,
    ),
    header=st.booleans(),
    size=st.integers(1, 99),
    columns=st.sampled_from([1, 2]),
    delimiter=st.sampled_from([None, ";"]),
)
def test_the_ranges_of_a_table_have_all_its_rows(
    tmp_path_factory, name, texts, header, size, columns, delimiter
):
    texts = [cell(x, name, delimiter) for x in ["a", *texts, "b"]]
    rows = [dict(zip(["text", "more"][:columns], [x, x])) for x in texts]
    folder = tmp_path_factory.mktemp("table")
    path = write_rows(folder / name, rows, header, delimiter)

    def found(span=None):
        schema = {"text": Column("text" if header else 0)}
        _, rows = tables.scan(
            path, schema, header=header, delimiter=delimiter, span=span
        )
        return [*rows]

    spans = [*table_rows.divide(path, size, header, delimiter)]
    of_spans = [found(span) for span, _ in spans]
    assert [row for some in of_spans for row in some] == found()
    assert [len(some) for some in of_spans] == [count for _, count in spans]
    assert len(spans) > 1 or size > 1
