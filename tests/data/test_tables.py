import csv
import gzip
import io
import json
import math

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bert.common import storage
from bert.common.errors import UserError
from bert.data import table_rows, tables
from bert.data.tables import Column, Table


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    return str(path)


def read(path, columns, header=True, **options):
    """The line and the values of each row."""
    schema = {str(i): Column(x, None) for i, x in enumerate(columns)}
    table = Table.read(path, schema, header=header, **options)
    return [(row.pop("line"), [*row.values()]) for row in table.rows]


def header(path, delimiter=None):
    """The names from which a function chooses the columns."""
    names = []

    def choose(found):
        names.extend(found)
        return {"first": Column(0)}

    Table.read(path, choose, delimiter=delimiter)
    return names


def test_tabs_separate_and_quotes_are_characters(tmp_path):
    path = write(
        tmp_path,
        "train.tsv",
        "\ufeffQuality\t#1 ID\t#1 String\r\n"
        '1\t7\t"The witness\r\n'
        '0\t8\tsaid "no", twice"\r\n'
        "\r\n",
    )
    assert read(path, ["#1 String", "Quality"]) == [
        (2, ['"The witness', "1"]),
        (3, ['said "no", twice"', "0"]),
    ]
    assert header(path) == ["Quality", "#1 ID", "#1 String"]


@pytest.mark.parametrize(
    ("name", "content", "columns", "rows"),
    [
        # Columns have numbers from both ends.
        ("x.txt", "a\tb\tc\nd\te\tf", [-1, 0], [["c", "a"], ["f", "d"]]),
        # A blank line between rows is an empty text.
        ("x.tsv", "one\n\ntwo\n\n\n", [0], [["one"], [""], ["two"]]),
        # Only newlines end lines.
        ("x.tsv", "a\u2028b\x0bc\x85\td\n", [0], [["a\u2028b\x0bc\x85"]]),
        # JSON keeps its types.
        (
            "x.jsonl",
            '{"a": "t\\tu", "b": 3}\n{"b": ["x"], "a": ""}\n',
            ["a", "b"],
            [["t\tu", 3], ["", ["x"]]],
        ),
    ],
)
def test_rows_without_a_header(tmp_path, name, content, columns, rows):
    path = write(tmp_path, name, content)
    assert read(path, columns, header=False) == list(enumerate(rows, 1))


def test_csv_fields_span_lines_and_keep_their_quotes(tmp_path):
    path = write(
        tmp_path,
        "x.csv",
        'text,label\r\n"one, ""two""\nthree",yes\r\nfour,no\r\n',
    )
    assert read(path, ["label", "text"]) == [
        (2, ["yes", 'one, "two"\nthree']),
        (4, ["no", "four"]),
    ]


def test_blank_lines_of_a_csv_are_skipped(tmp_path):
    content = '\n\r\ntext,label\n\none,yes\n\r\n\n"two\n\n",no\n\nthree,no\n\n'
    path = write(tmp_path, "x.csv", content)
    assert header(path) == ["text", "label"]
    assert read(path, ["label", "text"]) == [
        (5, ["yes", "one"]),
        (8, ["no", "two\n\n"]),
        (12, ["no", "three"]),
    ]
    path = write(tmp_path, "y.csv", '\na\n\n""\nb,c\n')
    with pytest.raises(UserError, match="y.csv:5: 2 columns; expected 1"):
        read(path, ["a"])
    with pytest.raises(UserError, match="y.csv:2: no column 'b'"):
        read(path, ["b"])


@pytest.mark.parametrize(("name", "tab"), [("x.csv", ","), ("x.tsv", "\t")])
def test_blanks_around_the_names_of_columns_do_not_count(tmp_path, name, tab):
    path = write(tmp_path, name, f"text{tab} label \n one{tab} yes\n")
    assert header(path) == ["text", "label"]
    expected = [(2, [" yes", " one"])]
    assert read(path, ["label", "text"]) == expected
    assert read(path, [tables.column_of(" label "), 0]) == expected


@pytest.mark.parametrize(
    ("between", "delimiter"), [(";", None), ("\t", None), ("|", "|")]
)
def test_excel_names_the_delimiter_in_a_line_before_the_header(
    tmp_path, between, delimiter
):
    rows = [["text", "label"], ['"one\n, two"', "yes"], ["three", "no"]]
    lines = ["sep=" + (between if delimiter is None else ";")]
    lines += [between.join(row) for row in rows]
    path = write(tmp_path, "x.csv", "\r\n".join(lines) + "\r\n")
    assert read(path, ["label", "text"], delimiter=delimiter) == [
        (3, ["yes", "one\n, two"]),
        (5, ["no", "three"]),
    ]
    path = write(tmp_path, "y.csv", "sep=;\na;b\n1\n")
    with pytest.raises(UserError, match="y.csv:3: 1 column; expected 2"):
        read(path, ["a"])


@pytest.mark.parametrize("name", ["x.tsv", "x.csv"])
def test_another_character_separates(tmp_path, name):
    path = write(tmp_path, name, 'a;b\nc, "d";e\tf\n')
    assert header(path, ";") == ["a", "b"]
    assert read(path, ["b", "a"], delimiter=";") == [(2, ["e\tf", 'c, "d"'])]


LONG = "y" * 200_003


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.tsv", f"a\n1\n{LONG}\n"),
        ("x.csv", f"a\n1\n{LONG}\n"),
        ("x.jsonl", f'{{"a": "1"}}\n{{"a": "{LONG}"}}\n'),
    ],
)
def test_long_fields_are_read(tmp_path, name, content):
    path = write(tmp_path, name, content)
    (_, first), (line, last) = read(path, ["a"])
    assert (first, last) == (["1"], [LONG])
    assert line == (2 if name == "x.jsonl" else 3)


def test_invalid_rows_are_skipped_or_yielded(tmp_path, capsys):
    path = write(tmp_path, "x.tsv", "a\tb\n1\t2\n3\n4\t5\t6\n7\t8\n")
    assert read(path, ["b"], skip_invalid=True) == [(2, ["2"]), (5, ["8"])]
    assert capsys.readouterr().err == (
        f"{path}: skipped 2 rows of the published file with too few or too "
        "many columns (lines 3, 4)\n"
    )
    found = [*tables.TableReader(path, {"b": Column("b")})]
    assert [line for line, _ in found] == [2, 3, 4, 5]
    assert [isinstance(row, UserError) for _, row in found] == [
        *(False, True, True, False)
    ]
    assert str(found[1][1]).startswith(f"{path}:3: 1 column; expected 2, as")


ROWS = [{"text": "the cat", "n": 3}, {"text": 'a, "dog"', "n": 5}]
PACKED = ["x.csv.gz", "x.tsv.gz", "x.jsonl.gz"]
FORMATS = ["x.csv", "x.tsv", "x.jsonl", "x.parquet"]


def write_rows(tmp_path, name, rows):
    """Writes rows as a file of any format."""
    path, text = tmp_path / name, io.StringIO()
    if name == "x.parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return str(path)
    if "jsonl" in name:
        text.writelines(json.dumps(row) + "\n" for row in rows)
    elif "csv" in name:
        csv.writer(text).writerows([rows[0], *(x.values() for x in rows)])
    else:
        for row in (rows[0], *(x.values() for x in rows)):
            text.write("\t".join(map(str, row)) + "\n")
    content = text.getvalue().encode()
    return write(
        tmp_path, name, gzip.compress(content) if "gz" in name else content
    )


@pytest.mark.parametrize("name", FORMATS + PACKED)
@pytest.mark.parametrize(("text", "number"), [("text", "n"), (0, -1)])
def test_every_format_has_the_same_rows(
    tmp_path, monkeypatch, name, text, number
):
    path, opened = write_rows(tmp_path, name, ROWS), []
    open_file = storage.open_file
    monkeypatch.setattr(
        storage, "open_file", lambda *x: opened.append(x) or open_file(*x)
    )
    schema = {
        "number": Column(number, tables.number),
        "name": Column("none", optional=True),
        "text": Column(text),
        "last": Column(7, optional=True),
    }
    table = Table.read(path, schema, lambda **row: [*row.items()])
    first = 2 if "sv" in name else 1
    assert table.rows == [
        [("line", first), ("number", 3.0), ("text", "the cat")],
        [("line", first + 1), ("number", 5.0), ("text", 'a, "dog"')],
    ]
    assert [*table.cells] == ["number", "text"]
    assert len(opened) == 1
    assert table.sha256 == storage.hash_file(path)


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1), st.data())
def test_every_format_has_the_texts_that_were_written(
    tmp_path_factory, rows, data
):
    name = data.draw(st.sampled_from(FORMATS + PACKED))
    if "tsv" in name:  # a field has no tabs and no line ends
        rows = [
            [x.translate({9: 32, 10: 32, 13: 32}) for x in row] for row in rows
        ]
    rows = [{"text": text, "n": other} for text, other in rows]
    path = write_rows(tmp_path_factory.mktemp("table"), name, rows)
    schema = {"text": Column("text", tables.text), "other": Column(1)}
    table = Table.read(path, schema)
    assert [(row["text"], row["other"]) for row in table.rows] == [
        (*row.values(),) for row in rows
    ]


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
    path = write_rows(tmp_path, name, [{"text": "x", "n": 7}])
    line, found = found.split(":", 1)
    if "sv" not in name:
        line = "1"
        found = found.replace("row 2", "row 1")
    is_column = found.startswith(" no column")
    where = path if is_column and "parquet" in name else f"{path}:{line}"
    with pytest.raises(UserError) as error:
        Table.read(path, {"a": column}, row)
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
    path = write_rows(tmp_path, "x.jsonl", [{"a": value}])
    if value != value:  # JSON has no NaN
        path = write_rows(tmp_path, "x.parquet", [{"a": value}])
    with pytest.raises(UserError) as error:
        Table.read(path, {"a": Column("a", kind)})
    assert str(error.value) == f"{path}:1: {found}"


def test_a_parquet_file_may_have_no_rows(tmp_path):
    path = str(tmp_path / "x.parquet")
    parquet.write_table(pyarrow.table({"a": []}), path)
    with pytest.raises(UserError) as error:
        Table.read(path, {"a": Column("a")})
    assert str(error.value) == f"{path}: no rows; expected one per line"


def test_cells_are_converted(tmp_path):
    rows = [{"a": 3, "b": None, "c": " 2.5"}, {"a": "x", "b": 0.5, "c": -1}]
    schema = {
        "a": Column("a"),
        "b": Column("b", tables.optional_text),
        "c": Column("c", tables.number),
    }
    path = write_rows(tmp_path, "x.jsonl", rows)
    assert Table.read(path, schema).rows == [
        {"line": 1, "a": "3", "b": "", "c": 2.5},
        {"line": 2, "a": "x", "b": "0.5", "c": -1.0},
    ]


@pytest.mark.parametrize(
    ("cell", "is_data"),
    [("yes", True), ("7", True), ("-1.5", True), ("label", False)],
)
def test_a_header_of_values_is_rejected(tmp_path, cell, is_data):
    """Only for columns that are given by number, in text."""
    table = Table.read(
        write(tmp_path, "x.tsv", f"1\t{cell}\none\tno\n"),
        {"text": Column(0), "label": Column(1)},
    )
    if is_data:
        with pytest.raises(UserError) as error:
            table.check_header(["yes", "no"], "label", "id")
        assert str(error.value) == (
            f"{table.path}:1: {cell!r} in the column of the label; expected a "
            "header; add a line with the column names before the data"
        )
    else:
        table.check_header(["yes", "no"], "label", "id")
    path = write_rows(tmp_path, "x.parquet", [{"yes": "one", "7": "no"}])
    table = Table.read(path, {"label": Column(1), "id": Column(0)})
    table.check_header(["yes", "no"], "label", "id")


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
    table = Table.read(path, schema, plain_field="text")
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
        ("x.tsv", "a\tb\n", ["c"], "x.tsv:1: no column 'c'; expected one of 2"),
        ("x.tsv", "a\tb\n", [5], "x.tsv:1: no column 5"),
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


@pytest.mark.parametrize("name", [*FORMATS, "x.csv.gz"])
@pytest.mark.parametrize("is_named", [True, False])
def test_the_ranges_of_a_table_have_all_its_rows(tmp_path, name, is_named):
    texts = ["a", "the\ncat", "", 'a "dog", ', "zebra " * 9, "b", "", "c"]
    if name == "x.tsv":
        texts = [x.replace("\n", " ") for x in texts]
    path = write_rows(
        tmp_path,
        name.removesuffix(".gz"),
        [{"n": f"{number}", "text": x} for number, x in enumerate(texts)],
    )
    if name.endswith(".gz"):
        with open(path, "rb") as file:
            path = write(tmp_path, name, gzip.compress(file.read()))
    schema = {"text": Column("text" if is_named else 1)}

    def rows(span=None):
        return [*tables.TableReader(path, schema, dict, is_named, span=span)]

    for size in (1, 20, 1000):
        spans = [*table_rows.divide(path, size, is_named)]
        found = [rows(span) for span, _ in spans]
        assert [x for some in found for x in some] == rows()
        assert [len(some) for some in found] == [count for _, count in spans]
        assert (len(spans) > 1) == (size < 1000)


def test_blank_lines_are_rows_of_ranges(tmp_path):
    """A blank line inside a table of one column is an empty text."""
    path = write(tmp_path, "x.tsv", "a\n\n\nb\n\nc\n\n")
    spans = [*table_rows.divide(path, 1, header=False)]
    assert [count for _, count in spans] == [1, 3, 2]
    found = []
    for span, _ in spans:
        schema = {"text": Column(0)}
        reader = tables.TableReader(path, schema, header=False, span=span)
        found += [(line, row["text"]) for line, row in reader]
    assert found == [*enumerate(["a", "", "", "b", "", "c"], 1)]
