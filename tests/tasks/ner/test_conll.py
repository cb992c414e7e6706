"""Column files of words: read, rejected, written again."""

import pytest

from bert.common.errors import UserError
from bert.tasks.ner import conll
from bert.tasks.ner.conll import Columns, Sentence, read

FOUR = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

Peter NNP B-NP B-PER
\u00a0 NNP I-NP I-PER


-DOCSTART- -X- -X- O

-DOCSTART-

Rome NNP B-NP B-LOC
"""
FIRST = Sentence(["EU", "rejects"], ["B-ORG", "O"], [3, 4], 0)


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "file.conll"
        raw = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(raw)
        return str(path)

    return write


def test_four_columns_in_documents(write):
    assert read(write(FOUR), Columns()) == [
        FIRST,
        Sentence(["Peter", "\u00a0"], ["B-PER", "I-PER"], [6, 7], 0),
        Sentence(["Rome"], ["B-LOC"], [14], 1),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "EU B-ORG\nrejects O\n",
        "EU\tB-ORG\r\nrejects\tO\r\n\r\n",
        "\ufeffEU B-ORG \nrejects  O\n  \n \n",
        "EU B-ORG\nrejects O",
    ],
)
def test_two_columns(write, content):
    expected = Sentence(["EU", "rejects"], ["B-ORG", "O"], [1, 2], 0)
    assert read(write(content), Columns()) == [expected]


def test_any_column(write):
    found = read(write(FOUR), Columns(label=1))
    assert [x.labels for x in found] == [["NNP", "VBZ"], ["NNP"] * 2, ["NNP"]]
    found = read(write("1 EU x\n2 is y\n"), Columns(word=1))
    assert found == [Sentence(["EU", "is"], ["x", "y"], [1, 2], 0)]
    found = read(write("New York\tB-LOC\nis\tO\n"), Columns())
    assert found == [Sentence(["New York", "is"], ["B-LOC", "O"], [1, 2], 0)]
    found = read(write("EU\nis\n"), Columns(label=None))
    assert found == [Sentence(["EU", "is"], [], [1, 2], 0)]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (
            "EU B-ORG\nis\n",
            2,
            "1 columns: 'is'; expected 2, separated by spaces",
        ),
        (
            "EU\tO\nis O\n",
            2,
            "2 columns: 'is O'; expected 2, separated by tabs",
        ),
        ("a b c\n\nEU O\n", 3, "2 columns: 'EU O'; expected 3"),
        ("EU\n", 1, "1 column: 'EU'; expected a word and its label"),
        ("EU\tO\n\tO\n", 2, "1 columns: 'O'; expected 2"),
        ("a\t\tO\nb\tx\tO\n", None, None),
        (b"", None, "no word; expected one word per line"),
        ("\n\n-DOCSTART- O\n\n", None, "no word"),
    ],
)
def test_mistakes_name_their_line(write, content, line, message):
    path = write(content)
    if message is None:
        assert read(path, Columns())[0].labels == ["O", "O"]
        return
    with pytest.raises(UserError) as caught:
        read(path, Columns())
    where = f"{path}:{line}: " if line else f"{path}: "
    assert str(caught.value).startswith(where + message)


def test_columns_that_are_not_there(write):
    path = write("EU O\n")
    with pytest.raises(UserError, match="expected columns 0 and 2; see --word"):
        read(path, Columns(label=2))
    with pytest.raises(UserError, match="expected a word and its label"):
        read(path, Columns(word=1))
    path = write("EU\t\tO\n")
    with pytest.raises(UserError, match="1: empty column: "):
        read(path, Columns(label=1))


def test_kinds_of_labels(write):
    def has_entities(content):
        path = write(content)
        return conll.has_entities(read(path, Columns()), path)

    assert has_entities("EU B-ORG\nis O\n")
    assert has_entities("is O\n")
    assert not has_entities("EU NNP\nis VBZ\n")
    assert has_entities("Jim S-PER\nis O\n")
    assert has_entities("is O\nJim U-PER\n")
    assert not has_entities("EU S-x\nis VBZ\n")
    assert has_entities("EU B\nis O\n")
    assert not has_entities("EU S\nis O\n")
    with pytest.raises(UserError, match=r"conll:2: label 'I' among entity la"):
        has_entities("EU B-ORG\nUnion I\n")
    with pytest.raises(UserError, match=r"conll:2: label 'b-x'; .* upper cas"):
        has_entities("is o\nEU b-x\n")
    with pytest.raises(UserError, match=r"conll:4: label 'B_PER' among entit"):
        has_entities("EU B-ORG\n\nAnna B-PER\nKohl B_PER\n")


def test_predictions_are_a_column_more(write, tmp_path):
    path, out = write(FOUR), tmp_path / "out"
    labels = [["B-ORG", "O"], ["O", "I-PER"], ["B-LOC"]]
    sentences = read(path, Columns())
    conll.write_predictions(path, str(out), sentences, labels)
    lines = out.read_text().split("\n")
    assert lines[:4] == [
        "-DOCSTART- -X- -X- O O",
        "",
        "EU NNP B-NP B-ORG B-ORG",
        "rejects VBZ B-VP O O",
    ]
    assert lines[6] == "\u00a0 NNP I-NP I-PER I-PER"
    assert lines[11:] == ["-DOCSTART- O", "", "Rome NNP B-NP B-LOC B-LOC", ""]
    again = read(str(out), Columns())
    assert [x.labels for x in again] == labels


NUMBERED = """# sent_id = 1
# text = im Haus
1-2\tim\t_\t_
1\tin\tin\tADP
2\tdem\tder\tDET
3\tHaus\tHaus\tNOUN

# text = Ja
1\tJa\tja\tINTJ
"""


def test_numbers_of_words_are_no_words(write):
    path = write(NUMBERED)
    with pytest.raises(UserError, match="first column numbers the words; .*1"):
        read(path, Columns())
    assert read(path, Columns(1)) == [
        Sentence(["in", "dem", "Haus"], ["ADP", "DET", "NOUN"], [4, 5, 6], 0),
        Sentence(["Ja"], ["INTJ"], [9], 0),
    ]


def test_comments_of_numbered_words_stay_beside_predictions(write, tmp_path):
    path, output = write(NUMBERED), tmp_path / "out"
    labels = [["A", "B", "C"], ["D"]]
    conll.write_predictions(path, output, read(path, Columns(1)), labels)
    lines = output.read_text().splitlines()
    assert lines[:2] == NUMBERED.splitlines()[:2]
    assert lines[2:4] == ["1-2\tim\t_\t_\t_", "1\tin\tin\tADP\tA"]
    widths = {line.count("\t") for line in lines if line and line[0] != "#"}
    assert widths == {4}
    assert lines[-1].endswith("\tD")


def test_a_word_may_begin_like_a_comment(write):
    (sentence,) = read(write("#yes O\n1 O\n2 O\n"), Columns())
    assert sentence.words == ["#yes", "1", "2"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "# sent_id = 0\nEU X\n# X\n\n# text = is\nis Y\n",
            [["EU", "#"], ["is"]],
        ),
        ("# newdoc\n# newpar id = 3\nEU X\nis Y\n", [["EU", "is"]]),
        ("# a comment here\n# X\nEU X\n", [["#", "EU"]]),
        ("# newdoc\n#\tnewdoc\nEU\tnewdoc\n", [["#", "EU"]]),
        ("# newdoc\n1 EU X\n#\n2 is X\n", [["EU", "is"]]),
        ("-DOCSTART- O\n\n# 1 2 3 4\nEU O\n", [["EU"]]),
    ],
)
def test_comments_before_a_sentence_are_no_words(
    write, tmp_path, capsys, content, words
):
    path, output = write(content), tmp_path / "out"
    sentences = read(path, Columns("1 EU" in content))
    assert [x.words for x in sentences] == words
    assert capsys.readouterr().err == ""
    labels = [["Z"] * len(x.words) for x in sentences]
    conll.write_predictions(path, str(output), sentences, labels)
    lines = output.read_text().splitlines()
    assert sum(x.endswith("Z") for x in lines) == sum(map(len, words))


def test_a_label_that_only_a_hash_has_is_reported(write, capsys):
    path = write("EU X\n# newdoc\nis Y\n# Y\n# newdoc\n")
    assert len(read(path, Columns())[0].words) == 5
    assert capsys.readouterr().err == (
        f"warning: {path}:2: label 'newdoc' is only at words '#'; remove the "
        "lines if they are comments\n"
    )


def test_json_is_no_column_file(tmp_path):
    path = tmp_path / "train.json"
    path.write_text('{"tokens": ["EU"], "ner_tags": [3]}\n')
    with pytest.raises(UserError, match="train.json: is JSON; expected colu"):
        read(str(path), Columns())
