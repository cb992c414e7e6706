"""The original's tokenization, restated by Python's own Unicode data.

With Hugging Face's `strip_accents`, as transformers' `BasicTokenizer` has it.
`compute` and `freeze` made the tables of `bert/data/text/unicode_tables.py`,
under a Python with the Unicode version that is named there.
"""

import base64
import itertools
import re
import unicodedata
import zlib

import numpy as np

from bert.data.text import unicode_tables as tables

# Characters with another meaning since Unicode 15, none of them assigned
# before; of 15.1, nothing is added.
LATER = re.compile(
    "[\u0ece\U00010efd-\U00010eff\U00011241\U00011b00-\U00011b09\U00011f00"
    "\U00011f01\U00011f36-\U00011f3a\U00011f40-\U00011f4f"
    "\U00013439-\U00013440\U00013447-\U00013455\U0001df25-\U0001df2a"
    "\U0001e030-\U0001e06d\U0001e08f\U0001e4eb-\U0001e4ef]"
)
# do_lower_case, strip_accents
MODES = [(True, None), (False, None), (True, False), (False, True)]

CJK = [
    range(0x4E00, 0xA000),
    range(0x3400, 0x4DC0),
    range(0x20000, 0x2A6E0),
    range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820),
    range(0x2B820, 0x2CEB0),
    range(0xF900, 0xFB00),
    range(0x2F800, 0x2FA20),
]


def known(text):
    """The text without what Python's Unicode data may know better."""
    return LATER.sub("", text)


def clean(text):
    found = []
    for character in text:
        category = unicodedata.category(character)
        if character in " \t\n\r" or category == "Zs":
            found.append(" ")
        elif category in ("Cc", "Cf") or character in "\x00\ufffd":
            continue
        elif any(ord(character) in block for block in CJK):
            found.append(f" {character} ")
        else:
            found.append(character)
    return "".join(found)


def normalize(word, lower, strip):
    if lower:
        word = word.lower()
    if strip:
        word = "".join(
            character
            for character in unicodedata.normalize("NFD", word)
            if unicodedata.category(character) != "Mn"
        )
    return word


def words(text, lower, strip=None):
    """The tokens of `BasicTokenizer`."""
    strip = lower if strip is None else strip
    tokens = []
    for word in clean(text).split():
        token = ""
        for character in normalize(word, lower, strip):
            sign = "!" <= character <= "~" and not character.isalnum()
            if sign or unicodedata.category(character)[0] == "P":
                tokens += [token, character]
                token = ""
            else:
                token += character
        tokens.append(token)
    return [part for token in tokens for part in token.split()]


def wordpieces(word, vocab):
    """The ids of `WordpieceTokenizer`, each with its number of letters."""
    found, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for stop in range(len(word), start, -1):
            token_id = vocab.get(prefix + word[start:stop])
            if token_id is not None:
                break
        if token_id is None or len(word) > 200:
            return [(vocab["[UNK]"], len(word))]
        found.append((token_id, stop - start))
        start = stop
    return found


def tokens(raw, vocab, lower, strip=None):
    """Tokenizes UTF-8, with holes or without.

    Returns:
        The ids of `FullTokenizer`, the first byte of each token, and the byte
        after it and its stripped accents.
    """
    starts, limits = _spans(raw, lower, strip)
    found, at = [], 0
    for word in words(raw.decode("utf-8", "ignore"), lower, strip):
        for token_id, size in wordpieces(word, vocab):
            found.append((token_id, starts[at], limits[at + size - 1]))
            at += size
    return [[*values] for values in zip(*found)] or [[], [], []]


def _spans(raw, lower, strip):
    """The first byte of each letter of all words, and the byte after it."""
    strip = lower if strip is None else strip
    found = []  # [its letters, first byte, the byte after it]
    for character, start, limit in _decoded(raw):
        cleaned = clean(character)
        letters = normalize(cleaned, lower, strip)
        if cleaned and not letters and found:
            found[-1][2] = limit
        elif letters:
            count = sum(not c.isspace() for c in letters)
            found.append([count, start, limit])
    starts = [start for count, start, _ in found for _ in range(count)]
    limits = [limit for count, _, limit in found for _ in range(count)]
    return starts, limits


def _decoded(raw):
    """Decodes UTF-8: characters, their first bytes and the bytes after them."""
    found, at = [], 0
    while at < len(raw):
        try:
            text, skipped = raw[at:].decode(), 0
        except UnicodeDecodeError as error:
            text = raw[at : at + error.start].decode()
            skipped = error.end - error.start
        for character in text:
            size = len(character.encode())
            found.append((character, at, at + size))
            at += size
        at += skipped
    return found


def compute(lower, strip, stop=tables.CODE_POINTS):
    """Makes a table, one character at a time.

    Returns:
        the entries, int32 [stop], and character -> what it becomes, for
        those of the kind `EXPANDS`, in order.
    """
    table = np.zeros(stop, np.int32)
    expanding = {}
    for code in range(stop):
        if 0xD800 <= code < 0xE000:  # surrogates are not text
            continue
        character = chr(code)
        kind, order, letters = _fate(character, lower, strip)
        delta = 0
        if kind == tables.EXPANDS:
            delta = len(expanding) - code
            expanding[character] = letters
        elif letters:
            delta = ord(letters) - code
        delta <<= tables.DELTA_SHIFT
        table[code] = delta | order << tables.CLASS_SHIFT | kind
        if lower:
            table[code] |= _case(character, kind)
    return table, expanding


def freeze(table):
    """The text from which `bert/data/text/unicode_tables.py` makes a table."""
    runs = [(len(list(run)), v) for v, run in itertools.groupby(table)]
    packed = np.array(runs, "<i4").T.tobytes()
    return base64.b85encode(zlib.compress(packed, 9)).decode()


def _fate(character, lower, strip):
    """Kind, combining class and what stays of a character."""
    if not clean(character):
        return tables.CONTROL, 1, ""  # any class but 0: marks pass it
    if not clean(character).split():
        return tables.SPACE, 0, ""
    letters = normalize(character, lower, strip)
    if not letters:
        # One part of class 0 keeps marks from passing the whole.
        parts = unicodedata.normalize("NFD", character.lower())
        return tables.ACCENT, min(map(unicodedata.combining, parts)), ""
    if len(letters) > 1:
        return tables.EXPANDS, 0, letters
    if len(words(f"a{character}a", lower, strip)) > 1:
        return tables.ALONE, 0, letters
    if lower and character == "Σ":
        return tables.SIGMA, 0, letters
    if strip and unicodedata.combining(letters):
        return tables.MARK, unicodedata.combining(letters), letters
    return tables.LETTER, 0, letters


def _case(character, kind):
    """The bits `IGNORABLE` and `CASED`, read off `str.lower`.

    A capital sigma becomes the final one after a cased letter; ignorable
    characters may stand between the two.
    """
    if kind == tables.CONTROL:  # is gone before anybody looks
        return tables.IGNORABLE
    if f"{character}Σ".lower().endswith("ς"):
        return tables.CASED
    skipped = f"a{character}Σ".lower().endswith("ς")
    return tables.IGNORABLE if skipped else 0
