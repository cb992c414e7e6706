"""A page as its tags and texts, by Python's own parser."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """A parsed page; fails where a tag is not closed.

    Attributes:
        tags: (name, attributes) of each, in order.
        texts: texts, without those of styles.
        headings: texts of <h2>.
    """

    def __init__(self, text: str):
        super().__init__()
        self.tags, self.texts, self._open = [], [], []
        self.headings = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if data.strip() and "style" not in self._open:
            self.texts.append(" ".join(data.split()))
            if self._open[-1] == "h2":
                self.headings.append(self.texts[-1])

    def count(self, tag: str) -> int:
        """Number of tags of this name."""
        return sum(name == tag for name, _ in self.tags)
