# SPDX-License-Identifier: Apache-2.0
"""A page of headings, lines and tables, as text and as HTML that says the same.

The HTML needs no script and nothing from outside, takes its colours from the notebook's theme, and
holds nothing that is not escaped.
"""
import html

_BOX = "border-left:4px solid #c0392b;padding:0.2em 0 0.2em 0.8em;margin:0.3em 0"
_PLAIN_BOX = "padding:0;margin:0"
_LINE = "margin:0.3em 0;white-space:pre-wrap"
_TABLE = "border-collapse:collapse;margin:0.4em 0;background:transparent;color:inherit"
_CELL = "padding:0.1em 1em 0.1em 0;border:none;background:transparent;vertical-align:baseline;"
_NUMBER = _CELL + "text-align:right;white-space:nowrap"
_LABEL = _CELL + "text-align:left;white-space:nowrap"
_TEXT = _CELL + "text-align:left;white-space:pre-wrap"
_CODE = _TEXT + ";font-family:monospace"
_STYLES = {"r": _NUMBER, "l": _LABEL, "t": _TEXT, "c": _CODE}


class Page:
    """With a title it is a notice, set apart by a bar at its side."""

    def __init__(self, title=""):
        self._title = title
        self._parts = []

    def line(self, text):
        self._parts.append(_Line(text))

    def table(self, titles, kinds, rows):
        """`kinds`, a letter per column: r a number, l a label, t text, c code. None if no rows."""
        if rows:
            rows = [[str(field) for field in row] for row in rows]
            self._parts.append(_Table(titles, kinds, rows))

    def pairs(self, pairs):
        """Label and text; one without a label stands as a line of its own."""
        rows = []
        for label, text in pairs:
            if label:
                rows.append((label, text))
            else:
                self.table((), "lt", rows)
                rows = []
                self.line(text)
        self.table((), "lt", rows)

    def add(self, page):
        """Another page, below."""
        self._parts.append(_Line(""))
        self._parts.append(page)

    def text(self):
        title = [self._title] if self._title else []
        return "\n".join(title + [part.text() for part in self._parts])

    def html(self):
        title = f'<div style="{_LINE}"><b>{_escape(self._title)}</b></div>' if self._title else ""
        parts = "".join(part.html() for part in self._parts)
        return f'<div style="{_BOX if self._title else _PLAIN_BOX}">{title}{parts}</div>'


class _Line:
    def __init__(self, text):
        self._text = text

    def text(self):
        return self._text

    def html(self):
        return f'<div style="{_LINE}">{_escape(self._text)}</div>'


class _Table:
    def __init__(self, titles, kinds, rows):
        self._titles, self._kinds, self._rows = titles, kinds, rows

    def text(self):
        rows = ([list(self._titles)] if self._titles else []) + self._rows
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join(self._text_row(row, widths) for row in rows)

    def _text_row(self, row, widths):
        fields = [
            field.rjust(width) if kind == "r" else field.ljust(width)
            for field, kind, width in zip(row, self._kinds, widths)
        ]
        return ("  " + "  ".join(fields)).rstrip()

    def html(self):
        title_kinds = self._kinds.replace("c", "l")
        rows = [_html_row("th", title_kinds, self._titles)] if self._titles else []
        rows += [_html_row("td", self._kinds, row) for row in self._rows]
        return f'<table style="{_TABLE}">{"".join(rows)}</table>'


def _html_row(tag, kinds, row):
    fields = [
        f'<{tag} style="{_STYLES[kind]}">{_escape(field)}</{tag}>'
        for field, kind in zip(row, kinds)
    ]
    return f'<tr style="background:transparent">{"".join(fields)}</tr>'


def publish(shell, page):
    """As a cell's output: each front end takes the form that it can show."""
    shell.display_pub.publish({"text/plain": page.text(), "text/html": page.html()})


def _escape(text):
    return html.escape(str(text))
