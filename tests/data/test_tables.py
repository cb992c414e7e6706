import gzip

import pytest

from bert.common.errors import UserError
from bert.data import tables


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    return str(path)


def read(path, columns, header=True, **kwargs):
    return [tuple(row) for row in tables.rows(path, columns, header, **kwargs)]


def header(path, delimiter=None):
    """The fields from which columns are chosen."""
    names = []

    def choose(fields):
        names.extend(fields)
        return fields[:1]

    list(tables.rows(path, choose, header=True, delimiter=delimiter))
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
    assert read(path, [" label ", 0]) == expected


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


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("x.tsv", 'a\tb\n"1\t2\n', ["a", "b"]),
        ("x.csv", 'b,a\n2,"""1"\n', ["a", "b"]),
        ("x.jsonl", '{"a": "\\"1", "b": "2"}\n', ["a", "b"]),
    ],
)
def test_compressed_tables_equal_their_content(
    tmp_path, name, content, columns
):
    plain = write(tmp_path, name, content)
    packed = write(tmp_path, f"{name}.gz", gzip.compress(content.encode()))
    assert read(packed, columns) == read(plain, columns)
    assert [values for _, values in read(packed, columns)] == [['"1', "2"]]
    assert header(packed) == header(plain)


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


def test_broken_rows_can_be_skipped_and_are_reported(tmp_path):
    path = write(tmp_path, "x.tsv", "a\tb\n1\t2\n3\n4\t5\t6\n7\t8\n")
    broken = []
    assert read(path, ["b"], broken=broken) == [(2, ["2"]), (5, ["8"])]
    assert broken == [3, 4]


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
        ("x.jsonl", '{"a": 1}\n{"b": 2}\n', ["a"], "x.jsonl:2: no key 'a'"),
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
