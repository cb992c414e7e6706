import io
import itertools
import re
import types

import pytest

from bert.common import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error as a terminal of 200 columns."""
    shown = types.SimpleNamespace(stderr=Terminal())
    monkeypatch.setattr(progress, "sys", shown)
    monkeypatch.setenv("COLUMNS", "200")
    return shown.stderr


@pytest.fixture
def seconds(monkeypatch):
    """Each look at the clock is seven seconds after the last one."""
    clock = itertools.count(100.0, 7.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))


def drawn(terminal):
    """The states of the terminal's line, one after the other."""
    return re.split(r"\r\x1b\[K", terminal.getvalue())[1:]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 00 min"),
        (90300, "25 h 05 min"),
    ],
)
def test_a_duration_has_two_units(seconds, shown):
    assert progress.duration(seconds) == shown


def test_a_log_has_a_line_every_ten_seconds(seconds, capsys):
    bar = progress.Progress("vectors", 40.0, "MB")
    for done in (1, 2, 3, 4, 40):
        bar.update(done)
    assert capsys.readouterr().err.splitlines() == [
        "vectors: 2 of 40 MB (0.143 MB/s, 4 min 26 s left)",
        "vectors: 4 of 40 MB (0.143 MB/s, 4 min 12 s left)",
    ]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (0.12345, "0.123"),
        (42.06, "42.1"),
        (99.96, "100"),
        (1012.3, "1,012"),
        (60_812, "60,812"),
        (1e7, "10,000,000"),
    ],
)
def test_numbers_have_three_digits_or_are_whole(number, shown):
    assert progress.quantity(number) == shown


def test_nothing_has_no_rate(seconds, capsys):
    bar = progress.Progress("records", 11, "partitions")
    bar.update(0)
    bar.update(0)
    assert capsys.readouterr().err == (
        "records: 0 of 11 partitions (none finished in 14 s)\n"
    )


def test_a_terminal_has_one_line_with_a_bar(seconds, terminal):
    bar = progress.Progress("vectors", 4.0, "MB")
    bar.update(1)
    bar.update(4)
    half, end = drawn(terminal)
    assert half == (
        "vectors  25% [######------------------] "
        "1 of 4 MB, 0.143 MB/s, 21 s left"
    )
    assert end == ""
    assert "\n" not in terminal.getvalue()


@pytest.mark.parametrize(("columns", "width"), [(200, 100), (53, 52)])
def test_the_bar_fits_the_terminal(monkeypatch, terminal, columns, width):
    monkeypatch.setenv("COLUMNS", str(columns))
    progress.draw("training", 0.31, "x" * 211)
    (line,) = drawn(terminal)
    assert len(line) == width


def test_a_message_takes_the_line_of_the_bar(terminal):
    progress.draw("training", 0.31, "step 31 of 100")
    progress.log("a message")
    assert drawn(terminal)[1] == "a message\n"


def test_a_log_has_no_bar(capsys):
    progress.draw("training", 0.31, "step 31 of 100")
    progress.log("a message")
    assert capsys.readouterr().err == "a message\n"
