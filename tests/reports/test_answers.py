"""Views of answers."""

from bert.reports import answers


def test_labels_are_bars_from_the_most_probable():
    found = answers.view(
        {"label": "b", "probabilities": {"a": 0.25, "b": 0.75}}, {"text": "x"}
    )
    rows = [("b", 0.75, 75.0), ("a", 0.25, 25.0)]
    assert found == {"kind": "bars", "title": "b", "rows": rows}
    for labels, title in (([], "no label"), (["b", "a"], "b, a")):
        answer = {"label": labels, "probabilities": {"a": 0.5, "b": 0.75}}
        assert answers.view(answer, {"text": "x"})["title"] == title


def test_choices_are_bars_with_their_texts():
    found = answers.view(
        {"label": 1, "probabilities": [0.25, 0.75]},
        {"context": "x", "choices": ["no", "yes"]},
    )
    assert found["title"] == "yes"
    assert [row[0] for row in found["rows"]] == ["yes", "no"]


def test_an_answer_is_marked_in_its_passage():
    found = answers.view(
        {"answer": "née", "start": 2, "end": 5, "probability": 0.5},
        {"question": "?", "context": "a née b"},
    )
    assert found["parts"] == ("a ", "née", " b")
    none = {"answer": "", "start": 0, "end": 0, "null_odds": 3.0}
    found = answers.view(none, {"context": "a b"})
    assert found["parts"] == ("", "", "a b")


def test_entities_have_the_colour_of_their_type():
    found = answers.view(
        {
            "entities": [
                {"entity": "Rome", "type": "LOC", "start": 8, "end": 12},
                {"entity": "Anna", "type": "PER", "start": 0, "end": 4},
                {"entity": "Bonn", "type": "LOC", "start": 13, "end": 17},
            ]
        },
        {"text": "Anna in Rome Bonn."},
    )
    assert [part[:3] for part in found["parts"]] == [
        ("Anna", "PER", 1),
        (" in ", "", 0),
        ("Rome", "LOC", 0),
        (" ", "", 0),
        ("Bonn", "LOC", 0),
        (".", "", 0),
    ]
    assert found["types"] == [("LOC", 0), ("PER", 1)]


def test_other_answers_are_listed():
    found = answers.view({"value": 0.5}, {"text": "x"})
    assert found == {"kind": "values", "rows": [("value", 0.5)]}


def test_masks_are_filled_in_the_sentence():
    words = [[("cat", 0.5), ("dog", 0.25)], [("mat", 0.125)]]
    found = answers.masks("the [MASK] on a [MASK].", words)
    assert found["parts"] == [("the ", "cat"), (" on a ", "mat"), (".", "")]
    assert found["masks"][0][1] == ("dog", 0.25, 25.0)


def test_attention_has_a_row_for_each_token():
    found = answers.attention(["a", "b"], [[0.25, 0.0625], [1.0, 0.0]])
    assert found["rows"][0] == ("a", [(0.25, 50.0), (0.0625, 25.0)])
    assert found["rows"][1][1] == [(1.0, 100.0), (0.0, 0.0)]
